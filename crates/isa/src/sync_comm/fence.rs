//! `fence`: orders memory among the threads of a scope.
//!
//! Fences that are restricted to some operations or to one state space are built as full ones of the same scope. All memory is
//! seen through one proxy, so a proxy fence orders nothing more: without `.acquire` and `.release` it is nothing, but where results may be late, which
//! is where checks look for it. Memory that is mapped twice is not followed, so that
//! `.alias` is never looked for.

use handloom_ir::simt::{Op, ProxyFence, Transfer, Val};
use handloom_ir::types::ScalarType::B32;
use handloom_ir::types::{Order, Scope, StateSpace, Ty};
use smallvec::smallvec;

use crate::data_movement::memory::{GLOBAL, SCOPES, SHARED_CLUSTER, SHARED_CTA};
use crate::data_movement::transfer::{address_of, transfer};
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

const SECTION: &str = "Parallel Synchronization and Communication Instructions: membar / fence";

const HALF_GATE: Needs = Needs::on(8, 6, &[AtLeast(90)]);

/// `fence{.sem}.scope`.
pub const FENCE: Form = Form {
    opcode: "fence",
    words: &[],
    section: SECTION,
    qualifiers: &[
        must(Role::Scope, SCOPES),
        maybe(
            Role::Order,
            &[
                choice(".sc", Value::Order(Order::Sc)),
                choice(".acq_rel", Value::Order(Order::AcqRel)),
                choice_if(".acquire", Value::Order(Order::Acquire), HALF_GATE),
                choice_if(".release", Value::Order(Order::Release), HALF_GATE),
            ],
        ),
    ],
    dst: &[],
    src: &[],
    needs: Needs::on(6, 0, &[AtLeast(70)]),
    legal: always,
    semantics: Semantics::Build(|x| {
        let order = x.u.order(Role::Order).unwrap_or(Order::AcqRel);
        let scope = x.u.scope(Role::Scope).unwrap_or(Scope::Sys);
        fence(x, order, scope);
    }),
};

/// `fence.acquire.sync_restrict::shared::cluster.cluster`.
pub const FENCE_ACQUIRE_SHARED: Form = Form {
    words: &[".acquire", ".sync_restrict::shared::cluster", ".cluster"],
    qualifiers: &[],
    needs: HALF_GATE,
    semantics: Semantics::Build(|x| fence(x, Order::Acquire, Scope::Cluster)),
    ..FENCE
};

/// `fence.release.sync_restrict::shared::cta.cluster`.
pub const FENCE_RELEASE_SHARED: Form = Form {
    words: &[".release", ".sync_restrict::shared::cta", ".cluster"],
    qualifiers: &[],
    needs: HALF_GATE,
    semantics: Semantics::Build(|x| fence(x, Order::Release, Scope::Cluster)),
    ..FENCE
};

/// `fence.mbarrier_init.release.cluster`.
pub const FENCE_MBARRIER_INIT: Form = Form {
    words: &[".mbarrier_init", ".release", ".cluster"],
    qualifiers: &[],
    needs: Needs::on(8, 0, &[AtLeast(90)]),
    semantics: Semantics::Build(|x| fence(x, Order::Release, Scope::Cluster)),
    ..FENCE
};

/// The kind of a proxy fence in both directions.
pub const PROXY_KINDS: Group = must(
    Role::Mode,
    &[choice(".alias", Value::Flag), choice_if(".async", Value::Flag, Needs::on(8, 0, &[AtLeast(90)]))],
);

/// `fence.proxy.proxykind`.
pub const FENCE_PROXY: Form = Form {
    opcode: "fence.proxy",
    qualifiers: &[PROXY_KINDS, maybe(Role::Space, &[GLOBAL, SHARED_CTA, SHARED_CLUSTER])],
    needs: Needs::on(7, 5, &[AtLeast(70)]),
    legal: proxy_space,
    semantics: Semantics::Wait(|x| {
        if x.u.text(Role::Mode) == ".async" {
            let space = x.u.has(Role::Space).then(|| x.u.space(Role::Space));
            proxies(x, ProxyFence::Async(space));
        }
    }),
    ..FENCE
};

