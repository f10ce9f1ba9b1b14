//! The symbols that Xen carries for its own messages (xen/tools/symbols.c; the format is that
//! of Linux's kallsyms):
//!
//! ```text
//! u32 offsets[n]        from XEN_VIRT_START, ascending
//! u32 n
//! n times               u8 length; then so many bytes, each a token's number
//! markers               of no use here
//! 256 texts             each ended by a zero: the tokens
//! u16 index[256]        where each begins
//! ```
//!
//! Nothing names these places. They are found by what they have to be: 256 ascending numbers
//! that are the beginnings of 256 texts; before them as many names as there are ascending
//! offsets. A name begins with its type. Static ones are `file.c#name`.

use std::collections::HashMap;

use crate::image::{Image, START, read};

const TOKENS: usize = 256;
/// Fewest and most symbols of a hypervisor.
const COUNT: std::ops::Range<usize> = 2_000..60_000;
/// Most bytes of all tokens' texts, and of padding and markers after the names.
const TEXTS: usize = 8192;
const BEHIND: usize = 4096;
/// Pointers to functions that an image has at least, in its tables of operations.
const MENTIONS: usize = 200;

/// A symbol.
pub struct Symbol {
    /// Xen's address.
    pub address: u64,
    /// Its type, a letter as of `nm`.
    pub kind: char,
    /// Its name.
    pub name: String,
}

/// All symbols.
pub struct Symbols {
    all: Vec<Symbol>,
    places: HashMap<String, Vec<u64>>,
}

impl Symbols {
    /// Finds and decodes them.
    pub fn find(image: &Image<'_>) -> Result<Symbols, String> {
        let bytes = image.bytes();
        let (texts, tokens) = tokens(bytes).ok_or("it carries no table of symbols' tokens")?;
        let (offsets, names) = names(bytes, texts).ok_or("it carries no table of symbols")?;
        let mut all = Vec::new();
        let mut places: HashMap<String, Vec<u64>> = HashMap::new();
        let mut at = names;
        for n in 0.. {
            let offset = offsets + 4 * n;
            // The names begin with their number, which follows the offsets.
            if offset + 4 == names {
                break;
            }
            let length = usize::from(bytes[at]);
            let codes = &bytes[at + 1..at + 1 + length];
            at += 1 + length;
            let text: String = codes
                .iter()
                .map(|code| tokens[usize::from(*code)])
                .collect();
            let mut letters = text.chars();
            let kind = letters.next().ok_or("a symbol has no name")?;
            let name = letters.as_str().to_owned();
            let address = START + read(bytes, offset, 4)?;
            places.entry(name.clone()).or_default().push(address);
            all.push(Symbol {
                address,
                kind,
                name,
            });
        }
        let symbols = Symbols { all, places };
        symbols.check(image)?;
        Ok(symbols)
    }

    /// The base of the offsets is not in the table. If it is right, the image has many words
    /// that are addresses of functions.
    fn check(&self, image: &Image<'_>) -> Result<(), String> {
        let functions = self
            .all
            .iter()
            .filter(|s| s.kind.eq_ignore_ascii_case(&'t'));
        let mut addresses: Vec<u64> = functions.map(|s| s.address).collect();
        addresses.sort_unstable();
        match image.mentions(&addresses) {
            n if n >= MENTIONS => Ok(()),
            n => Err(format!(
                "only {n} of its words are addresses of functions: it is not linked for {START:#x}"
            )),
        }
    }

    /// All, by address.
    pub fn all(&self) -> &[Symbol] {
        &self.all
    }

    /// The address of the next symbol, where a function ends at the latest.
    pub fn after(&self, address: u64) -> u64 {
        let next = self.all.partition_point(|s| s.address <= address);
        self.all.get(next).map_or(address, |symbol| symbol.address)
    }

    /// The address of the one symbol of this name, without its file if it is static.
    pub fn one(&self, name: &str) -> Result<u64, String> {
        if let Some([address]) = self.places.get(name).map(Vec::as_slice) {
            return Ok(*address);
        }
        let statics = self
            .all
            .iter()
            .filter(|s| s.name.split_once('#').is_some_and(|(_, n)| n == name));
        let found: Vec<u64> = statics.map(|s| s.address).collect();
        match found[..] {
            [address] => Ok(address),
            _ => Err(format!(
                "it has not one symbol `{name}`, but {}",
                found.len()
            )),
        }
    }
}

/// Where the tokens' texts begin, and the texts.
fn tokens(bytes: &[u8]) -> Option<(usize, Vec<&str>)> {
    (0..=bytes.len().checked_sub(2 * TOKENS)?).find_map(|index| {
        let start = |n: usize| {
            usize::from(u16::from_le_bytes([
                bytes[index + 2 * n],
                bytes[index + 2 * n + 1],
            ]))
        };
        let ascending = start(0) == 0 && (1..TOKENS).all(|n| start(n - 1) < start(n));
        if !ascending || start(TOKENS - 1) > TEXTS {
            return None;
        }
        let last = start(TOKENS - 1);
        (index.checked_sub(last + 64)?..index.checked_sub(last)?).find_map(|texts| {
            let ends = (1..TOKENS).all(|n| bytes[texts + start(n) - 1] == 0);
            ends.then_some(())?;
            let text = |n: usize| {
                let from = &bytes[texts + start(n)..index];
                let end = from.iter().position(|b| *b == 0)?;
                // Each token ends where the next begins.
                let whole = n + 1 == TOKENS || start(n) + end + 1 == start(n + 1);
                std::str::from_utf8(&from[..end])
                    .ok()
                    .filter(|_| whole && end > 0)
            };
            let all: Option<Vec<&str>> = (0..TOKENS).map(text).collect();
            Some((texts, all?))
        })
    })
}

/// Where the offsets and the names begin, before the tokens' texts.
fn names(bytes: &[u8], texts: usize) -> Option<(usize, usize)> {
    let number = |at: usize| read(bytes, at, 4).ok().map(|n| n as usize);
    (0..texts.checked_sub(4)?).rev().find_map(|at| {
        let count = number(at).filter(|n| COUNT.contains(n))?;
        let offsets = at.checked_sub(4 * count)?;
        // From the end: what is not the table fails at once.
        let ascending = (1..count)
            .rev()
            .all(|n| number(offsets + 4 * n - 4) <= number(offsets + 4 * n));
        (ascending && number(offsets) == Some(0)).then_some(())?;
        let mut name = at + 4;
        for _ in 0..count {
            name += 1 + usize::from(*bytes.get(name)?);
        }
        let behind = texts.checked_sub(name)?;
        (behind < BEHIND).then_some((offsets, at + 4))
    })
}
