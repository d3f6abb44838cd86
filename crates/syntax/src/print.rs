//! From a tree back to text.
//!
//! Invariant: parsing what was printed gives the same tree, places aside. So literals are printed by their bits and
//! every operator has its parentheses.

use std::fmt::{self, Display, Formatter, Write};

use crate::ast::{
    Address, Attribute, BinaryOp, Directive, Expr, ExprKind, Function, Init, Inst, Item, Linkage, Member, Module, Name,
    Operand, OperandKind, Pragma, Stmt, UnaryOp, Var, VarDecl,
};

/// The module as PTX text. Comments, line markers and the like are not in the tree, so they are gone.
pub fn print(module: &Module<'_>) -> String {
    let mut out = String::new();
    for item in &module.items {
        // Writing to a string cannot fail.
        let _ = write_item(&mut out, item);
    }
    out
}

/// Whether two trees are the same, places aside.
pub fn same(a: &Module<'_>, b: &Module<'_>) -> bool {
    // The printed text tells NaNs apart, which `Debug` does not; `Debug` tells kinds of nodes apart.
    print(a) == print(b) && without_places(a) == without_places(b)
}

/// The tree as Rust prints it, less the places.
fn without_places(module: &Module<'_>) -> String {
    let mut filter = Filter { out: String::new() };
    let _ = write!(filter, "{module:?}");
    filter.out
}

struct Filter {
    out: String,
}

impl Write for Filter {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.out.push_str(s);
        // Text of the module is quoted here, so a `Span {` without a quote behind it is a place. Its numbers have at
        // most ten digits each; the search is bounded by that.
        let tail = self.out.floor_char_boundary(self.out.len().saturating_sub(80));
        if s.ends_with('}')
            && let Some(at) = self.out[tail..].rfind("Span {")
            && !self.out[tail + at..self.out.len() - 1].contains(['"', '}'])
        {
            self.out.truncate(tail + at);
        }
        Ok(())
    }
}

fn write_item(out: &mut String, item: &Item<'_>) -> fmt::Result {
    match item {
        Item::Version { major, minor, .. } => writeln!(out, ".version {major}.{minor}"),
        Item::Target { words, .. } => writeln!(out, ".target {}", List(words)),
        Item::AddressSize { bits, .. } => writeln!(out, ".address_size {bits}"),
        Item::Vars(decl) => writeln!(out, "{decl};"),
        Item::Function(f) => write_function(out, f),
        Item::File { index, name, rest, .. } => {
            write!(out, ".file {index} \"{name}\"")?;
            rest.iter().try_for_each(|n| write!(out, ", {n}"))?;
            out.write_char('\n')
        }
        Item::Section { name, body, .. } => writeln!(out, ".section {name} {{{body}}}"),
        Item::Pragma(pragma) => writeln!(out, "{pragma}"),
        Item::Alias { alias, target, .. } => writeln!(out, ".alias {alias}, {target};"),
    }
}

fn write_function(out: &mut String, f: &Function<'_>) -> fmt::Result {
    write_linkage(out, f.linkage.map(|l| l.0))?;
    out.write_str(if f.is_entry { ".entry " } else { ".func " })?;
    write_attributes(out, &f.attributes)?;
    if !f.results.is_empty() {
        write!(out, "({}) ", List(&f.results))?;
    }
    write!(out, "{}({})", f.name, List(&f.params))?;
    for directive in &f.directives {
        write!(out, "\n{directive}")?;
    }
    let Some(body) = &f.body else { return out.write_str(";\n") };
    out.write_str("\n{\n")?;
    write_stmts(out, body)?;
    out.write_str("}\n")
}

