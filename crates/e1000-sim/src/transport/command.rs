//! The supervisor's commands to dom0, and the answers.

use crate::dom0::job::{self, Job};
use crate::dom0::oops::Oops;
use crate::memory::BarMode;

/// A request to dom0's thread 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Call any dom0 function, as CPU 0.
    Call {
        /// Its dom0 address ([`crate::image::KernelPlan::symbol`]).
        function: u64,
        /// As the psABI passes them.
        arguments: [u64; 6],
    },
    /// Run one of the functions that [`crate::dom0::Dom0::start_with`] was given.
    Work {
        /// Its place in that list.
        number: u32,
        /// Numbers that it understands.
        arguments: [u64; 5],
    },
    /// Make dom0's accesses to the NIC trap or not.
    SetBar(BarMode),
    /// Run a packet loop; its outcome is in the mailbox.
    Job(Job),
    /// Run the order in the mailbox's slot for the emulated card.
    Emulate,
    /// End the process. The process's end is the only answer.
    Exit,
}

/// Words of an encoded command.
pub const WORDS: usize = 1 + job::WORDS;

const CALL: u64 = 1;
const SET_BAR: u64 = 2;
const EXIT: u64 = 3;
const WORK: u64 = 4;
const JOB: u64 = 5;
const EMULATE: u64 = 6;

impl Command {
    /// As words.
    pub fn encode(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        match *self {
            Command::Call {
                function,
                arguments,
            } => {
                words[0] = CALL;
                words[1] = function;
                words[2..].copy_from_slice(&arguments);
            }
            Command::Work { number, arguments } => {
                words[0] = WORK;
                words[1] = u64::from(number);
                words[2..7].copy_from_slice(&arguments);
            }
            Command::SetBar(mode) => {
                words[0] = SET_BAR;
                words[1] = u64::from(mode == BarMode::Open);
            }
            Command::Job(job) => {
                words[0] = JOB;
                words[1..].copy_from_slice(&job.encode());
            }
            Command::Emulate => words[0] = EMULATE,
            Command::Exit => words[0] = EXIT,
        }
        words
    }

    /// From words, if they are one.
    pub fn decode(words: &[u64; WORDS]) -> Option<Command> {
        Some(match words[0] {
            CALL => Command::Call {
                function: words[1],
                arguments: words[2..].try_into().ok()?,
            },
            SET_BAR if words[1] == 0 => Command::SetBar(BarMode::Trapped),
            SET_BAR => Command::SetBar(BarMode::Open),
            JOB => Command::Job(Job::decode(words[1..].try_into().ok()?)?),
            EMULATE => Command::Emulate,
            EXIT => Command::Exit,
            WORK => Command::Work {
                number: u32::try_from(words[1]).ok()?,
                arguments: words[2..7].try_into().ok()?,
            },
            _ => return None,
        })
    }
}

/// How kernel code ended, as it crosses processes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelEnding {
    /// [`RETURNED`], [`OOPS`] or [`FAILED`].
    pub kind: u64,
    /// `rax` if it returned; a [`crate::dom0::Failure`] if it failed.
    pub result: u64,
    /// `rdx` if it returned.
    pub result_high: u64,
    /// The oops, if it is one.
    pub oops: Oops,
}

/// [`KernelEnding::kind`] of code that returned.
pub const RETURNED: u64 = 0;
/// [`KernelEnding::kind`] of code that ended in an oops.
pub const OOPS: u64 = 1;
/// [`KernelEnding::kind`] of a request that dom0 could not begin.
pub const FAILED: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_survive_the_crossing() {
        let commands = [
            Command::Call {
                function: 7,
                arguments: [1, 2, 3, 4, 5, u64::MAX],
            },
            Command::SetBar(BarMode::Open),
            Command::SetBar(BarMode::Trapped),
            Command::Emulate,
            Command::Exit,
            Command::Work {
                number: 3,
                arguments: [1, 2, 3, 4, 5],
            },
        ];
        for command in commands {
            assert_eq!(Command::decode(&command.encode()), Some(command));
        }
        assert_eq!(Command::decode(&[99; WORDS]), None);
    }
}
