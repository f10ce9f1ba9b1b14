//! One native worker and one rewritten worker for each scheme, and the steps that run
//! one function on one image in all of them.
//!
//! ```text
//! seed ─image::make─> file ─copy─> each worker's memory
//! native runs ─> the others run at the same time ─> compare
//! ```

use process_lab::address_space::Region;
use process_lab::error::Error;
use process_lab::mapping;
use process_lab::program::LinkedCode;
use process_lab::random::{Random, seed};
use process_lab::shared::Shared;
use process_lab::stock::Stock;

use crate::differential::compare::{Difference, Pair, end_text};
use crate::differential::functions::{Parameter, Subject};
use crate::differential::image;
use crate::differential::native::Native;
use crate::differential::objects;
use crate::differential::symbolise;
use crate::differential::trace::{Channel, Ending, MAX_EVENTS, Request, RunOutcome};
use crate::differential::twin::Twin;
use crate::differential::worker::Worker;

/// Processor time of a native run, in microseconds: loops on random memory are
/// sometimes endless.
const NATIVE_TIME: u64 = 12_000;
/// Of a native run that is stepped.
const STEPPED_TIME: u64 = 2_000_000;
/// Of a rewritten run whose native counterpart ended: practically unlimited.
const TWIN_TIME: u64 = 5_000_000;

/// The result for one image.
#[derive(Clone, Debug)]
pub struct ImageResult {
    /// The native run's outcome.
    pub native: RunOutcome,
    /// The rewritten runs' outcomes, in the order of the programs; empty if
    /// the native run did not end.
    pub twins: Vec<RunOutcome>,
    /// Differences, each with the number of its program.
    pub differences: Vec<(usize, Difference)>,
}

/// One native worker and one for each program, with the file of an image.
pub struct Session<'s> {
    stock: &'s Stock<'s>,
    programs: &'s [LinkedCode],
    native: Worker,
    twins: Vec<Worker>,
    file: Vec<u8>,
}

fn channel(stock: &Stock<'_>) -> Result<Channel, Error> {
    let code = stock.code();
    Channel::new(code.end - code.start).map_err(Error::system("a channel"))
}

fn memory(stock: &Stock<'_>) -> Result<Shared, Error> {
    let made = Shared::new(stock.space.size());
    let mut memory = made.map_err(Error::system("dom0's memory"))?;
    memory.write(0, &stock.pristine);
    Ok(memory)
}

