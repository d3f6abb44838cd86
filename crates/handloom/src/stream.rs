//! Launches: at once, prepared, or one after the other while the host goes on.

use std::fmt;
use std::sync::Arc;

use handloom_runtime::{self as runtime, Context, LaunchConfig, LaunchReport, PreparedLaunch};

use crate::arg::{self, Arg, Field};
use crate::device::Function;
use crate::error::{Error, ErrorKind};

/// Where launches are given. What one stream is given later is done in order, by a thread of its own. A clone is the same stream.
///
/// The crate's first page has an example; [`LaunchBuilder::enqueue`] has one of launches that are done later.
#[derive(Clone)]
pub struct Stream {
    /// Each stream has its own, so that the error of one ends no other.
    context: Context,
    inner: Arc<runtime::Stream>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

impl Stream {
    pub(crate) fn new(device: &runtime::Device) -> Stream {
        let context = Context::new(device);
        let inner = Arc::new(context.non_blocking_stream());
        Stream { context, inner }
    }

    /// A launch of an entry. The crate's first page has an example.
    pub fn launch_builder<'a>(&'a self, function: &'a Function) -> LaunchBuilder<'a> {
        LaunchBuilder { stream: self, function, fields: Vec::new() }
    }

    /// Waits for all that it was given. [`LaunchBuilder::enqueue`] has an example.
    ///
    /// # Errors
    /// Something of it has failed. The stream does nothing any more then, and each call says why.
    pub fn synchronize(&self) -> Result<(), Error> {
        Ok(self.inner.synchronize()?)
    }

    /// Whether all has ended that it was given. [`Event`] has an example.
    ///
    /// # Errors
    /// As [`synchronize`](Self::synchronize).
    pub fn is_done(&self) -> Result<bool, Error> {
        Ok(self.inner.is_done()?)
    }

    /// A point after all that it was given until now. [`Device::new_stream`](crate::Device::new_stream) has an example.
    ///
    /// # Errors
    /// As [`synchronize`](Self::synchronize).
    pub fn record(&self) -> Result<Event, Error> {
        let event = self.context.event();
        self.inner.record(&event)?;
        Ok(Event { inner: Arc::new(event) })
    }

    /// Makes all that it is given later wait for a point of any stream. [`Device::new_stream`](crate::Device::new_stream) has an example.
    ///
    /// # Errors
    /// As [`synchronize`](Self::synchronize).
    pub fn wait(&self, event: &Event) -> Result<(), Error> {
        Ok(self.inner.wait(&event.inner)?)
    }
}

/// A point in a stream.
///
/// ```
/// # fn main() -> Result<(), handloom::Error> {
/// let stream = handloom::Device::new()?.new_stream();
/// let (start, end) = (stream.record()?, stream.record()?);
/// end.synchronize()?;
/// assert!(start.is_done()? && end.is_done()? && stream.is_done()?);
/// assert!(end.milliseconds_since(&start)? >= 0.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Event {
    inner: Arc<runtime::Event>,
}

impl Event {
    /// Waits for the work before it. [`Event`] has an example.
    ///
    /// # Errors
    /// Work of its stream has failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        Ok(self.inner.synchronize()?)
    }

    /// Whether the work before it has ended. [`Event`] has an example.
    ///
    /// # Errors
    /// Work of its stream has failed.
    pub fn is_done(&self) -> Result<bool, Error> {
        Ok(self.inner.is_done()?)
    }

    /// Milliseconds from another point to this one. [`Event`] has an example.
    ///
    /// # Errors
    /// The work before one of them has not ended.
    pub fn milliseconds_since(&self, start: &Event) -> Result<f64, Error> {
        Ok(self.inner.milliseconds_since(&start.inner)?)
    }
}

/// A launch that is put together: an entry and one argument for each parameter. The crate's first page has an example.
#[derive(Debug)]
#[must_use]
pub struct LaunchBuilder<'a> {
    stream: &'a Stream,
    function: &'a Function,
    fields: Vec<Field<'a>>,
}

