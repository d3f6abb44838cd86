//! The schema of instruction records.
//!
//! A [`Form`] says everything about one instruction form: syntax, types, gates, meaning. The checker, the lowering, the list of what is
//! supported and the random program generator all read it.

use std::sync::Arc;

use handloom_ir::num::image::Kind as Object;
use handloom_ir::simt::{Addr, Builder, Val, Vals};
use handloom_ir::types::*;
use smallvec::SmallVec;

use crate::selector::{Mark, N_MARKS, Select};
use crate::target::Needs;

/// One instruction form.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// First word, or a dotted prefix that is kept together (`cp.async`); the longest prefix wins.
    pub opcode: &'static str,
    /// Fixed words of the form (`.sync`, `.aligned`); required, at any place.
    pub words: &'static [&'static str],
    /// Title of the manual's section.
    pub section: &'static str,
    /// Groups of qualifiers.
    pub qualifiers: &'static [Group],
    /// Destination operands.
    pub dst: &'static [Operand],
    /// Source operands.
    pub src: &'static [Operand],
    /// Version and target gates of the form as a whole.
    pub needs: Needs,
    /// What a table cannot say; may add gates for a combination.
    pub legal: fn(&Use) -> Result<Needs, Reason>,
    /// What it does.
    pub semantics: Semantics,
}

/// Why a combination is not legal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// One sentence, lower case, no full stop.
    pub message: String,
    /// What would be accepted.
    pub help: Option<String>,
    /// The qualifier that is to blame, as text with its dot.
    pub word: Option<&'static str>,
    /// Accepted all the same (the assembler does): a warning.
    pub warning: bool,
}

impl Reason {
    /// A refusal.
    pub fn new(message: impl Into<String>) -> Reason {
        Reason { message: message.into(), help: None, word: None, warning: false }
    }

    /// The same with the guilty qualifier; none if the text is empty (a qualifier that is not written).
    #[must_use]
    pub fn at(mut self, word: &'static str) -> Reason {
        self.word = (!word.is_empty()).then_some(word);
        self
    }

    /// The same with help.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Reason {
        self.help = Some(help.into());
        self
    }
}

/// The `legal` of forms whose table says all.
pub fn always(_: &Use) -> Result<Needs, Reason> {
    Ok(Needs::NONE)
}

/// The role of a group: how rules and semantics ask for its choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names say it; uses stand in the records")]
pub enum Role {
    Type,
    /// Source type of `cvt`, `set`, `slct`, `dp4a`, video.
    Type2,
    Type3,
    Type4,
    Space,
    Space2,
    Order,
    Scope,
    Vec,
    Round,
    Ftz,
    Sat,
    Relu,
    SatFinite,
    Cmp,
    Bool,
    Mode,
    Mode2,
    Half,
    CacheOp,
    EvictL1,
    EvictL2,
    CacheHint,
    Prefetch,
    Op,
    Nan,
    XorSign,
    Approx,
    Shape,
    LayoutA,
    LayoutB,
    Flag,
    Flag2,
    Flag3,
    Unified,
    Sem,
    Num,
    Sel,
}

/// Number of roles.
pub const N_SLOTS: usize = Role::Sel as usize + 1;

/// A group of qualifiers: at most one of its choices is written.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Its role.
    pub role: Role,
    /// The choices.
    pub choices: &'static [Choice],
    /// Whether one must be written.
    pub required: bool,
    /// Whether it may be at any place; else groups of a form keep their own order.
    pub free: bool,
    /// Whether it belongs to the opcode: it comes before all words that do not, in sequence with the others like it.
    pub lead: bool,
}

/// A required group that belongs to the opcode.
pub const fn lead(role: Role, choices: &'static [Choice]) -> Group {
    Group { role, choices, required: true, free: false, lead: true }
}

/// An optional group that belongs to the opcode.
pub const fn maybe_lead(role: Role, choices: &'static [Choice]) -> Group {
    Group { role, choices, required: false, free: false, lead: true }
}

/// A required group, in sequence with the others.
pub const fn one_of(role: Role, choices: &'static [Choice]) -> Group {
    Group { role, choices, required: true, free: false, lead: false }
}

