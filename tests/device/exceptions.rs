//! Answers of a GPU that are not Handloom's, with the reason.
//!
//! What stands here was answered alike by an H100 and an H200. "The translator" is the one of NVIDIA's driver 580, which makes machine code of PTX: what it
//! gets wrong is no property of the chip.

/// Parts of answers that differ.
pub struct Exception {
    /// Why, with the section of the manual.
    pub reason: &'static str,
    /// Which parts, by name.
    pub matches: fn(&str) -> bool,
}

/// The words of a value instruction, and whether it has a guard.
fn value(name: &str) -> Option<(&str, bool)> {
    let rest = name.strip_prefix("value ")?;
    let (rest, guarded) = rest.strip_prefix("@%g ").map_or((rest, false), |rest| (rest, true));
    rest.split_once(' ').map(|(words, _)| (words, guarded))
}

fn is_value(name: &str, opcode: &str) -> bool {
    value(name).is_some_and(|(words, _)| words.split('.').next() == Some(opcode))
}

/// Whether words have all of some.
fn has(words: &str, all: &[&str]) -> bool {
    all.iter().all(|w| words.split('.').any(|word| word == *w))
}

/// Scalar video instructions that saturate, have a second operation that compares, go to the upper half, or multiply.
fn is_video(name: &str) -> bool {
    const OPCODES: [&str; 9] = ["vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset", "vmad"];
    let Some((words, _)) = value(name) else { return name.starts_with("file isa/video/") && !name.contains("vavrg") };
    OPCODES.iter().any(|o| is_value(name, o))
        && (["sat", "min", "max"].iter().any(|w| has(words, &[w]))
            || name.contains("%dr0.h1")
            || words.starts_with("vmad"))
}

/// `set` with a guard, whose result the translator makes in another type and converts.
fn is_converted_set(name: &str) -> bool {
    let Some((words, true)) = value(name) else { return false };
    let is_type =
        |w: &&str| w.trim_start_matches(['b', 's', 'u', 'f']).chars().next().is_some_and(|c| c.is_ascii_digit());
    let types: Vec<&str> = words.split('.').skip(1).filter(is_type).collect();
    let [to, from] = types[..] else { return false };
    let is_narrow = ["f16", "bf16", "b16", "s16", "u16"].contains(&from);
    words.starts_with("set.") && (["f16", "bf16", "f32"].contains(&to) || ["u32", "s32"].contains(&to) && is_narrow)
}

/// A conversion to `.f16` of subnormals that round away from zero, by its words.
fn narrows_subnormals(name: &str) -> bool {
    let words = name.strip_prefix("cvt ").or(value(name).map(|(words, _)| words)).unwrap_or_default();
    let words = words.split(',').next().unwrap_or_default();
    words.starts_with("cvt.")
        && has(words, &["ftz", "f16", "f32"])
        && (has(words, &["rp"]) || has(words, &["rm"]))
        && !words.contains(".f32.f16")
}

/// All of them.
pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        reason: "the translator makes integer code of scalar video instructions that leaves the manual's pseudocode: it saturates \
                 parts as if unsigned, compares intermediate values in 32 bits, puts the upper half of a value into `.h1`, and \
                 multiplies unsigned words as signed (Scalar Video Instructions)",
        matches: is_video,
    },
    Exception {
        reason: "`pos` and `len` of 64-bit fields are restricted to 0..255 (Integer Arithmetic Instructions: bfe, bfi); the \
                 translator takes other bits of them too",
        matches: |name| {
            let fields = [
                "file isa/integer/bfe: bfe_u64_d",
                "file isa/integer/bfe: bfe_s64_d",
                "file isa/integer/bfi: bfi_b64_d",
            ];
            let is_wide = |(words, _): (&str, bool)| ["bfe.u64", "bfe.s64", "bfi.b64"].contains(&words);
            value(name).is_some_and(is_wide) || fields.contains(&name)
        },
    },
    Exception {
        reason: "an offset of 0x80000000 has no positive magnitude; the manual's pseudocode finds no bit (Integer Arithmetic \
                 Instructions: fns)",
        matches: |name| is_value(name, "fns"),
    },
    Exception {
        reason: "`.ftz` flushes subnormal `.f32` inputs (Data Movement and Conversion Instructions: cvt); the translator's code \
                 rounds them away from zero first",
        matches: |name| narrows_subnormals(name) || name == "file isa/data_movement/cvt_f32_to_f16: cvt_f16_f32_ftz_rp",
    },
    Exception {
        reason: "a NaN stays a NaN (Data Movement and Conversion Instructions: cvt); `.rna` of `.tf32` rounds its payload, so \
                 that some become infinite or finite",
        matches: |name| name.contains("cvt.rna.") && name.contains("tf32.f32"),
    },
    Exception {
        reason: "`.ftz` flushes subnormal results (Floating Point Instructions; Data Movement and Conversion Instructions: cvt), and \
                 what such a result is next to the least normal number is open: Handloom asks whether the rounded result is one, of \
                 `cvt` to nearest excepted; the chip, whether it would be one if it were rounded to as many bits as a normal number",
        matches: |name| {
            let list = [
                "floating_point/ftz_least_normal: out",
                "half_precision/mul: mul_f16_ftz",
                "half_precision/mul: mul_f16x2_ftz",
                "data_movement/cvt_f64_to_f32: cvt_f32_f64_ftz_rp",
                "data_movement/cvt_ftz_least_normal: out",
            ];
            list.iter().any(|f| name.strip_prefix("file isa/") == Some(f))
        },
    },
    Exception {
        reason: "a thread whose guard is false does nothing (Predicated Execution); the translator makes the result of these \
                 `set` in another type and converts what the destination held too",
        matches: is_converted_set,
    },
    Exception {
        reason: "a thread whose guard is false does nothing (Predicated Execution); the translator lets `testp` write its destination, \
                 and `cvt.pack` the upper half of one of 64 bits",
        matches: |name| {
            let is_wide = is_value(name, "cvt") && name.contains(" cvt.pack.") && name.contains("%dl0");
            name.contains("@%g") && (is_wide || is_value(name, "testp"))
        },
    },
    Exception {
        reason: "registers of type `.b32` hold bits, whatever wrote them (Instruction Operands: Operand Type Checking); the \
                 translator takes float numbers that it knows, 1.0 and 3.0, for integers 1 and 3 where `shl`, `shr`, `bfe`, \
                 `and` and `st.u8` read them in these kernels. Each agrees without its last statements",
        matches: |name| {
            let seeds = ["1094", "1177", "1377", "1607", "1896", "2520"];
            name.strip_prefix("random ").is_some_and(|seed| seeds.contains(&seed))
        },
    },
    Exception {
        reason: "before PTX 6.5 `.satfinite` of float products clamps infinities and makes NaNs 0 (Warp Level Matrix \
                 Multiply-Accumulate Instructions: wmma.mma); the chip does not do it any more",
        matches: |name| name.starts_with("file isa/matrix/wmma_satfinite: "),
    },
    Exception {
        reason: "the manual has no `madc.hi.u16` (Extended-Precision Integer Arithmetic Instructions); the translator takes it and \
                 multiplies as if signed",
        matches: |name| name == "file isa/extended_precision/carry_16: out",
    },
    Exception {
        reason: "a `src-size` above `cp-size` is undefined (Data Movement and Conversion Instructions: cp.async)",
        matches: |name| name == "file isa/data_movement/cp_async: d_small_sized",
    },
];
