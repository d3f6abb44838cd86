//! `--trace`: what the host does when, as a Chrome trace.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use handloom_profile::{Launch, Piece, Timeline};
use handloom_runtime::{Trace, Traced};

use crate::outputs::{Output, Store, open_all};
use crate::report::Failure;

/// What stands in each trace.
const NOTE: &str = "Time of the host that ran the kernels, not time of a GPU";

/// What is traced of a command, and the file that gets it.
pub struct Traces {
    output: Option<Output>,
    /// Asked for in any case: a page draws it.
    wanted: bool,
    all: Arc<Mutex<Vec<Traced>>>,
}

impl Traces {
    /// For a file, if there is one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(path: Option<&str>) -> Result<Traces, Failure> {
        let store = path.map(Store::to);
        let output = open_all(store.iter())?.pop();
        Ok(Traces { wanted: output.is_some(), output, all: Arc::default() })
    }

    /// The same, which also remembers for a page.
    #[must_use]
    pub fn for_page(self, wanted: bool) -> Traces {
        Traces { wanted: self.wanted || wanted, ..self }
    }

    /// Takes what launches tell, if it is wanted.
    pub fn trace(&self) -> Option<Trace> {
        let all = Arc::clone(&self.all);
        self.wanted.then(|| Trace::new(move |traced| all.lock().unwrap_or_else(PoisonError::into_inner).push(traced)))
    }

    /// Gives each launch the blocks of its last run.
    pub fn draw(&self, launches: &mut [Launch]) {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        for launch in launches {
            let shape = |d: [u32; 3]| format!("{},{},{}", d[0], d[1], d[2]);
            let facts = [("grid", shape(launch.grid)), ("block", shape(launch.block))];
            let is_of =
                |t: &&Traced| t.sort == "launch" && t.name == launch.entry && facts.iter().all(|f| t.facts.contains(f));
            let Some(last) = all.iter().rev().find(is_of) else { continue };
            let piece = |turn: &handloom_runtime::Turn| Piece {
                thread: turn.thread,
                first: turn.first,
                blocks: turn.blocks,
                begin_us: turn.begin_us - last.begin_us,
                took_us: turn.took_us,
            };
            let pieces = last.turns.iter().map(piece).collect();
            launch.timeline = Some(Timeline { took_us: last.took_us, pieces });
        }
    }

    /// Writes the file, if there is one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(self) -> Result<(), Failure> {
        let Some(output) = self.output else { return Ok(()) };
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let events: Vec<String> = all.iter().flat_map(|traced| traced.events(std::process::id())).collect();
        output.write(document(&events).as_bytes())
    }
}

/// Does work, and tells it to a trace if there is one.
pub fn traced<T>(trace: Option<&Trace>, sort: &'static str, name: &str, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let done = work();
    if let Some(trace) = trace {
        trace.tell(sort, name, begin, Vec::new());
    }
    done
}

/// Events as a document.
pub fn document(events: &[String]) -> String {
    format!(
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"note\":\"{NOTE}\"}},\"traceEvents\":[\n{}\n]}}\n",
        events.join(",\n")
    )
}
