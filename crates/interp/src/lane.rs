//! One thread: its frames, its place, and what it waits for. And the order of places.

use std::collections::BTreeMap;

use handloom_diag::Span;
use handloom_ir::simt::{BlockId, FuncId, Inst, Reg};

use crate::frame::Frame;

/// Why a lane does not run.
#[derive(Clone, Debug)]
pub(crate) enum State<'m> {
    /// It can run.
    Ready,
    /// It is at a yield point until the round is over.
    Yielded,
    /// It waits for the lanes of a member mask.
    WarpSync {
        /// The instruction.
        inst: &'m Inst,
        /// The member mask as written.
        mask: u32,
    },
    /// It waits for a barrier of the cta.
    Barrier {
        /// Number of the barrier.
        id: u32,
        /// Where the result of a reduction goes.
        dst: Option<Reg>,
        /// Where it goes on.
        next: BlockId,
    },
    /// It waits for a phase of the cluster barrier.
    ClusterWait {
        /// The phase that it waits for.
        phase: u64,
        /// Where it goes on.
        next: BlockId,
    },
    /// Its warp has trapped.
    Stopped,
    /// It has ended.
    Exited,
}

/// Where a lane is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The calls that led here.
    pub path: PathId,
    /// The function.
    pub func: FuncId,
    /// The block.
    pub block: BlockId,
    /// The next instruction of the block; one past the last for its end.
    pub inst: usize,
}

/// The phase of an `mbarrier` object has not ended when a thread asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    /// The object, by generic address.
    pub object: u64,
    /// What it held.
    pub word: u64,
    /// The thread has not given way since.
    pub is_new: bool,
}

/// One thread of a cta.
#[derive(Clone, Debug)]
pub(crate) struct Lane<'m> {
    /// What it waits for.
    pub state: State<'m>,
    /// Where it is.
    pub place: Place,
    /// Its calls, the entry first. Empty when it has exited.
    pub frames: Vec<Frame>,
    /// The statement it waits at.
    pub span: Span,
    /// The phase of the cluster barrier at which it arrived last, until it waits for it.
    pub cluster_phase: Option<u64>,
    /// The `mbarrier` object that it asks next, by generic address, and the word with the phase that it asks about.
    pub asks: Option<(u64, u64)>,
    /// What it was told last that has not happened yet, of an audited cta.
    pub refused: Option<Refused>,
    /// Bytes at the end of its local memory that `alloca` gave.
    pub stack_used: u64,
}

impl Lane<'_> {
    /// Whether it can run.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready)
    }

    /// Whether it has ended.
    pub(crate) fn is_exited(&self) -> bool {
        matches!(self.state, State::Exited)
    }

    /// The call in progress.
    pub(crate) fn frame(&self) -> &Frame {
        self.frames.last().expect("bug: a lane that has exited has no frame")
    }

    /// The call in progress.
    pub(crate) fn frame_mut(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("bug: a lane that has exited has no frame")
    }

    /// Goes on at the start of a block of its function.
    pub(crate) fn resume(&mut self, block: BlockId) {
        self.place.block = block;
        self.place.inst = 0;
        self.state = State::Ready;
    }

    /// Gives way before an instruction of its block.
    pub(crate) fn pause(&mut self, inst: usize, span: Span) {
        self.place.inst = inst;
        self.state = State::Yielded;
        self.span = span;
    }
}

/// A chain of calls, the same number for the same chain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct PathId(usize);

/// All chains of calls in progress, each once.
///
/// A lane holds the chain it is in, and a chain holds its caller's. What nobody holds is forgotten, so that the
/// table does not grow with the number of calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    nodes: Vec<Chain>,
    known: BTreeMap<Call, PathId>,
    free: Vec<PathId>,
}

/// A call: the chain, function and block that it was made from.
type Call = (PathId, FuncId, BlockId);

#[derive(Clone, Copy, Debug)]
struct Chain {
    call: Call,
    /// Lanes and longer chains that hold it.
    holders: usize,
}

impl Paths {
    /// The chain of the entry, which nobody called.
    pub(crate) const ROOT: PathId = PathId(0);

    /// A lane in `from` makes a call at the end of a block.
    pub(crate) fn enter(&mut self, from: PathId, func: FuncId, block: BlockId) -> PathId {
        let call = (from, func, block);
        if let Some(&path) = self.known.get(&call) {
            self.hold(path);
            self.release(from);
            return path;
        }
        // The new chain takes over the lane's hold on its caller's.
        let node = Chain { call, holders: 1 };
        let path = match self.free.pop() {
            Some(path) => path,
            None => PathId(self.nodes.len() + 1),
        };
        match path.0.checked_sub(1).and_then(|i| self.nodes.get_mut(i)) {
            Some(old) => *old = node,
            None => self.nodes.push(node),
        }
        self.known.insert(call, path);
        path
    }

    /// A lane in `path` returns from its function. Returns the chain of its caller.
    pub(crate) fn leave(&mut self, path: PathId) -> PathId {
        let caller = self.node(path).map_or(Paths::ROOT, |i| self.nodes[i].call.0);
        self.hold(caller);
        self.release(path);
        caller
    }

    /// A lane in `path` ends.
    pub(crate) fn release(&mut self, mut path: PathId) {
        while let Some(i) = self.node(path) {
            self.nodes[i].holders -= 1;
            if self.nodes[i].holders > 0 {
                return;
            }
            let call = self.nodes[i].call;
            self.known.remove(&call);
            self.free.push(path);
            path = call.0;
        }
    }

    fn hold(&mut self, path: PathId) {
        if let Some(i) = self.node(path) {
            self.nodes[i].holders += 1;
        }
    }

    /// Index of a chain; the root has none.
    fn node(&self, path: PathId) -> Option<usize> {
        path.0.checked_sub(1)
    }

    /// Whether lanes at `a` run before lanes at `b`, so that they can meet: by the outermost call in which they differ,
    /// the earlier block first, and who has yet to make a call before who is inside it.
    pub(crate) fn before(&self, a: &Place, b: &Place) -> bool {
        if a.path == b.path {
            return (a.func, a.block, a.inst) < (b.func, b.block, b.inst);
        }
        self.steps(a) < self.steps(b)
    }

    fn steps(&self, place: &Place) -> Vec<(FuncId, BlockId)> {
        let mut steps = vec![(place.func, place.block)];
        let mut path = place.path;
        while let Some(i) = self.node(path) {
            let (caller, func, block) = self.nodes[i].call;
            steps.push((func, block));
            path = caller;
        }
        steps.reverse();
        steps
    }
}
