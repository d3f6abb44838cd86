//! Finding the record that an instruction uses.
//!
//! [`lookup`] goes from the opcode to its records, [`Candidates::matches`] from the qualifiers to those that fit, and
//! [`Candidates::mismatch`] says why none does. Words are compared as text: fixed words and free groups at any place, sequence
//! groups in their own order.
//!
//! Invariants: nothing is allocated while records match; the error path may allocate. The same text always gives the same
//! records in the order of the tables, so a caller may cache by (opcode, qualifiers).

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::form::{Choice, Form, FuncKind, Group, Kind, N_SLOTS, Role, Use, Value};
use crate::spelling::distance;
use crate::target::{Target, Version};

/// The qualifier chosen in each role.
pub type Chosen = [Option<&'static Choice>; N_SLOTS];

/// The records of one opcode.
#[derive(Clone, Copy, Debug)]
pub struct Candidates {
    /// Opcode or dotted prefix.
    pub opcode: &'static str,
    /// Records in the order of the tables.
    pub forms: &'static [&'static Form],
    /// How many qualifiers belong to the dotted prefix.
    pub n_prefix: usize,
    /// Index of the first of them.
    pub at: usize,
}

/// A record whose qualifiers match.
#[derive(Clone, Copy, Debug)]
pub struct Match {
    /// The record.
    pub form: &'static Form,
    /// The choices made.
    pub chosen: Chosen,
}

/// Why no record matches: from the record that got furthest.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// The record.
    pub form: &'static Form,
    /// Index of the qualifier that does not fit; `None` when something is missing at the end.
    pub at: Option<usize>,
    /// What could be there, over all records that got as far, with dots, without repetition.
    pub accepted: Vec<&'static str>,
}

/// The records of the longest dotted prefix of opcode and qualifiers that is known; `None` if there is no such opcode. Qualifiers
/// have their dots.
pub fn lookup<'q>(opcode: &str, qualifiers: impl Iterator<Item = &'q str> + Clone) -> Option<Candidates> {
    let at = sparse(opcode, qualifiers.clone());
    for p in index().get(opcode)? {
        let mut given = qualifiers.clone().skip(at);
        if p.rest.iter().all(|word| given.next() == Some(word)) {
            return Some(Candidates { opcode: p.opcode, forms: &p.forms, n_prefix: p.rest.len(), at });
        }
    }
    None
}

/// Where the word stands that makes `mma` sparse. The assembler takes it at any place among the qualifiers, and programs write it behind
/// `.kind`.
fn sparse<'q>(opcode: &str, mut qualifiers: impl Iterator<Item = &'q str>) -> usize {
    if opcode != "mma" {
        return 0;
    }
    qualifiers.position(|q| q == ".sp" || q == ".sp::ordered_metadata").unwrap_or(0)
}

impl Candidates {
    /// The qualifiers without those of the prefix.
    fn further<'q>(&self, qualifiers: impl Iterator<Item = &'q str> + Clone) -> impl Iterator<Item = &'q str> + Clone {
        let prefix = self.at..self.at + self.n_prefix;
        qualifiers.enumerate().filter(move |(i, _)| !prefix.contains(i)).map(|(_, q)| q)
    }

    /// Appends to `out` the records that fit all qualifiers (those of the prefix included) and `n_operands` operands.
    ///
    /// If no record takes that many operands, those that fit the qualifiers are appended, so that the caller can say what is wrong.
    /// More than one record may fit: the kinds of the operands, then the order decide.
    pub fn matches<'q>(
        &self,
        qualifiers: impl Iterator<Item = &'q str> + Clone,
        n_operands: usize,
        out: &mut Vec<Match>,
    ) {
        let start = out.len();
        let mut fitting = false;
        for &form in self.forms {
            let mut m = Matcher::new(form);
            if !self.further(qualifiers.clone()).all(|q| m.take(q)) || !m.is_complete() {
                continue;
            }
            let (least, most) = n_operands_of(form, &m.chosen);
            let fits = least <= n_operands && n_operands <= most;
            if fits && !fitting {
                out.truncate(start);
                fitting = true;
            }
            if fits || !fitting {
                out.push(Match { form, chosen: m.chosen });
            }
        }
    }

    /// Why no record fits; for qualifiers that [`Candidates::matches`] found nothing for.
    ///
    /// # Panics
    /// If there is no candidate: a fault of the index.
    pub fn mismatch<'q>(&self, qualifiers: impl Iterator<Item = &'q str> + Clone) -> Mismatch {
        let given = self.further(qualifiers.clone());
        let n_given = given.clone().count();
        let mut best: Option<((usize, Reverse<usize>), Mismatch)> = None;
        for &form in self.forms {
            let mut m = Matcher::new(form);
            let taken = given.clone().take_while(|q| m.take(q)).count();
            let at = (taken < n_given).then_some(if taken < self.at { taken } else { taken + self.n_prefix });
            let accepted = m.accepted(given.clone().nth(taken));
            // Among records that lack something at the end, the one that lacks least is meant.
            let score = (taken, Reverse(if at.is_none() { m.n_missing() } else { 0 }));
            match &mut best {
                Some((most, _)) if score < *most => {}
                Some((most, b)) if score == *most => {
                    for text in accepted {
                        if !b.accepted.contains(&text) {
                            b.accepted.push(text);
                        }
                    }
                }
                _ => best = Some((score, Mismatch { form, at, accepted })),
            }
        }
        best.expect("an opcode without records is not in the index").1
    }
}

