//! The shape of a function's control flow: order of blocks, dominators, loops.
//!
//! Everything but [`order_blocks`] asks for a function whose blocks are ordered: then a block's dominators have smaller numbers than it.

use handloom_ir::simt::*;

/// Puts the blocks into the order that both engines want and removes those that cannot be reached.
///
/// The entry comes first. A block comes after all blocks that lead to it, but for edges back to the head of a loop, and the blocks of a
/// loop are together: lanes that left a loop wait after it for the others. (It is a weak topological order, so it is also defined for
/// loops with several entries. Where those are inside each other many times, the blocks of a loop need not be together.)
pub fn order_blocks(f: &mut Function) {
    let edges = Edges::of(f);
    if let Some(order) = weak_topological_order(&edges, MOST_VISITS * f.blocks.len()) {
        return put_in_order(f, &order);
    }
    put_in_order(f, &reverse_post_order(&edges));
    let preds = Edges::into_blocks(f);
    let doms = Dominators::of(f, &preds);
    let one_entry = |head: usize| preds.of_node(head).iter().all(|&p| p < head || doms.dominates(head, p));
    if (0..f.blocks.len()).all(one_entry)
        && let Some(order) = weak_topological_order(&Edges::of(f), usize::MAX)
    {
        put_in_order(f, &order);
    }
}

/// How many times a block is visited for a weak topological order, at most, where loops have several entries: as many as there are loops around it.
const MOST_VISITS: usize = 16;

/// The blocks of a list alone, in its order.
fn put_in_order(f: &mut Function, order: &[BlockId]) {
    if order.len() == f.blocks.len() && order.iter().enumerate().all(|(new, old)| new == old.idx()) {
        return;
    }
    let mut new_number = vec![BlockId(u32::MAX); f.blocks.len()];
    for (new, old) in order.iter().enumerate() {
        new_number[old.idx()] = BlockId(new as u32);
    }
    let mut old: Vec<Option<Block>> = std::mem::take(&mut f.blocks).into_iter().map(Some).collect();
    f.blocks = order.iter().filter_map(|b| old[b.idx()].take()).collect();
    for b in &mut f.blocks {
        b.term.map_successors(|s| new_number[s.idx()]);
    }
}

/// One step of the walk: a block being visited, or the body of a loop found at it.
struct Frame {
    block: usize,
    edge: usize,
    head: u32,
    is_loop: bool,
    in_body: bool,
}

const DONE: u32 = u32::MAX;

/// The weak topological order of Bourdoncle, with an explicit stack: functions can have many thousands of blocks. `None` if that takes more than
/// `most` visits.
fn weak_topological_order(succ: &Edges, most: usize) -> Option<Vec<BlockId>> {
    let n = succ.end.len();
    let mut number = vec![0u32; n];
    let mut count = 0u32;
    let mut open: Vec<usize> = Vec::new();
    let mut reversed = Vec::with_capacity(n);
    let mut work: Vec<Frame> = Vec::new();
    let mut enter = Some(0usize);
    let mut reached: Option<u32> = None;
    loop {
        if let Some(block) = enter.take() {
            if count as usize == most {
                return None;
            }
            count += 1;
            number[block] = count;
            open.push(block);
            work.push(Frame { block, edge: 0, head: count, is_loop: false, in_body: false });
        }
        let Some(top) = work.last_mut() else { break };
        if let Some(low) = reached.take().filter(|&low| !top.in_body && low <= top.head) {
            top.head = low;
            top.is_loop = true;
        }
        if let Some(&next) = succ.of_node(top.block).get(top.edge) {
            top.edge += 1;
            if number[next] == 0 {
                enter = Some(next);
            } else if !top.in_body && number[next] <= top.head {
                top.head = number[next];
                top.is_loop = true;
            }
            continue;
        }
        if !top.in_body && top.head == number[top.block] {
            close(top, &mut open, &mut number);
            if top.is_loop {
                // The body is visited again, now without the edges to its head.
                top.in_body = true;
                top.edge = 0;
                continue;
            }
            reversed.push(BlockId(top.block as u32));
        } else if top.in_body {
            reversed.push(BlockId(top.block as u32));
        }
        reached = Some(top.head);
        work.pop();
    }
    reversed.reverse();
    Some(reversed)
}

