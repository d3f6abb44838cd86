//! When the threads of the host ran the blocks of launches, for pages: time of the host, which is none of a GPU.

use serde::{Deserialize, Serialize};

/// Most pieces of a thread: shorter neighbours are one.
const PARTS: f64 = 500.0;

/// Launches whose blocks are drawn: those that took longest.
const LAUNCHES: usize = 16;

/// When the threads of the host ran the blocks of a launch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Timeline {
    /// How long the launch took, in microseconds.
    pub took_us: f64,
    /// What was run, by thread and in order.
    pub pieces: Vec<Piece>,
}

/// Blocks that a thread of the host ran one after the other, or parts of them.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Piece {
    /// The thread, by any number.
    pub thread: u32,
    /// Number of the first block.
    pub first: u64,
    /// Number of the last one.
    pub last: u64,
    /// How many there are, or parts of them.
    pub blocks: u64,
    /// When they began, in microseconds after the launch.
    pub begin_us: f64,
    /// How long they took, in microseconds.
    pub took_us: f64,
}

impl Timeline {
    /// Of pieces in any order.
    pub fn new(took_us: f64, mut pieces: Vec<Piece>) -> Timeline {
        pieces.sort_by(|a, b| a.thread.cmp(&b.thread).then(a.begin_us.total_cmp(&b.begin_us)));
        let part = took_us / PARTS;
        let mut all: Vec<Piece> = Vec::new();
        for piece in pieces {
            let end = piece.begin_us + piece.took_us;
            match all.last_mut() {
                Some(before) if before.thread == piece.thread && end - before.begin_us < part => {
                    before.first = before.first.min(piece.first);
                    before.last = before.last.max(piece.last);
                    before.blocks += piece.blocks;
                    before.took_us = end - before.begin_us;
                }
                _ => all.push(piece),
            }
        }
        Timeline { took_us, pieces: all }
    }

    /// The pieces of each thread.
    pub(crate) fn threads(&self) -> impl Iterator<Item = &[Piece]> {
        self.pieces.chunk_by(|a, b| a.thread == b.thread)
    }
}

/// Those of the last runs of launches, by their entries, grids and blocks. Of many, those that took longest.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timelines(Vec<OfLaunch>);

/// That of a launch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct OfLaunch {
    entry: String,
    grid: [u32; 3],
    block: [u32; 3],
    timeline: Timeline,
}

impl Timelines {
    /// Takes that of a run, in place of that of an earlier one.
    pub fn add(&mut self, entry: &str, [grid, block]: [[u32; 3]; 2], timeline: Timeline) {
        self.take(OfLaunch { entry: entry.to_owned(), grid, block, timeline });
    }

    /// Takes those of another process.
    pub fn join(&mut self, more: Timelines) {
        more.0.into_iter().for_each(|one| self.take(one));
    }

    fn take(&mut self, one: OfLaunch) {
        let same = |known: &&mut OfLaunch| {
            (known.entry.as_str(), known.grid, known.block) == (one.entry.as_str(), one.grid, one.block)
        };
        if let Some(known) = self.0.iter_mut().find(same) {
            *known = one;
            return;
        }
        self.0.push(one);
        if self.0.len() > LAUNCHES {
            let took = |(_, known): &(usize, &OfLaunch)| known.timeline.took_us;
            let shortest = self.0.iter().enumerate().min_by(|a, b| took(a).total_cmp(&took(b)));
            if let Some((at, _)) = shortest {
                self.0.remove(at);
            }
        }
    }

    /// That of a launch.
    pub(crate) fn of(&self, entry: &str, [grid, block]: [[u32; 3]; 2]) -> Option<&Timeline> {
        let is_it = |l: &&OfLaunch| (l.entry.as_str(), l.grid, l.block) == (entry, grid, block);
        self.0.iter().find(is_it).map(|l| &l.timeline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(thread: u32, first: u64, begin_us: f64) -> Piece {
        Piece { thread, first, last: first, blocks: 1, begin_us, took_us: 1.0 }
    }

    #[test]
    fn short_neighbours_are_one() {
        let pieces: Vec<Piece> = (0_u32..100_000).rev().map(|i| piece(i % 2, i.into(), f64::from(i))).collect();
        let timeline = Timeline::new(100_000.0, pieces);
        assert!((800..=2000).contains(&timeline.pieces.len()), "{}", timeline.pieces.len());
        assert_eq!(timeline.pieces.iter().map(|p| p.blocks).sum::<u64>(), 100_000);
        assert_eq!(timeline.threads().map(|t| (t[0].thread, t[0].first)).collect::<Vec<_>>(), [(0, 0), (1, 1)]);
    }

    #[test]
    fn the_longest_launches_are_drawn_as_they_were_last() {
        let mut all = Timelines::default();
        let shape = |i| [[i, 1, 1], [32, 1, 1]];
        for i in 0..40 {
            all.add("k", shape(i), Timeline::new(f64::from(i % 20), vec![piece(1, 0, 0.0)]));
        }
        all.add("k", shape(39), Timeline::new(77.0, vec![piece(2, 0, 0.0)]));
        assert_eq!((0..40).filter(|i| all.of("k", shape(*i)).is_some()).count(), LAUNCHES);
        assert_eq!(all.of("k", shape(39)).map(|t| (t.took_us, t.pieces[0].thread)), Some((77.0, 2)));
        assert!(
            all.of("k", shape(0)).is_none() && all.of("k", shape(19)).is_some() && all.of("j", shape(19)).is_none()
        );
    }
}
