//! `st`: stores a register or a vector of registers to memory.
//!
//! As with `ld`, each syntax line of the manual is a record. A masked-off lane writes nothing, not even the old value.

use handloom_ir::simt::Op;
use handloom_ir::types::{Order, Scope, StateSpace};
use smallvec::smallvec;

use super::memory::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// State spaces of `st`.
const SPACES: &[Choice] = &[GLOBAL, LOCAL, PARAM, PARAM_FUNC, SHARED, SHARED_CTA, SHARED_CLUSTER];

const SRC: &[Operand] = &[address("a"), vector("b", Is::Relaxed(Role::Type), Role::Vec), POLICY];
const SRC_PLAIN: &[Operand] = &[address("a"), vector("b", Is::Relaxed(Role::Type), Role::Vec)];

/// `st{.weak}{.ss}{.cop}{.level2::eviction_priority}{.level::cache_hint}{.vec}.type`.
pub const ST_WEAK: Form = Form {
    opcode: "st",
    words: &[],
    section: "Data Movement and Conversion Instructions: st",
    qualifiers: &[
        must(Role::Type, TYPES),
        maybe(Role::Space, SPACES),
        maybe(Role::Vec, VECTORS),
        maybe(Role::Order, WEAK),
        maybe(
            Role::CacheOp,
            &[
                choice(".wb", Value::Flag),
                choice(".cg", Value::Flag),
                choice(".cs", Value::Flag),
                choice(".wt", Value::Flag),
            ],
        ),
        maybe(Role::EvictL2, EVICT_L2),
        maybe(Role::CacheHint, CACHE_HINT),
    ],
    dst: &[],
    src: SRC,
    needs: Needs::ptx(1, 0),
    legal: |u| {
        check_writable(u)?;
        check_access(u, 2)
    },
    semantics: Semantics::Build(|x| store(x, Order::Weak, Scope::Cta)),
};

/// `st{.weak}` with an eviction priority of the first level instead of a cache operator.
pub const ST_EVICT: Form = Form {
    qualifiers: &[
        must(Role::Type, TYPES),
        maybe(Role::Space, SPACES),
        maybe(Role::Vec, VECTORS),
        maybe(Role::Order, WEAK),
        maybe(Role::EvictL1, EVICT_L1),
        maybe(Role::EvictL2, EVICT_L2),
        maybe(Role::CacheHint, CACHE_HINT),
    ],
    ..ST_WEAK
};

/// `st.volatile{.ss}{.vec}.type`: relaxed at system scope, done as often as written.
pub const ST_VOLATILE: Form = Form {
    words: &[".volatile"],
    qualifiers: &[
        must(Role::Type, TYPES),
        maybe(Role::Space, SPACES),
        maybe(Role::Vec, VECTORS),
        maybe(Role::EvictL2, EVICT_L2),
    ],
    src: SRC_PLAIN,
    needs: Needs::ptx(1, 1),
    legal: |u| {
        check_writable(u)?;
        check_strong(u, Order::Volatile, 2)
    },
    semantics: Semantics::Build(|x| store(x, Order::Volatile, Scope::Sys)),
    ..ST_WEAK
};

/// `st.relaxed.scope` with hints.
pub const ST_RELAXED: Form = Form {
    words: &[".relaxed"],
    qualifiers: STRONG,
    needs: Needs::on(6, 0, &[AtLeast(70)]),
    legal: |u| {
        check_writable(u)?;
        check_strong(u, Order::Relaxed, 2)
    },
    semantics: Semantics::Build(|x| {
        let scope = scope(x);
        store(x, Order::Relaxed, scope);
    }),
    ..ST_WEAK
};

/// `st.release.scope` with hints: what comes before it is ordered before it.
pub const ST_RELEASE: Form = Form {
    words: &[".release"],
    qualifiers: STRONG,
    needs: Needs::on(6, 0, &[AtLeast(70)]),
    legal: |u| {
        check_writable(u)?;
        check_strong(u, Order::Release, 2)
    },
    semantics: Semantics::Build(|x| {
        let scope = scope(x);
        store(x, Order::Release, scope);
    }),
    ..ST_WEAK
};

/// `st.mmio.relaxed.sys{.global}.type`: exactly one access. `.release` in place of `.relaxed` is taken from 9.3 on, as ptxas does.
pub const ST_MMIO: Form = Form {
    words: &[".mmio", ".sys"],
    qualifiers: &[
        must(Role::Type, TYPES),
        must(
            Role::Order,
            &[
                choice(".relaxed", Value::Order(Order::Relaxed)),
                choice_if(".release", Value::Order(Order::Release), Needs::ptx(9, 3)),
            ],
        ),
        maybe(Role::Space, &[GLOBAL]),
    ],
    src: SRC_PLAIN,
    needs: Needs::on(8, 2, &[AtLeast(70)]),
    legal: |u| check_mmio(u, 2),
    semantics: Semantics::Build(|x| {
        if x.u.order(Role::Order) == Some(Order::Release) {
            x.b.push(Op::Fence { order: Order::Release, scope: Scope::Sys }, smallvec![], smallvec![]);
        }
        store(x, Order::Mmio, Scope::Sys);
    }),
    ..ST_WEAK
};

const STRONG: &[Group] = &[
    must(Role::Type, TYPES),
    must(Role::Scope, SCOPES),
    maybe(Role::Space, SPACES),
    maybe(Role::Vec, VECTORS),
    maybe(Role::EvictL1, EVICT_L1),
    maybe(Role::EvictL2, EVICT_L2),
    maybe(Role::CacheHint, CACHE_HINT),
];

/// Refuses constants and the parameters of an entry.
fn check_writable(u: &Use) -> Result<(), Reason> {
    let refusal = match (u.named_space, space(u)) {
        (Some(StateSpace::ParamEntry), _) => Some("the parameters of an entry are read-only"),
        (Some(StateSpace::Const), _) | (_, StateSpace::Const) => Some("constant memory is read-only"),
        _ => None,
    };
    refusal.map_or(Ok(()), |why| Err(Reason::new(why)))
}