/// The blocks that can be reached, each after those that lead to it but for edges that go back.
fn reverse_post_order(succ: &Edges) -> Vec<BlockId> {
    let mut is_seen = vec![false; succ.end.len()];
    let (mut order, mut walk) = (Vec::new(), vec![(0, 0)]);
    is_seen[0] = true;
    while let Some((block, edge)) = walk.pop() {
        match succ.of_node(block).get(edge) {
            Some(&next) => {
                walk.push((block, edge + 1));
                if !std::mem::replace(&mut is_seen[next], true) {
                    walk.push((next, 0));
                }
            }
            None => order.push(BlockId(block as u32)),
        }
    }
    order.reverse();
    order
}

/// Takes a finished block and the loop around it off the stack of open blocks.
fn close(top: &Frame, open: &mut Vec<usize>, number: &mut [u32]) {
    while let Some(b) = open.pop() {
        if b == top.block {
            break;
        }
        number[b] = 0;
    }
    number[top.block] = DONE;
}

/// The edges of a graph in one array: from each node to others.
#[derive(Default)]
pub(crate) struct Edges {
    /// Where the edges of each node end in `list`; they start where those of the node in front end.
    end: Vec<usize>,
    list: Vec<usize>,
}

impl Edges {
    /// Successors of all blocks. Visiting them in this order makes the block after a branch follow it directly.
    fn of(f: &Function) -> Edges {
        let mut edges = Edges { end: Vec::with_capacity(f.blocks.len()), list: Vec::with_capacity(f.blocks.len() * 2) };
        for b in &f.blocks {
            let first = edges.list.len();
            for_each_successor(&b.term, |s| edges.list.push(s.idx()));
            if matches!(b.term, Term::Switch { .. }) {
                edges.list[first..].reverse();
            }
            edges.end.push(edges.list.len());
        }
        edges
    }

    /// Predecessors of all blocks; an edge that exists twice counts twice.
    pub(crate) fn into_blocks(f: &Function) -> Edges {
        let mut end = vec![0; f.blocks.len()];
        for b in &f.blocks {
            for_each_successor(&b.term, |s| end[s.idx()] += 1);
        }
        // Where those of each block start; filling them in moves that to their end.
        let mut n = 0;
        for e in &mut end {
            n += std::mem::replace(e, n);
        }
        let mut list = vec![0; n];
        for (i, b) in f.blocks.iter().enumerate() {
            for_each_successor(&b.term, |s| {
                list[end[s.idx()]] = i;
                end[s.idx()] += 1;
            });
        }
        Edges { end, list }
    }

    /// The edges of `n` nodes, as pairs in any order: those of each node ascend, and each is there once.
    pub(crate) fn of_pairs(n: usize, pairs: Vec<(usize, usize)>) -> Edges {
        // By counting, twice: where each node's begin, and then where they end.
        let mut end = vec![0; n + 1];
        pairs.iter().for_each(|(from, _)| end[from + 1] += 1);
        (0..n).for_each(|i| end[i + 1] += end[i]);
        let mut all = vec![0; pairs.len()];
        for (from, to) in pairs {
            all[end[from]] = to;
            end[from] += 1;
        }
        let (mut list, mut begin) = (Vec::with_capacity(all.len()), 0);
        end.pop();
        for e in &mut end {
            let of_node = &mut all[begin..*e];
            if !of_node.is_sorted() {
                of_node.sort_unstable();
            }
            begin = *e;
            let first = list.len();
            for to in of_node.iter() {
                if list[first..].last() != Some(to) {
                    list.push(*to);
                }
            }
            *e = list.len();
        }
        Edges { end, list }
    }

    /// Adds a node with edges to others, which may come later.
    pub(crate) fn push_node(&mut self, to: impl Iterator<Item = usize>) {
        self.list.extend(to);
        self.end.push(self.list.len());
    }

    pub(crate) fn of_node(&self, n: usize) -> &[usize] {
        &self.list[n.checked_sub(1).map_or(0, |n| self.end[n])..self.end[n]]
    }

