//! What streams of a device share: the error that ends them, the default stream, and the order that it brings.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use handloom_codegen::Failure;

use super::error::StreamError;
use super::event::Event;
use super::history::History;
use super::parts::At;
use super::queue::{self, Hands, Item, Job, Queue};
use super::stream::{Order, Stream};
use crate::device::Device;
use crate::error::panic_text;
use crate::finding::{CheckSink, Footprint, Touched};
use crate::grid::LaunchReport;
use crate::launch::{LaunchError, Launcher, Params};
use crate::lock::lock;
use crate::memory::DeviceMemory;
use crate::run::{HostWaits, Running, Silence};

/// A place in a stream.
pub(super) type Place = queue::Place<Work>;

/// Work on the device's memory.
type OnMemory = dyn FnOnce(&DeviceMemory) -> Result<(), StreamError> + Send;

/// Something that is waited for.
type Test = dyn FnMut(&DeviceMemory) -> Result<bool, StreamError> + Send;

/// How often it is looked for.
const LOOK: Duration = Duration::from_micros(50);

/// Most streams that are gone and whose work may come before what it is held against. Work of older ones counts as waited for, so that only findings are
/// missed.
const MOST_GONE: usize = 256;

/// Something that a stream does.
pub(super) enum Work {
    /// Runs a launch and leaves its report, if somebody wants it.
    Launch(Arc<Launcher>, Params, Option<Arc<OnceLock<LaunchReport>>>),
    /// Does something with the device's memory, and touches so much of it.
    Memory(Box<OnMemory>, Vec<Touched>),
    /// The same, and runs launches.
    Steps(Box<OnMemory>),
    /// Calls a function of the host, unless work has failed.
    Host(Box<dyn FnOnce() + Send>),
    /// Calls a function of the host in any case.
    Callback(Box<dyn FnOnce(Result<(), StreamError>) + Send>),
    /// Notes the time of an event.
    Record(Arc<OnceLock<Instant>>),
    /// Waits until something is so, but not for ever in silence.
    Until(Box<Test>, Option<Duration>),
    /// Only waits.
    Wait,
}

impl Job for Work {
    /// Functions of the program are called on the stream's own thread, and what waits for the host waits there.
    fn may_be_helped(&self) -> bool {
        matches!(self, Work::Launch(..) | Work::Memory(..) | Work::Record(_) | Work::Wait)
    }

    fn is_short(&self) -> bool {
        match self {
            Work::Launch(launcher, ..) => launcher.is_short(),
            Work::Memory(..) | Work::Record(_) | Work::Wait => true,
            Work::Steps(_) | Work::Host(_) | Work::Callback(_) | Work::Until(..) => false,
        }
    }
}

/// What the streams and events of a context share.
pub(super) struct Shared {
    pub(super) device: Device,
    /// The first error of work. It stays.
    error: OnceLock<StreamError>,
    /// The streams. Held while work is put in, so that what it has to wait for was put in before.
    streams: Mutex<Vec<(Weak<Queue<Work>>, Order)>>,
    /// Places that all new work waits for.
    gates: Mutex<Vec<Place>>,
    has_gates: AtomicBool,
    /// What comes before what, if launches are checked.
    history: OnceLock<Mutex<History>>,
    /// Then, queues of streams that nobody can name any more, and whose work the host may not have waited for.
    gone: Mutex<VecDeque<Arc<Queue<Work>>>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("error", &self.error).finish_non_exhaustive()
    }
}

impl Shared {
    /// Whether work has failed.
    pub(super) fn result(&self) -> Result<(), StreamError> {
        self.error.get().map_or(Ok(()), |e| Err(e.clone()))
    }

    /// A queue of its own for a stream.
    pub(super) fn queue(&self, order: Order) -> Arc<Queue<Work>> {
        let queue = Queue::new();
        let mut streams = lock(&self.streams);
        streams.retain(|(queue, _)| queue.strong_count() > 0);
        streams.push((Arc::downgrade(&queue), order));
        drop(streams);
        queue
    }

