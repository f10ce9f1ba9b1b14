//! One kernel's modules for both targets: what `make corpus` tells of a kernel.
//!
//! [`Kernel::find`] lists the files, so that a directory that is missing is known before
//! anything takes time; [`Kernel::survey`] rewrites and verifies them.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};

use svm_rewrite::Target;

use crate::files::of_release;
use crate::{Cost, Meter, Tally};

/// What the paths of Ethernet drivers have in them.
const ETHERNET: &str = "drivers/net/ethernet";
/// The share of all modules that the goals ask for.
const SHARE: f64 = 0.995;

/// The modules of a kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its release, `6.1.0-56-amd64`: the name of the directory that has its modules,
    /// wherever links to it are.
    pub release: String,
    /// All its modules, by path.
    pub modules: Vec<PathBuf>,
}

impl Kernel {
    /// The kernel with the modules below `directory`, which may have a kernel's whole package.
    ///
    /// # Errors
    /// The directory cannot be read, or has no modules.
    pub fn find(directory: &Path) -> Result<Kernel> {
        let named = |why: String| Error::other(format!("{}: {why}", directory.display()));
        let directory = &*of_release(directory).map_err(|error| named(error.to_string()))?;
        let modules = crate::modules(directory, "").map_err(|error| named(error.to_string()))?;
        if modules.is_empty() {
            return Err(named("no modules".to_owned()));
        }
        let real = directory.canonicalize()?;
        let release = real.file_name().unwrap_or(real.as_os_str());
        Ok(Kernel {
            release: release.to_string_lossy().into_owned(),
            modules,
        })
    }

    /// Tries all modules for `linux`, those for Ethernet also for `hypervisor`, `jobs` at a
    /// time.
    pub fn survey(&self, jobs: usize, progress: &(dyn Fn(usize, usize) + Sync)) -> Survey {
        let (linux, linux_cost) = measured(&self.modules, Target::Linux, jobs, progress);
        let ethernet: Vec<PathBuf> = self
            .modules
            .iter()
            .filter(|m| is_ethernet(m))
            .cloned()
            .collect();
        let (hypervisor, hypervisor_cost) = measured(&ethernet, Target::Hypervisor, jobs, progress);
        Survey {
            release: self.release.clone(),
            ethernet: of_ethernet(&linux),
            linux,
            hypervisor,
            linux_cost,
            hypervisor_cost,
        }
    }
}

fn measured(
    modules: &[PathBuf],
    target: Target,
    jobs: usize,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> (Tally, Cost) {
    let meter = Meter::of_this_process();
    let tally = crate::run(modules, target, jobs, progress);
    (tally, meter.read())
}

fn is_ethernet(path: &Path) -> bool {
    path.to_string_lossy().contains(ETHERNET)
}

fn of_ethernet(tally: &Tally) -> Tally {
    let modules = tally.modules.iter().filter(|(path, _)| is_ethernet(path));
    Tally {
        modules: modules.cloned().collect(),
    }
}

/// What came of a kernel's modules.
#[derive(Debug)]
pub struct Survey {
    /// The kernel's release.
    pub release: String,
    /// All modules for `linux`.
    pub linux: Tally,
    /// Of these the Ethernet modules.
    pub ethernet: Tally,
    /// The Ethernet modules for `hypervisor`.
    pub hypervisor: Tally,
    /// Reading, rewriting and verifying for `linux`.
    pub linux_cost: Cost,
    /// The same for `hypervisor`.
    pub hypervisor_cost: Cost,
}

impl Survey {
    /// The header of the table that [`Survey::row`] gives rows of.
    pub const HEADER: &str = "\
| kernel | accepted for linux | share | Ethernet for linux | for hypervisor | elapsed s |
|---|---|---|---|---|---|";

    /// A row of the table of kernels, in Markdown.
    pub fn row(&self) -> String {
        let of = |tally: &Tally| format!("{} of {}", tally.accepted(), tally.modules.len());
        format!(
            "| {} | {} | {:.2}% | {} | {} | {:.1} |",
            self.release,
            of(&self.linux),
            100.0 * self.linux.share(),
            of(&self.ethernet),
            of(&self.hypervisor),
            self.seconds()
        )
    }

    /// Elapsed for both targets, in seconds: reading, rewriting, verifying.
    pub fn seconds(&self) -> f64 {
        self.linux_cost.seconds + self.hypervisor_cost.seconds
    }

    /// Whether the goals are met: every Ethernet module for both targets, 99.5% of all for
    /// `linux`.
    pub fn meets_goals(&self) -> bool {
        let whole = |tally: &Tally| tally.accepted() == tally.modules.len();
        self.linux.share() >= SHARE && whole(&self.ethernet) && whole(&self.hypervisor)
    }
}

/// The last line: all kernels together.
pub fn total(surveys: &[Survey], cores: usize) -> String {
    let modules: usize = surveys.iter().map(|s| s.linux.modules.len()).sum();
    let seconds: f64 = surveys.iter().map(Survey::seconds).sum();
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    format!(
        "{} of {} in {seconds:.1} s on {}",
        plural(modules, "module"),
        plural(surveys.len(), "kernel"),
        plural(cores, "core")
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::ModuleOutcome;

    const COST: Cost = Cost {
        seconds: 2.25,
        processor: 4.0,
        peak: 1.0,
    };

    /// `accepted` of `all` modules of a driver's directory.
    fn tally(directory: &str, accepted: usize, all: usize) -> Tally {
        let module = |n| {
            let outcome = match n < accepted {
                true => ModuleOutcome::Accepted {
                    instructions: 1,
                    sites: 1,
                },
                false => ModuleOutcome::Refused(BTreeSet::new(), String::new()),
            };
            (PathBuf::from(format!("{directory}/{n}.ko")), outcome)
        };
        Tally {
            modules: (0..all).map(module).collect(),
        }
    }

    fn survey(linux: usize, hypervisor: usize) -> Survey {
        let linux = tally("sound", linux, 1000);
        Survey {
            release: "5.10.0-46-amd64".to_owned(),
            ethernet: tally(ETHERNET, 3, 3),
            linux,
            hypervisor: tally(ETHERNET, hypervisor, 3),
            linux_cost: COST,
            hypervisor_cost: COST,
        }
    }

    #[test]
    fn a_kernel_is_a_row_and_all_of_them_a_line() {
        assert_eq!(
            survey(997, 3).row(),
            "| 5.10.0-46-amd64 | 997 of 1000 | 99.70% | 3 of 3 | 3 of 3 | 4.5 |"
        );
        assert_eq!(
            total(&[survey(997, 3), survey(995, 2)], 2),
            "2000 modules of 2 kernels in 9.0 s on 2 cores"
        );
        assert_eq!(
            total(&[survey(1000, 3)], 1),
            "1000 modules of 1 kernel in 4.5 s on 1 core"
        );
    }

    #[test]
    fn goals_are_all_of_ethernet_and_nearly_all_of_linux() {
        assert!(survey(995, 3).meets_goals());
        assert!(!survey(994, 3).meets_goals());
        assert!(!survey(1000, 2).meets_goals());
    }

    #[test]
    fn ethernet_modules_are_told_by_their_path() {
        let mut all = tally("sound", 1, 1);
        all.modules.extend(tally(ETHERNET, 2, 2).modules);
        assert_eq!(of_ethernet(&all).modules, tally(ETHERNET, 2, 2).modules);
    }
}
