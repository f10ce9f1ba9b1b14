//! The table of one build of Xen: numbers, symbols, beginnings of functions.
//!
//! ```text
//! twin-xen-table 1
//! version 4.17.7
//! build-id 0123456789abcdef0123456789abcdef01234567
//! value domain_dirty_cpumask 0x230
//! init 0xffff82d040400000 0xffff82d040600000
//! head evtchn_send f30f1efa4157
//! symbol 0xffff82d040209f10 T evtchn_send
//! symbol 0xffff82d040211111 t common/grant_table.c#acquire_grant_for_copy
//! sha256 ...
//! ```
//!
//! Lines in any order after the first, `#` and empty lines between them. `docs/spec/payload.md`
//! says what each means.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use ring::digest;

use crate::code::PayloadCode;
use crate::refusal::{Part, Refusal};

/// Bytes of a build-id: SHA-1.
pub const BUILD_ID: usize = 20;
/// The first line.
const FORMAT: &str = "twin-xen-table 2";
/// The first word of the last line: a digest of all lines before it.
const DIGEST: &str = "sha256";
/// Bytes of the jump that replaces a function's beginning.
const JUMP: usize = 5;
/// Most bytes that `struct livepatch_func` compares before it is applied.
pub const EXPECTED: usize = 31;

/// The first whole instructions of a function.
#[derive(Clone, Debug)]
pub struct Head {
    /// Their bytes.
    pub bytes: Vec<u8>,
    /// Whether the last of them is a conditional jump of two bytes.
    pub jumps: bool,
}

/// Bytes of that jump.
pub const SHORT_JUMP: usize = 2;

/// One build of Xen.
#[derive(Clone, Debug, Default)]
pub struct Table {
    version: String,
    build_id: [u8; BUILD_ID],
    values: BTreeMap<String, u64>,
    init: Vec<Range<u64>>,
    heads: BTreeMap<String, Head>,
    /// By Xen's own name; every address that has it.
    symbols: HashMap<String, Vec<u64>>,
    /// Xen's names by their part after `#`.
    statics: HashMap<String, Vec<String>>,
    /// All addresses, ascending.
    addresses: Vec<u64>,
}

