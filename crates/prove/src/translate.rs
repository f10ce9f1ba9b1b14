//! Translates Rust to formulas: the functions of `svm-verify/src/domain/bounds.rs` become
//! definitions of SMT-LIB 2.6, over bit vectors of 64 bits, as the processor has them.
//!
//! Each function `f` becomes two definitions: `f`, its value, and `f.fits`, whether no
//! addition, subtraction or negation in it overflows. Operands that `&&` and `||` do not
//! evaluate are left out, as they are not computed. Code outside the subset is an error:
//! nothing is ignored.

use std::collections::BTreeMap;

use syn::{BinOp, Expr, FnArg, Item, Lit, Pat, Stmt, UnOp};

/// A formula and the condition that nothing in it overflows.
struct Term {
    value: String,
    fits: String,
}

/// One change of the source's meaning, to see that the proof notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceChange {
    /// Number of the place, from 0, among those that can be changed.
    pub place: usize,
}

/// The result of a translation.
pub struct Translation {
    /// One SMT-LIB definition for each function.
    pub text: String,
    /// Names of functions, in order.
    pub functions: Vec<String>,
    /// The source's own constants.
    pub constants: Vec<(String, String)>,
    /// Places that can be changed, each with its function and the change.
    pub places: Vec<(String, String)>,
}

/// Translates a source, with one change if a mutant is given.
///
/// # Errors
/// Code that is not in the subset.
pub fn translate(
    source: &str,
    constants: &BTreeMap<&str, i64>,
    mutant: Option<SourceChange>,
) -> Result<Translation, String> {
    let file = syn::parse_file(source).map_err(|e| e.to_string())?;
    let mut translator = Translator {
        constants: constants
            .iter()
            .map(|(&name, &value)| (name.to_owned(), number(value)))
            .collect(),
        mutant,
        function: String::new(),
        places: Vec::new(),
    };
    let (mut text, mut functions, mut own) = (String::new(), Vec::new(), Vec::new());
    for item in &file.items {
        match item {
            Item::Use(_) => {}
            Item::Const(c) => {
                let name = c.ident.to_string();
                let Term { value, .. } = translator.expression(&c.expr, &[])?;
                own.push((name.clone(), value.clone()));
                translator.constants.insert(name, value);
            }
            Item::Fn(f) => {
                let name = f.sig.ident.to_string();
                text.push_str(&translator.function(f)?);
                functions.push(name);
            }
            _ => return Err("only functions, constants and imports are known".into()),
        }
    }
    let places = translator.places;
    Ok(Translation {
        text,
        functions,
        constants: own,
        places,
    })
}

/// A number as a bit vector of 64 bits.
pub fn number(value: i64) -> String {
    format!("#x{value:016x}")
}

struct Translator {
    /// Values by path.
    constants: BTreeMap<String, String>,
    mutant: Option<SourceChange>,
    /// The function that is being translated.
    function: String,
    places: Vec<(String, String)>,
}

impl Translator {
    fn function(&mut self, f: &syn::ItemFn) -> Result<String, String> {
        self.function = f.sig.ident.to_string();
        let parameters: Vec<String> = f
            .sig
            .inputs
            .iter()
            .map(parameter)
            .collect::<Result<_, _>>()?;
        let [Stmt::Expr(body, None)] = &f.block.stmts[..] else {
            return Err(format!("{}: a body that is one expression", self.function));
        };
        let Term { value, fits } = self.expression(body, &parameters)?;
        let arguments: String = parameters.iter().map(|p| format!("({p} W)")).collect();
        let name = &self.function;
        Ok(format!(
            "(define-fun {name} ({arguments}) Bool {value})\n\
             (define-fun {name}.fits ({arguments}) Bool {fits})\n"
        ))
    }

    /// Records a place that can be changed. True if the mutant changes this one.
    fn changes(&mut self, what: String) -> bool {
        self.places.push((self.function.clone(), what));
        let here = self.places.len() - 1;
        self.mutant.is_some_and(|mutant| mutant.place == here)
    }

    fn expression(&mut self, e: &Expr, parameters: &[String]) -> Result<Term, String> {
        let plain = |value: String| Term {
            value,
            fits: "true".into(),
        };
        match e {
            Expr::Paren(p) => self.expression(&p.expr, parameters),
            // Constants of the ABI are written `X as i64`; all are below 2^63.
            Expr::Cast(c) => self.expression(&c.expr, parameters),
            Expr::Lit(l) => match &l.lit {
                Lit::Int(n) => {
                    let n: i64 = n.base10_parse().map_err(|e| e.to_string())?;
                    Ok(plain(self.constant(number(n), &n.to_string())))
                }
                _ => Err("a literal that is no number".into()),
            },
            Expr::Path(p) => {
                let segments: Vec<_> = p
                    .path
                    .segments
                    .iter()
                    .map(|s| s.ident.to_string())
                    .collect();
                let name = segments.join("::");
                if parameters.contains(&name) {
                    return Ok(plain(name));
                }
                let value = self.constants.get(&name).cloned();
                let value = value.ok_or_else(|| format!("{name}: its value is not known"))?;
                Ok(plain(self.constant(value, &name)))
            }
            Expr::Unary(u) => {
                let Term { value, fits } = self.expression(&u.expr, parameters)?;
                match u.op {
                    UnOp::Not(_) => Ok(Term {
                        value: format!("(not {value})"),
                        fits,
                    }),
                    UnOp::Neg(_) => Ok(Term {
                        fits: format!("(and {fits} (distinct {value} {}))", number(i64::MIN)),
                        value: format!("(bvneg {value})"),
                    }),
                    _ => Err("an operator that is not known".into()),
                }
            }
            Expr::Binary(b) => self.binary(b, parameters),
            _ => Err(format!(
                "{}: an expression that is not known",
                self.function
            )),
        }
    }

