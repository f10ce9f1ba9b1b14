//! The rewriter's and the verifier's verdict on every form.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use elf_loader::Object;
use iced_x86::{
    Code, Decoder, DecoderOptions, EncodingKind, Mnemonic, OpCodeOperandKind as OperandKind,
};
use process_lab::program::Variant;

use super::cases::{Case, Direction, Live};
use super::object::object;
use super::{AddressingForm, Form};

/// The verdict on a form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FormVerdict {
    /// Rewritten, and the verifier accepts the result.
    Accepted,
    /// Refused by the rewriter: code and reason.
    Refused(&'static str, String),
    /// Rewritten, but the verifier does not accept the result: its codes.
    VerifierRefused(String),
}

impl FormVerdict {
    /// Whether there is rewritten code.
    pub fn is_rewritten(&self) -> bool {
        !matches!(self, FormVerdict::Refused(..))
    }
}

/// Rewrites each case as a function of one object. Refused cases are removed until the
/// rest is accepted, so a verdict is about one case alone.
pub fn judge(cases: &[Case], variant: Variant) -> Vec<FormVerdict> {
    let mut verdicts: Vec<Option<FormVerdict>> = vec![None; cases.len()];
    for (n, case) in cases.iter().enumerate().filter(|(_, c)| !decodes(c)) {
        let alone = object([(n, case)]);
        let refusals = rewrite(&alone, variant).err().unwrap_or_default();
        verdicts[n] = refusals.first().map(refused);
    }
    let rewritten = loop {
        let rest = cases.iter().enumerate();
        let rest: Vec<_> = rest.filter(|(n, _)| verdicts[*n].is_none()).collect();
        match rewrite(&object(rest), variant) {
            Ok(rewritten) => break rewritten,
            Err(refusals) => {
                for refusal in &refusals {
                    let n = number(&refusal.function)
                        .unwrap_or_else(|| panic!("a refusal of no form: {refusal}"));
                    verdicts[n].get_or_insert_with(|| refused(refusal));
                }
            }
        }
    };
    for (n, codes) in violations(&rewritten, variant) {
        verdicts[n] = Some(FormVerdict::VerifierRefused(codes));
    }
    let accepted = |v: Option<FormVerdict>| v.unwrap_or(FormVerdict::Accepted);
    verdicts.into_iter().map(accepted).collect()
}

/// Rewrites under a variant; the result is not verified.
///
/// # Errors
/// The rewriter's refusals.
pub fn rewrite(
    object: &Object<'_>,
    variant: Variant,
) -> Result<Object<'static>, Vec<svm_rewrite::Refusal>> {
    svm_rewrite::rewrite(object, variant.options()).map(|rewritten| rewritten.object)
}

fn refused(refusal: &svm_rewrite::Refusal) -> FormVerdict {
    FormVerdict::Refused(refusal.code.as_str(), refusal.reason.clone())
}

/// The verifier's code for an instruction that is not on its list.
const NOT_ALLOWED: &str = "P3-instruction";

/// The verifier's codes by function.
fn violations(object: &Object<'_>, variant: Variant) -> HashMap<usize, String> {
    let options = svm_verify::Options { limit: usize::MAX };
    let Err(violations) = svm_verify::verify_with(object, variant.contract(), options) else {
        return HashMap::new();
    };
    let mut codes: HashMap<usize, BTreeSet<&str>> = HashMap::new();
    for violation in &violations.list {
        let function = violation.function.as_deref().and_then(number);
        let n = function.unwrap_or_else(|| panic!("a violation of no form: {violation}"));
        codes.entry(n).or_default().insert(violation.code.as_str());
    }
    // Where the instruction itself is not allowed, the other violations follow from it.
    let joined = |codes: BTreeSet<&str>| match codes.contains(NOT_ALLOWED) {
        true => NOT_ALLOWED.to_owned(),
        false => codes.into_iter().collect::<Vec<_>>().join(" "),
    };
    codes.into_iter().map(|(n, c)| (n, joined(c))).collect()
}