    /// The ends of the streams that new work of a stream has to wait for, because of the default stream.
    /// `all`: also of those that have done all they were given.
    fn before(streams: &[(Weak<Queue<Work>>, Order)], order: Order, all: bool) -> Vec<Place> {
        let other = match order {
            Order::Default => Order::Blocking,
            Order::Blocking => Order::Default,
            Order::NonBlocking => return Vec::new(),
        };
        let others = streams.iter().filter(|(_, o)| *o == other);
        others
            .filter_map(|(queue, _)| queue.upgrade().filter(|queue| all || !queue.is_done()).map(|queue| queue.end()))
            .collect()
    }

    /// Puts work at the end of a stream, also to be done after `place`. Returns the number of its place.
    pub(super) fn put(
        self: &Arc<Self>,
        queue: &Arc<Queue<Work>>,
        order: Order,
        place: Option<Place>,
        work: Work,
    ) -> Result<u64, StreamError> {
        self.result()?;
        let gates = self.gates();
        let perform = || {
            let (shared, queue) = (Arc::clone(self), Arc::clone(queue));
            Box::new(move |work| shared.perform(work, queue.now())) as Hands<Work>
        };
        if order == Order::NonBlocking {
            // What it has to wait for does not depend on who puts in work at the same time.
            return self.note(queue, Item { after: gates.into_iter().chain(place).collect(), work }, perform);
        }
        let streams = lock(&self.streams);
        let mut after = Shared::before(&streams, order, self.is_watched());
        after.extend(gates.into_iter().chain(place));
        self.note(queue, Item { after, work }, perform)
    }

    /// Whether it is looked at what comes before what.
    pub(super) fn is_watched(&self) -> bool {
        self.history.get().is_some()
    }

    /// Does something with what comes before what, where that is looked at.
    pub(super) fn with_history(&self, act: impl FnOnce(&mut History)) {
        if let Some(history) = self.history.get() {
            act(&mut lock(history));
        }
    }

    /// Work has touched memory.
    fn did(&self, at: At, touched: &Arc<Footprint>) {
        if touched.len() > 0 {
            self.with_history(|history| history.did(at, Arc::clone(touched), self.device.memory()));
        }
    }

    /// Puts work in, and notes what comes before it where that is looked at.
    fn note(
        &self,
        queue: &Arc<Queue<Work>>,
        item: Item<Work>,
        perform: impl FnOnce() -> Hands<Work>,
    ) -> Result<u64, StreamError> {
        let Some(history) = self.history.get() else { return Ok(queue.put(item, perform)?) };
        let after: Vec<At> = item.after.iter().map(Place::at).collect();
        let mut history = lock(history);
        let number = queue.put(item, perform)?;
        history.put(queue.place(number).at(), &after);
        Ok(number)
    }

    /// The host has waited for places, or has been told that they are passed.
    pub(super) fn waited(&self, places: &[Place]) {
        self.with_history(|history| {
            let places: Vec<At> = places.iter().map(Place::at).collect();
            history.waited(&places);
        });
    }

    /// Lets the host wait until places are passed.
    ///
    /// # Errors
    /// Work has failed, or the thread may not wait.
    pub(super) fn wait_for(&self, places: &[Place]) -> Result<(), StreamError> {
        let _waits = HostWaits::begin();
        let may = may_wait();
        if may.is_ok() {
            places.iter().for_each(Place::wait);
        } else if !places.iter().all(Place::ask) {
            return self.result().and(may);
        }
        self.waited(places);
        self.result()
    }

    /// A stream is gone. What it was given still has its place in the order of the default stream, and the host can wait for all work of the context.
    pub(super) fn left(&self, queue: &Arc<Queue<Work>>) {
        if !self.is_watched() {
            return;
        }
        let mut gone = lock(&self.gone);
        gone.push_back(Arc::clone(queue));
        let oldest = if gone.len() > MOST_GONE { gone.pop_front() } else { None };
        drop(gone);
        if let Some(queue) = oldest {
            self.waited(&[queue.end()]);
        }
    }

    /// What new work of any stream waits for, because somebody said so of the whole context.
    fn gates(&self) -> Vec<Place> {
        if !self.has_gates.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut gates = lock(&self.gates);
        gates.retain(|place| self.is_watched() || !place.is_passed());
        self.has_gates.store(!gates.is_empty(), Ordering::Release);
        gates.clone()
    }

