//! The words of the manual as types: scalar types, state spaces, scopes, orders, roundings, comparisons.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A fundamental or alternate scalar type of PTX.
///
/// # PTX ISA
/// Fundamental Types; Alternate Floating-Point Data Formats; Packed Data Types.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each name is the manual's own")]
pub enum ScalarType {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    BF16,
    BF16x2,
    F32,
    F32x2,
    F64,
    TF32,
    U16x2,
    S16x2,
    U8x4,
    S8x4,
    U4x8,
    S4x8,
    E4M3,
    E5M2,
    E4M3x2,
    E5M2x2,
    E2M3x2,
    E3M2x2,
    E2M1x2,
    UE8M0x2,
    S2F6x2,
    E4M3x4,
    E5M2x4,
    E2M3x4,
    E3M2x4,
    E2M1x4,
}

/// The kind of a scalar type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum TypeClass {
    /// `.pred`.
    Pred,
    /// `.bN`: untyped bits.
    Bits,
    /// `.uN`.
    Unsigned,
    /// `.sN`.
    Signed,
    /// Any floating-point or packed format.
    Float,
}

impl ScalarType {
    /// Width in bits; 1 for predicates.
    #[inline]
    pub const fn bits(self) -> u32 {
        use ScalarType::*;
        match self {
            Pred => 1,
            B8 | U8 | S8 | E4M3 | E5M2 | E2M1x2 => 8,
            B16 | U16 | S16 | F16 | BF16 | E4M3x2 | E5M2x2 | E2M3x2 | E3M2x2 | UE8M0x2 | S2F6x2 | E2M1x4 => 16,
            B32 | U32 | S32 | F16x2 | BF16x2 | F32 | TF32 | U16x2 | S16x2 | U8x4 | S8x4 | U4x8 | S4x8 | E4M3x4
            | E5M2x4 | E2M3x4 | E3M2x4 => 32,
            B64 | U64 | S64 | F64 | F32x2 => 64,
            B128 => 128,
        }
    }

    /// Size in bytes; 1 for predicates.
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Number of elements of a packed type; else 1.
    pub const fn elements(self) -> u32 {
        use ScalarType::*;
        match self {
            Pred | B8 | B16 | B32 | B64 | B128 | U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64 | F16 | BF16 | F32
            | F64 | TF32 | E4M3 | E5M2 => 1,
            F16x2 | BF16x2 | F32x2 | U16x2 | S16x2 | E4M3x2 | E5M2x2 | E2M3x2 | E3M2x2 | E2M1x2 | UE8M0x2 | S2F6x2 => 2,
            U8x4 | S8x4 | E4M3x4 | E5M2x4 | E2M3x4 | E3M2x4 | E2M1x4 => 4,
            U4x8 | S4x8 => 8,
        }
    }

    /// The kind of type.
    pub const fn class(self) -> TypeClass {
        use ScalarType::*;
        match self {
            Pred => TypeClass::Pred,
            B8 | B16 | B32 | B64 | B128 => TypeClass::Bits,
            U8 | U16 | U32 | U64 | U16x2 | U8x4 | U4x8 => TypeClass::Unsigned,
            S8 | S16 | S32 | S64 | S16x2 | S8x4 | S4x8 => TypeClass::Signed,
            F16 | F16x2 | BF16 | BF16x2 | F32 | F32x2 | F64 | TF32 | E4M3 | E5M2 | E4M3x2 | E5M2x2 | E2M3x2
            | E3M2x2 | E2M1x2 | UE8M0x2 | S2F6x2 | E4M3x4 | E5M2x4 | E2M3x4 | E3M2x4 | E2M1x4 => TypeClass::Float,
        }
    }

    /// Whether it is a signed integer type.
    pub const fn is_signed(self) -> bool {
        matches!(self.class(), TypeClass::Signed)
    }