fn number(function: &str) -> Option<usize> {
    function.strip_prefix('f')?.parse().ok()
}

/// Whether the bytes are one instruction to the project's decoder.
fn decodes(case: &Case) -> bool {
    let (bytes, _) = super::object::encode(&case.instruction);
    let decoded = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
    !decoded.is_invalid() && decoded.len() == bytes.len()
}

/// The verdict on every form, where little is live.
pub fn survey(forms: &[Form], variant: Variant) -> Vec<FormVerdict> {
    const BATCH: usize = 8192;
    let case = |(n, form)| Case::new(n, form, Live::Few, Direction::Up, 8);
    let cases: Vec<Case> = forms.iter().enumerate().map(case).collect();
    cases
        .chunks(BATCH)
        .flat_map(|batch| judge(batch, variant))
        .collect()
}

/// Forms counted by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All that were judged.
    pub forms: usize,
    /// Codes among them.
    pub codes: usize,
    /// Rewritten and verified.
    pub accepted: usize,
    /// Rewritten, not verified.
    pub verifier_refused: usize,
    /// Not rewritten.
    pub refused: usize,
}

/// Counts verdicts.
pub fn counts(forms: &[Form], verdicts: &[FormVerdict]) -> Counts {
    let codes: BTreeSet<Code> = forms.iter().map(|f| f.code).collect();
    let mut counts = Counts {
        forms: forms.len(),
        codes: codes.len(),
        ..Counts::default()
    };
    for verdict in verdicts {
        match verdict {
            FormVerdict::Accepted => counts.accepted += 1,
            FormVerdict::Refused(..) => counts.refused += 1,
            FormVerdict::VerifierRefused(_) => counts.verifier_refused += 1,
        }
    }
    counts
}

/// All forms that are not accepted, for review: for each refusal the instructions; an
/// extension that is refused as a whole is listed by its name.
pub fn describe(forms: &[Form], verdicts: &[FormVerdict], lost: &[Code]) -> String {
    let mut groups: BTreeMap<&FormVerdict, Vec<&Form>> = BTreeMap::new();
    let mut totals = Totals::default();
    for (form, verdict) in forms.iter().zip(verdicts) {
        groups.entry(verdict).or_default().push(form);
        totals.add(form);
    }
    let mut out = String::new();
    for (verdict, forms) in groups {
        match verdict {
            FormVerdict::Accepted => continue,
            FormVerdict::Refused(code, reason) => writeln!(out, "{code}: {reason}"),
            FormVerdict::VerifierRefused(codes) => writeln!(out, "rewritten, but {codes}"),
        }
        .expect("writing to a string");
        out.push_str(&lines(&totals.names(&forms)));
        out.push('\n');
    }
    let lost: BTreeSet<String> = lost.iter().map(|code| mnemonic(*code)).collect();
    out.push_str("not enumerated: the library's encoder has no operands for them\n");
    out + &lines(&lost.into_iter().collect::<Vec<_>>())
}

/// How many forms an extension and an instruction have.
#[derive(Default)]
struct Totals {
    extensions: HashMap<String, usize>,
    mnemonics: HashMap<String, usize>,
}

impl Totals {
    fn add(&mut self, form: &Form) {
        *self.extensions.entry(extension(form.code)).or_default() += 1;
        *self.mnemonics.entry(mnemonic(form.code)).or_default() += 1;
    }

