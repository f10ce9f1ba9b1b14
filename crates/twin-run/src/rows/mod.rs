//! `--experiment rows`: stages off and on by turns, beside the papers' figures, as a table
//! and as JSON. `docs/packet-path.md` explains each row.
//!
//! ```text
//! e1000_sim measures ──> a row: beside its paper's figure, with a verdict ──> JSON, table
//!                                                                   └──────> charts
//! ```

mod acknowledgements;
mod charts;
mod contexts;
pub mod crossings;
mod dom0;
mod early;
mod emulated;
pub mod kicks;
mod levels;
mod merging;
mod pairs;
mod prices;
mod splits;
mod verdict;
mod vrss;
mod ways;

use std::path::Path;

use command_line::failure::Failure;
use command_line::output::{self, Destination, Pending};
use command_line::text::number;
use e1000_sim::contexts::row as context_row;
use e1000_sim::image::files::Files;
use e1000_sim::live;
use e1000_sim::live::clock::HZ;
use e1000_sim::live::price::{Crossings, Price, QUOTED, QUOTED_FROM};
use e1000_sim::live::rows::{Added, Merging};
use e1000_sim::system::SystemError;
use process_lab::program::Variant;
use serde::Serialize;

use self::acknowledgements::AckRow;
use self::contexts::Cdna;
use self::crossings::Crossed;
use self::dom0::Dom0Rows;
use self::early::Early;
use self::emulated::EmulatedRows;
use self::kicks::KickRow;
use self::levels::Level;
use self::merging::Fit;
use self::pairs::Row;
use self::splits::Split;
use self::vrss::Vrss;
use self::ways::Way;
use crate::processor::Processor;
use crate::progress::Progress;
use crate::run::{Job, failed};

/// All rows.
#[derive(Debug, Serialize)]
pub struct Rows {
    processor: Processor,
    /// How the driver and the hot routines were rewritten.
    scheme: String,
    crossings: Crossings,
    crossings_from: &'static str,
    /// Cycles a second of the machine that is played.
    hz: u64,
    pub rows: Vec<Row>,
    pub two_layer: Vec<Split>,
    /// Counted when each process began: one for each throttle of the card.
    prices: Vec<Price>,
    added: Option<Added>,
    pub merging: Option<Merging>,
    /// Of that, by its limits.
    fit: Option<Fit>,
    pub hlvi: Vec<Level>,
    pub dbnet_bridge: Vec<Way>,
    pub vrss: Vrss,
    pub emulated: EmulatedRows,
    pub cdna: Cdna,
    pub by_dom0: Dom0Rows,
    early_ack: Vec<Early>,
    acknowledgements: AckRow,
    /// Guests as processes.
    by_process: Vec<Crossed>,
    /// Of these, what looks save.
    kicks: KickRow,
}

/// Measures; leaves `rows.json`, `rows.txt` and the pictures ([`charts`]) in the directory.
///
/// # Errors
/// The driver stopped, or the files cannot be written.
pub fn make(job: &Job<'_>, directory: &Path) -> Result<(String, Rows), Failure> {
    output::prepare_dir(directory)?;
    let progress = Progress::new("rows");
    let (files, variant) = (job.files, job.setup.variant);
    let rows = Rows::measure(files, variant, &mut |done, all| progress.set(done, all));
    drop(progress);
    let rows = rows.map_err(|error| failed(job.module, &error))?;
    let text = rows.text();
    let json = serde_json::to_vec_pretty(&rows)
        .map_err(|error| Failure::access(directory.display(), error))?;
    let mut files = vec![
        ("rows.json".to_owned(), json),
        ("rows.txt".to_owned(), text.clone().into_bytes()),
    ];
    for (name, chart) in charts::of(&rows) {
        files.push((format!("{name}.svg"), chart.svg()?.into_bytes()));
    }
    for (name, bytes) in files {
        Pending::create(&Destination::File(directory.join(name)))?.finish_with(&bytes)?;
    }
    Ok((text, rows))
}