/// No recursion: the blocks to be finished are a list.
fn write_stmts(out: &mut String, stmts: &[Stmt<'_>]) -> fmt::Result {
    let mut open = vec![stmts.iter()];
    while let Some(stmts) = open.last_mut() {
        let Some(stmt) = stmts.next() else {
            open.pop();
            if !open.is_empty() {
                indent(out, open.len());
                out.write_str("}\n")?;
            }
            continue;
        };
        if !matches!(stmt, Stmt::Label(_)) {
            indent(out, open.len());
        }
        match stmt {
            Stmt::Label(name) => writeln!(out, "{name}:")?,
            Stmt::Inst(inst) => writeln!(out, "{inst}")?,
            Stmt::Vars(decl) => writeln!(out, "{decl};")?,
            Stmt::Block(inner, _) => {
                out.write_str("{\n")?;
                open.push(inner.iter());
            }
            Stmt::Loc { file, line, column, inlined, .. } => {
                write!(out, ".loc {file} {line} {column}")?;
                if let Some(i) = inlined {
                    write!(out, ", function_name {}+{}, ", i.label, i.offset)?;
                    write!(out, "inlined_at {} {} {}", i.file, i.line, i.column)?;
                }
                out.write_char('\n')?;
            }
            Stmt::Pragma(pragma) => writeln!(out, "{pragma}")?,
            Stmt::Targets { label, calls, targets, .. } => {
                let word = if *calls { ".calltargets" } else { ".branchtargets" };
                writeln!(out, "{label}: {word} {};", List(targets))?;
            }
            Stmt::Prototype(p) => {
                write!(out, "{}: .callprototype ({}) _ ({})", p.label, List(&p.results), List(&p.params))?;
                p.directives.iter().try_for_each(|d| write!(out, " {d}"))?;
                out.write_str(";\n")?;
            }
        }
    }
    Ok(())
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n("    ", depth));
}

fn write_linkage(out: &mut impl Write, linkage: Option<Linkage>) -> fmt::Result {
    out.write_str(match linkage {
        Some(Linkage::Visible) => ".visible ",
        Some(Linkage::Extern) => ".extern ",
        Some(Linkage::Weak) => ".weak ",
        Some(Linkage::Common) => ".common ",
        None => "",
    })
}

fn write_attributes(out: &mut impl Write, attributes: &[Attribute<'_>]) -> fmt::Result {
    if attributes.is_empty() { Ok(()) } else { write!(out, ".attribute({}) ", List(attributes)) }
}

/// Things with commas between.
struct List<'l, X>(&'l [X]);

impl<X: Display> Display for List<'_, X> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, x) in self.0.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            x.fmt(f)?;
        }
        Ok(())
    }
}

/// Strings in quotes.
struct Quoted<'l, 'a>(&'l [Name<'a>]);

impl Display for Quoted<'_, '_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, x) in self.0.iter().enumerate() {
            write!(f, "{}\"{x}\"", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

impl Display for Pragma<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, ".pragma {};", Quoted(&self.strings))
    }
}

impl Display for Attribute<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        if self.values.is_empty() { Ok(()) } else { write!(f, "({})", List(&self.values)) }
    }
}

impl Display for Directive<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        if !self.strings.is_empty() {
            return write!(f, " {};", Quoted(&self.strings));
        }
        if self.values.is_empty() { Ok(()) } else { write!(f, " {}", List(&self.values)) }
    }
}

impl Display for VarDecl<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_linkage(f, self.linkage.map(|l| l.0))?;
        self.space.fmt(f)?;
        if let Some(bank) = self.bank {
            write!(f, "[{bank}]")?;
        }
        f.write_char(' ')?;
        if let Some((bytes, _)) = self.align {
            write!(f, ".align {bytes} ")?;
        }
        write_attributes(f, &self.attributes)?;
        if let Some(vector) = self.vector {
            write!(f, "{vector} ")?;
        }
        write!(f, "{} ", self.ty)?;
        if let Some(ptr) = self.ptr {
            f.write_str(".ptr ")?;
            if let Some(space) = ptr.space {
                write!(f, "{space} ")?;
            }
            if let Some(bytes) = ptr.align {
                write!(f, ".align {bytes} ")?;
            }
        }
        List(&self.vars).fmt(f)
    }
}

impl Display for Var<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        if let Some((count, _)) = self.count {
            write!(f, "<{count}>")?;
        }
        for dim in &self.dims {
            match dim {
                Some(size) => write!(f, "[{size}]")?,
                None => f.write_str("[]")?,
            }
        }
        match &self.init {
            Some(init) => write!(f, " = {init}"),
            None => Ok(()),
        }
    }
}

impl Display for Init<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Init::List(list, _) => write!(f, "{{{}}}", List(list)),
            Init::Value(expr) => expr.fmt(f),
            Init::Members(list, _) => write!(f, "{{{}}}", List(list)),
        }
    }
}

