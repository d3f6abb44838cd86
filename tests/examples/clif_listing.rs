//! Lists what the compiler makes of every entry below some folders, without making machine code.
//!
//! `cargo run --release -p handloom-tests --example clif_listing -- tests/kernels > before` prints a line for each entry, block shape, bounds
//! setting and tier, with a hash of the Cranelift IR and of the tables beside it. A change that must not change code is shown to be one by
//! `diff before after`. `--text FOLDER` writes the texts too; `--only WORD` keeps the lines that name it.

use std::io::Write;
use std::path::PathBuf;

use clap::Parser;
use handloom_tests::listing::{Request, files, list};

/// Lists what the compiler makes of every entry.
#[derive(Parser, Debug)]
struct Args {
    /// PTX files, or folders of them.
    #[arg(required = true, value_name = "FOLDER")]
    paths: Vec<PathBuf>,
    /// Threads of a block, where an entry has no `.reqntid`; repeat it for more shapes.
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = shape, default_values = ["256", "16,16"])]
    block: Vec<[u32; 3]>,
    /// Only what names this.
    #[arg(long, value_name = "WORD", default_value = "")]
    only: String,
    /// Write the texts to this folder, a file for each line.
    #[arg(long, value_name = "FOLDER")]
    text: Option<PathBuf>,
    /// Host threads. Default: one for each core.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let found = args.paths.iter().map(|p| files(p)).collect::<Result<Vec<_>, _>>()?;
    let request = Request {
        files: found.concat(),
        shapes: args.block,
        only: args.only,
        folder: args.text,
        threads: args.threads.unwrap_or(cores),
    };
    let mut out = std::io::stdout().lock();
    for line in list(&request)? {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// `X`, `X,Y` or `X,Y,Z`.
fn shape(text: &str) -> Result<[u32; 3], String> {
    let mut shape = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err("more than three dimensions".into());
    }
    for (to, part) in shape.iter_mut().zip(parts) {
        *to = part.parse().map_err(|_| format!("`{part}` is no number of threads"))?;
    }
    Ok(shape)
}
