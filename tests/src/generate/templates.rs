//! Legal instructions, drawn from the records: which words, and which registers they take.
//!
//! A template is proposed from a record and kept if `check` accepts it, so no rule of the records is written here a second time.

use handloom_check::check_text;
use handloom_diag::{FileId, Severity};
use handloom_ir::types::{ScalarType, TypeClass};
use handloom_isa::form::{Count, Form, FuncKind, Is, Kind, N_SLOTS, Operand, Semantics, Use};
use handloom_isa::selector::{Mark, Select, Selector};
use handloom_isa::sreg::{SPECIAL_REGISTERS, Source, SpecialRegister};
use handloom_isa::target::{Target, Version};

use crate::rng::Rng;

/// A class of registers. Bit registers take floats too, so there are only these.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Class {
    /// `.pred`.
    P,
    /// `.b16`.
    H,
    /// `.b32`.
    R,
    /// `.b64`.
    L,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 4] = [Class::P, Class::H, Class::R, Class::L];

    /// Letter of its registers' names.
    pub fn letter(self) -> char {
        match self {
            Class::P => 'p',
            Class::H => 'h',
            Class::R => 'r',
            Class::L => 'l',
        }
    }

    /// Type of its registers.
    pub fn ty(self) -> &'static str {
        match self {
            Class::P => "pred",
            Class::H => "b16",
            Class::R => "b32",
            Class::L => "b64",
        }
    }
}

/// A literal that an operand may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Literal {
    /// An integer of so many bits.
    Int(u32),
    /// `0f` and eight digits.
    F32,
    /// `0d` and sixteen digits.
    F64,
    /// A byte that must be a literal.
    Byte,
}

/// An operand of a template.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its registers; of no use for [`Literal::Byte`].
    pub class: Class,
    /// The literal that may stand there instead.
    pub literal: Option<Literal>,
    /// Whether `!` may stand before it.
    pub negatable: bool,
    /// A second destination behind `|`.
    pub second: Option<Class>,
    /// `-` before the register, or nothing.
    pub sign: &'static str,
    /// A selector behind the register, or nothing.
    pub selector: &'static str,
}

/// An instruction without its registers.
#[derive(Clone, Debug)]
pub struct Template {
    /// Opcode and qualifiers.
    pub words: String,
    /// Destinations.
    pub dst: Vec<Place>,
    /// Sources.
    pub src: Vec<Place>,
}

/// Opcodes whose meaning depends on what ran before, or that compute nothing a test can compare.
const LEFT_OUT: &[&str] =
    &["add.cc", "addc", "sub.cc", "subc", "mad.cc", "madc", "createpolicy", "cvta", "cvta.to", "isspacep"];

/// How often a record is asked for a combination.
const TRIES: usize = 40;

/// Templates by record, for modules of one version and target.
pub fn templates(version: Version, target: Target, header: &str, seed: u64) -> Vec<Vec<Template>> {
    let mut rng = Rng::new(seed);
    let mut out = Vec::new();
    for form in handloom_isa::forms() {
        let is_value = matches!(form.semantics, Semantics::Build(_)) && !form.dst.is_empty();
        if !is_value || LEFT_OUT.iter().any(|o| form.opcode == *o || form.opcode.starts_with(&format!("{o}."))) {
            continue;
        }
        let mut found: Vec<Template> = Vec::new();
        for _ in 0..TRIES {
            let Some(t) = propose(form, version, target, &mut rng) else { continue };
            if found.iter().all(|f| f.words != t.words) && accepted(&t, header) {
                found.push(with_literals(t, header));
            }
        }
        if !found.is_empty() {
            out.push(found);
        }
    }
    out
}

/// A random choice in each group; `None` if the record refuses it or has operands of other kinds.
fn propose(form: &'static Form, version: Version, target: Target, rng: &mut Rng) -> Option<Template> {
    let mut chosen = [None; N_SLOTS];
    for group in form.qualifiers {
        if group.required || rng.one_in(3) {
            chosen[group.role as usize] = Some(rng.pick(group.choices));
        }
    }
    let optional = |o: &&Operand| !o.optional;
    let n_src = if rng.one_in(2) { form.src.len() } else { form.src.iter().filter(optional).count() };
    let mut used = Use {
        chosen: std::sync::Arc::new(chosen),
        func: FuncKind::Entry,
        n_src,
        n_dst: form.dst.len(),
        version,
        target,
        named_space: None,
        marks: Default::default(),
    };
    let operands = || form.dst.iter().chain(form.src.iter().take(n_src));
    let written: Vec<(&str, &str)> = operands().map(|o| written(o, rng)).collect();
    for (mark, (sign, selector)) in used.marks.iter_mut().zip(&written) {
        *mark = Mark { selector: Selector::parse(selector.trim_start_matches('.')), negated: !sign.is_empty() };
    }
    (form.legal)(&used).ok()?;
    let places = operands().zip(written);
    let places = places.map(|(o, (sign, selector))| Some(Place { sign, selector, ..place(o, &used, rng)? }));
    let mut dst = places.collect::<Option<Vec<_>>>()?;
    let src = dst.split_off(form.dst.len());
    let mut words = form.opcode.to_owned() + &form.words.concat();
    for group in form.qualifiers {
        words.push_str(used.text(group.role));
    }
    Some(Template { words, dst, src })
}