    /// Name with the leading dot.
    pub const fn name(self) -> &'static str {
        use ScalarType::*;
        match self {
            Pred => ".pred",
            B8 => ".b8",
            B16 => ".b16",
            B32 => ".b32",
            B64 => ".b64",
            B128 => ".b128",
            U8 => ".u8",
            U16 => ".u16",
            U32 => ".u32",
            U64 => ".u64",
            S8 => ".s8",
            S16 => ".s16",
            S32 => ".s32",
            S64 => ".s64",
            F16 => ".f16",
            F16x2 => ".f16x2",
            BF16 => ".bf16",
            BF16x2 => ".bf16x2",
            F32 => ".f32",
            F32x2 => ".f32x2",
            F64 => ".f64",
            TF32 => ".tf32",
            U16x2 => ".u16x2",
            S16x2 => ".s16x2",
            U8x4 => ".u8x4",
            S8x4 => ".s8x4",
            U4x8 => ".u4x8",
            S4x8 => ".s4x8",
            E4M3 => ".e4m3",
            E5M2 => ".e5m2",
            E4M3x2 => ".e4m3x2",
            E5M2x2 => ".e5m2x2",
            E2M3x2 => ".e2m3x2",
            E3M2x2 => ".e3m2x2",
            E2M1x2 => ".e2m1x2",
            UE8M0x2 => ".ue8m0x2",
            S2F6x2 => ".s2f6x2",
            E4M3x4 => ".e4m3x4",
            E5M2x4 => ".e5m2x4",
            E2M3x4 => ".e2m3x4",
            E3M2x4 => ".e3m2x4",
            E2M1x4 => ".e2m1x4",
        }
    }

    /// The IR type that holds a value of this type. `.b128` has none: it is a pair of [`Ty::B64`].
    pub const fn ty(self) -> Ty {
        match self.bits() {
            1 => Ty::P,
            8 | 16 => Ty::B16,
            32 => Ty::B32,
            _ => Ty::B64,
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Type of a warp value of the SIMT IR: bits without meaning. Ops say how they read them.
///
/// An 8-bit PTX register is a `B16` whose upper half is zero. A `.b128` register is two `B64` values, low half first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Ty {
    /// A predicate: 0 or 1.
    P,
    /// 16 bits.
    B16,
    /// 32 bits.
    B32,
    /// 64 bits.
    B64,
}

impl Ty {
    /// Width in bits; 1 for predicates.
    #[inline]
    pub const fn bits(self) -> u32 {
        match self {
            Ty::P => 1,
            Ty::B16 => 16,
            Ty::B32 => 32,
            Ty::B64 => 64,
        }
    }

    /// All ones at this width.
    pub const fn mask(self) -> u64 {
        match self {
            Ty::P => 1,
            Ty::B16 => 0xffff,
            Ty::B32 => 0xffff_ffff,
            Ty::B64 => u64::MAX,
        }
    }

    /// The type of twice the width; 64 bits at most.
    pub const fn twice(self) -> Ty {
        match self {
            Ty::P | Ty::B16 => Ty::B32,
            Ty::B32 | Ty::B64 => Ty::B64,
        }
    }

    /// The type of half the width; 16 bits at least.
    pub const fn half(self) -> Ty {
        match self {
            Ty::P | Ty::B16 | Ty::B32 => Ty::B16,
            Ty::B64 => Ty::B32,
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ty::P => "p",
            Ty::B16 => "b16",
            Ty::B32 => "b32",
            Ty::B64 => "b64",
        })
    }
}

/// An integer type: width 16, 32 or 64 and sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Int {
    /// Bits of the value.
    pub ty: Ty,
    /// Whether signed.
    pub signed: bool,
}

impl Int {
    /// Unsigned 16 bits.
    pub const U16: Int = Int { ty: Ty::B16, signed: false };
    /// Signed 16 bits.
    pub const S16: Int = Int { ty: Ty::B16, signed: true };
    /// Unsigned 32 bits.
    pub const U32: Int = Int { ty: Ty::B32, signed: false };
    /// Signed 32 bits.
    pub const S32: Int = Int { ty: Ty::B32, signed: true };
    /// Unsigned 64 bits.
    pub const U64: Int = Int { ty: Ty::B64, signed: false };
    /// Signed 64 bits.
    pub const S64: Int = Int { ty: Ty::B64, signed: true };

    /// The integer type of a scalar type of 16 bits or more.
    pub const fn of(t: ScalarType) -> Int {
        Int { ty: t.ty(), signed: t.is_signed() }
    }

