//! Plots as SVG: axes with round ticks, points, lines and bands. Colours are those of the page (`--s0` and on), and each series has a mark of its own, so that
//! plots can be read without colours.

use std::fmt::Write;

use handloom_profile::escape;

/// Colours and marks of series.
pub const SERIES: usize = 6;

/// A range of numbers along a side of a plot.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    is_log: bool,
    /// Where it begins and ends in the picture.
    from: f64,
    to: f64,
}

impl Axis {
    /// One that holds all of a list, with some room at its ends. A logarithmic one is for numbers above 0.
    pub fn over(list: impl Iterator<Item = f64>, is_log: bool, (from, to): (f64, f64)) -> Axis {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for n in list {
            (low, high) = (low.min(n), high.max(n));
        }
        if low > high {
            (low, high) = (1.0, 1.0);
        }
        if is_log {
            let room = (high / low).powf(0.06).max(1.2);
            (low, high) = (low / room, high * room);
        } else {
            let room = ((high - low) * 0.06).max(high.abs() * 0.01).max(f64::MIN_POSITIVE);
            (low, high) = (low - room, high + room);
        }
        Axis { low, high, is_log, from, to }
    }

    /// Where a number lies.
    pub fn at(&self, n: f64) -> f64 {
        let share = if self.is_log {
            (n / self.low).ln() / (self.high / self.low).ln()
        } else {
            (n - self.low) / (self.high - self.low)
        };
        self.from + (self.to - self.from) * share.clamp(0.0, 1.0)
    }

    /// Round numbers on it, from low to high: about six, or powers of `base` where it is logarithmic and they are not too many.
    pub fn ticks(&self, base: f64) -> Vec<f64> {
        if self.is_log {
            let decades = (self.high / self.low).ln() / base.ln();
            if decades >= 1.8 {
                let step = (decades / 8.0).ceil().max(1.0);
                let first = (self.low.ln() / base.ln() / step).ceil() * step;
                let all = std::iter::successors(Some(first), |e| Some(e + step)).map(|e| base.powf(e));
                return all.take_while(|n| *n <= self.high).collect();
            }
        }
        let rough = (self.high - self.low) / 5.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].iter().map(|f| f * power).find(|s| *s >= rough).unwrap_or(rough);
        let first = (self.low / step).ceil();
        let all = std::iter::successors(Some(first), |n| Some(n + 1.0)).map(|n| n * step);
        all.take_while(|n| *n <= self.high).collect()
    }
}

/// A picture in the making.
pub struct Plot {
    body: String,
    width: f64,
    height: f64,
    label: String,
}

impl Plot {
    /// An empty one, in units of a page; `label` says what it shows to those who do not see it.
    pub fn new(width: f64, height: f64, label: &str) -> Plot {
        Plot { body: String::new(), width, height, label: label.to_owned() }
    }

    /// Words. `class` has `n` for those that end at the place, `m` for those in the middle of it.
    pub fn text(&mut self, (x, y): (f64, f64), class: &str, text: &str) {
        let _ = writeln!(self.body, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escape(text));
    }

    /// A line from place to place.
    pub fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ = writeln!(
            self.body,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    /// Lines through places, or the area within them.
    pub fn path(&mut self, class: &str, places: &[(f64, f64)], is_area: bool) {
        let mut d = String::new();
        for (i, (x, y)) in places.iter().enumerate() {
            let _ = write!(d, "{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' });
        }
        let end = if is_area { "Z" } else { "" };
        let _ = writeln!(self.body, "<path class=\"{class}\" d=\"{d}{end}\"/>");
    }

    /// A rectangle.
    pub fn bar(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let (width, height) = (width.max(0.5), height.max(0.5));
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    }

    /// The mark of a series, with what a pointer over it shows.
    pub fn mark(&mut self, series: usize, (x, y): (f64, f64), radius: f64, title: &str) {
        let class = format!("mark s{}", series % SERIES);
        let title = if title.is_empty() { String::new() } else { format!("<title>{}</title>", escape(title)) };
        let r = radius;
        let drawn = match series % 4 {
            0 => format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\">{title}</circle>"),
            1 => {
                let (left, top, side) = (x - r, y - r, 2.0 * r);
                format!(
                    "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{side}\" height=\"{side}\">{title}</rect>"
                )
            }
            n => {
                let up = if n == 2 { -r } else { r };
                let (a, b, c) = (y + up * 1.2, y - up * 0.8, r * 1.1);
                format!(
                    "<path class=\"{class}\" d=\"M{x:.1} {a:.1}L{:.1} {b:.1}L{:.1} {b:.1}Z\">{title}</path>",
                    x + c,
                    x - c
                )
            }
        };
        self.body.push_str(&drawn);
        self.body.push('\n');
    }

    /// A scale below the picture, with lines up to `top`.
    pub fn below(&mut self, axis: &Axis, (top, bottom): (f64, f64), ticks: &[(f64, String)], title: &str) {
        for (n, text) in ticks {
            let x = axis.at(*n);
            self.line("grid", (x, top), (x, bottom));
            self.text((x, bottom + 16.0), "m", text);
        }
        self.line("axis", (axis.from, bottom), (axis.to, bottom));
        self.text((axis.to, bottom + 34.0), "n soft", title);
    }

    /// A scale to the left, with lines to `right`.
    pub fn left(&mut self, axis: &Axis, (left, right): (f64, f64), ticks: &[(f64, String)], title: &str) {
        for (n, text) in ticks {
            let y = axis.at(*n);
            self.line("grid", (left, y), (right, y));
            self.text((left - 8.0, y + 4.0), "n", text);
        }
        self.text((left, axis.to - 10.0), "soft", title);
    }

    /// The picture as a sign in a line of text.
    pub fn icon(&self) -> String {
        let Plot { body, width, height, .. } = self;
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" aria-hidden=\"true\">{body}</svg>"
        )
    }

    /// The picture.
    pub fn svg(&self) -> String {
        let Plot { body, width, height, label } = self;
        format!(
            "<div class=\"wide plot\"><svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\n{body}</svg></div>",
            escape(label)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let axis = |list: &[f64], is_log| Axis::over(list.iter().copied(), is_log, (0.0, 100.0));
        assert_eq!(axis(&[1.0, 6.0], false).ticks(10.0), [2.0, 4.0, 6.0]);
        assert_eq!(
            axis(&[1024.0, 65536.0], true).ticks(2.0),
            [1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0]
        );
        assert_eq!(axis(&[1.0, 1e6], true).ticks(10.0), [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6]);
        // One number, and none.
        assert!(!axis(&[5.0], false).ticks(10.0).is_empty() && !axis(&[5.0], true).ticks(2.0).is_empty());
        assert!(!axis(&[], false).ticks(10.0).is_empty());
        assert!(axis(&[0.0], false).at(0.0).is_finite());
    }

    #[test]
    fn numbers_lie_between_the_ends() {
        for is_log in [false, true] {
            let axis = Axis::over([2.0, 8.0].into_iter(), is_log, (10.0, 110.0));
            let places: Vec<f64> = [2.0, 4.0, 8.0].iter().map(|n| axis.at(*n)).collect();
            assert!(10.0 < places[0] && places[0] < places[1] && places[1] < places[2] && places[2] < 110.0);
        }
    }
}
