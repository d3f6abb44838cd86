//! Rules for the values of literal operands, which no record can state: a record sees which operands are written, not their values.

use handloom_ir::simt::BarKind;

use crate::form::{Control, Form, Operand, Reason, Role, Semantics, Use};
use crate::matrix::product::{last_selector, places_of_scales};
use crate::target::{Needs, TargetGate};

/// What a literal must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Literal {
    /// At least and at most.
    Between(u64, u64),
    /// A multiple of a number, at least and at most.
    Multiple(u64, u64, u64),
    /// This value.
    Exactly(u64),
    /// One of these.
    OneOf(&'static [u64]),
    /// At least and at most, before the literal is cut to its type.
    Whole(u64, u64),
    /// An `.f32` number above 0 and at most 1.
    Fraction,
    /// A power of two of at most so much.
    PowerOfTwo(u64),
    /// What a field of a tensor map may be.
    Field,
    /// What selects lanes with the metadata of a sparse matrix, of which there may be more than one choice.
    Selector,
}

/// One or minus one, in 32 bits.
const SIGN: Literal = Literal::OneOf(&[1, 0xffff_ffff]);

/// How many threads an arrival at a barrier counts: it has no default, and 0 is none.
const ARRIVALS: Literal = Literal::Multiple(32, 32, u64::MAX);

/// How often an mbarrier is arrived at: any number but 0. The assembler does not check the manual's upper bound.
const ARRIVED: Literal = Literal::Whole(1, u64::MAX >> 1);

/// Columns of an allocation of tensor memory.
const COLUMNS: Literal = Literal::OneOf(&[32, 64, 128, 256, 512]);

/// Bytes of a bulk copy.
const BULK_SIZE: Literal = Literal::Multiple(16, 0, (1 << 20) - 16);

/// A bit for each cta of a cluster.
const CTA_MASK: Literal = Literal::Whole(0, 0xffff);

/// Opcode, operand name, rule.
pub const LITERALS: &[(&str, &str, Literal)] = &[
    ("alloca", "immAlign", Literal::PowerOfTwo(1 << 23)),
    ("bar", "a", Literal::Between(0, 15)),
    ("bar", "b", Literal::Multiple(32, 0, u64::MAX)),
    ("barrier", "a", Literal::Between(0, 15)),
    ("barrier", "b", Literal::Multiple(32, 0, u64::MAX)),
    ("bfe", "b", Literal::Whole(0, 255)),
    ("bfe", "c", Literal::Whole(0, 255)),
    ("bfi", "c", Literal::Whole(0, 255)),
    ("bfi", "d", Literal::Whole(0, 255)),
    ("cp.async", "cp-size", Literal::OneOf(&[4, 8, 16])),
    ("cp.async", "16", Literal::Exactly(16)),
    ("cp.async", "src-size", Literal::Whole(0, 16)),
    ("cp.async.bulk", "ctaMask", CTA_MASK),
    ("cp.async.bulk.tensor", "ctaMask", CTA_MASK),
    ("tcgen05.commit", "ctaMask", CTA_MASK),
    ("cp.async.bulk", "size", BULK_SIZE),
    ("cp.async.bulk.prefetch", "size", BULK_SIZE),
    ("cp.reduce.async.bulk", "size", BULK_SIZE),
    ("mbarrier.arrive", "count", ARRIVED),
    ("mbarrier.arrive_drop", "count", ARRIVED),
    ("createpolicy", "fraction", Literal::Fraction),
    ("mbarrier.init", "count", Literal::Between(1, (1 << 20) - 1)),
    ("mbarrier.test_wait.parity", "phaseParity", Literal::Whole(0, 1)),
    ("mbarrier.try_wait.parity", "phaseParity", Literal::Whole(0, 1)),
    ("multimem.cp.async.bulk", "size", BULK_SIZE),
    ("multimem.cp.reduce.async.bulk", "size", BULK_SIZE),
    ("tensormap.replace", "ord", Literal::Between(0, 4)),
    ("tensormap.replace", "new_val", Literal::Field),
    ("tensormap.cp_fenceproxy", "size", Literal::Exactly(128)),
    ("st.bulk", "size", Literal::Multiple(8, 0, 1 << 24)),
    ("st.bulk", "initval", Literal::Exactly(0)),
    ("mma.sp", "f", Literal::Selector),
    ("mma.sp::ordered_metadata", "f", Literal::Selector),
    ("wgmma.mma_async.sp", "sp-sel", Literal::Selector),
    ("wgmma.wait_group", "N", Literal::Whole(0, u64::MAX >> 1)),
    ("wgmma.mma_async", "scale-d", Literal::Whole(0, 1)),
    ("wgmma.mma_async.sp", "scale-d", Literal::Whole(0, 1)),
    ("wgmma.mma_async", "imm-scale-a", SIGN),
    ("wgmma.mma_async", "imm-scale-b", SIGN),
    ("wgmma.mma_async", "imm-trans-a", Literal::Between(0, 1)),
    ("wgmma.mma_async", "imm-trans-b", Literal::Between(0, 1)),
    ("wgmma.mma_async.sp", "imm-scale-a", SIGN),
    ("wgmma.mma_async.sp", "imm-scale-b", SIGN),
    ("wgmma.mma_async.sp", "imm-trans-a", Literal::Between(0, 1)),
    ("wgmma.mma_async.sp", "imm-trans-b", Literal::Between(0, 1)),
    ("fence.proxy", "size", Literal::Exactly(128)),
    ("applypriority", "size", Literal::Exactly(128)),
    ("discard", "size", Literal::Exactly(128)),
    ("pmevent", "a", Literal::Between(0, 15)),
    ("pmevent", "mask", Literal::Between(0, 0xffff)),
    ("tcgen05.alloc", "nCols", COLUMNS),
    ("tcgen05.dealloc", "nCols", COLUMNS),
    ("tcgen05.mma", "scale-input-d", Literal::Between(0, 15)),
    ("tcgen05.mma.sp", "scale-input-d", Literal::Between(0, 15)),
    ("setmaxnreg", "imm-reg-count", Literal::Multiple(8, 24, 256)),
];