    /// Extensions of which all forms are in the group, instructions of which
    /// all are, and those of which some are, with the modes if these are few.
    fn names(&self, forms: &[&Form]) -> Vec<String> {
        let mut found = Totals::default();
        let mut modes: HashMap<String, BTreeSet<AddressingForm>> = HashMap::new();
        for form in forms {
            found.add(form);
            modes
                .entry(mnemonic(form.code))
                .or_default()
                .insert(form.mode);
        }
        let mut names = BTreeSet::new();
        for form in forms {
            let (extension, mnemonic) = (extension(form.code), mnemonic(form.code));
            names.insert(
                if self.extensions[&extension] == found.extensions[&extension] {
                    format!("<{extension}>")
                } else if self.mnemonics[&mnemonic] == found.mnemonics[&mnemonic] {
                    mnemonic
                } else {
                    format!("{mnemonic}{}", only(&modes[&mnemonic]))
                },
            );
        }
        names.into_iter().collect()
    }
}

/// `*` for some forms; the mode if there is one.
fn only(modes: &BTreeSet<AddressingForm>) -> String {
    match modes.first() {
        Some(mode) if modes.len() == 1 && *mode != AddressingForm::Implicit => {
            format!("({mode:?})")
        }
        _ => "*".to_owned(),
    }
}

fn mnemonic(code: Code) -> String {
    let prefix = match code.op_code().encoding() {
        EncodingKind::Legacy | EncodingKind::D3NOW => "",
        EncodingKind::VEX => "vex:",
        EncodingKind::EVEX => "evex:",
        EncodingKind::XOP => "xop:",
        _ => "mvex:",
    };
    format!("{prefix}{:?}", code.mnemonic()).to_lowercase()
}

fn extension(code: Code) -> String {
    let encoding = code.op_code().encoding();
    let table = code.op_code();
    let any = |kinds: &[OperandKind]| table.op_kinds().iter().any(|kind| kinds.contains(kind));
    let scattered = any(&[
        OperandKind::mem_vsib32x,
        OperandKind::mem_vsib64x,
        OperandKind::mem_vsib32y,
        OperandKind::mem_vsib64y,
        OperandKind::mem_vsib32z,
        OperandKind::mem_vsib64z,
    ]);
    match encoding {
        EncodingKind::EVEX if plain_move(code) => return "EVEX moves of 64 bytes".to_owned(),
        EncodingKind::EVEX if scattered => return "EVEX gather and scatter".to_owned(),
        EncodingKind::EVEX => return "EVEX".to_owned(),
        EncodingKind::Legacy if any(&[OperandKind::seg_rDI]) => return mnemonic(code),
        EncodingKind::Legacy
            if any(&[
                OperandKind::mm_reg,
                OperandKind::mm_rm,
                OperandKind::mm_or_mem,
            ]) =>
        {
            return "mm registers".to_owned();
        }
        _ => {}
    }
    let saves = matches!(
        code.mnemonic(),
        Mnemonic::Fnsave | Mnemonic::Fsave | Mnemonic::Frstor
    );
    let features: Vec<String> = code
        .cpuid_features()
        .iter()
        .map(|f| format!("{f:?}"))
        .collect();
    if saves {
        return mnemonic(code);
    }
    if features.iter().any(|f| f.starts_with("FPU")) {
        return "x87".to_owned();
    }
    let base = features
        .iter()
        .all(|f| f.starts_with("INTEL") || f == "X64");
    match base {
        true => mnemonic(code),
        false => features.join("+"),
    }
}

/// A move between a `zmm` register and memory, of elements that a mask could
/// choose.
fn plain_move(code: Code) -> bool {
    use Mnemonic::*;
    let moves = matches!(
        code.mnemonic(),
        Vmovups | Vmovupd | Vmovaps | Vmovapd | Vmovdqu32 | Vmovdqu64 | Vmovdqa32 | Vmovdqa64
    );
    moves && code.op_code().op_kinds().contains(&OperandKind::zmm_or_mem)
}

/// Names in lines of some eighty characters.
fn lines(names: &[String]) -> String {
    let mut out = String::new();
    let mut line = String::from("   ");
    for name in names {
        if line.len() + name.len() > 84 {
            out.push_str(&line);
            out.push('\n');
            line = String::from("   ");
        }
        line.push(' ');
        line.push_str(name);
    }
    out + &line + "\n"
}
