//! What processes know of an event that they share: how often it was recorded, how many of these times its work has ended, and by whom it was recorded
//! last.
//!
//! Both numbers lie in a file in memory. A process locks the file while it reads or changes them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use handloom_runtime::{Backing, Stream};

use crate::code::{Code, Result};
use crate::context::Ctx;
use crate::ipc::{self, EVENT, HANDLE, Name};
use crate::memory::PAGE;

/// How often a thread looks for what another process does.
const LOOK: Duration = Duration::from_micros(100);

/// The numbers of an event.
#[derive(Clone, Copy, Default)]
struct State {
    /// How often it was recorded.
    recorded: u64,
    /// The work before that recording, and before all earlier ones, has ended.
    done: u64,
    /// The process that recorded it last.
    process: u64,
}

impl State {
    /// Whether nothing is waited for: a process that is gone ends no work.
    fn is_past(&self, target: u64) -> bool {
        self.done >= target || !std::path::Path::new(&format!("/proc/{}", self.process)).exists()
    }
}

/// An event of several processes.
pub struct SharedEvent {
    file: Mutex<File>,
    /// How other processes find it.
    name: Name,
}

impl SharedEvent {
    fn of(backing: &Backing, name: impl FnOnce(&File) -> Result<Name>) -> Result<Arc<SharedEvent>> {
        let file: File = backing.file().try_clone_to_owned().map_err(|_| Code::OPERATING_SYSTEM)?.into();
        let name = name(&file)?;
        Ok(Arc::new(SharedEvent { file: Mutex::new(file), name }))
    }

    /// A new one, which was not recorded.
    ///
    /// # Errors
    /// The host has no file for it.
    pub fn new() -> Result<Arc<SharedEvent>> {
        let backing = Backing::of_host(PAGE).map_err(|_| Code::OUT_OF_MEMORY)?;
        SharedEvent::of(&backing, |file| Name::of_file(file, backing.id(), 0, PAGE, 0))
    }

    /// That of another process.
    ///
    /// # Errors
    /// It is no handle of an event; the process has ended, or the host does not let this one look at it.
    pub fn open(handle: &[u8; HANDLE]) -> Result<Arc<SharedEvent>> {
        let name = Name::of(handle, EVENT).ok_or(Code::INVALID_VALUE)?;
        SharedEvent::of(&ipc::open_file(&name)?, |_| Ok(name))
    }

    /// What other processes open it by.
    pub fn handle(&self) -> [u8; HANDLE] {
        self.name.handle(EVENT)
    }

    /// Reads the numbers, and changes them.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> std::io::Result<T> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.lock()?;
        let work = || {
            let mut words = [0; 24];
            file.read_exact_at(&mut words, 0)?;
            let (all, _) = words.as_chunks::<8>();
            let [recorded, done, process] = [0, 1, 2].map(|i| u64::from_le_bytes(all[i]));
            let mut state = State { recorded, done, process };
            let result = change(&mut state);
            let new = [state.recorded, state.done, state.process].map(u64::to_le_bytes).concat();
            if new != words {
                file.write_all_at(&new, 0)?;
            }
            Ok(result)
        };
        let result = work();
        file.unlock()?;
        result
    }

    fn state(&self) -> State {
        // Of what cannot be read nothing is waited for.
        self.change(|state| *state).unwrap_or_default()
    }

    /// Notes that it stands for what a stream was given until now.
    ///
    /// # Errors
    /// The context failed, or the host refuses it.
    pub fn record(self: &Arc<Self>, ctx: &Ctx, rt: &Stream) -> Result {
        let ticket = self.change(|state| {
            state.recorded += 1;
            state.process = std::process::id().into();
            state.recorded
        });
        let ticket = ticket.map_err(|_| Code::OPERATING_SYSTEM)?;
        let event = Arc::clone(self);
        let end = move |_| drop(event.change(|state| state.done = state.done.max(ticket)));
        ctx.result(rt.callback(end))
    }

    /// Lets a stream wait for what it stands for now.
    ///
    /// # Errors
    /// The context failed.
    pub fn wait(self: &Arc<Self>, ctx: &Ctx, rt: &Stream) -> Result {
        let now = self.state();
        if now.is_past(now.recorded) {
            return Ok(());
        }
        let event = Arc::clone(self);
        ctx.result(rt.wait_until(move |_| Ok(event.state().is_past(now.recorded)), None))
    }

    /// Whether the work that it stands for has ended.
    pub fn is_done(&self) -> bool {
        let now = self.state();
        now.is_past(now.recorded)
    }

    /// Waits for the work that it stands for now.
    pub fn synchronize(&self) {
        let target = self.state().recorded;
        while !self.state().is_past(target) {
            std::thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_waited_for_everywhere() {
        let here = SharedEvent::new().unwrap();
        let there = SharedEvent::open(&here.handle()).unwrap();
        assert!(here.is_done() && there.is_done() && here.name == there.name);
        let own = u64::from(std::process::id());
        here.change(|s| (s.recorded, s.process) = (2, own)).unwrap();
        assert!(!there.is_done() && there.state().is_past(0));
        there.change(|s| s.done = 2).unwrap();
        assert!(here.is_done());
        // Nobody ends the work of a process that is not there.
        here.change(|s| (s.recorded, s.process) = (3, u64::from(u32::MAX))).unwrap();
        assert!(there.is_done());
        let mut wrong = here.handle();
        wrong[0] ^= 1;
        assert!(SharedEvent::open(&wrong).is_err());
    }
}