    /// The ends of all streams.
    fn ends(&self) -> Vec<Place> {
        lock(&self.streams).iter().filter_map(|(queue, _)| Some(queue.upgrade()?.end())).collect()
    }

    /// Whether a stream has done all that it was given; the default stream, whether all did whose work it waits for.
    pub(super) fn pending(&self, queue: &Arc<Queue<Work>>, order: Order) -> Vec<Place> {
        let mut places = match order {
            Order::Default => Shared::before(&lock(&self.streams), order, self.is_watched()),
            Order::Blocking | Order::NonBlocking => Vec::new(),
        };
        places.push(queue.end());
        places
    }

    /// Waits until a test says so, work has failed, or nothing will happen any more.
    fn until(&self, test: &mut Test, quiet: Option<Duration>) -> Result<(), StreamError> {
        let silence = Silence::default();
        while !test(self.device.memory())? {
            if self.error.get().is_some() {
                return Ok(());
            }
            if quiet.is_some_and(|limit| silence.lasts(0, limit)) {
                return Err(StreamError::Silence);
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Does work, on the thread of its stream. After an error nothing is done but what must be told.
    fn perform(&self, work: Work, at: At) {
        // A launch says by itself when it runs.
        let _running = (!matches!(work, Work::Launch(..) | Work::Steps(_))).then(Running::begin);
        let error = self.error.get();
        let done = match work {
            Work::Record(time) => {
                let _ = time.set(Instant::now());
                return;
            }
            Work::Callback(call) => caught(|| call(self.result()), StreamError::HostFunction),
            Work::Wait | Work::Until(..) | Work::Launch(..) | Work::Memory(..) | Work::Steps(_) | Work::Host(_)
                if error.is_some() =>
            {
                return;
            }
            Work::Wait => return,
            Work::Until(mut test, quiet) => {
                let done =
                    caught(|| self.until(&mut *test, quiet), StreamError::HostFunction).and_then(|result| result);
                self.with_history(History::forget);
                done
            }
            Work::Host(call) => caught(call, StreamError::HostFunction),
            Work::Memory(act, touched) => {
                let done = caught(|| act(self.device.memory()), StreamError::HostFunction).and_then(|result| result);
                self.did(at, &Arc::new(Footprint::of(touched)));
                done
            }
            Work::Steps(act) => {
                caught(|| act(self.device.memory()), StreamError::HostFunction).and_then(|result| result)
            }
            Work::Launch(launcher, params, report) => {
                let bug = |text| StreamError::from(LaunchError::Failed(Failure::Bug(text)));
                caught(move || launcher.run(params), bug).and_then(|result| {
                    let done = result?;
                    if let Some(check) = &done.check {
                        self.did(at, &check.touched);
                    }
                    let _ = report.map(|report| report.set(done));
                    Ok(())
                })
            }
        };
        if let Err(e) = done {
            let _ = self.error.set(e);
        }
    }
}

/// The process ends, and has waited long enough.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// From now on no call waits for work: the process ends, and what has not ended until now may never do.
pub fn give_up_waiting() {
    GIVEN_UP.store(true, Ordering::SeqCst);
}

/// Whether the calling thread may wait for work. A function that work calls may not, since what it would wait for may come after that work.
///
/// # Errors
/// It may not.
pub fn may_wait() -> Result<(), StreamError> {
    if queue::is_at_work() || GIVEN_UP.load(Ordering::SeqCst) { Err(StreamError::MayNotWait) } else { Ok(()) }
}

/// What a function returns, or an error of the text of its panic.
fn caught<R>(work: impl FnOnce() -> R, error: impl FnOnce(String) -> StreamError) -> Result<R, StreamError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| error(panic_text(panic.as_ref())))
}

/// Streams and events of a device that share one fate: when work of one of them fails, none does anything more, and every call says why.
///
/// A clone is the same context.
#[derive(Clone, Debug)]
pub struct Context {
    shared: Arc<Shared>,
    default: Arc<Stream>,
}

impl Context {
    /// A context without streams but the default one.
    pub fn new(device: &Device) -> Context {
        let (error, streams) = (OnceLock::new(), Mutex::default());
        let (gates, has_gates) = (Mutex::default(), AtomicBool::new(false));
        let (history, gone) = (OnceLock::new(), Mutex::default());
        let shared = Arc::new(Shared { device: device.clone(), error, streams, gates, has_gates, history, gone });
        let default = Arc::new(Stream::new(Arc::clone(&shared), Order::Default));
        Context { shared, default }
    }

