//! The unwind state at each place, from the CFI directives (as.info, "CFI directives"),
//! so that code printed elsewhere can repeat it.
//!
//! States are kept as pieces of the text: they are compared and repeated, never
//! evaluated, except the offset of the frame address from `rsp`, which pushes change.

use std::rc::Rc;

use foldhash::HashMap;

use super::arguments::number;
use super::number::push_signed;
use super::sections::Spot;

/// A register as directives name it: by its DWARF number, or otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Register<'t> {
    Number(i64),
    Name(&'t [u8]),
}

impl<'t> Register<'t> {
    fn of(text: &'t [u8]) -> Register<'t> {
        number(text).map_or(Register::Name(text), Register::Number)
    }

    fn is_rsp(self) -> bool {
        // psABI, figure 3.36
        matches!(self, Register::Number(7) | Register::Name(b"rsp" | b"%rsp"))
    }

    fn write(self, out: &mut Vec<u8>) {
        match self {
            Register::Number(n) => push_signed(out, n),
            Register::Name(name) => out.extend_from_slice(name),
        }
    }
}

/// Where the frame address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cfa<'t> {
    /// A register plus an offset.
    Register(Register<'t>, i64),
    /// Defined by a `.cfi_escape` with these bytes.
    Escape(&'t [u8]),
}

/// Where a register's value at entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule<'t> {
    /// At this offset from the frame address.
    Offset(i64),
    /// Defined by this directive: its name and the rest.
    Said(&'t [u8], &'t [u8]),
}

/// The state from the directives up to a place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State<'t> {
    cfa: Cfa<'t>,
    /// In the order of registers.
    rules: Vec<(Register<'t>, Rule<'t>)>,
}

impl<'t> State<'t> {
    /// At a function's entry (psABI 3.7 and 6.1).
    fn entry() -> State<'t> {
        State {
            cfa: Cfa::Register(Register::Number(7), 8),
            rules: Vec::new(),
        }
    }

    fn set(&mut self, register: Register<'t>, rule: Rule<'t>) {
        match self.rules.binary_search_by_key(&register, |(r, _)| *r) {
            Ok(n) => self.rules[n].1 = rule,
            Err(n) => self.rules.insert(n, (register, rule)),
        }
    }

    fn rule(&self, register: Register<'t>) -> Option<Rule<'t>> {
        let found = self.rules.binary_search_by_key(&register, |(r, _)| *r);
        found.ok().map(|n| self.rules[n].1)
    }
}

/// The unwind information at one place: the state from directives, and the bytes that
/// sequences have pushed since.
#[derive(Clone, Debug)]
pub struct Here<'t> {
    state: Rc<State<'t>>,
    pushed: i64,
}

impl<'t> Here<'t> {
    /// Whether a push moves the frame address away from its register.
    pub fn counts_pushes(&self) -> bool {
        matches!(self.state.cfa, Cfa::Register(r, _) if r.is_rsp())
    }

    /// With `bytes` more on the stack.
    pub fn pushed(&self, bytes: i64) -> Here<'t> {
        Here {
            state: Rc::clone(&self.state),
            pushed: self.pushed + bytes,
        }
    }

    fn cfa(&self) -> Cfa<'t> {
        match self.state.cfa {
            Cfa::Register(r, offset) if r.is_rsp() => {
                Cfa::Register(r, offset.wrapping_add(self.pushed))
            }
            other => other,
        }
    }

    /// Directives that lead from `self` to `to`.
    pub fn lead_to(&self, to: &Here<'t>, out: &mut Vec<u8>) {
        if self.cfa() != to.cfa() {
            match to.cfa() {
                Cfa::Register(r, offset) => {
                    out.extend_from_slice(b"\t.cfi_def_cfa ");
                    r.write(out);
                    out.extend_from_slice(b", ");
                    push_signed(out, offset);
                    out.push(b'\n');
                }
                Cfa::Escape(bytes) => line(out, b".cfi_escape", bytes),
            }
        }
        if Rc::ptr_eq(&self.state, &to.state) {
            return;
        }
        for (r, _) in &self.state.rules {
            if to.state.rule(*r).is_none() {
                out.extend_from_slice(b"\t.cfi_restore ");
                r.write(out);
                out.push(b'\n');
            }
        }
        for (r, rule) in &to.state.rules {
            if self.state.rule(*r) == Some(*rule) {
                continue;
            }
            match *rule {
                Rule::Offset(offset) => {
                    out.extend_from_slice(b"\t.cfi_offset ");
                    r.write(out);
                    out.extend_from_slice(b", ");
                    push_signed(out, offset);
                    out.push(b'\n');
                }
                Rule::Said(name, rest) => line(out, name, rest),
            }
        }
    }
}

fn line(out: &mut Vec<u8>, name: &[u8], rest: &[u8]) {
    for part in [b"\t", name, b" ", rest, b"\n"] {
        out.extend_from_slice(part);
    }
}

/// A procedure that is open.
#[derive(Debug, Default)]
struct Procedure<'t> {
    here: Option<Here<'t>>,
    remembered: Vec<Rc<State<'t>>>,
}

/// Follows the directives of a file.
#[derive(Debug, Default)]
pub struct Tracker<'t> {
    now: Procedure<'t>,
    /// Where it is; `None` at the beginning.
    spot: Option<Spot<'t>>,
    /// The procedures elsewhere: the assembler keeps one for each section and subsection.
    others: HashMap<Spot<'t>, Procedure<'t>>,
}

