//! Work in a process of its own, because a process has one hypervisor instance.

use std::io::{self, PipeReader, Read};

use process_lab::process::{self, Child};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::LiveError;
use crate::packets::packet_loop::Stop;
use crate::paths;
use crate::system::{Stopped, SystemError};

/// A child at work.
struct Begun {
    child: Child,
    reader: PipeReader,
}

fn failed(error: io::Error) -> LiveError {
    LiveError::system("a process for an instance")(error)
}

fn begin<T: Serialize>(
    work: impl FnOnce() -> Result<T, SystemError>,
) -> Result<Begun, SystemError> {
    let (reader, writer) = io::pipe().map_err(failed)?;
    let child = process::fork(|| {
        let result = work().map_err(|error| error.to_string());
        i32::from(serde_json::to_writer(&writer, &result).is_err())
    })
    .map_err(failed)?;
    Ok(Begun { child, reader })
}

fn end<T: DeserializeOwned>(begun: Begun) -> Result<T, SystemError> {
    let Begun {
        mut child,
        mut reader,
    } = begun;
    let mut text = String::new();
    reader.read_to_string(&mut text).map_err(failed)?;
    child.wait();
    let said = serde_json::from_str::<Result<T, String>>(&text);
    let result = said.unwrap_or_else(|_| Err(child.fate().unwrap_or_default()));
    result.map_err(|why| Stopped(Stop::Driver(why)).into())
}

/// What `work` gives, done by a child.
///
/// # Errors
/// The child's, or that there is none.
pub fn apart<T: Serialize + DeserializeOwned>(
    work: impl FnOnce() -> Result<T, SystemError>,
) -> Result<T, SystemError> {
    end(begin(work)?)
}

/// The same by a child that keeps to one processor, as do its own: where two processes take turns,
/// what each takes then adds up, and none waits for a processor to wake.
///
/// # Errors
/// The child's, or that there is none.
pub fn apart_on_one<T: Serialize + DeserializeOwned>(
    work: impl FnOnce() -> Result<T, SystemError>,
) -> Result<T, SystemError> {
    apart(|| {
        paths::pin().map_err(|_| LiveError::last("keeping to one processor"))?;
        work()
    })
}

/// What `work` gives for 0 to `count` - 1, each done by a child, all at once.
///
/// # Errors
/// The first child's that has one, or that there is none.
pub fn together<T: Serialize + DeserializeOwned>(
    count: u32,
    work: impl Fn(u32) -> Result<T, SystemError>,
) -> Result<Vec<T>, SystemError> {
    let begun: Vec<Begun> = (0..count)
        .map(|number| begin(|| work(number)))
        .collect::<Result<_, _>>()?;
    begun.into_iter().map(end).collect()
}
