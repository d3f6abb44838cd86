//! Comparison of results with what is expected of them.
//!
//! Without a tolerance two elements are the same if their bits are, or if both are NaN. With one, numbers are compared: zeros are equal
//! whatever their signs, an infinity equals only itself and NaN only NaN; everything else must be within `abs + rel * |expected|`, or within
//! so many units in the last place.

use handloom_ir::num::format::{Format, widen};
use handloom_ir::types::ScalarType;
use serde::Serialize;

use crate::elements::{Element, Kind, bits, format_of, integer};
use crate::report::{Format as Output, Out};

/// What may differ.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Tolerance {
    #[serde(skip_serializing_if = "Option::is_none")]
    abs: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rel: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ulp: Option<u64>,
}

impl Tolerance {
    /// A tolerance for elements of a type.
    ///
    /// # Errors
    /// What was expected.
    pub fn new(abs: Option<f64>, rel: Option<f64>, ulp: Option<u64>, element: &Element) -> Result<Tolerance, String> {
        for (name, value) in [("abs", abs), ("rel", rel)] {
            if let Some(n) = value.filter(|n| !n.is_finite() || *n < 0.0) {
                return Err(format!("`{name}` is {n}: expected a number of 0 or more"));
            }
        }
        let is_float = match element.kind {
            Kind::Number(ty) => format_of(ty).is_some(),
            Kind::Bool => false,
            Kind::Complex(_) => true,
        };
        if ulp.is_some() && !is_float {
            return Err(format!("`ulp` is for floats, and the elements are {}; `abs` is for any number", element.name));
        }
        Ok(Tolerance { abs, rel, ulp })
    }

    fn is_some(&self) -> bool {
        self.abs.is_some() || self.rel.is_some() || self.ulp.is_some()
    }

