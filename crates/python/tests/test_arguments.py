"""What kernels are given: arrays where they lie, numbers as their parameter wants them, and sentences about what does not fit."""

import ctypes

import numpy
import pytest

import handloom
from conftest import HEAD, STORE

BITS = {"u8": 8, "s8": 8, "b8": 8, "u16": 16, "s16": 16, "b16": 16, "f16": 16, "u32": 32, "s32": 32, "b32": 32, "f32": 32}
BITS |= {"u64": 64, "s64": 64, "b64": 64, "f64": 64}


def stored(ty, value):
    """The bits that a parameter of a type gets."""
    out = numpy.zeros(1, f"u{BITS[ty] // 8}")
    handloom.run(STORE.format(ty=ty, bits=BITS[ty]), f"store_{ty}", 1, 1, out, value)
    return int(out[0])


@pytest.mark.parametrize(
    ("ty", "value", "want"),
    [
        ("u8", 255, 255),
        ("s8", -1, 255),
        ("u16", numpy.uint16(65535), 65535),
        ("s32", -2, 2**32 - 2),
        ("u32", True, 1),
        ("u32", numpy.int64(7), 7),
        ("u64", 2**64 - 1, 2**64 - 1),
        ("s64", -(2**63), 2**63),
        ("f32", 1.5, int(numpy.float32(1.5).view("u4"))),
        ("f32", 3, int(numpy.float32(3).view("u4"))),
        ("f32", numpy.float64(0.1), int(numpy.float32(0.1).view("u4"))),
        ("f64", numpy.float32(0.1), int(numpy.float64(numpy.float32(0.1)).view("u8"))),
        ("f16", 0.1, int(numpy.float16(0.1).view("u2"))),
        ("b16", numpy.float16(-2.5), int(numpy.float16(-2.5).view("u2"))),
        ("b32", 0.1, int(numpy.float32(0.1).view("u4"))),
        ("b32", numpy.int32(-5), 2**32 - 5),
        ("u32", numpy.array(9, "i8"), 9),
        ("u64", None, 0),
        ("u64", ctypes.c_void_p(77), 77),
        ("s32", ctypes.c_int(-1), 2**32 - 1),
    ],
)
def test_numbers_are_those_of_the_parameter(ty, value, want):
    assert stored(ty, value) == want


def test_small_floats_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert stored("b16", ml_dtypes.bfloat16(1.5)) == 0x3FC0
    assert stored("b8", ml_dtypes.float8_e4m3fn(1.0)) == 0x38
    assert stored("f32", ml_dtypes.bfloat16(1.5)) == 0x3FC00000
    array = numpy.zeros(3, ml_dtypes.bfloat16)
    handloom.run(STORE.format(ty="b16", bits=16), "store_b16", 1, 1, array, ml_dtypes.bfloat16(-2))
    assert array.tolist() == [-2, 0, 0]


@pytest.mark.parametrize(
    ("ty", "value", "kind", "words"),
    [
        ("u32", 1.0, TypeError, "argument 2 (`v`, .u32): takes an integer, not float 1.0"),
        ("u32", 2**32, ValueError, "argument 2 (`v`, .u32): 4294967296 does not fit"),
        ("s8", -129, ValueError, "-129 does not fit"),
        ("f32", "x", TypeError, "argument 2 (`v`, .f32): takes a number, not str 'x'"),
        ("f32", None, TypeError, "takes a number, not None"),
        ("f32", numpy.zeros((2, 3)), TypeError, "takes a number, not ndarray of float64 (2, 3)"),
        ("b16", 1.5, TypeError, "numpy.float16(x)"),
        ("u64", 1.5, TypeError, "takes an array (its address), None, or an integer, not float 1.5"),
        ("u64", {}, TypeError, "not dict {}"),
        ("u64", numpy.zeros((4, 4), "f4").T, ValueError, "ndarray of float32 (4, 4) in Fortran order"),
        ("u64", numpy.zeros(8, "i2")[::2], ValueError, "ndarray of int16 (4,) in strides"),
        ("u64", numpy.zeros(4, ">f4"), ValueError, "the byte order of the host"),
        ("u64", numpy.zeros(2, "i4,O"), TypeError, "takes numbers, not ndarray of [('f0', '<i4'), ('f1', 'O')] (2,)"),
        ("u64", numpy.array([{}]), TypeError, "takes numbers, not ndarray of object"),
    ],
)
def test_what_does_not_fit_is_said(ty, value, kind, words):
    with pytest.raises(kind) as told:
        stored(ty, value)
    assert words in str(told.value)


