//! What the instructions of one variant do to the words of its frames, and what follows for
//! each word: whether it is on the data stack.

use std::ops::Range;

use foldhash::{HashMap, HashSet};
use iced_x86::{Code, Register};
use liveness::{BlockId, FlowGraph, LocSet, Sweeps};

use super::super::lost::Lost;
use crate::analyse::Analysis;
use crate::analyse::classify::WORD;
use crate::analyse::routines;
use crate::lift::{FuncIdx, InstIdx, Lifted};
use crate::registers::gpr;

/// What an instruction does to words of the frame, by their places.
pub(super) enum Use {
    /// `push` makes the word.
    Push(i64),
    /// `pop` takes it.
    Pop(i64),
    /// An operand in memory reaches these bytes.
    Reach(Range<i64>),
    /// The address of this byte becomes a number, or an index is added to it.
    Address(i64),
    /// The address of this byte is in a register that callees keep: it may be passed on, unless
    /// the word keeps what that register held, as a frame pointer's does.
    Kept(i64, Register),
    /// The word is loaded elsewhere than into `rbp`.
    Follow(i64),
    /// Another function runs, which may read what is pushed as its arguments.
    Call,
    /// `rsp` moves over these bytes, which are gone.
    Drop(Range<i64>),
    /// `rsp` moves over these bytes, which belong to the frame now.
    Make(Range<i64>),
}

/// What is known of one word.
#[derive(Default)]
struct Word {
    pushes: Vec<InstIdx>,
    pops: Vec<InstIdx>,
    follows: Vec<InstIdx>,
    is_data: bool,
    /// Whether its address is taken: the words above may belong to the same object.
    is_object: bool,
    /// Whether the address above it is taken, of a word that is not pushed.
    is_end: bool,
}

impl Word {
    fn is_pushed(&self) -> bool {
        !self.pushes.is_empty()
    }

    /// Whether all that is pushed there is this register.
    fn keeps(&self, lifted: &Lifted<'_>, register: Register) -> bool {
        let pushed = |i: &InstIdx| lifted.inst(*i).iced.op0_register();
        self.is_pushed() && self.pushes.iter().all(|i| pushed(i) == register)
    }

    /// Whether it only keeps a register that callees keep: such a word is no argument.
    fn saves_register(&self, lifted: &Lifted<'_>) -> bool {
        let code = |i: &InstIdx| &lifted.inst(*i).iced;
        let Some(saved) = self.pushes.first().map(|i| code(i).op0_register()) else {
            return false;
        };
        let pushes =
            |i: &InstIdx| code(i).code() == Code::Push_r64 && code(i).op0_register() == saved;
        let pops = |i: &InstIdx| match code(i).code() {
            Code::Pop_r64 => code(i).op0_register() == saved,
            Code::Leaveq => saved == Register::RBP,
            _ => false,
        };
        KEPT_BY_CALLEES.contains(&saved)
            && self.pushes.iter().all(pushes)
            && self.pops.iter().all(pops)
    }
}

/// The psABI's (3.2.1).
const KEPT_BY_CALLEES: [Register; 6] = [
    Register::RBX,
    Register::RBP,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

/// The registers that may have been written since their function was entered.
pub(super) struct Written<'w> {
    analysis: &'w Analysis<'w>,
    lost: &'w Lost,
    /// Before each node of the flow.
    before: Vec<LocSet>,
}