/// Literals of which the first must not be above the second: opcode and names of the operands.
pub const ORDERED: &[(&str, &str, &str)] = &[
    ("cp.async", "src-size", "cp-size"),
    ("cp.async", "src-size", "16"),
    ("createpolicy", "primary-size", "total-size"),
];

/// Whether a literal may be an element of an operand that is a vector.
pub fn check_element(u: &Use, operand: &Operand, element: usize, value: u64) -> Result<(), Reason> {
    match places_of_scales(u, operand.name, element) {
        Some(all) if !all.contains(&value) => {
            let texts: Vec<String> = all.iter().map(u64::to_string).collect();
            let wanted = if let [only] = &texts[..] { only.clone() } else { format!("one of {}", texts.join(", ")) };
            let what = if element == 0 { "first" } else { "second" };
            Err(Reason::new(format!("the {what} element of `{}` must be {wanted}", operand.name)))
        }
        _ => Ok(()),
    }
}

/// The last number that a field of a tensor map may be, if it is one that is chosen from a table.
fn last_of_field(u: &Use) -> Option<u64> {
    let is_past = |number| Needs::on(8, 0, number).lacking(u.version, u.target).is_none();
    match u.text(Role::Op) {
        ".elemtype" if is_past(&[TargetGate::AtLeast(100)]) => Some(15),
        ".elemtype" => Some(12),
        ".interleave_layout" => Some(2),
        ".swizzle_mode" if is_past(&[TargetGate::Arch(103)]) => Some(4),
        ".swizzle_mode" => Some(3),
        ".swizzle_atomicity" => Some(3),
        ".fill_mode" => Some(1),
        _ => None,
    }
}

/// Whether a literal may be written for an operand of a form: its bits, and what was written, before it was cut to its type.
pub fn check_literal(form: &Form, u: &Use, operand: &Operand, value: u64, whole: u64) -> Result<(), Reason> {
    let Some((_, _, rule)) = LITERALS.iter().find(|(o, name, _)| *o == form.opcode && *name == operand.name) else {
        return Ok(());
    };
    let arrival = matches!(form.semantics, Semantics::Control(Control::Barrier(BarKind::Arrive)));
    let rule = if arrival && operand.name == "b" { ARRIVALS } else { *rule };
    let (fits, wanted) = match rule {
        Literal::Between(least, most) => ((least..=most).contains(&value), format!("from {least} to {most}")),
        Literal::Multiple(of, least, most) => (
            whole.is_multiple_of(of) && (least..=most).contains(&whole),
            match most {
                u64::MAX if least > 0 => format!("a multiple of {of} that is not 0"),
                u64::MAX => format!("a multiple of {of}"),
                _ => format!("a multiple of {of} from {least} to {most}"),
            },
        ),
        Literal::Whole(least, most) => ((least..=most).contains(&whole), format!("from {least} to {most}")),
        Literal::Selector => {
            let last = last_selector(u);
            (value <= last, if last == 0 { "0".into() } else { format!("from 0 to {last}") })
        }
        Literal::Field => {
            let last = last_of_field(u);
            (last.is_none_or(|last| value <= last), format!("from 0 to {}", last.unwrap_or(u64::MAX)))
        }
        Literal::Fraction => {
            let number = f32::from_bits(u32::try_from(value).unwrap_or(u32::MAX));
            (number > 0.0 && number <= 1.0, "above 0 and at most 1".to_owned())
        }
        Literal::OneOf(all) => {
            let texts: Vec<String> = all.iter().map(u64::to_string).collect();
            (all.contains(&value), format!("one of {}", texts.join(", ")))
        }
        Literal::PowerOfTwo(most) => {
            (value.is_power_of_two() && value <= most, format!("a power of two of at most {most}"))
        }
        Literal::Exactly(only) => (value == only, format!("{only}")),
    };
    if fits { Ok(()) } else { Err(Reason::new(format!("operand `{}` must be {wanted}", operand.name))) }
}