    /// A constant; a mutant adds one to it.
    fn constant(&mut self, value: String, name: &str) -> String {
        if self.function.is_empty() || !self.changes(format!("{name} + 1")) {
            return value;
        }
        format!("(bvadd {value} {})", number(1))
    }

    fn binary(&mut self, b: &syn::ExprBinary, parameters: &[String]) -> Result<Term, String> {
        let left = self.expression(&b.left, parameters)?;
        let right = self.expression(&b.right, parameters)?;
        let (l, r) = (&left.value, &right.value);
        let both = format!("(and {} {})", left.fits, right.fits);
        // The operator, and a mutant's replacement.
        let (operator, other) = match b.op {
            BinOp::Lt(_) => ("bvslt", "bvsle"),
            BinOp::Le(_) => ("bvsle", "bvslt"),
            BinOp::Gt(_) => ("bvsgt", "bvsge"),
            BinOp::Ge(_) => ("bvsge", "bvsgt"),
            BinOp::Add(_) => ("bvadd", "bvsub"),
            BinOp::Sub(_) => ("bvsub", "bvadd"),
            BinOp::And(_) => ("and", "or"),
            BinOp::Or(_) => ("or", "and"),
            _ => return Err(format!("{}: an operator that is not known", self.function)),
        };
        let changed = !self.function.is_empty() && self.changes(format!("{operator} -> {other}"));
        let used = if changed { other } else { operator };
        let value = format!("({used} {l} {r})");
        let fits = match used {
            "bvadd" | "bvsub" => {
                let wide = |t: &str| format!("((_ sign_extend 1) {t})");
                let exact = format!("({used} {} {})", wide(l), wide(r));
                format!("(and {both} (= {exact} {}))", wide(&value))
            }
            "and" => format!("(and {} (=> {l} {}))", left.fits, right.fits),
            "or" => format!("(and {} (=> (not {l}) {}))", left.fits, right.fits),
            _ => both,
        };
        Ok(Term { value, fits })
    }
}

fn parameter(argument: &FnArg) -> Result<String, String> {
    let FnArg::Typed(typed) = argument else {
        return Err("a method".into());
    };
    match (&*typed.pat, &*typed.ty) {
        (Pat::Ident(name), syn::Type::Path(ty)) if ty.path.is_ident("i64") => {
            Ok(name.ident.to_string())
        }
        _ => Err("a parameter that is not of type i64".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &str) -> Result<String, String> {
        let constants = BTreeMap::from([("stlb::BELOW", 16)]);
        translate(source, &constants, None).map(|t| t.text)
    }

    #[test]
    fn a_comparison_becomes_two_definitions() {
        let text = of("pub fn f(a: i64) -> bool { a + 1 <= stlb::BELOW as i64 }").unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "(define-fun f ((a W)) Bool (bvsle (bvadd a #x0000000000000001) #x0000000000000010))"
        );
        assert!(lines[1].starts_with("(define-fun f.fits ((a W)) Bool "));
        assert!(lines[1].contains("sign_extend 1"));
    }

    #[test]
    fn what_is_not_in_the_subset_is_an_error() {
        for source in [
            "fn f(a: u8) -> bool { a < 1 }",
            "fn f(a: i64) -> bool { let b = a; b < 1 }",
            "fn f(a: i64) -> bool { a * 2 < 1 }",
            "fn f(a: i64) -> bool { a.wrapping_add(2) < 1 }",
            "fn f(a: i64) -> bool { a < OTHER }",
            "static X: i64 = 1;",
        ] {
            assert!(of(source).is_err(), "{source}");
        }
    }

    #[test]
    fn each_mutant_changes_one_place() {
        let source = "fn f(a: i64) -> bool { a + 1 < 2 && !(a < 0) }";
        let none = translate(source, &BTreeMap::new(), None).unwrap();
        assert_eq!(none.places.len(), 7);
        let mut seen = vec![none.text];
        for place in 0..none.places.len() {
            let mutant = Some(SourceChange { place });
            let changed = translate(source, &BTreeMap::new(), mutant).unwrap();
            assert!(!seen.contains(&changed.text), "{:?}", none.places[place]);
            seen.push(changed.text);
        }
    }
}
