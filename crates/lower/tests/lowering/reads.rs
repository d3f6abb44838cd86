//! Types that memory is read as: the kernels of the tree against the CUDA C++ that they were made from, and kernels whose reads prove nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use handloom_check::check_text;
use handloom_diag::SourceMap;
use handloom_ir::simt::Module;
use handloom_ir::types::ScalarType::{self, *};
use handloom_lower::{float_reads, lower};

fn module(text: &str) -> Option<Module> {
    let file = SourceMap::new().add("a.ptx", text);
    check_text(text, file).module.map(|m| lower(&m))
}

/// What the reads through each parameter say to elements of a type, by the names of the parameters.
fn against(m: &Module, entry: &str, held: ScalarType) -> BTreeMap<String, Option<ScalarType>> {
    let reads = float_reads(m, entry);
    let params = m.entries[entry].params.iter();
    params
        .map(|p| (p.name.clone(), reads.get(&p.offset).and_then(|r| r.contradiction(held)).map(|(ty, _)| ty)))
        .collect()
}

fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels")
}

/// Element type of each pointer to floats among the parameters of a kernel, by its position.
fn declared(source: &str, kernel: &str) -> Option<Vec<Option<ScalarType>>> {
    let at = source.find(&format!(" {kernel}("))? + kernel.len() + 2;
    let list = source[at..].split(')').next()?;
    if list.trim().is_empty() {
        return Some(vec![]);
    }
    let ty = |p: &str| {
        let words = p.replace('*', " * ");
        let words: Vec<&str> = words.split_whitespace().filter(|w| !matches!(*w, "const" | "volatile")).collect();
        match words.as_slice() {
            ["float" | "float2" | "float4", "*", ..] => Some(F32),
            ["double", "*", ..] => Some(F64),
            _ => None,
        }
    };
    Some(list.split(',').map(ty).collect())
}

#[test]
fn kernels_contradict_wrong_types_and_never_the_right_one() {
    let (mut right, mut told) = (0, 0);
    for file in fs::read_dir(kernels()).unwrap().map(|f| f.unwrap().path()) {
        if file.extension().is_none_or(|e| e != "ptx") {
            continue;
        }
        let stem = file.file_name().unwrap().to_str().unwrap().split('.').next().unwrap().to_owned();
        let Ok(source) = fs::read_to_string(file.with_file_name(format!("{stem}.cu"))) else { continue };
        let m = module(&fs::read_to_string(&file).unwrap()).unwrap();
        for (name, entry) in &m.entries {
            let Some(types) = declared(&source, name) else { continue };
            assert_eq!(types.len(), entry.params.len(), "{name}");
            for held in [F16, BF16, F32, F64, S64] {
                let found = against(&m, name, held);
                for (p, ty) in entry.params.iter().zip(&types) {
                    let Some(ty) = ty else { continue };
                    right += usize::from(held == *ty);
                    if let Some(read) = found[&p.name] {
                        assert_eq!(read, *ty, "{}: {name}: {}: not {held}", file.display(), p.name);
                        told += usize::from(held == F64 || held == F32);
                    }
                }
            }
        }
    }
    assert!(right >= 50, "{right}");
    assert!(told >= 30, "{told}");
}

#[test]
fn saxpy_reads_both_arrays_as_f32() {
    let m = module(&fs::read_to_string(kernels().join("saxpy.ptx")).unwrap()).unwrap();
    let of = |held| against(&m, "saxpy", held).into_values().collect::<Vec<_>>();
    for wrong in [F64, F16, BF16, S64] {
        assert_eq!(of(wrong), [None, None, Some(F32), Some(F32)], "{wrong}");
    }
    for silent in [F32, S32, U32, U8, U16, U64, S16] {
        assert_eq!(of(silent), [None; 4], "{silent}");
    }
}

const HEAD: &str = ".version 8.6\n.target sm_90\n.address_size 64\n";

/// What a body says to `held`: it has pointers `%p` and `%q` to global memory, and may use registers of all types.
fn says(body: &str, held: ScalarType) -> [Option<ScalarType>; 2] {
    let text = format!(
        "{HEAD}.func other(.param .u64 a) {{ ret; }}
        .visible .entry k(.param .u64 p, .param .u64 q, .param .u64 out) {{
        .reg .b64 %p, %q, %out, %d<9>;
        .reg .f64 %g<9>;
        .reg .b32 %r<9>;
        .reg .f32 %f<9>;
        .reg .b16 %h<9>;
        .reg .pred %c<9>;
        ld.param.u64 %p, [p];
        ld.param.u64 %q, [q];
        ld.param.u64 %out, [out];
        cvta.to.global.u64 %p, %p;
        {body}
        ret; }}"
    );
    let m = module(&text).unwrap_or_else(|| panic!("{body}"));
    let found = against(&m, "k", held);
    [found["p"], found["q"]]
}

