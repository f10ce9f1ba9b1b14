//! Many functions on many images, on several threads; results in numbers.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use process_lab::error::Error;
use process_lab::program::LinkedCode;
use process_lab::stock::Stock;

use crate::differential::features::Instructions;
use crate::differential::functions::Subject;
use crate::differential::session::{ImageResult, Session};
use crate::differential::trace::Ending;

/// How much to do.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Images for each function.
    pub images: u64,
    /// Of these, how many are stepped to see what is executed.
    pub stepped: u64,
    /// The first image's number.
    pub first: u64,
    /// Threads, each with workers of its own.
    pub jobs: usize,
}

/// Most differences that are kept in words.
const KEPT: usize = 5;

/// The result for one function.
#[derive(Clone, Debug)]
pub struct Row {
    /// The function, as the module names it.
    pub name: &'static str,
    /// Images run.
    pub images: u64,
    /// Native runs by how they ended, by [`Ending`].
    pub endings: [u64; Ending::ALL.len()],
    /// Calls out.
    pub calls: u64,
    /// Runs in which something differed, all rewritings together.
    pub differing: u64,
    /// The first of them in words.
    pub differences: Vec<String>,
    /// Instructions of the function, its cold part included, that stepped runs
    /// executed, and how many there are.
    pub executed: (u64, u64),
}

impl Row {
    fn new(name: &'static str) -> Row {
        let (endings, executed) = ([0; Ending::ALL.len()], (0, 0));
        Row {
            name,
            images: 0,
            endings,
            calls: 0,
            differing: 0,
            differences: Vec::new(),
            executed,
        }
    }

    /// Runs that ended so.
    pub fn ended(&self, ending: Ending) -> u64 {
        self.endings[ending as usize]
    }

    /// Runs that were compared.
    pub fn compared(&self) -> u64 {
        self.images - self.ended(Ending::TimeBudget)
    }

    fn count(&mut self, verdict: &ImageResult) {
        self.images += 1;
        self.endings[Ending::from_number(verdict.native.ending) as usize] += 1;
        self.calls += verdict.native.events;
    }

    fn keep(&mut self, text: String) {
        self.differing += 1;
        if self.differences.len() < KEPT {
            self.differences.push(text);
        }
    }
}

/// The results of a campaign.
#[derive(Debug, Default)]
pub struct DifferentialReport {
    /// By function, in the order of the table.
    pub rows: Vec<Row>,
    /// Starts of executed instructions, a byte for each byte of code.
    pub coverage: Vec<u8>,
}

/// Rows with their places in the table, and the coverage bytes.
type Collected = (Vec<(usize, Row)>, Vec<u8>);

/// Runs `subjects` and compares. `progress` is called with each finished function.
///
/// # Errors
/// The workers could not be started, or a rewritten worker had dom0 mapped. A
/// worker that dies is a difference.
pub fn run(
    stock: &Stock<'_>,
    programs: &[LinkedCode],
    subjects: &[&'static Subject],
    plan: Extent,
    progress: &(dyn Fn(&Row) + Sync),
) -> Result<DifferentialReport, Error> {
    let next = AtomicUsize::new(0);
    let instructions = Instructions::of(stock);
    let collected: Mutex<Collected> = Mutex::default();
    let thread = || -> Result<(), Error> {
        let mut session = Session::new(stock, programs)?;
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(subject) = subjects.get(i) else {
                break;
            };
            let row = function(stock, programs, &mut session, subject, plan)?;
            progress(&row);
            collected
                .lock()
                .expect("no thread panics with it")
                .0
                .push((i, row));
        }
        session.check_unmapped()?;
        let mut all = collected.lock().expect("no thread panics with it");
        merge(&mut all.1, &session.coverage());
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.jobs.max(1)).map(|_| scope.spawn(thread)).collect();
        threads
            .into_iter()
            .try_for_each(|t| t.join().expect("a campaign thread panicked"))
    })?;
    let (mut rows, coverage) = collected.into_inner().expect("all threads ended");
    rows.sort_by_key(|(i, _)| *i);
    let mut report = DifferentialReport {
        rows: rows.into_iter().map(|(_, row)| row).collect(),
        coverage,
    };
    for row in &mut report.rows {
        row.executed = instructions.executed(stock, row.name, &report.coverage);
    }
    Ok(report)
}