def test_the_number_of_arguments(saxpy):
    with pytest.raises(TypeError, match=r"3 arguments: `saxpy` takes 4 \(.u32 saxpy_param_0, .f32 "):
        saxpy(1, 32, (1, 2.0, None))


def test_arrays_are_used_where_they_lie(saxpy):
    base = numpy.zeros(1000, "f4")
    x, y = base[10:20], base[500:510]
    x[:] = 2
    saxpy(1, 32, (10, 3.0, x, y))
    assert base.sum() == 10 * 2 + 10 * 6 and (y == 6).all()
    # One array as both, and one that overlaps another.
    saxpy(1, 32, (10, 1.0, y, y))
    assert (y == 12).all()
    saxpy(1, 32, (9, 0.0, base[500:509], base[501:510]))
    assert (y == 12).all()


def test_a_large_array_is_not_copied(saxpy):
    n = 1 << 24
    x, y = numpy.ones(n, "f4"), numpy.zeros(n, "f4")
    at = y.__array_interface__["data"]
    saxpy((n + 255) // 256, 256, (n, 2.0, x, y))
    assert y.__array_interface__["data"] == at and (y == 2).all()


def test_a_step_past_the_end_names_the_array(saxpy):
    x, y = numpy.ones((4, 4), "f4"), numpy.zeros(17, "f4")
    with pytest.raises(handloom.Trap) as told:
        saxpy(1, 32, (17, 1.0, x, y))
    trap = told.value
    assert trap.kind == "out_of_bounds" and trap.thread == [16, 0, 0] and trap.block == [0, 0, 0]
    assert trap.line == 43 and trap.file.endswith("saxpy.ptx")
    assert "saxpy_param_2+64, 0 bytes past the end of memory of the process of 64 bytes" in trap.message
    assert "`saxpy_param_2` is argument 3: 16 elements of f32 (4x4)" in str(trap)
    assert "<pre>" in trap._repr_html_()


def test_a_part_of_an_array_has_its_own_end(saxpy):
    base = numpy.zeros(100, "f4")
    with pytest.raises(handloom.Trap, match="past the end"):
        saxpy(1, 32, (11, 1.0, base[:10], base[50:]))


def test_an_array_that_cannot_be_written(saxpy):
    x, y = numpy.ones(4, "f4"), numpy.zeros(4, "f4")
    x.flags.writeable = y.flags.writeable = False
    with pytest.raises(handloom.Trap) as told:
        saxpy(1, 32, (4, 1.0, x, y))
    assert told.value.kind == "write_protected" and "can only be read" in told.value.message
    y.flags.writeable = True
    saxpy(1, 32, (4, 1.0, x, y))
    assert (y == 1).all()


def test_memory_is_given_back(saxpy):
    y = numpy.zeros(4, "f4")
    at = y.__array_interface__["data"][0]
    saxpy(1, 32, (4, 1.0, y, y))
    with pytest.raises(handloom.Trap, match="outside every allocation"):
        saxpy(1, 32, (4, 1.0, at, at))


def test_buffers_of_other_types(saxpy):
    y = bytearray(16)
    saxpy(1, 32, (4, 1.0, numpy.ones(4, "f4"), y))
    assert numpy.frombuffer(y, "f4").tolist() == [1] * 4
    saxpy(1, 32, (4, 1.0, numpy.ones(4, "f4").tobytes(), memoryview(y)))
    assert numpy.frombuffer(y, "f4").tolist() == [2] * 4
    with pytest.raises(handloom.Trap, match="can only be read"):
        saxpy(1, 32, (4, 1.0, y, bytes(16)))
    # Nothing of it is held any more.
    y.append(1)


class Tensor:
    """A tensor of another package: what it says by DLPack alone."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.device


def test_tensors_by_dlpack(saxpy):
    y = numpy.zeros(4, "f4")
    saxpy(1, 32, (4, 1.0, Tensor(numpy.ones(4, "f4")), Tensor(y)))
    assert (y == 1).all()
    with pytest.raises(ValueError, match=r"argument 4 .* memory of the CPU, not of device 2"):
        saxpy(1, 32, (4, 1.0, y, Tensor(y, (2, 0))))
    with pytest.raises(ValueError, match=r"one after another, not one of shape \[4, 4\] with strides \[1, 4\]"):
        saxpy(1, 32, (4, 1.0, y, Tensor(numpy.zeros((4, 4), "f4").T)))


class Closed:
    """A tensor that does not lend its memory."""

    def __dlpack__(self, **kwargs):
        raise BufferError("use tensor.detach()")

    def __dlpack_device__(self):
        return (1, 0)


class One:
    """A tensor of one number."""

    ndim, shape, dtype = 0, (), "f32"

    def __init__(self, value):
        self.value = value

    def __dlpack__(self, **kwargs):
        return numpy.array(self.value).__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return (1, 0)

    def item(self):
        return self.value


def test_tensors_that_lend_nothing_and_tensors_of_one_number(saxpy):
    y = numpy.zeros(4, "f4")
    with pytest.raises(ValueError, match=r"argument 3 \(`saxpy_param_2`, .u64\): takes a tensor that lends its memory: use tensor.detach"):
        saxpy(1, 32, (4, 1.0, Closed(), y))
    saxpy(1, 32, (One(4), One(2.5), numpy.ones(4, "f4"), y))
    assert (y == 2.5).all()
    with pytest.raises(TypeError, match="takes an integer, not float 4.5"):
        saxpy(1, 32, (One(4.5), 1.0, y, y))


def test_tensors_of_torch(saxpy):
    torch = pytest.importorskip("torch", reason="torch is not installed: ci/python --torch")
    x, y = torch.arange(8, dtype=torch.float32), torch.zeros(8)
    at = y.data_ptr()
    saxpy(1, 32, (8, 2.0, x, y))
    assert y.data_ptr() == at and y.tolist() == [2.0 * i for i in range(8)]
    # A part of a tensor has its own end; a view shares its memory, as the array of `numpy()` does.
    array = y.numpy()
    saxpy(1, 32, (4, 1.0, x[4:], y[:4]))
    assert array.tolist() == [4, 7, 10, 13, 8, 10, 12, 14] == y.view(2, 4).flatten().tolist()
    with pytest.raises(handloom.Trap, match="past the end of memory of the process of 16 bytes"):
        saxpy(1, 32, (5, 1.0, x, torch.zeros(8)[:4]))
    with pytest.raises(ValueError, match="one after another"):
        saxpy(1, 32, (4, 1.0, x, torch.zeros(4, 4).T))
    with pytest.raises(ValueError, match="lends its memory: .*detach"):
        saxpy(1, 32, (4, 1.0, x, torch.zeros(4, requires_grad=True)))
    saxpy(1, 32, (torch.tensor(8), torch.tensor(0.5), x, torch.nn.Parameter(y).detach()))
    assert y.tolist() == [4 + 0, 7.5, 11, 14.5, 10, 12.5, 15, 17.5]
    small = torch.zeros(2, dtype=torch.bfloat16)
    handloom.run(STORE.format(ty="b16", bits=16), "store_b16", 1, 1, small, 0x3FC0)
    assert small.tolist() == [1.5, 0]


SCALE = (
    HEAD
    + """
.visible .const .align 4 .f32 offset[4] = {0f3F800000, 0f40000000, 0f40400000, 0f40800000};
.visible .entry scale(.param .align 8 .b8 p[24]) {
    .reg .pred %q; .reg .b32 %r<3>; .reg .f32 %f<4>; .reg .b64 %d<5>;
    ld.param.u64 %d0, [p]; ld.param.u64 %d1, [p+8]; ld.param.u32 %r0, [p+16]; ld.param.f32 %f0, [p+20];
    mov.u32 %r1, %tid.x; setp.ge.u32 %q, %r1, %r0; @%q ret;
    mov.u64 %d2, offset; mul.wide.u32 %d3, %r1, 4; add.u64 %d2, %d2, %d3; ld.const.f32 %f1, [%d2];
    add.u64 %d0, %d0, %d3; add.u64 %d1, %d1, %d3; ld.global.f32 %f2, [%d0];
    fma.rn.f32 %f3, %f0, %f2, %f1; st.global.f32 [%d1], %f3; ret; }
.visible .global .align 8 .f32 x[4] = {0f3F800000, 0f3F800000, 0f3F800000, 0f3F800000};
.visible .global .align 8 .f32 y[4];
"""
)


def test_structures_and_variables():
    module = handloom.RawModule(code=SCALE)
    dtype = numpy.dtype([("x", "u8"), ("y", "u8"), ("n", "i4"), ("factor", "f4")])
    p = numpy.array((module.get_address("x"), module.get_address("y"), 4, 10.0), dtype)
    scale = module.get_function("scale")
    scale(1, 32, (p,))
    assert module.get_variable("y", "f4").tolist() == [11, 12, 13, 14]
    module.set_variable("x", numpy.full(2, 2, "f4"), offset=8)
    scale(1, 32, (p[()],))
    assert module.get_variable("y", "f4").tolist() == [11, 12, 23, 24]

    class P(ctypes.Structure):
        _fields_ = [("x", ctypes.c_uint64), ("y", ctypes.c_uint64), ("n", ctypes.c_int), ("factor", ctypes.c_float)]

    scale(1, 32, (P(module.get_address("x"), module.get_address("y"), 1, 0.0),))
    assert module.get_variable("y", "f4").tolist() == [1, 12, 23, 24]
    with pytest.raises(ValueError, match=r"argument 1 \(`p`, .b8\[24\]\): takes 24 bytes, not 16"):
        scale(1, 32, (bytes(16),))
    with pytest.raises(KeyError, match="no variable `z`: the module has offset, x, y"):
        module.get_variable("z")
    with pytest.raises(ValueError, match="20 bytes from byte 0 on for `x`, which has 16"):
        module.set_variable("x", numpy.zeros(5, "f4"))


@pytest.mark.parametrize(
    ("grid", "block", "kind", "words"),
    [
        (0, 32, handloom.LaunchError, "a grid of 0,1,1 blocks"),
        (1, 1025, handloom.LaunchError, "1025 threads"),
        ("1", 32, TypeError, "`grid` takes an integer or a tuple of 1 to 3 integers, not '1'"),
        (1, (1, 1, 1, 1), TypeError, "`block` takes"),
        (1, 1.5, TypeError, "`block` takes"),
        (-1, 32, ValueError, "`grid`: -1 is not between"),
    ],
)
def test_shapes(saxpy, grid, block, kind, words):
    with pytest.raises(kind) as told:
        saxpy(grid, block, (0, 1.0, None, None))
    assert words in str(told.value)


def test_options(saxpy):
    y = numpy.ones(4, "f4")
    for options in ({"engine": "interp"}, {"backend": "cranelift"}, {"bounds": "contained"}, {"threads": 1, "seed": 3}):
        report = saxpy([1], (32,), [4, 1.0, y, y], **options)
        assert report.blocks == 1
    assert y[0] == 16
    with pytest.raises(TypeError, match="no option `treads`"):
        saxpy(1, 32, (4, 1.0, y, y), treads=1)
    with pytest.raises(TypeError, match="`engine` takes \"jit\" or \"interp\", not 'gpu'"):
        saxpy(1, 32, (4, 1.0, y, y), engine="gpu")
    with pytest.raises(TypeError, match="give `check` too"):
        saxpy(1, 32, (4, 1.0, y, y), seeds=4)
    with pytest.raises(TypeError, match="`args` takes a tuple"):
        saxpy(1, 32, y)
