//! The laws of the operations on facts, tried on every fact: a test.
//!
//! [`holds`] defines what each [`Form`] means of a number, given the numbers that names
//! name. The laws follow from that. Where paths meet, the facts that are kept are true
//! on both ([`Form::join`]). After a name was given to another number, the facts are true
//! of the new one ([`Form::without`], [`State::rename`], [`State::name`]). None of the
//! operations depends on the value of a name, so three names, in all combinations, stand
//! for any: the renamed one, the other one, and an unrelated one. Two of them share a bit
//! of [`State::rename`]'s memory.
//!
//! The arithmetic of the forms is proved elsewhere (`crates/prove`).

use twin_abi::{stack, stlb, window};

use super::{Bound, Direction, Form, Name, State, Value};
use crate::insn::Gpr;

/// Names by number, and what they name.
type Env = [u64; 3];

const ENTRY: u64 = 0x7f_0000_5ff8;
/// What the word at `rsp` at entry was.
const RETURN: u64 = 0x5000_0123_4567;
/// Where the window is.
const WINDOW: u64 = 0x12_3400_0000_0000;
const ALIGNED: u64 = 0x7f_0000_5f00;
const VALUES: [u64; 3] = [5, 0x1fff, 0xffff_8000_0000_1234];

fn name(n: usize) -> Name {
    // The first two are the same modulo 64.
    Name::of([0, 64, 1][n])
}

fn value_of(x: Name, env: &Env) -> u64 {
    let n = (0..3).find(|&n| name(n) == x).expect("one of the three");
    env[n]
}

fn environments() -> impl Iterator<Item = Env> {
    let all = move |n: usize| [VALUES[n % 3], VALUES[n / 3 % 3], VALUES[n / 9]];
    (0..27).map(all)
}

/// Some page that the entry of an address may be for: its own of some addresses only.
fn tag(x: u64) -> u64 {
    x & 0x1000
}

/// A translation: the top bit tells it from every other number here.
fn translation(x: u64) -> u64 {
    x >> 1 | 1 << 63
}

/// The most that a count within a bound may be.
fn most(bound: Bound, env: &Env) -> u64 {
    let in_page = value_of(bound.from, env) & (stlb::PAGE_SIZE - 1);
    match bound.direction {
        Direction::Forward => (stlb::WINDOW_PAGES * stlb::PAGE_SIZE - 1 - in_page) >> bound.shift,
        Direction::Backward => (in_page >> bound.shift) + 1,
    }
}

/// Whether a form is true of a number.
fn holds(form: Form, v: u64, env: &Env) -> bool {
    let n = |x| value_of(x, env);
    let (shift, mask) = (stlb::INDEX_SHIFT, stlb::INDEX_MASK);
    match form {
        Form::Any => true,
        Form::Stack(at) | Form::LoadedStack(at) => v == ENTRY.wrapping_add_signed(at.into()),
        Form::Aligned(at) | Form::LoadedAligned(at) => v == ALIGNED.wrapping_add_signed(at.into()),
        Form::ContextTop => v == ENTRY | (stack::BLOCK - 1),
        Form::ReturnWord => v == RETURN,
        Form::Low32(x) => v == n(x) & 0xffff_ffff,
        Form::Shifted(x) => v == (n(x) & 0xffff_ffff) >> shift,
        Form::Page(x) => v == n(x) & !(stlb::PAGE_SIZE - 1),
        Form::PageBits(x) => v == n(x) & mask << shift,
        Form::Index(x) => v == n(x) >> shift & mask,
        Form::Offset(x) => v == n(x).wrapping_sub(tag(n(x))),
        Form::Checked(x) => v == n(x).wrapping_sub(tag(n(x))) && v < stlb::PAGE_SIZE,
        Form::Translated(None) => v >> 63 == 1,
        Form::Translated(Some(x)) => v == translation(n(x)),
        Form::PageOffset(x, by) => v == (n(x) & (stlb::PAGE_SIZE - 1)) >> by,
        Form::Count(..) => form
            .bounds()
            .into_iter()
            .flatten()
            .all(|b| v <= most(b, env)),
        Form::Below(most) => v <= most.into(),
        Form::LowHalf => v >> 32 == 0,
        Form::WindowStart => v == WINDOW,
        Form::WindowPointer => v.wrapping_sub(WINDOW) < window::SIZE,
        Form::Place => v >> window::wide::BITS == 0,
        Form::WidePointer => v.wrapping_sub(WINDOW) < window::wide::SIZE,
    }
}

