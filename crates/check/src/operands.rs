//! Operands that are values: registers, literals, vectors, special registers, addresses of symbols.

use handloom_diag::{Code, Diagnostic, Span};
use handloom_ir::types::{ScalarType, StateSpace, TypeClass};
use handloom_isa::form::{Count, Is, Kind, Role};
use handloom_isa::selector::{Select, Selector};
use handloom_isa::{check_element, check_literal};
use handloom_syntax::ast::{self, OperandKind};

use crate::blame::TYPES_SECTION;
use crate::consts::{Const, Mismatch, SymbolAddress, eval, literal_mismatch, to_bits};
use crate::context::{Told, index};
use crate::fit::{Side, is_packed};
use crate::forms::Rule;
use crate::module::{AddrBase, Operand, RegId, SymbolKind};
use crate::names::{Bind, Reg};
use crate::scope::{BodyCx, InstCx, Named, Pairing, n_elements};
use crate::words::component;

impl<'a> BodyCx<'_, 'a> {
    /// Checks one operand.
    pub fn operand(&mut self, icx: &mut InstCx<'_, 'a>, p: Pairing<'a, 'a>, guarded: bool) -> Result<Operand, Told> {
        match p.wanted.kind {
            Kind::Address => self.address(icx, p, guarded),
            Kind::Point => self.point(icx, p),
            Kind::Texel(object) => self.texel(icx, p, object),
            Kind::MovSource if n_elements(p.wanted, &icx.used) > 1 => self.vector(icx, p),
            Kind::Reg | Kind::RegOrSink | Kind::Val | Kind::MovSource => self.value(icx, p),
            Kind::Vector | Kind::Tuple => self.vector(icx, p),
            Kind::VectorPredPair => self.vector_pair(icx, p),
            Kind::Video { select, literal, negatable } => self.video(icx, p, select, literal, negatable),
            Kind::Sink if matches!(p.written.kind, OperandKind::Sink) => Ok(Operand::Sink),
            Kind::Sink => Err(self.wrong_kind(icx, p, "`_`")),
            Kind::Imm => match &p.written.kind {
                OperandKind::Expr(e) => self.constant(icx, p, e),
                _ => Err(self.wrong_kind(icx, p, "a constant")),
            },
            Kind::Pred { negatable } => self.predicate_operand(icx, p, negatable),
            Kind::PredPair | Kind::RegPredPair => self.pair(icx, p),
            Kind::Label => match p.written.kind {
                OperandKind::Name(name) => self.label_named(name, p.written.span).map(Operand::Label),
                _ => Err(self.wrong_kind(icx, p, "a label")),
            },
            Kind::Targets => self.target_list(icx, p),
            // Calls are checked as a whole.
            Kind::Call => Err(Told),
        }
    }

    /// A register or what else the kind allows, alone.
    fn value(&mut self, icx: &InstCx<'_, 'a>, p: Pairing<'a, 'a>) -> Result<Operand, Told> {
        match &p.written.kind {
            OperandKind::Name(name) => self.name(icx, p, name, p.written.span),
            OperandKind::Member(name, words) => self.member(icx, p, name, words),
            // The assembler takes braces around the metadata and the scales of `mma`.
            OperandKind::Vector(elements)
                if elements.len() == 1 && icx.form().opcode.starts_with("mma") && p.wanted.kind == Kind::Reg =>
            {
                self.value(icx, Pairing { written: &elements[0], ..p })
            }
            OperandKind::Expr(e) => match p.wanted.kind {
                Kind::Val | Kind::MovSource | Kind::Vector | Kind::Tuple | Kind::Point | Kind::Texel(_)
                    if p.side == Side::Source =>
                {
                    self.constant(icx, p, e)
                }
                Kind::Reg if p.side == Side::Source && is_sum(e) => self.constant(icx, p, e),
                Kind::Reg if p.side == Side::Source && p.rule.is_some_and(|r| !has_literals(r.ty)) => {
                    let ty = p.rule.map_or(ScalarType::F16, |r| r.ty);
                    Err(self.cx.push(literal_mismatch(Mismatch::NoLiteral, ty, e.span)))
                }
                _ => Err(self.wrong_kind(icx, p, "a register")),
            },
            OperandKind::Sink if p.wanted.kind == Kind::RegOrSink => Ok(Operand::Sink),
            OperandKind::Neg(_) => Err(self.no_sign(icx, p)),
            OperandKind::Indexed(name, at) if p.wanted.kind == Kind::MovSource => self.indexed(icx, p, name, at),
            _ => Err(self.wrong_kind(icx, p, "a register")),
        }
    }

    pub fn name(
        &mut self,
        icx: &InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        name: &'a str,
        span: Span,
    ) -> Result<Operand, Told> {
        match self.named(name)? {
            Some(Named::Bind(Bind::Reg(r))) if r.n == 1 => self.register(icx, p, r.id, r.ty, span),
            Some(Named::Bind(Bind::Reg(r))) => {
                let message = format!("`{name}` is a vector register of {} components", r.n);
                let d = Diagnostic::error(Code::OperandKind, span, message);
                Err(self.cx.push(d.help(format!("name one of them, as `{name}.x`")).section("Vectors")))
            }
            Some(found) => {
                let base = match found {
                    Named::Symbol(id) | Named::Bind(Bind::Symbol(id)) => Some(AddrBase::Symbol(self.cx.resolved(id))),
                    Named::Bind(Bind::Var(id)) => Some(AddrBase::Var(id)),
                    Named::Bind(_) => None,
                };
                match base {
                    Some(base)
                        if p.wanted.kind == Kind::MovSource && takes_symbols(icx, p, self.space_of_base(base)) =>
                    {
                        self.address_of(icx, p, base, 0, span)
                    }
                    _ => Err(self.no_value(icx, found, name, span)),
                }
            }
            None => self.special(icx, p, name, span),
        }
    }

    /// `v.x`, `%tid.x`.
    pub fn member(
        &mut self,
        icx: &InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        name: &'a str,
        words: &[&'a str],
    ) -> Result<Operand, Told> {
        let span = p.written.span;
        let word = words.first().copied().unwrap_or("");
        match self.named(name)? {
            Some(Named::Bind(Bind::Reg(r))) => {
                match component(word).filter(|c| *c < r.n && r.n > 1 && words.len() == 1) {
                    Some(c) => self.register(icx, p, RegId(r.id.0 + u32::from(c)), r.ty, span),
                    None if r.n == 1 && Selector::parse(word).is_some() => {
                        let message = format!("`{}` takes no selector, here `.{word}`", icx.words());
                        let d = Diagnostic::error(Code::OperandKind, span, message);
                        Err(self.cx.push(d.section(icx.form().section)))
                    }
                    None => {
                        let message = format!("`{name}` has no component `.{word}`");
                        Err(self.cx.push(Diagnostic::error(Code::OperandKind, span, message).section("Vectors")))
                    }
                }
            }
            Some(found) => Err(self.no_value(icx, found, name, span)),
            None => self.special(icx, p, name, span),
        }
    }

    /// A register of a declared type against the rule of its operand.
    fn register(
        &mut self,
        icx: &InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        id: RegId,
        ty: ScalarType,
        span: Span,
    ) -> Result<Operand, Told> {
        let Some(rule) = address_rule(p, ty) else {
            return Ok(Operand::Reg { reg: id, ty, fit: crate::module::Fit::Same, negated: false });
        };
        match rule.fits(ty, p.side) {
            None if let Some(fit) = p.joined.and_then(|joined| rule.fits(joined, p.side)) => {
                let message = format!("a `{ty}` register as an element of type `{}`", rule.ty);
                self.cx.push(Diagnostic::warning(Code::WForbidden, span, message).section(TYPES_SECTION));
                Ok(Operand::Reg { reg: id, ty: rule.ty, fit, negated: false })
            }
            Some(fit) => Ok(Operand::Reg { reg: id, ty: rule.ty, fit, negated: false }),
            None if is_lax_element(icx, p, rule, ty) => {
                let message = format!("a `{ty}` register as an element of type `{}`", rule.ty);
                self.cx.push(Diagnostic::warning(Code::WForbidden, span, message).section(TYPES_SECTION));
                Ok(Operand::Reg { reg: id, ty: rule.ty, fit: crate::module::Fit::Same, negated: false })
            }
            None => Err(self.wrong_type(icx, p, rule, ty, span)),
        }
    }

    /// A constant expression as an operand; also `sym+4` of `mov`.
    pub fn constant(
        &mut self,
        icx: &InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        e: &'a ast::Expr<'a>,
    ) -> Result<Operand, Told> {
        let value = match eval(e) {
            Ok(v) => v,
            Err(d) => return Err(self.cx.push(*d)),
        };
        if let Const::Address(a) = value {
            return self.constant_address(icx, p, a);
        }
        // A literal of an operand without a rule of its own is a word (labels and calls never come here).
        let ty = p.rule.map_or(ScalarType::B32, |r| r.ty);
        // The assembler takes a decimal float for an element of 32 bits, though not for a whole `.b32`.
        let is_element = p.wanted.kind == Kind::Vector && icx.is("mov");
        let value = match value {
            Const::Float(v) if is_element && ty == ScalarType::B32 => Const::Float32((v as f32).to_bits()),
            other => other,
        };
        // Of `.rna` the assembler makes a move of bits, which takes no other float.
        let bits = match to_bits(value, ty) {
            Ok(_) if matches!(value, Const::Float(_)) && icx.is("cvt") && icx.used.text(Role::Round) == ".rna" => {
                let d = Diagnostic::error(Code::LiteralType, e.span, "`.rna` takes a literal only by its bits");
                return Err(self.cx.push(d.help("write `0f3F800000` for one").section("Constants")));
            }
            Ok(bits) => bits,
            Err(m) => return Err(self.cx.push(literal_mismatch(m, ty, e.span))),
        };
        if bits.cut || self.turns_negative(value, ty, e) {
            self.warn_cut(bits.cut, bits.low, ty, e.span);
        }
        let whole = if let Const::Int { value, .. } = value { value } else { bits.low };
        if let Err(reason) = check_literal(icx.form(), &icx.used, p.wanted, bits.low, whole) {
            self.reason(icx, reason, Some(e.span))?;
        }
        Ok(Operand::Imm { bits: bits.low, high: bits.high, ty })
    }

    /// A decimal number that a signed type reads as a negative one. Written in another base, the bits are meant.
    fn turns_negative(&self, value: Const<'_>, ty: ScalarType, e: &ast::Expr<'_>) -> bool {
        let Const::Int { value, .. } = value else { return false };
        if !ty.is_signed() || ty.bits() >= 64 || value >> (ty.bits() - 1) != 1 {
            return false;
        }
        let text = self.cx.text.get(index(e.span.start)..index(e.span.end)).unwrap_or("");
        text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0')
    }

    fn warn_cut(&mut self, cut: bool, low: u64, ty: ScalarType, span: Span) {
        let message = if cut {
            format!("the literal does not fit `{ty}` and is cut to {low:#x}")
        } else {
            format!("the literal is too large for `{ty}`, which reads it as a negative number")
        };
        self.cx.push(Diagnostic::warning(Code::WLiteral, span, message).section("Integer Constants"));
    }

    fn constant_address(
        &mut self,
        icx: &InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        a: SymbolAddress<'a>,
    ) -> Result<Operand, Told> {
        if a.generic || a.mask.is_some() {
            let message = "`generic()` and masks stand in initialisers only";
            let d = Diagnostic::error(Code::OperandKind, a.span, message);
            return Err(self.cx.push(d.help("use `cvta`").section("Initializers")));
        }
        let base = match self.named(a.name)? {
            Some(Named::Symbol(id) | Named::Bind(Bind::Symbol(id))) => AddrBase::Symbol(self.cx.resolved(id)),
            Some(Named::Bind(Bind::Var(id))) => AddrBase::Var(id),
            Some(Named::Bind(Bind::Reg(r))) if r.n == 1 => return self.register_sum(icx, p, r, a),
            Some(found) => {
                let what = self.what(found);
                let message = format!("`{}` is {what}: nothing can be added to it here", a.name);
                return Err(self.cx.push(Diagnostic::error(Code::OperandKind, a.span, message)));
            }
            None if handloom_isa::sreg::is_family(a.name) => {
                let message = format!("nothing can be added to the special register `{}`", a.name);
                let d = Diagnostic::error(Code::OperandKind, a.span, message);
                return Err(self.cx.push(d.help("read it with `mov` first").section("Special Registers")));
            }
            None => return Err(self.undeclared(a.name, a.span)),
        };
        if !takes_sums(icx, p) || !takes_symbols(icx, p, self.space_of_base(base)) {
            return Err(self.no_sum(a.span));
        }
        self.address_of(icx, p, base, a.addend, a.span)
    }

    /// `r+4` as a source: the bits of a register and a constant, added at the width of the instruction type.
    ///
    /// The manual's grammar has it for addresses only; the assembler takes it for any source and adds. It takes it for registers of float types
    /// and predicates too, where no sum comes out, and for registers of another size.
    fn register_sum(
        &mut self,
        icx: &InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        r: Reg,
        a: SymbolAddress<'a>,
    ) -> Result<Operand, Told> {
        if !takes_sums(icx, p) || p.rule.is_none() {
            return Err(self.no_sum(a.span));
        }
        let Operand::Reg { ty, .. } = self.register(icx, p, r.id, r.ty, a.span)? else {
            return Err(self.no_sum(a.span));
        };
        let is_integer = matches!(r.ty.class(), TypeClass::Bits | TypeClass::Unsigned | TypeClass::Signed);
        if !is_integer || r.ty.bits() > 64 {
            let message = format!("a constant cannot be added to a `{}` register", r.ty);
            let d = Diagnostic::error(Code::OperandType, a.span, message);
            return Err(self.cx.push(d.help("an integer or bit register of at most 64 bits").section(TYPES_SECTION)));
        }
        Ok(Operand::AddrOf { base: AddrBase::Reg(r.id), offset: a.addend, ty })
    }

    /// The space that a variable lies in.
    fn space_of_base(&self, base: AddrBase) -> Option<StateSpace> {
        match base {
            AddrBase::Symbol(id) => match &self.cx.symbol(id).kind {
                SymbolKind::Var(v) => Some(v.space),
                SymbolKind::Func(_) | SymbolKind::Alias(_) => None,
            },
            AddrBase::Var(id) => Some(self.space_of_local(id)),
            AddrBase::Reg(_) | AddrBase::Absolute => None,
        }
    }

    /// The address of a symbol as a value.
    fn address_of(
        &mut self,
        icx: &InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        base: AddrBase,
        offset: i64,
        span: Span,
    ) -> Result<Operand, Told> {
        let ty = p.rule.map_or(ScalarType::B64, |r| r.ty);
        let whole_number = matches!(ty.class(), TypeClass::Bits | TypeClass::Unsigned | TypeClass::Signed);
        if !whole_number || !matches!(ty.bits(), 16 | 32 | 64) {
            let message = format!("an address does not fit the type of `{}`", icx.words());
            let d = Diagnostic::error(Code::OperandType, span, message);
            return Err(self.cx.push(d.help("a 32-bit or 64-bit integer or bit type").section(icx.form().section)));
        }
        if ty.bits() == 16 {
            let message = format!("`{}` keeps the lowest 16 bits of an address", icx.words());
            let d = Diagnostic::warning(Code::WLiteral, span, message);
            self.cx.push(d.help("a 32-bit or 64-bit type").section(icx.form().section));
        }
        self.in_space_of_cvta(icx, base, span)?;
        if let AddrBase::Symbol(id) = base
            && offset != 0
            && !matches!(self.cx.symbol(id).kind, SymbolKind::Var(_))
        {
            let d = Diagnostic::error(Code::OperandKind, span, "nothing can be added to the address of a function");
            return Err(self.cx.push(d.section("Labels and Function Names as Operands")));
        }
        Ok(Operand::AddrOf { base, offset, ty })
    }

    /// `mov.u64 d, a[2]`: the address of an element.
    fn indexed(
        &mut self,
        icx: &InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        name: &'a str,
        at: &'a ast::Operand<'a>,
    ) -> Result<Operand, Told> {
        let (base, offset) = self.element(icx, name, at, p.written.span)?;
        self.address_of(icx, p, base, offset, p.written.span)
    }

    /// The predicate register that a name stands for.
    pub fn predicate(&mut self, name: &'a str, span: Span) -> Result<RegId, Told> {
        match self.named(name)? {
            Some(Named::Bind(Bind::Reg(r))) if r.ty == ScalarType::Pred => Ok(r.id),
            Some(Named::Bind(Bind::Reg(r))) => {
                let message = format!("`{name}` is a `{}` register, not a predicate", r.ty);
                let d = Diagnostic::error(Code::OperandType, span, message);
                Err(self.cx.push(d.help("a `.pred` register").section("Predicated Execution")))
            }
            Some(other) => {
                let what = self.what(other);
                let message = format!("`{name}` is {what}, not a predicate register");
                let d = Diagnostic::error(Code::WrongKind, span, message);
                Err(self.cx.push(d.section("Predicated Execution")))
            }
            None => Err(self.undeclared(name, span)),
        }
    }

    /// `{a, b}`, or one register where one is enough.
    fn vector(&mut self, icx: &InstCx<'_, 'a>, p: Pairing<'a, 'a>) -> Result<Operand, Told> {
        let n = n_elements(p.wanted, &icx.used);
        match &p.written.kind {
            OperandKind::Vector(_) if n == 1 && matches!(p.wanted.count, Count::Bare(_)) => {
                Err(self.wrong_kind(icx, p, "a register"))
            }
            OperandKind::Vector(elements) => {
                if elements.len() != usize::from(n) {
                    let s = if n == 1 { "" } else { "s" };
                    let message = format!(
                        "`{}` takes {n} register{s} as `{}`, not {}",
                        icx.words(),
                        p.wanted.name,
                        elements.len()
                    );
                    let d = Diagnostic::error(Code::OperandCount, p.written.span, message);
                    return Err(self.cx.push(d.section(icx.form().section)));
                }
                let vector = self.elements(icx, p, elements)?;
                if !p.wanted.count.is_computed() {
                    self.go_together(elements)?;
                }
                if let Operand::Vector(list) = &vector {
                    for (i, (element, written)) in list.iter().zip(elements).enumerate() {
                        if let Operand::Imm { bits, .. } = element
                            && let Err(reason) = check_element(&icx.used, p.wanted, i, *bits)
                        {
                            self.reason(icx, reason, Some(written.span))?;
                        }
                    }
                }
                self.says_its_type(icx, p, elements, &vector)?;
                self.warn_sinks(icx, p, n, &vector);
                Ok(vector)
            }
            OperandKind::Name(name) if n > 1 => match self.named(name)? {
                Some(Named::Bind(Bind::Reg(r))) if r.n == n => self.whole_vector(icx, p, r),
                Some(_) => Err(self.wrong_kind(icx, p, &format!("a vector of {n} registers"))),
                None => self.special_vector(icx, p, name, n),
            },
            // Whether the texel is resident.
            OperandKind::Pair(texel, resident) if (icx.is("tex") || icx.is("tld4")) && p.side == Side::Destination => {
                let texel = self.vector(icx, Pairing { written: texel, ..p });
                let pred = Some(Rule::ordinary(ScalarType::Pred));
                self.half(icx, Pairing { written: resident, rule: pred, ..p })?;
                texel
            }
            OperandKind::Sink if n > 1 && icx.is("atom") && p.side == Side::Destination => {
                Ok(Operand::Vector(vec![Operand::Sink; usize::from(n)]))
            }
            _ if p.wanted.count.is_computed() && p.wanted.kind == Kind::Vector => {
                Err(self.wrong_kind(icx, p, "registers in braces"))
            }
            _ if n > 1 => Err(self.wrong_kind(icx, p, &format!("a vector of {n} registers"))),
            _ => self.value(icx, p),
        }
    }

    /// The assembler finds the type of a vector by its elements: it wants a register among them where they are bits of a matrix, and something at all
    /// where they are results.
    fn says_its_type(
        &mut self,
        icx: &InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        written: &[ast::Operand<'a>],
        vector: &Operand,
    ) -> Result<(), Told> {
        let Operand::Vector(list) = vector else { return Ok(()) };
        let is_integer =
            |e: &ast::Operand<'a>| matches!(&e.kind, OperandKind::Expr(e) if matches!(eval(e), Ok(Const::Int { .. })));
        let is_double =
            |e: &ast::Operand<'a>| matches!(&e.kind, OperandKind::Expr(e) if matches!(eval(e), Ok(Const::Float(_))));
        let is_matrix = p.wanted.kind == Kind::Vector && p.wanted.count.is_computed();
        let message = if list.iter().all(|e| matches!(e, Operand::Sink)) {
            "a vector of nothing but sinks"
        } else if is_matrix && p.rule.is_some_and(|r| r.ty == ScalarType::F32) && written.iter().all(is_double) {
            "a vector of nothing but floats of 64 bits where `.f32` is wanted"
        } else if is_matrix
            && p.rule.is_some_and(|r| matches!(r.ty, ScalarType::B32 | ScalarType::U32))
            && written.iter().all(is_integer)
        {
            "a vector of nothing but integers where registers hold a matrix"
        } else if p.rule.is_some_and(|r| r.ty == ScalarType::B32)
            && list.iter().all(|e| matches!(e, Operand::Imm { .. }))
            && written.last().is_some_and(is_double)
        {
            "a vector of nothing but constants that ends in a float of 64 bits"
        } else {
            return Ok(());
        };
        let d = Diagnostic::error(Code::OperandKind, p.written.span, message);
        Err(self.cx.push(d.section(icx.form().section)))
    }

    /// `{a, b}`, or `a` where one is enough, against the rule of its operand.
    pub fn coordinates(&mut self, icx: &InstCx<'_, 'a>, p: Pairing<'a, 'a>) -> Result<Operand, Told> {
        match &p.written.kind {
            OperandKind::Vector(_) => self.vector(icx, p),
            OperandKind::Expr(e) if n_elements(p.wanted, &icx.used) == 1 && !is_sum(e) => self.constant(icx, p, e),
            _ => self.vector(icx, p),
        }
    }

    fn whole_vector(&mut self, icx: &InstCx<'_, 'a>, p: Pairing<'a, 'a>, r: Reg) -> Result<Operand, Told> {
        let component = |c: u8| RegId(r.id.0 + u32::from(c));
        let all = (0..r.n).map(|c| self.register(icx, p, component(c), r.ty, p.written.span));
        all.collect::<Result<Vec<_>, Told>>().map(Operand::Vector)
    }

    pub fn elements(
        &mut self,
        icx: &InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        elements: &'a [ast::Operand<'a>],
    ) -> Result<Operand, Told> {
        let mut out = Vec::with_capacity(elements.len());
        let mut failed = false;
        let is_wide = p.rule.map_or(0, |r| r.ty.bits()) as usize * elements.len() == 256;
        let p = Pairing { joined: p.joined.or_else(|| self.join_all(elements).unwrap_or(None)), ..p };
        for e in elements {
            let element = match (&e.kind, p.side) {
                (OperandKind::Sink, Side::Destination) if !matches!(p.wanted.count, Count::Every(_)) => {
                    Ok(Operand::Sink)
                }
                // What is not written by a store of 256 bits.
                (OperandKind::Sink, Side::Source) if icx.is("st") && is_wide => Ok(Operand::Sink),
                (OperandKind::Vector(_), _) => Err(self.wrong_kind(icx, Pairing { written: e, ..p }, "a register")),
                (OperandKind::Expr(sum), _) if is_sum(sum) => Err(self.no_sum(e.span)),
                // An address is no element, not even where it may stand alone.
                (OperandKind::Name(name), _) if p.wanted.kind == Kind::MovSource => match self.named(name)? {
                    Some(found) if !matches!(found, Named::Bind(Bind::Reg(_))) => {
                        Err(self.no_value(icx, found, name, e.span))
                    }
                    _ => self.value(icx, Pairing { written: e, ..p }),
                },
                _ => self.value(icx, Pairing { written: e, ..p }),
            };
            match element {
                Ok(o) => out.push(o),
                Err(Told) => failed = true,
            }
        }
        if failed { Err(Told) } else { Ok(Operand::Vector(out)) }
    }

    /// The type that the registers of a vector have together, if there are any: the assembler asks whether the vector fits, not whether each register
    /// does. Where two do not go together, the place of the second and both types.
    fn join_all(
        &mut self,
        elements: &[ast::Operand<'a>],
    ) -> Result<Option<ScalarType>, (Span, ScalarType, ScalarType)> {
        let mut types: Vec<ScalarType> = Vec::new();
        for e in elements {
            let Some(ty) = self.type_of_register(e) else { continue };
            if let Some(before) = types.iter().find(|before| join(**before, ty).is_none()) {
                return Err((e.span, ty, *before));
            }
            if !types.contains(&ty) {
                types.push(ty);
            }
        }
        Ok(types.into_iter().reduce(|a, b| join(a, b).unwrap_or(a)))
    }

    /// The declared type, if an operand is a register.
    fn type_of_register(&mut self, e: &ast::Operand<'a>) -> Option<ScalarType> {
        let (OperandKind::Name(name) | OperandKind::Member(name, _)) = &e.kind else { return None };
        match self.named(name) {
            Ok(Some(Named::Bind(Bind::Reg(r)))) => Some(r.ty),
            _ => None,
        }
    }

    /// The registers of one vector have one size and kinds that go together, and its literals are of the kind of its registers: integers beside
    /// integers, floats beside those of 32 and 64 bits, either beside bits.
    pub fn go_together(&mut self, written: &[ast::Operand<'a>]) -> Result<Option<ScalarType>, Told> {
        let joined = match self.join_all(written) {
            Ok(joined) => joined,
            Err((span, ty, before)) => {
                let message = format!("a `{ty}` register beside a `{before}` one in the same vector");
                let d = Diagnostic::error(Code::OperandType, span, message);
                return Err(self.cx.push(d.help("registers of one size and kind").section("Vectors as Operands")));
            }
        };
        let (mut integers, mut floats) = match joined.map(|ty| (ty, ty.class())) {
            Some((_, TypeClass::Unsigned | TypeClass::Signed)) => (true, false),
            Some((ty, TypeClass::Float)) => (false, matches!(ty, ScalarType::F32 | ScalarType::F64)),
            Some((_, TypeClass::Bits | TypeClass::Pred)) | None => (true, true),
        };
        for e in written {
            let OperandKind::Expr(value) = &e.kind else { continue };
            let (fits, kind) = match eval(value) {
                Ok(Const::Int { .. }) => (integers, "an integer"),
                Ok(Const::Float(_) | Const::Float32(_)) => (floats, "a float"),
                _ => continue,
            };
            if !fits {
                let message = format!("{kind} beside what is of another kind in the same vector");
                let d = Diagnostic::error(Code::LiteralType, e.span, message);
                return Err(self.cx.push(d.help("move it into a register first").section("Vectors as Operands")));
            }
            if joined.is_none() {
                (integers, floats) = (kind == "an integer", kind == "a float");
            }
        }
        Ok(joined)
    }

    /// The manual has `_` in a vector of `ld` for 256-bit loads only; the assembler takes it in any.
    fn warn_sinks(&mut self, icx: &InstCx<'_, 'a>, p: Pairing<'a, 'a>, n: u8, vector: &Operand) {
        let Operand::Vector(elements) = vector else { return };
        let bits = p.rule.map_or(0, |r| r.ty.bits()) * u32::from(n);
        if icx.is("ld") && bits != 256 && elements.iter().any(|e| matches!(e, Operand::Sink)) {
            let message = "`_` in a vector that is not 256 bits wide";
            let d = Diagnostic::warning(Code::WForbidden, p.written.span, message);
            self.cx.push(d.section(icx.form().section));
        }
    }

    fn predicate_operand(
        &mut self,
        icx: &InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        negatable: bool,
    ) -> Result<Operand, Told> {
        let register =
            |reg, negated| Operand::Reg { reg, ty: ScalarType::Pred, fit: crate::module::Fit::Same, negated };
        match &p.written.kind {
            OperandKind::Name(name) => self.predicate(name, p.written.span).map(|r| register(r, false)),
            OperandKind::Not(name) if negatable => self.predicate(name.text, name.span).map(|r| register(r, true)),
            OperandKind::Expr(e) if p.side == Side::Source && !matches!(p.wanted.is, Is::Only(_)) => {
                self.constant(icx, Pairing { rule: Some(Rule::ordinary(ScalarType::Pred)), ..p }, e)
            }
            _ => Err(self.wrong_kind(icx, p, "a predicate register")),
        }
    }

    /// `p|q` and `d|p`, or the first half alone.
    fn pair(&mut self, icx: &InstCx<'_, 'a>, p: Pairing<'a, 'a>) -> Result<Operand, Told> {
        let first_rule = match p.wanted.kind {
            Kind::PredPair => Some(Rule::ordinary(ScalarType::Pred)),
            _ => p.rule,
        };
        let OperandKind::Pair(first, second) = &p.written.kind else {
            if n_elements(p.wanted, &icx.used) == 2 {
                return Err(self.wrong_kind(icx, p, "a register and a predicate with `|` between them"));
            }
            if matches!(p.written.kind, OperandKind::Sink) && icx.is("shfl") {
                return Err(self.wrong_kind(icx, p, "a register"));
            }
            return self.half(icx, Pairing { rule: first_rule, ..p });
        };
        // As the assembler has it: the value of `shfl` and the predicate of `lop3` must be wanted.
        let no_sink = (icx.is("shfl") && matches!(first.kind, OperandKind::Sink))
            || (icx.is("lop3") && matches!(second.kind, OperandKind::Sink));
        if no_sink {
            return Err(self.wrong_kind(icx, p, "two registers"));
        }
        let a = self.half(icx, Pairing { rule: first_rule, written: first, ..p });
        let pred = Some(Rule::ordinary(ScalarType::Pred));
        let b = self.half(icx, Pairing { rule: pred, written: second, ..p });
        Ok(Operand::Vector(vec![a?, b?]))
    }

    /// A vector, with a predicate after it if one is written.
    fn vector_pair(&mut self, icx: &InstCx<'_, 'a>, p: Pairing<'a, 'a>) -> Result<Operand, Told> {
        let OperandKind::Pair(first, second) = &p.written.kind else { return self.vector(icx, p) };
        let vector = self.vector(icx, Pairing { written: first, ..p });
        let pred = Some(Rule::ordinary(ScalarType::Pred));
        let pred = self.half(icx, Pairing { rule: pred, written: second, ..p })?;
        let Operand::Vector(mut all) = vector? else { return Err(self.wrong_kind(icx, p, "a vector and a predicate")) };
        all.push(pred);
        Ok(Operand::Vector(all))
    }

    fn half(&mut self, icx: &InstCx<'_, 'a>, p: Pairing<'a, 'a>) -> Result<Operand, Told> {
        match &p.written.kind {
            OperandKind::Sink => Ok(Operand::Sink),
            OperandKind::Name(name) => self.name(icx, p, name, p.written.span),
            OperandKind::Member(name, words) => self.member(icx, p, name, words),
            _ => Err(self.wrong_kind(icx, p, "a register")),
        }
    }
}

/// The rule of an operand for a register of a type: an address may be held in either width.
fn address_rule(p: Pairing<'_, '_>, ty: ScalarType) -> Option<Rule> {
    match p.rule {
        Some(_) if matches!(p.wanted.is, Is::Address | Is::AddressOf(_)) && ty.bits() == 32 => {
            Some(Rule { own: true, ..Rule::ordinary(ScalarType::U32) })
        }
        rule => rule,
    }
}

/// Whether an operand may be a register or a symbol and a constant.
fn takes_sums(icx: &InstCx<'_, '_>, p: Pairing<'_, '_>) -> bool {
    let kind = match p.wanted.kind {
        Kind::Reg | Kind::Val | Kind::MovSource | Kind::Vector => true,
        Kind::Video { select, literal, .. } => literal && select == Select::Nothing,
        _ => false,
    };
    kind && p.side == Side::Source && !icx.is("stackrestore")
}

/// Whether an operand that takes sums may be the address of a variable of some space: packed integers, operands of exactly one type, sizes and
/// descriptions are not made of addresses.
fn takes_symbols(icx: &InstCx<'_, '_>, p: Pairing<'_, '_>, own: Option<StateSpace>) -> bool {
    let Some(ty) = p.rule.map(|r| r.ty) else { return false };
    let opcode = icx.form().opcode;
    let begins = |all: &[&str]| all.iter().any(|o| opcode.starts_with(o));
    let is_elsewhere = begins(&["mapa", "getctarank"]) && own != Some(StateSpace::Shared);
    let is_other = matches!(p.wanted.is, Is::Only(_) | Is::AddressOf(_) | Is::Descriptor(_)) || is_packed(ty);
    !(is_elsewhere || is_other)
}

/// Whether an expression is a name and something added to it.
pub(crate) fn is_sum(e: &ast::Expr<'_>) -> bool {
    matches!(eval(e), Ok(Const::Address(_)))
}

/// The bit type of the size of a type.
const fn bits_like(t: ScalarType) -> ScalarType {
    match t.bits() {
        8 => ScalarType::B8,
        16 => ScalarType::B16,
        32 => ScalarType::B32,
        64 => ScalarType::B64,
        _ => ScalarType::B128,
    }
}

/// The type of two registers in one vector, if they go together.
fn join(a: ScalarType, b: ScalarType) -> Option<ScalarType> {
    use TypeClass::{Bits, Signed, Unsigned};
    if a.bits() != b.bits() {
        return None;
    }
    match (a.class(), b.class()) {
        (Bits, _) => Some(a),
        (_, Bits) => Some(b),
        (Unsigned | Signed, Unsigned | Signed) => Some(if a == b { a } else { bits_like(a) }),
        _ => (a == b).then_some(a),
    }
}

/// The assembler compares floats with integers in vectors by their size alone.
fn is_lax_element(icx: &InstCx<'_, '_>, p: Pairing<'_, '_>, rule: Rule, ty: ScalarType) -> bool {
    n_elements(p.wanted, &icx.used) > 1
        && matches!(p.wanted.kind, Kind::Vector | Kind::MovSource)
        && !p.wanted.count.is_computed()
        && matches!(rule.ty, ScalarType::F16 | ScalarType::F32 | ScalarType::F64)
        && matches!(ty.class(), TypeClass::Unsigned | TypeClass::Signed)
        && rule.ty.bits() == ty.bits()
        && !rule.own
}

/// Whether literals of a type can be written.
fn has_literals(ty: ScalarType) -> bool {
    ty.class() != TypeClass::Float || matches!(ty, ScalarType::F32 | ScalarType::F64)
}
