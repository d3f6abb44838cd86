//! A tree of statements as text. Statements are numbered in the order of the text, functions first, so that some can be left out.

use std::collections::HashSet;
use std::fmt::Write;

use super::templates::Class;
use super::{Func, INPUT_BYTES, Node, OWN_BYTES, REGS, TABLE_ROWS};

/// Number of statements.
pub fn count(funcs: &[Func], body: &[Node]) -> usize {
    funcs.iter().map(|f| nodes(&f.body)).sum::<usize>() + nodes(body)
}

fn nodes(list: &[Node]) -> usize {
    let inner = |n: &Node| match n {
        Node::Lines(_) => 0,
        Node::If { then, otherwise, .. } => nodes(then) + nodes(otherwise),
        Node::Loop { body, .. } => nodes(body),
        Node::Switch { arms, .. } => arms.iter().map(|a| nodes(a)).sum(),
    };
    list.iter().map(|n| 1 + inner(n)).sum()
}

/// The text without the dropped statements.
pub fn emit(header: &str, funcs: &[Func], body: &[Node], dropped: &HashSet<usize>) -> String {
    let words: Vec<String> = (0..TABLE_ROWS * 4).map(|i| (i * 0x0101_0107 % 0xffff_fffb).to_string()).collect();
    let table = format!(".const .align 16 .u32 table[{}] = {{{}}};\n", words.len(), words.join(", "));
    // Half of the kernels begin with as many accesses of lanes anywhere as code outside of loops does in place.
    let n_apart = if count(funcs, body).is_multiple_of(2) { 16 } else { 0 };
    let mut e = Emitter { out: header.to_owned() + &table, dropped, next: 0, loops: 0, n_apart };
    for f in funcs {
        e.function(f);
    }
    e.entry(body);
    e.out
}

struct Emitter<'d> {
    out: String,
    dropped: &'d HashSet<usize>,
    next: usize,
    /// Loop counters of the function so far.
    loops: usize,
    /// Loads of lanes anywhere at the start of the entry.
    n_apart: usize,
}