/// Every form about the three names, with some constants.
fn forms() -> Vec<Form> {
    let mut all = vec![
        Form::Any,
        Form::Stack(-8),
        Form::Stack(-16),
        Form::Aligned(-8),
        Form::LoadedStack(-8),
        Form::LoadedAligned(-8),
        Form::ContextTop,
        Form::ReturnWord,
        Form::Translated(None),
        Form::Below(0),
        Form::Below(63),
        Form::LowHalf,
        Form::WindowStart,
        Form::WindowPointer,
        Form::Place,
        Form::WidePointer,
    ];
    for x in (0..3).map(name) {
        all.extend([
            Form::Low32(x),
            Form::Shifted(x),
            Form::Page(x),
            Form::PageBits(x),
            Form::Index(x),
            Form::Offset(x),
            Form::Checked(x),
            Form::Translated(Some(x)),
            Form::PageOffset(x, 0),
            Form::PageOffset(x, 3),
        ]);
        for (shift, direction) in [
            (0, Direction::Forward),
            (3, Direction::Forward),
            (0, Direction::Backward),
        ] {
            let bound = Bound {
                from: x,
                shift,
                direction,
            };
            let others = (0..3).map(name).filter(|&y| y != x);
            all.push(Form::Count(bound, None));
            all.extend(others.map(|y| Form::Count(bound, Some(y))));
        }
    }
    all
}