impl<'w> Written<'w> {
    pub fn find(analysis: &'w Analysis<'w>, lost: &'w Lost) -> Written<'w> {
        let flow = &analysis.flow;
        let nodes = flow.nodes();
        // Who jumps to a function's beginning has restored them, or has not written them.
        let lifted = analysis.lifted;
        let functions = (0..lifted.functions.len() as u32).map(FuncIdx);
        let mut is_entered = vec![false; nodes.len()];
        for entry in functions.flat_map(|f| lifted.entries_of(f)) {
            is_entered[flow.block_of(entry).0 as usize] = true;
        }
        let mut written = Written {
            analysis,
            lost,
            before: vec![LocSet::empty(); nodes.len()],
        };
        let mut work = Sweeps::new(nodes.len());
        nodes.for_each(|node| work.add(node.0));
        while let Some(node) = work.take().map(BlockId) {
            let by = written.by(flow.instructions(node));
            let after = written.before[node.0 as usize].union(by);
            for &next in flow.continuations(node) {
                let before = &mut written.before[next.0 as usize];
                if !is_entered[next.0 as usize] && !before.contains(after) {
                    *before = before.union(after);
                    work.add(next.0);
                }
            }
        }
        written
    }

    pub fn before(&self, i: InstIdx) -> LocSet {
        let flow = &self.analysis.flow;
        let block = flow.block_of(i).0 as usize;
        self.before[block].union(self.by(flow.blocks()[block].start..i.0))
    }

    /// Those that instructions write, or what they call.
    fn by(&self, insts: Range<u32>) -> LocSet {
        let surveys = &self.analysis.surveys[insts.start as usize..insts.end as usize];
        let all = surveys.iter().map(|survey| survey.written());
        let own = all.fold(LocSet::empty(), LocSet::union);
        if self.lost.is_empty() {
            return own;
        }
        let insts = insts.map(|i| self.analysis.lifted.inst(InstIdx(i)));
        let calls = insts.filter(|inst| routines::is_call(&inst.iced));
        calls.fold(own, |all, call| all.union(self.lost.at_call(call)))
    }
}

/// A word, by the frame that it is in ([`super::frames`]), and its place there.
pub(super) type Key = (usize, i64);

/// What an instruction does to one word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Touch {
    Push(InstIdx),
    Pop(InstIdx),
    /// Its address is taken.
    Address,
    /// Its address is in this register.
    Kept(Register),
    /// It is loaded elsewhere than into `rbp`.
    Follow(InstIdx),
}

/// What an instruction does to `rsp`.
struct Move {
    inst: InstIdx,
    frame: usize,
    used: Use,
}

/// The word in which a byte of the frame is.
fn word(byte: i64) -> i64 {
    byte & -WORD
}

/// The uses of one variant as they are found, in the order of the instructions.
pub(super) struct Found {
    touches: Vec<(Key, Touch)>,
    /// Words that an operand reaches: whose, does not matter.
    reached: Vec<Key>,
    moves: Vec<Move>,
}

impl Found {
    /// Nothing yet, with room for the uses of so many instructions.
    pub fn with_capacity(insts: usize) -> Found {
        Found {
            touches: Vec::with_capacity(insts),
            reached: Vec::with_capacity(insts),
            moves: Vec::with_capacity(insts),
        }
    }

    pub fn add(&mut self, frame: usize, inst: InstIdx, used: Use) {
        match &used {
            Use::Push(at) => self.touch(frame, *at, Touch::Push(inst)),
            Use::Pop(at) => self.touch(frame, *at, Touch::Pop(inst)),
            // What is dropped or made matters only where it is pushed or popped.
            Use::Drop(_) | Use::Make(_) | Use::Call => {}
            Use::Address(at) => return self.touch(frame, *at, Touch::Address),
            Use::Follow(at) => return self.touch(frame, *at, Touch::Follow(inst)),
            Use::Kept(at, r) => return self.touch(frame, *at, Touch::Kept(*r)),
            Use::Reach(bytes) => {
                let mut at = word(bytes.start);
                while at < bytes.end {
                    self.reached.push((frame, at));
                    at += WORD;
                }
                return;
            }
        }
        self.moves.push(Move { inst, frame, used });
    }

    fn touch(&mut self, frame: usize, at: i64, touch: Touch) {
        self.touches.push(((frame, word(at)), touch));
    }

