//! What people give for PTX that is none: a table of beginnings of files, and a table of words in texts.

/// Something that is no image.
#[derive(PartialEq, Eq, Debug)]
pub struct Foreign {
    /// As the end of a sentence: `a gzip file`.
    pub what: &'static str,
    /// What to do.
    pub advice: &'static str,
}

const fn foreign(what: &'static str, advice: &'static str) -> Foreign {
    Foreign { what, advice }
}

const UNPACK: &str = "unpack it first";
const NVCC: &str = "compile the CUDA sources with `nvcc -ptx`";
const NO_MODULE: &str = "a module is PTX text, as `nvcc -ptx` writes it";

/// Beginnings of files. The longest that fits wins by standing first.
const BEGINNINGS: &[(&[u8], Foreign)] = &[
    (b"\x1f\x8b", foreign("a gzip file", "unpack it first: `gunzip`, or `tar -xzf` for an archive")),
    (b"\x28\xb5\x2f\xfd", foreign("a zstd file", "unpack it first: `zstd -d`")),
    (b"\xfd7zXZ\x00", foreign("an xz file", "unpack it first: `xz -d`")),
    (b"BZh", foreign("a bzip2 file", "unpack it first: `bunzip2`")),
    (b"\x04\x22\x4d\x18", foreign("an LZ4 file", "unpack it first: `lz4 -d`")),
    (b"7z\xbc\xaf\x27\x1c", foreign("a 7z file", UNPACK)),
    (b"Rar!\x1a\x07", foreign("a RAR file", UNPACK)),
    (b"PK\x03\x04", foreign("a zip file", "unpack it first: `unzip`")),
    (b"PK\x05\x06", foreign("an empty zip file", UNPACK)),
    (b"BC\xc0\xde", foreign("LLVM bitcode", "compile it: `llc -march=nvptx64 -mcpu=sm_80 -o k.ptx`")),
    (b"\xde\xc0\x17\x0b", foreign("LLVM bitcode", "compile it: `llc -march=nvptx64 -mcpu=sm_80 -o k.ptx`")),
    (b"\xed\x43\x4e\x7f", foreign("intermediate code of nvcc (`-ltoir` or `-optix-ir`)", NVCC)),
    (b"\x03\x02\x23\x07", foreign("SPIR-V", NO_MODULE)),
    (b"\x07\x23\x02\x03", foreign("SPIR-V", NO_MODULE)),
    (b"\x00asm", foreign("WebAssembly", NO_MODULE)),
    (b"MZ", foreign("a program for Windows", "take the PTX out where the CUDA tools are: `cuobjdump -xptx all`")),
    (b"\xfe\xed\xfa\xce", foreign("a Mach-O file", NO_MODULE)),
    (b"\xfe\xed\xfa\xcf", foreign("a Mach-O file", NO_MODULE)),
    (b"\xce\xfa\xed\xfe", foreign("a Mach-O file", NO_MODULE)),
    (b"\xcf\xfa\xed\xfe", foreign("a Mach-O file", NO_MODULE)),
    (b"\xca\xfe\xba\xbe", foreign("a Mach-O file or a Java class", NO_MODULE)),
    (b"\x93NUMPY", foreign("a NumPy array", "a module comes first; arrays are arguments, as `in:x.npy`")),
    (b"\x89HDF\r\n", foreign("an HDF5 file", NO_MODULE)),
    (b"\x89PNG", foreign("a picture", NO_MODULE)),
    (b"\xff\xd8\xff", foreign("a picture", NO_MODULE)),
    (b"%PDF-", foreign("a PDF file", NO_MODULE)),
    (b"SQLite format 3\x00", foreign("an SQLite database", "take the PTX out of it first")),
    (b"\x80\x02", foreign("a Python pickle", NO_MODULE)),
    (b"\x80\x03", foreign("a Python pickle", NO_MODULE)),
    (b"\x80\x04", foreign("a Python pickle", NO_MODULE)),
    (b"\x80\x05", foreign("a Python pickle", NO_MODULE)),
];

const TAR: Foreign = foreign("a tar file", "unpack it first: `tar -xf`");