    /// Looks from now on for work that touches the same memory and that nothing orders, and tells what it finds. Launches must keep what they touch
    /// ([`Options::keeps_footprint`](crate::RaceOptions)).
    pub fn watch(&self, sink: CheckSink) {
        let _ = self.shared.history.set(Mutex::new(History::new(sink)));
    }

    /// Memory is freed, and may become other memory, in an order that the program need not know.
    pub fn forget_touched(&self) {
        self.shared.with_history(History::forget);
    }

    /// The same of a range alone.
    pub fn forget_touched_in(&self, address: u64, bytes: u64) {
        self.shared.with_history(|history| history.forget_range(address, bytes));
    }

    /// What `touched` names, if somebody looks for work that touches the same memory; else nothing, at no cost.
    pub fn touched(&self, touched: impl FnOnce() -> Vec<Touched>) -> Vec<Touched> {
        if self.shared.is_watched() { touched() } else { vec![] }
    }

    /// The host touches memory of the device itself.
    pub fn touches(&self, touched: impl FnOnce() -> Vec<Touched>) {
        self.shared.with_history(|history| history.host_did(touched(), self.shared.device.memory()));
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.shared.device
    }

    /// The default stream: its work is done after all work that blocking streams were given before, and before all that they are given later.
    pub fn default_stream(&self) -> &Stream {
        &self.default
    }

    /// A new stream that keeps the order of the default stream.
    pub fn stream(&self) -> Stream {
        Stream::new(Arc::clone(&self.shared), Order::Blocking)
    }

    /// A new stream that does not care about the default stream.
    pub fn non_blocking_stream(&self) -> Stream {
        Stream::new(Arc::clone(&self.shared), Order::NonBlocking)
    }

    /// A new event that keeps the time at which its work ended.
    pub fn event(&self) -> Event {
        Event::new(Arc::clone(&self.shared), true)
    }

    /// A new event to wait for only.
    pub fn event_without_time(&self) -> Event {
        Event::new(Arc::clone(&self.shared), false)
    }

    /// The error that ended the context, if one did.
    pub fn error(&self) -> Option<StreamError> {
        self.shared.result().err()
    }

    /// Makes all that a stream is given later wait for all work that streams of the context were given until now.
    ///
    /// # Errors
    /// The context has failed.
    pub fn gather(&self, stream: &Stream) -> Result<(), StreamError> {
        self.shared.ends().into_iter().try_for_each(|place| stream.wait_for_place(place))
    }

    /// Makes all that streams of the context are given later wait for the work that an event stands for now. The event may be one of another context.
    ///
    /// # Errors
    /// The context has failed.
    pub fn wait(&self, event: &Event) -> Result<(), StreamError> {
        if let Some(place) = event.place() {
            lock(&self.shared.gates).push(place);
            self.shared.has_gates.store(true, Ordering::Release);
        }
        self.shared.result()
    }

    /// Waits for all that its streams were given until now.
    ///
    /// # Errors
    /// Work has failed, or the thread [may not wait](may_wait).
    pub fn synchronize(&self) -> Result<(), StreamError> {
        // Their queues live until it is noted that they have been waited for.
        let _gone = std::mem::take(&mut *lock(&self.shared.gone));
        let ends = self.shared.ends();
        self.shared.wait_for(&ends)
    }

    /// Waits as [`synchronize`](Self::synchronize), but no longer than until then, and does nothing of it on the calling thread. Returns whether all is done.
    pub fn is_done_by(&self, then: Instant) -> bool {
        let _waits = HostWaits::begin();
        let ends = self.shared.ends();
        loop {
            if ends.iter().all(Place::ask) {
                return true;
            }
            if Instant::now() >= then {
                return false;
            }
            std::thread::sleep(LOOK);
        }
    }
}