const TENSORMAP_GATE: Needs = Needs::on(8, 3, &[AtLeast(90)]);

/// `fence.proxy.tensormap::generic.release.scope`.
pub const FENCE_PROXY_RELEASE: Form = Form {
    opcode: "fence.proxy",
    words: &[".tensormap::generic", ".release"],
    qualifiers: &[must(Role::Scope, SCOPES)],
    needs: TENSORMAP_GATE,
    semantics: Semantics::Timed {
        now: |x| fence(x, Order::Release, scope_of(x)),
        late: |x| {
            proxies(x, ProxyFence::MapRelease);
            fence(x, Order::Release, scope_of(x));
        },
    },
    ..FENCE
};

/// `fence.proxy.tensormap::generic.acquire.scope [addr], size`.
pub const FENCE_PROXY_ACQUIRE: Form = Form {
    opcode: "fence.proxy",
    words: &[".tensormap::generic", ".acquire"],
    qualifiers: &[must(Role::Scope, SCOPES)],
    src: &[address("addr"), operand("size", Kind::Imm, Is::Fixed(B32))],
    needs: TENSORMAP_GATE,
    semantics: Semantics::Timed {
        now: |x| fence(x, Order::Acquire, scope_of(x)),
        late: |x| {
            fence(x, Order::Acquire, scope_of(x));
            let map = address_of(x, 0);
            transfer(x, Transfer::Proxies(ProxyFence::MapAcquire), vec![map]);
        },
    },
    ..FENCE
};

/// `fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster`.
pub const FENCE_PROXY_ASYNC_ACQUIRE: Form = Form {
    opcode: "fence.proxy",
    words: &[".async::generic", ".acquire", ".sync_restrict::shared::cluster", ".cluster"],
    semantics: Semantics::Timed {
        now: |x| fence(x, Order::Acquire, Scope::Cluster),
        late: |x| {
            fence(x, Order::Acquire, Scope::Cluster);
            proxies(x, ProxyFence::Async(Some(StateSpace::Shared)));
        },
    },
    ..FENCE_ACQUIRE_SHARED
};

/// `fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster`.
pub const FENCE_PROXY_ASYNC_RELEASE: Form = Form {
    opcode: "fence.proxy",
    words: &[".async::generic", ".release", ".sync_restrict::shared::cta", ".cluster"],
    semantics: Semantics::Timed {
        now: |x| fence(x, Order::Release, Scope::Cluster),
        late: |x| {
            proxies(x, ProxyFence::Async(Some(StateSpace::Shared)));
            fence(x, Order::Release, Scope::Cluster);
        },
    },
    ..FENCE_RELEASE_SHARED
};

/// Builds a fence. A guard does not matter: a fence of a lane that is off orders more than asked, which is sound.
pub fn fence(x: &mut Cx<'_, '_>, order: Order, scope: Scope) {
    x.b.push(Op::Fence { order, scope }, smallvec![], smallvec![]);
}

/// Says that accesses through different proxies are ordered.
fn proxies(x: &mut Cx<'_, '_>, fence: ProxyFence) {
    transfer(x, Transfer::Proxies(fence), vec![Val::Imm(0, Ty::B64)]);
}

/// The scope that is written.
fn scope_of(x: &Cx<'_, '_>) -> Scope {
    x.u.scope(Role::Scope).unwrap_or(Scope::Sys)
}

/// A state space goes only with `.async`.
fn proxy_space(u: &Use) -> Result<Needs, Reason> {
    if u.text(Role::Mode) == ".alias" && u.space(Role::Space) != StateSpace::Generic {
        return Err(Reason::new("a state space goes only with `.async`").at(u.text(Role::Space)));
    }
    Ok(Needs::NONE)
}
