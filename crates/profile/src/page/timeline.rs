//! The blocks of a launch over the threads of the host, as a picture.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::model::{Piece, Timeline};
use crate::remarks::grouped;

/// Pieces of a thread that are drawn: neighbours in one part of the picture are drawn as one.
const PARTS: f64 = 500.0;

/// Height of a thread, and room for its name to the left, of a picture that is 1,000 wide.
const HEIGHT: usize = 22;
const NAMES: f64 = 90.0;

/// A piece as it is drawn.
struct Drawn {
    first: u64,
    last: u64,
    /// Blocks that began in it, or parts of them.
    blocks: u64,
    begin: f64,
    end: f64,
}

/// The picture, with what it says in words.
pub fn timeline(of: &Timeline) -> String {
    if of.pieces.is_empty() || of.took_us <= 0.0 {
        return String::new();
    }
    let mut threads: BTreeMap<u32, Vec<&Piece>> = BTreeMap::new();
    of.pieces.iter().for_each(|piece| threads.entry(piece.thread).or_default().push(piece));
    let height = HEIGHT * threads.len();
    let mut picture = String::new();
    let mut busy = Vec::new();
    for (row, pieces) in threads.values_mut().enumerate() {
        pieces.sort_by(|a, b| a.begin_us.total_cmp(&b.begin_us));
        busy.push(pieces.iter().map(|piece| piece.took_us).sum::<f64>() / of.took_us);
        let y = HEIGHT * row;
        let _ = write!(picture, "<text x=\"0\" y=\"{}\">thread {}</text>", y + 15, row + 1);
        for (i, piece) in drawn(pieces, of.took_us).iter().enumerate() {
            let x = |us: f64| NAMES + (1000.0 - NAMES) * (us / of.took_us).clamp(0.0, 1.0);
            let (from, width) = (x(piece.begin), (x(piece.end) - x(piece.begin)).max(0.5));
            let which = match (piece.first, piece.last, piece.blocks) {
                (a, b, 1) if a == b => format!("block {}", grouped(a)),
                (a, b, _) => format!("blocks {} to {}", grouped(a), grouped(b)),
            };
            // Neighbours differ in shade, so that they can be told apart.
            let shade = [".85", ".55"][i % 2];
            let _ = write!(
                picture,
                "<rect x=\"{from:.2}\" y=\"{}\" width=\"{width:.2}\" height=\"{}\" fill-opacity=\"{shade}\"><title>{which}: from {:.1} us, for {:.1} us</title></rect>",
                y + 2,
                HEIGHT - 4,
                piece.begin,
                piece.end - piece.begin
            );
        }
    }
    let (least, most) = busy.iter().fold((f64::MAX, 0.0_f64), |(a, b), n| (a.min(*n), b.max(*n)));
    let percent = |share: f64| format!("{:.0} %", 100.0 * share.min(1.0));
    let words = format!(
        "{} of the host ran blocks, for {} to {} of the {} of the launch.",
        if threads.len() == 1 { "One thread".to_owned() } else { format!("{} threads", threads.len()) },
        percent(least),
        percent(most),
        if of.took_us < 1000.0 { format!("{:.1} us", of.took_us) } else { format!("{:.1} ms", of.took_us / 1e3) }
    );
    format!(
        "<h3>Blocks over threads of the host</h3><p><b>Time of the host that ran the kernel, not of a GPU</b>, and another run has another picture. {words}</p>\
         <svg class=\"timeline\" viewBox=\"0 0 1000 {height}\" role=\"img\" aria-label=\"{words}\" style=\"width:100%;height:auto;fill:currentColor;font:12px system-ui,sans-serif\">{picture}</svg>"
    )
}

/// Pieces of a thread, in order, with short neighbours as one.
fn drawn(pieces: &[&Piece], took: f64) -> Vec<Drawn> {
    let part = took / PARTS;
    let mut all: Vec<Drawn> = Vec::new();
    for piece in pieces {
        let (last, end) = (piece.first + piece.blocks - 1, piece.begin_us + piece.took_us);
        match all.last_mut() {
            Some(before) if end - before.begin < part => {
                before.first = before.first.min(piece.first);
                before.last = before.last.max(last);
                before.blocks += piece.blocks;
                before.end = end;
            }
            _ => all.push(Drawn { first: piece.first, last, blocks: piece.blocks, begin: piece.begin_us, end }),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(thread: u32, first: u64, begin_us: f64, took_us: f64) -> Piece {
        Piece { thread, first, blocks: 1, begin_us, took_us }
    }

    #[test]
    fn each_thread_has_a_row() {
        let pieces = vec![piece(7, 1, 50.0, 50.0), piece(3, 0, 0.0, 25.0)];
        let page = timeline(&Timeline { took_us: 100.0, pieces });
        assert!(page.contains("not of a GPU") && page.contains("2 threads of the host ran blocks, for 25 % to 50 %"));
        assert!(page.contains("<title>block 0: from 0.0 us, for 25.0 us</title>"));
        assert_eq!((page.matches("<rect").count(), page.matches(">thread ").count()), (2, 2));
    }

    #[test]
    fn short_neighbours_are_one() {
        let pieces: Vec<Piece> = (0_u32..100_000).map(|i| piece(0, i.into(), f64::from(i), 1.0)).collect();
        let page = timeline(&Timeline { took_us: 100_000.0, pieces });
        let n = page.matches("<rect").count();
        assert!((400..=1000).contains(&n), "{n}");
        assert!(page.contains("blocks 0 to "));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(timeline(&Timeline { took_us: 1.0, pieces: vec![] }), "");
    }
}
