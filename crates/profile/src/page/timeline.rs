//! The blocks of a launch over the threads of the host, as a picture.

use std::fmt::Write;

use crate::remarks::grouped;
use crate::timeline::Timeline;

/// Height of a thread, and room for its name to the left, of a picture that is 1,000 wide.
const HEIGHT: usize = 22;
const NAMES: f64 = 90.0;

/// The picture, with what it says in words.
pub fn timeline(of: &Timeline) -> String {
    if of.pieces.is_empty() || of.took_us <= 0.0 {
        return String::new();
    }
    let height = HEIGHT * of.threads().count();
    let mut picture = String::new();
    let mut busy = Vec::new();
    for (row, pieces) in of.threads().enumerate() {
        busy.push(pieces.iter().map(|piece| piece.took_us).sum::<f64>() / of.took_us);
        let y = HEIGHT * row;
        let _ = write!(picture, "<text x=\"0\" y=\"{}\">thread {}</text>", y + 15, row + 1);
        for (i, piece) in pieces.iter().enumerate() {
            let x = |us: f64| NAMES + (1000.0 - NAMES) * (us / of.took_us).clamp(0.0, 1.0);
            let (from, width) = (x(piece.begin_us), (x(piece.begin_us + piece.took_us) - x(piece.begin_us)).max(0.5));
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
                piece.begin_us,
                piece.took_us
            );
        }
    }
    let (least, most) = busy.iter().fold((f64::MAX, 0.0_f64), |(a, b), n| (a.min(*n), b.max(*n)));
    let percent = |share: f64| format!("{:.0} %", 100.0 * share.min(1.0));
    let words = format!(
        "{} of the host ran blocks, for {} to {} of the {} of the launch.",
        if busy.len() == 1 { "One thread".to_owned() } else { format!("{} threads", busy.len()) },
        percent(least),
        percent(most),
        if of.took_us < 1000.0 { format!("{:.1} us", of.took_us) } else { format!("{:.1} ms", of.took_us / 1e3) }
    );
    format!(
        "<h3>Blocks over threads of the host</h3><p><b>Time of the host that ran the kernel, not of a GPU</b>, and another run has another picture. {words}</p>\
         <svg class=\"timeline\" viewBox=\"0 0 1000 {height}\" role=\"img\" aria-label=\"{words}\" style=\"width:100%;height:auto;fill:currentColor;font:12px system-ui,sans-serif\">{picture}</svg>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Piece;

    fn piece(thread: u32, first: u64, begin_us: f64, took_us: f64) -> Piece {
        Piece { thread, first, last: first, blocks: 1, begin_us, took_us }
    }

    #[test]
    fn each_thread_has_a_row() {
        let pieces = vec![piece(7, 1, 50.0, 50.0), piece(3, 0, 0.0, 25.0)];
        let page = timeline(&Timeline::new(100.0, pieces));
        assert!(page.contains("not of a GPU") && page.contains("2 threads of the host ran blocks, for 25 % to 50 %"));
        assert!(page.contains("<title>block 0: from 0.0 us, for 25.0 us</title>"));
        assert_eq!((page.matches("<rect").count(), page.matches(">thread ").count()), (2, 2));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(timeline(&Timeline::new(1.0, vec![])), "");
    }
}
