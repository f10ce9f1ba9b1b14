//! Edges by the block that they leave, in two flat arrays.

use liveness::BlockId;

/// Block `b` leads to `to[starts[b]..starts[b + 1]]`.
#[derive(Debug, Default)]
pub struct Edges {
    starts: Vec<u32>,
    to: Vec<BlockId>,
}

impl Edges {
    /// Sorts edges, from the first to the second block; those of one block stay in
    /// the order that they were found in.
    pub fn sorted(blocks: usize, found: &[(BlockId, BlockId)]) -> Edges {
        // Counting sort: starts[b + 1] is first where the next edge of b goes.
        let mut starts = vec![0; blocks + 2];
        for (from, _) in found {
            starts[from.0 as usize + 2] += 1;
        }
        let mut total = 0;
        for start in &mut starts {
            total += *start;
            *start = total;
        }
        let mut to = vec![BlockId(0); found.len()];
        for (from, target) in found {
            let next = &mut starts[from.0 as usize + 1];
            to[*next as usize] = *target;
            *next += 1;
        }
        starts.pop();
        Edges { starts, to }
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.starts.len() - 1
    }

    /// Where a block leads.
    pub fn of(&self, block: BlockId) -> &[BlockId] {
        let at = block.0 as usize;
        &self.to[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_of_a_block_keep_their_order() {
        let found = [(2, 0), (0, 1), (2, 2), (0, 0), (2, 0)].map(|(a, b)| (BlockId(a), BlockId(b)));
        let edges = Edges::sorted(4, &found);
        let of = |b| {
            edges
                .of(BlockId(b))
                .iter()
                .map(|to| to.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(edges.blocks(), 4);
        assert_eq!(
            [of(0), of(1), of(2), of(3)],
            [vec![1, 0], vec![], vec![0, 2, 0], vec![]]
        );
    }
}