#[test]
fn floats_are_followed_to_where_they_are_used() {
    for body in [
        "ld.global.f32 %f1, [%p]; add.f32 %f2, %f1, %f1;",
        "ld.global.b32 %r1, [%p]; mov.b32 %f1, %r1; st.global.b32 [%out], %r1; sqrt.approx.f32 %f2, %f1;",
        "ld.global.v2.b32 {%r1, %r2}, [%p+8]; mov.b32 %f1, %r2; setp.lt.f32 %c1, %f1, 0f00000000;",
        "ld.global.b64 %d1, [%p]; mov.b64 {%r1, %r2}, %d1; mov.b32 %f1, %r1; add.f32 %f1, %f1, %f1;
         ld.global.f32 %f2, [%p]; neg.f32 %f2, %f2;",
        "mul.wide.u32 %d1, %r1, 4; add.u64 %d2, %p, %d1; ld.global.f32 %f1, [%d2]; cvt.rzi.s32.f32 %r2, %f1;",
        "ld.global.f32 %f1, [%p]; shfl.sync.bfly.b32 %r1|%c1, %f1, 1, 31, -1; mov.b32 %f2, %r1; add.f32 %f2, %f2, %f2;",
        "atom.global.add.f32 %f1, [%p], 0f3f800000;",
        "red.global.add.f32 [%p], 0f3f800000;",
        "ld.global.f32 %f1, [%p]; selp.f32 %f2, %f1, 0f00000000, %c1; mul.f32 %f2, %f2, %f2;",
        "@%c1 ld.global.f32 %f1, [%p]; @%c1 add.f32 %f2, %f1, %f1;",
        "l: add.u64 %p, %p, 4; ld.global.f32 %f1, [%p]; add.f32 %f2, %f2, %f1; setp.lt.u32 %c1, %r1, 4; @%c1 bra l;",
        // The register of the address is used again.
        "ld.global.f32 %f1, [%p]; add.f32 %f1, %f1, %f1; mov.u64 %p, 5; st.global.u64 [%out], %p;",
    ] {
        assert_eq!(says(body, F64), [Some(F32), None], "{body}");
        assert_eq!(says(body, F32), [None, None], "{body}");
    }
    let halves = "ld.global.b32 %r1, [%p]; add.f16x2 %r2, %r1, %r1; ld.global.b16 %h1, [%q]; cvt.f32.bf16 %f1, %h1;";
    assert_eq!(says(halves, F32), [Some(F16), Some(BF16)]);
    assert_eq!(says(halves, F16), [None, Some(BF16)]);
    assert_eq!(says(halves, BF16), [Some(F16), None]);
    let double = "ld.global.v2.b32 {%r1, %r2}, [%p]; mov.b64 %g1, {%r1, %r2}; add.f64 %g2, %g1, %g1;";
    assert_eq!(says(double, F32), [Some(F64), None]);
}

#[test]
fn what_proves_nothing_is_silent() {
    for body in [
        // Bits are moved.
        "ld.global.f32 %f1, [%p]; st.global.f32 [%out], %f1;",
        "ld.global.b64 %d1, [%p]; st.global.b64 [%out], %d1; ld.global.f32 %f1, [%p]; add.f32 %f1, %f1, %f1;",
        "ld.global.b32 %r1, [%p]; add.u32 %r1, %r1, 1;",
        // Both types are read.
        "ld.global.f32 %f1, [%p]; add.f32 %f1, %f1, %f1; ld.global.f64 %g1, [%p]; add.f64 %g1, %g1, %g1;",
        // The upper word of a double, compared as a float, as compilers do.
        "ld.global.f64 %g1, [%p]; mov.b64 {%r1, %r2}, %g1; mov.b32 %f1, %r2; setp.lt.f32 %c1, %f1, 0f40100000;",
        // The pointer goes elsewhere, where doubles may be read.
        "ld.global.f32 %f1, [%p]; add.f32 %f1, %f1, %f1; st.global.u64 [%out], %p;",
        "ld.global.f32 %f1, [%p]; add.f32 %f1, %f1, %f1; { .param .u64 a; st.param.u64 [a], %p; call other, (a); }",
        "ld.global.f32 %f1, [%p]; add.f32 %f1, %f1, %f1; mul.lo.u64 %d1, %p, 1; ld.global.f64 %g1, [%d1];",
        "ld.global.f32 %f1, [%p]; add.f32 %f1, %f1, %f1; shr.u64 %d1, %p, 1; shl.b64 %d1, %d1, 1;",
        // One of two pointers, and the distance of two.
        "ld.global.f32 %f1, [%p]; add.f32 %f1, %f1, %f1; selp.b64 %d1, %p, %q, %c1; ld.global.f64 %g1, [%d1];",
        "ld.global.f32 %f1, [%p]; add.f32 %f1, %f1, %f1; sub.u64 %d1, %p, %q; add.u64 %d2, %d1, %q; ld.global.f64 %g1, [%d2];",
        "sub.u64 %d1, %q, %p; add.u64 %d2, %d1, %p; ld.global.f32 %f1, [%d2]; add.f32 %f1, %f1, %f1;",
        // A pointer that was loaded.
        "ld.global.u64 %d1, [%p]; ld.global.f32 %f1, [%d1]; add.f32 %f1, %f1, %f1;",
        // The register holds other things too, and which one the sum takes is not known.
        "mov.u32 %r2, %tid.x; ld.global.b32 %r1, [%p]; st.global.b32 [%out], %r1; @%c1 mov.b32 %r1, %r2; mov.b32 %f1, %r1; add.f32 %f1, %f1, %f1;",
        // The register of the value is used again.
        "mov.u32 %r2, %tid.x; ld.global.b32 %r1, [%p]; st.global.b32 [%out], %r1; mov.b32 %r1, %r2; mov.b32 %f1, %r1; add.f32 %f1, %f1, %f1;",
        // Parameters are read through their address.
        "ld.global.f32 %f1, [%p]; add.f32 %f1, %f1, %f1; mov.u64 %d1, p; cvta.param.u64 %d2, %d1; ld.u64 %d3, [%d2]; ld.f64 %g1, [%d3];",
    ] {
        for held in [F64, F32, S64, U32] {
            assert_eq!(says(body, held), [None, None], "{held}: {body}");
        }
    }
}
