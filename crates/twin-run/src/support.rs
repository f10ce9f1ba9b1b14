//! Where `twin run` finds `kernel.o` and `hot.o`, the testbed's two objects that are
//! compiled against the stock kernel's headers and so cannot be part of the program.
//!
//! | place, the first that has `kernel.o` | who puts them there |
//! |---|---|
//! | `--support DIR`, `$TWIN_SUPPORT` | you |
//! | `support` beside the program's directory | `make support`, for `target/release/twin` |
//! | `lib/twin` beside the program's directory | the Debian package, `make install` |
//! | `target/support` | `make support`, for a program that is elsewhere |

use std::path::{Path, PathBuf};

use e1000_sim::LiveError;
use e1000_sim::image::files::Files;

use command_line::failure::Failure;

/// Reads the objects from the directory that was named, or else from where they
/// are; gives the directory as well.
///
/// # Errors
/// They are nowhere, cannot be read, or are not of the driver's kernel: each says
/// what to do.
pub fn files(driver: Vec<u8>, named: Option<&Path>) -> Result<(Files, PathBuf), Failure> {
    // Set to nothing is not set, as for the shell's own variables (POSIX, 2.6.2, `:-`).
    let variable = std::env::var_os("TWIN_SUPPORT").filter(|name| !name.is_empty());
    let variable = variable.map(PathBuf::from);
    let directory = match named.map(Path::to_path_buf).or(variable) {
        Some(directory) => directory,
        None => found(&places())?,
    };
    match Files::with_driver(driver, &directory) {
        Ok(files) => Ok((files, directory)),
        Err(error) => Err(Failure::access(directory.display(), refused(&error))),
    }
}

fn places() -> Vec<PathBuf> {
    let program = std::env::current_exe().ok();
    let above = program.as_deref().and_then(Path::parent);
    let above = above.and_then(Path::parent);
    let beside = ["support", "lib/twin"].map(|name| above.map(|dir| dir.join(name)));
    let mut places: Vec<PathBuf> = beside.into_iter().flatten().collect();
    places.push(PathBuf::from("target/support"));
    places
}

fn found(places: &[PathBuf]) -> Result<PathBuf, Failure> {
    let found = places.iter().find(|dir| dir.join("kernel.o").is_file());
    found.cloned().ok_or_else(|| {
        let names: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
        Failure::access(
            "kernel.o, hot.o",
            format!(
                "the testbed's objects are in none of {}; in twin's source `make install` \
                 installs them with the program, `make support` builds them for --support DIR",
                names.join(", ")
            ),
        )
    })
}

/// Which object cannot be used, why, and what to do.
fn refused(error: &LiveError) -> String {
    match error {
        LiveError::NoFile { path, source } => {
            let name = path.file_name().unwrap_or(path.as_os_str()).display();
            let why = command_line::input::describe(source);
            format!(
                "{name}: {why}: the testbed needs kernel.o and hot.o, built for the stock \
                 kernel; run `make support`, or name their directory with --support"
            )
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_with_kernel_o_is_taken() {
        let scratch = tempfile::tempdir().expect("a directory");
        let [empty, one, two] = ["empty", "one", "two"].map(|name| scratch.path().join(name));
        for directory in [&empty, &one, &two] {
            std::fs::create_dir(directory).expect("a directory");
        }
        for directory in [&one, &two] {
            std::fs::write(directory.join("kernel.o"), "").expect("a file");
        }
        let places = [
            scratch.path().join("absent"),
            empty.clone(),
            one.clone(),
            two,
        ];
        assert_eq!(found(&places).ok(), Some(one));
        assert!(found(&[empty]).is_err());
    }
}