impl Emitter<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str("    ");
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn registers(&mut self) {
        for c in Class::ALL {
            self.line(&format!(".reg .{} %{}<{REGS}>;", c.ty(), c.letter()));
        }
        self.line(".reg .pred %q<4>;");
        self.line(".reg .b16 %s<4>;");
        self.line(".reg .b32 %t<4>, %ti, %nt, %lin, %lane, %mask, %lanes, %u<4>;");
        self.line(".reg .b64 %a<4>, %in, %out, %own, %tally;");
    }

    fn function(&mut self, f: &Func) {
        let _ = writeln!(self.out, ".func (.param .b32 r) {}(.param .b32 x, .param .b64 y)\n{{", f.name);
        let start = self.out.len();
        self.registers();
        self.line("ld.param.b32 %r0, [x];");
        self.line("ld.param.b64 %l0, [y];");
        for i in 0..REGS {
            if i > 0 {
                self.line(&format!("xor.b32 %r{i}, %r0, {:#x};", 0x1111 * i));
                self.line(&format!("add.u64 %l{i}, %l0, {:#x};", 0x101_0101 * i));
            }
            self.line(&format!("cvt.u16.u32 %h{i}, %r{i};"));
            self.line(&format!("setp.lt.s32 %p{i}, %r0, {:#x};", i * 0x1000_0000));
        }
        self.block(&f.body);
        self.counters(start);
        self.line("st.param.b32 [r], %r1;");
        self.line("ret;");
        self.out.push_str("}\n");
    }

    fn entry(&mut self, body: &[Node]) {
        self.out.push_str(
            ".visible .entry k(.param .u64 pin, .param .u64 pout, .param .u64 ptally, .param .u64 pnum, \
             .param .align 16 .b8 prow[512])\n{\n",
        );
        let start = self.out.len();
        self.registers();
        self.out.push_str(PROLOGUE);
        for i in 0..REGS {
            self.line(&format!("setp.lt.s32 %p{i}, %r{i}, {};", i * 3));
        }
        for i in 0..self.n_apart {
            self.line(&format!("mad.lo.u32 %t0, %ti, {}, {i};", 3 + 2 * i));
            self.line(&format!("and.b32 %t0, %t0, {};", INPUT_BYTES / 4 - 1));
            self.line("mul.wide.u32 %a0, %t0, 4;");
            self.line("add.u64 %a0, %a0, %in;");
            self.line("ld.global.u32 %t1, [%a0];");
            self.line("xor.b32 %r0, %r0, %t1;");
        }
        self.line(&format!("and.b32 %t0, %ti, {};", INPUT_BYTES / 4 - 1));
        self.block(body);
        self.counters(start);
        self.epilogue();
        self.out.push_str("}\n");
    }

    /// Declares the loop counters that the function came to need.
    fn counters(&mut self, start: usize) {
        let text = format!("    .reg .b32 %c<{}>;\n", self.loops + 1);
        self.out.insert_str(start, &text);
        self.loops = 0;
    }

    /// Everything that registers hold goes into the thread's own part of the result.
    fn epilogue(&mut self) {
        let own = |i: usize| OWN_BYTES / 2 - 128 + i;
        for i in 0..REGS {
            self.line(&format!("st.global.b64 [%own+{}], %l{i};", own(i * 8)));
            self.line(&format!("mad.lo.u32 %t0, %nt, {}, %ti;", i + 16));
            self.line("mul.wide.u32 %a0, %t0, 4;");
            self.line("add.u64 %a0, %a0, %out;");
            self.line(&format!("st.global.b32 [%a0], %r{i};"));
            self.line(&format!("st.global.b16 [%own+{}], %h{i};", own(64 + i * 2)));
            self.line(&format!("selp.u32 %t0, 1, 0, %p{i};"));
            self.line(&format!("st.global.u8 [%own+{}], %t0;", own(80 + i)));
        }
        self.line("ret;");
    }

    fn block(&mut self, list: &[Node]) {
        for n in list {
            self.node(n);
        }
    }

    fn node(&mut self, n: &Node) {
        let id = self.next;
        self.next += 1;
        if self.dropped.contains(&id) {
            self.next = id + nodes(std::slice::from_ref(n));
            return;
        }
        match n {
            Node::Lines(lines) => lines.iter().for_each(|l| self.line(&l.replace("$N", &id.to_string()))),
            Node::If { set, cond, then, otherwise } => {
                set.iter().for_each(|l| self.line(l));
                self.line(&format!("@!{cond} bra else{id};"));
                self.block(then);
                if !otherwise.is_empty() {
                    self.line(&format!("bra end{id};"));
                }
                let _ = writeln!(self.out, "else{id}:");
                if !otherwise.is_empty() {
                    self.block(otherwise);
                    let _ = writeln!(self.out, "end{id}:");
                }
            }
            Node::Loop { count, leave, body } => {
                let c = self.loops;
                self.loops += 1;
                self.line(&format!("and.b32 %c{c}, {count}, 3;"));
                let _ = writeln!(self.out, "top{id}:");
                self.line(&format!("setp.eq.u32 %q3, %c{c}, 0;"));
                self.line(&format!("@%q3 bra out{id};"));
                self.line(&format!("sub.u32 %c{c}, %c{c}, 1;"));
                self.block(body);
                if let Some(p) = leave {
                    self.line(&format!("@{p} bra out{id};"));
                }
                self.line(&format!("bra top{id};"));
                let _ = writeln!(self.out, "out{id}:");
            }
            Node::Switch { index, arms } => {
                let names: Vec<String> = (0..arms.len()).map(|k| format!("arm{id}_{k}")).collect();
                self.line(&format!("list{id}: .branchtargets {};", names.join(", ")));
                self.line(&format!("rem.u32 %t3, {index}, {};", arms.len()));
                self.line(&format!("brx.idx %t3, list{id};"));
                for (name, arm) in names.iter().zip(arms) {
                    let _ = writeln!(self.out, "{name}:");
                    self.block(arm);
                    self.line(&format!("bra end{id};"));
                }
                let _ = writeln!(self.out, "end{id}:");
            }
        }
    }
}

