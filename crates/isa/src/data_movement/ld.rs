//! `ld`: loads a register or a vector of registers from memory.
//!
//! The manual's six syntax lines are six records, so that what excludes each other is in no record together. Results of 8 and
//! 16 bits are zero-extended `B16` values; the operand rules extend them to the register.

use handloom_ir::types::{Order, Scope, StateSpace};
use smallvec::smallvec;

use super::memory::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

const SECTION: &str = "Data Movement and Conversion Instructions: ld";

/// State spaces of `ld`.
const SPACES: &[Choice] = &[CONST, GLOBAL, LOCAL, PARAM, PARAM_ENTRY, PARAM_FUNC, SHARED, SHARED_CTA, SHARED_CLUSTER];

const COPS: &[Choice] = &[
    choice(".ca", Value::Flag),
    choice(".cg", Value::Flag),
    choice(".cs", Value::Flag),
    choice(".lu", Value::Flag),
    choice(".cv", Value::Flag),
];

const DST: &[Operand] = &[vector("d", Is::Relaxed(Role::Type), Role::Vec)];
const SRC: &[Operand] = &[address("a"), POLICY];

/// `ld{.weak}{.ss}{.cop}{.level2::eviction_priority}{.level::cache_hint}{.level::prefetch_size}{.vec}.type`.
pub const LD_WEAK: Form = Form {
    opcode: "ld",
    words: &[],
    section: SECTION,
    qualifiers: &[
        must(Role::Type, TYPES),
        maybe(Role::Space, SPACES),
        maybe(Role::Vec, VECTORS),
        maybe(Role::Order, WEAK),
        maybe(Role::CacheOp, COPS),
        maybe(Role::EvictL2, EVICT_L2),
        maybe(Role::CacheHint, CACHE_HINT),
        maybe(Role::Prefetch, PREFETCH),
    ],
    dst: DST,
    src: SRC,
    needs: Needs::ptx(1, 0),
    legal: weak,
    semantics: Semantics::Build(load_weak),
};

/// `ld{.weak}` with an eviction priority of the first level instead of a cache operator.
pub const LD_EVICT: Form = Form {
    qualifiers: &[
        must(Role::Type, TYPES),
        maybe(Role::Space, SPACES),
        maybe(Role::Vec, VECTORS),
        maybe(Role::Order, WEAK),
        maybe(Role::EvictL1, EVICT_L1),
        maybe(Role::EvictL2, EVICT_L2),
        maybe(Role::CacheHint, CACHE_HINT),
        maybe(Role::Prefetch, PREFETCH),
    ],
    ..LD_WEAK
};

/// `ld.volatile{.ss}{.level::prefetch_size}{.vec}.type`: relaxed at system scope, done as often as written.
pub const LD_VOLATILE: Form = Form {
    words: &[".volatile"],
    qualifiers: &[
        must(Role::Type, TYPES),
        maybe(Role::Space, SPACES),
        maybe(Role::Vec, VECTORS),
        maybe(Role::EvictL2, EVICT_L2),
        maybe(Role::Prefetch, PREFETCH),
    ],
    src: &[address("a")],
    needs: Needs::ptx(1, 1),
    legal: |u| check_strong(u, Order::Volatile, 1),
    semantics: Semantics::Build(|x| load(x, Order::Volatile, Scope::Sys)),
    ..LD_WEAK
};

/// `ld.relaxed.scope` with hints.
pub const LD_RELAXED: Form = Form {
    words: &[".relaxed"],
    qualifiers: STRONG,
    needs: Needs::on(6, 0, &[AtLeast(70)]),
    legal: |u| check_strong(u, Order::Relaxed, 1),
    semantics: Semantics::Build(|x| {
        let scope = scope(x);
        load(x, Order::Relaxed, scope);
    }),
    ..LD_WEAK
};

/// `ld.acquire.scope` with hints: what follows is ordered after it.
pub const LD_ACQUIRE: Form = Form {
    words: &[".acquire"],
    qualifiers: STRONG,
    needs: Needs::on(6, 0, &[AtLeast(70)]),
    legal: |u| check_strong(u, Order::Acquire, 1),
    semantics: Semantics::Build(|x| {
        let scope = scope(x);
        load(x, Order::Acquire, scope);
    }),
    ..LD_WEAK
};

/// `ld.mmio.relaxed.sys{.global}.type`: exactly one access. `.acquire` in place of `.relaxed` is taken from 9.3 on, as ptxas does.
pub const LD_MMIO: Form = Form {
    words: &[".mmio", ".sys"],
    qualifiers: &[
        must(Role::Type, TYPES),
        must(
            Role::Order,
            &[
                choice(".relaxed", Value::Order(Order::Relaxed)),
                choice_if(".acquire", Value::Order(Order::Acquire), Needs::ptx(9, 3)),
            ],
        ),
        maybe(Role::Space, &[GLOBAL]),
    ],
    src: &[address("a")],
    needs: Needs::on(8, 2, &[AtLeast(70)]),
    legal: |u| check_mmio(u, 1),
    semantics: Semantics::Build(|x| {
        load(x, Order::Mmio, Scope::Sys);
        if x.u.order(Role::Order) == Some(Order::Acquire) {
            let fence = handloom_ir::simt::Op::Fence { order: Order::Acquire, scope: Scope::Sys };
            x.b.push(fence, smallvec![], smallvec![]);
        }
    }),
    ..LD_WEAK
};

const STRONG: &[Group] = &[
    must(Role::Type, TYPES),
    must(Role::Scope, SCOPES),
    maybe(Role::Space, SPACES),
    maybe(Role::Vec, VECTORS),
    maybe(Role::EvictL1, EVICT_L1),
    maybe(Role::EvictL2, EVICT_L2),
    maybe(Role::CacheHint, CACHE_HINT),
    maybe(Role::Prefetch, PREFETCH),
];

fn weak(u: &Use) -> Result<Needs, Reason> {
    check_access(u, 1)
}

fn load_weak(x: &mut Cx<'_, '_>) {
    // Choice: `.cv` asks for the value in memory at this moment, so on `.global` it is done each time like a volatile load.
    let fresh = x.u.text(Role::CacheOp) == ".cv" && space(x.u) == StateSpace::Global;
    let (order, scope) = if fresh { (Order::Volatile, Scope::Sys) } else { (Order::Weak, Scope::Cta) };
    load(x, order, scope);
}
