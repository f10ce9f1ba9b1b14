//! Things by number, some of which belong together.

/// A partition of the numbers below a count (union-find).
pub struct Sets(Vec<u32>);

impl Sets {
    /// Each number for itself.
    pub fn new(count: usize) -> Sets {
        Sets((0..count as u32).collect())
    }

    /// The number of a member's set.
    pub fn of(&mut self, member: u32) -> usize {
        let mut at = member;
        while self.0[at as usize] != at {
            let above = self.0[at as usize];
            self.0[at as usize] = self.0[above as usize];
            at = above;
        }
        at as usize
    }

    /// Two sets become one.
    pub fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a] = b as u32;
    }
}
