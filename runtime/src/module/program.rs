//! Code of one entry for one launch shape, and the cache of it.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use handloom_codegen::{Code, Failure, Stage, compile};
use handloom_ir::simt::{self, Callee, FrameLayout, FuncId, LaunchShape, Op, SymKind, Term};
use handloom_plan::{Bounds, Host, Options};
use rayon::prelude::*;

use super::ModuleInner;
use super::task::{self, Left, Patience, Place, Task, Wanted};
use crate::error::panic_text;
use crate::lock::lock;
use crate::run::{Backend, Tier};

/// Local memory for calls whose depth nobody knows: recursion and calls through pointers. In bytes for each thread.
const CALL_STACK: u64 = 64 << 10;

/// Instructions up to which code is made on the thread that asks for it. It takes some milliseconds then; a thread of its own, which can be left
/// alone, costs about 0.05 ms more.
const SMALL: usize = 256;

/// What code is made for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub(crate) entry: Arc<str>,
    pub(crate) shape: LaunchShape,
    pub(crate) bounds: Bounds,
    /// Clusters of more than one cta.
    pub(crate) cluster: bool,
    /// The machine.
    pub(crate) host: Host,
    /// Who is to make it.
    pub(crate) backend: Backend,
}

/// Code of an entry and of all functions that it may call.
#[derive(Debug)]
pub(crate) struct Program {
    key: Key,
    source: Specialised,
    /// What kept it from wide code, if that was asked for.
    refused: Option<String>,
    /// Code by tier; each is made when it is first needed.
    tiers: [Task<Codes>; 3],
    /// The tier that new ctas start in.
    preferred: AtomicU8,
    /// Nanoseconds that a unit of a grid took on a thread at the last launch; 0 if there was none.
    unit_ns: AtomicU64,
    /// Time it took to make.
    pub(crate) compile_time: Duration,
}

/// Code by function; `None` if the entry cannot reach it.
pub(crate) type Codes = Vec<Option<Code>>;

impl Program {
    /// Makes code; `None` when nobody wants it any more. The error is why there is none.
    fn make(module: &simt::Module, key: &Key, wanted: Wanted<'_>) -> Option<Result<Program, Failure>> {
        let start = Instant::now();
        let source = match Specialised::make(module, key) {
            Ok(source) => source,
            Err(why) => return Some(Err(why)),
        };
        let (first, codes, refused) = match source.wide(key, Tier::Quick) {
            // Code that rests on nothing is careful.
            Some(Ok((codes, rests))) => (if rests { Tier::Quick } else { Tier::Careful }, codes, None),
            refused => {
                let first = source.first_tier(key);
                match source.compile(key, first, wanted)? {
                    Ok(codes) => (first, codes, refused.and_then(Result::err)),
                    Err(why) => return Some(Err(why)),
                }
            }
        };
        let mut tiers = [const { None }; 3];
        tiers[first as usize] = Some(codes);
        Some(Ok(Program {
            key: key.clone(),
            source,
            refused,
            tiers: tiers.map(|made| made.map_or_else(Task::default, Task::done)),
            preferred: AtomicU8::new(first as u8),
            unit_ns: AtomicU64::new(0),
            compile_time: start.elapsed(),
        }))
    }

    /// Who made it, and what kept it from the generator that was asked for.
    pub(crate) fn made_by(&self) -> (Backend, Option<String>) {
        let made = if self.refused.is_some() { Backend::Cranelift } else { self.key.backend };
        (made, self.refused.clone())
    }

    /// The specialised module; functions keep their numbers.
    pub(crate) fn ir(&self) -> &simt::Module {
        &self.source.ir
    }

    /// The entry.
    pub(crate) fn entry(&self) -> FuncId {
        self.source.entry
    }

    /// By function: its frame in local memory.
    pub(crate) fn frames(&self) -> &[FrameLayout] {
        &self.source.frames
    }

    /// Distance of two threads' local memory.
    pub(crate) fn local_stride(&self) -> u32 {
        self.source.local_stride
    }

    /// The code of a tier that was made.
    pub(crate) fn codes(&self, tier: Tier) -> Result<&Codes, Failure> {
        match self.tiers[tier as usize].get() {
            Some(made) => made.map_err(Failure::clone),
            None => Err(Failure::Bug(format!("there is no {} code", tier.name()))),
        }
    }

