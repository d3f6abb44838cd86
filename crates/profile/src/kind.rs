//! Kinds of instructions, by opcode and type.

use serde::{Deserialize, Serialize};

macro_rules! kinds {
    ($($(#[$about:meta])* $name:ident $word:literal,)*) => {
        /// What an instruction is for.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        pub enum Kind {
            $($(#[$about])* #[serde(rename = $word)] $name,)*
        }

        impl Kind {
            /// All of them, in order.
            pub const ALL: &[Kind] = &[$(Kind::$name),*];

            /// As people read it.
            pub fn word(self) -> &'static str {
                match self { $(Kind::$name => $word),* }
            }
        }
    };
}

kinds! {
    /// Arithmetic on floats.
    Float "float arithmetic",
    /// Arithmetic on integers, the video instructions too.
    Integer "integer arithmetic",
    /// Bits and shifts.
    Logic "logic and shift",
    /// Comparisons and selections.
    Compare "compare and select",
    /// From one type to another.
    Convert "conversion",
    /// Moves, addresses, permutations of bytes.
    Move "move",
    /// Loads and stores.
    Memory "load and store",
    /// Atomics and reductions in memory.
    Atomic "atomic",
    /// Asynchronous copies, and waiting for them.
    Copy "asynchronous copy",
    /// Products of matrices, and what moves their fragments.
    Matrix "matrix",
    /// What lanes of a warp tell each other.
    Warp "warp",
    /// Barriers and fences.
    Barrier "barrier and fence",
    /// Branches, calls, ends.
    Control "control flow",
    /// Textures and surfaces.
    Texture "texture and surface",
    /// The rest.
    Other "other",
}

impl Kind {
    /// That of an instruction. `words`: all of it from the opcode on as it is written, for its type.
    pub fn of(opcode: &str, words: &str) -> Kind {
        let first = opcode.split('.').next().unwrap_or(opcode);
        match first {
            "add" | "sub" | "mul" | "fma" | "mad" | "div" | "abs" | "neg" | "min" | "max" => {
                if is_float(words) {
                    Kind::Float
                } else {
                    Kind::Integer
                }
            }
            "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" | "copysign" => Kind::Float,
            "addc" | "subc" | "madc" | "mul24" | "mad24" | "sad" | "rem" | "dp2a" | "dp4a" | "vabsdiff"
            | "vabsdiff2" | "vabsdiff4" | "vadd" | "vadd2" | "vadd4" | "vavrg2" | "vavrg4" | "vmad" | "vmax"
            | "vmax2" | "vmax4" | "vmin" | "vmin2" | "vmin4" | "vshl" | "vshr" | "vsub" | "vsub2" | "vsub4" => {
                Kind::Integer
            }
            "and" | "or" | "xor" | "not" | "cnot" | "lop3" | "shl" | "shr" | "shf" | "bfe" | "bfi" | "bfind"
            | "bmsk" | "brev" | "clz" | "popc" | "fns" | "szext" => Kind::Logic,
            "set" | "setp" | "selp" | "slct" | "testp" | "isspacep" | "vset" | "vset2" | "vset4" => Kind::Compare,
            "cvt" => Kind::Convert,
            "mov" | "cvta" | "prmt" | "mapa" | "getctarank" | "alloca" | "stacksave" | "stackrestore" => Kind::Move,
            "ld" | "ldu" | "prefetch" | "prefetchu" | "applypriority" | "discard" | "createpolicy" => Kind::Memory,
            "st" if opcode == "st" => Kind::Memory,
            "red" if opcode == "red" => Kind::Atomic,
            "atom" => Kind::Atomic,
            "cp" | "st" | "red" | "multimem" | "tensormap" | "clusterlaunchcontrol" => Kind::Copy,
            "mma" | "wmma" | "wgmma" | "tcgen05" | "ldmatrix" | "stmatrix" | "movmatrix" => Kind::Matrix,
            "shfl" | "vote" | "match" | "redux" | "elect" | "activemask" => Kind::Warp,
            "bar" | "barrier" | "fence" | "membar" | "mbarrier" | "griddepcontrol" => Kind::Barrier,
            "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "brkpt" => Kind::Control,
            "tex" | "tld4" | "txq" | "istypep" | "suld" | "sust" | "sured" | "suq" => Kind::Texture,
            _ => Kind::Other,
        }
    }
}

/// Whether one of the words is a type of floats.
fn is_float(words: &str) -> bool {
    let types = ["f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"];
    let end = words.find(|c: char| c.is_ascii_whitespace()).unwrap_or(words.len());
    words[..end].split('.').any(|word| types.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_decide() {
        assert_eq!(Kind::of("add", "add.s32"), Kind::Integer);
        assert_eq!(Kind::of("add", "add.rn.f32 %f1, %f2, %f3"), Kind::Float);
        assert_eq!(Kind::of("add", "add.u32 %r1, %r2, %f32"), Kind::Integer);
        assert_eq!(Kind::of("st", "st.global.u32"), Kind::Memory);
        assert_eq!(Kind::of("st.async", "st.async.u32"), Kind::Copy);
        assert_eq!(Kind::of("cp.async.bulk", ""), Kind::Copy);
        assert_eq!(Kind::of("bar.warp", ""), Kind::Barrier);
    }
}
