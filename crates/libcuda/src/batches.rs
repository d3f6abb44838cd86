//! Words that streams write and wait for, alone and in batches.

use std::sync::Arc;

use handloom_driver::batch::{MemOp, Test, Word};
use handloom_driver::stream::{self, Null};
use handloom_driver::work::Op;
use handloom_driver::{Code, Result};

use crate::abi::BatchOp;
use crate::ptr::{In, Out};

/// A flush of writes that arrive from elsewhere, which needs hardware that there is not.
const FLUSH: u32 = 1 << 30;

/// The most operations of a batch.
const MOST: u32 = 256;

fn wait_op(address: u64, is_wide: bool, value: u64, flags: u32) -> Result<MemOp> {
    let test = Test::of(flags & !FLUSH)?;
    if flags & FLUSH != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    Ok(MemOp::Wait(Word::new(address, is_wide, value)?, test))
}

fn write_op(address: u64, is_wide: bool, value: u64, flags: u32) -> Result<MemOp> {
    if flags > 1 { Err(Code::INVALID_VALUE) } else { Ok(MemOp::Write(Word::new(address, is_wide, value)?)) }
}

/// What a list of operations asks for. The first version of the interface knows no barrier.
pub(crate) fn batch(list: In<BatchOp>, count: u32, knows_barriers: bool) -> Result<Op> {
    if count == 0 || count > MOST {
        return Err(Code::INVALID_VALUE);
    }
    let all = list.array(count as usize)?;
    let op = |p: &BatchOp| match p.operation {
        1 | 4 => wait_op(p.address, p.operation == 4, p.value, p.flags),
        2 | 5 => write_op(p.address, p.operation == 5, p.value, p.flags),
        6 if knows_barriers && p.other_flags <= 1 => Ok(MemOp::Barrier),
        3 | 8 => Err(Code::NOT_SUPPORTED),
        _ => Err(Code::INVALID_VALUE),
    };
    let ops: Result<Vec<MemOp>> = all.iter().map(op).collect();
    Ok(Op::Batch(Arc::new(ops?)))
}

/// The list that a batch was made of.
pub(crate) fn described(ops: &[MemOp]) -> Vec<BatchOp> {
    let empty = BatchOp { operation: 6, other_flags: 0, address: 0, value: 0, flags: 0, alias: 0, pad: 0 };
    let of = |operation: u32, word: &Word, flags: u32| BatchOp {
        operation: if word.is_wide { operation + 3 } else { operation },
        address: word.address,
        value: word.value,
        flags,
        ..empty
    };
    let one = |op: &MemOp| match op {
        MemOp::Wait(word, test) => of(1, word, test.number()),
        MemOp::Write(word) => of(2, word, 0),
        MemOp::Barrier => empty,
    };
    ops.iter().map(one).collect()
}

fn submit(null: Null, at: u64, op: impl FnOnce() -> Result<Op>) -> Result {
    let (ctx, stream) = stream::by_handle(at, null)?;
    stream::submit(&ctx, &stream, op()?)
}

fn one(null: Null, at: u64, op: impl FnOnce() -> Result<MemOp>) -> Result {
    submit(null, at, || Ok(Op::Batch(Arc::new(vec![op()?]))))
}

pub(crate) fn wait_32(null: Null, at: u64, address: u64, value: u32, flags: u32) -> Result {
    one(null, at, || wait_op(address, false, value.into(), flags))
}

pub(crate) fn wait_64(null: Null, at: u64, address: u64, value: u64, flags: u32) -> Result {
    one(null, at, || wait_op(address, true, value, flags))
}

pub(crate) fn write_32(null: Null, at: u64, address: u64, value: u32, flags: u32) -> Result {
    one(null, at, || write_op(address, false, value.into(), flags))
}

pub(crate) fn write_64(null: Null, at: u64, address: u64, value: u64, flags: u32) -> Result {
    one(null, at, || write_op(address, true, value, flags))
}

fn list(null: Null, at: u64, count: u32, list: Out<BatchOp>, flags: u32, knows_barriers: bool) -> Result {
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    submit(null, at, || batch(In::of(list.address()), count, knows_barriers))
}

pub(crate) fn batch_v1(null: Null, at: u64, count: u32, ops: Out<BatchOp>, flags: u32) -> Result {
    list(null, at, count, ops, flags, false)
}

pub(crate) fn batch_v2(null: Null, at: u64, count: u32, ops: Out<BatchOp>, flags: u32) -> Result {
    list(null, at, count, ops, flags, true)
}
