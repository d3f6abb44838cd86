//! The file format: shapes and their cases.

use std::collections::BTreeSet;
use std::fmt;

use crate::rng::Rng;

/// A shape, as its file says it.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// Locations with their initial values.
    pub locations: Vec<(String, u32)>,
    /// Where the threads stand.
    pub places: Vec<Place>,
    /// Scopes; none if the shape has no `{scope}`.
    pub scopes: Vec<Reach>,
    /// State spaces with their dot; empty for generic addresses.
    pub mems: Vec<String>,
    /// Names with their values.
    pub withs: Vec<(String, Vec<Choice>)>,
    /// Bodies by thread.
    pub threads: Vec<String>,
    /// What must not come out: one of these, each of which is a list of facts.
    pub forbidden: Vec<Vec<Fact>>,
}

/// A value of a name.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Statements.
    pub text: String,
    /// Whether the outcome is forbidden with it.
    pub claims: bool,
}

/// How far a scope reaches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reach {
    /// Threads of a block.
    Cta,
    /// Threads of a cluster; launches here have clusters of one block.
    Cluster,
    /// Threads of the device.
    Gpu,
    /// All.
    Sys,
}

impl Reach {
    fn of(word: &str) -> Result<Reach, String> {
        match word {
            "cta" => Ok(Reach::Cta),
            "cluster" => Ok(Reach::Cluster),
            "gpu" => Ok(Reach::Gpu),
            "sys" => Ok(Reach::Sys),
            _ => Err(format!("`{word}` is no scope")),
        }
    }

    /// The word of `fence`, `ld` and the others.
    pub fn word(self) -> &'static str {
        match self {
            Reach::Cta => "cta",
            Reach::Cluster => "cluster",
            Reach::Gpu => "gpu",
            Reach::Sys => "sys",
        }
    }

    /// The word of `membar`, which has no clusters.
    pub fn level(self) -> &'static str {
        match self {
            Reach::Cta => "cta",
            Reach::Cluster | Reach::Gpu => "gl",
            Reach::Sys => "sys",
        }
    }
}

/// Blocks of warps of threads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Numbers of threads.
    pub blocks: Vec<Vec<Vec<usize>>>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let warp = |w: &Vec<usize>| w.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
        let block = |b: &Vec<Vec<usize>>| b.iter().map(warp).collect::<Vec<_>>().join(", ");
        f.write_str(&self.blocks.iter().map(block).collect::<Vec<_>>().join(" | "))
    }
}

impl Place {
    fn of(text: &str) -> Result<Place, String> {
        let thread = |t: &str| t.parse::<usize>().map_err(|_| format!("`{t}` is no thread"));
        let warp = |w: &str| w.split_whitespace().map(thread).collect::<Result<Vec<_>, _>>();
        let block = |b: &str| b.split(',').map(warp).collect::<Result<Vec<_>, _>>();
        Ok(Place { blocks: text.split('|').map(block).collect::<Result<_, _>>()? })
    }

    /// Whether a scope includes all threads for each of them.
    pub fn is_within(&self, reach: Reach) -> bool {
        self.blocks.len() == 1 || reach >= Reach::Gpu
    }
}

/// A register of a thread or a location, and what it is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What is looked at.
    pub what: What,
    /// `==`, else `!=`.
    pub equal: bool,
    /// The value.
    pub value: u32,
}

/// What a fact is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A register of a thread.
    Reg {
        /// The thread.
        thread: usize,
        /// Number of the register.
        reg: usize,
    },
    /// The last value of a location, by number.
    Location(usize),
}

/// One choice of everything.
#[derive(Clone, Debug)]
pub struct Case {
    /// Where the threads stand.
    pub place: Place,
    /// State space with its dot.
    pub mem: String,
    /// Bodies with all names replaced.
    pub threads: Vec<String>,
    /// Whether the outcome is forbidden.
    pub claims: bool,
    /// What was chosen.
    pub name: String,
    /// The choices by number: place, state space, scope, then the names'.
    pub picks: Vec<usize>,
}