    /// Whether the code of a tier was made.
    pub(crate) fn has(&self, tier: Tier) -> bool {
        self.tiers[tier as usize].get().is_some()
    }

    /// Makes the code of a tier, or waits for who makes it. New ctas do not start in a lower one any more.
    pub(crate) fn obtain(self: &Arc<Self>, tier: Tier, patience: Patience<'_>) -> Result<(), Left> {
        let place = if self.source.is_small() { Place::Here } else { Place::Aside };
        let begin = || {
            let make = move |p: &Arc<Program>, wanted: Wanted<'_>| {
                let wide = if p.refused.is_none() { p.source.wide(&p.key, tier) } else { None };
                match wide {
                    Some(made) => Some(made.map(|(codes, _)| codes).map_err(Failure::Bug)),
                    None => p.source.compile(&p.key, tier, wanted),
                }
            };
            task::start(self, move |p| &p.tiers[tier as usize], place, make);
        };
        task::obtain(&self.tiers[tier as usize], patience, begin)?;
        self.preferred.fetch_max(tier as u8, Ordering::Relaxed);
        Ok(())
    }

    /// The tier that new ctas start in.
    pub(crate) fn preferred(&self) -> Tier {
        Tier::ALL[usize::from(self.preferred.load(Ordering::Relaxed)).min(2)]
    }

    /// Nanoseconds that a unit took at the last launch; 0 if there was none.
    pub(crate) fn unit_ns(&self) -> u64 {
        self.unit_ns.load(Ordering::Relaxed)
    }

    /// Notes how long so many workers took for so many units.
    pub(crate) fn note_time(&self, time: Duration, workers: usize, units: u64) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.unit_ns.store((ns.saturating_mul(workers as u64) / units.max(1)).max(1), Ordering::Relaxed);
    }

    /// Bytes of machine code.
    pub(crate) fn code_bytes(&self) -> usize {
        let made = self.tiers.iter().filter_map(Task::get).filter_map(Result::ok);
        made.flatten().flatten().map(|c| c.code_bytes).sum()
    }
}

/// The module specialised for a key: what all tiers of a program are compiled from.
#[derive(Debug)]
pub(crate) struct Specialised {
    ir: simt::Module,
    entry: FuncId,
    frames: Vec<FrameLayout>,
    reach: Vec<FuncId>,
    local_stride: u32,
}

impl Specialised {
    pub(crate) fn make(module: &simt::Module, key: &Key) -> Result<Specialised, Failure> {
        let ir = handloom_lower::specialise(module, &key.entry, &key.shape);
        let Some(entry) = ir.entries.get(&*key.entry).map(|e| e.func) else {
            return Err(Failure::Bug(format!("`{}` was lost by specialisation", key.entry)));
        };
        // Frames as the program wrote them: then what is said of local memory does not depend on what was optimised away.
        let mut frames = FrameLayout::of_module(module);
        let local_stride = local_stride(module, &frames, entry);
        for (frame, made) in frames.iter_mut().zip(&ir.funcs) {
            frame.reach = frame.reach.max(FrameLayout::new(made).size);
        }
        // Initial bytes stand in the module that was lowered only.
        let reach = reachable(&ir, &module.syms, entry);
        Ok(Specialised { ir, entry, frames, reach, local_stride })
    }

    /// The tier that the first launch starts in.
    pub(crate) fn first_tier(&self, key: &Key) -> Tier {
        // A cta of whole warps without calls may never need masked copies; others do from the start.
        let whole = key.shape.ntid.iter().product::<u32>().is_multiple_of(32);
        if whole && self.reach.len() == 1 { Tier::Lean } else { Tier::Quick }
    }

