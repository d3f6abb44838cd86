//! `tcgen05`: allocation of tensor memory, and what moves data to and from it.

use handloom_ir::simt::Begun;
use handloom_ir::types::ScalarType::*;

use super::ops;
use crate::data_movement::memory::SHARED_CTA;
use crate::data_movement::transfer::wait;
use crate::form::*;
use crate::target::{Needs, TargetGate, Version};
use crate::words::*;

const ALLOC_SECTION: &str =
    "Tensorcore 5th Generation Instructions: tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit";
/// Gate of all of `tcgen05`.
pub const NEEDS: Needs = Needs::on(8, 6, ARCH_100);
const ONLY_ARCH: &[TargetGate] =
    &[TargetGate::Arch(100), TargetGate::Arch(101), TargetGate::Arch(103), TargetGate::Arch(110)];
const RED: &[TargetGate] =
    &[TargetGate::Arch(101), TargetGate::Family(103, Version::new(8, 8)), TargetGate::Family(110, Version::new(9, 0))];
/// One cta, or a pair.
pub const CTA_GROUP: Group =
    must(Role::Flag2, &[choice(".cta_group::1", Value::Count(1)), choice(".cta_group::2", Value::Count(2))]);

/// `tcgen05.alloc.cta_group.sync.aligned{.shared::cta}.b32 [dst], nCols`.
pub const ALLOC: Form = Form {
    opcode: "tcgen05.alloc",
    words: &[".sync", ".aligned", ".b32"],
    section: ALLOC_SECTION,
    qualifiers: &[CTA_GROUP, maybe(Role::Space, &[SHARED_CTA])],
    src: &[address("dst").in_bits(32), val("nCols", WORD)],
    needs: NEEDS,
    semantics: Semantics::Attempt(ops::alloc),
    ..UNSUPPORTED_FORM
};

/// `tcgen05.dealloc.cta_group.sync.aligned.b32 taddr, nCols`.
pub const DEALLOC: Form = Form {
    opcode: "tcgen05.dealloc",
    qualifiers: &[CTA_GROUP],
    src: &[val("taddr", WORD), val("nCols", WORD)],
    semantics: Semantics::Warp(ops::dealloc),
    ..ALLOC
};

/// `tcgen05.relinquish_alloc_permit.cta_group.sync.aligned`.
pub const RELINQUISH: Form = Form {
    opcode: "tcgen05.relinquish_alloc_permit",
    words: &[".sync", ".aligned"],
    qualifiers: &[CTA_GROUP],
    src: &[],
    semantics: Semantics::Warp(ops::relinquish),
    ..ALLOC
};

const SHAPE: Group = must(
    Role::Shape,
    &[
        choice(".16x64b", Value::Count(1)),
        choice(".16x128b", Value::Count(2)),
        choice(".16x256b", Value::Count(4)),
        choice(".32x32b", Value::Count(1)),
    ],
);
const NUM: Group = must(
    Role::Num,
    &[
        choice(".x1", Value::Count(1)),
        choice(".x2", Value::Count(2)),
        choice(".x4", Value::Count(4)),
        choice(".x8", Value::Count(8)),
        choice(".x16", Value::Count(16)),
        choice(".x32", Value::Count(32)),
        choice(".x64", Value::Count(64)),
        choice(".x128", Value::Count(128)),
    ],
);
const PACK: Group = maybe(Role::Flag, &[choice(".pack::16b", Value::Flag)]);
const UNPACK: Group = maybe(Role::Flag, &[choice(".unpack::16b", Value::Flag)]);
const R: Operand = Operand {
    name: "r",
    kind: Kind::Vector,
    is: Is::Fixed(B32),
    count: Count::Every(|u| u.count(Role::Num).saturating_mul(u.count(Role::Shape))),
    optional: false,
    when: When::Always,
};
const SPLIT: Operand = operand("immHalfSplitoff", Kind::Imm, WORD);

/// `tcgen05.ld.sync.aligned.shape.num{.pack}.b32 r, [taddr]`.
pub const LD: Form = Form {
    opcode: "tcgen05.ld",
    words: &[".sync", ".aligned", ".b32"],
    section: "Tensorcore 5th Generation Instructions: tcgen05.ld",
    qualifiers: &[SHAPE, NUM, PACK],
    dst: &[R],
    src: &[tmem("taddr")],
    needs: NEEDS,
    legal: at_most_128,
    semantics: Semantics::Warp(ops::load),
};

