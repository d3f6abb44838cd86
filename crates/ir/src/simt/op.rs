//! The op table of the SIMT IR.
//!
//! [`Pure`] ops compute values from values, lane by lane, and have no other effect; `num::eval` gives their meaning.
//! [`Op`] holds those and the ops that touch memory, other lanes, or the launch.

use crate::types::*;

use super::func::{FuncId, SlotId, SymId};
use super::matrix::MatrixOp;
use super::video::{Video, VideoSimd, Vmad};

/// Rounding, flushing and clamping of a floating-point op.
///
/// `sat` clamps to [0, 1] with NaN to +0; `relu` clamps below at +0 with NaN canonical.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct FMode {
    /// Operand and result type.
    pub ty: Float,
    /// Rounding of the result.
    pub round: Rounding,
    /// Flush subnormal inputs and results to zero, keeping the sign.
    pub ftz: bool,
    /// Clamp to [0, 1].
    pub sat: bool,
    /// Clamp below at +0.
    pub relu: bool,
}

/// How exact a division, reciprocal or square root is asked to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Exactness {
    /// `.rn` and its like: correctly rounded.
    Ieee(Rounding),
    /// `.approx`.
    Approx,
    /// `.full` (`div` only).
    Full,
}

/// A conversion, as `cvt` writes it.
///
/// # PTX ISA
/// Data Movement and Conversion Instructions: cvt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct Cvt {
    /// Destination type.
    pub to: ScalarType,
    /// Source type.
    pub from: ScalarType,
    /// Rounding; [`Rounding::Nearest`] where the form has none and the result is exact. Ignored unless `rounded`.
    pub round: Rounding,
    /// A rounding modifier was written: float to float of the same type with an *integer* rounding rounds to an integral value.
    pub integral: bool,
    /// `.ftz`.
    pub ftz: bool,
    /// `.sat`.
    pub sat: bool,
    /// `.relu`.
    pub relu: bool,
    /// `.satfinite`.
    pub satfinite: bool,
}

impl Cvt {
    /// A conversion without modifiers, to nearest where it is not exact.
    pub const fn plain(to: ScalarType, from: ScalarType) -> Cvt {
        let round = Rounding::Nearest;
        Cvt { to, from, round, integral: false, ftz: false, sat: false, relu: false, satfinite: false }
    }
}

