//! Special registers: name, type, gate, and what the IR calls them.
//!
//! [`SPECIAL_REGISTERS`] is the table of the manual's chapter *Special Registers*, [`lookup`] finds one by its text.
//!
//! # PTX ISA
//! Special Registers.

use handloom_ir::types::ScalarType::{self, *};
use handloom_ir::types::Sreg;

use crate::target::{Needs, TargetGate};
use crate::words::{SM_20, SM_30, SM_80, SM_90};

/// A row of the table: one register, one vector, or a numbered set.
#[derive(Clone, Copy, Debug)]
pub struct SpecialRegister {
    /// Name with the percent sign. In a numbered set `#` stands for the number.
    pub name: &'static str,
    /// Type of the register, or of one component.
    pub ty: ScalarType,
    /// A narrower type that `mov` and `cvt` may read the lower bits at, from the time before the type grew.
    pub legacy: Option<ScalarType>,
    /// Version and targets that have it.
    pub needs: Needs,
    /// What it is in the IR.
    pub source: Source,
}

/// What a row of the table stands for.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// One register.
    One(Sreg),
    /// Four components.
    Vector(fn(u8) -> Sreg),
    /// A numbered set: how many, and each.
    Numbered(u8, fn(u8) -> Sreg),
}

/// What a text such as `%tid.x`, `%tid` or `%envreg3` names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Type of the register, or of one component.
    pub ty: ScalarType,
    /// The narrower type it may be read at.
    pub legacy: Option<ScalarType>,
    /// Version and targets that have it.
    pub needs: Needs,
    /// What is read.
    pub what: What,
}

/// One register or a whole vector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// One value.
    Scalar(Sreg),
    /// Four values: a vector without a component, as `mov.v4.u32` takes it.
    Vector([Sreg; 4]),
}

/// Finds a special register by its text, with or without a component (`x y z w` or `r g b a`).
pub fn lookup(text: &str) -> Option<Found> {
    let (name, component) = match text.split_once('.') {
        Some((name, component)) => (name, Some(component)),
        None => (text, None),
    };
    SPECIAL_REGISTERS.iter().find_map(|row| find_in(row, name, component))
}

fn find_in(row: &SpecialRegister, name: &str, component: Option<&str>) -> Option<Found> {
    let what = match (row.source, component) {
        (Source::One(sreg), None) if row.name == name => What::Scalar(sreg),
        (Source::Vector(sreg), None) if row.name == name => What::Vector([sreg(0), sreg(1), sreg(2), sreg(3)]),
        (Source::Vector(sreg), Some(component)) if row.name == name => What::Scalar(sreg(component_index(component)?)),
        (Source::Numbered(count, sreg), None) => What::Scalar(sreg(number(row.name, name).filter(|&n| n < count)?)),
        _ => return None,
    };
    Some(Found { ty: row.ty, legacy: row.legacy, needs: row.needs, what })
}

/// The index of a component.
pub fn component_index(text: &str) -> Option<u8> {
    match text {
        "x" | "r" => Some(0),
        "y" | "g" => Some(1),
        "z" | "b" => Some(2),
        "w" | "a" => Some(3),
        _ => None,
    }
}

/// The number that is in `name` where `pattern` has its `#`.
fn number(pattern: &str, name: &str) -> Option<u8> {
    let (before, behind) = pattern.split_once('#')?;
    let digits = name.strip_prefix(before)?.strip_suffix(behind)?;
    let plain = digits == "0" || !digits.starts_with(['0', '+']);
    if plain { digits.parse().ok() } else { None }
}

const fn one(name: &'static str, ty: ScalarType, needs: Needs, sreg: Sreg) -> SpecialRegister {
    SpecialRegister { name, ty, legacy: None, needs, source: Source::One(sreg) }
}

const fn vector(name: &'static str, legacy: Option<ScalarType>, needs: Needs, sreg: fn(u8) -> Sreg) -> SpecialRegister {
    SpecialRegister { name, ty: U32, legacy, needs, source: Source::Vector(sreg) }
}

const fn numbered(name: &'static str, ty: ScalarType, n: u8, needs: Needs, sreg: fn(u8) -> Sreg) -> SpecialRegister {
    SpecialRegister { name, ty, legacy: None, needs, source: Source::Numbered(n, sreg) }
}

const FROM_2_0: Needs = Needs::on(2, 0, SM_20);
const CLUSTERS: Needs = Needs::on(7, 8, SM_90);
const RESERVED: Needs = Needs::on(7, 6, SM_80);
const SM_50: &[TargetGate] = &[TargetGate::AtLeast(50)];

