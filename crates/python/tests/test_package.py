"""Modules, launches, exceptions, signals, threads, forks, and the page that users read first."""

import multiprocessing
import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy
import pytest

import handloom
from conftest import HEAD, KERNELS, RACY, SPIN

PAGE = Path(__file__).resolve().parents[1] / "README.md"
CAMPAIGNS = PAGE.with_name("CAMPAIGNS.md")


def run_page(page):
    """All its examples, one after the other."""
    names = {}
    for example in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(example, str(page), "exec"), names)


def test_the_page_of_campaigns(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(CAMPAIGNS)
    out = capsys.readouterr().out
    told = re.search(r"It prints\n\n```text\n(.*?)```", CAMPAIGNS.read_text(), re.DOTALL).group(1)
    assert out.startswith(told), out


def test_the_page(capsys):
    run_page(PAGE)
    out = capsys.readouterr().out
    assert re.search(r"`(\[ 0.*?\])`", PAGE.read_text()).group(1) in out
    assert "trap: out of bounds" in out


def test_the_three_doors(saxpy, tmp_path):
    y, x = numpy.zeros(4, "f4"), numpy.ones(4, "f4")
    text = (KERNELS / "saxpy.ptx").read_text()
    handloom.run(text, "saxpy", 1, 32, 4, 1.0, x, y)
    handloom.run(KERNELS / "saxpy.ptx", "saxpy", 1, 32, 4, 1.0, x, y)
    handloom.run(str(KERNELS / "saxpy.ptx"), "saxpy", 1, 32, 4, 1.0, x, y)
    saxpy((1,), (32, 1), (4, 1.0, x, y), shared_mem=16)
    config = handloom.LaunchConfig(grid=1, block=32)
    report = handloom.launch(handloom.Stream(), config, saxpy, 4, 1.0, x, y)
    assert (y == 5).all() and report.blocks == 1 and report.ok and report.findings == []
    assert "saxpy: 1 block, compiled in" in report._repr_html_()
    assert saxpy.params[1] == ("saxpy_param_1", ".f32")
    for wrong in (lambda: handloom.launch(None, 1, saxpy), lambda: handloom.launch(None, config, 1)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(FileNotFoundError):
        handloom.run("nowhere.ptx", "k", 1, 1)
    with pytest.raises(TypeError, match="not bytes"):
        handloom.run(b"", "k", 1, 1)
    with pytest.raises(TypeError, match="either `code`"):
        handloom.RawModule()
    # A text may stand on one line; a file may hold no text.
    handloom.run(".version 8.0 .target sm_80 .address_size 64 .entry k() { ret; }", "k", 1, 1)
    (tmp_path / "k.cubin").write_bytes(b"\x7fELF\xff")
    for use in (lambda path: handloom.RawModule(path=path), handloom.check):
        with pytest.raises(ValueError, match="k.cubin takes PTX as text, and byte 4 is no UTF-8"):
            use(tmp_path / "k.cubin")


def test_wrong_texts():
    text = HEAD + ".entry k() {\n  sad.f32 %a, %b, %c, %d;\n}\n"
    told = handloom.check(text)
    assert (told[0].code, told[0].line, told[0].severity, told[0].kind) == ("E0301", 5, "error", "program")
    assert "expected one of" in str(told[0]) and "<pre>" in told[0]._repr_html_()
    with pytest.raises(handloom.ModuleError) as error:
        handloom.RawModule(code=text, name="k.ptx")
    assert [d.code for d in error.value.diagnostics] == [d.code for d in told] and "k.ptx:5:" in str(error.value)
    assert isinstance(error.value, ValueError) and error.value.kind == "invalid_module"
    assert handloom.check(KERNELS / "saxpy.ptx") == []
    with pytest.raises(handloom.LaunchError, match="no entry `s`: the module has `saxpy`"):
        handloom.RawModule(path=KERNELS / "saxpy.ptx").get_function("s")


def test_modules_are_linked(tmp_path):
    (tmp_path / "f.ptx").write_text(HEAD + ".visible .func f() { trap; }\n")
    code = HEAD + ".extern .func f();\n.visible .entry k() { call f; ret; }\n"
    kernel = handloom.RawModule(code=code, link=[tmp_path / "f.ptx"]).get_function("k")
    with pytest.raises(handloom.Trap) as trap:
        kernel(1, 1, ())
    assert trap.value.kind == "trap" and trap.value.file.endswith("f.ptx")


def test_what_kernels_print(capsys):
    text = """
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 format[7] = {104, 101, 108, 108, 111, 10, 0};
.visible .entry hello() {
    .reg .b64 %d<3>;
    mov.u64 %d0, format; cvta.global.u64 %d1, %d0; mov.u64 %d2, 0;
    { .param .b64 f; .param .b64 a; .param .b32 r;
      st.param.b64 [f], %d1; st.param.b64 [a], %d2; call.uni (r), vprintf, (f, a); }
    ret; }
"""
    report = handloom.run(HEAD + text, "hello", 2, 1)
    assert report.output == "hello\nhello\n" == capsys.readouterr().out


def test_a_module_that_was_unloaded(saxpy):
    module = handloom.RawModule(path=KERNELS / "saxpy.ptx")
    kernel = module.get_function("saxpy")
    y = numpy.zeros(4, "f4")
    told = []

    def use():
        # Until it hears of the end, and a little longer; a launch takes a microsecond, and the thread that unloads may wait for a core.
        end = time.monotonic() + 60
        while len(told) < 200 and time.monotonic() < end:
            try:
                kernel(1, 32, (4, 1.0, y, y))
            except handloom.LaunchError as error:
                told.append(str(error))

    threads = [threading.Thread(target=use) for _ in range(3)]
    [thread.start() for thread in threads]
    module.unload()
    [thread.join() for thread in threads]
    assert told and set(told) == {"`saxpy` is used after its module was unloaded"}
    with pytest.raises(handloom.LaunchError, match="a module is used after"):
        module.get_function("saxpy")
    # A kernel holds its module as long as that was not unloaded.
    kernel = handloom.RawModule(path=KERNELS / "saxpy.ptx").get_function("saxpy")
    kernel(1, 32, (4, 1.0, y, y))


def test_threads_launch_side_by_side(saxpy):
    shared = numpy.ones(1000, "f4")

    def use(i):
        y = numpy.zeros(1000, "f4")
        for _ in range(20):
            saxpy(4, 256, (1000, 1.0, shared, y))
        results[i] = (y == 20).all()

    results = [False] * 4
    threads = [threading.Thread(target=use, args=(i,)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(results)


def test_others_run_while_a_kernel_does():
    seen = []

    def count():
        while not done.is_set():
            seen.append(1)
            time.sleep(0.001)

    done = threading.Event()
    thread = threading.Thread(target=count)
    thread.start()
    with pytest.raises(handloom.Trap) as trap:
        handloom.run(SPIN, "spin", 1, 1, timeout=0.3)
    done.set()
    thread.join()
    assert trap.value.kind == "timeout" and len(seen) > 3


def interruptible(script):
    """A process that runs a script and gets SIGINT, also where who started the tests ignores it, as a shell does for what it runs in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("handler", ["", "signal.signal(signal.SIGINT, signal.default_int_handler)"])
def test_ctrl_c_stops_a_kernel(handler):
    script = f"""
        import signal, sys, time, handloom
        {handler}
        text = {SPIN!r}
        print("begin", flush=True)
        for _ in range(2):
            try:
                handloom.run(text, "spin", 1, 1)
            except KeyboardInterrupt:
                print("stopped", flush=True)
        """
    child = interruptible(script)
    assert child.stdout.readline() == "begin\n"
    for _ in range(2):
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "stopped\n"
    assert child.wait(20) == 0


def test_a_stop_handle_ends_launches(saxpy):
    spin = handloom.RawModule(code=SPIN).get_function("spin")
    stop, y = handloom.StopHandle(), numpy.zeros(4, "f4")
    told = []

    def run():
        try:
            spin(1, 1, (), stop=stop)
        except handloom.Stopped as e:
            told.append((e.kind, str(e)))

    def until_they_run(n):
        while f"launches: {n}" not in repr(stop):
            time.sleep(0.01)

    # From the main thread to others, and from another to the main thread.
    threads = [threading.Thread(target=run) for _ in range(2)]
    [t.start() for t in threads]
    until_they_run(2)
    assert not stop.is_stopped and told == []
    stop.stop()
    [t.join() for t in threads]
    assert told == [("stopped", "the launch was stopped")] * 2 and repr(stop) == "<StopHandle, stopped, launches: 0>"
    # What comes is ended too, until it is taken back; launches without the handle are not.
    with pytest.raises(handloom.Stopped):
        saxpy(1, 32, (4, 1.0, y + 1, y), stop=stop)
    saxpy(1, 32, (4, 1.0, y + 1, y))
    stop.renew()
    saxpy(1, 32, (4, 1.0, y + 1, y), stop=stop)
    assert y.tolist() == [3] * 4
    for options in ({}, {"check": "race"}, {"timeout": 100}):
        other = threading.Thread(target=lambda: (until_they_run(1), stop.stop()))
        other.start()
        with pytest.raises(handloom.Stopped):
            spin(1, 1, (), stop=stop, **options)
        other.join()
        stop.renew()
    with pytest.raises(TypeError, match="`stop` takes a handloom.StopHandle, not 1"):
        spin(1, 1, (), stop=1)
    with pytest.raises(TypeError, match="a prepared launch takes no .* `stop`"):
        spin.prepare(1, 1, (), stop=stop)


def test_ctrl_c_stops_a_kernel_that_has_a_stop_handle():
    script = f"""
        import handloom
        stop = handloom.StopHandle()
        again = handloom.RawModule(code={SPIN!r}).get_function("spin").prepare(1, 1, (), timeout=100)
        print("begin", flush=True)
        for run in (lambda: handloom.run({SPIN!r}, "spin", 1, 1, stop=stop), again, again):
            try:
                run()
            except KeyboardInterrupt:
                print("stopped", stop.is_stopped, flush=True)
        """
    child = interruptible(script)
    assert child.stdout.readline() == "begin\n"
    for _ in range(3):
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "stopped False\n"
    assert child.wait(20) == 0


def test_exceptions_go_to_other_processes(saxpy):
    def sent(error):
        got = pickle.loads(pickle.dumps(error))
        assert type(got) is type(error) and str(got) == str(error) and got.kind == error.kind
        return got

    with pytest.raises(handloom.Trap) as trap:
        saxpy(1, 32, (1, 1.0, None, None))
    got = sent(trap.value)
    assert vars(got) == vars(trap.value) and got.thread == [0, 0, 0]
    with pytest.raises(handloom.ModuleError) as wrong:
        handloom.RawModule(code=HEAD + ".entry k() { nonsense; }")
    for got, d in zip(sent(wrong.value).diagnostics, wrong.value.diagnostics, strict=True):
        names = [name for name in dir(d) if not name.startswith("_")]
        assert "code" in names and [getattr(got, name) for name in names] == [getattr(d, name) for name in names]
    with pytest.raises(handloom.CheckError) as found, handloom.checking("race"):
        handloom.run(RACY, "racy", 1, 64, numpy.zeros(64, "u4"), numpy.zeros(64, "u4"))
    assert sent(found.value).findings == [] and "race: nothing orders" in str(found.value)


def test_a_child_of_a_fork_loads_anew(saxpy):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            y = numpy.zeros(1 << 16, "f4")
            try:
                saxpy(256, 256, (1 << 16, 1.0, y, y))
            except handloom.LaunchError as error:
                assert "forked" in str(error)
                handloom.run(KERNELS / "saxpy.ptx", "saxpy", 256, 256, 1 << 16, 1.0, y + 1, y)
                os.write(write, b"ok" if (y == 1).all() else b"wrong")
        finally:
            os._exit(0)
    os.close(write)
    assert os.read(read, 10) == b"ok"
    os.waitpid(child, 0)


def test_races_are_found_and_counted():
    x, y = numpy.arange(64, dtype="u4"), numpy.zeros(64, "u4")
    racy = handloom.RawModule(code=RACY, name="racy.ptx").get_function("racy")
    report = racy(1, 64, (x, y), check="race", counts=True)
    assert not report.ok and report.findings[0].kind == "race" and "racy.ptx" in str(report.findings[0])
    assert report.findings[0].first["thread"] != report.findings[0].second["thread"]
    # Each thread reads 4 bytes of global memory and writes 4, and the same of shared memory.
    assert (report.global_bytes_read, report.global_bytes_written, report.shared_bytes) == (256, 256, 512)
    fixed = RACY.replace("xor.b32", "bar.sync 0; xor.b32")
    report = handloom.run(fixed, "racy", 1, 64, x, y, check=True)
    assert report.ok and report.global_bytes is None and (y == x ^ 1).all()
    with pytest.raises(ValueError, match="no check `rase`"):
        racy(1, 64, (x, y), check="rase")
    unwritten = RACY.replace("st.shared.u32 [%r2], %r1;", "")
    report = handloom.run(unwritten, "racy", 1, 64, x, y, check="init")
    assert not report.ok and report.findings[0].kind == "uninitialised"


def test_seeds_leave_memory_as_one_launch(saxpy):
    x, y = numpy.ones(1000, "f4"), numpy.zeros(1000, "f4")
    report = saxpy(4, 256, (1000, 1.0, x, y), check="race", seeds=5)
    assert (y == 1).all() and report.seeds == 5 and report.ok
    with handloom.checking("race", seeds=3) as reports:
        saxpy(4, 256, (1000, 1.0, x, y))
        with handloom.checking(None) as inner:
            saxpy(4, 256, (1000, 1.0, x, y))
        saxpy(4, 256, (1000, 1.0, x, y))
    assert (y == 4).all() and len(reports) == 2
    assert [r.seeds for r in reports] == [3, 3] and [r.seeds for r in inner] == [1]
    with pytest.raises(handloom.CheckError, match="race: nothing orders") as told, handloom.checking():
        handloom.run(RACY, "racy", 1, 64, numpy.zeros(64, "u4"), numpy.zeros(64, "u4"))
    assert told.value.findings and isinstance(told.value, AssertionError)


def test_the_types_are_there():
    folder = Path(handloom.__file__).parent
    assert (folder / "py.typed").exists()
    stub = (folder / "__init__.pyi").read_text()
    assert all(re.search(rf"\b{name}\b", stub) for name in handloom.__all__)
    native = (folder / "_native.pyi").read_text()
    for cls in (handloom.Diagnostic, handloom.Finding, handloom.LaunchReport, handloom.Function):
        for name in dir(cls):
            assert name.startswith("__") or re.search(rf"\b{name}\b", native), name


def test_prepared_launches(saxpy, tmp_path):
    y, x = numpy.zeros(4, "f4"), numpy.ones(4, "f4")
    again = saxpy.prepare(1, 32, (4, 1.0, x, y))
    for _ in range(3):
        report = again()
    assert (y == 3).all() and report.blocks == 1 and repr(again) == "<prepared launch of saxpy>"
    # It holds its arrays.
    out = numpy.zeros(4, "f4")
    other = saxpy.prepare(1, 32, (4, 1.0, x * 2, out))
    assert (other() and other() and out == 4).all()
    wrong = saxpy.prepare(1, 32, (5, 1.0, x, y))
    for _ in range(2):
        with pytest.raises(handloom.Trap, match="out of bounds"):
            wrong()
    with pytest.raises(TypeError, match="prepared launch takes no"):
        saxpy.prepare(1, 32, (4, 1.0, x, y), check=True)
    # Checks that others asked for see it.
    with handloom.checking("race") as reports:
        again()
    assert len(reports) == 1 and (y == 4).all()
    threads = [threading.Thread(target=lambda: [again() for _ in range(50)]) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert (y == 204).all()
    module = handloom.RawModule(path=KERNELS / "saxpy.ptx")
    gone = module.get_function("saxpy").prepare(1, 32, (4, 1.0, x, y))
    module.unload()
    with pytest.raises(handloom.LaunchError, match="unloaded"):
        gone()
    spin = handloom.RawModule(code=SPIN).get_function("spin").prepare(1, 1, (), timeout=0.1)
    with pytest.raises(handloom.Trap, match="time"):
        spin()


def test_large_arrays_are_not_copied():
    """The program that times launches, which looks at the memory of the process too."""
    run = subprocess.run([sys.executable, Path(__file__).with_name("speed.py"), "200"], capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.endswith("ok\n"), run.stdout + run.stderr


def test_launches_that_rest(saxpy):
    """The same small launch uses its memory again: other arguments, other shapes, after traps, from threads, and more of them than are kept."""
    x = numpy.ones(64, "f4")

    def once(n, block, a):
        y = numpy.zeros(64, "f4")
        saxpy(1, block, (n, a, x, y))
        assert (y[:n] == a).all() and not y[n:].any()

    for n in range(1, 33):
        once(n, 32 * (1 + n % 2), float(n))
        with pytest.raises(handloom.Trap):
            saxpy(1, 128, (65, 1.0, x, x.copy()))
    for block in range(1, 40):
        once(1, block, 2.0)
    threads = [threading.Thread(target=lambda: [once(32, 64, float(i)) for i in range(100)]) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    hello = (
        HEAD
        + """.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
        .global .align 1 .b8 hello[4] = {104, 105, 10, 0};
        .visible .entry k() { .reg .b64 %d<2>; .reg .b32 %r; mov.u64 %d0, hello; cvta.global.u64 %d0, %d0; mov.b64 %d1, 0;
        { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %d0; st.param.b64 [a], %d1;
        call (r), vprintf, (f, a); ld.param.b32 %r, [r]; } ret; }"""
    )
    kernel = handloom.RawModule(code=hello).get_function("k")
    assert [kernel(1, 1, ()).output for _ in range(3)] == ["hi\n"] * 3


def test_a_host_without_avx2():
    run = subprocess.run([sys.executable, "-c", "import handloom"], capture_output=True, text=True, env={**os.environ, "HANDLOOM_ISA": "none"})
    assert run.returncode == 1 and run.stderr.strip().splitlines()[-1].startswith(
        "ImportError: Handloom needs an x86-64 host with AVX2, FMA and F16C, and this one has no AVX2"
    )


PROGRAM = Path(handloom.__file__).parent / "program" / "handloom"


@pytest.mark.skipif(not PROGRAM.exists(), reason="this wheel was built without the program: ci/python builds one with it")
def test_the_program_rides_in_the_wheel():
    script = Path(sys.executable).with_name("handloom")
    told = subprocess.run([script, "check", KERNELS / "saxpy.ptx"], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    uses = [sys.executable, "-c", USES_CUDA]
    run = subprocess.run([script, "exec", "--cc", "9.0", "--", *uses], capture_output=True, text=True)
    assert run.stdout == "9 0 5\n" and run.returncode == 0, run.stderr


# A program that knows nothing of us: a capability, and a value that a kernel adds to.
USES_CUDA = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
def must(status): assert status == 0, status
must(cuda.cuInit(0))
major, minor, device, context, module, kernel, at = (ctypes.c_int(), ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64())
must(cuda.cuDeviceGet(ctypes.byref(device), 0))
must(cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device))
must(cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device))
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
must(cuda.cuCtxSetCurrent(context))
must(cuda.cuModuleLoadData(ctypes.byref(module), b".version 8.0\\n.target sm_80\\n.address_size 64\\n.visible .entry k(.param .u64 p) { .reg .b64 %d; ld.param.u64 %d, [p]; st.global.u32 [%d], 5; ret; }"))
must(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"k"))
must(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(4)))
args = (ctypes.c_void_p * 1)(ctypes.addressof(at))
must(cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, args, None))
value = ctypes.c_uint32()
must(cuda.cuMemcpyDtoH_v2(ctypes.byref(value), at, ctypes.c_size_t(4)))
print(major.value, minor.value, value.value)
"""


@pytest.mark.skipif(not PROGRAM.exists(), reason="this wheel was built without the program: ci/python builds one with it")
def test_cuda_emulation(tmp_path):
    def python(text):
        env = {name: value for name, value in os.environ.items() if name != "HANDLOOM_LIBRARIES"}
        return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=env)

    begin = "import os, handloom\nbefore = dict(os.environ)\n"
    within = begin + "with handloom.cuda_emulation(cc='9.0'):\n" + textwrap.indent(USES_CUDA, "    ") + "\nassert dict(os.environ) == before"
    run = python(within)
    assert run.stdout == "9 0 5\n" and run.returncode == 0, run.stderr
    # As the first thing of a program, and for those that it starts.
    child = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {USES_CUDA!r}], check=True)"
    run = python("import handloom\nhandloom.cuda_emulation(devices=1)\n" + child)
    assert run.stdout == "8 9 5\n" and run.returncode == 0, run.stderr
    # Another one is there.
    other = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", other, "-Wl,-soname,libcuda.so.1"], check=True)
    run = python(f"import ctypes, os\nctypes.CDLL({str(other)!r})\n" + begin + "try: handloom.cuda_emulation()\nexcept RuntimeError as e: print(e)\nassert dict(os.environ) == before")
    assert run.stdout.startswith(f"it is too late: the process has loaded {other}. Call") and run.returncode == 0, run.stderr
    run = python("import handloom\nhandloom.cuda_emulation(colour=1)")
    assert "TypeError: `cuda_emulation` takes no option `colour`" in run.stderr


def test_a_package_without_the_program(tmp_path):
    run = [sys.executable, "-c", "import sys, handloom._program as p; from pathlib import Path; p._FOLDER = Path(sys.argv.pop()); sys.exit(p.main())", tmp_path]
    told = subprocess.run(run, capture_output=True, text=True)
    assert told.returncode == 2 and told.stderr == "error: this installation of the package has no program: a wheel that `ci/python` builds has it\n"
