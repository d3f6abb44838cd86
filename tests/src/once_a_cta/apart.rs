//! Statements whose elements stand apart: members of structures, rows backwards, tiles cut out of numbers of threads.

use std::fmt::Write;

use super::Maker;

impl Maker {
    /// Reads elements that stand some elements apart, in either order, and hands some on through shared memory.
    pub(super) fn apart(&mut self) {
        let a = *self.rng.pick(&["%idx", "%idx", "%lin", "%x"]);
        let (by, bytes) =
            (*self.rng.pick(&[-6, -4, -3, -2, -1, -1, 2, 3, 3, 4, 5, 6, 8, 9]), *self.rng.pick(&[4, 4, 8, 1, 2]));
        match self.rng.below(3) {
            0 => self.line(&format!("mul.lo.s32 %t1, {a}, {by};\n    add.s32 %t1, %t1, %n;\n    sub.s32 %t1, %t1, 1;")),
            _ => {
                let from = if by < 0 { -by * *self.rng.pick(&[31, 127, 255]) } else { *self.rng.pick(&[0, 0, 3, 40]) };
                self.line(&format!("mad.lo.s32 %t1, {a}, {by}, {from};"));
            }
        }
        self.line(&format!("mul.wide.s32 %l1, %t1, {bytes};\n    add.s64 %l1, %in, %l1;"));
        for k in 0..1 + self.rng.below(3) {
            let at = k as i32 * bytes;
            if bytes == 8 {
                self.line(&format!("ld.global.u64 %l2, [%l1+{at}];\n    cvt.u32.u64 %t2, %l2;"));
            } else {
                let sign = *self.rng.pick(&["u", "s"]);
                self.line(&format!("ld.global.{sign}{} %t2, [%l1+{at}];", 8 * bytes));
            }
            self.line("mad.lo.u32 %r, %r, 5, %t2;");
        }
        if self.depth == 0 && self.rng.one_in(2) {
            let (to, from) = (*self.rng.pick(&[1, 2, 3, 4]), *self.rng.pick(&[-3, -2, -1, -1, 1, 2, 3]));
            let first = if from < 0 { -from * *self.rng.pick(&[31, 63, 255]) } else { 0 };
            self.line(&format!("mov.u32 %row, tile;\n    mad.lo.u32 %t1, %lin, {}, %row;", 4 * to));
            self.line("st.shared.u32 [%t1], %r;\n    bar.sync 0;");
            self.line(&format!("mad.lo.s32 %t1, %lin, {}, %row;", 4 * from));
            self.line(&format!("ld.shared.u32 %t2, [%t1+{}];\n    xor.b32 %r, %r, %t2;\n    bar.sync 0;", 4 * first));
        }
    }

    /// Cuts a row and a column out of a number, as kernels do whose blocks are rows of threads and whose tiles are not, and reads there; a tile is handed on with rows for columns.
    pub(super) fn cut(&mut self) {
        let k = 1 + self.rng.below(8) as u32;
        let from = *self.rng.pick(&["%lin", "%lin", "%lin", "%x", "%idx"]);
        let low = *self.rng.pick(&[(1u32 << k) - 1, (1 << k) - 1, 31, 12, 0xfffffff0]);
        let shift = *self.rng.pick(&["shr.u32", "shr.s32"]);
        self.line(&format!("and.b32 %col, {from}, {low};\n    {shift} %row, {from}, {k};"));
        if self.rng.one_in(3) {
            self.line("and.b32 %row, %row, 7;");
        }
        let (pos, len) = *self.rng.pick(&[(k, 32 - k), (k, 3), (4, 3), (5, 27)]);
        let (by, pitch) = (*self.rng.pick(&[1u32, 4, 17]), *self.rng.pick(&[16, 33, 1 << k]));
        match self.rng.below(4) {
            0 => self.line(&format!("bfi.b32 %t1, %row, %col, {pos}, {len};")),
            1 => self.line(&format!("mov.u32 %t0, %ctaid.x;\n    bfi.b32 %t1, %t0, %col, {pos}, {len};")),
            2 => self.line(&format!("mad.lo.u32 %t1, %col, {by}, %row;")),
            _ => self.line(&format!("mad.lo.u32 %t1, %row, {pitch}, %col;")),
        }
        self.line("mul.wide.u32 %l1, %t1, 4;\n    add.s64 %l1, %in, %l1;\n    ld.global.u32 %t2, [%l1];");
        self.line("mad.lo.u32 %r, %r, 5, %t2;");
        if self.depth == 0 && self.rng.one_in(2) {
            let pitch = *self.rng.pick(&[4u32, 16, 17, 32]);
            self.line(&format!("and.b32 %col, %lin, {};\n    shr.u32 %row, %lin, {k};", (1u32 << k) - 1));
            self.line(&format!(
                "mad.lo.u32 %t1, %row, {pitch}, %col;\n    and.b32 %t1, %t1, 1023;\n    mov.u32 %most, %t1;"
            ));
            self.line("shl.b32 %t1, %t1, 2;\n    mov.u32 %t2, tile;\n    add.u32 %t1, %t1, %t2;");
            self.line("bar.sync 0;\n    st.shared.u32 [%t1], %most;\n    bar.sync 0;");
            self.line(&format!(
                "mad.lo.u32 %t1, %col, {pitch}, %row;\n    shl.b32 %t1, %t1, 2;\n    add.u32 %t1, %t1, %t2;"
            ));
            self.line("ld.shared.u32 %t2, [%t1];\n    bar.sync 0;");
            // Several threads may have written one place, all of them the same.
            self.line("setp.lt.u32 %p1, %t2, 1024;\n    @%p1 add.u32 %r, %r, %row;");
        }
    }

    /// Writes elements that stand some elements apart, where nobody else writes: as many as there is room for.
    pub(super) fn store_apart(&mut self) {
        let (by, skip) = (*self.rng.pick(&[-2, -1, -1, 2, 3, 4, 6, 8]), self.label());
        self.line(&format!("mul.lo.s32 %t1, %idx, {};", i32::abs(by)));
        self.line(&format!("add.s32 %t2, %t1, {};\n    setp.ge.s32 %p1, %t2, %n;", i32::abs(by) - 1));
        self.line(&format!("@%p1 bra {skip};"));
        if by < 0 {
            self.line("sub.s32 %t1, %n, %t1;\n    sub.s32 %t1, %t1, 1;");
        }
        let bytes = *self.rng.pick(&[4, 4, 1, 2]);
        self.line(&format!("mul.wide.s32 %l1, %t1, {bytes};\n    add.s64 %l1, %out, %l1;"));
        self.line(&format!("st.global.u{} [%l1], %r;", 8 * bytes));
        for k in 1..i32::abs(by) {
            if self.rng.one_in(2) {
                self.line(&format!("st.global.u{} [%l1+{}], %s;", 8 * bytes, bytes * k * by.signum()));
            }
        }
        let _ = writeln!(self.text, "{skip}:");
    }
}
