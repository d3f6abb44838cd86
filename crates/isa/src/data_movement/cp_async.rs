//! `cp.async`: copies of a few bytes that complete later.
//!
//! Choice: by default a copy is done at once, as it may be: the manual orders it with nothing but what waits for its completion. So groups have
//! nothing to wait for, and an arrival at an `mbarrier` that copies trigger is an arrival.

use handloom_ir::simt::{Access, Addr, Begun, Pure, Transfer, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{Cmp, Int, StateSpace, Ty};

use super::memory::*;
use super::transfer::*;
use crate::form::*;
use crate::sync_comm::mbarrier;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

const SECTION: &str = "Data Movement and Conversion Instructions: cp.async";

const QUALIFIERS: &[Group] = &[
    must(Role::CacheOp, &[choice(".ca", Value::Flag)]),
    one_of(Role::Space, &[SHARED, SHARED_CTA]),
    one_of(Role::Space2, &[GLOBAL]),
    maybe(Role::CacheHint, CACHE_HINT),
    maybe(Role::Prefetch, PREFETCH),
];

/// `cp.async.cop.shared.global{hints} [dst], [src], cp-size{, src-size}{, cache-policy}`.
pub const CP_ASYNC: Form = Form {
    opcode: "cp.async",
    section: SECTION,
    qualifiers: QUALIFIERS,
    src: &[address("dst"), address("src"), operand("cp-size", Kind::Imm, WORD), POLICY_WITH_HINT],
    needs: Needs::on(7, 0, &[AtLeast(80)]),
    semantics: Semantics::Timed { now: copy_all, late: |x| few(x, None) },
    ..UNSUPPORTED_FORM
};

/// The same with the number of bytes that are read; the rest is zero.
pub const CP_ASYNC_SIZED: Form = Form {
    semantics: Semantics::Timed { now: copy_sized, late: |x| few(x, Some(x.src(3))) },
    src: &[
        address("dst"),
        address("src"),
        operand("cp-size", Kind::Imm, WORD),
        val("src-size", WORD),
        POLICY_WITH_HINT,
    ],
    ..CP_ASYNC
};

/// The same with a predicate that makes zeros of all bytes.
pub const CP_ASYNC_IGNORE: Form = Form {
    semantics: Semantics::Timed {
        now: |x| {
            let access = all_bytes(x);
            let wanted = x.b.not(x.src(3));
            let read = load_where(x, access, x.addr(1), wanted);
            write(x, access, &read);
        },
        late: |x| {
            let all = Val::Imm(u64::from(all_bytes(x).bytes()), Ty::B32);
            let read = x.b.select(x.src(3), Val::Imm(0, Ty::B32), all);
            few(x, Some(read));
        },
    },
    src: &[
        address("dst"),
        address("src"),
        operand("cp-size", Kind::Imm, WORD),
        operand("ignore-src", Kind::Pred { negatable: true }, Is::Only(Pred)),
        POLICY_WITH_HINT,
    ],
    needs: Needs::on(7, 5, &[AtLeast(80)]),
    ..CP_ASYNC
};

const CG: &[Group] =
    &[must(Role::CacheOp, &[choice(".cg", Value::Flag)]), QUALIFIERS[1], QUALIFIERS[2], QUALIFIERS[3], QUALIFIERS[4]];
const SIXTEEN: Operand = operand("16", Kind::Imm, WORD);
const POLICY_WITH_HINT: Operand = val("cache-policy", Is::Descriptor(U64)).with(Role::CacheHint);

/// `cp.async.cg.shared.global{hints} [dst], [src], 16{, cache-policy}`.
pub const CP_ASYNC_CG: Form =
    Form { qualifiers: CG, src: &[address("dst"), address("src"), SIXTEEN, POLICY_WITH_HINT], ..CP_ASYNC };

/// The same with the number of bytes that are read.
pub const CP_ASYNC_CG_SIZED: Form = Form {
    qualifiers: CG,
    src: &[address("dst"), address("src"), SIXTEEN, val("src-size", WORD), POLICY_WITH_HINT],
    ..CP_ASYNC_SIZED
};

/// The same with a predicate that makes zeros of all bytes.
pub const CP_ASYNC_CG_IGNORE: Form = Form {
    qualifiers: CG,
    src: &[
        address("dst"),
        address("src"),
        SIXTEEN,
        operand("ignore-src", Kind::Pred { negatable: true }, Is::Only(Pred)),
        POLICY_WITH_HINT,
    ],
    ..CP_ASYNC_IGNORE
};

/// `cp.async.commit_group`.
pub const COMMIT_GROUP: Form = Form {
    opcode: "cp.async.commit_group",
    section: "Data Movement and Conversion Instructions: cp.async.commit_group",
    needs: Needs::on(7, 0, &[AtLeast(80)]),
    semantics: Semantics::Wait(|x| commit(x, Begun::Few)),
    ..UNSUPPORTED_FORM
};

/// `cp.async.wait_group N`.
pub const WAIT_GROUP: Form = Form {
    opcode: "cp.async.wait_group",
    section: "Data Movement and Conversion Instructions: cp.async.wait_group / cp.async.wait_all",
    src: &[operand("N", Kind::Imm, WORD)],
    semantics: Semantics::Wait(|x| wait(x, Begun::Few)),
    ..COMMIT_GROUP
};

/// `cp.async.wait_all`.
pub const WAIT_ALL: Form = Form { opcode: "cp.async.wait_all", src: &[], ..WAIT_GROUP };

/// `cp.async.mbarrier.arrive{.noinc}{.shared}.b64 [addr]`.
pub const MBARRIER_ARRIVE: Form = Form {
    opcode: "cp.async.mbarrier.arrive",
    words: &[".b64"],
    section: "Parallel Synchronization and Communication Instructions: cp.async.mbarrier.arrive",
    qualifiers: &[maybe(Role::Flag, &[choice(".noinc", Value::Flag)]), maybe(Role::Space, &[SHARED, SHARED_CTA])],
    src: &[address("addr").in_bits(32)],
    semantics: Semantics::Timed {
        now: |x| {
            // Without `.noinc` one more arrival is expected in this phase, and it has come.
            if x.u.has(Role::Flag) {
                mbarrier::step(x, Val::Imm(u64::MAX, Ty::B64));
            }
        },
        late: |x| {
            let (space, expects) = (shared_space(x.u), !x.u.has(Role::Flag));
            let at = shared_address_of(x, 0);
            transfer(x, Transfer::Arrive { space, expects }, vec![at]);
        },
    },
    ..COMMIT_GROUP
};

/// A copy as one op: comes late where launches ask for that, else at once. `read`: how many bytes are read, if not all.
fn few(x: &mut Cx<'_, '_>, read: Option<Val>) {
    let bytes = all_bytes(x).bytes();
    let src = vec![address_of(x, 0), address_of(x, 1), read.unwrap_or(Val::Imm(bytes.into(), Ty::B32))];
    transfer(x, Transfer::Few { bytes: u8::try_from(bytes).unwrap_or(16) }, src);
}

fn copy_all(x: &mut Cx<'_, '_>) {
    let (access, address) = (all_bytes(x), x.addr(1));
    let read = x.b.load(access, address);
    write(x, access, &read);
}

/// The access of all bytes, in words, as a load.
fn all_bytes(x: &Cx<'_, '_>) -> Access {
    let count = match x.src(2) {
        Val::Imm(16, _) => 4,
        Val::Imm(8, _) => 2,
        Val::Imm(..) | Val::Reg(_) => 1,
    };
    Access::weak_vector(StateSpace::Global, 32, count)
}

/// Writes what was read to the destination.
fn write(x: &mut Cx<'_, '_>, access: Access, words: &[Val]) {
    let address = x.addr(0);
    x.b.store(Access { space: StateSpace::Shared, ..access }, address, words);
}

/// Loads where a condition holds; elsewhere the result is zero.
fn load_where(x: &mut Cx<'_, '_>, access: Access, address: Addr, condition: Val) -> Vec<Val> {
    let read = where_too(x, condition, |x| x.b.load(access, address));
    read.into_iter()
        .map(|v| {
            let zero = Val::Imm(0, x.b.ty(v));
            x.b.select(condition, v, zero)
        })
        .collect()
}

/// Does something in those lanes of the statement where a condition holds too.
fn where_too<T>(x: &mut Cx<'_, '_>, condition: Val, run: impl FnOnce(&mut Cx<'_, '_>) -> T) -> T {
    let outer = x.b.guard;
    x.b.guard = Some(outer.map_or(condition, |g| x.b.and(g, condition)));
    let done = run(x);
    x.b.guard = outer;
    done
}

/// Nothing after the bytes that are to be read is touched. Compilers ask for all or for none by a register: where some are wanted, they come as those of a late
/// copy do, over zeros.
fn copy_sized(x: &mut Cx<'_, '_>) {
    let access = all_bytes(x);
    let (source, size) = (x.addr(1), x.src(3));
    let n_bytes = 4 * u64::from(access.count);
    if matches!(size, Val::Imm(n, _) if n >= n_bytes) {
        return copy_all(x);
    }
    let all = x.b.pure(Pure::ICmp(Cmp::Ge, Int::U32), Ty::P, &[size, Val::Imm(n_bytes, Ty::B32)]);
    let words = load_where(x, access, source, all);
    write(x, access, &words);
    // Of more than all of them it makes the same as above, and where compilers choose between none and all it is known not to hold.
    let rest = x.b.pure(Pure::And(Ty::B32), Ty::B32, &[size, Val::Imm(n_bytes - 1, Ty::B32)]);
    let some = x.b.pure(Pure::ICmp(Cmp::Ne, Int::U32), Ty::P, &[rest, Val::Imm(0, Ty::B32)]);
    where_too(x, some, |x| few(x, Some(size)));
}