impl Table {
    /// Reads the text.
    ///
    /// # Errors
    /// The first line that is not understood, or what is missing.
    pub fn parse(text: &str) -> Result<Table, Refusal> {
        let first = text.lines().next().map(str::trim_end);
        if first != Some(FORMAT) {
            let found = first.unwrap_or_default().escape_debug();
            return Err(refuse(format!(
                "the first line is `{found}`, not `{FORMAT}`; make the table with this release's \
                 scripts/xen-table.sh"
            )));
        }
        let (mut table, mut build_id) = (Table::default(), None);
        let (body, digest) = body_of(text);
        for (number, line) in body.lines().enumerate().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.first().is_none_or(|word| word.starts_with('#')) {
                continue;
            }
            table.read(&words, &mut build_id).ok_or_else(|| {
                refuse(format!(
                    "line {}, `{}`, is not understood or there twice; make the table again",
                    number + 1,
                    line.escape_debug()
                ))
            })?;
        }
        if !text.ends_with('\n') {
            return Err(refuse(
                "its last line has no end: it is cut off; make the table again".into(),
            ));
        }
        check_digest(body, digest)?;
        table.build_id = build_id.ok_or_else(|| missing("build-id"))?;
        if table.symbols.is_empty() {
            return Err(missing("symbol"));
        }
        if table.init.is_empty() {
            return Err(missing("init"));
        }
        table.addresses.sort_unstable();
        table.addresses.dedup();
        Ok(table)
    }

    /// One line, in words.
    fn read(&mut self, words: &[&str], build_id: &mut Option<[u8; BUILD_ID]>) -> Option<()> {
        match *words {
            ["version", ..] if self.version.is_empty() => self.version = words[1..].join(" "),
            ["build-id", text] if build_id.is_none() => *build_id = Some(build_id_of(text)?),
            ["value", key, value] => {
                let old = self.values.insert(key.to_owned(), number(value)?);
                old.is_none().then_some(())?;
            }
            ["init", start, end] => {
                let range = number(start)?..number(end)?;
                (!range.is_empty()).then(|| self.init.push(range))?;
            }
            ["head", name, ref bytes @ ..] => {
                let old = self.heads.insert(name.to_owned(), head_of(bytes)?);
                old.is_none().then_some(())?;
            }
            ["symbol", address, kind, name] if kind.len() == 1 => self.add(number(address)?, name),
            _ => return None,
        }
        Some(())
    }

    fn add(&mut self, address: u64, name: &str) {
        self.addresses.push(address);
        let known = self.symbols.entry(name.to_owned()).or_default();
        known.push(address);
        if let (1, Some((_, plain))) = (known.len(), name.split_once('#')) {
            let names = self.statics.entry(plain.to_owned()).or_default();
            names.push(name.to_owned());
        }
    }

    /// The version, for people.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The build that it is of.
    pub fn build_id(&self) -> &[u8; BUILD_ID] {
        &self.build_id
    }

    /// Whether it is of the build with this id, in hexadecimal digits.
    ///
    /// # Errors
    /// It is not, or the digits are not those of a build-id.
    pub fn is_of(&self, id: &str) -> Result<(), Refusal> {
        let asked = build_id_of(id.trim());
        if asked == Some(self.build_id) {
            return Ok(());
        }
        let why = format!(
            "the table is of {} with build-id {}, not {}; make one of the hypervisor that runs, \
             with scripts/xen-table.sh",
            if self.version.is_empty() {
                "a Xen"
            } else {
                &self.version
            },
            hex_of(&self.build_id),
            id.trim().escape_debug(),
        );
        Err(Refusal::new(PayloadCode::BuildId, Part::Table, why))
    }

    /// A number of the build.
    pub(crate) fn value(&self, key: &str) -> Option<u64> {
        self.values.get(key).copied()
    }

    /// Xen's own name of what the runtime calls `name`: the same if a symbol has it that all
    /// of Xen sees, else `file.c#name` of the static one.
    ///
    /// # Errors
    /// There is none, several, or it is freed after the start.
    pub(crate) fn name(&self, name: &str) -> Result<&str, Refusal> {
        let (own, addresses) = match self.symbols.get_key_value(name) {
            Some(found) => found,
            None => match self.statics.get(name).map(Vec::as_slice) {
                Some([own]) => (own, &self.symbols[own]),
                Some(several) => return Err(ambiguous(name, &several.join("`, `"))),
                None => {
                    let why = format!(
                        "it needs `{name}`, which this build of Xen does not have; build the \
                         runtime for it"
                    );
                    return Err(Refusal::new(PayloadCode::Undefined, Part::Runtime, why));
                }
            },
        };
        let [address] = addresses[..] else {
            return Err(ambiguous(name, "the same name, at several addresses"));
        };
        if self.init.iter().any(|range| range.contains(&address)) {
            let why = format!(
                "it needs `{own}`, which is among what Xen frees after its start ({address:#x}); \
                 do without it"
            );
            return Err(Refusal::new(PayloadCode::Init, Part::Runtime, why));
        }
        Ok(own)
    }

    /// The address of a symbol by Xen's own name, if it has one.
    pub(crate) fn address(&self, own: &str) -> Option<u64> {
        match self.symbols.get(own).map(Vec::as_slice) {
            Some(&[address]) => Some(address),
            _ => None,
        }
    }

    /// Whether Xen has a symbol of exactly this name.
    pub(crate) fn has(&self, own: &str) -> bool {
        self.symbols.contains_key(own)
    }

    /// The first whole instructions of a function, and its size in bytes up to the next symbol.
    ///
    /// # Errors
    /// The table does not have them, or they are no room for a jump.
    pub(crate) fn head(&self, own: &str) -> Result<(&Head, u64), Refusal> {
        let fail = |why: &str| {
            let why = format!("`{own}` cannot be replaced: {why}; make the table again");
            Err(Refusal::new(PayloadCode::Replace, Part::Table, why))
        };
        let plain = own.split_once('#').map_or(own, |(_, plain)| plain);
        let Some(head) = self.heads.get(own).or_else(|| self.heads.get(plain)) else {
            return fail("there is no line `head` for it");
        };
        let Some([address]) = self.symbols.get(own).map(Vec::as_slice) else {
            return fail("it has not one address");
        };
        let next = self.addresses.partition_point(|a| a <= address);
        let Some(size) = self.addresses.get(next).map(|next| next - address) else {
            return fail("it is the last symbol, and so its size is not known");
        };
        match head.bytes.len() {
            n if !(JUMP..=EXPECTED).contains(&n) => fail("its head has not 5 to 31 bytes"),
            n if n as u64 > size => fail("its head is longer than the function"),
            _ => Ok((head, size)),
        }
    }
}

