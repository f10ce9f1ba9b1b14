//! What the unwind directives say at each place (as.info, "CFI directives"), so
//! that code printed elsewhere can say the same.
//!
//! States are kept as directives' texts: they are compared and repeated, never
//! evaluated, but for the offset of the frame address from `rsp`, which pushes
//! change.

use std::fmt::Write;

/// Where the frame address is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cfa {
    /// A register plus an offset.
    Register(String, i64),
    /// Whatever a `.cfi_escape` says.
    Escape(String),
}

/// The unwind information at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    cfa: Cfa,
    /// Register and the directive that says where its value is.
    rules: Vec<(String, String)>,
}

impl State {
    /// At a function's entry (psABI 3.7 and 6.1).
    fn entry() -> State {
        State {
            cfa: Cfa::Register("7".into(), 8),
            rules: Vec::new(),
        }
    }

    /// Whether a push moves the frame address away from its register.
    pub fn counts_pushes(&self) -> bool {
        matches!(&self.cfa, Cfa::Register(r, _) if is_rsp(r))
    }

    /// The state with `bytes` more on the stack.
    pub fn pushed(&self, bytes: i64) -> State {
        let mut state = self.clone();
        if let Cfa::Register(r, offset) = &mut state.cfa
            && is_rsp(r)
        {
            *offset += bytes;
        }
        state
    }

    /// Directives that lead from `self` to `to`.
    pub fn lead_to(&self, to: &State, out: &mut String) {
        if self.cfa != to.cfa {
            let _ = match &to.cfa {
                Cfa::Register(r, offset) => writeln!(out, "\t.cfi_def_cfa {r}, {offset}"),
                Cfa::Escape(text) => writeln!(out, "\t{text}"),
            };
        }
        for (r, _) in &self.rules {
            if !to.rules.iter().any(|(other, _)| other == r) {
                let _ = writeln!(out, "\t.cfi_restore {r}");
            }
        }
        for (r, rule) in &to.rules {
            if !self.rules.iter().any(|old| old.0 == *r && old.1 == *rule) {
                let _ = writeln!(out, "\t{rule}");
            }
        }
    }

    fn set(&mut self, register: &str, rule: String) {
        self.rules.retain(|(r, _)| r != register);
        self.rules.push((register.to_owned(), rule));
        self.rules.sort();
    }
}

fn is_rsp(register: &str) -> bool {
    matches!(register, "7" | "rsp" | "%rsp")
}

/// Follows the directives of a file.
#[derive(Debug, Default)]
pub struct Tracker {
    state: Option<State>,
    remembered: Vec<State>,
}

impl Tracker {
    /// The state here; `None` outside procedures.
    pub fn state(&self) -> Option<&State> {
        self.state.as_ref()
    }

    /// Takes notice of a `.cfi_` directive.
    ///
    /// # Errors
    /// It is not known what it does.
    pub fn directive(&mut self, name: &str, rest: &str) -> Result<(), &'static str> {
        match name {
            ".cfi_startproc" => {
                self.state = Some(State::entry());
                self.remembered.clear();
                return Ok(());
            }
            ".cfi_endproc" => {
                self.state = None;
                return Ok(());
            }
            ".cfi_sections"
            | ".cfi_personality"
            | ".cfi_lsda"
            | ".cfi_signal_frame"
            | ".cfi_personality_id"
            | ".cfi_fde_data"
            | ".cfi_inline_lsda" => return Ok(()),
            _ => {}
        }
        let Some(state) = &mut self.state else {
            return Ok(());
        };
        match name {
            ".cfi_remember_state" => self.remembered.push(state.clone()),
            ".cfi_restore_state" => {
                let known = self.remembered.pop();
                *state = known.ok_or("no unwind state was remembered before")?;
            }
            _ => change(state, name, rest)?,
        }
        Ok(())
    }
}

fn change(state: &mut State, name: &str, rest: &str) -> Result<(), &'static str> {
    const NUMBER: &str = "an offset in unwind information that is no number";
    let mut fields = rest.split(',').map(str::trim);
    let first = fields.next().unwrap_or_default();
    let second = fields.next();
    let number = |text: &str| parse(text).ok_or(NUMBER);
    let frame = |state: &State| match &state.cfa {
        Cfa::Register(r, offset) => Ok((r.clone(), *offset)),
        Cfa::Escape(_) => Err("an offset from a frame address that is an expression"),
    };
    match name {
        ".cfi_def_cfa" => {
            state.cfa = Cfa::Register(first.to_owned(), number(second.unwrap_or_default())?);
        }
        ".cfi_def_cfa_register" => state.cfa = Cfa::Register(first.to_owned(), frame(state)?.1),
        ".cfi_def_cfa_offset" => state.cfa = Cfa::Register(frame(state)?.0, number(first)?),
        ".cfi_adjust_cfa_offset" => {
            let (register, offset) = frame(state)?;
            state.cfa = Cfa::Register(register, offset + number(first)?);
        }
        ".cfi_rel_offset" => {
            let offset = number(second.unwrap_or_default())? - frame(state)?.1;
            state.set(first, format!(".cfi_offset {first}, {offset}"));
        }
        ".cfi_offset" | ".cfi_val_offset" | ".cfi_register" | ".cfi_undefined"
        | ".cfi_same_value" => state.set(first, format!("{name} {rest}")),
        ".cfi_restore" => state.rules.retain(|(r, _)| r != first),
        ".cfi_escape" => match (parse(first), second.and_then(parse)) {
            // DW_CFA_def_cfa_expression; DW_CFA_expression and its kin (DWARF 5, 7.24)
            (Some(0x0f), _) => state.cfa = Cfa::Escape(format!("{name} {rest}")),
            (Some(0x10 | 0x16), Some(register)) => {
                state.set(&register.to_string(), format!("{name} {rest}"));
            }
            // DW_CFA_GNU_args_size: for exceptions, and true again at the next call.
            (Some(0x2e), _) => {}
            _ => return Err("a .cfi_escape that is not known"),
        },
        _ => return Err("an unwind directive that is not known"),
    }
    Ok(())
}

fn parse(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    value.ok().map(|v| sign * v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_led_to_from_another() {
        let mut tracker = Tracker::default();
        let mut see = |name: &str, rest: &str| {
            tracker.directive(name, rest).expect("a known directive");
            tracker.state().cloned()
        };
        let entry = see(".cfi_startproc", "").expect("inside");
        see(".cfi_def_cfa_offset", "16");
        let pushed = see(".cfi_offset", "6, -16").expect("inside");
        let frame = see(".cfi_def_cfa_register", "6").expect("inside");
        assert!(pushed.counts_pushes() && !frame.counts_pushes());
        let mut out = String::new();
        entry.lead_to(&frame, &mut out);
        frame.lead_to(&entry, &mut out);
        assert_eq!(
            out,
            "\t.cfi_def_cfa 6, 16\n\t.cfi_offset 6, -16\n\t.cfi_def_cfa 7, 8\n\t.cfi_restore 6\n"
        );
    }
}
