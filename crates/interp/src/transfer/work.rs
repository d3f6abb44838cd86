//! What each transfer is.

use handloom_audit::Proxy;
use handloom_ir::mbarrier;
use handloom_ir::simt::{Begun, Bytes, Mask, Transfer, Values, Wait};
use handloom_ir::trap::AccessKind;
use handloom_ir::types::{AtomOp, ScalarType, StateSpace};

use super::reach::*;
use super::tensor::{self, Boxes};
use crate::numbers::low32;

/// Most bytes of `st.bulk`.
const MOST_ZEROS: u64 = 1 << 24;

/// A transfer that may be performed.
#[derive(Clone, PartialEq, Debug)]
pub struct Work {
    pub(crate) what: What,
    pub(crate) barriers: Told,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum What {
    Nothing,
    /// Says when the results of others come.
    When(When),
    /// A copy of the first bytes, and zeros.
    Few {
        from: u64,
        to: u64,
        bytes: u32,
        read: u32,
    },
    /// Bytes that were read.
    Held {
        to: Vec<u64>,
        bytes: Vec<u8>,
        mask: u16,
        reduce: Option<(AtomOp, ScalarType)>,
    },
    /// A box that was read.
    HeldBox(Box<Boxes>, Vec<Vec<u8>>),
    Zeros {
        at: u64,
        bytes: u64,
    },
    Values {
        to: Vec<u64>,
        bytes: Vec<u8>,
        reduce: Option<(AtomOp, ScalarType)>,
    },
    Bytes {
        from: u64,
        to: Vec<u64>,
        bytes: u32,
        /// Bit i: byte i of each 16.
        mask: u16,
        reduce: Option<(AtomOp, ScalarType)>,
        /// It is never late.
        now: bool,
    },
    Tensor(Box<Boxes>),
}

/// How many bytes `discard` gives up, a multiple of which its address is.
pub(crate) const DISCARDED: u32 = 128;

/// Bytes from a generic address on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

/// What says when results come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    Commit(Begun),
    Wait(Wait),
    /// A barrier by generic address, and whether it expects one arrival more.
    Arrive(u64, bool),
    /// A barrier, and a word with the phase that is asked about.
    Ask(u64, u64),
}

/// Checks a transfer. `src`: its sources without the guard.
///
/// # Errors
/// The first rule that it breaks.
pub fn prepare(op: Transfer, src: &[u64], reach: &mut dyn Reach) -> Result<Work, Fault> {
    match op {
        Transfer::Values(v) => values(v, src, reach),
        Transfer::Zeros(space) => zeros(space, src, reach),
        Transfer::Bytes(b) => bytes(b, src, reach),
        Transfer::Prefetch => {
            let bytes = multiple_of_16(low32(src[1]))?;
            let part = Part { kind: AccessKind::Read, space: StateSpace::Global, addr: src[0], bytes, align: 16 };
            if bytes != 0 {
                find(reach, part)?;
            }
            Ok(Work { what: What::Nothing, barriers: vec![] })
        }
        Transfer::Few { bytes } => few(bytes, src, reach),
        Transfer::Commit(of) => Ok(Work::when(When::Commit(of))),
        Transfer::Wait(wait) => Ok(Work::when(When::Wait(wait))),
        Transfer::Arrive { space, expects } => Ok(Work::when(When::Arrive(barrier(reach, space, src[0])?, expects))),
        Transfer::Discard(space) => {
            let part = Part { kind: AccessKind::Write, space, addr: src[0], bytes: DISCARDED, align: DISCARDED };
            find_in(reach, part, &[StateSpace::Global])?;
            Ok(Work::nothing())
        }
        Transfer::Inval(_) | Transfer::Open(_) | Transfer::Proxies(_) => Ok(Work::nothing()),
        // The access that follows says what is wrong with an address.
        Transfer::Ask(space) => {
            Ok(barrier(reach, space, src[0]).map_or(Work::nothing(), |at| Work::when(When::Ask(at, src[1]))))
        }
        Transfer::Tensor(t) => {
            let (boxes, barriers) = tensor::prepare(t, src, reach)?;
            let what = boxes.map_or(What::Nothing, |boxes| What::Tensor(Box::new(boxes)));
            Ok(Work { what, barriers })
        }
    }
}

impl Work {
    fn nothing() -> Work {
        Work { what: What::Nothing, barriers: vec![] }
    }

    fn when(when: When) -> Work {
        Work { what: What::When(when), barriers: vec![] }
    }

    /// The barrier that is asked next, and the word with the phase.
    pub(crate) fn asks(&self) -> Option<(u64, u64)> {
        if let What::When(When::Ask(at, word)) = self.what { Some((at, word)) } else { None }
    }

    /// By which way it reaches memory.
    pub(crate) fn proxy(&self) -> Proxy {
        match self.what {
            What::Bytes { now: false, .. } | What::Held { .. } | What::HeldBox(..) | What::Tensor(_) => Proxy::Async,
            What::Few { .. } | What::Values { .. } => Proxy::Unsaid,
            What::Bytes { now: true, .. } | What::Zeros { .. } | What::Nothing | What::When(_) => Proxy::Generic,
        }
    }