    /// The words, sorted.
    fn words(&mut self, lifted: &Lifted<'_>) -> Vec<(Key, Word)> {
        self.touches.sort_unstable();
        self.touches.dedup();
        let of_one = |touches: &[(Key, Touch)]| {
            let mut word = Word::default();
            for (_, touch) in touches {
                match *touch {
                    Touch::Push(i) => word.pushes.push(i),
                    Touch::Pop(i) => word.pops.push(i),
                    Touch::Follow(i) => word.follows.push(i),
                    Touch::Address => (word.is_data, word.is_object) = (true, true),
                    // Pushes come before it.
                    Touch::Kept(r) if word.keeps(lifted, r) => {}
                    Touch::Kept(_) => (word.is_data, word.is_object) = (true, true),
                }
            }
            (touches[0].0, word)
        };
        let mut words: Vec<(Key, Word)> = self
            .touches
            .chunk_by(|a, b| a.0 == b.0)
            .map(of_one)
            .collect();
        // What is reached matters only where it is pushed or popped, or belongs to an object.
        for key in &self.reached {
            if let Ok(n) = words.binary_search_by_key(key, |(key, _)| *key) {
                words[n].1.is_data = true;
            }
        }
        join_objects(&mut words);
        words
    }
}

/// An object whose address is taken, and that begins with a pushed word, has all words that
/// were pushed next to it: nothing says where it ends. If it does not begin with one, the
/// address may be the end of those below.
fn join_objects(words: &mut [(Key, Word)]) {
    for n in (1..words.len()).rev() {
        let (below, rest) = words.split_at_mut(n);
        let (((frame, at), below), (key, above)) = (&mut below[n - 1], &rest[0]);
        let next = *key == (*frame, *at + WORD);
        let ends = above.is_object && (!above.is_pushed() || above.is_end);
        if next && ends && below.is_pushed() {
            (below.is_data, below.is_object, below.is_end) = (true, true, true);
        }
    }
    for n in 1..words.len() {
        let (below, rest) = words.split_at_mut(n);
        let (((frame, at), below), (key, word)) = (&below[n - 1], &mut rest[0]);
        let next = *key == (*frame, at + WORD);
        if next && below.is_object && below.is_pushed() && word.is_pushed() {
            (word.is_data, word.is_object) = (true, true);
        }
    }
}

/// The uses of one variant.
pub(super) struct Uses<'u> {
    analysis: &'u Analysis<'u>,
    written: &'u Written<'u>,
    /// Sorted.
    words: Vec<(Key, Word)>,
    /// In the order of the instructions.
    moves: Vec<Move>,
    /// Those of node `b` are `moves[starts[b]..starts[b + 1]]`.
    starts: Vec<u32>,
}

