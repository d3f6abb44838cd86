//! Statements of tiles with edges, and of what few lanes do: loads for one column or row of threads, lanes that meet by name, elements that lanes pick.

use std::fmt::Write;

use super::Maker;

impl Maker {
    /// Fills the edges of a tile as stencils do: each for one column or one row of threads, where the grid goes on there. Comparisons are shared by the edges and by what follows.
    pub(super) fn edges(&mut self) {
        self.line("bar.sync 0;\n    mov.u32 %col, %tid.x;\n    mov.u32 %row, %tid.y;");
        // Comparisons that several edges ask.
        for p in ["%e0", "%e1"] {
            let a = *self.rng.pick(&["%x", "%y", "%y", "%idx"]);
            let cmp = *self.rng.pick(&["lt.s32", "ge.s32", "gt.u32", "eq.s32"]);
            let bound = *self.rng.pick(&["1", "2", "15", "%n", "%most"]);
            if bound == "%most" {
                self.line("add.s32 %most, %n, -1;");
            }
            self.line(&format!("setp.{cmp} {p}, {a}, {bound};"));
        }
        for k in 0..1 + self.rng.below(4) {
            let (skip, region) = (self.label(), 1024 * k);
            let of_column = self.rng.one_in(2);
            let (a, at) = if of_column {
                ("%col", *self.rng.pick(&[0, 0, 1, 7, 15, 31]))
            } else {
                ("%row", *self.rng.pick(&[0, 0, 1, 3, 7, 15]))
            };
            self.line(&format!("setp.ne.s32 %p1, {a}, {at};"));
            for _ in 0..self.rng.below(3) {
                let p = *self.rng.pick(&["%e0", "%e1"]);
                self.line(&format!("or.pred %p1, %p1, {p};"));
            }
            self.line(&format!("@%p1 bra {skip};"));
            let off = *self.rng.pick(&[-4, 4, 0, 8]);
            if of_column {
                // One thread of each row writes the row's word.
                self.line("mul.wide.s32 %l1, %idx, 4;\n    add.s64 %l1, %in, %l1;");
                self.line(&format!("ld.global.u32 %t2, [%l1+{off}];"));
                self.line("mov.u32 %t0, tile;\n    mad.lo.u32 %t1, %row, 20, %t0;");
            } else {
                // Columns that meet write the same.
                self.line("and.b32 %t1, %col, 255;\n    mul.wide.u32 %l1, %t1, 4;\n    add.s64 %l1, %in, %l1;");
                self.line(&format!("ld.global.u32 %t2, [%l1+{off}];"));
                self.line("mov.u32 %t0, tile;\n    shl.b32 %t1, %t1, 2;\n    add.u32 %t1, %t1, %t0;");
            }
            let bytes = *self.rng.pick(&[4, 4, 4, 2, 1]);
            self.line(&format!("st.shared.u{} [%t1+{region}], %t2;", 8 * bytes));
            let _ = writeln!(self.text, "{skip}:");
        }
        self.line("bar.sync 0;\n    ld.shared.u32 %t1, [%at];\n    mad.lo.u32 %r, %r, 5, %t1;");
        self.line("mov.u32 %t0, tile;\n    mad.lo.u32 %t1, %row, 20, %t0;\n    ld.shared.u32 %t2, [%t1+1024];");
        self.line("xor.b32 %r, %r, %t2;\n    bar.sync 0;");
        if self.rng.one_in(2) {
            let skip = self.label();
            self.line(&format!("or.pred %p1, %e0, %e1;\n    @%p1 bra {skip};\n    add.u32 %r, %r, %t1;"));
            self.line(&format!("sub.u32 %r, %r, %t0;\n{skip}:"));
        }
    }

    /// The first lanes of each warp hand values on by `shfl`, or count each other, and name nobody else.
    pub(super) fn meet(&mut self) {
        let (skip, lanes) = (self.label(), *self.rng.pick(&[1u32, 2, 4, 8, 8, 16, 31]));
        self.line(&format!("and.b32 %t1, %lin, 31;\n    setp.ge.u32 %p1, %t1, {lanes};\n    @%p1 bra {skip};"));
        let mask = (1u64 << lanes) - 1;
        for _ in 0..1 + self.rng.below(3) {
            match self.rng.below(4) {
                0 => self.line(&format!(
                    "setp.lt.u32 %p2, %r, %lin;\n    vote.sync.ballot.b32 %t2, %p2, {mask};\n    add.u32 %r, %r, %t2;"
                )),
                1 => self.line(&format!("shfl.sync.up.b32 %t2, %r, 1, 0, {mask};\n    xor.b32 %r, %r, %t2;")),
                _ => {
                    let by = *self.rng.pick(&[1, 2, 4]);
                    self.line(&format!("shfl.sync.down.b32 %t2, %r, {by}, 31, {mask};\n    add.u32 %r, %r, %t2;"));
                }
            }
        }
        let _ = writeln!(self.text, "{skip}:");
    }

    /// Reads what is picked by quotients, products or values: mostly one element for all lanes, or any.
    pub(super) fn pick_some(&mut self) {
        let bytes = *self.rng.pick(&[4, 4, 8, 1, 2]);
        match self.rng.below(4) {
            0 => {
                let by = *self.rng.pick(&[3, 50, 100, 1000]);
                self.line(&format!("div.u32 %t1, %idx, {by};"));
            }
            1 => self.line("and.b32 %t1, %n, 63;\n    add.u32 %t1, %t1, 1;\n    div.u32 %t1, %lin, %t1;"),
            2 => self.line("mul.lo.u32 %t1, %lin, %lin;\n    and.b32 %t1, %t1, 15;"),
            _ => self.line("and.b32 %t1, %r, 7;"),
        }
        self.line(&format!("mul.wide.u32 %l1, %t1, {bytes};\n    add.s64 %l1, %in, %l1;"));
        if bytes == 8 {
            self.line("ld.global.u64 %l2, [%l1];\n    cvt.u32.u64 %t2, %l2;");
        } else {
            self.line(&format!("ld.global.u{} %t2, [%l1];", 8 * bytes));
        }
        self.line("mad.lo.u32 %r, %r, 5, %t2;");
    }

    /// Each thread reads a few elements of a tile by its column, as products of tiles of registers do: rows of threads read the same.
    pub(super) fn halves(&mut self) {
        let (mask, by) = (*self.rng.pick(&[15, 15, 7, 3, 31]), *self.rng.pick(&[2, 3, 4, 4, 6, 8]));
        self.line("bar.sync 0;\n    st.shared.u32 [%at], %r;\n    bar.sync 0;");
        self.line(&format!("and.b32 %col, %lin, {mask};\n    mov.u32 %t0, tile;"));
        self.line(&format!("mad.lo.u32 %t1, %col, {}, %t0;", 4 * by));
        for k in 0..2 + self.rng.below(3) {
            let off = 4 * k + *self.rng.pick(&[0, 256]);
            self.line(&format!("ld.shared.u32 %t2, [%t1+{off}];\n    mad.lo.u32 %r, %r, 3, %t2;"));
        }
        self.line("bar.sync 0;");
    }
}
