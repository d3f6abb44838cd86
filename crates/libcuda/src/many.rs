//! Batches of copies, and what is said of managed memory.

use std::sync::Arc;

use handloom_driver::copy::{Copy, Region, Said, Size};
use handloom_driver::hints::{Place, Range};
use handloom_driver::stream::{self, Null, Stream};
use handloom_driver::{Code, Result, context, process};

use crate::abi::{CopyAttributes, CopyOp, Operand, PlaceWords};
use crate::memories::managed;
use crate::ptr::{Addr, In, Out};

/// When the source is read: in the order of the stream, or before the call returns, or at any time.
const DURING_THE_CALL: u32 = 2;

/// A copy of a batch, and when its source is read.
type One = (Option<Copy>, u32);

fn order(number: u32, flags: u32) -> Result<u32> {
    if matches!(number, 1..=3) && flags <= 1 { Ok(number) } else { Err(Code::INVALID_VALUE) }
}

/// Does copies that were found to be right: all of them, since the first mistake was looked for before.
fn submit(null: Null, at: u64, copies: Vec<One>) -> Result {
    let (ctx, stream) = stream::by_handle(at, null)?;
    for (copy, order) in copies {
        let Some(copy) = copy else { continue };
        if order == DURING_THE_CALL && !stream.is_capturing() {
            copy.now(&ctx, &stream)?;
        } else {
            copy.later(&ctx, &stream)?;
        }
    }
    Ok(())
}

/// A batch goes to a stream that the program made, or that of the thread.
fn own_stream(null: Null, at: u64) -> Result<Arc<Stream>> {
    let (_, stream) = stream::by_handle(at, null)?;
    if stream.is_legacy() { Err(Code::INVALID_VALUE) } else { Ok(stream) }
}

/// Goes through a batch, and notes which one was wrong; all ones if that is not the fault of one.
fn each(n: u64, fail: Out<u64>, mut one: impl FnMut(usize) -> Result<One>) -> Result<Vec<One>> {
    fail.set_any(u64::MAX);
    let n = usize::try_from(n).ok().filter(|n| *n > 0).ok_or(Code::INVALID_VALUE)?;
    (0..n).map(|i| one(i).inspect_err(|_| fail.set_any(i as u64))).collect()
}

/// For each element of a batch the number of what belongs to it, by the first element of each.
fn shares(firsts: In<u64>, many: u64, n: u64) -> Result<Vec<usize>> {
    let (many, n) = (usize::try_from(many), usize::try_from(n));
    let (Ok(many), Ok(n)) = (many, n) else { return Err(Code::INVALID_VALUE) };
    if many == 0 || many > n {
        return Err(Code::INVALID_VALUE);
    }
    let firsts = firsts.array(many)?;
    let is_rising = firsts.windows(2).all(|w| w[0] < w[1]);
    if firsts[0] != 0 || !is_rising || firsts[many - 1] >= n as u64 {
        return Err(Code::INVALID_VALUE);
    }
    Ok((0..n as u64).map(|i| firsts.partition_point(|first| *first <= i) - 1).collect())
}

#[expect(clippy::too_many_arguments, reason = "the interface has so many")]
pub(crate) fn copies(
    null: Null,
    to: Out<u64>,
    from: Out<u64>,
    sizes: Out<u64>,
    n: u64,
    attributes: Out<CopyAttributes>,
    firsts: Out<u64>,
    many: u64,
    fail: Out<u64>,
    at: u64,
) -> Result {
    fail.set_any(u64::MAX);
    own_stream(null, at)?;
    let of = shares(In::of(firsts.address()), many, n)?;
    let (to, from, sizes) = (In::of(to.address()), In::of(from.address()), In::<u64>::of(sizes.address()));
    let attributes = In::<CopyAttributes>::of(attributes.address());
    let all = each(n, fail, |i| {
        let said = attributes.at(of[i])?;
        let line = |address: u64| (Said::Any, Region::line(address));
        let copy = Copy::new(line(to.at(i)?), line(from.at(i)?), Size::line(sizes.at(i)?))?;
        Ok((copy, order(said.order, said.flags)?))
    })?;
    submit(null, at, all)
}

#[expect(clippy::too_many_arguments, reason = "the interface has so many")]
pub(crate) fn copies_v2(
    null: Null,
    to: Out<u64>,
    from: Out<u64>,
    sizes: Out<u64>,
    n: u64,
    attributes: Out<CopyAttributes>,
    firsts: Out<u64>,
    many: u64,
    at: u64,
) -> Result {
    copies(null, to, from, sizes, n, attributes, firsts, many, Out::null(), at)
}

pub(crate) fn copy(null: Null, to: u64, from: u64, bytes: u64, said: Out<CopyAttributes>, at: u64) -> Result {
    let said = said.get()?;
    let line = |address: u64| (Said::Any, Region::line(address));
    let copy = Copy::new(line(to), line(from), Size::line(bytes))?;
    submit(null, at, vec![(copy, order(said.order, said.flags)?)])
}

fn side(operand: &Operand, size: Size) -> Result<(Said, Region)> {
    const POINTER: u32 = 1;
    const ARRAY: u32 = 2;
    match operand.kind {
        POINTER => {}
        ARRAY => return Err(Code::NOT_SUPPORTED),
        _ => return Err(Code::INVALID_VALUE),
    }
    let [address, pitch, rows, _] = operand.words;
    let pitch = if pitch == 0 { size.width } else { pitch };
    let rows = if rows == 0 { size.height } else { rows };
    if pitch < size.width || rows < size.height {
        return Err(Code::INVALID_VALUE);
    }
    let slice = pitch.checked_mul(rows).ok_or(Code::INVALID_VALUE)?;
    Ok((Said::Any, Region { address, pitch, slice }))
}

