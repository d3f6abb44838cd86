//! Opcodes of PTX that have no record yet.
//!
//! A row goes when the opcode gets records; the longest dotted prefix wins over shorter ones here and in the records.

/// Opcode or dotted prefix, and the title of its section. An opcode that is neither here nor in a record does not exist.
pub const UNSUPPORTED: &[(&str, &str)] = &[
    ("vadd", "Scalar Video Instructions: vadd, vsub, vabsdiff, vmin, vmax"),
    ("vsub", "Scalar Video Instructions: vadd, vsub, vabsdiff, vmin, vmax"),
    ("vabsdiff", "Scalar Video Instructions: vadd, vsub, vabsdiff, vmin, vmax"),
    ("vmin", "Scalar Video Instructions: vadd, vsub, vabsdiff, vmin, vmax"),
    ("vmax", "Scalar Video Instructions: vadd, vsub, vabsdiff, vmin, vmax"),
    ("vshl", "Scalar Video Instructions: vshl, vshr"),
    ("vshr", "Scalar Video Instructions: vshl, vshr"),
    ("vmad", "Scalar Video Instructions: vmad"),
    ("vset", "Scalar Video Instructions: vset"),
    ("vadd2", "SIMD Video Instructions: vadd2, vsub2, vavrg2, vabsdiff2, vmin2, vmax2"),
    ("vsub2", "SIMD Video Instructions: vadd2, vsub2, vavrg2, vabsdiff2, vmin2, vmax2"),
    ("vavrg2", "SIMD Video Instructions: vadd2, vsub2, vavrg2, vabsdiff2, vmin2, vmax2"),
    ("vabsdiff2", "SIMD Video Instructions: vadd2, vsub2, vavrg2, vabsdiff2, vmin2, vmax2"),
    ("vmin2", "SIMD Video Instructions: vadd2, vsub2, vavrg2, vabsdiff2, vmin2, vmax2"),
    ("vmax2", "SIMD Video Instructions: vadd2, vsub2, vavrg2, vabsdiff2, vmin2, vmax2"),
    ("vset2", "SIMD Video Instructions: vset2"),
    ("vadd4", "SIMD Video Instructions: vadd4, vsub4, vavrg4, vabsdiff4, vmin4, vmax4"),
    ("vsub4", "SIMD Video Instructions: vadd4, vsub4, vavrg4, vabsdiff4, vmin4, vmax4"),
    ("vavrg4", "SIMD Video Instructions: vadd4, vsub4, vavrg4, vabsdiff4, vmin4, vmax4"),
    ("vabsdiff4", "SIMD Video Instructions: vadd4, vsub4, vavrg4, vabsdiff4, vmin4, vmax4"),
    ("vmin4", "SIMD Video Instructions: vadd4, vsub4, vavrg4, vabsdiff4, vmin4, vmax4"),
    ("vmax4", "SIMD Video Instructions: vadd4, vsub4, vavrg4, vabsdiff4, vmin4, vmax4"),
    ("vset4", "SIMD Video Instructions: vset4"),
];