/// All special registers, in the order of the manual.
pub const SPECIAL_REGISTERS: &[SpecialRegister] = &[
    vector("%tid", Some(U16), Needs::NONE, Sreg::Tid),
    vector("%ntid", Some(U16), Needs::NONE, Sreg::Ntid),
    one("%laneid", U32, Needs::ptx(1, 3), Sreg::Laneid),
    one("%warpid", U32, Needs::ptx(1, 3), Sreg::Warpid),
    one("%nwarpid", U32, FROM_2_0, Sreg::Nwarpid),
    vector("%ctaid", Some(U16), Needs::NONE, Sreg::Ctaid),
    vector("%nctaid", Some(U16), Needs::NONE, Sreg::Nctaid),
    one("%smid", U32, Needs::ptx(1, 3), Sreg::Smid),
    one("%nsmid", U32, FROM_2_0, Sreg::Nsmid),
    SpecialRegister {
        name: "%gridid",
        ty: U64,
        legacy: Some(U32),
        needs: Needs::ptx(3, 0),
        source: Source::One(Sreg::Gridid),
    },
    one("%is_explicit_cluster", Pred, CLUSTERS, Sreg::IsExplicitCluster),
    vector("%clusterid", None, CLUSTERS, Sreg::Clusterid),
    vector("%nclusterid", None, CLUSTERS, Sreg::Nclusterid),
    vector("%cluster_ctaid", None, CLUSTERS, Sreg::ClusterCtaid),
    vector("%cluster_nctaid", None, CLUSTERS, Sreg::ClusterNctaid),
    one("%cluster_ctarank", U32, CLUSTERS, Sreg::ClusterCtarank),
    one("%cluster_nctarank", U32, CLUSTERS, Sreg::ClusterNctarank),
    one("%lanemask_eq", U32, FROM_2_0, Sreg::LanemaskEq),
    one("%lanemask_le", U32, FROM_2_0, Sreg::LanemaskLe),
    one("%lanemask_lt", U32, FROM_2_0, Sreg::LanemaskLt),
    one("%lanemask_ge", U32, FROM_2_0, Sreg::LanemaskGe),
    one("%lanemask_gt", U32, FROM_2_0, Sreg::LanemaskGt),
    one("%clock", U32, Needs::NONE, Sreg::Clock),
    one("%clock_hi", U32, Needs::on(5, 0, SM_20), Sreg::ClockHi),
    one("%clock64", U64, FROM_2_0, Sreg::Clock64),
    numbered("%pm#", U32, 4, Needs::ptx(1, 3), Sreg::Pm),
    numbered("%pm#", U32, 8, Needs::on(3, 0, SM_20), Sreg::Pm),
    numbered("%pm#_64", U64, 8, Needs::on(4, 0, SM_50), Sreg::Pm64),
    numbered("%envreg#", B32, 32, Needs::ptx(2, 1), Sreg::Envreg),
    one("%globaltimer", U64, Needs::on(3, 1, SM_30), Sreg::Globaltimer),
    one("%globaltimer_lo", U32, Needs::on(3, 1, SM_30), Sreg::GlobaltimerLo),
    one("%globaltimer_hi", U32, Needs::on(3, 1, SM_30), Sreg::GlobaltimerHi),
    one("%reserved_smem_offset_begin", B32, RESERVED, Sreg::ReservedSmemBegin),
    one("%reserved_smem_offset_end", B32, RESERVED, Sreg::ReservedSmemEnd),
    one("%reserved_smem_offset_cap", B32, RESERVED, Sreg::ReservedSmemCap),
    numbered("%reserved_smem_offset_#", B32, 2, RESERVED, Sreg::ReservedSmemOffset),
    one("%total_smem_size", U32, Needs::on(4, 1, SM_20), Sreg::TotalSmemSize),
    one("%aggr_smem_size", U32, Needs::on(8, 1, SM_90), Sreg::AggrSmemSize),
    one("%dynamic_smem_size", U32, Needs::on(4, 1, SM_20), Sreg::DynamicSmemSize),
    one("%current_graph_exec", U64, Needs::on(8, 0, SM_50), Sreg::CurrentGraphExec),
];

/// Whether a name, with any word or none after it, is a special register.
pub fn is_family(name: &str) -> bool {
    lookup(name).is_some() || SPECIAL_REGISTERS.iter().any(|r| r.name == name)
}
