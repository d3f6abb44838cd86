//! The graph of imports among the files of a crate, and its circles.
//!
//! An arrow goes from a file to the file that *defines* what it names: by `use`, or by a path that starts with `crate`, `super`, `self` or a
//! module of its own. A re-export is no arrow, and what is named through one leads to the definition. Test modules are left out.
//!
//! Where that is asked for, a call of a method draws an arrow to the file that has the method, if that is not the file that defines the type.
//! Methods in the file of their type need none: a file that calls one got the value from something that it names, and from there arrows lead to
//! the type. Methods of traits draw no arrow, as it is the trait that their callers know.
//!
//! It reads text, not what the compiler knows: a name that a macro makes is taken for defined where the macro is called, and a call is by its name
//! alone, from any file that arrows lead from to the type. A method outside the file of its type needs a name that no other method has, then.

use std::collections::{BTreeMap, BTreeSet};

/// An arrow: the file that names, the file that defines, and what is named.
pub type Arrow = (String, String, String);

/// What draws arrows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// Names of items.
    Names,
    /// Names of items, and calls of methods.
    NamesAndCalls,
}

/// The circles among `files`: of each, its arrows. A file is its path below the folder `src` of one crate, and its text.
pub fn circles(files: &[(String, String)], by: By) -> Vec<Vec<Arrow>> {
    let modules: BTreeMap<Vec<String>, Module> = files
        .iter()
        .filter(|(path, _)| !is_test(path))
        .map(|(path, text)| (place(path), Module::read(path, text)))
        .collect();
    let graph = Graph { modules: &modules };
    let mut arrows = graph.arrows();
    if by == By::NamesAndCalls {
        arrows.extend(graph.calls(&arrows));
    }
    let mut circles = Vec::new();
    let mut seen = BTreeSet::new();
    for module in modules.values() {
        let from = &module.path;
        if seen.contains(from) {
            continue;
        }
        let together: BTreeSet<&String> =
            reached(&arrows, from).into_iter().filter(|to| reached(&arrows, to).contains(from)).collect();
        seen.extend(together.iter().map(|path| (*path).clone()));
        if together.len() > 1 {
            circles
                .push(arrows.iter().filter(|a| together.contains(&a.0) && together.contains(&a.1)).cloned().collect());
        }
    }
    circles
}

/// All files that arrows lead to from one.
fn reached<'a>(arrows: &'a [Arrow], from: &str) -> BTreeSet<&'a String> {
    let mut all: BTreeSet<&String> = BTreeSet::new();
    let mut next = vec![from];
    while let Some(at) = next.pop() {
        for (_, to, _) in arrows.iter().filter(|a| a.0 == at) {
            if all.insert(to) {
                next.push(to);
            }
        }
    }
    all
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path == "tests.rs" || path.contains("/tests/") || path.starts_with("tests/")
}