    /// `abs 0.001, rel 0.01`; empty for none.
    fn describe(&self) -> String {
        let words = [
            self.abs.map(|n| format!("abs {n}")),
            self.rel.map(|n| format!("rel {n}")),
            self.ulp.map(|n| format!("{n} ulp")),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// How far two numbers are apart.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Distance {
    /// Whether it is too far.
    fails: bool,
    /// The difference; NaN where there is none.
    difference: f64,
    /// Units in the last place, for floats.
    ulp: Option<u64>,
}

/// An element that is not as expected.
#[derive(Clone, PartialEq, Debug)]
struct Row {
    /// Its number.
    at: usize,
    distance: Distance,
}

/// Rows that are shown.
const SHOWN: usize = 10;

/// What a comparison found.
#[derive(Debug)]
pub struct Outcome {
    elements: usize,
    failed: usize,
    /// The worst ones, the worst first.
    worst: Vec<Row>,
}

/// Compares elements. Both lists have the same length.
pub fn compare(element: &Element, got: &[u8], want: &[u8], tolerance: &Tolerance) -> Outcome {
    let size = element.bytes();
    let mut outcome = Outcome { elements: want.len() / size, failed: 0, worst: Vec::new() };
    for (at, (a, b)) in got.chunks_exact(size).zip(want.chunks_exact(size)).enumerate() {
        if a == b {
            continue;
        }
        let distance = distance(element, a, b, tolerance);
        if !distance.fails {
            continue;
        }
        outcome.failed += 1;
        let place = outcome.worst.partition_point(|r| !is_worse(&distance, &r.distance, tolerance));
        if place < SHOWN {
            outcome.worst.insert(place, Row { at, distance });
            outcome.worst.truncate(SHOWN);
        }
    }
    outcome
}

/// Numbers that cannot be subtracted come first, then the larger difference by the measure that was asked for.
fn is_worse(a: &Distance, b: &Distance, tolerance: &Tolerance) -> bool {
    let rank = |d: &Distance| match d.ulp.filter(|_| tolerance.ulp.is_some()) {
        _ if !d.difference.is_finite() => f64::INFINITY,
        Some(ulp) => ulp as f64,
        None => d.difference.abs(),
    };
    rank(a) > rank(b)
}

fn distance(element: &Element, got: &[u8], want: &[u8], tolerance: &Tolerance) -> Distance {
    match element.kind {
        Kind::Number(ty) => number(ty, got, want, tolerance),
        Kind::Bool => integers(i128::from(bits(got)), i128::from(bits(want)), tolerance),
        Kind::Complex(part) => {
            let half = got.len() / 2;
            let real = number(part, &got[..half], &want[..half], tolerance);
            let imaginary = number(part, &got[half..], &want[half..], tolerance);
            let (mut worse, other) =
                if is_worse(&imaginary, &real, tolerance) { (imaginary, real) } else { (real, imaginary) };
            worse.fails |= other.fails;
            worse
        }
    }
}

fn number(ty: ScalarType, got: &[u8], want: &[u8], tolerance: &Tolerance) -> Distance {
    match format_of(ty) {
        Some(format) => floats(format, bits(got), bits(want), tolerance),
        None => integers(integer(ty, got), integer(ty, want), tolerance),
    }
}

fn integers(got: i128, want: i128, tolerance: &Tolerance) -> Distance {
    let difference = (got - want) as f64;
    let most = tolerance.abs.unwrap_or(0.0) + tolerance.rel.unwrap_or(0.0) * (want as f64).abs();
    Distance { fails: difference.abs() > most, difference, ulp: None }
}

fn floats(format: &Format, got: u64, want: u64, tolerance: &Tolerance) -> Distance {
    let (a, b) = (widen(format, got), widen(format, want));
    let difference = a - b;
    if a.is_nan() || b.is_nan() {
        return Distance { fails: a.is_nan() != b.is_nan(), difference: f64::NAN, ulp: None };
    }
    let ulp = steps(format, got).abs_diff(steps(format, want));
    let same = if tolerance.is_some() { a == b } else { got == want };
    if same || a.is_infinite() || b.is_infinite() {
        return Distance { fails: !same, difference: if same { 0.0 } else { difference }, ulp: Some(ulp) };
    }
    let most = match (tolerance.abs, tolerance.rel) {
        (None, None) => None,
        (abs, rel) => Some(abs.unwrap_or(0.0) + rel.unwrap_or(0.0) * b.abs()),
    };
    let within = most.is_some_and(|most| difference.abs() <= most) || tolerance.ulp.is_some_and(|most| ulp <= most);
    Distance { fails: !within, difference, ulp: Some(ulp) }
}

/// Place of a float among all of its format: neighbours are 1 apart, and the zeros are one.
fn steps(format: &Format, bits: u64) -> i64 {
    let sign = 1_u64 << format.sign;
    let code = (bits & (sign - 1)).cast_signed();
    if bits & sign == 0 { code } else { -code }
}

/// What was compared.
pub struct Compared<'a> {
    /// Name of the buffer or variable.
    pub name: &'a str,
    /// Type of the elements.
    pub element: &'static Element,
    /// Shape of what is expected.
    pub shape: &'a [u64],
    /// What may differ.
    pub tolerance: Tolerance,
    /// What was found.
    pub got: &'a [u8],
    /// What was expected.
    pub want: &'a [u8],
}

#[derive(Serialize)]
struct Object<'a> {
    expect: &'a str,
    status: &'static str,
    #[serde(rename = "type")]
    ty: &'a str,
    elements: usize,
    failed: usize,
    tolerance: Tolerance,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    worst: Vec<Worst>,
}

#[derive(Serialize)]
struct Worst {
    index: Vec<u64>,
    got: String,
    expected: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ulp: Option<u64>,
}