impl Display for Inst<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(guard) = self.guard {
            write!(f, "@{}{} ", if guard.negated { "!" } else { "" }, guard.name)?;
        }
        self.opcode.fmt(f)?;
        self.qualifiers.iter().try_for_each(|q| q.fmt(f))?;
        if !self.operands.is_empty() {
            write!(f, " {}", List(&self.operands))?;
        }
        f.write_char(';')
    }
}

impl Display for Member<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.name.text, self.value)
    }
}

impl Display for Operand<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            OperandKind::Name(name) => f.write_str(name),
            OperandKind::Member(name, words) => {
                f.write_str(name)?;
                words.iter().try_for_each(|w| write!(f, ".{w}"))
            }
            OperandKind::Expr(expr) => expr.fmt(f),
            OperandKind::Vector(list) => write!(f, "{{{}}}", List(list)),
            OperandKind::Address(address) => address.fmt(f),
            OperandKind::Sink => f.write_char('_'),
            OperandKind::Not(name) => write!(f, "!{name}"),
            OperandKind::Neg(operand) => write!(f, "-{operand}"),
            OperandKind::Pair(a, b) => write!(f, "{a}|{b}"),
            OperandKind::Paren(list) => write!(f, "({})", List(list)),
            OperandKind::Indexed(name, index) => write!(f, "{name}[{index}]"),
        }
    }
}

impl Display for Address<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "[{}", self.base)?;
        if let Some(offset) = &self.offset {
            write!(f, "+{offset}")?;
        }
        self.more.iter().try_for_each(|m| write!(f, ", {m}"))?;
        f.write_str(if self.unified { "].unified" } else { "]" })
    }
}

/// An operand of an operator: in parentheses if it has an operator itself.
struct Inner<'l, 'a>(&'l Expr<'a>);

impl Display for Inner<'_, '_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.kind {
            ExprKind::Unary(..) | ExprKind::Binary(..) | ExprKind::Ternary(..) | ExprKind::Cast { .. } => {
                write!(f, "({})", self.0)
            }
            _ => self.0.fmt(f),
        }
    }
}

impl Display for Expr<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            // A digit above the 64th bit, so that the bits are lost again.
            ExprKind::Int { value, truncated: true, .. } => write!(f, "0x1{value:016X}"),
            ExprKind::Int { value, unsigned, .. } => write!(f, "{value}{}", if *unsigned { "U" } else { "" }),
            ExprKind::Float(value) => write!(f, "0d{:016X}", value.to_bits()),
            ExprKind::Float32(bits) => write!(f, "0f{bits:08X}"),
            ExprKind::Name(name) => f.write_str(name),
            ExprKind::Generic(inner) => write!(f, "generic({inner})"),
            ExprKind::Mask(mask, inner) => write!(f, "0x{mask:X}({inner})"),
            ExprKind::Unary(op, a) => {
                let sign = match op {
                    UnaryOp::Plus => '+',
                    UnaryOp::Minus => '-',
                    UnaryOp::Complement => '~',
                    UnaryOp::Not => '!',
                };
                write!(f, "{sign}{}", Inner(a))
            }
            ExprKind::Binary(op, a, b) => {
                let sign = match op {
                    BinaryOp::Mul => "*",
                    BinaryOp::Div => "/",
                    BinaryOp::Rem => "%",
                    BinaryOp::Add => "+",
                    BinaryOp::Sub => "-",
                    BinaryOp::Shl => "<<",
                    BinaryOp::Shr => ">>",
                    BinaryOp::Lt => "<",
                    BinaryOp::Gt => ">",
                    BinaryOp::Le => "<=",
                    BinaryOp::Ge => ">=",
                    BinaryOp::Eq => "==",
                    BinaryOp::Ne => "!=",
                    BinaryOp::And => "&",
                    BinaryOp::Xor => "^",
                    BinaryOp::Or => "|",
                    BinaryOp::LogicalAnd => "&&",
                    BinaryOp::LogicalOr => "||",
                };
                // Blanks: `10%3` would be `10` and the name `%3`.
                write!(f, "{} {sign} {}", Inner(a), Inner(b))
            }
            ExprKind::Ternary(a, b, c) => write!(f, "{} ? {} : {}", Inner(a), Inner(b), Inner(c)),
            ExprKind::Cast { signed, value } => {
                write!(f, "({}) {}", if *signed { ".s64" } else { ".u64" }, Inner(value))
            }
        }
    }
}
