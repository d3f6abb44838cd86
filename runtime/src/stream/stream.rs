//! A stream: work that is done later, in order.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::context::{Place, Shared, Work};
use super::error::StreamError;
use super::event::{Event, Recorded};
use super::queue::Queue;
use crate::error::wrong;
use crate::finding::Touched;
use crate::grid::LaunchReport;
use crate::launch::{Arg, LaunchConfig, LaunchError, Launcher};
use crate::lock::lock;
use crate::memory::DeviceMemory;
use crate::module::Function;
use crate::run::asked;

/// What a stream has to do with the default stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// It is the default stream.
    Default,
    /// Its work and that of the default stream keep the order in which they were given.
    Blocking,
    /// Its work waits for none of the default stream, nor that one for it.
    NonBlocking,
}

/// Work that is done one after the other by a thread of its own, while the host goes on. Streams run beside each other.
///
/// What is wrong with work when it is given is said at once and changes nothing. What fails later ends the [`Context`](super::Context).
/// Dropping a stream does not wait: what it was given is still done.
pub struct Stream {
    shared: Arc<Shared>,
    queue: Arc<Queue<Work>>,
    order: Order,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("order", &self.order).finish_non_exhaustive()
    }
}

/// A launch that a stream was given.
#[derive(Clone, Debug)]
pub struct Pending(Arc<OnceLock<LaunchReport>>);

impl Pending {
    /// What it did, once it has come to its end.
    pub fn report(&self) -> Option<&LaunchReport> {
        self.0.get()
    }
}

/// A point in a stream.
#[derive(Clone)]
pub struct Mark(Place);

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mark").field(&self.0.at()).finish()
    }
}

/// What a stream is given in parts, until it is dropped.
#[derive(Debug)]
pub struct InParts<'s>(&'s Stream);

impl InParts<'_> {
    /// What the stream is given from now on is the next part, which comes after some of those before it, by number.
    pub fn next(&self, after: &[usize]) {
        let queue = self.0.queue.end().at().0;
        self.0.shared.with_history(|history| history.next_part(queue, Some(after)));
    }
}

impl Drop for InParts<'_> {
    fn drop(&mut self) {
        let queue = self.0.queue.end().at().0;
        self.0.shared.with_history(|history| history.next_part(queue, None));
        // A place that comes after all parts. If the context has failed nothing will come after them.
        let _ = self.0.put(Work::Wait);
        self.0.shared.with_history(|history| history.end_parts(queue));
    }
}

impl Stream {
    pub(super) fn new(shared: Arc<Shared>, order: Order) -> Stream {
        let queue = shared.queue(order);
        Stream { shared, queue, order }
    }

    fn put(&self, work: Work) -> Result<u64, StreamError> {
        self.shared.put(&self.queue, self.order, None, work)
    }

    /// Launches an entry. Arguments are copied, and code is compiled, before it returns. A buffer among the arguments has to live until the
    /// launch has ended; if it does not, the kernel traps.
    ///
    /// Threads that wait for memory to change are not taken for a deadlock at once, since other streams and the host may change it; the stop handle
    /// and the limits of the launch end them.
    ///
    /// # Errors
    /// As [`Launcher::new`], or the context has failed.
    pub fn launch(&self, function: &Function, config: &LaunchConfig, args: &[Arg<'_>]) -> Result<Pending, StreamError> {
        self.shared.result()?;
        let launcher = Launcher::new(function, config)?;
        let params = launcher.bind(args)?;
        let report = Arc::default();
        self.put(Work::Launch(launcher, params, Some(Arc::clone(&report))))?;
        Ok(Pending(report))
    }

    /// Launches what was checked before, with all parameters as they lie in memory.
    ///
    /// # Errors
    /// They are not as many bytes as the entry takes, it is a launch of another device, or the context has failed.
    pub fn launch_again(&self, launcher: &Arc<Launcher>, params: Vec<u8>) -> Result<(), StreamError> {
        if !Arc::ptr_eq(&launcher.function().module().device().inner, &self.shared.device.inner) {
            let wrong = wrong!(InvalidHandle, "a launch of another device than that of the stream");
            return Err(LaunchError::from(wrong).into());
        }
        let params = launcher.params(params)?;
        self.put(Work::Launch(Arc::clone(launcher), params, None)).map(drop)
    }

    /// Copies from the host to the device.
    ///
    /// # Errors
    /// The context has failed. That the range does not lie in one allocation is found when it is done.
    pub fn write(&self, address: u64, from: impl AsRef<[u8]> + Send + 'static) -> Result<(), StreamError> {
        self.memory(move |memory| Ok(memory.write(address, from.as_ref())?))
    }

    /// Copies from the device to the host, and hands what was filled to `done`.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn read<T: AsMut<[u8]> + Send + 'static>(
        &self,
        address: u64,
        mut to: T,
        done: impl FnOnce(T) + Send + 'static,
    ) -> Result<(), StreamError> {
        self.memory(move |memory| {
            memory.read(address, to.as_mut())?;
            done(to);
            Ok(())
        })
    }

