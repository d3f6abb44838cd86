//! Work in order.

use crate::launch::{Arg, LaunchConfig, LaunchError, LaunchReport, launch};
use crate::module::Function;

/// Launches that run one after the other.
///
/// Choice: a launch runs when it is made, on the thread that makes it. Streams of different threads run beside each other.
#[derive(Debug, Default)]
pub struct Stream {
    reports: Vec<LaunchReport>,
}

impl Stream {
    /// A stream without work.
    pub fn new() -> Stream {
        Stream::default()
    }

    /// Launches an entry behind what was launched before.
    ///
    /// # Errors
    /// As [`launch`].
    pub fn launch(
        &mut self,
        function: &Function,
        config: &LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<&LaunchReport, LaunchError> {
        let report = launch(function, config, args)?;
        self.reports.push(report);
        Ok(self.reports.last().unwrap_or_else(|| unreachable!("just pushed")))
    }

    /// Starts the argument list of a launch.
    pub fn launch_builder<'s, 'a>(&'s mut self, function: &'a Function) -> LaunchBuilder<'s, 'a> {
        LaunchBuilder { stream: self, function, args: Vec::new() }
    }

    /// Waits for all work and gives the reports since the last call.
    pub fn synchronize(&mut self) -> Vec<LaunchReport> {
        std::mem::take(&mut self.reports)
    }
}

/// A launch whose arguments are being listed.
#[derive(Debug)]
#[must_use]
pub struct LaunchBuilder<'s, 'a> {
    stream: &'s mut Stream,
    function: &'a Function,
    args: Vec<Arg<'a>>,
}

impl<'s, 'a> LaunchBuilder<'s, 'a> {
    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<Arg<'a>>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Launches.
    ///
    /// # Errors
    /// As [`launch`].
    pub fn launch(self, config: &LaunchConfig) -> Result<&'s LaunchReport, LaunchError> {
        self.stream.launch(self.function, config, &self.args)
    }
}