/// Ops that compute values from values. Sources and results are bits; each value is zero above its width.
///
/// The comment gives sources and results. Shift amounts are `B32`. `P` is 0 or 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Pure {
    /// a -> a
    Mov(Ty),
    /// a, b -> a + b, wrapping
    Add(Ty),
    /// a, b -> a - b, wrapping
    Sub(Ty),
    /// a, b -> low half of a * b
    Mul(Ty),
    /// a, b -> high half of a * b
    MulHi(Int),
    /// a, b of 16 or 32 bits -> a * b at twice the width
    MulWide(Int),
    /// 24-bit multiply: `hi` picks bits 47..16 of the product, else 31..0; sources are cut to 24 bits
    Mul24 {
        /// Sign of the sources.
        signed: bool,
        /// `.hi`.
        hi: bool,
    },
    /// a, b -> a / b (truncating); division by zero gives all ones; MIN / -1 gives MIN
    Div(Int),
    /// a, b -> a % b (sign of a); by zero gives all ones; MIN % -1 gives 0
    Rem(Int),
    /// a, b -> smaller
    Min(Int),
    /// a, b -> larger
    Max(Int),
    /// a -> |a|, wrapping
    Abs(Ty),
    /// a -> -a, wrapping
    Neg(Ty),
    /// a, b -> |a - b|, wrapping
    AbsDiff(Int),
    /// a, b -> a + b clamped
    AddSat(Int),
    /// a, b -> a - b clamped
    SubSat(Int),
    /// a, b, carry-in (P) -> sum, carry-out (P)
    AddCarry(Ty),
    /// a, b, borrow-in (P) -> difference, borrow-out (P)
    SubBorrow(Ty),
    /// a, b -> a & b; also on P
    And(Ty),
    /// a, b -> a | b; also on P
    Or(Ty),
    /// a, b -> a ^ b; also on P
    Xor(Ty),
    /// a -> !a; also on P
    Not(Ty),
    /// a -> 1 if a is 0 else 0 (`cnot`), same type
    Cnot(Ty),
    /// a, amount (B32) -> a << amount; amounts above the width act as the width
    Shl(Ty),
    /// a, amount (B32) -> a >> amount, arithmetic when signed; amounts above the width act as the width
    Shr(Int),
    /// lo, hi, amount (B32) -> funnel shift of hi:lo, 32 bits
    Shf {
        /// `.r`: low word of the shifted pair; else `.l`: high word.
        right: bool,
        /// `.wrap`: amount & 31; else `.clamp`: min(amount, 32).
        wrap: bool,
    },
    /// a -> number of ones (B32)
    Popc(Ty),
    /// a -> number of leading zeros (B32)
    Clz(Ty),
    /// a -> bits reversed
    Brev(Ty),
    /// a -> position of the most significant non-sign bit (B32)
    Bfind {
        /// Type of the source.
        int: Int,
        /// `.shiftamt`: the left shift that would bring it to the top.
        shiftamt: bool,
    },
    /// a, pos (B32), len (B32) -> field
    Bfe(Int),
    /// field a, base b, pos (B32), len (B32) -> b with the field inserted
    Bfi(Ty),
    /// a, b, selector -> permuted bytes (B32)
    Prmt(PrmtMode),
    /// a, b, c -> table look-up, B32
    Lop3(u8),
    /// a, b, c (B32) -> c + dot product of four bytes
    Dp4a {
        /// a is signed.
        a_signed: bool,
        /// b is signed.
        b_signed: bool,
    },
    /// a, b, c (B32) -> c + dot product of two halves of a with two bytes of b
    Dp2a {
        /// a is signed.
        a_signed: bool,
        /// b is signed.
        b_signed: bool,
        /// `.hi`: the upper two bytes of b.
        hi: bool,
    },
    /// mask, base, offset (B32) -> position of the n-th set bit (`fns`)
    Fns,
    /// a, width (B32) -> a sign- or zero-extended from `width` bits (`szext`)
    Szext {
        /// Sign extension.
        signed: bool,
        /// `.wrap`, else `.clamp`.
        wrap: bool,
    },
    /// pos, width (B32) -> mask (`bmsk`)
    Bmsk {
        /// `.wrap`, else `.clamp`.
        wrap: bool,
    },
    /// a, b [, c] (B32) -> a scalar video instruction but `vmad` (B32)
    Video(Video),
    /// a, b, c (B32) -> `vmad` (B32)
    Vmad(Vmad),
    /// a, b, c (B32) -> a SIMD video instruction (B32)
    VideoSimd(VideoSimd),
    /// a, b -> P
    ICmp(Cmp, Int),
    /// a, b -> P; `ftz` flushes f32 inputs first. Scalar float types only (packed ones are expanded)
    FCmp {
        /// Comparison.
        cmp: Cmp,
        /// Scalar float type.
        ty: Float,
        /// Flush inputs.
        ftz: bool,
    },
    /// P, a, b -> a if P else b
    Select(Ty),
    /// a -> the low `bits` bits of a, sign- or zero-extended to `to` (also narrows: `to` may be smaller than the source)
    Ext {
        /// Bits kept: 8, 16, 32 or 64.
        bits: u8,
        /// Sign extension.
        signed: bool,
        /// Type of the source.
        from: Ty,
        /// Type of the result.
        to: Ty,
    },
    /// lo, hi -> one value of twice the width (B16 -> B32, B32 -> B64)
    Pack(Ty),
    /// a -> half of a (B64 -> B32, B32 -> B16); `from` is the source type
    Half {
        /// Type of the source.
        from: Ty,
        /// The upper half.
        hi: bool,
    },
    /// P -> 1 or 0 at the type
    FromPred(Ty),
    /// a -> P: a is not zero
    ToPred(Ty),
    /// a, b -> a + b
    FAdd(FMode),
    /// a, b -> a - b
    FSub(FMode),
    /// a, b -> a * b
    FMul(FMode),
    /// a, b, c -> a * b + c with one rounding
    FFma(FMode),
    /// a, b -> a / b (F32, F64)
    FDiv {
        /// Type and flushing; `round` is unused.
        mode: FMode,
        /// Exactness.
        exact: Exactness,
    },
    /// a -> 1 / a (F32, F64)
    FRcp {
        /// Type and flushing; `round` is unused.
        mode: FMode,
        /// Exactness.
        exact: Exactness,
    },
    /// a -> square root of a (F32, F64)
    FSqrt {
        /// Type and flushing; `round` is unused.
        mode: FMode,
        /// Exactness.
        exact: Exactness,
    },
    /// a -> 1 / sqrt(a) (F32, F64)
    FRsqrt(FMode),
    /// a, b -> smaller
    FMin {
        /// Type.
        ty: Float,
        /// Flush.
        ftz: bool,
        /// `.NaN`: any NaN gives canonical NaN.
        nan: bool,
        /// `.xorsign.abs`.
        xorsign: bool,
    },
    /// a, b -> larger
    FMax {
        /// Type.
        ty: Float,
        /// Flush.
        ftz: bool,
        /// `.NaN`: any NaN gives canonical NaN.
        nan: bool,
        /// `.xorsign.abs`.
        xorsign: bool,
    },
    /// a -> |a|
    FAbs {
        /// Type.
        ty: Float,
        /// Flush.
        ftz: bool,
    },
    /// a -> -a
    FNeg {
        /// Type.
        ty: Float,
        /// Flush.
        ftz: bool,
    },
    /// a -> sine (`sin.approx.f32`)
    Sin {
        /// Flush.
        ftz: bool,
    },
    /// a -> cosine
    Cos {
        /// Flush.
        ftz: bool,
    },
    /// a -> base-2 logarithm
    Lg2 {
        /// Flush.
        ftz: bool,
    },
    /// a -> 2^a (F32, F16, BF16 and pairs)
    Ex2 {
        /// Type.
        ty: Float,
        /// Flush.
        ftz: bool,
    },
    /// a -> hyperbolic tangent (F32, F16, BF16 and pairs)
    Tanh {
        /// Type.
        ty: Float,
    },
    /// sign source, magnitude source -> value (`copysign d, a, b`: sign of a, magnitude of b) (F32, F64)
    Copysign(Float),
    /// a -> P (F32, F64)
    Testp {
        /// Property.
        property: TestProperty,
        /// Type.
        ty: Float,
    },
    /// a [, b [, rbits]] -> converted value; packed destinations take two sources (the first goes to the upper half),
    /// x4 destinations four, `.rs` one more
    Cvt(Cvt),
}

