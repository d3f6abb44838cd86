//! Loops as compilers unroll them: four turns at a time through pointers that follow each other or are added up anew, and one by one for what is left.

use super::Maker;

impl Maker {
    /// One of them, of up to some dozens of turns: as many in all threads, or not.
    pub fn unrolled(&mut self) {
        let (top, rest, last, end) = (self.label(), self.label(), self.label(), self.label());
        let most = 4 * (1 + self.rng.below(7));
        self.line(
            "{\n    .reg .b32 %left, %done, %down, %turns, %times;\n    .reg .b64 %q<6>, %z<3>, %pitch, %base, %own;",
        );
        let turns = match self.rng.below(6) {
            0 => format!("mov.u32 %turns, {};", self.rng.below(30)),
            1 => format!("and.b32 %turns, %lin, {};", self.rng.below(8)),
            2 => format!("add.u32 %turns, %n, {};\n    and.b32 %turns, %turns, 28;", self.rng.below(5)),
            3 => format!("mov.u32 %turns, {most};"),
            _ => format!("add.u32 %turns, %n, {};\n    and.b32 %turns, %turns, 31;", self.rng.below(5)),
        };
        self.line(&turns);
        let pitch = self.rng.below(4);
        match self.rng.below(3) {
            0 => self.line(&format!("mov.u64 %pitch, {};", 4 * pitch)),
            1 => self.line("and.b32 %t1, %n, 3;\n    mul.wide.u32 %pitch, %t1, 4;"),
            _ => self.line(&format!("mov.u32 %t1, {pitch};\n    mul.wide.u32 %pitch, %t1, 4;")),
        }
        // Where each thread begins: all at one place, by rows, or each at its own.
        let begins = ["%idx", "%lin", "%y", "%x"];
        let (a, b) = (*self.rng.pick(&begins), *self.rng.pick(&begins));
        self.line(&format!("mul.wide.u32 %own, {a}, 4;\n    mul.wide.u32 %q5, {b}, 4;\n    add.s64 %q0, %in, %q5;"));
        self.line("mov.u64 %base, %in;");
        // Pointers may go on where they were, a second time round.
        let again = self.rng.one_in(4).then(|| self.label());
        if let Some(again) = &again {
            self.line(&format!("mov.u32 %times, 0;\n{again}:"));
        }
        self.line("and.b32 %left, %turns, 3;\n    mov.u32 %done, 0;\n    setp.lt.u32 %p1, %turns, 4;");
        self.line(&format!("@%p1 bra {rest};\n    sub.u32 %down, %turns, %left;\n{top}:"));
        let adds_early = self.rng.one_in(4);
        self.line("add.s64 %q4, %base, %own;");
        if adds_early {
            self.line("add.s64 %base, %base, 16;");
        }
        for k in 0..4 {
            let (from, to) = (if k == 0 { 0 } else { k - 1 }, if k == 3 { 0 } else { k });
            if k > 0 && k < 3 {
                self.line(&format!("add.s64 %q{to}, %q{from}, %pitch;"));
            }
            let at = if k == 3 { 2 } else { k };
            self.line(&format!(
                "ld.global.u32 %t1, [%q{at}+{}];\n    mad.lo.u32 %r, %r, 3, %t1;\n    ld.global.u32 %t2, [%q4+{}];\n    xor.b32 %s, %s, %t2;",
                if k == 3 { 4 } else { 0 },
                4 * k
            ));
        }
        self.line("add.s64 %q3, %q2, %pitch;\n    add.s64 %q0, %q3, %pitch;");
        if !adds_early {
            self.line("add.s64 %base, %base, 16;");
        }
        if self.rng.one_in(5) {
            self.line("cvt.u32.u64 %t1, %q3;\n    cvt.u32.u64 %t2, %in;\n    sub.u32 %t1, %t1, %t2;\n    mov.u32 %t2, 0;\n    add.u32 %r, %r, %t1;");
        }
        self.line("add.u32 %done, %done, 4;\n    add.u32 %down, %down, -4;\n    setp.ne.u32 %p1, %down, 0;");
        self.line(&format!("@%p1 bra {top};\n{rest}:\n    setp.eq.u32 %p1, %left, 0;\n    @%p1 bra {end};"));
        self.line(&format!(
            "mad.lo.u32 %t1, %done, {pitch}, {b};\n    mul.wide.u32 %z0, %t1, 4;\n    add.s64 %z1, %in, %z0;\n{last}:"
        ));
        self.line("ld.global.u32 %t1, [%z1];\n    mad.lo.u32 %r, %r, 5, %t1;\n    add.s64 %z1, %z1, %pitch;");
        self.line(&format!("add.u32 %left, %left, -1;\n    setp.ne.u32 %p1, %left, 0;\n    @%p1 bra {last};\n{end}:"));
        if let Some(again) = again {
            self.line(&format!("add.u32 %times, %times, 1;\n    setp.lt.u32 %p1, %times, 2;\n    @%p1 bra {again};"));
        }
        self.line("}");
    }
}