/// An optional group in sequence with the others.
pub const fn opt_seq(role: Role, choices: &'static [Choice]) -> Group {
    Group { role, choices, required: false, free: false, lead: false }
}

/// A required group at any place.
pub const fn must(role: Role, choices: &'static [Choice]) -> Group {
    Group { role, choices, required: true, free: true, lead: false }
}

/// An optional group at any place.
pub const fn maybe(role: Role, choices: &'static [Choice]) -> Group {
    Group { role, choices, required: false, free: true, lead: false }
}

/// One qualifier of a group.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Text with the dot.
    pub text: &'static str,
    /// What the word means.
    pub value: Value,
    /// Gates of its own.
    pub needs: Needs,
}

/// A type.
pub const fn ty(text: &'static str, t: ScalarType) -> Choice {
    Choice { text, value: Value::Ty(t), needs: Needs::NONE }
}

/// A type with gates.
pub const fn ty_if(text: &'static str, t: ScalarType, needs: Needs) -> Choice {
    Choice { text, value: Value::Ty(t), needs }
}

/// A choice with any value.
pub const fn choice(text: &'static str, value: Value) -> Choice {
    Choice { text, value, needs: Needs::NONE }
}

/// A choice with any value and gates.
pub const fn choice_if(text: &'static str, value: Value, needs: Needs) -> Choice {
    Choice { text, value, needs }
}

/// What a qualifier means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each holds the manual's own notion")]
pub enum Value {
    Ty(ScalarType),
    Space(StateSpace),
    Scope(Scope),
    Order(Order),
    Round(Rounding),
    Cmp(Cmp),
    Bool(BoolOp),
    Count(u8),
    Atom(AtomOp),
    Shfl(ShflMode),
    Vote(VoteMode),
    Prmt(PrmtMode),
    Test(TestProperty),
    Tag(u16),
    Flag,
}

/// What kind of operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A register.
    Reg,
    /// A destination register or the sink `_`.
    RegOrSink,
    /// The sink `_` only.
    Sink,
    /// A register or a literal (or `WARP_SZ`, or a special register where `mov` takes one).
    Val,
    /// A literal or constant expression only.
    Imm,
    /// A predicate register; `!p` and integer literals where `negatable`.
    Pred {
        /// Whether `!p` may be written.
        negatable: bool,
    },
    /// `p` or `p|q`, each may be `_`: destination predicates of `setp`, `lop3`, `shfl`, `match`, `elect`.
    /// As destination 0 it is predicate p and as the next index q.
    PredPair,
    /// `d` or `d|p`: a register with an optional predicate (`shfl`, `match`, `elect`), which must be written where the count is 2. Results: d, then p.
    RegPredPair,
    /// A vector of as many registers as `count` says (or one register when it is one); destinations may hold `_`.
    Vector,
    /// A vector in braces or a vector register, even of one element. Where it is optional, operands after it may be written without it; the
    /// record then finds no values at its place.
    Tuple,
    /// A vector, with `|p` after it if the program wants the predicate. Results index: the elements, then p.
    VectorPredPair,
    /// `[address]`.
    Address,
    /// `[address, coordinates]`: the map of a tensor and a place in it, which is in braces. Type rule and count are those of the coordinates.
    Point,
    /// `[object, coordinates]`, of a texture also `[object, sampler, coordinates]`: an image and a place in it. Type rule and count are those of the
    /// coordinates, which may be longer than they need to be, as in the first versions of PTX.
    Texel(Object),
    /// A label.
    Label,
    /// A name of a variable or function, or register: whatever `mov` takes (registers, special registers, literals, addresses of symbols,
    /// vectors for packing).
    MovSource,
    /// A list of labels declared by `.branchtargets`.
    Targets,
    /// Operands of `call`.
    Call,
    /// A register of a video instruction, perhaps with a selector after it; a literal where `literal`, `-a` where `negatable`.
    /// What is written with it is in [`Use::marks`].
    Video {
        /// The selectors that it takes.
        select: Select,
        /// Whether a literal may be there instead.
        literal: bool,
        /// Whether `-` may come before the register.
        negatable: bool,
    },
}

