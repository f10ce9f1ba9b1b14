//! `xen-table`: what a payload has to know of one build of Xen, out of its image.
//!
//! ```text
//! xen-table IMAGE VERSION > TABLE          scripts/xen-table.sh fetches the package
//!
//! image ──> build-id
//!       ──> symbols   the names that Xen carries for its own messages
//!       ──> heads     the first whole instructions of functions that a runtime may replace
//!       ──> values    offsets in Xen's structures, read out of functions that use them
//! ```
//!
//! Anything that is not as expected ends the program with a message that says what: a table
//! is complete or there is none. The format of tables is `docs/spec/payload.md`.

mod heads;
mod image;
mod symbols;
#[cfg(test)]
mod tests;
mod values;

use std::fmt::Write;
use std::process::ExitCode;

use image::Image;
use symbols::Symbols;

/// Functions that a runtime may replace.
const REPLACEABLE: [&str; 12] = [
    "search_exception_table",
    "do_page_fault",
    "do_double_fault",
    "send_guest_pirq",
    "evtchn_send",
    "do_hypfs_op",
    "cpu_down",
    "flush_area_mask",
    "on_selected_cpus",
    "mmio_ro_emulated_write",
    "write_io",
    "rep_outs",
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, version] = &arguments[..] else {
        eprintln!("usage: xen-table IMAGE VERSION (see scripts/xen-table.sh)");
        return ExitCode::from(2);
    };
    let table = std::fs::read(file)
        .map_err(|error| error.to_string())
        .and_then(|bytes| table(&bytes, version));
    match table {
        Ok(table) => {
            print!("{table}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!(
                "xen-table: {file}, Xen {version}: {why}; twin knows Xen 4.17 and 4.20 (docs/xen.md)"
            );
            ExitCode::FAILURE
        }
    }
}

/// The text of the table.
fn table(bytes: &[u8], version: &str) -> Result<String, String> {
    let image = Image::new(bytes)?;
    let symbols = Symbols::find(&image)?;
    values::check_release(&image, &symbols)?;
    // --- every address is known ---
    let mut out = String::from("twin-xen-table 2\n");
    let mut line = |text: std::fmt::Arguments<'_>| {
        let _ = writeln!(out, "{text}");
    };
    line(format_args!("version {version}"));
    let id: String = image
        .build_id()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    line(format_args!("build-id {id}"));
    let init = ["__init_begin", "__init_end"].map(|name| symbols.one(name));
    let [begin, end] = init;
    line(format_args!("init {:#x} {:#x}", begin?, end?));
    for (key, value) in values::all(&image, &symbols)? {
        line(format_args!("value {key} {value:#x}"));
    }
    for name in REPLACEABLE {
        let address = symbols.one(name)?;
        let head = heads::head(&image, name, address, symbols.after(address))?;
        line(format_args!("head {name} {head}"));
    }
    for symbol in symbols.all() {
        line(format_args!(
            "symbol {:#x} {} {}",
            symbol.address, symbol.kind, symbol.name
        ));
    }
    Ok(payload::sealed(&out))
}