/// Addresses, places and first values. `%ti` counts the threads of the grid, `%lin` those of the block; the lanes of `%mask` exist.
const PROLOGUE: &str = "    .shared .align 8 .b8 tile[2048];
    .local .align 8 .b8 loc[64];
    mov.u32 %t0, %tid.z;
    mov.u32 %t1, %ntid.y;
    mov.u32 %t2, %tid.y;
    mad.lo.u32 %t0, %t0, %t1, %t2;
    mov.u32 %t1, %ntid.x;
    mov.u32 %t2, %tid.x;
    mad.lo.u32 %lin, %t0, %t1, %t2;
    mov.u32 %t0, %ntid.y;
    mul.lo.u32 %t1, %t1, %t0;
    mov.u32 %t0, %ntid.z;
    mul.lo.u32 %t1, %t1, %t0;
    mov.u32 %t0, %ctaid.z;
    mov.u32 %t2, %nctaid.y;
    mov.u32 %t3, %ctaid.y;
    mad.lo.u32 %t0, %t0, %t2, %t3;
    mov.u32 %t2, %nctaid.x;
    mov.u32 %t3, %ctaid.x;
    mad.lo.u32 %t0, %t0, %t2, %t3;
    mad.lo.u32 %ti, %t0, %t1, %lin;
    mov.u32 %t3, %nctaid.y;
    mul.lo.u32 %t2, %t2, %t3;
    mov.u32 %t3, %nctaid.z;
    mul.lo.u32 %t2, %t2, %t3;
    mul.lo.u32 %nt, %t1, %t2;
    mov.u32 %lane, %laneid;
    activemask.b32 %mask;
    popc.b32 %lanes, %mask;
    ld.param.u64 %in, [pin];
    ld.param.u64 %out, [pout];
    ld.param.u64 %tally, [ptally];
    ld.param.u64 %l0, [pnum];
    mul.wide.u32 %own, %nt, 128;
    mul.wide.u32 %a0, %ti, 128;
    add.u64 %own, %own, %a0;
    add.u64 %own, %own, %out;
    mov.b64 {%u0, %u1}, %l0;
    mov.u32 %u2, %ctaid.x;
    mov.u32 %u3, 3;
    and.b32 %t0, %ti, 0x3ff;
    mul.wide.u32 %a0, %t0, 4;
    add.u64 %a0, %a0, %in;
    mov.u32 %r0, %ti;
    ld.global.u32 %r1, [%a0];
    mov.u32 %r2, %lane;
    mov.u32 %r3, %u0;
    and.b32 %t0, %r1, 0x1ff;
    mul.wide.u32 %a1, %t0, 8;
    add.u64 %a1, %a1, %in;
    ld.global.u64 %l1, [%a1];
    ld.global.u32 %r4, [%a1];
    mov.u32 %r5, %ctaid.x;
    ld.global.u32 %r6, [%in+8];
    mov.u32 %r7, 0x3f800000;
    cvt.u64.u32 %l2, %ti;
    not.b64 %l3, %l0;
    xor.b64 %l4, %l1, %l0;
    mov.u64 %l5, 0x3ff0000000000000;
    ld.global.u64 %l6, [%in+256];
    mul.lo.u64 %l7, %l2, 0x123456789;
    cvt.u16.u32 %h0, %r0;
    cvt.u16.u32 %h1, %r1;
    cvt.u16.u32 %h2, %r2;
    cvt.u16.u32 %h3, %r3;
    cvt.u16.u64 %h4, %l1;
    mov.u16 %h5, 0x3c00;
    shr.u16 %h6, %h1, 3;
    not.b16 %h7, %h4;
    st.local.u64 [loc], %l0;
    st.local.u64 [loc+8], %l1;
    st.local.u64 [loc+16], %l2;
    st.local.u64 [loc+24], %l3;
    st.local.u64 [loc+32], %l4;
    st.local.u64 [loc+40], %l5;
    st.local.u64 [loc+48], %l6;
    st.local.u64 [loc+56], %l7;
";