impl Compared<'_> {
    /// Compares and reports. Returns whether all is as expected.
    pub fn report(&self, out: &mut Out) -> bool {
        let outcome = compare(self.element, self.got, self.want, &self.tolerance);
        let ok = outcome.failed == 0;
        match out.format {
            Output::Json => out.json(&Object {
                expect: self.name,
                status: if ok { "ok" } else { "failed" },
                ty: self.element.name,
                elements: outcome.elements,
                failed: outcome.failed,
                tolerance: self.tolerance,
                worst: outcome.worst.iter().map(|r| self.worst(r)).collect(),
            }),
            Output::Human if ok => {
                let within = self.tolerance.describe();
                let within = if within.is_empty() { within } else { format!(" within {within}") };
                out.line(&format!("{}: {} {} as expected{within}", self.name, outcome.elements, self.element.name));
            }
            Output::Human => out.say(&self.table(&outcome)),
        }
        ok
    }

    fn worst(&self, row: &Row) -> Worst {
        let size = self.element.bytes();
        let show = |data: &[u8]| self.element.show(&data[row.at * size..][..size]);
        let difference = row.distance.difference;
        Worst {
            index: self.index(row.at),
            got: show(self.got),
            expected: show(self.want),
            difference: Some(difference).filter(|d| d.is_finite()),
            ulp: row.distance.ulp,
        }
    }

    /// The place of an element in the shape.
    fn index(&self, at: usize) -> Vec<u64> {
        let mut rest = u64::try_from(at).unwrap_or(u64::MAX);
        let mut index: Vec<u64> = Vec::new();
        for n in self.shape.iter().rev() {
            index.push(rest % n.max(&1));
            rest /= n.max(&1);
        }
        index.reverse();
        index
    }

    fn table(&self, outcome: &Outcome) -> String {
        let within = self.tolerance.describe();
        let within = if within.is_empty() { "exactly".to_owned() } else { format!("within {within}") };
        let s = if outcome.elements == 1 { "" } else { "s" };
        let (failed, all) = (outcome.failed, outcome.elements);
        let has_ulp = outcome.worst.iter().any(|r| r.distance.ulp.is_some());
        let mut rows = vec![["index", "got", "expected", "difference", "ulp"].map(str::to_owned)];
        for row in &outcome.worst {
            let w = self.worst(row);
            let index: Vec<String> = w.index.iter().map(u64::to_string).collect();
            let difference = w.difference.map_or("-".into(), short);
            let ulp = w.ulp.map_or("-".into(), |n| n.to_string());
            rows.push([format!("[{}]", index.join(", ")), w.got, w.expected, difference, ulp]);
        }
        let columns = if has_ulp { 5 } else { 4 };
        let widths: Vec<usize> =
            (0..columns).map(|k| rows.iter().map(|r| r[k].chars().count()).max().unwrap_or(0)).collect();
        let mut text = format!(
            "expectation failed: `{}`: {failed} of {all} element{s} {} not as expected ({within})",
            self.name,
            if failed == 1 { "is" } else { "are" }
        );
        for row in rows {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}", width = *width)).collect();
            text.push_str("\n  ");
            text.push_str(&cells.join("  "));
        }
        if failed > outcome.worst.len() {
            text.push_str(&format!("\n  ... and {} more", failed - outcome.worst.len()));
        }
        text
    }
}