/// What is written before and behind a register of a video instruction.
fn written(o: &Operand, rng: &mut Rng) -> (&'static str, &'static str) {
    let Kind::Video { select, negatable, .. } = o.kind else { return ("", "") };
    let selectors: &[&str] = match select {
        Select::Nothing => &[""],
        Select::Part => &["", "", ".b0", ".b1", ".b3", ".h0", ".h1"],
        Select::Pair => &["", ".h10", ".h02", ".h33", ".h21"],
        Select::Quad => &["", ".b7654", ".b0000", ".b3175", ".b6420"],
        Select::PairMask => &["", ".h0", ".h1", ".h10"],
        Select::QuadMask => &["", ".b0", ".b2", ".b31", ".b310", ".b3210"],
    };
    (if negatable && rng.one_in(4) { "-" } else { "" }, *rng.pick(selectors))
}

/// What an operand takes; `None` for kinds that are not drawn.
fn place(o: &Operand, used: &Use, rng: &mut Rng) -> Option<Place> {
    let ty = match o.is {
        Is::Fixed(t) | Is::Wider(t) | Is::Only(t) | Is::Descriptor(t) => t,
        Is::Like(s) | Is::Relaxed(s) | Is::Exactly(s) => used.ty(s),
        Is::Twice(s) => twice(used.ty(s))?,
        Is::Of(f) => f(used),
        Is::Address | Is::AddressOf(_) | Is::Handle(_) | Is::Any => return None,
    };
    if !matches!(o.count, Count::One) {
        return None;
    }
    let relaxed = matches!(o.is, Is::Relaxed(_) | Is::Wider(_));
    let class = match (ty, ty.bits()) {
        (ScalarType::Pred, _) => Class::P,
        (_, 8) if !relaxed => return None,
        (_, 8 | 16) if relaxed && rng.one_in(2) => Class::R,
        (_, 8 | 16) => Class::H,
        (_, 32) if relaxed && ty.class() != TypeClass::Float && rng.one_in(4) => Class::L,
        (_, 32) => Class::R,
        (_, 64) => Class::L,
        _ => return None,
    };
    let literal = match (ty, ty.class()) {
        (ScalarType::F32, _) => Some(Literal::F32),
        (ScalarType::F64, _) => Some(Literal::F64),
        (_, TypeClass::Bits | TypeClass::Unsigned | TypeClass::Signed) => Some(Literal::Int(ty.bits())),
        _ => None,
    };
    let plain = Place { class, literal: None, negatable: false, second: None, sign: "", selector: "" };
    match o.kind {
        Kind::Reg | Kind::RegOrSink => Some(plain),
        Kind::Val => Some(Place { literal, ..plain }),
        Kind::Imm => Some(Place { literal: Some(Literal::Byte), ..plain }),
        Kind::Pred { negatable } => Some(Place { negatable, ..plain }),
        Kind::PredPair => Some(Place { second: rng.one_in(2).then_some(Class::P), ..plain }),
        Kind::RegPredPair => Some(Place { second: Some(Class::P), ..plain }),
        Kind::Video { literal: may, .. } => Some(Place { literal: literal.filter(|_| may), ..plain }),
        Kind::Sink | Kind::Point | Kind::Texel(_) | Kind::Tuple | Kind::VectorPredPair => None,
        Kind::Vector | Kind::Address | Kind::Label | Kind::MovSource | Kind::Targets | Kind::Call => None,
    }
}

/// A reading of a special register: the opcode, the class of its destination, and the register.
#[derive(Clone, Debug)]
pub struct Special {
    /// `mov.u32` or `cvt.s64.u32`.
    pub words: String,
    /// Its registers.
    pub class: Class,
    /// Whether all components are read at once.
    pub whole: bool,
    /// `%tid.x`.
    pub name: String,
}

/// Registers that time moves.
const CLOCKS: &[&str] = &["%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"];