/// Numbers of which a form may be true: all those that the forms above give, and those
/// next to a bound.
fn numbers(env: &Env) -> Vec<u64> {
    let mut all = vec![0, 1, 63, 64, u64::MAX];
    all.extend([-8, -16].map(|at| ENTRY.wrapping_add_signed(at)));
    all.extend([
        ALIGNED - 8,
        ENTRY | (stack::BLOCK - 1),
        0x5ea1 << 48,
        RETURN,
        WINDOW,
        WINDOW + window::SIZE - 1,
        WINDOW + window::SIZE,
        WINDOW + window::wide::SIZE - 1,
        WINDOW + window::wide::SIZE,
        window::wide::SIZE - 1,
        window::wide::SIZE,
    ]);
    for &x in env {
        let in_page = x & (stlb::PAGE_SIZE - 1);
        all.extend([x, x & 0xffff_ffff, (x & 0xffff_ffff) >> 8, x & !0xfff]);
        all.extend([x & 0xff_f000, x >> 8 & 0xfff0, x.wrapping_sub(tag(x))]);
        all.extend([translation(x), in_page, in_page >> 3, in_page + 1]);
        all.extend([in_page + 2, 0x1fff - in_page, 0x2000 - in_page]);
        all.extend([(0x1fff - in_page) >> 3, ((0x1fff - in_page) >> 3) + 1]);
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// How many steps a form is above what allows least, at most.
fn height(form: Form) -> usize {
    match form {
        Form::Any => 1,
        Form::Translated(Some(_)) | Form::Count(_, Some(_)) => 3,
        // What was loaded is below what is known.
        Form::Stack(_) | Form::Aligned(_) => 3,
        _ => 2,
    }
}

#[test]
fn a_form_is_true_of_some_of_the_numbers_and_false_of_others() {
    for form in forms() {
        let mut seen = [false; 2];
        for env in environments() {
            for v in numbers(&env) {
                seen[usize::from(holds(form, v, &env))] = true;
            }
        }
        let says_something = !matches!(form, Form::Any);
        assert_eq!(seen, [says_something, true], "{form:?}");
    }
}

#[test]
fn what_is_kept_where_paths_meet_is_true_on_both() {
    let forms = forms();
    for env in environments() {
        let numbers = numbers(&env);
        for &a in &forms {
            for &v in numbers.iter().filter(|&&v| holds(a, v, &env)) {
                for &b in &forms {
                    let value = |form| Value { name: None, form };
                    assert!(holds(value(a).join(value(b)).form, v, &env), "{a:?} {b:?}");
                    assert!(holds(value(b).join(value(a)).form, v, &env), "{b:?} {a:?}");
                }
            }
        }
    }
}

#[test]
fn meeting_again_changes_nothing_and_each_change_is_a_step_down() {
    let join = |a, b| Value::of(a).join(Value::of(b)).form;
    for a in forms() {
        assert_eq!(join(a, a), a);
        for b in forms() {
            let both = join(a, b);
            assert_eq!(join(both, b), both, "{a:?} {b:?}");
            assert!(both == a || height(both) < height(a), "{a:?} {b:?}");
        }
    }
}

#[test]
fn the_smaller_of_two_counts_is_within_the_bounds_of_each() {
    let counts: Vec<Form> = forms()
        .into_iter()
        .filter(|f| matches!(f, Form::Count(..) | Form::Any))
        .collect();
    for env in environments() {
        let numbers = numbers(&env);
        for &a in &counts {
            for &b in &counts {
                let smaller = a.minimum(b);
                for &v in numbers.iter().filter(|&&v| holds(a, v, &env)) {
                    for &w in numbers.iter().filter(|&&w| holds(b, w, &env)) {
                        assert!(holds(smaller, v.min(w), &env), "{a:?} {b:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_left_of_a_form_is_true_whatever_its_name_means_now() {
    for env in environments() {
        for form in forms() {
            for v in numbers(&env).into_iter().filter(|&v| holds(form, v, &env)) {
                for other in VALUES {
                    let mut now = env;
                    now[0] = other;
                    let left = form.without(name(0));
                    assert!(!left.mentions(name(0)) && holds(left, v, &now), "{form:?}");
                }
            }
        }
    }
}

#[test]
fn a_form_by_another_name_of_the_same_number_means_the_same() {
    let (old, new) = (name(0), name(1));
    for env in environments().filter(|env| env[0] == env[1]) {
        for form in forms().into_iter().filter(|f| !f.mentions(new)) {
            let renamed = form.renamed(old, new);
            assert!(!renamed.mentions(old), "{form:?}");
            for v in numbers(&env) {
                assert_eq!(holds(form, v, &env), holds(renamed, v, &env), "{form:?}");
            }
        }
    }
}

/// Whether all that is known of two registers is true of two numbers.
fn true_of(state: &State, [a, c]: [u64; 2], env: &Env) -> bool {
    [(Gpr::RAX, a), (Gpr::RCX, c)].into_iter().all(|(r, v)| {
        let known = state.get(r);
        known.name.is_none_or(|x| value_of(x, env) == v) && holds(known.form, v, env)
    })
}

/// States in which two registers hold what the names and forms say.
fn states(first: Value, second: Value) -> State {
    let mut state = State::entry();
    for x in (0..3).map(name) {
        // Every name in a state was given once.
        state.rename(x);
    }
    state.write(Gpr::RAX, first);
    state.write(Gpr::RCX, second);
    state
}

fn all_values() -> Vec<Value> {
    let names = [None, Some(name(0)), Some(name(1)), Some(name(2))];
    let all = forms().into_iter();
    all.flat_map(|form| names.map(|name| Value { name, form }))
        .collect()
}

#[test]
fn a_name_given_to_a_register_is_true_of_it_and_nothing_false_stays() {
    let values = all_values();
    for env in environments() {
        let numbers = numbers(&env);
        let fits = |value: &Value, v: u64| {
            value.name.is_none_or(|x| value_of(x, &env) == v) && holds(value.form, v, &env)
        };
        // One number for each value that can be true here.
        let possible: Vec<(Value, u64)> = values
            .iter()
            .filter_map(|value| {
                let v = numbers.iter().find(|&&v| fits(value, v))?;
                Some((*value, *v))
            })
            .collect();
        for &(first, v) in &possible {
            for &(second, w) in &possible {
                let mut state = states(first, second);
                assert!(true_of(&state, [v, w], &env));
                state.name(Gpr::RAX, name(0));
                let mut now = env;
                now[0] = v;
                assert!(true_of(&state, [v, w], &now), "{first:?} {second:?}");
                assert_eq!(state.get(Gpr::RAX).name, Some(name(0)));
            }
        }
    }
}

#[test]
fn nothing_is_known_by_a_name_that_was_given_to_another_number() {
    let bystander = Value::of(Form::Low32(name(2)));
    for value in all_values() {
        for x in (0..3).map(name) {
            let mut state = states(value, bystander);
            state.rename(x);
            for known in [state.get(Gpr::RAX), state.get(Gpr::RCX)] {
                assert!(
                    known.name != Some(x) && !known.form.mentions(x),
                    "{value:?}"
                );
            }
        }
    }
}

#[test]
fn states_that_meet_keep_what_both_know() {
    let values = all_values();
    for &mine in &values {
        for &theirs in &values {
            let (mut a, b) = (states(mine, theirs), states(theirs, theirs));
            let (before, changed) = (a.clone(), a.join(&b));
            assert_eq!(a.get(Gpr::RAX), mine.join(theirs));
            assert_eq!(a.get(Gpr::RCX), theirs);
            assert_eq!(changed, a != before);
            assert!(!a.join(&b), "{mine:?} {theirs:?}");
        }
    }
}