    /// The strongly connected parts of the graph, and the number of each node's part. A part comes after all that it has edges to.
    ///
    /// Tarjan's walk with an explicit stack: functions can have many thousands of instructions.
    pub(crate) fn parts(&self) -> (Vec<Vec<usize>>, Vec<usize>) {
        const NEW: usize = usize::MAX;
        let n = self.end.len();
        let (mut parts, mut part_of) = (Vec::new(), vec![NEW; n]);
        // When a node was entered, and the first entered node that it is known to lead back to.
        let (mut entered, mut low) = (vec![NEW; n], vec![NEW; n]);
        let (mut n_entered, mut open, mut walk) = (0, Vec::new(), Vec::new());
        for root in 0..n {
            if entered[root] == NEW {
                walk.push((root, 0));
            }
            while let Some((node, edge)) = walk.pop() {
                if edge == 0 {
                    (entered[node], low[node]) = (n_entered, n_entered);
                    n_entered += 1;
                    open.push(node);
                } else {
                    let to = self.of_node(node)[edge - 1];
                    if part_of[to] == NEW {
                        low[node] = low[node].min(low[to]);
                    }
                }
                if let Some(&to) = self.of_node(node).get(edge) {
                    walk.push((node, edge + 1));
                    if entered[to] == NEW {
                        walk.push((to, 0));
                    }
                } else if low[node] == entered[node] {
                    let start = open.iter().rposition(|&o| o == node).unwrap_or(0);
                    open[start..].iter().for_each(|&o| part_of[o] = parts.len());
                    parts.push(open.split_off(start));
                }
            }
        }
        (parts, part_of)
    }
}

/// [`Term::successors`] without a list.
pub(crate) fn for_each_successor(term: &Term, mut f: impl FnMut(BlockId)) {
    match term {
        Term::Jump(b) => f(*b),
        Term::Branch { then, otherwise, .. } => {
            f(*then);
            f(*otherwise);
        }
        Term::Switch { targets, .. } => targets.iter().copied().for_each(f),
        Term::Ret | Term::Exit | Term::Trap(_) => {}
        Term::Barrier { next, .. } | Term::Call { next, .. } | Term::Yield { next } => f(*next),
    }
}

/// The dominator tree.
pub(crate) struct Dominators {
    /// Place of each block in a walk of the tree, and the number of blocks below it, itself included.
    place: Vec<u32>,
    size: Vec<u32>,
}

impl Dominators {
    /// Of an ordered function: every block can be reached, and a dominator has a smaller number.
    pub(crate) fn of(f: &Function, preds: &Edges) -> Dominators {
        let n = f.blocks.len();
        let succs = Edges::of(f);
        let found = dominators(n, 0, |b| succs.of_node(b), |b| preds.of_node(b));
        let parent: Vec<usize> = found.into_iter().map(|d| d.unwrap_or(0)).collect();
        let mut size = vec![1u32; n];
        for b in (1..n).rev() {
            debug_assert!(parent[b] < b, "blocks are not ordered");
            size[parent[b]] += size[b];
        }
        let mut place = vec![0u32; n];
        let mut next = vec![1u32; n];
        for b in 1..n {
            place[b] = place[parent[b]] + next[parent[b]];
            next[parent[b]] += size[b];
        }
        Dominators { place, size }
    }

    /// Whether each path to `b` leads through `a`.
    pub(crate) fn dominates(&self, a: usize, b: usize) -> bool {
        self.place[b].wrapping_sub(self.place[a]) < self.size[a]
    }
}

/// A loop with one head.
pub(crate) struct Loop {
    /// Where it is entered.
    pub(crate) head: usize,
    /// Its blocks in order, the head first.
    pub(crate) blocks: Vec<usize>,
    /// The blocks that go back to the head.
    pub(crate) latches: Vec<usize>,
}

impl Loop {
    pub(crate) fn contains(&self, b: usize) -> bool {
        self.blocks.binary_search(&b).is_ok()
    }
}

/// The loops of an ordered function, outer ones before inner ones, and the edges that go back without such a head (from, to).
pub(crate) struct Loops {
    pub(crate) loops: Vec<Loop>,
    pub(crate) irreducible: Vec<(usize, usize)>,
}

impl Loops {
    pub(crate) fn of(f: &Function, preds: &Edges, doms: &Dominators) -> Loops {
        let mut found = Loops { loops: Vec::new(), irreducible: Vec::new() };
        let mut seen = vec![usize::MAX; f.blocks.len()];
        for head in 0..f.blocks.len() {
            let back = preds.of_node(head).iter().copied().filter(|&p| p >= head);
            let (mut latches, other): (Vec<usize>, Vec<usize>) = back.partition(|&p| doms.dominates(head, p));
            found.irreducible.extend(other.into_iter().map(|p| (p, head)));
            if latches.is_empty() {
                continue;
            }
            latches.dedup();
            seen[head] = head;
            let mut blocks = vec![head];
            let mut work = latches.clone();
            while let Some(b) = work.pop() {
                if seen[b] != head {
                    seen[b] = head;
                    blocks.push(b);
                    work.extend_from_slice(preds.of_node(b));
                }
            }
            blocks.sort_unstable();
            found.loops.push(Loop { head, blocks, latches });
        }
        found
    }
}