/// All readings of special registers that `check` accepts, by row of the table: at each type, by `mov` and `cvt`, and of whole vectors.
pub fn specials(header: &str) -> Vec<Vec<Special>> {
    const WORDS: [(&str, Class); 7] = [
        ("mov.u16", Class::H),
        ("mov.u32", Class::R),
        ("mov.b32", Class::R),
        ("mov.u64", Class::L),
        ("mov.pred", Class::P),
        ("cvt.u32.u16", Class::R),
        ("cvt.s64.s32", Class::L),
    ];
    let readings = |row: &SpecialRegister| {
        let names: Vec<String> = match row.source {
            Source::One(_) => vec![row.name.to_owned()],
            Source::Vector(_) => ["x", "y", "z", "w"].iter().map(|c| format!("{}.{c}", row.name)).collect(),
            Source::Numbered(n, _) => (0..n).map(|i| row.name.replace('#', &i.to_string())).collect(),
        };
        let one = |name: &String, (words, class): (&str, Class), whole| {
            let reading = Special { words: words.into(), class, whole, name: name.clone() };
            sound(&reading.text("%$0", "%$1"), header).then_some(reading)
        };
        let mut found: Vec<Special> = Vec::new();
        // The registers of a numbered set are read alike.
        let alike = if matches!(row.source, Source::Numbered(..)) { &names[..1] } else { &names[..] };
        found.extend(alike.iter().flat_map(|name| WORDS.iter().filter_map(move |w| one(name, *w, false))));
        let rest: Vec<Special> = names[alike.len()..]
            .iter()
            .flat_map(|name| found.iter().map(|f| Special { name: name.clone(), ..f.clone() }))
            .collect();
        found.extend(rest);
        found.extend(one(&row.name.to_owned(), ("mov.v4.u32", Class::R), true));
        found
    };
    let rows = SPECIAL_REGISTERS.iter().filter(|row| !CLOCKS.contains(&row.name));
    rows.map(readings).filter(|found: &Vec<Special>| !found.is_empty()).collect()
}

impl Special {
    /// The statement, with `$` in the names of registers for the letter of the class.
    pub fn text(&self, d: &str, other: &str) -> String {
        let [d, other] = [d, other].map(|r| r.replace('$', &self.class.letter().to_string()));
        if self.whole {
            return format!("{} {{{d}, {other}, %t1, %t2}}, {};", self.words, self.name);
        }
        format!("{} {d}, {};", self.words, self.name)
    }
}

fn twice(t: ScalarType) -> Option<ScalarType> {
    Some(match t {
        ScalarType::U16 => ScalarType::U32,
        ScalarType::S16 => ScalarType::S32,
        ScalarType::U32 => ScalarType::U64,
        ScalarType::S32 => ScalarType::S64,
        _ => return None,
    })
}

/// Keeps the literals that `check` accepts.
fn with_literals(mut t: Template, header: &str) -> Template {
    for i in 0..t.src.len() {
        let Some(literal) = t.src[i].literal.filter(|l| *l != Literal::Byte) else { continue };
        let takes = |literal, bits| {
            let text = instance(&t, |j, p| if i == j { spell(literal, bits) } else { register(p) });
            sound(&text, header)
        };
        let small = Literal::Int(8);
        let kept = [literal, small].into_iter().find(|l| takes(*l, 1) && takes(*l, u64::MAX));
        t.src[i].literal = kept;
    }
    t
}

fn register(p: &Place) -> String {
    if p.literal == Some(Literal::Byte) {
        "7".into()
    } else {
        format!("{}%{}0{}", p.sign, p.class.letter(), p.selector)
    }
}

fn accepted(t: &Template, header: &str) -> bool {
    sound(&instance(t, |_, p| register(p)), header)
}

/// The instruction with the given sources and register 0 of each class as destination.
fn instance(t: &Template, source: impl Fn(usize, &Place) -> String) -> String {
    let dst = t.dst.iter().map(|p| {
        let second = p.second.map_or(String::new(), |c| format!("|%{}1", c.letter()));
        format!("%{}0{}{second}", p.class.letter(), p.selector)
    });
    let src = t.src.iter().enumerate().map(|(i, p)| source(i, p));
    format!("{} {};", t.words, dst.chain(src).collect::<Vec<_>>().join(", "))
}

/// Whether a module of this instruction has no fault.
fn sound(instruction: &str, header: &str) -> bool {
    let text = format!(
        "{header}.entry k() {{ .reg .pred %p<2>; .reg .b16 %h<2>; .reg .b32 %r<2>, %t<3>; .reg .b64 %l<2>; {instruction} ret; }}"
    );
    check_text(&text, FileId(0)).diagnostics.iter().all(|d| d.severity != Severity::Error)
}

/// A literal with these bits.
pub fn spell(literal: Literal, bits: u64) -> String {
    match literal {
        Literal::Int(n) => format!("{:#x}", if n < 64 { bits & ((1 << n) - 1) } else { bits }),
        Literal::F32 => format!("0f{:08x}", bits & 0xffff_ffff),
        Literal::F64 => format!("0d{bits:016x}"),
        Literal::Byte => format!("{:#x}", bits & 0xff),
    }
}