    /// The functions that the entry may run, by number.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &simt::Function> {
        let all = self.ir.funcs.iter().enumerate();
        all.filter(|(i, _)| self.reach.iter().any(|f| f.idx() == *i)).map(|(_, f)| f)
    }

    /// The text of a stage of all functions that the entry may run, itself first.
    pub(crate) fn print(&self, key: &Key, tier: Tier, stage: Stage) -> Result<String, Failure> {
        let one = |&f: &FuncId| {
            let (func, options) = (&self.ir.funcs[f.idx()], self.options(key, f, tier));
            if key.backend == Backend::Wide && stage == Stage::Asm {
                let refused = |why: String| Failure::Unsupported(format!("`{}` has no wide code: {why}", func.name));
                if let Some(missing) = handloom_wide::missing_feature(&key.host) {
                    return Err(refused(format!("the host lacks {missing}")));
                }
                return handloom_wide::text(func, &options).map_err(|why| refused(why.what));
            }
            handloom_codegen::print(func, &options, stage)
        };
        let texts: Result<Vec<String>, Failure> = self.reach.iter().map(one).collect();
        Ok(texts?.join("\n"))
    }

    /// Whether compiling takes so little time that it is done where it is asked for.
    fn is_small(&self) -> bool {
        n_instructions(&self.ir, &self.reach) <= SMALL
    }

    /// Code of all functions that the entry may run; `None` when nobody wants it any more.
    fn compile(&self, key: &Key, tier: Tier, wanted: Wanted<'_>) -> Option<Result<Codes, Failure>> {
        let given_up = AtomicBool::new(false);
        let one = |&f: &FuncId| {
            let func = &self.ir.funcs[f.idx()];
            let options = self.options(key, f, tier);
            // A panic of the code generator fails this entry and no other.
            let made = catch_unwind(AssertUnwindSafe(|| compile(func, &options)));
            let panicked = |text| Failure::Bug(format!("codegen: `{}`: {text}", func.name));
            let made = made.unwrap_or_else(|p| Err(panicked(panic_text(p.as_ref()))));
            made.map(|code| (f, code))
        };
        let unless_given_up = |f: &FuncId| match wanted() {
            true => one(f),
            false => {
                given_up.store(true, Ordering::Relaxed);
                Err(Failure::Bug("nobody wants the code".into()))
            }
        };
        let reach = &self.reach;
        // Waking the pool costs more than a small function, and small ones may be made on a thread of another pool.
        let made: Vec<Result<(FuncId, Code), Failure>> = if reach.len() == 1 || self.is_small() {
            reach.iter().map(unless_given_up).collect()
        } else {
            task::in_pool(|| reach.par_iter().map(unless_given_up).collect())
        };
        if given_up.into_inner() {
            return None;
        }
        let mut codes: Codes = self.ir.funcs.iter().map(|_| None).collect();
        for result in made {
            match result {
                Ok((f, code)) => codes[f.idx()] = Some(code),
                Err(why) => return Some(Err(why)),
            }
        }
        Some(Ok(codes))
    }

    /// Wide code of all functions that the entry may run, if it is asked for, and whether it rests on tests. The error is what it has no wide code for.
    fn wide(&self, key: &Key, tier: Tier) -> Option<Result<(Codes, bool), String>> {
        if key.backend != Backend::Wide {
            return None;
        }
        if let Some(missing) = handloom_wide::missing_feature(&key.host) {
            return Some(Err(format!("the host lacks {missing}")));
        }
        let mut codes: Codes = self.ir.funcs.iter().map(|_| None).collect();
        let mut rests = false;
        for &f in &self.reach {
            let func = &self.ir.funcs[f.idx()];
            let options = self.options(key, f, tier);
            // A panic of the generator is a fault of ours; the other generator takes the entry.
            let made = catch_unwind(AssertUnwindSafe(|| handloom_wide::compile(func, &options)));
            let assembly = match made {
                Ok(Ok(assembly)) => assembly,
                Ok(Err(refusal)) => return Some(Err(refusal.what)),
                Err(panic) => return Some(Err(format!("a bug: {}", panic_text(panic.as_ref())))),
            };
            rests |= assembly.rests;
            // SAFETY: the bytes are a function of the contract, which the tables describe; it does not use a pool.
            let placed = unsafe { Code::place(&assembly.bytes, 64, assembly.tables, Vec::new()) };
            match placed {
                Ok(code) => codes[f.idx()] = Some(code),
                Err(why) => return Some(Err(why.to_string())),
            }
        }
        Some(Ok((codes, rests)))
    }

    fn options(&self, key: &Key, f: FuncId, tier: Tier) -> Options {
        Options {
            speculate: tier != Tier::Careful,
            masked: tier != Tier::Lean,
            shape: key.shape,
            bounds: key.bounds,
            local_stride: self.local_stride,
            frame_bytes: self.frames[f.idx()].size,
            is_callee: f != self.entry,
            cluster: key.cluster,
            host: key.host,
        }
    }
}

