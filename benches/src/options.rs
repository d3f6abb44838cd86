//! What the command line can say.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use handloom_runtime::Engine;

use crate::cases::Scale;

/// Times Handloom beside C on the same work and prints tables.
///
/// Every result is checked before it is timed. A wrong result or a failed launch gives exit status 1; a ratio below its floor does
/// not. C programs are built with $CC or gcc.
#[derive(Parser, Clone, Debug)]
#[command(name = "bench", version)]
pub struct Options {
    /// Only benchmarks whose name contains one of these: `saxpy`, `kernel/`, `compile/empty`
    pub filter: Vec<String>,
    /// One round each of small sizes, and no judgement
    #[arg(long)]
    pub quick: bool,
    /// One JSON object a line instead of tables
    #[arg(long)]
    pub json: bool,
    /// Rounds in which ours and C take turns
    #[arg(long, default_value_t = 9, value_name = "N")]
    pub rounds: u32,
    /// What a ratio on one thread compares: `cpu` is CPU time of the process, `wall` is what a watch says
    #[arg(long, value_enum, default_value = "cpu")]
    pub clock: Clock,
    /// Who runs the kernels; `interp` takes tiny sizes and judges nothing
    #[arg(long, value_enum, default_value = "jit")]
    pub engine: EngineName,
    /// A PTX file, or a folder whose largest one is taken, for compile time and for the speed of the front end
    #[arg(long, default_value = "../shared/corpus", value_name = "PATH")]
    pub corpus: PathBuf,
}

/// A clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Clock {
    /// CPU time of the process.
    Cpu,
    /// Wall time.
    Wall,
}

/// An engine, as the command line calls it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum EngineName {
    /// Compiled code.
    Jit,
    /// The reference executor.
    Interp,
}

impl Options {
    /// Whether a benchmark was asked for.
    pub fn wants(&self, name: &str) -> bool {
        self.filter.is_empty() || self.filter.iter().any(|f| name.contains(f.as_str()))
    }

    /// Rounds to run.
    pub fn rounds(&self) -> u32 {
        if self.quick || self.engine == EngineName::Interp { 1 } else { self.rounds.max(1) }
    }

    /// How often what takes little time is done in a round: so often, or once.
    pub fn repeats(&self, n: u32) -> u32 {
        if self.quick { 1 } else { n }
    }

    /// The sizes that kernels run at, the one that all contestants meet at first. A quick round shows that all of them work: small arrays do for that.
    pub fn scales(&self) -> &'static [Scale] {
        match (self.engine, self.quick) {
            (EngineName::Interp, _) => &[Scale::Tiny],
            (EngineName::Jit, true) => &[Scale::Small],
            (EngineName::Jit, false) => &[Scale::Full, Scale::Small],
        }
    }

    /// Whether floors are judged.
    pub fn judges(&self) -> bool {
        !self.quick && self.engine == EngineName::Jit
    }

    /// The engine.
    pub fn engine(&self) -> Engine {
        match self.engine {
            EngineName::Jit => Engine::Jit,
            EngineName::Interp => Engine::Interp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_parts_of_names() {
        let all = Options::parse_from(["bench"]);
        assert!(all.wants("kernel/saxpy") && all.judges());
        let some = Options::parse_from(["bench", "saxpy", "launch/", "--quick"]);
        assert!(some.wants("kernel/saxpy") && some.wants("launch/small") && !some.wants("kernel/hash"));
        assert_eq!((some.rounds(), some.judges()), (1, false));
        assert_eq!((all.scales(), some.scales()), (&[Scale::Full, Scale::Small][..], &[Scale::Small][..]));
    }
}
