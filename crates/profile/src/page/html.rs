//! Pieces of HTML.

use handloom_diag::names::readable;

use crate::remarks::{grouped, percent};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Text as it stands in HTML and XML, between tags and in attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            // Neither has other control characters, nor XML these two.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The name of a function as it is written in the source, with the one in the PTX for who points at it.
pub fn function_name(name: &str) -> String {
    match readable(name) {
        Some(in_source) => format!("<span title=\"{}\">{}</span>", escape(name), escape(&in_source)),
        None => escape(name),
    }
}

/// A sentence: what stands in backticks is code.
pub fn prose(text: &str) -> String {
    let mut out = String::new();
    for (i, part) in text.split('`').enumerate() {
        let part = escape(part);
        out.push_str(&if i % 2 == 1 { format!("<code>{part}</code>") } else { part });
    }
    out
}

/// A whole page. `badge`: what its numbers are, in a few words. `links`: names and texts of its parts.
pub fn shell(title: &str, badge: &str, links: &[(String, String)], body: &str) -> String {
    let nav: String =
        links.iter().map(|(to, text)| format!("<a href=\"#{}\">{}</a>", escape(to), escape(text))).collect();
    let (title, badge) = (escape(title), escape(badge));
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title><style>{STYLE}</style></head>\n\
         <body><header><h1>{title}</h1><span class=\"badge\">{badge}</span><nav aria-label=\"Parts\">{nav}</nav></header>\n<main>{body}</main>\n\
         <script>{SCRIPT}</script></body></html>\n"
    )
}

/// A bar of a share, green where the share is high.
pub fn bar(share: f64) -> String {
    let class = if share >= 0.75 {
        ""
    } else if share >= 0.4 {
        " mid"
    } else {
        " low"
    };
    drawn(class, share)
}

/// A bar of a share of something that is neither good nor bad.
pub fn heat(share: f64) -> String {
    drawn(" heat", share)
}

/// A full one needs no width: most are, and pages of large kernels have a bar or two a line.
fn drawn(class: &str, share: f64) -> String {
    let width = 100.0 * share.clamp(0.0, 1.0);
    if width > 99.9 {
        return format!("<i class=\"b{class}\"></i>");
    }
    format!("<i class=\"b{class}\" style=\"--w:{width:.0}\"></i>")
}

/// A part of a page that folds.
pub fn part(title: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    format!("<details class=\"part\" open><summary><h3>{}</h3></summary>{body}</details>\n", escape(title))
}

/// A cell with a count.
pub fn number(n: u64) -> String {
    format!("<td class=\"n\" data-v=\"{n}\">{}</td>", grouped(n))
}

/// A cell with a share and its bar.
pub fn share(share: f64) -> String {
    format!("<td class=\"n\" data-v=\"{share:.6}\">{}{}</td>", bar(share), percent(share))
}

/// A cell that has nothing to say.
pub fn nothing() -> String {
    "<td class=\"n\" data-v=\"-1\"></td>".to_owned()
}

/// A figure with what it is.
pub fn tile(figure: &str, what: &str) -> String {
    format!("<div class=\"tile\"><b>{}</b><span>{}</span></div>", escape(figure), escape(what))
}

/// The head of a table. Headings with a leading `#` stand over numbers, those with `^` over numbers that the rows are sorted by, the greatest first.
pub fn head(headings: &[&str]) -> String {
    let one = |h: &&str| match (h.strip_prefix('#'), h.strip_prefix('^')) {
        (Some(h), _) => format!("<th class=\"n\" scope=\"col\">{}</th>", escape(h)),
        (None, Some(h)) => format!("<th class=\"n\" scope=\"col\" aria-sort=\"descending\">{}</th>", escape(h)),
        (None, None) => format!("<th scope=\"col\">{}</th>", escape(h)),
    };
    format!("<thead><tr>{}</tr></thead>", headings.iter().map(one).collect::<String>())
}

/// A table, as [`head`] has its headings. One of the class `sorts` sorts itself by a click.
pub fn table(class: &str, headings: &[&str], rows: &str) -> String {
    format!("<div class=\"wide\"><table class=\"{class}\">{}<tbody>{rows}</tbody></table></div>", head(headings))
}