    /// Width in bits.
    pub const fn bits(self) -> u32 {
        self.ty.bits()
    }
}

impl fmt::Display for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.signed { 's' } else { 'u' }, self.bits())
    }
}

/// A floating-point type with arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each name is the manual's own")]
pub enum Float {
    F16,
    BF16,
    F32,
    F64,
    F16x2,
    BF16x2,
    F32x2,
}

impl Float {
    /// The IR type that holds it.
    pub const fn ty(self) -> Ty {
        match self {
            Float::F16 | Float::BF16 => Ty::B16,
            Float::F32 | Float::F16x2 | Float::BF16x2 => Ty::B32,
            Float::F64 | Float::F32x2 => Ty::B64,
        }
    }

    /// Whether hosts have arithmetic of this type: `.f32` and `.f64`.
    pub const fn is_of_host(self) -> bool {
        matches!(self, Float::F32 | Float::F64)
    }

    /// The element of a packed type; itself otherwise.
    pub const fn element(self) -> Float {
        match self {
            Float::F16x2 => Float::F16,
            Float::BF16x2 => Float::BF16,
            Float::F32x2 => Float::F32,
            Float::F16 | Float::BF16 | Float::F32 | Float::F64 => self,
        }
    }

    /// The float type of a scalar type, if it has arithmetic.
    pub const fn of(t: ScalarType) -> Option<Float> {
        Some(match t {
            ScalarType::F16 => Float::F16,
            ScalarType::BF16 => Float::BF16,
            ScalarType::F32 => Float::F32,
            ScalarType::F64 => Float::F64,
            ScalarType::F16x2 => Float::F16x2,
            ScalarType::BF16x2 => Float::BF16x2,
            ScalarType::F32x2 => Float::F32x2,
            _ => return None,
        })
    }
}

impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Float::F16 => "f16",
            Float::BF16 => "bf16",
            Float::F32 => "f32",
            Float::F64 => "f64",
            Float::F16x2 => "f16x2",
            Float::BF16x2 => "bf16x2",
            Float::F32x2 => "f32x2",
        })
    }
}

/// A rounding modifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Rounding {
    /// Nearest, ties to even (`.rn`, `.rni`).
    Nearest,
    /// Nearest, ties away from zero (`.rna`).
    NearestAway,
    /// Towards zero (`.rz`, `.rzi`).
    Zero,
    /// Towards minus infinity (`.rm`, `.rmi`).
    Down,
    /// Towards plus infinity (`.rp`, `.rpi`).
    Up,
    /// Stochastic (`.rs`).
    Stochastic,
}

/// A state space, with the sub-spaces that instructions can name.
///
/// # PTX ISA
/// State Spaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each name is the manual's own")]
pub enum StateSpace {
    Generic,
    Reg,
    Sreg,
    Const,
    Global,
    Local,
    ParamEntry,
    ParamFunc,
    Shared,
    SharedCluster,
    Tex,
}

impl StateSpace {
    /// Name without the dot.
    pub const fn name(self) -> &'static str {
        match self {
            StateSpace::Generic => "generic",
            StateSpace::Reg => "reg",
            StateSpace::Sreg => "sreg",
            StateSpace::Const => "const",
            StateSpace::Global => "global",
            StateSpace::Local => "local",
            StateSpace::ParamEntry => "param::entry",
            StateSpace::ParamFunc => "param::func",
            StateSpace::Shared => "shared",
            StateSpace::SharedCluster => "shared::cluster",
            StateSpace::Tex => "tex",
        }
    }
}

/// Distance of two ctas' shared memory as `.shared::cluster` offsets, in bytes: the own cta lies below it, rank `r` of
/// the cluster from `(r + 1)` times it on.
pub const CLUSTER_STRIDE: u64 = 1 << 20;

/// A scope of the memory consistency model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each name is the manual's own")]
pub enum Scope {
    Cta,
    Cluster,
    Gpu,
    Sys,
}

/// The ordering of a memory operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each name is the manual's own")]
pub enum Order {
    Weak,
    Volatile,
    Mmio,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    Sc,
}

