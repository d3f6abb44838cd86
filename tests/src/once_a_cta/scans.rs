//! Statements of scans and of borders: what a guard lets some lanes read, and what all of them then use, with something else in the lanes that it left out.

use std::fmt::Write;

use super::Maker;

impl Maker {
    /// Steps of a scan: threads that have so many before them, or behind, take what stands there.
    pub(super) fn scan(&mut self) {
        self.line("bar.sync 0;\n    st.shared.u32 [%at], %r;\n    bar.sync 0;");
        for _ in 0..1 + self.rng.below(4) {
            let (skip, step) = (self.label(), *self.rng.pick(&[1u32, 2, 3, 4, 8, 16, 31, 32, 33, 64, 96, 128]));
            let default = self.rng.below(3);
            self.line(&format!("mov.u32 %t2, {default};"));
            let is_back = self.rng.one_in(3);
            if is_back {
                let bound = self.threads.saturating_sub(step);
                let cmp = *self.rng.pick(&["ge.u32", "ge.s32"]);
                self.line(&format!("setp.{cmp} %p1, %lin, {bound};"));
            } else {
                let cmp = *self.rng.pick(&["lt.u32", "lt.s32"]);
                self.line(&format!("setp.{cmp} %p1, %lin, {step};"));
            }
            if self.rng.one_in(4) {
                let (cmp, bound) = (*self.rng.pick(&["eq.u32", "gt.u32"]), *self.rng.pick(&[0, 5, 40, 63]));
                self.line(&format!("setp.{cmp} %p2, %lin, {bound};\n    or.pred %p1, %p1, %p2;"));
            }
            let off = if is_back { i64::from(4 * step) } else { -i64::from(4 * step) };
            if self.rng.one_in(4) {
                // As Triton writes it.
                self.line(&format!("@!%p1 ld.shared.u32 %t2, [%at+{off}];"));
            } else {
                self.line(&format!("@%p1 bra {skip};"));
                match self.rng.below(6) {
                    0 => self.line(&format!("ld.shared.u8 %t2, [%at+{off}];")),
                    1 => self.line(&format!(
                        "ld.shared.s16 %t2, [%at+{off}];\n    ld.shared.u32 %t0, [%at];\n    add.u32 %t2, %t2, %t0;"
                    )),
                    _ => self.line(&format!("ld.shared.u32 %t2, [%at+{off}];")),
                }
            }
            if self.rng.one_in(3) {
                self.line("mad.lo.u32 %t2, %t2, 3, %lin;");
            }
            let _ = writeln!(self.text, "{skip}:");
            if self.rng.one_in(6) {
                self.line("add.u32 %t2, %t2, 1;");
            }
            self.line("bar.sync 0;\n    add.u32 %r, %r, %t2;\n    st.shared.u32 [%at], %r;\n    bar.sync 0;");
        }
    }

    /// One thread writes what it has to a place that all know.
    pub(super) fn one_writes(&mut self) {
        let (skip, bound) = (self.label(), *self.rng.pick(&[0, 0, 1, 3, 31, 33, 40]));
        self.line("bar.sync 0;\n    mov.u32 %col, %tid.x;\n    mov.u32 %row, %tid.y;");
        match self.rng.below(3) {
            0 => self.line(&format!("setp.ne.u32 %p1, %lin, {bound};")),
            _ => {
                let y = self.rng.below(3);
                self.line(&format!("setp.ne.u32 %p1, %col, {bound};\n    setp.ne.u32 %p2, %row, {y};"));
                self.line("or.pred %p1, %p1, %p2;");
            }
        }
        let bytes = *self.rng.pick(&[4, 4, 4, 2, 1]);
        self.line(&format!("@%p1 bra {skip};\n    st.shared.u{} [tile+64], %r;", 8 * bytes));
        let _ = writeln!(self.text, "{skip}:");
        self.line("bar.sync 0;\n    ld.shared.u32 %t1, [tile+64];\n    mad.lo.u32 %r, %r, 3, %t1;\n    bar.sync 0;");
    }

    /// The end: one thread of each block writes for it, or a few write what they have, each at a place of its own.
    pub(super) fn end_of_block(&mut self) {
        let (skip, bound) = (self.label(), *self.rng.pick(&[0, 0, 0, 1, 3, 31, 32, 40]));
        let is_one = self.rng.one_in(2);
        let cmp = if is_one { "ne" } else { "gt" };
        self.line(&format!("setp.{cmp}.u32 %p1, %lin, {bound};\n    @%p1 bra {skip};"));
        self.line("mov.u32 %t0, %ctaid.y;\n    mov.u32 %t1, %nctaid.x;\n    mov.u32 %t2, %ctaid.x;");
        self.line("mad.lo.u32 %t0, %t0, %t1, %t2;");
        if !is_one {
            let threads = self.threads;
            self.line(&format!("mad.lo.u32 %t0, %t0, {threads}, %lin;"));
        }
        self.line("mul.wide.u32 %l1, %t0, 4;\n    add.s64 %l1, %out, %l1;\n    st.global.u32 [%l1], %r;");
        let _ = writeln!(self.text, "{skip}:");
    }

    /// Elements of a picture with a border of its own: what lies outside counts as something else.
    pub(super) fn border(&mut self) {
        self.line("mov.u32 %col, %tid.x;\n    mov.u32 %row, %tid.y;");
        for _ in 0..1 + self.rng.below(3) {
            let (skip, a) = (self.label(), *self.rng.pick(&["%x", "%y", "%col", "%row", "%lin"]));
            let (cmp, bound) = *self.rng.pick(&[("eq.s32", "0"), ("lt.s32", "1"), ("ge.s32", "15"), ("ge.s32", "%n")]);
            let default = 7 * self.rng.below(2);
            self.line(&format!("mov.u32 %t2, {default};\n    setp.{cmp} %p1, {a}, {bound};"));
            if self.rng.one_in(3) {
                let b = *self.rng.pick(&["%x", "%y", "%col", "%row"]);
                self.line(&format!("setp.eq.s32 %p2, {b}, 0;\n    or.pred %p1, %p1, %p2;"));
            }
            self.line(&format!("@%p1 bra {skip};"));
            let off = *self.rng.pick(&[-4, 4, 0, 8]);
            self.line(&format!(
                "mul.wide.s32 %l1, %idx, 4;\n    add.s64 %l1, %in, %l1;\n    ld.global.u32 %t2, [%l1+{off}];"
            ));
            if self.rng.one_in(2) {
                self.line("shl.b32 %t2, %t2, 1;");
            }
            let _ = writeln!(self.text, "{skip}:");
            self.line("mad.lo.u32 %r, %r, 5, %t2;");
        }
        if self.depth == 0 && self.rng.one_in(2) {
            self.line("bar.sync 0;\n    st.shared.u32 [%at], %r;\n    bar.sync 0;\n    ld.shared.u32 %r, [%at];\n    bar.sync 0;");
        }
    }
}
