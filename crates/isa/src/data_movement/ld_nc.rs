//! `ld.global.nc`: loads from global memory that nobody writes while the kernel runs.
//!
//! The non-coherent cache is a hint: the load is a weak one.

use handloom_ir::types::{Order, Scope};

use super::memory::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// `ld.global{.cop}.nc{.level::cache_hint}{.level::prefetch_size}{.vec}.type`.
pub const LD_NC: Form = Form {
    opcode: "ld",
    words: &[".nc"],
    section: "Data Movement and Conversion Instructions: ld.global.nc",
    qualifiers: &[
        must(Role::Type, TYPES),
        must(Role::Space, &[GLOBAL]),
        maybe(Role::Vec, VECTORS),
        maybe(Role::CacheOp, &[choice(".ca", Value::Flag), choice(".cg", Value::Flag), choice(".cs", Value::Flag)]),
        maybe(Role::EvictL2, EVICT_L2),
        maybe(Role::CacheHint, CACHE_HINT),
        maybe(Role::Prefetch, PREFETCH),
    ],
    dst: &[vector("d", Is::Relaxed(Role::Type), Role::Vec)],
    src: &[address("a"), POLICY],
    needs: Needs::on(3, 1, &[AtLeast(32)]),
    legal: |u| check_access(u, 1),
    semantics: Semantics::Build(|x| load(x, Order::Weak, Scope::Cta)),
};

/// The same with an eviction priority of the first level instead of a cache operator.
pub const LD_NC_EVICT: Form = Form {
    qualifiers: &[
        must(Role::Type, TYPES),
        must(Role::Space, &[GLOBAL]),
        maybe(Role::Vec, VECTORS),
        maybe(Role::EvictL1, EVICT_L1),
        maybe(Role::EvictL2, EVICT_L2),
        maybe(Role::CacheHint, CACHE_HINT),
        maybe(Role::Prefetch, PREFETCH),
    ],
    ..LD_NC
};
