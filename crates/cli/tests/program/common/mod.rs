//! Runs the built binary over small texts in a folder of the test's own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Both engines: every run test goes through them.
pub const ENGINES: [&str; 2] = ["interp", "jit"];

/// The lines that every module begins with.
pub const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// y[i] = a * x[i] for i < n: one element a thread.
pub const SCALE: &str = r"
.visible .entry scale(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.f32 %f1, [a];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 ret;
    mul.wide.u32 %rd3, %r5, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    mul.f32 %f3, %f2, %f1;
    st.global.f32 [%rd5], %f3;
    ret;
}
";

/// Counts for hours.
pub const LONG: &str = r"
.visible .entry long(.param .u64 to)
{
    .reg .pred %p<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd2, [to];
    ld.global.u64 %rd1, [%rd2];
again:
    add.u64 %rd1, %rd1, 1;
    setp.lt.u64 %p1, %rd1, 0x4000000000000000;
    @%p1 bra again;
    st.global.u64 [%rd2], %rd1;
    ret;
}
";

/// An entry `prints` that prints `hi`, then does `rest`. It has a predicate register and `.b64` registers to `%rd4` left for that.
pub fn prints(params: &str, rest: &str) -> String {
    format!(
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[4] = {{104, 105, 10, 0}};
.visible .entry prints({params})
{{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<5>;
    mov.u64 %rd1, text;
    cvta.global.u64 %rd2, %rd1;
    {{
    .param .b64 p0;
    st.param.b64 [p0], %rd2;
    .param .b64 p1;
    st.param.b64 [p1], 0;
    .param .b32 r0;
    call.uni (r0), vprintf, (p0, p1);
    ld.param.b32 %r1, [r0];
    }}
{rest}    ret;
}}
"
    )
}

/// The end of an entry that counts for hours.
pub const COUNTS: &str = "    ld.param.u64 %rd3, [to];
    ld.global.u64 %rd4, [%rd3];
again:
    add.u64 %rd4, %rd4, 1;
    setp.lt.u64 %p1, %rd4, 0x4000000000000000;
    @%p1 bra again;
    st.global.u64 [%rd3], %rd4;
";

/// An entry that takes longer to compile than a test should: many float operations in each lane.
pub fn large() -> String {
    let operation =
        |i: usize| format!("fma.rn.f32 %f{}, %f{}, %f{}, %f{};\n", i % 4, (i + 1) % 4, (i + 3) % 4, (i + 2) % 4);
    let body: String = (0..250_000).map(operation).collect();
    format!(
        ".visible .entry large(.param .u64 to) {{
    .reg .f32 %f<4>; .reg .b32 %r<2>; .reg .b64 %rd<4>;
    mov.u32 %r1, %tid.x;
    cvt.rn.f32.u32 %f0, %r1; cvt.rn.f32.u32 %f1, %r1; cvt.rn.f32.u32 %f2, %r1; cvt.rn.f32.u32 %f3, %r1;
{body}
    ld.param.u64 %rd1, [to];
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.f32 [%rd3], %f0;
    ret;
}}
"
    )
}

/// Does nothing.
pub const EMPTY: &str = "\n.visible .entry empty() { ret; }\n";

/// Wrong: `sad` has no float form.
pub const WRONG: &str = "\n.visible .entry wrong() { .reg .f32 %f<4>; sad.f32 %f0, %f1, %f2, %f3; ret; }\n";

/// Right and not supported.
pub const UNSUPPORTED: &str =
    "\n.visible .entry unsupported() { .reg .b32 %r; .global .b32 z[4]; ld.global.b32 %r, z[%r]; ret; }\n";

/// A folder of one test.
pub struct Folder(PathBuf);

impl Folder {
    /// An empty folder.
    pub fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// A folder with one module, `k.ptx`.
    pub fn with(name: &str, module: &str) -> Folder {
        let folder = Folder::new(name);
        folder.write("k.ptx", format!("{HEAD}{module}"));
        folder
    }

    pub fn write(&self, name: &str, data: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), data).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap()
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }

    /// The command in this folder; `line` is split at blanks.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_handloom"));
        command.current_dir(&self.0).args(line.split_whitespace()).env_remove("NO_COLOR").stdin(Stdio::null());
        // The cache of whoever runs the tests is none of theirs.
        command.env("HANDLOOM_CACHE", "off");
        command
    }

    /// Runs it.
    pub fn run(&self, line: &str) -> Ran {
        Ran::of(&self.command(line).output().unwrap())
    }

    /// Runs it with a text on standard input.
    pub fn run_with_input(&self, line: &str, input: &[u8]) -> Ran {
        let mut command = self.command(line);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Ran::of(&child.wait_with_output().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(output: &Output) -> Ran {
        Ran {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Fails unless it ended so.
    #[track_caller]
    pub fn ends(self, status: i32) -> Ran {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// Fails unless standard error holds a text.
    #[track_caller]
    pub fn says(self, text: &str) -> Ran {
        assert!(self.err.contains(text), "no `{text}` in {self:?}");
        self
    }

    /// Standard output as one JSON object a line.
    #[track_caller]
    pub fn objects(&self) -> Vec<Value> {
        self.out.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{l}: {e}"))).collect()
    }
}

/// Little-endian bytes of floats.
pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// A `.npy` as NumPy writes it.
pub fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let length = (10 + dict.len() + 1).next_multiple_of(64) - 10;
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend(u16::try_from(length).unwrap().to_le_bytes());
    out.extend(format!("{dict:width$}\n", width = length - 1).bytes());
    out.extend(data);
    out
}

/// The results of a SARIF document, which has all that collectors of such documents want, or they refuse all of it.
pub fn results(text: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(text).unwrap();
    assert_eq!(document["version"], "2.1.0");
    let run = &document["runs"][0];
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "Handloom");
    let rules = driver["rules"].as_array().unwrap();
    for rule in rules {
        for text in ["shortDescription", "fullDescription", "help"] {
            let length = rule[text]["text"].as_str().unwrap().len();
            assert!(length > 0 && (length <= 1024 || text == "help"), "{rule}");
        }
    }
    let results = run["results"].as_array().unwrap().clone();
    let mut marks = std::collections::BTreeSet::new();
    for result in &results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert_eq!(result["level"], "error");
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let mark = result["partialFingerprints"]["primaryLocationLineHash"].as_str().unwrap().to_owned();
        assert!(marks.insert(mark), "two results have one fingerprint: {document:#}");
        assert_eq!(result["locations"].as_array().unwrap().len(), 1);
        for location in
            result["locations"].as_array().into_iter().chain(result["relatedLocations"].as_array()).flatten()
        {
            let place = &location["physicalLocation"];
            let uri = place["artifactLocation"]["uri"].as_str().unwrap();
            assert!(!uri.is_empty() && !uri.contains(['(', '%']), "{location}");
            assert!(place["region"]["startLine"].as_u64().unwrap() >= 1, "{location}");
        }
    }
    results
}