/// The type rule of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(unpredictable_function_pointer_comparisons, reason = "rules are compared with those that hold no function")]
pub enum Is {
    /// This type, by the rule for ordinary instructions.
    Fixed(ScalarType),
    /// This type; wider registers are allowed (`cvt.pack`).
    Wider(ScalarType),
    /// A register of exactly this type.
    Only(ScalarType),
    /// A number of this type that describes something (a policy, a mask, the state of a barrier, a matrix): never an address.
    Descriptor(ScalarType),
    /// The type of a role, by the rule for ordinary instructions (Operand Size Exceeding ... does not apply).
    Like(Role),
    /// The type of a role; wider registers are allowed (`ld`, `st`, `cvt`).
    Relaxed(Role),
    /// The type of a role; no widening and no other register type of the same size than the table allows.
    Exactly(Role),
    /// Twice the width of the type of a role (`mul.wide`).
    Twice(Role),
    /// The bit type of half or other computed width: decided by a function of the use.
    Of(fn(&Use) -> ScalarType),
    /// An address of the module's address size, which the assembler takes from registers of any smaller size too.
    Address,
    /// An address in a register of at least so many bits.
    AddressOf(u32),
    /// An object of one of these kinds, or a register of 64 bits with its address.
    Handle(&'static [Object]),
    /// No type rule (labels, call operands).
    Any,
}

/// How many registers an operand is.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// One register.
    One,
    /// The count of a role (`.v4`); one when it is not written.
    By(Role),
    /// The count of a role; one that stands without braces when it is not written.
    Bare(Role),
    /// A fixed number.
    Fixed(u8),
    /// Computed (matrix fragments).
    Fragment(fn(&Use) -> u8),
    /// The same where none of them may be `_`.
    Every(fn(&Use) -> u8),
}

impl Count {
    /// Whether it is computed: registers that hold a part of a matrix.
    pub fn is_computed(self) -> bool {
        matches!(self, Count::Fragment(_) | Count::Every(_))
    }
}

/// An operand of a form.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    /// Name in the manual's syntax line.
    pub name: &'static str,
    /// What may be written.
    pub kind: Kind,
    /// Type rule.
    pub is: Is,
    /// Number of registers.
    pub count: Count,
    /// May be left out (only after those that may not).
    pub optional: bool,
    /// Which qualifiers it belongs to; it is written exactly with them.
    pub when: When,
}

/// Which qualifiers an operand belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// It is always written.
    Always,
    /// It belongs to any choice of the role.
    Has(Role),
    /// It belongs to these choices of the role.
    Word(Role, &'static [&'static str]),
    /// It belongs to all choices of the role but these, and to none written.
    Not(Role, &'static [&'static str]),
    /// All of these hold.
    All(&'static [When]),
}

impl When {
    /// Whether it holds for the choices made.
    pub fn holds(self, chosen: &[Option<&'static Choice>; N_SLOTS]) -> bool {
        let text = |role: Role| chosen[role as usize].map_or("", |c| c.text);
        match self {
            When::Always => true,
            When::Has(role) => chosen[role as usize].is_some(),
            When::Word(role, words) => words.contains(&text(role)),
            When::Not(role, words) => !words.contains(&text(role)),
            When::All(all) => all.iter().all(|when| when.holds(chosen)),
        }
    }
}

/// A register operand.
pub const fn reg(name: &'static str, is: Is) -> Operand {
    Operand { name, kind: Kind::Reg, is, count: Count::One, optional: false, when: When::Always }
}

/// A register or literal operand.
pub const fn val(name: &'static str, is: Is) -> Operand {
    Operand { name, kind: Kind::Val, is, count: Count::One, optional: false, when: When::Always }
}

/// An operand of any kind.
pub const fn operand(name: &'static str, kind: Kind, is: Is) -> Operand {
    Operand { name, kind, is, count: Count::One, optional: false, when: When::Always }
}

/// A predicate operand that may be negated.
pub const fn pred(name: &'static str) -> Operand {
    Operand {
        name,
        kind: Kind::Pred { negatable: true },
        is: Is::Fixed(ScalarType::Pred),
        count: Count::One,
        optional: false,
        when: When::Always,
    }
}

/// A predicate register that may be negated; no literal.
pub const fn pred_reg(name: &'static str) -> Operand {
    Operand { is: Is::Only(ScalarType::Pred), ..pred(name) }
}

/// A memory operand.
pub const fn address(name: &'static str) -> Operand {
    Operand { name, kind: Kind::Address, is: Is::Address, count: Count::One, optional: false, when: When::Always }
}

/// An address in tensor memory: 32 bits whatever the module's addresses are.
pub const fn tmem(name: &'static str) -> Operand {
    Operand { is: Is::Fixed(ScalarType::U32), ..address(name) }
}

/// An address in tensor memory that a product takes, which is held in a register of no other type.
pub const fn tmem_of_product(name: &'static str) -> Operand {
    Operand { is: Is::Only(ScalarType::B32), ..address(name) }
}

/// A vector operand of the count of a role.
pub const fn vector(name: &'static str, is: Is, by: Role) -> Operand {
    Operand { name, kind: Kind::Vector, is, count: Count::By(by), optional: false, when: When::Always }
}

impl Operand {
    /// The same of a pair of which both halves must be written.
    pub const fn both(mut self) -> Operand {
        self.count = Count::Fixed(2);
        self
    }

