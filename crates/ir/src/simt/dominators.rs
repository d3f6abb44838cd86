//! Dominators of a graph.

const NONE: usize = usize::MAX;

/// The immediate dominator of each of `n` nodes that can be reached from `root`. The root has none.
///
/// By the method of Lengauer and Tarjan, which takes time little more than in proportion to the edges, whatever the graph.
pub fn dominators<'g>(
    n: usize,
    root: usize,
    succs: impl Fn(usize) -> &'g [usize],
    preds: impl Fn(usize) -> &'g [usize],
) -> Vec<Option<usize>> {
    if n == 0 {
        return Vec::new();
    }
    // From here on nodes are called by their number in a walk in depth, whose tree `parent` is.
    let mut number = vec![NONE; n];
    let (mut node, mut parent) = (vec![root], vec![NONE]);
    number[root] = 0;
    let mut walk = vec![(root, 0)];
    while let Some((from, edge)) = walk.pop() {
        let Some(&to) = succs(from).get(edge) else { continue };
        walk.push((from, edge + 1));
        if number[to] == NONE {
            number[to] = node.len();
            node.push(to);
            parent.push(number[from]);
            walk.push((to, 0));
        }
    }
    let n_reached = node.len();
    let mut forest = Forest {
        above: vec![NONE; n_reached],
        least: (0..n_reached).collect(),
        semi: (0..n_reached).collect(),
        path: Vec::new(),
    };
    let mut idom = vec![0; n_reached];
    // Lists of the nodes with the same semidominator: the first of each, and the one after each.
    let (mut first, mut after) = (vec![NONE; n_reached], vec![NONE; n_reached]);
    for w in (1..n_reached).rev() {
        for p in preds(node[w]).iter().map(|p| number[*p]).filter(|p| *p != NONE) {
            let least = forest.least_above(p);
            forest.semi[w] = forest.semi[w].min(forest.semi[least]);
        }
        let semi = forest.semi[w];
        after[w] = std::mem::replace(&mut first[semi], w);
        forest.above[w] = parent[w];
        let mut next = std::mem::replace(&mut first[parent[w]], NONE);
        while next != NONE {
            let least = forest.least_above(next);
            idom[next] = if forest.semi[least] < forest.semi[next] { least } else { parent[w] };
            next = after[next];
        }
    }
    let mut found = vec![None; n];
    for w in 1..n_reached {
        if idom[w] != forest.semi[w] {
            idom[w] = idom[idom[w]];
        }
        found[node[w]] = Some(node[idom[w]]);
    }
    found
}

/// The part of the walk's tree that was looked at, with shorter ways up.
struct Forest {
    /// A node above, nearer to the top of its tree.
    above: Vec<usize>,
    /// Of the nodes from one up to the one `above` it, without that: the one with the least semidominator.
    least: Vec<usize>,
    semi: Vec<usize>,
    path: Vec<usize>,
}

impl Forest {
    /// Of a node and those above it, without the top of the tree: the one with the least semidominator.
    fn least_above(&mut self, node: usize) -> usize {
        if self.above[node] == NONE {
            return node;
        }
        let mut at = node;
        while self.above[self.above[at]] != NONE {
            self.path.push(at);
            at = self.above[at];
        }
        while let Some(at) = self.path.pop() {
            let above = self.above[at];
            if self.semi[self.least[above]] < self.semi[self.least[at]] {
                self.least[at] = self.least[above];
            }
            self.above[at] = self.above[above];
        }
        self.least[node]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `to` can be reached from node 0 without `around`.
    fn reaches(succs: &[Vec<usize>], to: usize, around: usize) -> bool {
        let mut seen = vec![false; succs.len()];
        let mut work = vec![0];
        while let Some(at) = work.pop() {
            if at != around && !std::mem::replace(&mut seen[at], true) {
                work.extend(&succs[at]);
            }
        }
        seen[to]
    }

    #[test]
    fn a_node_is_reached_through_its_dominators_alone() {
        let mut state = 1u64;
        let mut below = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % n
        };
        for _ in 0..300 {
            let n = 2 + below(14);
            let mut succs = vec![Vec::new(); n];
            let mut preds = vec![Vec::new(); n];
            for _ in 0..n + below(2 * n) {
                let (from, to) = (below(n), below(n));
                succs[from].push(to);
                preds[to].push(from);
            }
            let idom = dominators(n, 0, |b| &succs[b], |b| &preds[b]);
            for b in 0..n {
                let found: Vec<usize> = std::iter::successors(idom[b], |d| idom[*d]).collect();
                let is_reached = reaches(&succs, b, n);
                let mut all: Vec<usize> = (0..n).filter(|d| is_reached && *d != b && !reaches(&succs, b, *d)).collect();
                let mut sorted = found.clone();
                all.sort_unstable();
                sorted.sort_unstable();
                assert_eq!(sorted, all, "of {b} in {succs:?}");
                // The nearest one is dominated by all others.
                assert!(found.windows(2).all(|d| !reaches(&succs, d[0], d[1])), "of {b} in {succs:?}");
            }
        }
    }
}