/// The path of a module: `simt/mod.rs` is `simt`, `lib.rs` the root.
fn place(path: &str) -> Vec<String> {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let mut parts: Vec<String> = stem.split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// A name of a `use`: the path it stands for, the name it gets (`*` for all names), and whether others may see it.
struct Import {
    path: Vec<String>,
    name: String,
    is_public: bool,
}

/// What a file says of names.
#[derive(Default)]
struct Module {
    path: String,
    imports: Vec<Import>,
    /// Names of items, and all names inside calls of macros that may define some.
    defines: BTreeSet<String>,
    /// Paths in code, and single names.
    uses: BTreeSet<Vec<String>>,
    /// Methods in blocks `impl Type`: the type, the name, and whether others may see it.
    methods: Vec<(String, String, bool)>,
    /// Names of methods that are called.
    calls: BTreeSet<String>,
}

impl Module {
    fn read(path: &str, text: &str) -> Module {
        let tokens = tokens(text);
        let mut module = Module { path: path.to_owned(), ..Module::default() };
        let mut depth = 0;
        // The type of the `impl` that is open.
        let mut owner = None;
        let mut at = 0;
        while at < tokens.len() {
            let token = tokens[at].as_str();
            let after = |n: usize| tokens.get(at + n).map_or("", String::as_str);
            match token {
                "{" => depth += 1,
                "}" => depth -= 1,
                // A module of tests.
                "#" if tokens[at..]
                    .starts_with(&["#", "[", "cfg", "(", "test", ")", "]", "mod"].map(str::to_owned)) =>
                {
                    at = end_of_item(&tokens, at);
                    continue;
                }
                "use" => {
                    let is_public = at > 0 && matches!(tokens[at - 1].as_str(), "pub" | ")");
                    let end = at + tokens[at..].iter().position(|t| t == ";").unwrap_or(0);
                    tree(&tokens[at + 1..end], &[], &mut |path, name| {
                        module.imports.push(Import { path, name, is_public });
                    });
                    at = end;
                    continue;
                }
                "impl" if depth == 0 => owner = type_of_impl(&tokens[at + 1..]),
                "fn" if depth == 1 => {
                    if let Some(owner) = &owner {
                        let is_public = matches!(tokens[at - 1].as_str(), "pub" | ")");
                        module.methods.push((String::clone(owner), after(1).to_owned(), is_public));
                    }
                }
                "." if is_word(after(1)) && matches!(after(2), "(" | "::") => {
                    module.calls.insert(after(1).to_owned());
                }
                "fn" | "struct" | "enum" | "trait" | "const" | "static" | "type" if depth == 0 => {
                    module.defines.insert(after(1).to_owned());
                }
                "macro_rules" => {
                    module.defines.insert(after(2).to_owned());
                }
                _ if depth == 0 && after(1) == "!" && after(2) == "{" => {
                    let end = end_of_item(&tokens, at);
                    module.defines.extend(tokens[at..end].iter().filter(|t| is_word(t)).cloned());
                }
                _ => {}
            }
            if is_word(token) && (at == 0 || tokens[at - 1] != "::" && tokens[at - 1] != ".") {
                let mut name = vec![token.to_owned()];
                while after(2 * name.len() - 1) == "::" && is_word(after(2 * name.len())) {
                    name.push(after(2 * name.len()).to_owned());
                }
                // A small letter alone may be a variable, unless it is called.
                let is_item = name.len() > 1 || token.starts_with(char::is_uppercase) || matches!(after(1), "(" | "!");
                if is_item {
                    if name.len() > 1 {
                        module.calls.extend(name.last().cloned());
                    }
                    module.uses.insert(name);
                }
            }
            at += 1;
        }
        module
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The type of a block `impl Type { … }`, given what is after `impl`; none if it is of a trait.
fn type_of_impl(tokens: &[String]) -> Option<String> {
    let head = &tokens[..tokens.iter().position(|t| t == "{")?];
    let mut depth = 0;
    let mut name = None;
    for token in head {
        match token.as_str() {
            "<" => depth += 1,
            ">" => depth -= 1,
            "for" if depth == 0 => return None,
            "where" if depth == 0 => break,
            _ if depth == 0 && is_word(token) => name = Some(token.clone()),
            _ => {}
        }
    }
    name
}

/// The place after the item that starts at `at`: after its braces, or its semicolon.
fn end_of_item(tokens: &[String], at: usize) -> usize {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().skip(at) {
        match token.as_str() {
            "{" => depth += 1,
            "}" if depth == 1 => return i + 1,
            "}" => depth -= 1,
            ";" if depth == 0 => return i + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Reports each name of the tree of a `use`.
fn tree(tokens: &[String], before: &[String], found: &mut impl FnMut(Vec<String>, String)) {
    let mut depth = 0;
    for part in tokens.split(|t| {
        depth += i32::from(t == "{") - i32::from(t == "}");
        depth == 0 && t == ","
    }) {
        let mut path = before.to_vec();
        let mut rest = part;
        while let [word, next, after @ ..] = rest
            && next == "::"
        {
            path.push(word.clone());
            rest = after;
        }
        match rest {
            [open, inner @ .., close] if open == "{" && close == "}" => tree(inner, &path, found),
            [this] | [this, ..] if this == "self" => found(path.clone(), path.last().cloned().unwrap_or_default()),
            [star] if star == "*" => found(path, star.clone()),
            [name] => {
                path.push(name.clone());
                found(path, name.clone());
            }
            [name, r#as, alias] if r#as == "as" => {
                path.push(name.clone());
                found(path, alias.clone());
            }
            _ => {}
        }
    }
}

/// The words and marks of Rust text, without comments, texts and characters.
fn tokens(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if let Some(hashes) = raw(rest) {
            let end = format!("\"{}", "#".repeat(hashes));
            let open = 2 + hashes;
            rest[open..].find(&end).map_or(rest.len(), |at| open + at + end.len())
        } else if c == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |at| at + 2)
        } else if c == '\'' {
            // A character, or the mark of a lifetime.
            match rest[1..].chars().next() {
                Some('\\') => rest[3..].find('\'').map_or(rest.len(), |at| at + 4),
                Some(x) if rest[1 + x.len_utf8()..].starts_with('\'') => 2 + x.len_utf8(),
                _ => 1,
            }
        } else if c.is_alphanumeric() || c == '_' {
            let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            out.push(rest[..len].to_owned());
            len
        } else if rest.starts_with("::") {
            out.push("::".to_owned());
            2
        } else {
            if !c.is_whitespace() {
                out.push(c.to_string());
            }
            c.len_utf8()
        };
        rest = &rest[len..];
    }
    out
}

/// Number of marks of a raw text that starts here.
fn raw(text: &str) -> Option<usize> {
    let after = text.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

struct Graph<'a> {
    modules: &'a BTreeMap<Vec<String>, Module>,
}

impl Graph<'_> {
    fn arrows(&self) -> Vec<Arrow> {
        let mut arrows = BTreeSet::new();
        for (at, module) in self.modules {
            let mut add = |to: Option<Vec<String>>, name: &str| {
                if let Some(to) = to.filter(|to| to != at) {
                    arrows.insert((module.path.clone(), self.modules[&to].path.clone(), name.to_owned()));
                }
            };
            for import in &module.imports {
                let Some(path) = self.absolute(at, &import.path) else { continue };
                if import.name == "*" {
                    let Some(from) = self.resolve(&[], &path, 0) else { continue };
                    if import.is_public || !self.is_folder(&from) {
                        if !import.is_public {
                            add(Some(from), "*");
                        }
                        continue;
                    }
                    // All names of a folder: those that are used.
                    for name in module.uses.iter().filter(|name| self.has(&from, &name[0], 0)) {
                        add(self.resolve(&from, name, 0), &name[0]);
                    }
                } else if !import.is_public || module.uses.iter().any(|u| u[0] == import.name) {
                    add(self.resolve(&[], &path, 0), &import.name);
                }
            }
            for name in &module.uses {
                if name.len() > 1
                    && let Some(path) = self.absolute(at, name)
                {
                    add(self.resolve(&[], &path, 0), &name.join("::"));
                }
            }
        }
        arrows.into_iter().collect()
    }

    /// Arrows to methods that are not in the file of their type, given those of names.
    fn calls(&self, arrows: &[Arrow]) -> BTreeSet<Arrow> {
        let mut out = BTreeSet::new();
        for (at, module) in self.modules {
            for (owner, name, is_public) in &module.methods {
                let Some(home) = self.resolve(at, std::slice::from_ref(owner), 0) else { continue };
                let home = &self.modules[&home];
                // What is private is seen in the file, and in the modules of its folder.
                if home.path == module.path || !home.defines.contains(owner) || !is_public && !self.is_folder(at) {
                    continue;
                }
                for caller in self.modules.values().filter(|c| c.path != module.path && c.calls.contains(name)) {
                    if caller.path == home.path || reached(arrows, &caller.path).contains(&home.path) {
                        out.insert((caller.path.clone(), module.path.clone(), format!("{owner}::{name}")));
                    }
                }
            }
        }
        out
    }

    fn is_folder(&self, at: &[String]) -> bool {
        self.modules.keys().any(|k| k.len() > at.len() && k.starts_with(at))
    }

    /// The same path from the root; none if it leads to another crate or is no path of modules.
    fn absolute(&self, at: &[String], path: &[String]) -> Option<Vec<String>> {
        let mut from = at.to_vec();
        let mut rest = path;
        match path.first().map(String::as_str) {
            Some("crate") => {
                from.clear();
                rest = &path[1..];
            }
            Some("self") => rest = &path[1..],
            Some("super") => {}
            Some(first) => {
                from.push(first.to_owned());
                let is_module = self.modules.contains_key(&from);
                from.pop();
                if !is_module {
                    return None;
                }
            }
            None => return None,
        }
        while rest.first().is_some_and(|s| s == "super") {
            from.pop();
            rest = &rest[1..];
        }
        from.extend_from_slice(rest);
        Some(from)
    }

    /// Whether a module has a name: an item, a module, or an import.
    fn has(&self, at: &[String], name: &str, turns: usize) -> bool {
        let Some(module) = self.modules.get(at) else { return false };
        let mut child = at.to_vec();
        child.push(name.to_owned());
        module.defines.contains(name)
            || self.modules.contains_key(&child)
            || module.imports.iter().any(|i| {
                i.name == name
                    || i.name == "*"
                        && turns < 8
                        && self.absolute(at, &i.path).is_some_and(|path| {
                            self.resolve(&[], &path, turns + 1).is_some_and(|to| self.has(&to, name, turns + 1))
                        })
            })
    }

    /// The module that defines what a path from `at` names; none if it comes from another crate.
    fn resolve(&self, at: &[String], path: &[String], turns: usize) -> Option<Vec<String>> {
        let Some((name, rest)) = path.split_first() else { return Some(at.to_vec()) };
        let mut child = at.to_vec();
        child.push(name.clone());
        if self.modules.contains_key(&child) {
            return self.resolve(&child, rest, turns);
        }
        let module = self.modules.get(at)?;
        if module.defines.contains(name) || turns > 8 {
            return Some(at.to_vec());
        }
        if let Some(import) = module.imports.iter().find(|i| i.name == *name) {
            let path = self.absolute(at, &import.path)?;
            return self.resolve(&[], &[path, rest.to_vec()].concat(), turns + 1);
        }
        for all in module.imports.iter().filter(|i| i.name == "*") {
            let Some(path) = self.absolute(at, &all.path) else { continue };
            if let Some(from) = self.resolve(&[], &path, turns + 1)
                && self.has(&from, name, turns + 1)
            {
                return self.resolve(&from, &[std::slice::from_ref(name), rest].concat(), turns + 1);
            }
        }
        Some(at.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrow, By, circles};

    fn arrows(files: &[(&str, &str)]) -> Vec<Vec<Arrow>> {
        let files: Vec<_> = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        circles(&files, By::NamesAndCalls)
    }

    fn arrow(from: &str, to: &str, what: &str) -> Arrow {
        (from.to_owned(), to.to_owned(), what.to_owned())
    }

    #[test]
    fn two_files_that_name_each_other() {
        let found = arrows(&[
            ("lib.rs", "mod a;\nmod b;\npub use a::A;"),
            ("a.rs", "use crate::b::{self, B};\npub struct A(B);"),
            ("b.rs", "pub struct B;\nfn f() -> super::A { make() }"),
        ]);
        let circle = [arrow("a.rs", "b.rs", "B"), arrow("a.rs", "b.rs", "b"), arrow("b.rs", "a.rs", "super::A")];
        assert_eq!(found, [circle]);
    }

    #[test]
    fn a_way_down_is_no_circle() {
        let none: [Vec<Arrow>; 0] = [];
        let found = arrows(&[
            // What a folder re-exports is no arrow of the folder, and leads to where it is defined.
            ("lib.rs", "pub mod x;"),
            ("x/mod.rs", "mod a;\nmod b;\npub use a::*;\npub use b::g;\npub const C: u32 = 1;"),
            ("x/a.rs", "pub fn f() -> u32 { super::C }\n#[cfg(test)]\nmod tests { use super::super::g; }"),
            ("x/b.rs", "use super::*;\n// crate::top::t\npub fn g() -> u32 { f() + \"crate::top::t\".len() }"),
            ("top.rs", "use crate::x::{f, g};\npub fn t() { f(); g(); }"),
        ]);
        assert_eq!(found, none);
    }

    #[test]
    fn a_folder_that_uses_its_own_files() {
        let found = arrows(&[
            ("lib.rs", "mod x;"),
            ("x/mod.rs", "mod a;\npub fn m() { a::f() }"),
            ("x/a.rs", "pub fn f() { super::m() }"),
        ]);
        let circle = [arrow("x/a.rs", "x/mod.rs", "super::m"), arrow("x/mod.rs", "x/a.rs", "a::f")];
        assert_eq!(found, [circle]);
    }

    #[test]
    fn methods_outside_the_file_of_their_type() {
        let asm = ("asm.rs", "pub struct Asm(u32);\nimpl Asm { pub fn word(&mut self) { self.0 += 1 } }");
        let low =
            "use super::asm::Asm;\nimpl Asm {\n    pub fn low(&mut self) { self.word() }\n    fn own(&self) {}\n}";
        // Each is above the one before, by calls of methods alone.
        let high = "use super::asm::Asm;\nimpl<'a> Asm {\n    pub(crate) fn high(&mut self) { self.low() }\n}";
        let one_way = [("lib.rs", "mod asm;\nmod low;\nmod high;"), asm, ("low.rs", low), ("high.rs", high)];
        let none: [Vec<Arrow>; 0] = [];
        assert_eq!(arrows(&one_way), none);
        // The lower file calls the higher one; a private method, a trait's and a name that only looks alike are no calls of it.
        let back = "use super::asm::Asm;\nimpl Asm {\n    pub fn low(&mut self) { Asm::high(self) }\n}";
        let found = arrows(&[one_way[0], asm, ("low.rs", back), ("high.rs", high)]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains(&arrow("low.rs", "high.rs", "Asm::high")));
        assert!(found[0].contains(&arrow("high.rs", "low.rs", "Asm::low")));
        let alike = "impl std::ops::Add for super::asm::Asm { fn low(&self) {} }\npub fn f(own: u32) { high(own) }";
        assert_eq!(arrows(&[one_way[0], asm, ("low.rs", alike), ("high.rs", high)]), none);
        // The file of the type calls a method from elsewhere.
        let asm = ("asm.rs", "pub struct Asm;\nimpl Asm { pub fn word(&mut self) { self.low() } }");
        assert_eq!(arrows(&[one_way[0], asm, ("low.rs", low)])[0].len(), 2);
    }

    #[test]
    fn names_that_a_macro_makes() {
        let found = arrows(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;"),
            ("a.rs", "ids! { Reg Block }\nuse crate::c::C;"),
            ("b.rs", "use crate::a::Reg;"),
            ("c.rs", "pub struct C;\nuse crate::b::B;"),
        ]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].len(), 3);
    }
}