impl Match {
    /// The use of the record by an instruction.
    pub fn used(
        &self,
        func: FuncKind,
        n_dst: usize,
        n_src: usize,
        version: Version,
        target: Target,
        named_space: Option<handloom_ir::types::StateSpace>,
    ) -> Use {
        Use {
            chosen: Arc::new(self.chosen),
            func,
            n_src,
            n_dst,
            version,
            target,
            named_space,
            marks: Default::default(),
        }
    }
}

/// The least and the greatest number of operands that a form takes. A call's operands have no upper bound.
pub fn n_operands_of(form: &Form, chosen: &Chosen) -> (usize, usize) {
    if form.src.iter().any(|o| o.kind == Kind::Call) {
        return (1, usize::MAX);
    }
    let all = form.dst_of(chosen).chain(form.src_of(chosen));
    (all.clone().filter(|o| !o.optional).count(), all.count())
}

/// An opcode that is close to an unknown one.
pub fn suggest(opcode: &str) -> Option<&'static str> {
    nearest(opcode, crate::forms().iter().map(|f| first_word(f.opcode)))
}

/// The one of `accepted` qualifiers that is close to a word which is no qualifier of any instruction.
pub fn suggest_qualifier(word: &str, accepted: &[&'static str]) -> Option<&'static str> {
    let is_qualifier = |f: &Form| {
        f.words.contains(&word) || f.qualifiers.iter().flat_map(|g| g.choices).any(|choice| choice.text == word)
    };
    if crate::forms().iter().any(|f| is_qualifier(f)) {
        return None;
    }
    let bare = |w: &'static str| w.trim_start_matches('.');
    let found = nearest(word.trim_start_matches('.'), accepted.iter().map(|w| bare(w)))?;
    accepted.iter().copied().find(|w| bare(w) == found)
}

/// The word that is closest to another one, if one is close.
pub fn nearest(word: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let limit = if word.len() <= 3 { 1 } else { 2 };
    let scored = known.filter_map(|known| {
        let d = distance(word.as_bytes(), known.as_bytes(), true);
        // Letters in another order, then letters too many at the end are likelier slips than others.
        let slip = if letters(word) == letters(known) { 0 } else { 1 + u8::from(!word.starts_with(known)) };
        let score = (d, slip, word.len().abs_diff(known.len()));
        (d <= limit && d < known.len()).then_some((score, known))
    });
    scored.min_by_key(|(score, _)| *score).map(|(_, known)| known)
}

fn letters(word: &str) -> Vec<u8> {
    let mut letters = word.as_bytes().to_vec();
    letters.sort_unstable();
    letters
}

/// A dotted prefix of an opcode.
#[derive(Debug)]
struct Prefix {
    opcode: &'static str,
    /// Words after the first, with dots.
    rest: Vec<&'static str>,
    forms: Vec<&'static Form>,
}

type Index = HashMap<&'static str, Vec<Prefix>>;

/// Prefixes by their first word, longest first.
fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut index = Index::new();
        for &form in crate::forms() {
            let prefixes = index.entry(first_word(form.opcode)).or_default();
            match prefixes.iter_mut().find(|p| p.opcode == form.opcode) {
                Some(p) => p.forms.push(form),
                None => {
                    prefixes.push(Prefix { opcode: form.opcode, rest: further_words(form.opcode), forms: vec![form] })
                }
            }
        }
        for prefixes in index.values_mut() {
            prefixes.sort_by_key(|p| Reverse(p.rest.len()));
        }
        index
    })
}

