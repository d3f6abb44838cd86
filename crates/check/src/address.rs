//! Operands in brackets, and the spaces they may lie in.
//!
//! # PTX ISA
//! Addresses as Operands; Arrays as Operands; Parameter State Space.

use handloom_diag::{Code, Diagnostic, Span};
use handloom_ir::num::image::Kind as Object;
use handloom_ir::types::{ScalarType, StateSpace, TypeClass};
use handloom_isa::data_movement::memory::UNIFIED;
use handloom_isa::form::{Is, Role};
use handloom_syntax::ast::{self, OperandKind};

use crate::consts::{Const, eval};
use crate::context::{Told, index};
use crate::forms::Rule;
use crate::module::{AddrBase, LocalKind, Operand, Point, RegId, SymbolKind};
use crate::names::Bind;
use crate::scope::{BodyCx, InstCx, Named, Pairing, n_elements};
use crate::words::component;

const SECTION: &str = "Addresses as Operands";

impl<'a> BodyCx<'_, 'a> {
    /// Checks an address operand.
    pub fn address(&mut self, icx: &mut InstCx<'_, 'a>, p: Pairing<'a, 'a>, guarded: bool) -> Result<Operand, Told> {
        let at = icx.n_addresses;
        icx.n_addresses += 1;
        let space = icx.candidate.spaces.get(at).copied();
        let (base, offset, unified) = match &p.written.kind {
            OperandKind::Address(a) => {
                if let Some(extra) = a.more.first() {
                    let message = format!("`{}` takes one address between the brackets", icx.words());
                    let d = Diagnostic::error(Code::OperandKind, extra.span, message);
                    return Err(self.cx.push(d.section(icx.form().section)));
                }
                let (base, inner) = self.base(icx, &a.base, space)?;
                let outer = self.offset(a.offset.as_ref())?;
                (base, inner.wrapping_add(outer), a.unified)
            }
            OperandKind::Indexed(name, index) if icx.is("ld") || icx.is("st") || icx.is("ldu") => {
                let (base, offset) = self.element(icx, name, index, p.written.span)?;
                (base, offset, false)
            }
            _ => return Err(self.wrong_kind(icx, p, "an address in brackets")),
        };
        self.width(icx, p, base)?;
        if let Is::Handle(kinds) = p.wanted.is {
            self.object(icx, p.written.span, kinds, base, offset)?;
        }
        // A barrier that is told of a copy lies in shared memory, whatever is written.
        let lies_in = if p.wanted.name == "mbar" { Some(StateSpace::Shared) } else { space };
        self.placed(icx, p, base, lies_in, guarded)?;
        self.unified(icx, p.written.span, base, space, unified)?;
        if unified {
            std::sync::Arc::make_mut(&mut icx.used.chosen)[Role::Unified as usize] = Some(&UNIFIED);
        }
        Ok(Operand::Addr { base, offset })
    }

    /// Whether an address may be in a register of such a size.
    fn width(&mut self, icx: &InstCx<'_, 'a>, p: Pairing<'a, 'a>, base: AddrBase) -> Result<(), Told> {
        let AddrBase::Reg(r) = base else { return Ok(()) };
        let ty = self.body.regs[index(r.0)].ty;
        let (fits, wanted) = match p.wanted.is {
            Is::Fixed(cell) => (cell.bits() == ty.bits(), "a 32-bit register as address of tensor memory".to_owned()),
            Is::Only(cell) => (ty == cell, format!("a `.{cell}` register as address of tensor memory")),
            Is::AddressOf(least) => {
                let least = least.min(u32::from(self.cx.address_size));
                (least <= ty.bits(), format!("an address of at least {least} bits"))
            }
            _ => return Ok(()),
        };
        if fits {
            return Ok(());
        }
        let message = format!("`{}` takes {wanted}", icx.words());
        let d = Diagnostic::error(Code::OperandType, p.written.span, message);
        Err(self.cx.push(d.section(icx.form().section)))
    }

    /// What stands for a texture, sampler or surface is the object, or a register of 64 bits with its address.
    fn object(
        &mut self,
        icx: &InstCx<'_, 'a>,
        span: Span,
        kinds: &[Object],
        base: AddrBase,
        offset: i64,
    ) -> Result<(), Told> {
        let is_fit = |o: Option<Object>| o.is_some_and(|o| kinds.contains(&o));
        let fits = match base {
            AddrBase::Symbol(id) => matches!(&self.cx.symbol(id).kind, SymbolKind::Var(v) if is_fit(v.object)),
            AddrBase::Reg(r) => self.body.regs[index(r.0)].ty.bits() == 64,
            // A parameter that holds an object or its address.
            AddrBase::Var(id) => is_param(self.space_of_local(id)) && !self.var_types[index(id.0)].1,
            AddrBase::Absolute => false,
        };
        let message = if !fits {
            let kinds: Vec<String> = kinds.iter().map(|k| format!("`.{}`", k.word())).collect();
            format!("`{}` takes a {} here", icx.words(), kinds.join(" or "))
        } else if offset != 0 {
            format!("`{}` takes an object, to which nothing can be added", icx.words())
        } else {
            return Ok(());
        };
        let d = Diagnostic::error(Code::OperandKind, span, message);
        Err(self.cx.push(d.help("a variable, or a 64-bit register with its address").section(icx.form().section)))
    }

    /// The parts of an operand in brackets with coordinates, to whose address nothing is added: those before the coordinates, and these.
    fn parts(
        &mut self,
        icx: &mut InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
    ) -> Result<(Vec<&'a ast::Operand<'a>>, &'a ast::Operand<'a>), Told> {
        let OperandKind::Address(a) = &p.written.kind else {
            return Err(self.wrong_kind(icx, p, "an address and coordinates in brackets"));
        };
        icx.n_addresses += 1;
        if a.unified {
            let message = format!("`{}` takes no `.unified` address", icx.words());
            let d = Diagnostic::error(Code::Illegal, p.written.span, message);
            return Err(self.cx.push(d.section(icx.form().section)));
        }
        if a.offset.is_some() || matches!(a.base.kind, OperandKind::Expr(_)) {
            let d = Diagnostic::error(Code::OperandKind, p.written.span, "nothing can be added before coordinates");
            return Err(self.cx.push(d.help("a register or a variable").section(icx.form().section)));
        }
        match a.more.split_last() {
            Some((coordinates, more)) => Ok((std::iter::once(&a.base).chain(more).collect(), coordinates)),
            None => Err(self.wrong_kind(icx, p, "an address and coordinates")),
        }
    }

    /// `[map, {x, y}]`: a tensor and a place in it.
    pub fn point(&mut self, icx: &mut InstCx<'_, 'a>, p: Pairing<'a, 'a>) -> Result<Operand, Told> {
        let space = icx.candidate.spaces.get(icx.n_addresses).copied();
        let (before, written) = self.parts(icx, p)?;
        let [map] = before[..] else { return Err(self.wrong_kind(icx, p, "one address before the coordinates")) };
        let at = self.base(icx, map, None)?;
        self.placed(icx, p, at.0, space, false)?;
        if !matches!(written.kind, OperandKind::Vector(_)) {
            return Err(self.wrong_kind(icx, Pairing { written, ..p }, "coordinates in braces"));
        }
        let coordinates = self.coordinates(icx, Pairing { written, ..p })?;
        Ok(Operand::Point(Box::new(Point { at, sampler: None, coordinates })))
    }

    /// `[image, {x, y}]`, of a texture also `[image, sampler, {x, y}]`: an image and a place in it.
    pub fn texel(&mut self, icx: &mut InstCx<'_, 'a>, p: Pairing<'a, 'a>, image: Object) -> Result<Operand, Told> {
        let (before, written) = self.parts(icx, p)?;
        let (of_image, of_sampler) = match before[..] {
            [image] => (image, None),
            [texture, sampler] if image == Object::Texture => (texture, Some(sampler)),
            _ => return Err(self.wrong_kind(icx, p, &format!("a `.{}` and coordinates", image.word()))),
        };
        let at = self.base(icx, of_image, None)?;
        self.object(icx, of_image.span, &[image], at.0, at.1)?;
        let sampler = match of_sampler {
            Some(s) => {
                let found = self.base(icx, s, None)?;
                self.object(icx, s.span, &[Object::Sampler], found.0, found.1)?;
                Some(found)
            }
            None => None,
        };
        let coordinates = self.place_in_image(icx, Pairing { written, ..p })?;
        if icx.used.text(Role::Shape).starts_with(".a") {
            self.layer(icx, written, &coordinates)?;
        }
        Ok(Operand::Point(Box::new(Point { at, sampler, coordinates })))
    }

    /// Coordinates of a texture or surface. As in the first versions of PTX, a vector may have more elements than count.
    fn place_in_image(&mut self, icx: &InstCx<'_, 'a>, p: Pairing<'a, 'a>) -> Result<Operand, Told> {
        let OperandKind::Vector(written) = &p.written.kind else { return self.coordinates(icx, p) };
        let n = usize::from(n_elements(p.wanted, &icx.used));
        let is_longer = written.len() > n && matches!(written.len(), 2 | 4);
        if written.len() != n && !is_longer {
            return self.coordinates(icx, p);
        }
        // After the number of an image of an array come places, of which floats may be written out.
        let is_float = |o: &ast::Operand<'a>| match &o.kind {
            OperandKind::Expr(e) => matches!(eval(e), Ok(Const::Float(_) | Const::Float32(_))),
            _ => false,
        };
        let has_floats = icx.is("tld4") || icx.is("tex") && icx.used.ty(Role::Type2) == ScalarType::F32;
        let n_layers = usize::from(icx.used.text(Role::Shape).starts_with(".a"));
        let (layer, places) = written.split_at(n_layers.min(written.len()));
        if let Some(float) = layer.iter().find(|e| is_float(e)) {
            let message = "the first coordinate of an array is the number of an image, no float";
            let d = Diagnostic::error(Code::LiteralType, float.span, message);
            return Err(self.cx.push(d.section(icx.form().section)));
        }
        let joined = self.go_together(places)?;
        let is_bits = joined.is_some_and(|ty| ty.class() == TypeClass::Bits);
        let is_no_float = |e: &ast::Operand<'a>| joined.is_none() && !is_float(e);
        if has_floats && n_layers > 0 && places.iter().all(is_no_float) {
            let message = "nothing but integers where places of type `.f32` belong";
            let d = Diagnostic::error(Code::LiteralType, p.written.span, message);
            return Err(self.cx.push(d.section(icx.form().section)));
        }
        let mut all = Vec::new();
        for (i, element) in written.iter().enumerate() {
            let takes_float = i >= n_layers && (has_floats || is_bits);
            let rule = if takes_float && is_float(element) { Some(Rule::ordinary(ScalarType::F32)) } else { p.rule };
            let one = std::slice::from_ref(element);
            if let Operand::Vector(mut checked) = self.elements(icx, Pairing { rule, joined, ..p }, one)? {
                all.append(&mut checked);
            }
        }
        all.truncate(n);
        Ok(Operand::Vector(all))
    }

    /// The first coordinate of an array is the number of an image.
    fn layer(&mut self, icx: &InstCx<'_, 'a>, written: &ast::Operand<'a>, all: &Operand) -> Result<(), Told> {
        let Operand::Vector(all) = all else { return Ok(()) };
        let Some(Operand::Reg { reg, .. }) = all.first() else { return Ok(()) };
        let ty = self.body.regs[index(reg.0)].ty;
        if !matches!(ty, ScalarType::F32 | ScalarType::F16x2) {
            return Ok(());
        }
        let message = format!("the first coordinate of an array is the number of an image, no `{ty}`");
        let d = Diagnostic::error(Code::OperandType, written.span, message);
        Err(self.cx.push(d.help("a `.u32`, `.s32` or `.b32` register").section(icx.form().section)))
    }

    fn offset(&mut self, e: Option<&'a ast::Expr<'a>>) -> Result<i64, Told> {
        let Some(e) = e else { return Ok(0) };
        match eval(e) {
            Ok(Const::Int { value, .. }) => Ok(value.cast_signed()),
            Ok(_) => {
                let d = Diagnostic::error(Code::LiteralType, e.span, "the offset of an address must be an integer");
                Err(self.cx.push(d.section(SECTION)))
            }
            Err(d) => Err(self.cx.push(*d)),
        }
    }

    fn base(
        &mut self,
        icx: &InstCx<'_, 'a>,
        o: &'a ast::Operand<'a>,
        space: Option<StateSpace>,
    ) -> Result<(AddrBase, i64), Told> {
        match &o.kind {
            OperandKind::Name(name) => self.named_base(name, o.span).map(|b| (b, 0)),
            OperandKind::Member(name, words) => {
                let word = words.first().copied().unwrap_or("");
                match self.named(name)? {
                    Some(Named::Bind(Bind::Reg(r))) => match component(word).filter(|c| *c < r.n && r.n > 1) {
                        Some(c) => self.address_register(RegId(r.id.0 + u32::from(c)), r.ty, o.span).map(|b| (b, 0)),
                        None => Err(self.no_address(o.span, &format!("`{name}.{word}`"))),
                    },
                    Some(_) => Err(self.no_address(o.span, &format!("`{name}.{word}`"))),
                    None if handloom_isa::sreg::is_family(name) => Err(self.no_address(o.span, "a special register")),
                    None => Err(self.undeclared(name, o.span)),
                }
            }
            OperandKind::Expr(e) => match eval(e) {
                Ok(Const::Int { value, .. }) => {
                    if space != Some(StateSpace::Local) {
                        let message = format!("`{}` cannot access a constant address", icx.words());
                        let d = Diagnostic::error(Code::OperandKind, o.span, message);
                        let d = d.help("only `.local` takes one: move it into a register").section(SECTION);
                        return Err(self.cx.push(d));
                    }
                    Ok((AddrBase::Absolute, value.cast_signed()))
                }
                Ok(Const::Address(a)) if !a.generic && a.mask.is_none() => {
                    self.named_base(a.name, a.span).map(|b| (b, a.addend))
                }
                Ok(_) => Err(self.no_address(o.span, "this constant")),
                Err(d) => Err(self.cx.push(*d)),
            },
            OperandKind::Indexed(name, index) => self.element(icx, name, index, o.span),
            OperandKind::Vector(_)
            | OperandKind::Address(_)
            | OperandKind::Sink
            | OperandKind::Not(_)
            | OperandKind::Neg(_)
            | OperandKind::Pair(..)
            | OperandKind::Paren(_) => Err(self.no_address(o.span, "this")),
        }
    }

    fn no_address(&mut self, span: Span, what: &str) -> Told {
        let d = Diagnostic::error(Code::OperandKind, span, format!("{what} is no address"));
        self.cx.push(d.help("a register, a variable, or one of them `+` a constant").section(SECTION))
    }

    fn named_base(&mut self, name: &'a str, span: Span) -> Result<AddrBase, Told> {
        match self.named(name)? {
            Some(Named::Bind(Bind::Reg(r))) if r.n == 1 => self.address_register(r.id, r.ty, span),
            Some(Named::Bind(Bind::Var(id))) => Ok(AddrBase::Var(id)),
            Some(Named::Symbol(id) | Named::Bind(Bind::Symbol(id))) => match &self.cx.symbol(id).kind {
                SymbolKind::Var(_) => Ok(AddrBase::Symbol(id)),
                SymbolKind::Func(_) | SymbolKind::Alias(_) => {
                    Err(self.no_address(span, &format!("the function `{name}`")))
                }
            },
            Some(_) => Err(self.no_address(span, &format!("`{name}`"))),
            None if handloom_isa::sreg::is_family(name) => {
                Err(self.no_address(span, &format!("the special register `{name}`")))
            }
            None => Err(self.undeclared(name, span)),
        }
    }

    /// Any integer or bit register up to 64 bits holds an address.
    fn address_register(&mut self, id: RegId, ty: ScalarType, span: Span) -> Result<AddrBase, Told> {
        let whole = matches!(ty.class(), TypeClass::Bits | TypeClass::Unsigned | TypeClass::Signed);
        if whole && ty.bits() <= 64 {
            return Ok(AddrBase::Reg(id));
        }
        let d = Diagnostic::error(Code::OperandType, span, format!("a `{ty}` register cannot hold an address"));
        Err(self.cx.push(d.help("a 32-bit or 64-bit integer or bit register").section(SECTION)))
    }

    /// `a[2]`: base and byte offset of an element.
    pub fn element(
        &mut self,
        icx: &InstCx<'_, 'a>,
        name: &'a str,
        at: &'a ast::Operand<'a>,
        span: Span,
    ) -> Result<(AddrBase, i64), Told> {
        let base = self.named_base(name, span)?;
        let OperandKind::Expr(e) = &at.kind else {
            let message = "a variable indexed by a register is not supported yet";
            let d = Diagnostic::unsupported(Code::Unsupported, at.span, icx.words(), message);
            return Err(self.cx.push(d.help("add the index to the address").section("Arrays as Operands")));
        };
        let n = self.offset(Some(e))?;
        let bytes = match base {
            AddrBase::Symbol(id) => match &self.cx.symbol(id).kind {
                SymbolKind::Var(v) => v.ty.bytes(),
                SymbolKind::Func(_) | SymbolKind::Alias(_) => 1,
            },
            AddrBase::Var(_) | AddrBase::Reg(_) | AddrBase::Absolute => {
                let d = Diagnostic::error(Code::OperandKind, span, format!("`{name}` cannot be indexed here"));
                return Err(self.cx.push(d.help("write the byte offset, as `[name+8]`").section("Arrays as Operands")));
            }
        };
        Ok((base, n.wrapping_mul(i64::from(bytes))))
    }

    /// A variable that is named must lie where the instruction looks.
    fn placed(
        &mut self,
        icx: &mut InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        base: AddrBase,
        space: Option<StateSpace>,
        guarded: bool,
    ) -> Result<(), Told> {
        let own = match base {
            AddrBase::Symbol(id) => match &self.cx.symbol(id).kind {
                SymbolKind::Var(v) => v.space,
                SymbolKind::Func(_) | SymbolKind::Alias(_) => return Ok(()),
            },
            AddrBase::Var(id) => self.space_of_local(id),
            AddrBase::Reg(_) | AddrBase::Absolute => {
                if icx.used.text(Role::Space) == ".param::func" {
                    let message = format!("`{}` takes the name of a parameter", icx.words());
                    let d = Diagnostic::error(Code::OperandKind, p.written.span, message);
                    return Err(self.cx.push(d.section("Parameter State Space")));
                }
                return Ok(());
            }
        };
        if icx.used.named_space.is_none() {
            icx.used.named_space = Some(own);
        }
        let Some(wanted) = space else { return Ok(()) };
        if !compatible(wanted, own) {
            icx.is_misplaced = true;
            let at = p.written.span;
            let text = self.cx.text.get(index(at.start)..index(at.end)).unwrap_or("");
            let message = format!(
                "`{text}` lies in `{}`, and `{}` accesses `{}`",
                space_name(own),
                icx.words(),
                space_name(wanted)
            );
            let d = Diagnostic::error(Code::WrongKind, p.written.span, message);
            return Err(self.cx.push(d.section("State Spaces")));
        }
        if let AddrBase::Var(id) = base
            && is_param(own)
        {
            self.param_access(icx, p, self.local(id).kind, own, guarded)?;
        }
        Ok(())
    }

    fn param_access(
        &mut self,
        icx: &InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        kind: LocalKind,
        own: StateSpace,
        guarded: bool,
    ) -> Result<(), Told> {
        let written = icx.used.text(Role::Space);
        if own != StateSpace::ParamEntry && written == ".param::entry" {
            // The assembler takes it.
            let message = format!("`{written}` names a parameter of a function or a call");
            let d = Diagnostic::warning(Code::WForbidden, p.written.span, message).help("write `.param`");
            self.cx.push(d.section("Parameter State Space"));
        }
        let mut refuse = |message: String, help: &str| {
            let d = Diagnostic::error(Code::Illegal, p.written.span, message).help(help);
            Err(self.cx.push(d.section("Parameter State Space")))
        };
        if own == StateSpace::ParamEntry && written == ".param::func" {
            return refuse(format!("`{written}` names a parameter of an entry"), "write `.param`");
        }
        if icx.is("st") && matches!(kind, LocalKind::Param(_)) {
            return refuse(
                "a parameter cannot be written".to_owned(),
                "copy it into a register or a `.local` variable",
            );
        }
        if icx.is("ld") && matches!(kind, LocalKind::Result(_)) {
            return refuse("a result of the function cannot be read".to_owned(), "keep the value in a register too");
        }
        if guarded && kind == LocalKind::CallParam && (icx.is("st") || icx.is("ld")) && is_param_word(written) {
            return refuse(
                format!("`{}` of a call's argument or result cannot be guarded", icx.words()),
                "select the value with `selp`, or branch around the whole call",
            );
        }
        Ok(())
    }

    /// `cvta.space p, var`: the variable lies in the space.
    pub fn in_space_of_cvta(&mut self, icx: &InstCx<'_, 'a>, base: AddrBase, span: Span) -> Result<(), Told> {
        if !icx.is("cvta") {
            return Ok(());
        }
        let wanted = icx.used.space(Role::Space);
        let own = match base {
            AddrBase::Symbol(id) => match &self.cx.symbol(id).kind {
                SymbolKind::Var(v) => v.space,
                SymbolKind::Func(_) | SymbolKind::Alias(_) => {
                    return Err(self.no_address(span, "a function"));
                }
            },
            AddrBase::Var(id) => self.space_of_local(id),
            AddrBase::Reg(_) | AddrBase::Absolute => return Ok(()),
        };
        if compatible(wanted, own) {
            return Ok(());
        }
        let message = format!(
            "the variable lies in `{}`, and `{}` takes one in `{}`",
            space_name(own),
            icx.words(),
            space_name(wanted)
        );
        Err(self.cx.push(Diagnostic::error(Code::WrongKind, span, message).section("State Spaces")))
    }

    /// `[a].unified` is an address of global memory, or a generic one, that is read.
    fn unified(
        &mut self,
        icx: &InstCx<'_, 'a>,
        span: Span,
        base: AddrBase,
        space: Option<StateSpace>,
        written: bool,
    ) -> Result<(), Told> {
        const READERS: &[&str] = &[
            "mbarrier.test_wait",
            "mbarrier.test_wait.parity",
            "ld",
            "ldu",
            "atom",
            "multimem.ld_reduce",
            "wmma.load",
            "createpolicy",
        ];
        let own = match base {
            AddrBase::Var(id) => Some(self.space_of_local(id)),
            AddrBase::Symbol(_) | AddrBase::Reg(_) | AddrBase::Absolute => space,
        };
        let fault = if !written {
            None
        } else if !READERS.iter().any(|op| icx.is(op)) {
            Some(format!("`{}` takes no `.unified` address", icx.words()))
        } else {
            own.filter(|s| !matches!(s, StateSpace::Global | StateSpace::Generic))
                .map(|s| format!("`.unified` on an address in `{}`", space_name(s)))
        };
        if let Some(message) = fault {
            let d = Diagnostic::error(Code::Illegal, span, message);
            let d = d.help("it goes with what is read from `.global` or through a generic address");
            return Err(self.cx.push(d.section(icx.form().section)));
        }
        let AddrBase::Symbol(id) = base else { return Ok(()) };
        let declared = self.cx.unified.contains(&id);
        if written && !declared {
            let message = "`.unified` on a variable that is not declared so";
            let d = Diagnostic::error(Code::Illegal, span, message);
            let d = d.help("declare it with `.attribute(.unified(..))`").section(icx.form().section);
            return Err(self.cx.push(d));
        }
        if declared && !written {
            let d =
                Diagnostic::warning(Code::WForbidden, span, "the variable is `.unified`, and its address here is not");
            self.cx.push(d.section(icx.form().section));
        }
        Ok(())
    }

    /// The label that a name stands for.
    pub fn label_named(&mut self, name: &'a str, span: Span) -> Result<crate::module::LabelId, Told> {
        match self.named(name)? {
            Some(Named::Bind(Bind::Label(id))) => Ok(id),
            Some(found) => {
                let what = self.what(found);
                let d = Diagnostic::error(Code::WrongKind, span, format!("`{name}` is {what}, not a label"));
                Err(self.cx.push(d.section("Labels and Function Names as Operands")))
            }
            None => Err(self.undeclared(name, span)),
        }
    }

    /// The labels of a `.branchtargets` list.
    pub fn target_list(&mut self, icx: &InstCx<'_, 'a>, p: Pairing<'a, 'a>) -> Result<Operand, Told> {
        let OperandKind::Name(name) = p.written.kind else {
            return Err(self.wrong_kind(icx, p, "the name of a `.branchtargets` list"));
        };
        match self.named(name)? {
            Some(Named::Bind(Bind::Targets(targets, false))) => {
                let labels: Result<Vec<_>, Told> = targets.iter().map(|t| self.label_named(t.text, t.span)).collect();
                labels.map(Operand::Labels)
            }
            Some(found) => {
                let what = self.what(found);
                let message = format!("`{name}` is {what}, not a `.branchtargets` list");
                let d = Diagnostic::error(Code::WrongKind, p.written.span, message);
                Err(self.cx.push(d.section("Control Flow Directives: .branchtargets")))
            }
            None => Err(self.undeclared(name, p.written.span)),
        }
    }
}

fn is_param(s: StateSpace) -> bool {
    matches!(s, StateSpace::ParamEntry | StateSpace::ParamFunc)
}

fn is_param_word(word: &str) -> bool {
    word.starts_with(".param")
}

/// Whether an instruction on `wanted` may name a variable in `own`.
fn compatible(wanted: StateSpace, own: StateSpace) -> bool {
    match wanted {
        // Parameters and constants have no generic address that a name alone could give.
        StateSpace::Generic => !is_param(own) && own != StateSpace::Const,
        StateSpace::ParamEntry | StateSpace::ParamFunc => is_param(own),
        StateSpace::Shared | StateSpace::SharedCluster => own == StateSpace::Shared,
        _ => wanted == own,
    }
}

fn space_name(s: StateSpace) -> String {
    match s {
        StateSpace::ParamEntry | StateSpace::ParamFunc => ".param".to_owned(),
        StateSpace::Generic => "generic memory".to_owned(),
        _ => format!(".{}", s.name()),
    }
}
