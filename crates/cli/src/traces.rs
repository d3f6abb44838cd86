//! `--trace`: what the host does when, as a Chrome trace.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use handloom_profile::{Launch, Timelines};
use handloom_runtime::{Trace, Traced};

use crate::outputs::{Output, Store, open_all};
use crate::report::Failure;

/// What stands in each trace.
const NOTE: &str = "Time of the host that ran the kernels, not time of a GPU";

/// What is traced of a command, and the file that gets it.
pub struct Traces {
    output: Option<Output>,
    /// A page draws it.
    is_drawn: bool,
    all: Arc<Mutex<(Vec<Traced>, Timelines)>>,
}

impl Traces {
    /// For a file, if there is one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(path: Option<&str>) -> Result<Traces, Failure> {
        let store = path.map(Store::to);
        let output = open_all(store.iter())?.pop();
        Ok(Traces { is_drawn: false, output, all: Arc::default() })
    }

    /// The same, which also remembers for a page.
    #[must_use]
    pub fn for_page(self, is_drawn: bool) -> Traces {
        Traces { is_drawn, ..self }
    }

    /// Takes what launches tell, if it is wanted.
    pub fn trace(&self) -> Option<Trace> {
        let (all, is_written, is_drawn) = (Arc::clone(&self.all), self.output.is_some(), self.is_drawn);
        let take = move |traced: Traced| {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            if is_drawn {
                traced.draw(&mut all.1);
            }
            if is_written {
                all.0.push(traced);
            }
        };
        (is_written || is_drawn).then(|| Trace::new(take))
    }

    /// Gives launches the blocks of their last runs.
    pub fn draw(&self, launches: &mut [Launch]) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).1.draw(launches);
    }

    /// Writes the file, if there is one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(self) -> Result<(), Failure> {
        let Some(output) = self.output else { return Ok(()) };
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let events: Vec<String> = all.0.iter().flat_map(|traced| traced.events(std::process::id())).collect();
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
