//! The order of evaluation: which blocks come first, and which ones again.
//!
//! Liveness flows from successors to predecessors. In postorder of a depth-first search, the
//! successor of every edge except retreating ones is evaluated before its predecessor. So an acyclic
//! graph needs one sweep, and each further sweep carries a value around one more nested loop (Kam
//! and Ullman 1976).

use crate::solve::{BlockId, FlowGraph};

/// Every block once, successors before their predecessors except along retreating edges.
///
/// Roots are taken in block order, so blocks that no other one reaches are ordered too. The stack
/// is explicit: a path of any length cannot overflow the machine stack.
pub fn postorder(program: &impl FlowGraph) -> Vec<BlockId> {
    let count = program.block_count();
    let mut order = Vec::with_capacity(count);
    let mut seen = vec![false; count];
    let mut path: Vec<(BlockId, usize)> = Vec::new();
    for root in (0..count as u32).map(BlockId) {
        if std::mem::replace(&mut seen[root.index()], true) {
            continue;
        }
        path.push((root, 0));
        while let Some((block, tried)) = path.last_mut() {
            match program.successors(*block).get(*tried) {
                Some(&next) => {
                    *tried += 1;
                    if !std::mem::replace(&mut seen[next.index()], true) {
                        path.push((next, 0));
                    }
                }
                None => {
                    order.push(*block);
                    path.pop();
                }
            }
        }
    }
    order
}

/// The edges backwards, in two flat arrays: block `b` has `blocks[starts[b]..starts[b + 1]]`.
pub struct Predecessors {
    starts: Vec<u32>,
    blocks: Vec<BlockId>,
}

impl Predecessors {
    /// Reverses the edges of a program.
    pub fn of(program: &impl FlowGraph) -> Predecessors {
        let count = program.block_count();
        let edges = || {
            (0..count as u32).map(BlockId).flat_map(|from| {
                let successors = program.successors(from).iter();
                successors.map(move |to| (from, to.index()))
            })
        };
        // Counting sort by target: starts[b + 1] holds first the number of edges into b, then the
        // end of b's run; filling each run from its end turns ends into starts.
        let mut starts = vec![0; count + 1];
        edges().for_each(|(_, to)| starts[to] += 1);
        let mut total = 0;
        for start in &mut starts {
            total += *start;
            *start = total;
        }
        let mut blocks = vec![BlockId(0); total as usize];
        edges().for_each(|(from, to)| {
            starts[to] -= 1;
            blocks[starts[to] as usize] = from;
        });
        Predecessors { starts, blocks }
    }

    /// The predecessors of a block, with repetitions where edges repeat.
    pub fn of_block(&self, block: BlockId) -> impl Iterator<Item = BlockId> + '_ {
        let at = block.index();
        let run = self.starts[at] as usize..self.starts[at + 1] as usize;
        self.blocks[run].iter().copied()
    }
}

/// The blocks still to be evaluated, handed out in sweeps over an order.
pub(crate) struct Pending<'a> {
    order: &'a [BlockId],
    position: Vec<u32>,
    sweeps: Sweeps,
}

impl<'a> Pending<'a> {
    /// Every block of the order.
    pub(crate) fn all(order: &'a [BlockId]) -> Pending<'a> {
        let mut pending = Pending {
            order,
            position: vec![0; order.len()],
            sweeps: Sweeps::new(order.len()),
        };
        for (position, block) in (0..).zip(order) {
            pending.position[block.index()] = position;
            pending.sweeps.add(position);
        }
        pending
    }

    /// Adds a block; it stays one entry however often it is added.
    pub(crate) fn add(&mut self, block: BlockId) {
        self.sweeps.add(self.position[block.index()]);
    }

    /// Takes the next block.
    pub(crate) fn next(&mut self) -> Option<BlockId> {
        let position = self.sweeps.take()?;
        Some(self.order[position as usize])
    }
}

/// Numbers, handed out in ascending order, over and over again: those that are added meanwhile
/// come in the same sweep if they are ahead, else in the next one.
///
/// One bit for each number, and above these one bit for each word that is not zero, so that a
/// sweep with few numbers is cheap.
#[derive(Clone, Debug)]
pub struct Sweeps {
    words: Vec<u64>,
    nonzero: Vec<u64>,
    cursor: u32,
}

impl Sweeps {
    /// None yet, of the numbers below `count`.
    pub fn new(count: usize) -> Sweeps {
        let words = count.div_ceil(64);
        Sweeps {
            words: vec![0; words],
            nonzero: vec![0; words.div_ceil(64)],
            cursor: 0,
        }
    }

    /// Adds a number; it stays one entry however often it is added.
    ///
    /// # Panics
    /// If it is not below the count.
    pub fn add(&mut self, number: u32) {
        let number = number as usize;
        self.words[number / 64] |= 1 << (number % 64);
        self.nonzero[number / 4096] |= 1 << (number / 64 % 64);
    }

    /// Takes the next number at or after the cursor, or else starts another sweep.
    pub fn take(&mut self) -> Option<u32> {
        let number = self.find(self.cursor).or_else(|| self.find(0))?;
        self.remove(number);
        self.cursor = number + 1;
        Some(number)
    }

    fn find(&self, from: u32) -> Option<u32> {
        let word = from / 64;
        let here = self.words.get(word as usize)? & u64::MAX << (from % 64);
        if here != 0 {
            return Some(word * 64 + here.trailing_zeros());
        }
        let word = first_set(&self.nonzero, word + 1)?;
        Some(word * 64 + self.words[word as usize].trailing_zeros())
    }

    fn remove(&mut self, number: u32) {
        let word = number as usize / 64;
        self.words[word] &= !(1 << (number % 64));
        if self.words[word] == 0 {
            self.nonzero[word / 64] &= !(1 << (word % 64));
        }
    }
}

/// The first set bit at or after `from`, over words of 64 bits.
fn first_set(words: &[u64], from: u32) -> Option<u32> {
    let first = from as usize / 64;
    let mut mask = u64::MAX << (from % 64);
    for (at, word) in words.iter().enumerate().skip(first) {
        let bits = word & mask;
        if bits != 0 {
            return Some(at as u32 * 64 + bits.trailing_zeros());
        }
        mask = u64::MAX;
    }
    None
}