/// `tcgen05.ld.sync.aligned.16x32bx2.num{.pack}.b32 r, [taddr], immHalfSplitoff`.
pub const LD_SPLIT: Form = Form {
    words: &[".sync", ".aligned", ".b32", ".16x32bx2"],
    qualifiers: &[NUM, PACK],
    src: &[tmem("taddr"), SPLIT],
    ..LD
};

const RED_OP: Group = must(Role::Op, &[choice(".min", Value::Flag), choice(".max", Value::Flag)]);
const RED_NEEDS: Needs = Needs::on(8, 8, RED);
const RED_R: Operand = Operand { is: Is::Like(Role::Type), ..R };

/// `tcgen05.ld.red.sync.aligned.32x32b.num.redOp{.abs}{.NaN}.f32 r, redval, [taddr]`.
pub const LD_RED_FLOAT: Form = Form {
    opcode: "tcgen05.ld.red",
    words: &[".sync", ".aligned", ".32x32b"],
    qualifiers: &[
        NUM,
        RED_OP,
        maybe(Role::XorSign, &[choice(".abs", Value::Flag)]),
        maybe(Role::Nan, &[choice(".NaN", Value::Flag)]),
        must(Role::Type, ONLY_F32),
    ],
    dst: &[RED_R, reg("redval", TYPE)],
    needs: RED_NEEDS,
    legal: not_one,
    semantics: Semantics::Warp(ops::reduce_floats),
    ..LD
};

/// The same of shape `.16x32bx2`.
pub const LD_RED_FLOAT_SPLIT: Form =
    Form { words: &[".sync", ".aligned", ".16x32bx2"], src: &[tmem("taddr"), SPLIT], ..LD_RED_FLOAT };

/// `tcgen05.ld.red.sync.aligned.32x32b.num.redOp.type r, redval, [taddr]` of integers.
pub const LD_RED_INT: Form = Form {
    qualifiers: &[NUM, RED_OP, must(Role::Type, INTS_32)],
    semantics: Semantics::Warp(ops::reduce_integers),
    ..LD_RED_FLOAT
};

/// The same of shape `.16x32bx2`.
pub const LD_RED_INT_SPLIT: Form =
    Form { words: &[".sync", ".aligned", ".16x32bx2"], src: &[tmem("taddr"), SPLIT], ..LD_RED_INT };

/// `tcgen05.st.sync.aligned.shape.num{.unpack}.b32 [taddr], r`.
pub const ST: Form = Form {
    opcode: "tcgen05.st",
    section: "Tensorcore 5th Generation Instructions: tcgen05.st",
    qualifiers: &[SHAPE, NUM, UNPACK],
    dst: &[],
    src: &[tmem("taddr"), R],
    semantics: Semantics::Warp(ops::store),
    ..LD
};

/// `tcgen05.st.sync.aligned.16x32bx2.num{.unpack}.b32 [taddr], immHalfSplitoff, r`.
pub const ST_SPLIT: Form = Form {
    words: &[".sync", ".aligned", ".b32", ".16x32bx2"],
    qualifiers: &[NUM, UNPACK],
    src: &[tmem("taddr"), SPLIT, R],
    ..ST
};

/// `tcgen05.wait::ld.sync.aligned`.
pub const WAIT_LD: Form = Form {
    opcode: "tcgen05.wait::ld",
    words: &[".sync", ".aligned"],
    section: "Tensorcore 5th Generation Instructions: tcgen05.wait",
    needs: NEEDS,
    semantics: Semantics::Hint,
    ..UNSUPPORTED_FORM
};

/// `tcgen05.wait::st.sync.aligned`.
pub const WAIT_ST: Form =
    Form { opcode: "tcgen05.wait::st", semantics: Semantics::Wait(|x| wait(x, Begun::TensorStores)), ..WAIT_LD };

/// `tcgen05.fence::before_thread_sync`.
pub const FENCE_BEFORE: Form = Form {
    opcode: "tcgen05.fence::before_thread_sync",
    words: &[],
    section: "TensorCore 5th Generation Instructions: tcgen05.fence",
    ..WAIT_LD
};

/// `tcgen05.fence::after_thread_sync`.
pub const FENCE_AFTER: Form = Form { opcode: "tcgen05.fence::after_thread_sync", ..FENCE_BEFORE };