    /// Whether it copies a tensor map for those who read it as one.
    pub(crate) fn is_map(&self) -> bool {
        matches!(self.what, What::Bytes { now: true, .. })
    }

    /// For each place that it goes to: the barrier that is told, what it writes but does not reduce, what it reads; as far as these are single ranges.
    pub(crate) fn footprint(&self) -> Vec<(Option<u64>, Option<Range>, Option<Range>)> {
        let barrier = |i: usize| self.barriers.get(i).map(|(at, _)| *at);
        let range = |at: u64, bytes: u64| Some(Range { at, bytes }).filter(|_| bytes != 0);
        let copies = |to: &[u64], bytes: u64, reduces: bool, from: Option<Range>| {
            let write = |at: u64| if reduces { None } else { range(at, bytes) };
            to.iter().enumerate().map(|(i, at)| (barrier(i), write(*at), from)).collect()
        };
        match &self.what {
            What::Few { from, to, bytes, read } => {
                vec![(None, range(*to, (*bytes).into()), range(*from, (*read).into()))]
            }
            What::Values { to, bytes, reduce } => copies(to, bytes.len() as u64, reduce.is_some(), None),
            What::Bytes { from, to, bytes, mask, reduce, now: false } => {
                let from = range(*from, (*bytes).into());
                copies(to, (*bytes).into(), reduce.is_some() || *mask != u16::MAX, from)
            }
            What::Tensor(boxes) => {
                let places = boxes.in_shared().into_iter().enumerate();
                let place = |(i, at): (usize, u64)| {
                    let box_at = range(at, boxes.shared_bytes());
                    if boxes.is_load() { (barrier(i), box_at, None) } else { (None, None, box_at) }
                };
                places.map(place).collect()
            }
            What::Nothing
            | What::When(_)
            | What::Held { .. }
            | What::HeldBox(..)
            | What::Zeros { .. }
            | What::Bytes { now: true, .. } => vec![],
        }
    }

    /// Whether its footprint is all that it reads and writes.
    pub(crate) fn is_whole(&self) -> bool {
        match &self.what {
            What::Few { .. } | What::Bytes { reduce: None, now: false, .. } => true,
            What::Values { .. }
            | What::Bytes { .. }
            | What::Tensor(_)
            | What::Nothing
            | What::When(_)
            | What::Held { .. }
            | What::HeldBox(..)
            | What::Zeros { .. } => false,
        }
    }

    /// Reads what is to be written.
    pub(crate) fn fetch(&mut self, reach: &mut dyn Reach) {
        reach.through(self.proxy());
        match &self.what {
            What::Bytes { from, to, bytes, mask, reduce, now: _ } => {
                let mut read = vec![0; usize::try_from(*bytes).unwrap_or(0)];
                reach.read(*from, &mut read);
                self.what = What::Held { to: to.clone(), bytes: read, mask: *mask, reduce: *reduce };
            }
            What::Tensor(boxes) => {
                let lines = boxes.read_box(reach);
                self.what = What::HeldBox(boxes.clone(), lines);
            }
            What::Nothing
            | What::When(_)
            | What::Few { .. }
            | What::Held { .. }
            | What::HeldBox(..)
            | What::Zeros { .. }
            | What::Values { .. } => {}
        }
        reach.through(Proxy::Generic);
    }

    /// Moves the bytes, then tells the barriers. Says whether anything has changed.
    pub(crate) fn perform(&self, reach: &mut dyn Reach) -> bool {
        reach.through(self.proxy());
        match &self.what {
            What::Nothing | What::When(_) => {}
            What::Few { from, to, bytes, read } => {
                let mut all = vec![0; usize::try_from(*bytes).unwrap_or(0)];
                reach.read(*from, &mut all[..usize::try_from(*read).unwrap_or(0)]);
                reach.write(*to, &all);
                reach.copied(*from, *to, (*read).into());
            }
            What::Held { to, bytes, mask, reduce } => to.iter().for_each(|at| put(reach, *at, bytes, *mask, *reduce)),
            What::HeldBox(boxes, lines) => boxes.write_box(reach, lines),
            What::Zeros { at, bytes } => {
                let zeros = [0; 4096];
                let mut done = 0;
                while done < *bytes {
                    let n = (bytes - done).min(4096);
                    reach.write(at + done, &zeros[..usize::try_from(n).unwrap_or(0)]);
                    done += n;
                }
            }
            What::Values { to, bytes, reduce } => to.iter().for_each(|at| put(reach, *at, bytes, u16::MAX, *reduce)),
            What::Bytes { from, to, bytes, mask, reduce, now: _ } => {
                let mut read = vec![0; usize::try_from(*bytes).unwrap_or(0)];
                reach.read(*from, &mut read);
                for at in to {
                    put(reach, *at, &read, *mask, *reduce);
                    if reduce.is_none() && *mask == u16::MAX {
                        reach.copied(*from, *at, (*bytes).into());
                    }
                }
            }
            What::Tensor(boxes) => boxes.perform(reach),
        }
        reach.through(Proxy::Generic);
        for (at, bytes) in &self.barriers {
            let back = (bytes << mbarrier::BYTES_BIT).wrapping_neg();
            reach.step(*at, &mut |old| mbarrier::step(old, back));
        }
        !matches!(self.what, What::Nothing)
    }
}