impl<'u> Uses<'u> {
    pub fn of(mut found: Found, analysis: &'u Analysis<'u>, written: &'u Written<'u>) -> Uses<'u> {
        let words = found.words(analysis.lifted);
        let Found { moves, .. } = found;
        let mut before = 0;
        let ends = analysis.flow.nodes().map(|node| {
            let insts = analysis.flow.instructions(node);
            let rest = moves[before..].iter();
            before += rest.take_while(|m| m.inst.0 < insts.end).count();
            before as u32
        });
        let starts = std::iter::once(0).chain(ends).collect();
        Uses {
            analysis,
            written,
            words,
            moves,
            starts,
        }
    }

    /// The pushes and pops of words on the data stack.
    pub fn on_data(&self) -> impl Iterator<Item = InstIdx> {
        let mut search = Search::new(self);
        let made = self.popped_unpushed(&mut search);
        let is_data =
            |key: &Key, word: &Word| word.is_data || !word.is_pushed() || made.contains(key);
        let others = self.words.iter().filter(|(key, word)| !is_data(key, word));
        let asked = others.flat_map(|((_, at), word)| word.pushes.iter().map(|i| (*i, *at)));
        let next = search.next(asked.collect());
        let mut moves = Vec::new();
        for (key, word) in &self.words {
            // Taken by a `pop`, and dropped on no path. Compilers drop a few arguments by `pop`.
            let is_saved = || {
                let is_register = word.saves_register(self.analysis.lifted)
                    && !self.is_saved_above(*key, word)
                    && !self.is_written_before(word);
                word.pushes.iter().all(|push| {
                    let next = next[push];
                    next.popped && !next.dropped && (is_register || !next.called)
                })
            };
            let used = word.is_pushed() || !word.pops.is_empty();
            if used && (is_data(key, word) || !is_saved()) {
                moves.extend(word.pushes.iter().chain(&word.pops));
            }
        }
        moves.into_iter()
    }

    /// The loads of the caller's frame pointer, which `push %rbp` has saved.
    pub fn followed(&self) -> impl Iterator<Item = InstIdx> {
        let saves = |word: &Word| {
            word.keeps(self.analysis.lifted, Register::RBP) && !self.is_written_before(word)
        };
        let words = self.words.iter().map(|(_, word)| word);
        let words = words.filter(move |word| !word.follows.is_empty() && saves(word));
        words.flat_map(|word| word.follows.iter().copied())
    }

    /// Whether a word of the same frame, above this one, has the same register pushed. Then that
    /// one keeps what the caller had in it, and this may be an argument.
    fn is_saved_above(&self, (frame, at): Key, word: &Word) -> bool {
        let register = |i: &InstIdx| self.analysis.lifted.inst(*i).iced.op0_register();
        let Some(saved) = word.pushes.first().map(register) else {
            return false;
        };
        let above = self.words.partition_point(|(key, _)| *key <= (frame, at));
        let above = self.words[above..].iter();
        let mut above = above.take_while(|(key, _)| key.0 == frame);
        above.any(|(_, word)| word.pushes.iter().any(|i| register(i) == saved))
    }

    /// Whether what is pushed is perhaps the function's own, and so an argument: compilers may
    /// have saved the register by `mov`.
    fn is_written_before(&self, word: &Word) -> bool {
        let written = |i: &InstIdx| self.written.before(*i);
        let pushed = |i: &InstIdx| gpr(self.analysis.lifted.inst(*i).iced.op0_register());
        let mut pushes = word.pushes.iter();
        pushes.any(|i| pushed(i).is_none_or(|r| written(i).intersects(LocSet::reg(r))))
    }

    /// The words that a `pop` takes on a path on which they were made without `push`.
    fn popped_unpushed(&self, search: &mut Search<'_>) -> HashSet<Key> {
        let mut found = HashSet::default();
        for Move { inst, frame, used } in &self.moves {
            let Use::Make(bytes) = used else { continue };
            let first = (*frame, bytes.start);
            let first = self.words.partition_point(|(key, _)| *key < first);
            let end = (*frame, bytes.end);
            let inside = self.words[first..].iter().take_while(|(key, _)| *key < end);
            for (key, word) in inside {
                let popped = !word.pops.is_empty() && !word.pushes.is_empty();
                if popped && search.next(vec![(*inst, key.1)])[inst].popped {
                    found.insert(*key);
                }
            }
        }
        found
    }

    /// What the instructions of a block do to `rsp`.
    fn moves_of(&self, block: BlockId) -> &[Move] {
        let b = block.0 as usize;
        &self.moves[self.starts[b] as usize..self.starts[b + 1] as usize]
    }
}

/// A word by its place, and the instruction after which it is searched for.
type Asked = (InstIdx, i64);

/// Some of the words that are searched for together: a bit for each.
type Words = u64;

/// Searches along paths, one after the other. A function pushes several words at once, which are
/// searched for together.
struct Search<'u> {
    uses: &'u Uses<'u>,
    /// The last search that came to a node's beginning, and for which words.
    seen: Vec<(u32, Words)>,
    searches: u32,
    work: Vec<(BlockId, Words)>,
}