/// `tcgen05.cp.cta_group.shape{.multicast}{.dst_fmt.src_fmt} [taddr], s-desc`.
pub const CP: Form = Form {
    opcode: "tcgen05.cp",
    section: "Tensorcore 5th Generation Instructions: tcgen05.cp",
    qualifiers: &[
        CTA_GROUP,
        must(
            Role::Shape,
            &[
                choice(".128x256b", Value::Flag),
                choice(".4x256b", Value::Flag),
                choice(".128x128b", Value::Flag),
                choice(".64x128b", Value::Flag),
                choice(".32x128b", Value::Flag),
            ],
        ),
        maybe(
            Role::Mode,
            &[
                choice(".warpx2::02_13", Value::Flag),
                choice(".warpx2::01_23", Value::Flag),
                choice(".warpx4", Value::Flag),
            ],
        ),
        opt_seq(Role::Type, &[choice(".b8x16", Value::Flag)]),
        opt_seq(Role::Type2, &[choice(".b6x16_p32", Value::Flag), choice(".b4x16_p64", Value::Flag)]),
    ],
    src: &[tmem("taddr"), val("s-desc", Is::Descriptor(U64))],
    needs: NEEDS,
    legal: copy,
    semantics: Semantics::Warp(ops::copy),
    ..UNSUPPORTED_FORM
};

/// `tcgen05.shift.cta_group.down [taddr]`.
pub const SHIFT: Form = Form {
    opcode: "tcgen05.shift",
    words: &[".down"],
    section: "Tensorcore 5th Generation Instructions: tcgen05.shift",
    qualifiers: &[CTA_GROUP],
    src: &[tmem("taddr")],
    needs: Needs::on(8, 6, ONLY_ARCH),
    legal: no_variable,
    semantics: Semantics::Warp(ops::shift),
    ..UNSUPPORTED_FORM
};

/// `tcgen05.commit.cta_group.mbarrier::arrive::one{.shared::cluster}.b64 [mbar]`.
pub const COMMIT: Form = Form {
    opcode: "tcgen05.commit",
    words: &[".mbarrier::arrive::one", ".b64"],
    section: "TensorCore 5th Generation Instructions: tcgen05.commit",
    qualifiers: &[
        CTA_GROUP,
        maybe(Role::Space, &[crate::data_movement::memory::SHARED_CLUSTER]),
        maybe(Role::Flag, &[choice(".multicast::cluster", Value::Flag)]),
    ],
    src: &[address("mbar").in_bits(32), val("ctaMask", Is::Descriptor(U16)).with(Role::Flag)],
    needs: NEEDS,
    semantics: Semantics::Warp(ops::commit),
    ..UNSUPPORTED_FORM
};

/// Variables are not in tensor memory.
pub fn no_variable(u: &Use) -> Result<Needs, Reason> {
    match u.named_space {
        Some(_) => Err(Reason::new("the address of a variable, and tensor memory has none").help(
            "`tcgen05.alloc` writes the address of tensor memory to shared memory: load it from there into a register",
        )),
        None => Ok(Needs::NONE),
    }
}

fn at_most_128(u: &Use) -> Result<Needs, Reason> {
    no_variable(u)?;
    if u32::from(u.count(Role::Num)) * u32::from(u.count(Role::Shape)) > 128 {
        return Err(Reason::new("more than 128 registers").at(u.text(Role::Num)));
    }
    Ok(Needs::NONE)
}

fn not_one(u: &Use) -> Result<Needs, Reason> {
    no_variable(u)?;
    if u.count(Role::Num) == 1 {
        return Err(Reason::new("a reduction takes two or more").at(".x1"));
    }
    Ok(Needs::NONE)
}

fn copy(u: &Use) -> Result<Needs, Reason> {
    no_variable(u)?;
    let (shape, mode) = (u.text(Role::Shape), u.text(Role::Mode));
    let fits = match shape {
        ".64x128b" => mode.starts_with(".warpx2"),
        ".32x128b" => mode == ".warpx4",
        _ => mode.is_empty(),
    };
    if !fits {
        let word = if mode.is_empty() { shape } else { mode };
        return Err(Reason::new(format!("`{shape}` and `{mode}` do not go together"))
            .at(word)
            .help("`.64x128b` goes with `.warpx2::…`, `.32x128b` with `.warpx4`, and no other shape with either"));
    }
    if u.has(Role::Type) != u.has(Role::Type2) {
        return Err(Reason::new("a format of the destination comes with one of the source"));
    }
    Ok(Needs::NONE)
}
