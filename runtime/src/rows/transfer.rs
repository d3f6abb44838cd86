//! Transfers, lane by lane. The rules and what is done are the interpreter's; here stands how memory is reached.

use handloom_diag::Span;
use handloom_interp::late;
use handloom_interp::transfer::{Fault, Part, Reach, Work, prepare};
use handloom_interp::{CtaEnv, Who};
use handloom_ir::num::whole::Rows;
use handloom_ir::simt::{Element, Transfer};
use handloom_ir::trap::{Trap, TrapKind};
use handloom_ir::types::{Order, StateSpace};
use handloom_profile::Space;

use super::Call;
use super::check::{Request, part};
use super::memory::lanes;
#[cfg(target_arch = "x86_64")]
use super::{matrix::Width, whole};
use crate::memory::access;
use crate::warp::host::CtaHost;

/// What a thread reaches.
pub(super) struct Thread<'h> {
    host: &'h mut CtaHost,
    thread: u32,
    /// What is done now.
    span: Span,
    /// The statement of the thread itself, while it does what another one began.
    own: Option<Span>,
}

impl<'h> Thread<'h> {
    pub(super) fn new(host: &'h mut CtaHost, thread: u32, span: Span) -> Thread<'h> {
        Thread { host, thread, span, own: None }
    }

    /// Bytes are read or written, of a counted launch.
    fn count(&mut self, at: u64, bytes: usize) {
        let CtaHost { counted: Some(counted), memory, .. } = &mut *self.host else { return };
        if Space::of(memory.view.get_mut().state_space(at)).is_some() {
            counted.copy(self.span, bytes);
        }
    }
}

impl Reach for Thread<'_> {
    fn env(&self) -> &CtaEnv {
        &self.host.env
    }

    fn locate(&mut self, p: &Part) -> Result<u64, TrapKind> {
        if !p.addr.is_multiple_of(u64::from(p.align)) {
            return Err(TrapKind::Misaligned);
        }
        let request = Request {
            kind: p.kind,
            space: p.space,
            order: Order::Weak,
            bytes: p.bytes,
            element: p.bytes,
            elements: 1,
            offset: 0,
        };
        part(self.host, &request, self.thread, p.addr, u64::from(p.bytes)).map(|(at, _)| at)
    }

    fn space(&mut self, addr: u64) -> StateSpace {
        self.host.memory.view.get_mut().state_space(addr)
    }

    fn read(&mut self, at: u64, to: &mut [u8]) {
        let whole = to.len() as u64;
        self.count(at, to.len());
        // SAFETY: `locate` passed the bytes.
        unsafe { access::read_words(at, to, whole) }
    }

    fn write(&mut self, at: u64, from: &[u8]) {
        let whole = from.len() as u64;
        self.count(at, from.len());
        // SAFETY: `locate` passed the bytes for writing.
        unsafe { access::write_words(at, from, whole) }
    }

    fn look(&mut self, at: u64) -> u64 {
        let mut word = 0;
        self.step(at, &mut |old| {
            word = old;
            old
        });
        word
    }

    fn act_for(&mut self, who: Option<Who>) {
        let own = *self.own.get_or_insert(self.span);
        self.span = who.map_or(own, |who| who.span);
    }

    fn update(&mut self, at: u64, bytes: u32, new: &mut dyn FnMut(u64) -> u64) {
        self.count(at, bytes as usize);
        // SAFETY: `locate` passed the element for an atomic, in a part that is aligned to it.
        unsafe { access::update(at, bytes, new) };
    }

    fn step(&mut self, at: u64, new: &mut dyn FnMut(u64) -> u64) {
        // SAFETY: `locate` passed the object for an atomic, aligned to its size.
        unsafe { access::update(at, 8, new) };
    }

    fn read_units(&mut self, base: u64, distances: &[u32], to: &mut [[u8; 16]]) {
        if !distances.iter().all(|distance| (base + u64::from(*distance)).is_multiple_of(8)) {
            return distances.iter().zip(to).for_each(|(distance, to)| self.read(base + u64::from(*distance), to));
        }
        if self.host.counted.is_some() {
            distances.iter().for_each(|distance| self.count(base + u64::from(*distance), 16));
        }
        for (distance, to) in distances.iter().zip(to) {
            let at = base + u64::from(*distance);
            let (words, _) = to.as_chunks_mut::<8>();
            // SAFETY: `locate` passed the bytes, which are whole words.
            unsafe {
                words[0] = access::load(at, 8).to_le_bytes();
                words[1] = access::load(at + 8, 8).to_le_bytes();
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn add_rows(&self, rows: &mut Rows<'_>) {
        whole::add(Width::of(&self.host.machine), rows);
    }

    #[cfg(target_arch = "x86_64")]
    fn widen(&self, e: Element, bits: &mut [u32]) {
        whole::widen(Width::of(&self.host.machine), e, bits);
    }
}

/// Does the op for each lane of the call. Gives 1, or 0 after recording a trap.
pub(super) fn transfer(c: &mut Call<'_>, op: Transfer) -> u64 {
    let site = &c.tables.mems[c.site];
    let header = c.ctx.header();
    let mut works: Vec<(usize, Work)> = Vec::new();
    let mut refused: Vec<(usize, Fault)> = Vec::new();
    for lane in lanes(c.mask) {
        let thread = CtaHost::thread(&header, lane);
        let src: Vec<u64> =
            std::iter::once(&site.addr).chain(&site.src).map(|source| c.ctx.read(*source, lane)).collect();
        match prepare(op, &src, &mut Thread::new(c.host, thread, site.span)) {
            Ok(work) => works.push((lane, work)),
            Err(fault) => refused.push((lane, fault)),
        }
    }
    if record(c, &refused) == 0 {
        return 0;
    }
    for (lane, work) in works {
        let thread = CtaHost::thread(&header, lane);
        let who = c.host.env.who(thread, site.span);
        match late::begin(work, who, &mut Thread::new(c.host, thread, site.span)) {
            Ok(true) => c.touched(),
            Ok(false) => {}
            Err(fault) => return record(c, &[(lane, fault)]),
        }
    }
    1
}

/// Records the trap of lanes that were refused, if there are any. Gives 1, or 0 after recording one.
pub(super) fn record(c: &mut Call<'_>, refused: &[(usize, Fault)]) -> u64 {
    let Some((first, fault)) = refused.first() else { return 1 };
    let same = refused.iter().filter(|(_, f)| f.kind == fault.kind).fold(0, |m, (lane, _)| m | 1 << lane);
    let mut trap = c.host.trap_of(fault.kind, c.tables.mems[c.site].span, c.warp(), same);
    let thread = CtaHost::thread(&c.ctx.header(), *first);
    let view = c.host.memory.view.get_mut();
    fault.clone().tell(&mut trap, &c.host.env, thread, |addr| view.state_space(addr));
    c.host.trap = Some(trap);
    0
}

/// All threads of a CTA have ended: what they have begun happens.
///
/// # Errors
/// Something of it breaks a rule.
pub(crate) fn end_transfers(host: &mut CtaHost) -> Result<(), Box<Trap>> {
    let Some(under_way) = host.env.late.clone() else { return Ok(()) };
    late::end(&under_way, &mut Thread::new(host, 0, Span::NONE)).map_err(|fault| {
        let mut trap = host.trap_of(fault.kind, Span::NONE, 0, 1);
        let view = host.memory.view.get_mut();
        fault.tell(&mut trap, &host.env, 0, |addr| view.state_space(addr));
        trap
    })
}
