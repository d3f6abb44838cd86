//! The C side: builds a program and asks it for rounds. `c/common.h` has the other half of the conversation.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use handloom_runtime::Vectors;

use crate::measure::Sample;

/// A C program of this folder.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// File name without `.c`.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// Whether it includes headers of CUDA, which are not ours to keep.
    pub needs_cuda_headers: bool,
    /// A part in C++, by file names: the first file is compiled and linked, and may include the others.
    pub cxx: &'static [(&'static str, &'static str)],
}

/// The variable of the environment that names the folder of those headers.
pub const CUDA_HEADERS: &str = "HANDLOOM_CUDA_INCLUDE";

const COMMON: &str = include_str!("../c/common.h");

/// How plain programs are built. `simd` pragmas are obeyed in both; only one variant of the reduction has one.
const PLAIN: &[&str] = &["-O3", "-fopenmp-simd"];
/// How programs for two threads are built.
const OPENMP: &[&str] = &["-O3", "-fopenmp"];

/// What programs may use of the host: as much as code of ours does, which `HANDLOOM_ISA` caps.
pub fn instructions() -> &'static [&'static str] {
    match Vectors::named() {
        Ok(Some(Vectors::V256)) => &["-mavx2", "-mfma"],
        Ok(Some(Vectors::V128)) => &["-msse4.2"],
        Ok(Some(Vectors::V512) | None) | Err(_) => &["-march=native"],
    }
}

/// How parts in C++ are built: so that calls stay calls.
const CXX: &[&str] = &["-O1"];

/// A C compiler, and a folder for what it makes. The folder is removed when it is dropped.
#[derive(Debug)]
pub struct Compiler {
    command: Vec<String>,
    cxx: Vec<String>,
    folder: PathBuf,
    version: String,
}

impl Compiler {
    /// `$CC`, or gcc.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn find() -> Result<Compiler, String> {
        let (command, cxx) = (command_of("CC", "gcc"), command_of("CXX", "g++"));
        let run = Command::new(&command[0]).args(&command[1..]).arg("--version").output();
        let told = run.map_err(|e| format!("`{}` cannot be run: {e}", command[0]))?;
        let version = String::from_utf8_lossy(&told.stdout).lines().next().unwrap_or_default().to_owned();
        let folder = std::env::temp_dir().join(format!("handloom-benches-{}", std::process::id()));
        let write = |e: std::io::Error| format!("{}: {e}", folder.display());
        std::fs::create_dir_all(&folder).map_err(write)?;
        std::fs::write(folder.join("common.h"), COMMON).map_err(write)?;
        Ok(Compiler { command, cxx, folder, version })
    }

    /// What it says of itself.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Builds a program; with OpenMP it uses two threads.
    ///
    /// # Errors
    /// The compiler fails.
    pub fn build(&self, source: Source, openmp: bool) -> Result<Program, String> {
        let text = self.folder.join(format!("{}.c", source.name));
        let made = self.folder.join(format!("{}{}", source.name, if openmp { ".openmp" } else { "" }));
        std::fs::write(&text, source.text).map_err(|e| format!("{}: {e}", text.display()))?;
        let flags = if openmp { OPENMP } else { PLAIN };
        let mut run = Command::new(&self.command[0]);
        run.args(&self.command[1..]).args(flags).args(instructions()).arg("-o").arg(&made).arg(&text);
        if let Some(object) = self.build_cxx(source, openmp)? {
            run.arg(object).arg("-lstdc++");
        }
        run.arg("-lm");
        if source.needs_cuda_headers {
            run.arg("-I").arg(std::env::var_os(CUDA_HEADERS).unwrap_or_default());
        }
        let told = run.output().map_err(|e| e.to_string())?;
        succeeded(&told, source.name).map(|()| Program { path: made })
    }

    /// Compiles the part in C++, if there is one.
    fn build_cxx(&self, source: Source, openmp: bool) -> Result<Option<PathBuf>, String> {
        let Some((first, _)) = source.cxx.first() else { return Ok(None) };
        for (name, text) in source.cxx {
            let file = self.folder.join(name);
            std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
        }
        let made = self.folder.join(format!("{first}.o"));
        let mut run = Command::new(&self.cxx[0]);
        run.args(&self.cxx[1..]).args(CXX).args(openmp.then_some("-fopenmp"));
        run.args(["-x", "c++", "-c", "-o"]).arg(&made).arg(self.folder.join(first));
        let told = run.output().map_err(|e| format!("`{}` cannot be run: {e}", self.cxx[0]))?;
        succeeded(&told, first).map(|()| Some(made))
    }
}

/// The words of a variable of the environment that names a program, or another program.
fn command_of(variable: &str, otherwise: &str) -> Vec<String> {
    let named = std::env::var(variable).unwrap_or_default();
    let command: Vec<String> = named.split_whitespace().map(str::to_owned).collect();
    if command.is_empty() { vec![otherwise.to_owned()] } else { command }
}

/// What a compiler says of its failure.
fn succeeded(told: &Output, name: &str) -> Result<(), String> {
    if told.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&told.stderr);
    let first = why.lines().find(|l| l.contains("error")).or(why.lines().next()).unwrap_or_default();
    Err(format!("{name} does not compile: {first}"))
}

impl Drop for Compiler {
    fn drop(&mut self) {
        // What cannot be removed stays in the folder of temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A program that was built.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
}

/// A program that runs and waits for requests. It ends when dropped.
#[derive(Debug)]
pub struct Partner {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Program {
    /// Starts it.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(&self, sizes: &[u32], threads: u32) -> Result<Partner, String> {
        let mut child = Command::new(&self.path)
            .args(sizes.iter().map(u32::to_string))
            .env("OMP_NUM_THREADS", threads.to_string())
            // Threads that wait must not take the core from the other side.
            .env("OMP_WAIT_POLICY", "passive")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}", self.path.display()))?;
        let requests = child.stdin.take();
        let answers = child.stdout.take().ok_or("a program without output")?;
        Ok(Partner { child, requests, answers: BufReader::new(answers) })
    }
}

impl Partner {
    /// One round of a variant.
    ///
    /// # Errors
    /// It gives no sensible answer.
    pub fn round(&mut self, variant: &str, repeats: u64) -> Result<Sample, String> {
        let answer = self.ask(&format!("{variant} {repeats}"))?;
        let mut numbers = answer.split_whitespace().map_while(|w| w.parse::<f64>().ok());
        match (numbers.next(), numbers.next()) {
            (Some(wall_ns), Some(cpu_ns)) => Ok(Sample { wall_ns, cpu_ns }.over(repeats)),
            _ => Err(format!("C answers `{answer}` to `{variant}`")),
        }
    }

    /// The result of one run of a variant on fresh data.
    ///
    /// # Errors
    /// It gives no sensible answer.
    pub fn check(&mut self, variant: &str) -> Result<Vec<u8>, String> {
        let answer = self.ask(&format!("check {variant}"))?;
        let n: usize = answer.parse().map_err(|_| format!("C answers `{answer}` to `check {variant}`"))?;
        let mut bytes = vec![0; n];
        self.answers.read_exact(&mut bytes).map_err(|e| format!("C: {e}"))?;
        Ok(bytes)
    }

    fn ask(&mut self, request: &str) -> Result<String, String> {
        let broken = |e: std::io::Error| format!("C: {e}");
        let to = self.requests.as_mut().ok_or("a program without input")?;
        writeln!(to, "{request}").and_then(|()| to.flush()).map_err(broken)?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(broken)?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.requests = None;
        let _ = self.child.wait();
    }
}
