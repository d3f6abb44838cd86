//! What the instructions that access memory share: tables of qualifiers, rules of spaces and vectors, and the access itself.

use handloom_ir::simt::{Access, Addr, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{Order, ScalarType, Scope, StateSpace};

use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// Types of `ld`, `ldu` and `st`.
pub const TYPES: &[Choice] = &[
    ty(".b8", B8),
    ty(".b16", B16),
    ty(".b32", B32),
    ty(".b64", B64),
    ty_if(".b128", B128, Needs::on(8, 3, &[AtLeast(70)])),
    ty(".u8", U8),
    ty(".u16", U16),
    ty(".u32", U32),
    ty(".u64", U64),
    ty(".s8", S8),
    ty(".s16", S16),
    ty(".s32", S32),
    ty(".s64", S64),
    ty(".f32", F32),
    ty(".f64", F64),
];

/// Vector lengths of `ld` and `st`.
pub const VECTORS: &[Choice] =
    &[choice(".v2", Value::Count(2)), choice(".v4", Value::Count(4)), choice(".v8", Value::Count(8))];

/// `.global`.
pub const GLOBAL: Choice = choice(".global", Value::Space(StateSpace::Global));
/// `.local`.
pub const LOCAL: Choice = choice(".local", Value::Space(StateSpace::Local));
/// `.const`.
pub const CONST: Choice = choice(".const", Value::Space(StateSpace::Const));
/// `.shared`, the same as `.shared::cta`.
pub const SHARED: Choice = choice(".shared", Value::Space(StateSpace::Shared));
/// `.shared::cta`.
pub const SHARED_CTA: Choice = choice_if(".shared::cta", Value::Space(StateSpace::Shared), Needs::ptx(7, 8));
/// `.shared::cluster`.
pub const SHARED_CLUSTER: Choice =
    choice_if(".shared::cluster", Value::Space(StateSpace::SharedCluster), Needs::on(7, 8, &[AtLeast(90)]));
/// `.param` without a sub-space: [`space`] resolves it.
pub const PARAM: Choice = choice(".param", Value::Space(StateSpace::ParamFunc));
/// `.param::entry`.
pub const PARAM_ENTRY: Choice = choice_if(".param::entry", Value::Space(StateSpace::ParamEntry), Needs::ptx(8, 3));
/// `.param::func`.
pub const PARAM_FUNC: Choice = choice_if(".param::func", Value::Space(StateSpace::ParamFunc), Needs::ptx(8, 3));

/// Scopes of strong accesses.
pub const SCOPES: &[Choice] = &[
    choice(".cta", Value::Scope(Scope::Cta)),
    choice_if(".cluster", Value::Scope(Scope::Cluster), Needs::on(7, 8, &[AtLeast(90)])),
    choice(".gpu", Value::Scope(Scope::Gpu)),
    choice(".sys", Value::Scope(Scope::Sys)),
];

const EVICT_GATE: Needs = Needs::on(7, 4, &[AtLeast(70)]);

/// Eviction priorities of the first cache level.
pub const EVICT_L1: &[Choice] = &[
    choice_if(".L1::evict_normal", Value::Flag, EVICT_GATE),
    choice_if(".L1::evict_unchanged", Value::Flag, EVICT_GATE),
    choice_if(".L1::evict_first", Value::Flag, EVICT_GATE),
    choice_if(".L1::evict_last", Value::Flag, EVICT_GATE),
    choice_if(".L1::no_allocate", Value::Flag, EVICT_GATE),
];

/// Eviction priorities of the second cache level. The gate is that of 256-bit accesses, which alone take them.
pub const EVICT_L2: &[Choice] = &[
    choice_if(".L2::evict_normal", Value::Flag, WIDE_GATE),
    choice_if(".L2::evict_first", Value::Flag, WIDE_GATE),
    choice_if(".L2::evict_last", Value::Flag, WIDE_GATE),
];

/// Gate of 256-bit accesses.
pub const WIDE_GATE: Needs = Needs::on(8, 8, &[AtLeast(100)]);

/// `.L2::cache_hint`.
pub const CACHE_HINT: &[Choice] = &[choice_if(".L2::cache_hint", Value::Flag, Needs::on(7, 4, &[AtLeast(80)]))];

/// Prefetch sizes.
pub const PREFETCH: &[Choice] = &[
    choice_if(".L2::64B", Value::Flag, Needs::on(7, 4, &[AtLeast(75)])),
    choice_if(".L2::128B", Value::Flag, Needs::on(7, 4, &[AtLeast(75)])),
    choice_if(".L2::256B", Value::Flag, Needs::on(7, 4, &[AtLeast(80)])),
];

/// `.weak`, which may be left out.
pub const WEAK: &[Choice] = &[choice_if(".weak", Value::Order(Order::Weak), Needs::on(6, 0, &[AtLeast(70)]))];

/// The cache policy operand, written if and only if `.L2::cache_hint` is.
pub const POLICY: Operand = val("cache-policy", Is::Descriptor(U64)).optional();

/// The state space an access goes to: the one written, with plain `.param` resolved; the named variable's own if none is written.
pub fn space(u: &Use) -> StateSpace {
    match (u.text(Role::Space), u.named_space) {
        (".param", Some(StateSpace::ParamEntry)) => StateSpace::ParamEntry,
        (".param", Some(_)) => StateSpace::ParamFunc,
        // Choice: a register in an entry may hold the address of a kernel parameter only, since those of call parameters cannot be taken.
        (".param", None) => match u.func {
            FuncKind::Entry => StateSpace::ParamEntry,
            FuncKind::Func => StateSpace::ParamFunc,
        },
        ("", Some(named)) => named,
        _ => u.space(Role::Space),
    }
}

/// Whether the written space and the named variable's agree.
pub fn check_named_space(u: &Use) -> Result<(), Reason> {
    let Some(named) = u.named_space else {
        return Ok(());
    };
    let written = space(u);
    let agree = written == named || (written == StateSpace::SharedCluster && named == StateSpace::Shared);
    if agree || !u.has(Role::Space) {
        return Ok(());
    }
    Err(Reason::new(format!("the variable is in `.{}`, not in `{}`", named.name(), u.text(Role::Space)))
        .at(u.text(Role::Space)))
}

/// Refuses a qualifier of a role.
pub fn refuse(u: &Use, role: Role, why: &str) -> Result<(), Reason> {
    if u.has(role) { Err(Reason::new(format!("`{}` {why}", u.text(role))).at(u.text(role))) } else { Ok(()) }
}

/// Whether a cache policy is written exactly where the hint is; `n_others` operands come before it.
pub fn check_policy(u: &Use, n_others: usize) -> Result<(), Reason> {
    match (u.has(Role::CacheHint), u.n_src > n_others) {
        (true, false) => {
            Err(Reason::new("`.L2::cache_hint` needs a cache policy as last operand").at(".L2::cache_hint"))
        }
        (false, true) => Err(Reason::new("a cache policy needs `.L2::cache_hint`")),
        (true, true) | (false, false) => Ok(()),
    }
}

/// Whether `.global` or no space is written. A variable of another space may be named without writing its space, constants excepted.
pub fn is_global(u: &Use) -> bool {
    u.named_space != Some(StateSpace::Const) && matches!(u.space(Role::Space), StateSpace::Global | StateSpace::Generic)
}

/// The rules of vectors, hints and spaces that `ld` and `st` share; returns the gates of a 256-bit access.
pub fn check_access(u: &Use, n_others: usize) -> Result<Needs, Reason> {
    check_named_space(u)?;
    check_policy(u, n_others)?;
    let t = u.ty(Role::Type);
    let count = u.count(Role::Vec);
    let wide = t.bits() * u32::from(count) == 256 && t.bits() >= 32;
    if t == B128 && count > 1 {
        return Err(Reason::new("`.b128` takes no vector").at(u.text(Role::Vec)));
    }
    // The manual has no `.v8` of 8 and 16 bits; the assembler takes them in any space.
    if count == 8 && !wide && t.bits() > 16 {
        return Err(Reason::new("`.v8` takes only types of 8, 16 and 32 bits").at(u.text(Role::Vec)));
    }
    if !is_global(u) {
        let why = "goes only with `.global` or generic addresses";
        if wide {
            refuse(u, Role::Vec, &format!("of {} {why}", u.text(Role::Type)))?;
        }
        for role in [Role::Prefetch, Role::CacheHint, Role::EvictL1] {
            refuse(u, role, why)?;
        }
    }
    if !wide {
        refuse(u, Role::EvictL2, "goes only with `.v8` of 32-bit types and `.v4` of 64-bit types")?;
    }
    Ok(if wide { WIDE_GATE } else { Needs::NONE })
}

/// The rule of spaces for a strong access, and the gates of its combinations.
pub fn check_strong(u: &Use, order: Order, n_others: usize) -> Result<Needs, Reason> {
    let needs = check_access(u, n_others)?;
    let space = space(u);
    let shared_or_global =
        matches!(space, StateSpace::Global | StateSpace::Shared | StateSpace::SharedCluster | StateSpace::Generic);
    if order == Order::Volatile && space == StateSpace::Local {
        return Ok(Needs::ptx(9, 1));
    }
    if !shared_or_global {
        let spaces = if order == Order::Volatile { "`.global`, `.shared`, `.local`" } else { "`.global`, `.shared`" };
        return Err(
            Reason::new(format!("a strong access goes only to {spaces} or generic addresses")).at(u.text(Role::Space))
        );
    }
    if u.ty(Role::Type) == B128 && u.scope(Role::Scope) == Some(Scope::Sys) {
        return Ok(Needs::ptx(8, 4));
    }
    Ok(needs)
}

/// The rule of spaces for a memory-mapped access, and the gates of its types: its scope is always `.sys`.
pub fn check_mmio(u: &Use, n_others: usize) -> Result<Needs, Reason> {
    if !is_global(u) {
        return Err(Reason::new("`.mmio` goes only with `.global` or generic addresses").at(".mmio"));
    }
    check_access(u, n_others)?;
    Ok(if u.ty(Role::Type) == B128 { Needs::ptx(8, 4) } else { Needs::NONE })
}

/// The access of a use: `.b128` is two elements of 64 bits.
pub fn access(u: &Use, order: Order, scope: Scope) -> Access {
    let t = u.ty(Role::Type);
    let is_single = t == B128;
    let (bits, count) = if is_single { (64, 2) } else { (element_bits(t), u.count(Role::Vec)) };
    let elements = if count == 8 { 0xff } else { (1u8 << count) - 1 };
    let space = match space(u) {
        StateSpace::Generic if is_for_global(u) => StateSpace::Global,
        other => other,
    };
    Access { space, bits, count, elements, order, scope, is_single, is_async: false }
}

/// `.unified` after an address: the checker puts it among the choices made.
pub const UNIFIED: Choice = choice(".unified", Value::Flag);

/// Whether a generic address must point to `.global`: that of a 256-bit access, with a cache policy, and with `.unified`.
fn is_for_global(u: &Use) -> bool {
    u.has(Role::CacheHint) || u.has(Role::Unified) || u.ty(Role::Type).bits() * u32::from(u.count(Role::Vec)) == 256
}

fn element_bits(t: ScalarType) -> u8 {
    match t.bits() {
        8 => 8,
        16 => 16,
        32 => 32,
        _ => 64,
    }
}

/// Loads destination 0 from source 0; elements that are sinks are not read.
pub fn load(x: &mut Cx<'_, '_>, order: Order, scope: Scope) {
    let mut a = access(x.u, order, scope);
    if !a.is_single && a.count > 1 {
        for j in 0..a.count {
            if !x.wants(0, usize::from(j)) {
                a.elements &= !(1 << j);
            }
        }
    }
    let address = x.addr(0);
    for (j, v) in x.b.load(a, address).into_iter().enumerate() {
        x.set_at(0, j, v);
    }
}

/// Stores source 1 to source 0.
pub fn store(x: &mut Cx<'_, '_>, order: Order, scope: Scope) {
    let a = access(x.u, order, scope);
    let (address, values): (Addr, Vec<Val>) = (x.addr(0), x.srcs(1));
    x.b.store(a, address, &values);
}

/// The scope written.
pub fn scope(x: &Cx<'_, '_>) -> Scope {
    x.u.scope(Role::Scope).unwrap_or(Scope::Gpu)
}