/// A copy to shared memory. Nothing behind the bytes that are read is touched.
fn few(bytes: u8, src: &[u64], reach: &mut dyn Reach) -> Result<Work, Fault> {
    let bytes = u32::from(bytes);
    let read = low32(src[2]).min(bytes);
    let mut from = 0;
    if read != 0 {
        let part = Part { kind: AccessKind::Read, space: StateSpace::Global, addr: src[1], bytes: read, align: bytes };
        from = find(reach, part)?;
    }
    let part = Part { kind: AccessKind::Write, space: StateSpace::Shared, addr: src[0], bytes, align: bytes };
    Ok(Work { what: What::Few { from, to: find(reach, part)?, bytes, read }, barriers: vec![] })
}

fn values(v: Values, src: &[u64], reach: &mut dyn Reach) -> Result<Work, Fault> {
    let size = v.ty.bytes();
    let total = size * u32::from(v.count);
    let bytes: Vec<u8> = src[2..]
        .iter()
        .flat_map(|element| element.to_le_bytes().into_iter().take(usize::try_from(size).unwrap_or(8)))
        .collect();
    let kind = if v.op.is_some() { AccessKind::Atomic } else { AccessKind::Write };
    let places: Vec<(StateSpace, u64, u64)> = if v.to_all {
        let is_generic = v.space == StateSpace::Generic;
        let offset = |addr: u64| if is_generic { reach.env().cluster_offset(addr) } else { addr };
        let (to, told) = (offset(src[0]), offset(src[1]));
        let all = 0..reach.env().cluster_size();
        all.map(|r| (StateSpace::SharedCluster, in_cta(r, to), in_cta(r, told))).collect()
    } else {
        vec![(v.space, src[0], src[1])]
    };
    let (mut to, mut barriers) = (Vec::new(), Vec::new());
    for (space, addr, told) in places {
        to.push(find_shared(reach, Part { kind, space, addr, bytes: total, align: total })?);
        barriers.push((barrier(reach, space, told)?, u64::from(total)));
    }
    Ok(Work { what: What::Values { to, bytes, reduce: v.op.map(|op| (op, v.ty)) }, barriers })
}

fn zeros(space: StateSpace, src: &[u64], reach: &mut dyn Reach) -> Result<Work, Fault> {
    let (addr, bytes) = (src[0], src[1]);
    if !bytes.is_multiple_of(8) {
        return Err(Fault::rule(format!("the size of {bytes} bytes is no multiple of 8")));
    }
    if bytes > MOST_ZEROS {
        return Err(Fault::rule(format!("the size of {bytes} bytes is greater than {MOST_ZEROS}")));
    }
    if bytes == 0 {
        return Ok(Work { what: What::Nothing, barriers: vec![] });
    }
    let part = Part { kind: AccessKind::Write, space, addr, bytes: low32(bytes), align: 8 };
    Ok(Work { what: What::Zeros { at: find_shared(reach, part)?, bytes }, barriers: vec![] })
}

fn bytes(b: Bytes, src: &[u64], reach: &mut dyn Reach) -> Result<Work, Fault> {
    let bytes = multiple_of_16(low32(src[2]))?;
    let kind = if b.reduce.is_some() { AccessKind::Atomic } else { AccessKind::Write };
    let told = (b.to != StateSpace::Global).then(|| src[3]);
    let mask = if b.mask == Mask::None { 0 } else { src[src.len() - 1] };
    let place = |addr: u64, rank: Option<u32>| rank.map_or(addr, |r| in_cta(r, addr));
    let targets: Vec<Option<u32>> = match b.mask {
        Mask::Ctas => ranks(mask).map(Some).collect(),
        Mask::None | Mask::Bytes => vec![None],
    };
    let (mut from, mut to, mut barriers) = (0, Vec::new(), Vec::new());
    if bytes != 0 {
        let part = Part { kind: AccessKind::Read, space: b.from, addr: src[1], bytes, align: 16 };
        from = find(reach, part)?;
    }
    for target in targets {
        if bytes != 0 {
            let part = Part { kind, space: b.to, addr: place(src[0], target), bytes, align: 16 };
            to.push(find(reach, part)?);
        }
        if let Some(told) = told {
            barriers.push((barrier(reach, b.to, place(told, target))?, u64::from(bytes)));
        }
    }
    let [low, high, ..] = mask.to_le_bytes();
    let mask = if b.mask == Mask::Bytes { u16::from_le_bytes([low, high]) } else { u16::MAX };
    Ok(Work { what: What::Bytes { from, to, bytes, mask, reduce: b.reduce, now: b.now }, barriers })
}