fn box_of(op: &CopyOp) -> Result<One> {
    let [width, height, depth] = op.extent;
    if width == 0 || height == 0 || depth == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let size = Size { width, height, depth };
    Ok((Copy::new(side(&op.to, size)?, side(&op.from, size)?, size)?, order(op.order, op.flags)?))
}

pub(crate) fn boxes(null: Null, n: u64, list: Out<CopyOp>, fail: Out<u64>, flags: u64, at: u64) -> Result {
    fail.set_any(u64::MAX);
    own_stream(null, at)?;
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let list = In::<CopyOp>::of(list.address());
    let all = each(n, fail, |i| box_of(&list.at(i)?))?;
    submit(null, at, all)
}

pub(crate) fn boxes_v2(null: Null, n: u64, list: Out<CopyOp>, flags: u64, at: u64) -> Result {
    boxes(null, n, list, Out::null(), flags, at)
}

pub(crate) fn one_box(null: Null, op: Out<CopyOp>, flags: u64, at: u64) -> Result {
    let op = op.get()?;
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    submit(null, at, vec![box_of(&op)?])
}

/// A place that the program means: a device that there is, or the host.
pub(crate) fn place(kind: u32, id: i32) -> Result<Place> {
    match kind {
        1 => process()?.gpu(id).map(|_| (kind, id)),
        2 | 4 => Ok((2, 0)),
        3 => Ok((kind, id)),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// The number of a device, or the host as the first calls know it.
pub(crate) fn place_of_number(number: i32) -> Result<Place> {
    const HOST: i32 = -1;
    if number == HOST { Ok((2, 0)) } else { place(1, number) }
}

#[expect(clippy::too_many_arguments, reason = "the interface has so many")]
pub(crate) fn prefetches(
    null: Null,
    addresses: Out<u64>,
    sizes: Out<u64>,
    n: u64,
    places: Out<PlaceWords>,
    firsts: Out<u64>,
    many: u64,
    flags: u64,
    at: u64,
) -> Result {
    own_stream(null, at)?;
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let of = shares(In::of(firsts.address()), many, n)?;
    let (addresses, sizes) = (In::<u64>::of(addresses.address()), In::<u64>::of(sizes.address()));
    let places = In::<PlaceWords>::of(places.address());
    let mut all = Vec::new();
    for (i, share) in of.iter().enumerate() {
        let (address, bytes) = (addresses.at(i)?, sizes.at(i)?);
        let PlaceWords { kind, id } = places.at(*share)?;
        all.push((managed(address, bytes)?, place(kind, id)?));
    }
    let process = process()?;
    all.into_iter().for_each(|(range, place)| process.hints.prefetched(range, place));
    Ok(())
}

/// What is discarded keeps its bytes: they may be anything.
pub(crate) fn discards(null: Null, addresses: Out<u64>, sizes: Out<u64>, n: u64, flags: u64, at: u64) -> Result {
    own_stream(null, at)?;
    let n = usize::try_from(n).ok().filter(|n| *n > 0 && flags == 0).ok_or(Code::INVALID_VALUE)?;
    let (addresses, sizes) = (In::<u64>::of(addresses.address()), In::<u64>::of(sizes.address()));
    (0..n).try_for_each(|i| managed(addresses.at(i)?, sizes.at(i)?).map(drop))
}

/// An attribute of a range, written to so many bytes.
fn write(data: Addr, size: u64, number: u32, range: Range) -> Result {
    const NO_DEVICE: i32 = -2;
    const NOWHERE: Place = (0, 0);
    if data.0 == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let hints = &process()?.hints;
    // The host is a device of this number to the first calls.
    let device = |place: Option<Place>| match place {
        Some((1, id)) => id,
        Some((2, _)) => -1,
        Some(_) | None => NO_DEVICE,
    };
    let word = match number {
        1 => i32::from(hints.is_mostly_read(range)),
        2 => device(hints.preferred_place(range)),
        3 => {
            let n = usize::try_from(size / 4).map_err(|_| Code::INVALID_VALUE)?;
            if n == 0 || !size.is_multiple_of(4) {
                return Err(Code::INVALID_VALUE);
            }
            let users = hints.users(range);
            for i in 0..n {
                data.out::<i32>().set_at(i, device(users.get(i).copied()));
            }
            return Ok(());
        }
        4 => device(hints.prefetched_to(range)),
        5 => hints.preferred_place(range).unwrap_or(NOWHERE).0.cast_signed(),
        6 => hints.preferred_place(range).unwrap_or(NOWHERE).1,
        7 => hints.prefetched_to(range).unwrap_or(NOWHERE).0.cast_signed(),
        8 => hints.prefetched_to(range).unwrap_or(NOWHERE).1,
        _ => return Err(Code::INVALID_VALUE),
    };
    if size == 4 { data.out().set(word) } else { Err(Code::INVALID_VALUE) }
}

pub(crate) fn range_attribute(data: Addr, size: u64, number: u32, address: u64, bytes: u64) -> Result {
    context::current()?;
    write(data, size, number, managed(address, bytes)?)
}

pub(crate) fn range_attributes(
    data: Out<u64>,
    sizes: Out<u64>,
    numbers: Out<u32>,
    n: u64,
    address: u64,
    bytes: u64,
) -> Result {
    context::current()?;
    let range = managed(address, bytes)?;
    let n = usize::try_from(n).ok().filter(|n| *n > 0).ok_or(Code::INVALID_VALUE)?;
    let (data, sizes) = (In::<u64>::of(data.address()), In::<u64>::of(sizes.address()));
    let numbers = In::<u32>::of(numbers.address());
    (0..n).try_for_each(|i| write(Addr(data.at(i)?), sizes.at(i)?, numbers.at(i)?, range))
}