/// Extent and ordering of a memory access.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct Access {
    /// State space of the address: `Global`, `Const`, `ParamEntry`, `Local` and `Generic` take host addresses (`B64`);
    /// `Shared` takes offsets (`B32` or `B64`).
    pub space: StateSpace,
    /// Bits of one element: 8, 16, 32 or 64.
    pub bits: u8,
    /// Number of elements: 1, 2, 4 or 8. The address must be a multiple of the whole access.
    pub count: u8,
    /// Bit i set: element i is read or written (a sink `_` clears it).
    pub elements: u8,
    /// Ordering.
    pub order: Order,
    /// Scope of a strong access.
    pub scope: Scope,
    /// `.b128`: the two 64-bit elements are one single-copy atomic access when strong.
    pub whole: bool,
}

impl Access {
    /// Size of the whole access in bytes.
    pub const fn bytes(self) -> u32 {
        self.bits as u32 / 8 * self.count as u32
    }
}

/// An atomic read-modify-write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct AtomAccess {
    /// Operation.
    pub op: AtomOp,
    /// Type the operation reads its operands as.
    pub ty: ScalarType,
    /// `Global`, `Shared` or `Generic`.
    pub space: StateSpace,
    /// Ordering.
    pub order: Order,
    /// Scope.
    pub scope: Scope,
    /// Number of elements: 1, 2, 4 or 8; each is atomic on its own.
    pub count: u8,
}

impl AtomAccess {
    /// The access to one element.
    pub fn element(self) -> Access {
        let AtomAccess { ty, space, order, scope, .. } = self;
        Access { space, bits: ty.bits() as u8, count: 1, elements: 1, order, scope, whole: false }
    }
}