impl<'t> Tracker<'t> {
    /// The state here; `None` outside procedures.
    pub fn here(&self) -> Option<&Here<'t>> {
        self.now.here.as_ref()
    }

    /// What comes next is there.
    pub fn enter(&mut self, spot: Spot<'t>) {
        if self.spot != Some(spot) {
            let left = std::mem::take(&mut self.now);
            if let Some(from) = self.spot.replace(spot) {
                self.others.insert(from, left);
            }
            self.now = self.others.remove(&spot).unwrap_or_default();
        }
    }

    /// Applies a `.cfi_` directive.
    ///
    /// # Errors
    /// The directive is unknown.
    pub fn directive(&mut self, name: &'t [u8], rest: &'t [u8]) -> Result<(), &'static str> {
        match name {
            b".cfi_startproc" => {
                let state = Rc::new(State::entry());
                self.now.here = Some(Here { state, pushed: 0 });
                self.now.remembered.clear();
                return Ok(());
            }
            b".cfi_endproc" => {
                self.now.here = None;
                return Ok(());
            }
            b".cfi_sections"
            | b".cfi_personality"
            | b".cfi_lsda"
            | b".cfi_signal_frame"
            | b".cfi_personality_id"
            | b".cfi_fde_data"
            | b".cfi_inline_lsda" => return Ok(()),
            _ => {}
        }
        let Procedure { here, remembered } = &mut self.now;
        let Some(Here { state, .. }) = here else {
            return Ok(());
        };
        match name {
            b".cfi_remember_state" => remembered.push(Rc::clone(state)),
            b".cfi_restore_state" => {
                let known = remembered.pop();
                *state = known.ok_or("no unwind state was remembered before")?;
            }
            _ => change(Rc::make_mut(state), name, rest)?,
        }
        Ok(())
    }
}

fn change<'t>(state: &mut State<'t>, name: &'t [u8], rest: &'t [u8]) -> Result<(), &'static str> {
    const NUMBER: &str = "an offset in unwind information that is no number";
    let mut fields = rest.split(|b| *b == b',').map(<[u8]>::trim_ascii);
    let first = fields.next().unwrap_or_default();
    let second = fields.next();
    let value = |text: &[u8]| number(text).ok_or(NUMBER);
    let frame = |state: &State<'t>| match state.cfa {
        Cfa::Register(r, offset) => Ok((r, offset)),
        Cfa::Escape(_) => Err(
            "an offset from a frame address that is an expression: name the register again, too \
             (.cfi_def_cfa)",
        ),
    };
    match name {
        b".cfi_def_cfa" => {
            let offset = value(second.unwrap_or_default())?;
            state.cfa = Cfa::Register(Register::of(first), offset);
        }
        b".cfi_def_cfa_register" => {
            state.cfa = Cfa::Register(Register::of(first), frame(state)?.1);
        }
        b".cfi_def_cfa_offset" => state.cfa = Cfa::Register(frame(state)?.0, value(first)?),
        b".cfi_adjust_cfa_offset" => {
            let (register, offset) = frame(state)?;
            state.cfa = Cfa::Register(register, offset.wrapping_add(value(first)?));
        }
        b".cfi_rel_offset" => {
            let offset = value(second.unwrap_or_default())?.wrapping_sub(frame(state)?.1);
            state.set(Register::of(first), Rule::Offset(offset));
        }
        b".cfi_offset" => {
            let offset = second.and_then(number);
            let rule = offset.map_or(Rule::Said(name, rest), Rule::Offset);
            state.set(Register::of(first), rule);
        }
        b".cfi_val_offset" | b".cfi_register" | b".cfi_undefined" | b".cfi_same_value" => {
            state.set(Register::of(first), Rule::Said(name, rest));
        }
        b".cfi_restore" => {
            let register = Register::of(first);
            state.rules.retain(|(r, _)| *r != register);
        }
        b".cfi_escape" => match (number(first), second.and_then(number)) {
            // DW_CFA_def_cfa_expression; DW_CFA_expression and similar (DWARF 5, 7.24)
            (Some(0x0f), _) => state.cfa = Cfa::Escape(rest),
            (Some(0x10 | 0x16), Some(register)) => {
                state.set(Register::Number(register), Rule::Said(name, rest));
            }
            // DW_CFA_GNU_args_size: for exceptions, and true again at the next call.
            (Some(0x2e), _) => {}
            _ => {
                return Err(
                    "a .cfi_escape that is not followed: use the directive that says the same",
                );
            }
        },
        _ => return Err("an unwind directive that is not known"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_assemblers() {
        let read = |text: &str| number(text.as_bytes());
        assert_eq!(read("16"), Some(16));
        assert_eq!(read("0x10"), Some(16));
        assert_eq!(read("-020"), Some(-16));
        assert_eq!(read("0"), Some(0));
        assert_eq!(read("08"), None);
        assert_eq!(read("-8*17"), Some(-136));
        assert_eq!(read("%rbp"), None);
    }

    #[test]
    fn a_state_is_led_to_from_another() {
        let mut tracker = Tracker::default();
        let mut see = |name: &'static str, rest: &'static str| {
            let known = tracker.directive(name.as_bytes(), rest.as_bytes());
            known.expect("a known directive");
            tracker.here().cloned()
        };
        let entry = see(".cfi_startproc", "").expect("inside");
        see(".cfi_def_cfa_offset", "16");
        let pushed = see(".cfi_offset", "6, -16").expect("inside");
        let frame = see(".cfi_def_cfa_register", "6").expect("inside");
        assert!(pushed.counts_pushes() && !frame.counts_pushes());
        let mut out = Vec::new();
        entry.lead_to(&frame, &mut out);
        frame.lead_to(&entry, &mut out);
        entry.pushed(8).lead_to(&entry.pushed(24), &mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "\t.cfi_def_cfa 6, 16\n\t.cfi_offset 6, -16\n\t.cfi_def_cfa 7, 8\n\t.cfi_restore 6\n\
             \t.cfi_def_cfa 7, 32\n"
        );
    }
}
