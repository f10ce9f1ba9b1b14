//! The text of `twin --version`: enough to build the same program again, and nothing
//! that differs between two such builds.

use std::sync::LazyLock;

use clap::{Arg, Args, Command};

use crate::commands::rewrite;

/// Version, commit, build and defaults.
pub fn long() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let commit = match env!("TWIN_COMMIT") {
            "" => "commit unknown",
            commit => commit,
        };
        format!(
            "{} ({commit})\nbuild:  {} for {}\nscheme: {}\ntarget: {} (default for objects)",
            env!("CARGO_PKG_VERSION"),
            env!("TWIN_PROFILE"),
            env!("TWIN_TARGET"),
            default_of("scheme"),
            twin_abi::Target::ALL[0].as_str(),
        )
    });
    &TEXT
}

/// The default of an option of `twin rewrite`, read from the option's definition.
fn default_of(option: &str) -> String {
    let command = rewrite::Opts::augment_args(Command::new("rewrite"));
    let of = command.get_arguments().find(|arg| arg.get_id() == option);
    let values = of.map_or(&[][..], Arg::get_default_values);
    let values: Vec<_> = values.iter().map(|v| v.to_string_lossy()).collect();
    format!("{} (default)", values.join(" "))
}