/// A difference with the digits that matter.
fn short(d: f64) -> String {
    let plain = format!("{d}");
    if plain.len() <= 10 { plain } else { format!("{d:.3e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(ty: &str, values: &[&str]) -> (&'static Element, Vec<u8>) {
        let element = Element::named(ty).unwrap();
        let mut bytes = Vec::new();
        values.iter().for_each(|v| element.parse(v, &mut bytes).unwrap());
        (element, bytes)
    }

    fn failed(ty: &str, got: &[&str], want: &[&str], abs: Option<f64>, rel: Option<f64>, ulp: Option<u64>) -> usize {
        let ((element, got), (_, want)) = (list(ty, got), list(ty, want));
        compare(element, &got, &want, &Tolerance::new(abs, rel, ulp, element).unwrap()).failed
    }

    #[test]
    fn without_a_tolerance_bits_count_and_nan_is_nan() {
        assert_eq!(failed("f32", &["1", "nan", "-inf"], &["1", "nan", "-inf"], None, None, None), 0);
        assert_eq!(failed("f32", &["0", "nan", "1"], &["-0", "1", "nan"], None, None, None), 3);
        assert_eq!(failed("f32", &["0f7fc00001"], &["0f7fffffff"], None, None, None), 0);
        assert_eq!(failed("u64", &["18446744073709551615"], &["18446744073709551614"], None, None, None), 1);
        assert_eq!(failed("bool", &["1"], &["0"], None, None, None), 1);
    }

    #[test]
    fn tolerances_are_absolute_relative_or_in_units() {
        assert_eq!(failed("f32", &["1.5", "0"], &["1", "-0"], Some(0.5), None, None), 0);
        assert_eq!(failed("f32", &["1.5"], &["1"], Some(0.25), Some(0.125), None), 1);
        // As NumPy has it: the two are added.
        assert_eq!(failed("f32", &["1.5"], &["1"], Some(0.25), Some(0.25), None), 0);
        assert_eq!(failed("f64", &["110"], &["100"], None, Some(0.1), None), 0);
        assert_eq!(failed("s32", &["-5", "3"], &["-3", "3"], Some(1.0), None, None), 1);
        // 0f3f800000 and two steps further.
        assert_eq!(failed("f32", &["0f3f800002"], &["1"], None, None, Some(1)), 1);
        assert_eq!(failed("f32", &["0f3f800002"], &["1"], None, None, Some(2)), 0);
        // The smallest numbers of both signs are two steps apart.
        assert_eq!(failed("f32", &["0f80000001"], &["0f00000001"], None, None, Some(2)), 0);
        assert_eq!(failed("bf16", &["1.0078125"], &["1"], None, None, Some(1)), 0);
        assert_eq!(failed("e4m3", &["1.25"], &["1"], None, None, Some(1)), 1);
        // Either of the two is enough.
        assert_eq!(failed("f32", &["1.5", "0f3f800001"], &["1", "1"], Some(0.5), None, Some(1)), 0);
    }

    #[test]
    fn what_is_no_number_is_never_near() {
        for (got, want) in [("nan", "1"), ("1", "nan"), ("inf", "-inf"), ("3.4028235e38", "inf"), ("inf", "1")] {
            assert_eq!(failed("f32", &[got], &[want], Some(1e30), Some(1e30), Some(5)), 1, "{got} {want}");
        }
        assert_eq!(failed("f32", &["nan", "inf"], &["nan", "inf"], Some(0.0), None, None), 0);
    }

    #[test]
    fn the_worst_come_first() {
        let ((element, got), (_, want)) = (list("f32", &["1", "9", "nan", "3"]), list("f32", &["1", "1", "1", "1"]));
        let tolerance = Tolerance::default();
        let outcome = compare(element, &got, &want, &tolerance);
        assert_eq!(outcome.worst.iter().map(|r| r.at).collect::<Vec<_>>(), [2, 1, 3]);
        let compared = Compared { name: "y", element, shape: &[2, 2], tolerance, got: &got, want: &want };
        let table = compared.table(&outcome);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "expectation failed: `y`: 3 of 4 elements are not as expected (exactly)");
        assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>(), ["index", "got", "expected", "difference", "ulp"]);
        assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), ["[1,", "0]", "NaN", "1", "-", "-"]);
        assert_eq!(lines[3].split_whitespace().collect::<Vec<_>>(), ["[0,", "1]", "9", "1", "8", "26214400"]);
    }

    #[test]
    fn tolerances_that_make_no_sense_are_told() {
        let f32s = Element::named("f32").unwrap();
        assert!(Tolerance::new(Some(-1.0), None, None, f32s).unwrap_err().contains("`abs` is -1"));
        assert!(Tolerance::new(None, Some(f64::INFINITY), None, f32s).is_err());
        assert!(Tolerance::new(None, None, Some(1), Element::named("u8").unwrap()).unwrap_err().contains("for floats"));
    }
}