impl Order {
    /// Whether the operation is a strong one.
    pub const fn is_strong(self) -> bool {
        !matches!(self, Order::Weak)
    }
}

/// A comparison operator. `Lo`, `Ls`, `Hi`, `Hs` of PTX are `Lt`, `Le`, `Gt`, `Ge` of an unsigned type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each name is the manual's own")]
pub enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Unordered forms: true when an operand is NaN.
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    /// Both numbers.
    Num,
    /// At least one NaN.
    Nan,
}

impl Cmp {
    /// The comparison that says the same of exchanged operands.
    pub const fn swapped(self) -> Cmp {
        match self {
            Cmp::Lt => Cmp::Gt,
            Cmp::Le => Cmp::Ge,
            Cmp::Gt => Cmp::Lt,
            Cmp::Ge => Cmp::Le,
            Cmp::Ltu => Cmp::Gtu,
            Cmp::Leu => Cmp::Geu,
            Cmp::Gtu => Cmp::Ltu,
            Cmp::Geu => Cmp::Leu,
            Cmp::Eq | Cmp::Ne | Cmp::Equ | Cmp::Neu | Cmp::Num | Cmp::Nan => self,
        }
    }

    /// The comparison that holds exactly where this one of integers does not; `None` of those that ask for NaNs.
    pub const fn opposite(self) -> Option<Cmp> {
        Some(match self {
            Cmp::Eq => Cmp::Ne,
            Cmp::Ne => Cmp::Eq,
            Cmp::Lt => Cmp::Ge,
            Cmp::Le => Cmp::Gt,
            Cmp::Gt => Cmp::Le,
            Cmp::Ge => Cmp::Lt,
            Cmp::Equ | Cmp::Neu | Cmp::Ltu | Cmp::Leu | Cmp::Gtu | Cmp::Geu | Cmp::Num | Cmp::Nan => return None,
        })
    }

    /// The comparison of floats that holds exactly where this one does not.
    pub const fn opposite_of_floats(self) -> Cmp {
        match self {
            Cmp::Eq => Cmp::Neu,
            Cmp::Ne => Cmp::Equ,
            Cmp::Lt => Cmp::Geu,
            Cmp::Le => Cmp::Gtu,
            Cmp::Gt => Cmp::Leu,
            Cmp::Ge => Cmp::Ltu,
            Cmp::Equ => Cmp::Ne,
            Cmp::Neu => Cmp::Eq,
            Cmp::Ltu => Cmp::Ge,
            Cmp::Leu => Cmp::Gt,
            Cmp::Gtu => Cmp::Le,
            Cmp::Geu => Cmp::Lt,
            Cmp::Num => Cmp::Nan,
            Cmp::Nan => Cmp::Num,
        }
    }
}

/// A Boolean operator of `setp` and `set`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each name is the manual's own")]
pub enum BoolOp {
    And,
    Or,
    Xor,
}