    /// The same, written exactly with a qualifier of the role.
    pub const fn with(mut self, role: Role) -> Operand {
        self.when = When::Has(role);
        self
    }

    /// The same, written exactly when a condition holds.
    pub const fn when(mut self, when: When) -> Operand {
        self.when = when;
        self
    }

    /// The same of an address in a register of at least so many bits.
    pub const fn in_bits(mut self, bits: u32) -> Operand {
        self.is = Is::AddressOf(bits);
        self
    }

    /// The same, optional.
    pub const fn optional(mut self) -> Operand {
        self.optional = true;
        self
    }
}

/// Where an instruction is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FuncKind {
    /// In an entry.
    Entry,
    /// In a function.
    Func,
}

/// How a form is used by one instruction: the choice made in each group.
#[derive(Clone, Debug)]
pub struct Use {
    /// The chosen qualifier of each role. Uses that are written alike share it.
    pub chosen: Arc<[Option<&'static Choice>; N_SLOTS]>,
    /// Kind of the function around it.
    pub func: FuncKind,
    /// How many source operands are written.
    pub n_src: usize,
    /// How many destination operands are written.
    pub n_dst: usize,
    /// Version of the module.
    pub version: crate::target::Version,
    /// Target of the module.
    pub target: crate::target::Target,
    /// State space of the variable that an address operand names directly, if it does.
    pub named_space: Option<StateSpace>,
    /// What is written with the operands of a video instruction: the destination, then the sources.
    pub marks: [Mark; N_MARKS],
}

/// What an instruction has to do with results that stand in registers and may come late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InRegisters {
    /// Its results, which groups are waited for.
    Product,
    /// All products so far are a group.
    CommitProducts,
    /// Waits for all groups of products but so many.
    WaitForProducts,
    /// What it loads, which is waited for as a whole.
    Load,
    /// Waits for all loads.
    WaitForLoads,
}

impl Form {
    /// What it has to do with results that stand in registers and may come late.
    pub fn in_registers(&self) -> Option<InRegisters> {
        match self.opcode {
            "wgmma.mma_async" | "wgmma.mma_async.sp" => Some(InRegisters::Product),
            "wgmma.commit_group" => Some(InRegisters::CommitProducts),
            "wgmma.wait_group" => Some(InRegisters::WaitForProducts),
            "tcgen05.ld" | "tcgen05.ld.red" => Some(InRegisters::Load),
            "tcgen05.wait::ld" => Some(InRegisters::WaitForLoads),
            _ => None,
        }
    }

    /// Whether it is done in another way where what is asynchronous may come late.
    pub fn is_timed(&self) -> bool {
        matches!(self.semantics, Semantics::Timed { .. } | Semantics::Wait(_)) || self.in_registers().is_some()
    }

    /// The destination operands that belong to the choices made.
    pub fn dst_of<'c>(
        &self,
        chosen: &'c [Option<&'static Choice>; N_SLOTS],
    ) -> impl Iterator<Item = &'static Operand> + Clone + use<'c> {
        self.dst.iter().filter(move |o| o.when.holds(chosen))
    }

    /// The source operands that belong to the choices made.
    pub fn src_of<'c>(
        &self,
        chosen: &'c [Option<&'static Choice>; N_SLOTS],
    ) -> impl Iterator<Item = &'static Operand> + Clone + use<'c> {
        self.src.iter().filter(move |o| o.when.holds(chosen))
    }
}