    /// Does something with the device's memory: a fill, a copy inside the device, a free.
    ///
    /// # Errors
    /// The context has failed. An error of the work itself ends the context.
    pub fn memory(
        &self,
        work: impl FnOnce(&DeviceMemory) -> Result<(), StreamError> + Send + 'static,
    ) -> Result<(), StreamError> {
        self.memory_touching(Vec::new(), work)
    }

    /// The same, with what it touches, for who looks at the order of streams.
    ///
    /// # Errors
    /// As [`memory`](Self::memory).
    pub fn memory_touching(
        &self,
        touched: Vec<Touched>,
        work: impl FnOnce(&DeviceMemory) -> Result<(), StreamError> + Send + 'static,
    ) -> Result<(), StreamError> {
        self.put(Work::Memory(Box::new(work), touched)).map(drop)
    }

    /// Does several things one after the other that are not known before: with the device's memory, and launches by [`Launcher::launch_now`].
    ///
    /// # Errors
    /// The context has failed. An error of the work itself ends the context.
    pub fn steps(
        &self,
        work: impl FnOnce(&DeviceMemory) -> Result<(), StreamError> + Send + 'static,
    ) -> Result<(), StreamError> {
        self.put(Work::Steps(Box::new(work))).map(drop)
    }

    /// Waits until `test` says so, which it is asked again and again. What `quiet` means is what it means of a launch
    /// ([`LaunchConfig::quiet`]).
    ///
    /// # Errors
    /// The context has failed. An error of the test ends the context.
    pub fn wait_until(
        &self,
        test: impl FnMut(&DeviceMemory) -> Result<bool, StreamError> + Send + 'static,
        quiet: Option<Duration>,
    ) -> Result<(), StreamError> {
        self.put(Work::Until(Box::new(test), quiet)).map(drop)
    }

    /// Calls a function of the host; not if work has failed before. It [may not wait](super::may_wait) for work.
    ///
    /// # Errors
    /// The context has failed.
    pub fn host(&self, call: impl FnOnce() + Send + 'static) -> Result<(), StreamError> {
        self.put(Work::Host(Box::new(call))).map(drop)
    }

    /// Calls a function of the host in any case, and tells it whether work has failed before.
    ///
    /// # Errors
    /// The context has failed already: the function is not called.
    pub fn callback(&self, call: impl FnOnce(Result<(), StreamError>) + Send + 'static) -> Result<(), StreamError> {
        self.put(Work::Callback(Box::new(call))).map(drop)
    }

    /// Makes an event stand for all work that the stream was given until now.
    ///
    /// # Errors
    /// The context has failed, or the event is one of another context.
    pub fn record(&self, event: &Event) -> Result<(), StreamError> {
        if !Arc::ptr_eq(&self.shared, &event.shared) {
            return Err(StreamError::OtherContext);
        }
        let mut recorded = lock(&event.recorded);
        let time = Arc::default();
        let number = self.put(Work::Record(Arc::clone(&time)))?;
        *recorded = Some(Recorded { place: self.queue.place(number), time });
        Ok(())
    }

    /// Makes all that the stream is given later wait for the work that an event stands for now. The event may be one of another context.
    ///
    /// # Errors
    /// The context has failed.
    pub fn wait(&self, event: &Event) -> Result<(), StreamError> {
        match event.place() {
            Some(place) => self.wait_for_place(place),
            None => self.shared.result(),
        }
    }

    /// Makes all that the stream is given later wait for a place of any stream.
    pub(super) fn wait_for_place(&self, place: Place) -> Result<(), StreamError> {
        self.shared.put(&self.queue, self.order, Some(place), Work::Wait).map(drop)
    }

    /// The end of what the stream was given until now.
    pub fn mark(&self) -> Mark {
        Mark(self.queue.end())
    }

    /// Makes all that the stream is given later wait for what another stream, or itself, was given until a mark.
    ///
    /// # Errors
    /// The context has failed.
    pub fn wait_for_mark(&self, mark: &Mark) -> Result<(), StreamError> {
        if mark.0.at().0 == self.queue.end().at().0 {
            self.shared.result()
        } else {
            self.wait_for_place(mark.0.clone())
        }
    }

    /// Gives the stream parts of which each comes after some of those before it, for who looks at the order of work; nothing, and nothing happens, where
    /// nobody does. The stream does one thing after the other in any case.
    pub fn parts(&self) -> Option<InParts<'_>> {
        self.shared.is_watched().then(|| {
            self.shared.with_history(|history| history.begin_parts(self.queue.end().at()));
            InParts(self)
        })
    }

    /// Whether all is done that it was given; for the default stream, also what blocking streams were given.
    ///
    /// # Errors
    /// Work of the context has failed.
    pub fn is_done(&self) -> Result<bool, StreamError> {
        let pending = self.shared.pending(&self.queue, self.order);
        let is_done = pending.iter().all(Place::ask);
        if is_done {
            self.shared.waited(&pending);
        } else {
            asked();
        }
        self.shared.result().map(|()| is_done)
    }

    /// Waits for all that it was given until now; the default stream also for what blocking streams were given.
    ///
    /// # Errors
    /// Work of the context has failed, or the thread [may not wait](super::may_wait).
    pub fn synchronize(&self) -> Result<(), StreamError> {
        self.shared.wait_for(&self.shared.pending(&self.queue, self.order))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.left(&self.queue);
        self.queue.close();
    }
}