/// Where a tar file says that it is one.
const TAR_AT: usize = 257;

/// A text is what its row says if a line begins with one of the words.
struct Row {
    words: &'static [&'static str],
    what: Foreign,
}

const CUDA: Foreign = foreign("CUDA C++", "compile it to PTX: `nvcc -ptx -arch=sm_80 -o k.ptx`");
const LISTING: Foreign = foreign("a listing of `cuobjdump`", "let it write the PTX itself: `cuobjdump -xptx all`");
const SASS: Foreign = foreign(
    "SASS, a listing of machine code",
    "take the PTX that it was made from: `nvcc -ptx`, or `cuobjdump -xptx all`",
);

/// Words at the beginning of lines, after blanks. The first line with one of them, or with a directive of PTX, decides.
const TEXTS: &[Row] = &[
    Row { words: &["Fatbin ptx code:", "Fatbin elf code:"], what: LISTING },
    Row { words: &["code for sm_", "Function : ", ".headerflags", ".elftype", "/*0000*/"], what: SASS },
    Row {
        words: &["; ModuleID", "target triple", "target datalayout", "source_filename ="],
        what: foreign("LLVM IR", "compile it: `llc -march=nvptx64 -mcpu=sm_80 -o k.ptx`"),
    },
    Row {
        words: &["#loc", "tt.func", "ttg.", "module {", "module attributes", "func.func", "gpu.module"],
        what: foreign("MLIR", "take the PTX that it is compiled to, of Triton `kernel.asm[\"ptx\"]`"),
    },
    Row {
        words: &["__kernel", "kernel void"],
        what: foreign("OpenCL C", "compile it to PTX: `clang --target=nvptx64-nvidia-cuda -S`"),
    },
    Row {
        words: &[
            "#include",
            "#define",
            "#pragma",
            "#ifdef",
            "#ifndef",
            "__global__",
            "__device__",
            "extern \"C\"",
            "template",
            "namespace ",
            "int main",
            "using namespace",
        ],
        what: CUDA,
    },
    Row {
        words: &["@triton.jit", "@cuda.jit", "import ", "from ", "def ", "#!/usr/bin/env python", "#!/usr/bin/python"],
        what: foreign(
            "Python",
            "take the PTX that it compiles: of Triton `kernel.asm[\"ptx\"]`, of Numba `kernel.inspect_asm()`",
        ),
    },
    Row {
        words: &["#!["],
        what: foreign("Rust", "compile it to PTX: `rustc --target nvptx64-nvidia-cuda --emit asm`"),
    },
    Row { words: &["#!"], what: foreign("a script", NO_MODULE) },
    Row {
        words: &["<!DOCTYPE", "<!doctype", "<html", "<HTML", "<?xml"],
        what: foreign("a web page or XML", NO_MODULE),
    },
    Row { words: &[".amdgcn_target", ".amdhsa"], what: foreign("assembly for AMD's GPUs", NO_MODULE) },
];

const JSON: Foreign = foreign("JSON", "a job file is given as `--job`");

/// Directives of PTX at the beginning of a line.
const PTX: &[&str] = &[
    ".version",
    ".target",
    ".address_size",
    ".visible",
    ".entry",
    ".func",
    ".extern",
    ".weak",
    ".global",
    ".const",
    ".reg",
    ".shared",
    ".file",
];

/// How much of a text is looked at.
const LOOKED_AT: usize = 1 << 16;

/// How much of a file tells whether it is text.
const START: usize = 512;

/// What bytes are that are neither an image nor PTX; `None` if they may be PTX.
pub fn recognise(bytes: &[u8]) -> Option<&'static Foreign> {
    if bytes.get(TAR_AT..).is_some_and(|b| b.starts_with(b"ustar")) {
        return Some(&TAR);
    }
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(START)]);
    let is_binary = start.contains(['\0', char::REPLACEMENT_CHARACTER]);
    // A text may begin with any letters.
    let begins = |b: &[u8]| bytes.starts_with(b) && (is_binary || !b.iter().all(u8::is_ascii_graphic));
    if let Some((_, f)) = BEGINNINGS.iter().find(|(b, _)| begins(b)) {
        return Some(f);
    }
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LOOKED_AT)]);
    if text.contains('\0') {
        return None;
    }
    of_text(text.trim_start_matches('\u{feff}'))
}