/// A form to start others from: no words, no operands, unsupported.
pub const UNSUPPORTED_FORM: Form = Form {
    opcode: "",
    words: &[],
    section: "",
    qualifiers: &[],
    dst: &[],
    src: &[],
    needs: Needs::NONE,
    legal: always,
    semantics: Semantics::Unsupported(""),
};

impl Use {
    /// The value chosen for a role.
    pub fn value(&self, role: Role) -> Option<Value> {
        self.chosen[role as usize].map(|c| c.value)
    }

    /// Whether a qualifier of the role is written.
    pub fn has(&self, role: Role) -> bool {
        self.chosen[role as usize].is_some()
    }

    /// The text chosen for a role, with its dot; empty if none.
    pub fn text(&self, role: Role) -> &'static str {
        self.chosen[role as usize].map_or("", |c| c.text)
    }

    /// The type of a role.
    ///
    /// # Panics
    /// If the role holds no type: a fault of the record.
    pub fn ty(&self, role: Role) -> ScalarType {
        match self.value(role) {
            Some(Value::Ty(t)) => t,
            other => panic!("record asks {role:?} for a type and finds {other:?}"),
        }
    }

    /// The count of a role; 1 if it is not written.
    pub fn count(&self, role: Role) -> u8 {
        match self.value(role) {
            Some(Value::Count(n)) => n,
            _ => 1,
        }
    }

    /// The state space of a role; generic if it is not written.
    pub fn space(&self, role: Role) -> StateSpace {
        match self.value(role) {
            Some(Value::Space(s)) => s,
            _ => StateSpace::Generic,
        }
    }

    /// The rounding of a role, if written.
    pub fn round(&self, role: Role) -> Option<Rounding> {
        match self.value(role) {
            Some(Value::Round(r)) => Some(r),
            _ => None,
        }
    }

    /// The scope of a role, if written.
    pub fn scope(&self, role: Role) -> Option<Scope> {
        match self.value(role) {
            Some(Value::Scope(s)) => Some(s),
            _ => None,
        }
    }

    /// The ordering of a role, if written.
    pub fn order(&self, role: Role) -> Option<Order> {
        match self.value(role) {
            Some(Value::Order(o)) => Some(o),
            _ => None,
        }
    }
}

/// What an instruction does.
#[derive(Clone, Copy, Debug)]
pub enum Semantics {
    /// Builds value and memory ops. A guard is applied by the caller: memory ops take it, results keep the old value where it is 0.
    Build(fn(&mut Cx<'_, '_>)),
    /// Builds a warp-synchronising op or one that acts once for the warp: a guard branches around it, and the block ends after it.
    Warp(fn(&mut Cx<'_, '_>)),
    /// The same for an instruction that reads what its destination holds: these values are one more source, the last.
    WarpUpdate(fn(&mut Cx<'_, '_>)),
    /// Builds an attempt of something that waits. The value (type P) says whether it was made; lanes come together first, and try again until it was.
    Attempt(fn(&mut Cx<'_, '_>) -> Val),
    /// Checked, then nothing.
    Hint,
    /// As `Build`, by another function where what is asynchronous may come late.
    Timed {
        /// Where all happens at once.
        now: fn(&mut Cx<'_, '_>),
        /// Where it may come late.
        late: fn(&mut Cx<'_, '_>),
    },
    /// Nothing where all happens at once; else as `Build`.
    Wait(fn(&mut Cx<'_, '_>)),
    /// Changes control flow; the lowering knows how.
    Control(Control),
    /// Parsed and checked, but not run.
    Unsupported(&'static str),
}

/// Instructions that change control flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are the opcodes")]
pub enum Control {
    Bra,
    BrxIdx,
    Call,
    Ret,
    Exit,
    Trap,
    Brkpt,
    /// `bar`, `barrier`: kind is found from the words of the form; operands: number, count, predicate as the form has them.
    Barrier(handloom_ir::simt::BarKind),
}

/// An operand as the lowering hands it to a record's semantics.
#[derive(Clone, Debug)]
pub enum Arg {
    /// Values: one, or the elements of a vector. A value has the IR type of its instruction type (already chopped by the operand rules).
    Vals(Vals),
    /// An address.
    Addr(Addr),
    /// An address and coordinates.
    Point(Point),
}

/// An operand of [`Kind::Point`].
#[derive(Clone, Debug)]
pub struct Point {
    /// What is named first.
    pub at: Place,
    /// The sampler.
    pub sampler: Option<Place>,
    /// The coordinates.
    pub coordinates: Vec<Val>,
}

/// What a name between brackets stands for.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its address.
    pub addr: Addr,
    /// It is a parameter of the entry.
    pub is_param: bool,
}