impl<'u> Search<'u> {
    fn new(uses: &'u Uses<'u>) -> Search<'u> {
        Search {
            uses,
            seen: vec![(0, 0); uses.analysis.flow.nodes().len()],
            searches: 0,
            work: Vec::new(),
        }
    }

    /// What happens first to each word, on the paths after its instruction.
    fn next(&mut self, mut asked: Vec<Asked>) -> HashMap<InstIdx, Next> {
        asked.sort_unstable();
        let flow = &self.uses.analysis.flow;
        let by_block = asked.chunk_by(|a, b| flow.block_of(a.0) == flow.block_of(b.0));
        let together = by_block.flat_map(|all| all.chunks(Words::BITS as usize));
        let mut found = HashMap::default();
        for asked in together {
            let outcome = self.follow(asked);
            let each = asked.iter().enumerate();
            found.extend(each.map(|(n, (inst, _))| (*inst, outcome.of(n))));
        }
        found
    }

    /// The same for words of one block, no more than there are bits.
    fn follow(&mut self, asked: &[Asked]) -> Outcome {
        self.searches += 1;
        let mut outcome = Outcome::default();
        let first = self.uses.analysis.flow.block_of(asked[0].0);
        let (mut open, mut begun) = (0, 0);
        let moves = self.uses.moves_of(first);
        let before = moves.partition_point(|m| m.inst <= asked[0].0);
        for Move { inst, used, .. } in &moves[before..] {
            while asked.get(begun).is_some_and(|(after, _)| after < inst) {
                open |= 1 << begun;
                begun += 1;
            }
            open = outcome.pass(used, asked, open);
            if open == 0 && begun == asked.len() {
                return outcome;
            }
        }
        let rest = (begun..asked.len()).fold(0, |rest, n| rest | 1 << n);
        self.leave(first, open | rest);
        while let Some((block, mut open)) = self.work.pop() {
            for Move { used, .. } in self.uses.moves_of(block) {
                open = outcome.pass(used, asked, open);
            }
            self.leave(block, open);
        }
        outcome
    }

    /// Goes on with these words where a block leads.
    fn leave(&mut self, block: BlockId, open: Words) {
        for &next in self.uses.analysis.flow.continuations(block) {
            let (search, seen) = &mut self.seen[next.0 as usize];
            if *search != self.searches {
                (*search, *seen) = (self.searches, 0);
            }
            let new = open & !*seen;
            if new != 0 {
                *seen |= new;
                self.work.push((next, new));
            }
        }
    }
}

/// What happens to words first, on any path.
#[derive(Default)]
struct Outcome {
    popped: Words,
    dropped: Words,
    called: Words,
}

impl Outcome {
    /// Takes in what happens to words that are still searched for; gives those that are after it.
    fn pass(&mut self, used: &Use, asked: &[Asked], open: Words) -> Words {
        let among = |is: &dyn Fn(i64) -> bool| {
            let each = asked.iter().enumerate();
            each.fold(0, |all, (n, (_, at))| all | Words::from(is(*at)) << n) & open
        };
        let found = match used {
            Use::Push(place) | Use::Pop(place) => among(&|at| at == *place),
            Use::Drop(bytes) | Use::Make(bytes) => among(&|at| bytes.contains(&at)),
            Use::Call | Use::Reach(_) | Use::Address(_) | Use::Kept(..) | Use::Follow(_) => 0,
        };
        match used {
            Use::Pop(_) => self.popped |= found,
            Use::Drop(_) => self.dropped |= found,
            Use::Call => self.called |= open,
            Use::Push(_)
            | Use::Make(_)
            | Use::Reach(_)
            | Use::Address(_)
            | Use::Kept(..)
            | Use::Follow(_) => {}
        }
        open & !found
    }

    /// That of one word.
    fn of(&self, n: usize) -> Next {
        let has = |words: Words| words >> n & 1 != 0;
        Next {
            popped: has(self.popped),
            dropped: has(self.dropped),
            called: has(self.called),
        }
    }
}

/// What happens to a word first, on any path.
#[derive(Clone, Copy)]
struct Next {
    popped: bool,
    dropped: bool,
    /// Whether there may be a call before that.
    called: bool,
}