fn function<'s>(
    stock: &'s Stock<'s>,
    programs: &'s [LinkedCode],
    session: &mut Session<'s>,
    subject: &Subject,
    plan: Extent,
) -> Result<Row, Error> {
    let mut row = Row::new(subject.name);
    for image in plan.first..plan.first + plan.images {
        let verdict = match session.run(subject, image, image - plan.first < plan.stepped) {
            Ok(verdict) => verdict,
            Err(error @ Error::Worker { .. }) => {
                row.images += 1;
                row.keep(error.to_string());
                *session = Session::new(stock, programs)?;
                continue;
            }
            Err(other) => return Err(other),
        };
        row.count(&verdict);
        for (program, difference) in &verdict.differences {
            let scheme = programs[*program].variant.name();
            row.keep(format!(
                "{} --image {image} --scheme {scheme}: {difference}",
                subject.name
            ));
        }
    }
    Ok(row)
}

fn merge(all: &mut Vec<u8>, more: &[u8]) {
    all.resize(all.len().max(more.len()), 0);
    for (a, b) in all.iter_mut().zip(more) {
        *a |= b;
    }
}

impl DifferentialReport {
    /// Runs in which something differed.
    pub fn differing(&self) -> u64 {
        self.rows.iter().map(|row| row.differing).sum()
    }

    /// A sum over all functions.
    pub fn total(&self, of: impl Fn(&Row) -> u64) -> u64 {
        self.rows.iter().map(of).sum()
    }

    /// The table, a line for each function, and the closing line.
    pub fn table(&self, variants: usize) -> String {
        let mut text = format!(
            "{:<36}{:>7}{:>9}{:>8}{:>8}{:>10}{:>9}{:>10}{:>7}\n",
            "function",
            "images",
            "returned",
            "aborted",
            "budget",
            "unfinished",
            "calls",
            "executed",
            "differ"
        );
        for row in &self.rows {
            let _ = writeln!(text, "{row}");
        }
        let (executed, of) = (self.total(|r| r.executed.0), self.total(|r| r.executed.1));
        let compared = self.total(Row::compared);
        let _ = writeln!(
            text,
            "{} functions, {} images, {} compared under each of {variants} rewritings, {} not (too long), \
             {} aborts at equal places, {} calls, {} of {} instructions executed, {} differences",
            self.rows.len(),
            self.total(|r| r.images),
            compared,
            self.total(|r| r.ended(Ending::TimeBudget)),
            self.total(Row::aborted),
            self.total(|r| r.calls),
            executed,
            of,
            self.differing()
        );
        text
    }
}

impl Row {
    /// Runs that ended in an abort.
    pub fn aborted(&self) -> u64 {
        let aborts = [
            Ending::Fault,
            Ending::BadCall,
            Ending::Bug,
            Ending::Port,
            Ending::BadArgument,
        ];
        aborts.into_iter().map(|ending| self.ended(ending)).sum()
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = 100 * self.executed.0 / self.executed.1.max(1);
        let returned = self.ended(Ending::Returned) + self.ended(Ending::Stopped);
        write!(
            f,
            "{:<36}{:>7}{:>9}{:>8}{:>8}{:>10}{:>9}{:>9}%{:>7}",
            self.name,
            self.images,
            returned,
            self.aborted(),
            self.ended(Ending::CallBudget),
            self.ended(Ending::TimeBudget),
            self.calls,
            percent,
            self.differing
        )
    }
}