impl Rows {
    fn measure(
        files: &Files,
        variant: Variant,
        tell: &mut dyn FnMut(u64, u64),
    ) -> Result<Rows, SystemError> {
        let hlvi = live::high_level::measure(files, variant)?;
        let dbnet_bridge = live::by_dom0::measure(files, variant)?;
        let vrss = vrss::measure(files, variant)?;
        let emulated = live::emulated::measure::measure(files, variant)?;
        let cdna = context_row::measure(files, variant, context_row::ROW)?;
        let channel = live::channel::measure(files, variant)?;
        let merged_by_dom0 = live::merged_by_dom0::measure(files, variant)?;
        let early_ack = live::early_ack::measure(files, variant)?;
        let acknowledgements = live::acknowledgements::measure(files, variant)?;
        let by_process = live::crossing::measure(files, variant, live::crossing::ROW)?;
        let kicks = KickRow::measure(files, variant)?;
        // Last, because it keeps to one processor.
        let seen = live::rows::measure(files, variant, tell)?;
        let price = seen.prices.first().copied().unwrap_or_default();
        let merging = seen.merging.as_ref();
        Ok(Rows {
            processor: Processor::this(),
            scheme: variant.name().to_owned(),
            crossings: QUOTED,
            crossings_from: QUOTED_FROM,
            hz: HZ,
            rows: seen.pairs.into_iter().map(Row::new).collect(),
            two_layer: splits::all(&seen.points, &price),
            prices: seen.prices,
            added: seen.added,
            fit: merging.and_then(|merging| Fit::of(&merging.by_limit)),
            merging: seen.merging,
            hlvi: hlvi.into_iter().map(Level::new).collect(),
            dbnet_bridge: dbnet_bridge.into_iter().map(Way::new).collect(),
            vrss,
            emulated: EmulatedRows::new(emulated),
            cdna: Cdna::new(cdna),
            by_dom0: Dom0Rows::new(channel, merged_by_dom0),
            early_ack: early_ack.into_iter().map(Early::new).collect(),
            acknowledgements: AckRow::new(acknowledgements),
            by_process: by_process.into_iter().map(Crossed::new).collect(),
            kicks,
        })
    }

    /// Packets lost or corrupted where nothing may be.
    pub fn damage(&self) -> (u64, u64) {
        let pairs = self
            .rows
            .iter()
            .flat_map(|row| [&row.pair.off, &row.pair.on]);
        let points = self.two_layer.iter().flat_map(|split| &split.points);
        let points = points.map(|point| &point.outcome);
        let levels = self.hlvi.iter().map(|level| level.seen.damage);
        let ways = self.dbnet_bridge.iter().map(|way| way.seen.damage);
        let (lost, corrupted) = self.emulated.damage();
        let levels: u64 = levels
            .chain(ways)
            .chain([
                self.vrss.damage(),
                self.cdna.damage(),
                self.by_dom0.damage(),
            ])
            .chain(self.early_ack.iter().map(Early::damage))
            .chain([self.acknowledgements.damage()])
            .chain(self.by_process.iter().map(Crossed::damage))
            .chain([self.kicks.damage()])
            .sum();
        pairs
            .chain(points)
            .fold((levels + lost, corrupted), |(lost, bad), outcome| {
                let missed = outcome.missed + outcome.dropped;
                (lost + missed, bad + outcome.corrupted)
            })
    }

    fn text(&self) -> String {
        let mut out = format!(
            "{}\nscheme {}\nfrom counted instructions, one a cycle of {:.1} GHz; an interrupt of the card \
             {} cycles,\nof a guest {}: {QUOTED_FROM}\n\n",
            self.processor.text(),
            self.scheme,
            HZ as f64 / 1e9,
            number(self.crossings.interrupt),
            number(self.crossings.virtual_interrupt),
        );
        out += &pairs::text(&self.rows);
        out += &splits::text(&self.two_layer);
        out += &prices::text(&self.prices, self.added);
        if let Some(merging) = &self.merging {
            out += &merging::text(merging, &self.rows, &self.crossings);
        }
        out += &levels::text(&self.hlvi);
        out += &ways::text(&self.dbnet_bridge);
        out += &early::text(&self.early_ack);
        out += &self.acknowledgements.text();
        out += &crossings::text(&self.by_process);
        out += &self.kicks.text();
        out + &self.vrss.text() + &self.emulated.text() + &self.cdna.text() + &self.by_dom0.text()
    }
}