/// The text of a table with its last line. What is changed later, by whom or what ever, is seen.
pub fn sealed(text: &str) -> String {
    format!("{text}{DIGEST} {}\n", digest_of(text))
}

fn digest_of(text: &str) -> String {
    hex_of(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
}

/// All lines but the last, and the digest that is there.
fn body_of(text: &str) -> (&str, Option<&str>) {
    let whole = text.strip_suffix('\n').unwrap_or(text);
    let start = whole.rfind('\n').map_or(0, |end| end + 1);
    let digest = whole[start..]
        .strip_prefix(DIGEST)
        .and_then(|rest| rest.strip_prefix(' '));
    match digest {
        Some(digest) => (&text[..start], Some(digest)),
        None => (text, None),
    }
}

fn check_digest(body: &str, digest: Option<&str>) -> Result<(), Refusal> {
    match digest {
        Some(digest) if digest == digest_of(body) => Ok(()),
        Some(_) => Err(refuse(
            "it is not as it was made: its digest is another's; make the table again".into(),
        )),
        None => Err(missing(DIGEST)),
    }
}

/// `BYTES`, or `BYTES JUMP`.
fn head_of(words: &[&str]) -> Option<Head> {
    let (bytes, jump) = match *words {
        [bytes] => (hex(bytes)?, Vec::new()),
        [bytes, jump] => (hex(bytes)?, hex(jump)?),
        _ => return None,
    };
    let known = matches!(jump[..], [] | [0x70..=0x7f, _]);
    known.then(|| Head {
        jumps: !jump.is_empty(),
        bytes: [bytes, jump].concat(),
    })
}

fn refuse(why: String) -> Refusal {
    Refusal::new(PayloadCode::Table, Part::Table, why)
}

fn missing(what: &str) -> Refusal {
    refuse(format!(
        "it has no line `{what}`; make the table with this release's scripts/xen-table.sh"
    ))
}

fn ambiguous(name: &str, which: &str) -> Refusal {
    let why = format!("`{name}` is not one symbol of this build of Xen: `{which}`; name one");
    Refusal::new(PayloadCode::Ambiguous, Part::Runtime, why)
}

/// A number: hexadecimal with `0x`, else decimal.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => hexadecimal(digits),
        None if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

/// Digits of a hexadecimal number, without a sign.
pub(crate) fn hexadecimal(digits: &str) -> Option<u64> {
    let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
    let number = plain.then(|| u64::from_str_radix(digits, 16).ok());
    number.flatten()
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let (pairs, rest) = digits.as_chunks::<2>();
    (rest.is_empty() && !pairs.is_empty()).then_some(())?;
    let byte = |pair: &[u8; 2]| {
        let digit = |d: u8| char::from(d).to_digit(16);
        Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8)
    };
    pairs.iter().map(byte).collect()
}

fn build_id_of(text: &str) -> Option<[u8; BUILD_ID]> {
    hex(text)?.try_into().ok()
}

/// Hexadecimal digits of bytes.
pub(crate) fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