impl<'a> LaunchBuilder<'a> {
    /// The next argument. The crate's first page has an example.
    pub fn arg(&mut self, value: &'a (impl Arg + ?Sized)) -> &mut LaunchBuilder<'a> {
        self.fields.push(value.field());
        self
    }

    /// Runs it, after what the stream was given before, and waits for its end.
    ///
    /// ```
    /// use handloom::{Check, Device, LaunchConfig};
    ///
    /// # fn main() -> Result<(), handloom::Error> {
    /// let device = Device::new()?;
    /// let kernel = device.load_module(handloom::doc::RACY)?.load_function("neighbour")?;
    /// let (x, y) = (device.copy_of(&[1_u32; 64])?, device.zeroed::<u32>(64)?);
    /// let config = LaunchConfig::new([1, 1, 1], [64, 1, 1]).checked([Check::Race]);
    /// let report = device.default_stream().launch_builder(&kernel).arg(&x).arg(&y).launch(config)?;
    /// assert_eq!(report.blocks, 1);
    /// assert_eq!((report.findings()[0].kind, report.findings()[0].class), ("race", "same_warp"));
    /// assert!(report.clean().unwrap_err().contains("put a `bar.warp.sync` between them"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Another thread ends one that runs, by a [`StopHandle`](runtime::StopHandle) of its configuration:
    ///
    /// ```
    /// use handloom::{Device, ErrorKind, LaunchConfig, StopHandle};
    /// use std::{thread, time::Duration};
    ///
    /// # fn main() -> Result<(), handloom::Error> {
    /// let spin = ".version 8.0\n.target sm_80\n.entry spin() { L: bra L; }";
    /// let device = Device::new()?;
    /// let kernel = device.load_module(spin)?.load_function("spin")?;
    /// let stop = StopHandle::new();
    /// let config = LaunchConfig { stop: stop.clone(), ..LaunchConfig::for_num_elems(1) };
    /// thread::spawn(move || {
    ///     thread::sleep(Duration::from_millis(20));
    ///     stop.stop();
    /// });
    /// let told = device.default_stream().launch_builder(&kernel).launch(config);
    /// assert_eq!(told.unwrap_err().kind(), ErrorKind::Stopped);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The launch is wrong, it is stopped, the kernel traps, or work of the stream has failed before.
    pub fn launch(&mut self, config: LaunchConfig) -> Result<LaunchReport, Error> {
        let mut prepared = self.prepare(config)?;
        if !self.stream.inner.is_done()? {
            self.stream.synchronize()?;
        }
        prepared.run()
    }

    /// Checks it, makes its code and writes its parameters, so that it can be run again and again.
    ///
    /// ```
    /// use handloom::{Device, LaunchConfig};
    ///
    /// # fn main() -> Result<(), handloom::Error> {
    /// let device = Device::new()?;
    /// let kernel = device.load_module(handloom::doc::SAXPY)?.load_function("saxpy")?;
    /// let (x, y) = (device.copy_of(&[1.0_f32])?, device.zeroed::<f32>(1)?);
    /// let stream = device.default_stream();
    /// let config = LaunchConfig::for_num_elems(1);
    /// let mut add = stream.launch_builder(&kernel).arg(&1_u32).arg(&1.0_f32).arg(&x).arg(&y).prepare(config)?;
    /// for _ in 0..5 {
    ///     let report = add.run()?;
    ///     assert!(report.findings().is_empty());
    /// }
    /// assert_eq!(y.to_vec(), [5.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The launch is wrong, there is no room, or compiling fails.
    pub fn prepare(&mut self, config: LaunchConfig) -> Result<Prepared, Error> {
        self.with_args(|function, args| Ok(PreparedLaunch::new(function, &config, args)?))
            .map(|inner| Prepared { inner })
    }

    /// Gives it to the stream, which runs it after what it was given before, while the host goes on. Arguments are copied, and code is compiled, before this returns.
    ///
    /// ```
    /// use handloom::{Device, LaunchConfig};
    ///
    /// # fn main() -> Result<(), handloom::Error> {
    /// let device = Device::new()?;
    /// let kernel = device.load_module(handloom::doc::SAXPY)?.load_function("saxpy")?;
    /// let (x, y) = (device.copy_of(&[1.0_f32])?, device.zeroed::<f32>(1)?);
    /// let stream = device.new_stream();
    /// let mut add = stream.launch_builder(&kernel);
    /// add.arg(&1_u32).arg(&1.0_f32).arg(&x).arg(&y);
    /// let first = add.enqueue(LaunchConfig::for_num_elems(1))?;
    /// add.enqueue(LaunchConfig::for_num_elems(1))?;
    /// stream.synchronize()?;
    /// assert_eq!((y.to_vec(), first.wait()?.blocks), (vec![2.0], 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The launch is wrong, or work of the stream has failed before. What the kernel does wrong is the error of [`Pending::wait`] and [`Stream::synchronize`].
    pub fn enqueue(&mut self, config: LaunchConfig) -> Result<Pending, Error> {
        let stream = self.stream;
        let inner = self.with_args(|function, args| Ok(stream.inner.launch(function, &config, args)?))?;
        Ok(Pending { inner, stream: stream.clone() })
    }

    fn with_args<R>(
        &self,
        work: impl FnOnce(&runtime::Function, &[runtime::Arg<'_>]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let function = &self.function.inner;
        let params = function.params();
        // Of too many or too few arguments, their number is what is wrong.
        let known = |i: usize| params.get(i).filter(|_| params.len() == self.fields.len());
        let args: Result<Vec<_>, Error> =
            self.fields.iter().enumerate().map(|(i, field)| arg::bind(i + 1, known(i), field)).collect();
        work(function, &args?)
    }
}

/// A launch whose code and parameters are there. [`LaunchBuilder::prepare`] has an example.
#[derive(Debug)]
pub struct Prepared {
    inner: PreparedLaunch,
}

impl Prepared {
    /// Runs it and waits for its end. It does not wait for streams. [`LaunchBuilder::prepare`] has an example.
    ///
    /// # Errors
    /// The kernel traps, the launch is stopped, or there is no memory for its blocks.
    pub fn run(&mut self) -> Result<LaunchReport, Error> {
        Ok(self.inner.run()?)
    }
}

/// A launch that a stream was given. [`LaunchBuilder::enqueue`] has an example.
#[derive(Clone, Debug)]
pub struct Pending {
    inner: runtime::Pending,
    stream: Stream,
}

impl Pending {
    /// Waits for all that the stream was given, and says what this launch did. [`LaunchBuilder::enqueue`] has an example.
    ///
    /// # Errors
    /// The kernel trapped, or work before it.
    pub fn wait(&self) -> Result<LaunchReport, Error> {
        if let Some(report) = self.inner.report() {
            return Ok(report.clone());
        }
        self.stream.synchronize()?;
        let lost = || Error::refused(ErrorKind::Bug, "bug: a launch has ended without a report");
        self.inner.report().cloned().ok_or_else(lost)
    }
}