impl<'s> Session<'s> {
    /// Starts the workers.
    pub fn new(stock: &'s Stock<'s>, programs: &'s [LinkedCode]) -> Result<Session<'s>, Error> {
        let native = Worker::start("native", memory(stock)?, channel(stock)?, |m| {
            Native::new(stock, m)
        })?;
        let twins = programs
            .iter()
            .map(|program| {
                let name = program.variant.name();
                Worker::start(name, memory(stock)?, channel(stock)?, |m| {
                    Twin::new(stock, program, m)
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Session {
            stock,
            programs,
            native,
            twins,
            file: stock.pristine.clone(),
        })
    }

    /// Runs `subject` on image number `image`. `step` records coverage, see
    /// [`Session::coverage`].
    ///
    /// # Errors
    /// A worker died or hangs.
    pub fn run(&mut self, subject: &Subject, image: u64, step: bool) -> Result<ImageResult, Error> {
        let request = self.prepare(subject, image, step)?;
        let broken = |worker: &'static str, how: String| Error::Worker {
            worker,
            how,
            function: subject.name.to_owned(),
            image,
        };
        load(self.stock, &self.file, &mut self.native);
        self.native.begin(&request);
        let native = self.native.finish().map_err(|how| broken("native", how))?;
        if Ending::from_number(native.ending) == Ending::TimeBudget {
            return Ok(ImageResult {
                native,
                twins: Vec::new(),
                differences: Vec::new(),
            });
        }
        let request = Request {
            time_budget: TWIN_TIME,
            step: 0,
            ..request
        };
        for twin in &mut self.twins {
            load(self.stock, &self.file, twin);
            twin.begin(&request);
        }
        let mut verdict = ImageResult {
            native,
            twins: Vec::new(),
            differences: Vec::new(),
        };
        for (i, twin) in self.twins.iter_mut().enumerate() {
            let outcome = twin.finish().map_err(|how| broken(twin.name(), how))?;
            verdict.twins.push(outcome);
            let pair = Pair {
                stock: self.stock,
                program: &self.programs[i],
                native: (&self.native, native),
                twin: (twin, outcome),
            };
            verdict
                .differences
                .extend(pair.difference().map(|difference| (i, difference)));
        }
        Ok(verdict)
    }

    /// Makes the image and the request.
    fn prepare(&mut self, subject: &Subject, image: u64, step: bool) -> Result<Request, Error> {
        let no_function = || Error::NoFunction(subject.name.to_owned());
        let function = self.stock.function(subject.name).ok_or_else(no_function)?;
        let seed = seed(subject.name, image);
        for range in self.stock.space.writable() {
            self.file[range.clone()].copy_from_slice(&self.stock.pristine[range]);
        }
        let objects = image::make(self.stock, &mut self.file, seed);
        let mut random = Random::new(seed ^ 0x61_7267);
        let mut arguments = [0; 6];
        for (argument, parameter) in arguments.iter_mut().zip(subject.parameters) {
            *argument = objects.argument(*parameter, &mut random);
            if let Parameter::Record(fields) = parameter {
                objects::shape(self.stock, &mut self.file, *argument, fields, &mut random);
            }
        }
        Ok(Request {
            function: function.address,
            arguments,
            seed,
            netdev: objects.netdev,
            mmio: objects.mmio,
            skbs: objects.skbs,
            arena: objects.arena,
            call_budget: MAX_EVENTS as u64 - 2,
            time_budget: if step { STEPPED_TIME } else { NATIVE_TIME },
            step: u64::from(step),
            fresh: u64::from(random.one_in(4)),
        })
    }

    /// Which bytes of the code were the start of an executed instruction in
    /// stepped runs so far.
    pub fn coverage(&self) -> Vec<u8> {
        self.native.channel.coverage()
    }

    /// The native end of a verdict in words.
    pub fn native_end(&self, verdict: &ImageResult) -> String {
        let outcome = &verdict.native;
        end_text(outcome, symbolise::native(self.stock, outcome.place()))
    }

    /// The end of the rewritten run number `i` in words: the abort's report
    /// with function, offset and address.
    pub fn twin_end(&self, verdict: &ImageResult, i: usize) -> String {
        let (outcome, program) = (&verdict.twins[i], &self.programs[i]);
        let site = symbolise::rewritten(self.stock, program, outcome.place());
        end_text(outcome, site)
    }

    /// Asserts that no rewritten worker has anything mapped at a dom0 address.
    ///
    /// # Errors
    /// [`Error::Mapped`].
    pub fn check_unmapped(&self) -> Result<(), Error> {
        for twin in &self.twins {
            let maps = std::fs::read_to_string(format!("/proc/{}/maps", twin.pid()));
            let maps = maps.map_err(Error::system("reading a worker's maps"))?;
            for range in maps.lines().filter_map(mapping::addresses) {
                let overlapping =
                    |r: &&Region| range.start < r.start + r.length && r.start < range.end;
                if let Some(region) = self.stock.space.regions().iter().find(overlapping) {
                    return Err(Error::Mapped(region.start));
                }
            }
        }
        Ok(())
    }
}

/// Copies what a run can change.
fn load(stock: &Stock<'_>, file: &[u8], worker: &mut Worker) {
    for range in stock.space.writable() {
        worker.memory.write(range.start, &file[range]);
    }
}