/// What a text is, by the first line that tells.
fn of_text(text: &str) -> Option<&'static Foreign> {
    let (mut in_comment, mut is_first) = (false, true);
    for line in text.lines() {
        let mut line = line.trim_start();
        // A comment with a number only is an address of a listing.
        while in_comment || line.starts_with("/*") && !line.starts_with("/*0") {
            in_comment = true;
            let Some(end) = line.find("*/") else { break };
            (in_comment, line) = (false, line[end + 2..].trim_start());
        }
        if in_comment || line.is_empty() || line.starts_with("//") {
            continue;
        }
        if PTX.iter().any(|word| line.starts_with(word)) {
            return None;
        }
        if is_first && is_json(text.trim_start()) {
            return Some(&JSON);
        }
        is_first = false;
        if let Some(row) = TEXTS.iter().find(|row| row.words.iter().any(|w| line.starts_with(w))) {
            return Some(&row.what);
        }
    }
    None
}

/// Whether a text begins as an object or a list with something in it does.
fn is_json(text: &str) -> bool {
    let Some(inside) = text.strip_prefix('{') else {
        return text.strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with(['{', '"']));
    };
    inside.trim_start().starts_with('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn what(bytes: impl AsRef<[u8]>) -> &'static str {
        recognise(bytes.as_ref()).map_or("", |f| f.what)
    }

    #[test]
    fn beginnings_of_files() {
        assert_eq!(what(b"\x1f\x8b\x08\x00"), "a gzip file");
        assert_eq!(what(b"BZh91AY&SY\x00\xff"), "a bzip2 file");
        assert_eq!(what(b"MZ\x90\x00\x03"), "a program for Windows");
        assert_eq!(what(b"BC\xc0\xde"), "LLVM bitcode");
        let mut tar = vec![b'a'; 512];
        tar[TAR_AT..TAR_AT + 5].copy_from_slice(b"ustar");
        assert_eq!(what(tar), "a tar file");
        // Words that texts may begin with.
        assert_eq!(what("BZh is no PTX\n"), "");
        assert_eq!(what("MZ\n.version 8.0\n"), "");
        assert_eq!(what(""), "");
    }

    #[test]
    fn the_first_line_that_tells_decides() {
        assert_eq!(what("/* a\n.version 8.0\n*/ #include <cstdio>\n"), "CUDA C++");
        assert_eq!(what("// licence\n\n__global__ void k() {}\n"), "CUDA C++");
        assert_eq!(what("#include <string>\nstd::string ptx = R\"(\n.version 8.0\n)\";\n"), "CUDA C++");
        assert_eq!(what("import triton\nptx = '''\n.version 8.0\n'''\n"), "Python");
        assert_eq!(what("; ModuleID = 'k'\ntarget triple = \"nvptx64\"\n"), "LLVM IR");
        assert_eq!(what("\n\tcode for sm_80\n\t\tFunction : k\n"), SASS.what);
        assert_eq!(what("\t.headerflags\t@\"EF\"\n\t.global k\n"), SASS.what);
        assert_eq!(what("        /*0000*/                   MOV R1, c[0x0][0x28] ;\n"), SASS.what);
        assert_eq!(what("Fatbin ptx code:\n================\n.version 8.0\n"), LISTING.what);
        assert_eq!(what("module {\n  tt.func public @k() {\n"), "MLIR");
        assert_eq!(what("{\n \"launches\": []}\n"), "JSON");
    }

    #[test]
    fn ptx_is_ptx_however_damaged() {
        for text in
            ["// #include\n", ".version 8.0\n", "garbage\n.target sm_80\n", ".entry k() { ret; }", "{", "% frob"]
        {
            assert_eq!(what(text), "", "{text}");
        }
        assert_eq!(what(".entry k()\n{\n{ \"\n"), "");
    }
}