/// A mode of `prmt`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each name is the manual's own")]
pub enum PrmtMode {
    Default,
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

/// A property tested by `testp`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each name is the manual's own")]
pub enum TestProperty {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// A mode of `shfl`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each name is the manual's own")]
pub enum ShflMode {
    Up,
    Down,
    Bfly,
    Idx,
}

impl ShflMode {
    /// The lane that `shfl` reads for `lane`, and whether it is in range; out of range it is the own lane.
    ///
    /// `b` is the source lane or distance, `c` packs the clamp (bits 4..0) and the segment mask (bits 12..8).
    ///
    /// # PTX ISA
    /// Data Movement and Conversion Instructions: shfl.sync.
    pub const fn source(self, lane: u32, b: u32, c: u32) -> (u32, bool) {
        let lane = lane & 31;
        let bval = b & 31;
        let clamp = c & 31;
        let segment = c >> 8 & 31;
        let min_lane = lane & segment;
        let max_lane = min_lane | (clamp & !segment);
        let (j, in_range) = match self {
            // A difference below zero is below every bound: for `.up` the bound is the lower end.
            ShflMode::Up => (lane.wrapping_sub(bval), lane >= bval && lane - bval >= max_lane),
            ShflMode::Down => (lane + bval, lane + bval <= max_lane),
            ShflMode::Bfly => (lane ^ bval, lane ^ bval <= max_lane),
            ShflMode::Idx => {
                let j = min_lane | (bval & !segment);
                (j, j <= max_lane)
            }
        };
        if in_range { (j, true) } else { (lane, false) }
    }
}

/// A mode of `vote`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each name is the manual's own")]
pub enum VoteMode {
    All,
    Any,
    Uni,
    Ballot,
}

/// The operation of an `atom`, `red` or `redux`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each name is the manual's own")]
pub enum AtomOp {
    And,
    Or,
    Xor,
    Add,
    Inc,
    Dec,
    Min,
    Max,
    Exch,
    Cas,
    /// A step of a barrier in memory: [`crate::mbarrier::step`]. No `atom` writes it.
    Step,
}

/// A special register, one component of a vector one.
///
/// # PTX ISA
/// Special Registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each name is the manual's own")]
pub enum Sreg {
    /// Component 0, 1, 2 of `%tid`; component 3 is always 0.
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    Laneid,
    Warpid,
    Nwarpid,
    Smid,
    Nsmid,
    Gridid,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    Clock,
    ClockHi,
    Clock64,
    Globaltimer,
    GlobaltimerLo,
    GlobaltimerHi,
    DynamicSmemSize,
    TotalSmemSize,
    AggrSmemSize,
    ReservedSmemBegin,
    ReservedSmemEnd,
    ReservedSmemCap,
    ReservedSmemOffset(u8),
    /// `%pm0` to `%pm7`: performance counters; always 0 here.
    Pm(u8),
    Pm64(u8),
    /// `%envreg0` to `%envreg31`.
    Envreg(u8),
    IsExplicitCluster,
    Clusterid(u8),
    Nclusterid(u8),
    ClusterCtaid(u8),
    ClusterNctaid(u8),
    ClusterCtarank,
    ClusterNctarank,
    CurrentGraphExec,
    /// 32 bits that the seed chooses for a CTA, by which results in registers come at once or late; no program names it. All 0: late.
    Late,
}

/// Between which reads the value of a special register may differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Varies {
    /// Between lanes of a warp; never in a thread's life.
    ByLane,
    /// Between warps or launches; it is the same in all lanes of a warp, and never changes in a thread's life.
    ByWarp,
    /// Between two reads: it tells the time.
    InTime,
}

impl Sreg {
    /// Between which reads its value may differ.
    pub fn varies(self) -> Varies {
        match self {
            Sreg::Tid(_)
            | Sreg::Laneid
            | Sreg::LanemaskEq
            | Sreg::LanemaskLe
            | Sreg::LanemaskLt
            | Sreg::LanemaskGe
            | Sreg::LanemaskGt => Varies::ByLane,
            Sreg::Clock
            | Sreg::ClockHi
            | Sreg::Clock64
            | Sreg::Globaltimer
            | Sreg::GlobaltimerLo
            | Sreg::GlobaltimerHi => Varies::InTime,
            Sreg::Ntid(_)
            | Sreg::Ctaid(_)
            | Sreg::Nctaid(_)
            | Sreg::Warpid
            | Sreg::Nwarpid
            | Sreg::Smid
            | Sreg::Nsmid
            | Sreg::Gridid
            | Sreg::DynamicSmemSize
            | Sreg::TotalSmemSize
            | Sreg::AggrSmemSize
            | Sreg::ReservedSmemBegin
            | Sreg::ReservedSmemEnd
            | Sreg::ReservedSmemCap
            | Sreg::ReservedSmemOffset(_)
            | Sreg::Pm(_)
            | Sreg::Pm64(_)
            | Sreg::Envreg(_)
            | Sreg::IsExplicitCluster
            | Sreg::Clusterid(_)
            | Sreg::Nclusterid(_)
            | Sreg::ClusterCtaid(_)
            | Sreg::ClusterNctaid(_)
            | Sreg::ClusterCtarank
            | Sreg::ClusterNctarank
            | Sreg::CurrentGraphExec
            | Sreg::Late => Varies::ByWarp,
        }
    }
}