/// What semantics work on.
#[derive(Debug)]
pub struct Cx<'a, 'f> {
    /// The choices made.
    pub u: &'a Use,
    /// Where to build.
    pub b: &'a mut Builder<'f>,
    /// Source operands in the form's order; absent optional ones are missing at the end.
    pub args: &'a [Arg],
    /// For each destination operand in the form's order: how many results it takes (0 when absent or a sink)
    /// and for vectors which elements are sinks.
    pub dst_sinks: &'a [SmallVec<[bool; 4]>],
    /// Results: `results[i][j]` is element j of destination operand i, at the instruction type.
    pub results: SmallVec<[SmallVec<[Option<Val>; 2]>; 1]>,
}

impl Cx<'_, '_> {
    /// Source operand `i` as one value.
    ///
    /// # Panics
    /// If it is an address or absent: a fault of the record.
    pub fn src(&self, i: usize) -> Val {
        match &self.args[i] {
            Arg::Vals(v) => v[0],
            Arg::Addr(_) | Arg::Point(_) => panic!("record reads address operand {i} as a value"),
        }
    }

    /// Source operand `i` if it is written.
    pub fn src_opt(&self, i: usize) -> Option<Val> {
        if i < self.args.len() { Some(self.src(i)) } else { None }
    }

    /// All elements of source operand `i`.
    ///
    /// # Panics
    /// If it is an address: a fault of the record.
    pub fn srcs(&self, i: usize) -> Vec<Val> {
        match &self.args[i] {
            Arg::Vals(v) => v.to_vec(),
            Arg::Addr(_) | Arg::Point(_) => panic!("record reads address operand {i} as values"),
        }
    }

    /// Source operand `i` as an address.
    ///
    /// # Panics
    /// If it is no address: a fault of the record.
    pub fn addr(&self, i: usize) -> Addr {
        match &self.args[i] {
            Arg::Addr(a) => *a,
            Arg::Point(p) => p.at.addr,
            Arg::Vals(_) => panic!("record reads operand {i} as an address"),
        }
    }

    /// Source operand `i` as an address and coordinates.
    ///
    /// # Panics
    /// If it is something else: a fault of the record.
    pub fn point(&self, i: usize) -> &Point {
        match &self.args[i] {
            Arg::Point(p) => p,
            Arg::Vals(_) | Arg::Addr(_) => panic!("record reads operand {i} as a point"),
        }
    }

    /// The coordinates that belong to the address of source operand `i`.
    ///
    /// # Panics
    /// If it has none: a fault of the record.
    pub fn place(&self, i: usize) -> Vec<Val> {
        match &self.args[i] {
            Arg::Point(p) => p.coordinates.clone(),
            Arg::Addr(_) | Arg::Vals(_) => panic!("record reads coordinates of operand {i}"),
        }
    }

    /// Whether element `j` of destination `i` is wanted (written and no sink).
    pub fn wants(&self, i: usize, j: usize) -> bool {
        self.dst_sinks.get(i).and_then(|d| d.get(j)).is_some_and(|sink| !sink)
    }

    /// Sets destination 0.
    pub fn set(&mut self, v: Val) {
        self.set_at(0, 0, v);
    }

    /// Sets element `j` of destination `i`. For `PredPair` and `RegPredPair` element 1 is the second half.
    pub fn set_at(&mut self, i: usize, j: usize, v: Val) {
        let n = self.results.len().max(i + 1);
        self.results.resize(n, SmallVec::new());
        let results = &mut self.results[i];
        results.resize(results.len().max(j + 1), None);
        results[j] = Some(v);
    }
}