/// Instructions of some functions.
fn n_instructions(ir: &simt::Module, funcs: &[FuncId]) -> usize {
    funcs.iter().flat_map(|f| &ir.funcs[f.idx()].blocks).map(|b| b.insts.len() + 1).sum()
}

/// The functions that an entry may run, itself first.
pub(crate) fn reachable(ir: &simt::Module, data: &[simt::Symbol], entry: FuncId) -> Vec<FuncId> {
    let mut seen = vec![false; ir.funcs.len()];
    let mut order = Vec::new();
    let mut todo = vec![entry];
    let mut indirect = false;
    while let Some(f) = todo.pop() {
        if std::mem::replace(&mut seen[f.idx()], true) {
            continue;
        }
        order.push(f);
        for b in &ir.funcs[f.idx()].blocks {
            match b.term {
                Term::Call { callee: Callee::Direct(g), .. } => todo.push(g),
                Term::Call { callee: Callee::Indirect, .. } if !indirect => {
                    indirect = true;
                    todo.extend(address_taken(ir, data));
                }
                _ => {}
            }
        }
    }
    order
}

/// The functions whose handles a program can get hold of.
fn address_taken(ir: &simt::Module, data: &[simt::Symbol]) -> Vec<FuncId> {
    let in_code = ir.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.insts).filter_map(|i| match i.op {
        Op::SymAddr(s) => Some(s),
        _ => None,
    });
    let in_data = data.iter().flat_map(|s| &s.relocs).map(|r| r.target);
    let mut taken: Vec<FuncId> = in_code
        .chain(in_data)
        .filter_map(|s| match ir.syms.get(s.idx())?.kind {
            SymKind::Func(f) => Some(f),
            _ => None,
        })
        .filter(|f| !ir.funcs[f.idx()].is_entry && !ir.funcs[f.idx()].blocks.is_empty())
        .collect();
    taken.sort();
    taken.dedup();
    taken
}

/// Bytes of local memory for a thread of an entry: enough for its deepest chain of calls, or a fixed stack if that has no bound. Where
/// `alloca` takes memory too, as much as a fixed stack is added.
pub(crate) fn local_stride(ir: &simt::Module, frames: &[FrameLayout], entry: FuncId) -> u32 {
    let align = frames.iter().map(|f| f.align).max().unwrap_or(16).max(16);
    let own = frames[entry.idx()].size.next_multiple_of(align);
    let needed = deepest(ir, frames, entry, align, &mut vec![Depth::Unknown; ir.funcs.len()]);
    let is_alloca = |i: &simt::Inst| matches!(i.op, Op::Stack(simt::StackOp::Alloca { .. }));
    let grows = ir.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.insts).any(is_alloca);
    let fixed = if grows || needed.is_none() { CALL_STACK } else { 0 };
    let mut stride = (needed.unwrap_or(own) + fixed).next_multiple_of(align);
    // Threads a multiple of a page apart would share a few cache sets.
    if stride.is_multiple_of(4096) {
        stride += align.max(64);
    }
    u32::try_from(stride).unwrap_or(u32::MAX / 4096 * 4096)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Unknown,
    Open,
    Done(Option<u64>),
}

/// Bytes of the deepest chain of frames from `f` on; `None` if there is no bound.
fn deepest(ir: &simt::Module, frames: &[FrameLayout], f: FuncId, align: u64, memo: &mut Vec<Depth>) -> Option<u64> {
    match memo[f.idx()] {
        Depth::Open => return None,
        Depth::Done(d) => return d,
        Depth::Unknown => {}
    }
    memo[f.idx()] = Depth::Open;
    let mut below = Some(0_u64);
    for b in &ir.funcs[f.idx()].blocks {
        if let Term::Call { callee, .. } = b.term {
            let depth = match callee {
                Callee::Direct(g) => deepest(ir, frames, g, align, memo),
                Callee::Indirect => None,
            };
            below = below.zip(depth).map(|(a, b)| a.max(b));
        }
    }
    let own = frames[f.idx()].size.next_multiple_of(align);
    let depth = below.map(|b| own + b);
    memo[f.idx()] = Depth::Done(depth);
    depth
}