/// All ops. The comment gives sources and results.
///
/// Ops with a *guard* take an optional last source of type P: lanes whose guard is 0 do nothing and keep their results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Op {
    /// A value op.
    Pure(Pure),
    /// -> value of a special register (B32, or B64 for the 64-bit ones)
    Sreg(Sreg),
    /// -> generic address of a module variable in `.global` or `.const`, or the handle of a function (B64)
    SymAddr(SymId),
    /// -> offset of a `.shared` variable in the cta's shared memory (B64)
    SharedAddr(SymId),
    /// -> host address of byte `offset` of the entry's parameters (B64)
    ParamAddr {
        /// Byte offset.
        offset: u32,
    },
    /// -> host address of a slot of this function's frame in the thread's local memory (B64)
    SlotAddr(SlotId),
    /// -> host address of the incoming arguments of a function: byte `offset` of its parameter block (B64)
    ArgAddr {
        /// Byte offset in the block: parameters first, then results.
        offset: u32,
    },
    /// generic address -> address in `space` (`to_space`), or the other way round; only `Shared` and `SharedCluster` change the value (B64)
    Cvta {
        /// Space.
        space: StateSpace,
        /// From generic to the space.
        to_space: bool,
    },
    /// address -> P: a generic address lies in the space
    IsSpace(StateSpace),
    /// address, (guard) -> elements; a load. Results have type `B16` (8 and 16 bits, zero-extended), `B32` or `B64`; one result for each
    /// element, sinks included. `offset` is added to the address.
    Load {
        /// Extent and ordering.
        access: Access,
        /// Byte offset added to the address.
        offset: i64,
    },
    /// address, elements.., (guard) -> nothing; a store
    Store {
        /// Extent and ordering.
        access: Access,
        /// Byte offset added to the address.
        offset: i64,
    },
    /// address, operand(s).., (guard) -> old value(s); `cas` takes compare then new value. For `count` > 1 all elements follow each other.
    Atom {
        /// What.
        access: AtomAccess,
        /// Byte offset added to the address.
        offset: i64,
    },
    /// address, operand(s).., (guard) -> nothing
    Red {
        /// What.
        access: AtomAccess,
        /// Byte offset added to the address.
        offset: i64,
    },
    /// Orders memory; `sc` fences are total.
    Fence {
        /// `Sc`, `AcqRel`, `Acquire` or `Release`.
        order: Order,
        /// Scope.
        scope: Scope,
    },
    /// value (B32), lane (B32), clamp (B32), membermask (B32) -> value (B32), P
    Shfl(ShflMode),
    /// P, membermask (B32) -> P, or B32 for `Ballot`
    Vote(VoteMode),
    /// value, membermask (B32) -> mask (B32), P for `all`
    Match {
        /// Type of the value.
        ty: Ty,
        /// `.all`, else `.any`.
        all: bool,
    },
    /// value (B32), membermask (B32) -> value (B32)
    Redux {
        /// `And`, `Or`, `Xor`, `Add`, `Min` or `Max`.
        op: AtomOp,
        /// Sign for `min` and `max`.
        signed: bool,
    },
    /// membermask (B32) -> leader's lane (B32), P: this lane is the leader
    Elect,
    /// registers of matrices, membermask (B32) -> registers of matrices
    Matrix(MatrixOp),
    /// membermask (B32): waits for the named lanes and orders their memory
    BarWarp,
    /// -> mask of the lanes that execute it together (B32)
    Activemask,
    /// time in ns (B32): lets others run
    Nanosleep,
    /// address (B64) -> address of the named function; used by indirect calls. Arguments of a built-in call are read from the slot.
    Builtin(Builtin),
    /// Memory on the stack of the thread whose size is known at run time.
    Stack(StackOp),
    /// Nothing; keeps a place for a hint that was checked (prefetch and its like).
    Hint,
}

/// What is done with the part of local memory that grows down from its end, towards the frames of calls.
///
/// # PTX ISA
/// Stack Manipulation Instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum StackOp {
    /// -> lowest address in use (B64)
    Save,
    /// address that `Save` gave (B64) -> nothing; what was allocated since then is free
    Restore,
    /// bytes (B64) -> address of that many bytes (B64)
    Alloca {
        /// Alignment of the address in bytes, a power of two.
        align: u32,
    },
}

/// A function that Handloom provides to programs. Arguments and result lie in the outgoing argument block (source 0 is its address).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Builtin {
    /// `vprintf(format, arguments) -> i32`.
    Vprintf,
    /// `__assertfail(message, file, line, function, char_size)`.
    Assertfail,
    /// `malloc(size) -> pointer`.
    Malloc,
    /// `free(pointer)`.
    Free,
}

/// A direct or indirect call target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Callee {
    /// A function of the module.
    Direct(FuncId),
    /// Through the value in the call's first source (B64), a function handle.
    Indirect,
}

/// Whether an op acts on the whole warp with a member mask: a warp-synchronising op ends its block.
impl Op {
    /// Whether the op waits for the lanes of a member mask. Such an op is the last of its block.
    pub const fn is_warp_sync(self) -> bool {
        matches!(
            self,
            Op::Shfl(_) | Op::Vote(_) | Op::Match { .. } | Op::Redux { .. } | Op::Matrix(_) | Op::Elect | Op::BarWarp
        )
    }

    /// Whether the op computes values only and may be removed when they are unused.
    pub const fn is_value(self) -> bool {
        matches!(
            self,
            Op::Pure(_)
                | Op::SymAddr(_)
                | Op::SharedAddr(_)
                | Op::ParamAddr { .. }
                | Op::SlotAddr(_)
                | Op::ArgAddr { .. }
                | Op::Cvta { .. }
                | Op::IsSpace(_)
        )
    }
}
