//! Pieces of HTML.

use crate::model::NOT_TIME;
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
            // Neither has other control characters.
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A whole page. `links`: names and texts of its parts.
pub fn shell(title: &str, links: &[(String, String)], body: &str) -> String {
    let nav: String =
        links.iter().map(|(to, text)| format!("<a href=\"#{}\">{}</a>", escape(to), escape(text))).collect();
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title><style>{STYLE}</style></head>\n\
         <body><header><h1>{title}</h1><span class=\"badge\">{NOT_TIME}</span><nav aria-label=\"Parts\">{nav}</nav></header>\n<main>{body}</main>\n\
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

fn drawn(class: &str, share: f64) -> String {
    let width = 100.0 * share.clamp(0.0, 1.0);
    format!("<span class=\"bar{class}\" aria-hidden=\"true\"><i style=\"width:{width:.1}%\"></i></span>")
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

/// A table. Headings with a leading `#` stand over numbers.
pub fn table(class: &str, headings: &[&str], rows: &str) -> String {
    let head: String = headings
        .iter()
        .map(|h| match h.strip_prefix('#') {
            Some(h) => format!("<th class=\"n\" scope=\"col\">{}</th>", escape(h)),
            None => format!("<th scope=\"col\">{}</th>", escape(h)),
        })
        .collect();
    format!(
        "<div class=\"wide\"><table class=\"{class}\"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
}