/// What launches of a key share: its code.
#[derive(Debug)]
pub(crate) struct CodeCell {
    key: Key,
    program: Task<Arc<Program>>,
}

impl CodeCell {
    /// Starts to make the program, if it is not there and nobody does. `many`: beside others.
    pub(crate) fn start(self: &Arc<Self>, module: &Arc<ModuleInner>, many: bool) {
        let entry = module.ir.entries.get(&*self.key.entry).map(|e| e.func);
        let is_small =
            entry.is_none_or(|f| n_instructions(&module.ir, &reachable(&module.ir, &module.ir.syms, f)) <= SMALL);
        let place = match (many, is_small) {
            (true, _) => Place::Pool,
            (false, true) => Place::Here,
            (false, false) => Place::Aside,
        };
        let owner = (Arc::clone(module), Arc::clone(self));
        task::start(
            &owner,
            |(_, cell)| &cell.program,
            place,
            |(module, cell), wanted| Some(Program::make(&module.ir, &cell.key, wanted)?.map(Arc::new)),
        );
    }

    /// Whether it is that of a key.
    pub(crate) fn is_of(&self, key: &Key) -> bool {
        self.key == *key
    }

    /// The program, if it is there.
    pub(crate) fn get(&self) -> Option<Result<Arc<Program>, Failure>> {
        self.program.get().map(|made| made.map(Arc::clone).map_err(Failure::clone))
    }

    /// Keeps the program wanted.
    pub(crate) fn ticket(&self) -> task::Ticket<'_, Arc<Program>> {
        self.program.ticket()
    }

    /// The program, made if it is not there.
    pub(crate) fn obtain(
        self: &Arc<Self>,
        module: &Arc<ModuleInner>,
        patience: Patience<'_>,
    ) -> Result<Result<Arc<Program>, Failure>, Left> {
        task::obtain(&self.program, patience, || self.start(module, false))?;
        let made = self.get();
        Ok(made.unwrap_or_else(|| Err(Failure::Bug("a program was lost".into()))))
    }
}

/// Programs of a module.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    cells: Mutex<HashMap<Key, Arc<CodeCell>>>,
}

impl Programs {
    /// The cell of a key.
    pub(crate) fn cell(&self, key: &Key) -> Arc<CodeCell> {
        let mut cells = lock(&self.cells);
        if let Some(cell) = cells.get(key) {
            return Arc::clone(cell);
        }
        let cell = Arc::new(CodeCell { key: key.clone(), program: Task::default() });
        cells.insert(key.clone(), Arc::clone(&cell));
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use handloom_diag::Span;
    use handloom_ir::simt::{Block, BlockId, Function, Slot, SlotId};

    fn func(calls: &[u32], bytes: u32) -> Function {
        let call = |&f: &u32| Term::Call {
            callee: Callee::Direct(FuncId(f)),
            target: None,
            signature: (0, 0),
            args: SlotId(0),
            next: BlockId(0),
        };
        let terms = calls.iter().map(call).chain([Term::Ret]);
        Function {
            name: String::new(),
            is_entry: false,
            blocks: terms.map(|term| Block { insts: vec![], term, term_span: Span::NONE }).collect(),
            regs: vec![],
            slots: vec![Slot::new(bytes, 4)],
            param_bytes: 0,
            result_bytes: 0,
            span: Span::NONE,
        }
    }

    #[test]
    fn local_memory_covers_the_deepest_chain() {
        let ir = simt::Module {
            funcs: vec![func(&[1, 2], 32), func(&[2], 16), func(&[], 100), func(&[3], 16)],
            ..simt::Module::default()
        };
        let frames = FrameLayout::of_module(&ir);
        assert_eq!(local_stride(&ir, &frames, FuncId(0)), 32 + 16 + 112);
        assert_eq!(u64::from(local_stride(&ir, &frames, FuncId(3))), 16 + CALL_STACK);
        assert_eq!(reachable(&ir, &[], FuncId(1)), [FuncId(1), FuncId(2)]);
    }
}