/// Reads a file.
///
/// # Errors
/// A sentence with the line.
pub fn parse(text: &str) -> Result<Shape, String> {
    let mut shape = Shape::default();
    let mut conditions = String::new();
    let mut into = None;
    for (i, line) in text.lines().enumerate() {
        let told = |e: String| format!("line {}: {e}", i + 1);
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with(' ') {
            add_line(&mut shape, into, line.trim()).map_err(told)?;
            continue;
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        into = None;
        match word {
            "locations" => shape.locations = rest.split_whitespace().map(location).collect::<Result<_, _>>()?,
            "place" => shape.places.push(Place::of(rest).map_err(told)?),
            "scope" => shape.scopes = rest.split_whitespace().map(Reach::of).collect::<Result<_, _>>().map_err(told)?,
            "mem" => {
                let space = |w: &str| if w == "generic" { String::new() } else { format!(".{w}") };
                shape.mems = rest.split_whitespace().map(space).collect();
            }
            "with" => {
                shape.withs.push((rest.trim().into(), vec![]));
                into = Some(Part::With);
            }
            "thread" => {
                if rest.trim() != shape.threads.len().to_string() {
                    return Err(told("threads are numbered in order".into()));
                }
                shape.threads.push(String::new());
                into = Some(Part::Thread);
            }
            "forbidden" => conditions = rest.into(),
            _ => return Err(told(format!("`{word}` is no word of this format"))),
        }
    }
    shape.forbidden = conditions
        .split("||")
        .map(|all| all.split("&&").map(|f| fact(&shape, f.trim())).collect())
        .collect::<Result<_, _>>()?;
    for p in &shape.places {
        let mut all: Vec<usize> = p.blocks.iter().flatten().flatten().copied().collect();
        all.sort_unstable();
        if all != (0..shape.threads.len()).collect::<Vec<_>>() {
            return Err(format!("`place {p}` does not name each thread once"));
        }
    }
    Ok(shape)
}

#[derive(Clone, Copy)]
enum Part {
    With,
    Thread,
}

fn add_line(shape: &mut Shape, into: Option<Part>, line: &str) -> Result<(), String> {
    match (into, shape.withs.last_mut(), shape.threads.last_mut()) {
        (Some(Part::With), Some((_, values)), _) => {
            let (text, claims) = line.strip_prefix('?').map_or((line, true), |t| (t.trim(), false));
            values.push(Choice { text: if text == "-" { String::new() } else { text.into() }, claims });
        }
        (Some(Part::Thread), _, Some(body)) => {
            body.push_str(line);
            body.push('\n');
        }
        _ => return Err("an indented line belongs to `with` or `thread`".into()),
    }
    Ok(())
}

fn location(word: &str) -> Result<(String, u32), String> {
    let (name, value) = word.split_once('=').unwrap_or((word, "0"));
    let value = value.parse().map_err(|_| format!("`{word}` is no location"))?;
    Ok((name.into(), value))
}

fn fact(shape: &Shape, text: &str) -> Result<Fact, String> {
    let wrong = || format!("`{text}` is no fact");
    let (left, value, equal) = match (text.split_once("=="), text.split_once("!=")) {
        (Some((l, v)), _) => (l.trim(), v.trim(), true),
        (None, Some((l, v))) => (l.trim(), v.trim(), false),
        (None, None) => return Err(wrong()),
    };
    let what = match left.split_once(":r") {
        Some((thread, reg)) => {
            What::Reg { thread: thread.parse().map_err(|_| wrong())?, reg: reg.parse().map_err(|_| wrong())? }
        }
        None => What::Location(shape.locations.iter().position(|(n, _)| n == left).ok_or_else(wrong)?),
    };
    Ok(Fact { what, equal, value: value.parse().map_err(|_| wrong())? })
}

impl Shape {
    /// Number of registers of a thread that are looked at.
    pub fn n_regs(&self) -> usize {
        let number = |f: &Fact| match f.what {
            What::Reg { reg, .. } => reg + 1,
            What::Location(_) => 0,
        };
        self.forbidden.iter().flatten().map(number).max().unwrap_or(0)
    }

    /// All cases.
    pub fn cases(&self) -> Vec<Case> {
        let scopes: Vec<Option<Reach>> =
            if self.scopes.is_empty() { vec![None] } else { self.scopes.iter().copied().map(Some).collect() };
        let mems = if self.mems.is_empty() { vec![".global".to_string()] } else { self.mems.clone() };
        let mut cases = Vec::new();
        for (p, place) in self.places.iter().enumerate() {
            for (m, mem) in mems.iter().enumerate().filter(|(_, m)| *m != ".shared" || place.blocks.len() == 1) {
                for (s, scope) in scopes.iter().enumerate() {
                    self.with_each(0, &mut vec![p, m, s], &mut |picks| {
                        cases.push(self.case(place, mem, *scope, picks));
                    });
                }
            }
        }
        cases
    }

    /// Some cases: a list without order in which each choice is met with a claim, if it has one, and one case more for each choice.
    pub fn some_cases(&self, rng: &mut Rng) -> Vec<Case> {
        let mut rest = self.cases();
        let mut met = BTreeSet::new();
        let mut some = Vec::new();
        let mut spare = 0;
        while !rest.is_empty() {
            let case = rest.swap_remove(rng.below(rest.len()));
            let mut is_new = false;
            for choice in case.picks.iter().copied().enumerate() {
                is_new |= met.insert((choice, case.claims));
            }
            spare += usize::from(is_new);
            if is_new || spare > 0 {
                spare -= usize::from(!is_new);
                some.push(case);
            }
        }
        some
    }

    fn with_each(&self, n: usize, picks: &mut Vec<usize>, f: &mut impl FnMut(&[usize])) {
        let Some((_, values)) = self.withs.get(n) else { return f(picks) };
        for i in 0..values.len() {
            picks.push(i);
            self.with_each(n + 1, picks, f);
            picks.pop();
        }
    }

    fn case(&self, place: &Place, mem: &str, scope: Option<Reach>, picks: &[usize]) -> Case {
        let chosen = || self.withs.iter().zip(&picks[3..]).map(|((name, values), i)| (name, &values[*i]));
        let fill = |body: &String| {
            let mut text = body.clone();
            for (name, value) in chosen() {
                text = text.replace(&format!("{{{name}}}"), &value.text);
            }
            let (word, level) = scope.map_or(("", ""), |s| (s.word(), s.level()));
            text.replace("{scope}", word).replace("{level}", level).replace("{mem}", mem)
        };
        let mut name = format!("place {place}; memory {}", if mem.is_empty() { "generic" } else { mem });
        if let Some(s) = scope {
            name += &format!("; scope {}", s.word());
        }
        for (n, value) in chosen() {
            name += &format!("; {n} `{}`", fill(&value.text));
        }
        Case {
            place: place.clone(),
            mem: mem.into(),
            threads: self.threads.iter().map(fill).collect(),
            claims: scope.is_none_or(|s| place.is_within(s)) && chosen().all(|(_, v)| v.claims),
            name,
            picks: picks.to_vec(),
        }
    }
}
