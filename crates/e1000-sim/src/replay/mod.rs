//! The driver's own part of what a packet costs, measured so that it repeats.
//!
//! The driver's work is spread over a packet's way: some hundred instructions, a hot
//! routine, fifty more. A time stamp at each boundary costs as much as the code between
//! two of them, and drains the pipeline; a sampler is biased to where the processor
//! takes interrupts. So the driver's part is played again, alone:
//!
//! ```text
//! record   some batches of real packets, natively, step by step         tape
//! play     the same calls, answers and memory, as often as needed:
//!            natively    dom0's own driver, patched as a kernel loads it ┐ by
//!            rewritten   the hypervisor instance's                       ┘ turns
//! ```
//!
//! Routines that the driver calls are not run: a few instructions give the recorded
//! answer, and the time of these is measured alone and subtracted. Alone they take longer
//! than beside the driver: a processor works at both at once. So the ratio of two drivers is
//! also given unsubtracted, and their own is between. Both drivers play the
//! same tape on the same pages of memory and the same processor, and must leave memory
//! as the recorded packets left it. A play takes less than the time between two
//! timer interrupts. Where another thread works on the same *core*, both drivers are
//! slower for a while, and not by the same factor. So the result is taken from the tenth
//! of the plays, and of the turns, that was disturbed least; only a machine that is busy
//! all the time disturbs that. Each turn plays at several places of the player's code and
//! of the stack ([`player`]).
//!
//! Not included: hot routines, runtime and guests leave nothing in caches and
//! predictors that would slow the driver. So this is the driver's cost with warm
//! caches; the packet loop measures the cost of all together.

pub(crate) mod grounds;
pub(crate) mod player;
pub(crate) mod recorder;
pub(crate) mod tape;

pub use tape::{Tape, TapeSlot};

use serde::{Deserialize, Serialize};

use crate::measure::profile::{Component, enter_phase};
use crate::measure::steps::{self, Steps};
use player::{Ground, Player, PlayerPlace};

/// Plays at each place that are counted.
const PLAYS: usize = 24;
/// Plays before these, which warm caches and predictors up.
const WARM_UP: usize = 3;

/// The cost of a turn of one driver: a tenth of its plays cost less.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Cycles a packet, the player's own subtracted.
    pub cycles: f64,
    /// The player's own.
    pub player: f64,
}

impl Turn {
    /// Of several turns with one recording: a tenth of them cost less. `None` without turns.
    pub fn undisturbed(turns: &[Turn]) -> Option<Turn> {
        let mut turns = turns.to_vec();
        turns.sort_by(|one, other| one.cycles.total_cmp(&other.cycles));
        turns.get(turns.len() / 10).copied()
    }
}

/// Lets a driver play a tape often enough, at each place of the player: the medians of the
/// places.
///
/// # Errors
/// Why it cannot, or that it does something other than it did when recorded.
pub fn turn<G: Ground>(tape: &Tape, ground: &mut G) -> Result<Turn, String> {
    let turns = PlayerPlace::all().map(|place| turn_at(place, tape, ground));
    let turns = turns.collect::<Result<Vec<Turn>, String>>()?;
    let median = |value: fn(&Turn) -> f64| {
        let mut values: Vec<f64> = turns.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Ok(Turn {
        cycles: median(|turn| turn.cycles),
        player: median(|turn| turn.player),
    })
}

fn turn_at<G: Ground>(place: PlayerPlace, tape: &Tape, ground: &mut G) -> Result<Turn, String> {
    let mut player = Player::new(tape, ground, place)?;
    for _ in 0..WARM_UP {
        player.play(true)?;
        player.play(false)?;
        player.check()?;
    }
    let mut whole = Vec::with_capacity(PLAYS);
    let mut alone = Vec::with_capacity(PLAYS);
    for _ in 0..PLAYS {
        whole.push(player.play(false)?);
        alone.push(player.play(true)?);
    }
    let packets = tape.packets.max(1) as f64;
    let [whole, alone] = [whole, alone].map(|plays| undisturbed(plays) as f64 / packets);
    Ok(Turn {
        cycles: whole - alone,
        player: alone,
    })
}

/// The driver's instructions in one play; `host` is whose the player's are.
///
/// # Errors
/// As [`turn`], or a system call's.
pub fn count<G: Ground>(tape: &Tape, ground: &mut G, host: Component) -> Result<Steps, String> {
    let place = PlayerPlace::all().next().expect("there are some");
    let mut player = Player::new(tape, ground, place)?;
    player.play(false)?;
    let counted = steps::count(|| {
        enter_phase(host);
        let played = player.play(false);
        enter_phase(Component::Idle);
        played
    });
    let (played, steps) = counted.map_err(|error| error.to_string())?;
    played?;
    player.check()?;
    Ok(steps)
}

/// The value that a tenth of the values are below.
fn undisturbed(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 10).copied().unwrap_or(0)
}
