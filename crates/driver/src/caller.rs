//! Where in the program a call of the interface was made: its name as the program knows it, the line if the program has tables of lines, else the function.
//!
//! Only checks ask for it. The addresses are taken at the call; what they mean is looked up when somebody wants to know, since that takes long.

use std::backtrace::Backtrace;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handloom_diag::names::readable;
use handloom_runtime::{FoundAt, TouchedAt};

/// Most calls that freed something which are remembered.
const MOST: usize = 1 << 16;

/// The call that a thread is in.
#[derive(Clone, Debug)]
pub struct Caller(Arc<Backtrace>);

impl Caller {
    /// The one that this thread is in now.
    pub fn now() -> Caller {
        Caller(Arc::new(Backtrace::force_capture()))
    }

    /// It as a place that touches memory. `otherwise` stands for the name where that is not known.
    pub fn touches(&self, does: &'static str, otherwise: &'static str) -> TouchedAt {
        let caller = self.clone();
        TouchedAt::new(move || FoundAt { does, ..caller.at(otherwise) })
    }

    /// It as a place of a finding. `does`: what it does, which stands for the name where that is not known.
    pub fn at(&self, does: &'static str) -> FoundAt {
        let text = format!("{:#}", self.0);
        let frames = frames(&text);
        let Some(first) = frames.iter().position(Frame::is_call) else { return FoundAt::of_call(does, does, None) };
        let own = frames[first..].iter().take_while(|frame| frame.is_call() || frame.is_ours()).count();
        let (calls, program) = frames[first..].split_at(own);
        let call = calls.iter().rev().find(|frame| frame.is_call()).map_or(does.to_owned(), Frame::call);
        let Some(caller) = program.first() else { return FoundAt::of_call(does, &call, None) };
        let call = match caller.place {
            None if !caller.name.starts_with('<') => format!("{call} in `{}`", caller.readable()),
            _ => call,
        };
        FoundAt::of_call(does, &call, caller.place.map(|(file, line)| (file.to_owned(), line)))
    }
}

/// A function that is under way.
#[derive(PartialEq, Eq, Debug)]
struct Frame<'a> {
    name: &'a str,
    place: Option<(&'a str, u32)>,
}

impl Frame<'_> {
    /// The name of a function of the interface: of a template that headers put around it too, and without marks of the library's own.
    fn call(&self) -> String {
        let name = self.readable();
        let name = name.split(['<', '(']).next().and_then(|name| name.rsplit(' ').next()).unwrap_or_default();
        let name = name.strip_prefix("handloom_").and_then(|rest| rest.split_once('_')).map_or(name, |of| of.1);
        let name = name.trim_end_matches("_ptsz").trim_end_matches("_ptds");
        // What programs write, the headers give the name of its newest form.
        let is_form = |form: &str| form.bytes().all(|b| b.is_ascii_digit());
        name.rsplit_once("_v").filter(|(_, form)| is_form(form)).map_or(name, |of| of.0).to_owned()
    }

    /// Whether it is a function of the interface.
    fn is_call(&self) -> bool {
        let name = self.call();
        let rest = name.strip_prefix("cuda").or_else(|| name.strip_prefix("cu"));
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
    }

    /// Whether it is a part of the libraries, or of the templates that headers put around functions of the interface.
    fn is_ours(&self) -> bool {
        let in_header =
            |(file, _): (&str, u32)| file.ends_with("/cuda_runtime.h") || file.ends_with("/cuda_runtime_api.h");
        self.name.contains("handloom_") || self.place.is_some_and(in_header)
    }

    fn readable(&self) -> String {
        readable(self.name).unwrap_or_else(|| self.name.to_owned())
    }
}

/// The functions of a backtrace, the innermost first: `   3:     0x5581 - main`, below it `             at src/k.cu:27:3` where that is known.
fn frames(text: &str) -> Vec<Frame<'_>> {
    let mut all: Vec<Frame> = Vec::new();
    for line in text.lines() {
        let line = line.trim_start();
        if let Some(place) = line.strip_prefix("at ") {
            let mut parts = place.rsplitn(3, ':');
            let (_, line, file) = (parts.next(), parts.next().and_then(|n| n.parse().ok()), parts.next());
            if let Some(frame) = all.last_mut() {
                frame.place = file.zip(line);
            }
        } else if let Some((number, name)) = line.split_once(": ")
            && number.bytes().all(|b| b.is_ascii_digit())
        {
            let name = name.trim_start();
            let name = name.strip_prefix("0x").and_then(|rest| rest.split_once(" - ")).map_or(name, |of| of.1);
            all.push(Frame { name, place: None });
        }
    }
    all
}

/// Calls that made and freed memory, by its first address.
#[derive(Debug, Default)]
pub struct Calls(Mutex<Lists>);

#[derive(Debug, Default)]
struct Lists {
    made: BTreeMap<u64, Caller>,
    freed: BTreeMap<u64, Caller>,
    /// In the order in which they were freed.
    order: VecDeque<u64>,
}

impl Calls {
    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory is made by the call that this thread is in.
    pub fn makes(&self, base: u64) {
        self.lists().made.insert(base, Caller::now());
    }

    /// Memory is freed by the call that this thread is in.
    pub fn frees(&self, base: u64) {
        let caller = Caller::now();
        let mut lists = self.lists();
        lists.made.remove(&base);
        if lists.freed.insert(base, caller).is_none() {
            lists.order.push_back(base);
        }
        if lists.order.len() > MOST
            && let Some(oldest) = lists.order.pop_front()
        {
            lists.freed.remove(&oldest);
        }
    }

    /// The call that made memory.
    pub fn made(&self, base: u64) -> Option<FoundAt> {
        let caller = self.lists().made.get(&base).cloned();
        caller.map(|caller| caller.at("make"))
    }

    /// The call that freed memory.
    pub fn freed(&self, base: u64) -> Option<FoundAt> {
        let caller = self.lists().freed.get(&base).cloned();
        caller.map(|caller| caller.at("free"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "   0:     0x7f01 - std::backtrace::Backtrace::create
   1:     0x7f02 - handloom_driver::caller::Caller::now
                       at /src/crates/driver/src/caller.rs:27:9
   2:     0x7f03 - cuMemFree_v2
   3:     0x7f04 - handloom_libcudart::memory::free
   4:     0x7f05 - handloom_13_cudaFree
   5:     0x5580 - _ZL8cudaFreeIiE9cudaErrorPT_
   6:     0x5581 - main
                       at src/k.cu:27:3
   7:     0x7f06 - <unknown>
";

    #[test]
    fn frames_are_read() {
        let all = frames(TEXT);
        assert_eq!(all.len(), 8);
        assert_eq!((all[6].name, all[6].place), ("main", Some(("src/k.cu", 27))));
        let calls: Vec<String> = all.iter().filter(|frame| frame.is_call()).map(Frame::call).collect();
        assert_eq!(calls, ["cuMemFree", "cudaFree", "cudaFree"]);
        assert!(all[3].is_ours() && !all[6].is_ours() && !all[7].is_call());
    }

    #[test]
    fn without_a_call_of_the_interface_there_is_only_the_word() {
        assert_eq!(Caller::now().at("copy"), FoundAt::of_call("copy", "copy", None));
    }
}
