//! `prefetch`, `prefetchu`: bring a line into a cache. Hints.

use handloom_ir::types::StateSpace;

use super::memory::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

const SECTION: &str = "Data Movement and Conversion Instructions: prefetch, prefetchu";

/// `prefetch{.space}.level [a]`.
pub const PREFETCH_LEVEL: Form = Form {
    opcode: "prefetch",
    words: &[],
    section: SECTION,
    qualifiers: &[
        maybe(Role::Space, &[GLOBAL, LOCAL]),
        must(Role::Mode, &[choice(".L1", Value::Flag), choice(".L2", Value::Flag)]),
    ],
    dst: &[],
    src: &[address("a").in_bits(64)],
    needs: Needs::on(2, 0, &[AtLeast(20)]),
    legal: |u| check_named_space(u).map(|()| Needs::NONE),
    semantics: Semantics::Hint,
};

/// `prefetch{.global}.level::eviction_priority [a]`.
pub const PREFETCH_EVICT: Form = Form {
    qualifiers: &[
        maybe(Role::Space, &[GLOBAL]),
        must(Role::EvictL2, &[choice(".L2::evict_last", Value::Flag), choice(".L2::evict_normal", Value::Flag)]),
    ],
    needs: Needs::on(7, 4, &[AtLeast(80)]),
    ..PREFETCH_LEVEL
};

/// `prefetch{.tensormap_space}.tensormap [a]`.
pub const PREFETCH_TENSORMAP: Form = Form {
    words: &[".tensormap"],
    src: &[address("a").in_bits(32)],
    legal: |u| check_named_space(u).map(|()| Needs::NONE),
    qualifiers: &[maybe(Role::Space, &[CONST, choice(".param", Value::Space(StateSpace::ParamEntry))])],
    needs: Needs::on(8, 0, &[AtLeast(90)]),
    ..PREFETCH_LEVEL
};

/// The address of `prefetchu` is generic, and a variable is known to be in global memory.
fn generic(u: &Use) -> Result<Needs, Reason> {
    match u.named_space {
        Some(named) if named != StateSpace::Global => {
            Err(Reason::new(format!("the variable is in `.{}`, not in `.global`", named.name())))
        }
        _ => Ok(Needs::NONE),
    }
}

/// `prefetchu.L1 [a]`.
pub const PREFETCHU: Form =
    Form { opcode: "prefetchu", words: &[".L1"], qualifiers: &[], legal: generic, ..PREFETCH_LEVEL };