fn first_word(opcode: &'static str) -> &'static str {
    opcode.find('.').map_or(opcode, |dot| &opcode[..dot])
}

/// The words after the first, each with its dot.
fn further_words(opcode: &'static str) -> Vec<&'static str> {
    let mut rest = &opcode[first_word(opcode).len()..];
    let mut words = Vec::new();
    while !rest.is_empty() {
        let end = rest[1..].find('.').map_or(rest.len(), |dot| dot + 1);
        words.push(&rest[..end]);
        rest = &rest[end..];
    }
    words
}

/// One record being matched.
struct Matcher {
    form: &'static Form,
    chosen: Chosen,
    /// Bit i: fixed word i was seen.
    words: u32,
    /// Bit i: group i has its choice.
    filled: u64,
    /// Sequence groups before this index are behind us.
    next: usize,
    /// A word was taken that does not belong to the opcode.
    is_past_lead: bool,
}

impl Matcher {
    fn new(form: &'static Form) -> Matcher {
        Matcher { form, chosen: [None; N_SLOTS], words: 0, filled: 0, next: 0, is_past_lead: false }
    }

    /// Takes a qualifier if it fits.
    fn take(&mut self, text: &str) -> bool {
        if !self.is_past_lead {
            if self.take_lead(text) {
                return true;
            }
            if self.form.qualifiers.iter().enumerate().any(|(i, g)| g.lead && g.required && !self.has(i)) {
                return false;
            }
            self.is_past_lead = true;
        }
        for (i, word) in self.form.words.iter().enumerate() {
            if self.words & (1 << i) == 0 && *word == text {
                self.words |= 1 << i;
                return true;
            }
        }
        for (i, group) in self.form.qualifiers.iter().enumerate() {
            if group.free && self.filled & (1 << i) == 0 && self.choose(i, group, text) {
                return true;
            }
        }
        for (i, group) in self.open_sequence() {
            if self.choose(i, group, text) {
                self.next = i + 1;
                return true;
            }
        }
        false
    }

    /// Takes a word that belongs to the opcode; these keep their order too.
    fn take_lead(&mut self, text: &str) -> bool {
        for (i, group) in self.form.qualifiers.iter().enumerate().skip(self.next).filter(|(_, g)| g.lead) {
            if self.choose(i, group, text) {
                self.next = i + 1;
                return true;
            }
            if group.required {
                return false;
            }
        }
        false
    }

    /// Whether group `i` has its choice.
    fn has(&self, i: usize) -> bool {
        self.filled & (1 << i) != 0
    }

    fn choose(&mut self, i: usize, group: &'static Group, text: &str) -> bool {
        let Some(choice) = group.choices.iter().find(|c| c.text == text) else {
            return false;
        };
        self.chosen[group.role as usize] = Some(choice);
        self.filled |= 1 << i;
        true
    }

    /// The sequence groups that the next qualifier may belong to: up to the first required one.
    fn open_sequence(&self) -> impl Iterator<Item = (usize, &'static Group)> + use<> {
        let mut blocked = false;
        let groups = self.form.qualifiers.iter().enumerate().skip(self.next).filter(|(_, g)| !g.free && !g.lead);
        groups.take_while(move |(_, g)| {
            let open = !blocked;
            blocked |= g.required;
            open
        })
    }

    fn is_complete(&self) -> bool {
        self.n_missing() == 0
    }

    /// Fixed words and required groups that were not seen.
    fn n_missing(&self) -> usize {
        let groups = self.form.qualifiers.iter().enumerate();
        let unfilled = groups.filter(|(i, g)| g.required && self.filled & (1 << i) == 0).count();
        self.form.words.len() - self.words.count_ones() as usize + unfilled
    }

    /// What could be at this point. For a guilty type only types; at the end (`None`) only what is required.
    fn accepted(&self, guilty: Option<&str>) -> Vec<&'static str> {
        let leading = self.form.qualifiers.iter().enumerate().find(|(i, g)| g.lead && g.required && !self.has(*i));
        if let (Some((_, group)), false) = (leading, self.is_past_lead) {
            return group.choices.iter().map(|c| c.text).collect();
        }
        let words = self.form.words.iter().enumerate().filter(|(i, _)| self.words & (1 << i) == 0).map(|(_, w)| *w);
        let free = self.form.qualifiers.iter().enumerate().filter(|(i, g)| g.free && self.filled & (1 << i) == 0);
        let groups: Vec<&'static Group> = free.chain(self.open_sequence()).map(|(_, g)| g).collect();
        let wants_type = guilty.is_some_and(is_type) && groups.iter().any(|g| holds_types(g));
        let texts = groups
            .iter()
            .filter(|g| if wants_type { holds_types(g) } else { guilty.is_some() || g.required })
            .flat_map(|g| g.choices.iter().map(|c| c.text));
        if wants_type { texts.collect() } else { words.chain(texts).collect() }
    }
}

fn holds_types(group: &Group) -> bool {
    group.choices.iter().any(|c| matches!(c.value, Value::Ty(_)))
        || matches!(group.role, Role::Type | Role::Type2 | Role::Type3 | Role::Type4)
}

/// Whether a qualifier reads like a type: a letter or two, then digits.
fn is_type(text: &str) -> bool {
    let word = text.trim_start_matches('.');
    word == "pred"
        || word
            .strip_prefix("bf")
            .or_else(|| word.strip_prefix("tf"))
            .unwrap_or(word.get(1..).unwrap_or(""))
            .starts_with(|c: char| c.is_ascii_digit())
            && word.starts_with(['b', 'u', 's', 'f', 't', 'e'])
}
