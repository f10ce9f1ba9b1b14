//! Work in a process of its own, because a process has one hypervisor instance.

use std::io::{self, Read};

use process_lab::process;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::LiveError;
use crate::packets::packet_loop::Stop;
use crate::system::{Stopped, SystemError};

/// What `work` gives, done by a child.
///
/// # Errors
/// The child's, or that there is none.
pub fn apart<T: Serialize + DeserializeOwned>(
    work: impl FnOnce() -> Result<T, SystemError>,
) -> Result<T, SystemError> {
    let failed = |error| LiveError::system("a process for an instance")(error);
    let (mut reader, writer) = io::pipe().map_err(failed)?;
    let mut child = process::fork(|| {
        let result = work().map_err(|error| error.to_string());
        i32::from(serde_json::to_writer(&writer, &result).is_err())
    })
    .map_err(failed)?;
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).map_err(failed)?;
    child.wait();
    let said = serde_json::from_str::<Result<T, String>>(&text);
    let result = said.unwrap_or_else(|_| Err(child.fate().unwrap_or_default()));
    result.map_err(|why| Stopped(Stop::Driver(why)).into())
}
