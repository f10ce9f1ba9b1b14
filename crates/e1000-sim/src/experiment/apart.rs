//! Work in a process of its own, because a process has one hypervisor instance.

use std::any::Any;
use std::io::{self, PipeReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use process_lab::process::{self, Child};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
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
        // What it panics with is for whoever waits for it: a test runner would lose it with the child.
        let done = catch_unwind(AssertUnwindSafe(work));
        let result = match done {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(panic) => Err(panicked(panic.as_ref())),
        };
        i32::from(serde_json::to_writer(&writer, &result).is_err())
    })
    .map_err(failed)?;
    Ok(Begun { child, reader })
}

fn panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("without a text"))
}

/// What the child has said, or how it ended.
fn said<T: DeserializeOwned>(child: &mut Child, text: &[u8]) -> Result<T, String> {
    child.wait();
    serde_json::from_slice::<Result<T, String>>(text)
        .unwrap_or_else(|_| Err(child.fate().unwrap_or_default()))
}

fn stopped(why: String) -> SystemError {
    Stopped(Stop::Driver(why)).into()
}

fn end<T: DeserializeOwned>(begun: Begun) -> Result<T, SystemError> {
    let Begun {
        mut child,
        mut reader,
    } = begun;
    let mut text = Vec::new();
    reader.read_to_end(&mut text).map_err(failed)?;
    said(&mut child, &text).map_err(stopped)
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

/// What `work` gives for 0 to `count` - 1, each done by a child, all at once. If one dies the others, which may wait for it
/// without end, are ended; one that says why it failed has told the others itself
/// ([`attended`](crate::processors::exchange::attended)), and what they say is waited for.
///
/// # Errors
/// What each child says that has one, or that there is none.
pub fn together<T: Serialize + DeserializeOwned>(
    count: u32,
    work: impl Fn(u32) -> Result<T, SystemError>,
) -> Result<Vec<T>, SystemError> {
    let mut begun: Vec<Begun> = (0..count)
        .map(|number| begin(|| work(number)))
        .collect::<Result<_, _>>()?;
    let mut texts: Vec<Text> = begun.iter().map(|_| Text::default()).collect();
    let mut results: Vec<Option<Result<T, String>>> = begun.iter().map(|_| None).collect();
    while texts.iter().any(|text| !text.ended) {
        let number = more(&begun, &mut texts).map_err(failed)?;
        if !texts[number].ended {
            continue;
        }
        let is_whole = serde_json::from_slice::<Result<T, String>>(&texts[number].bytes).is_ok();
        results[number] = Some(said(&mut begun[number].child, &texts[number].bytes));
        if !is_whole {
            break;
        }
    }
    // Those without a result are ended here.
    drop(begun);
    let failures = results.iter().enumerate().filter_map(|(number, result)| {
        let why = result.as_ref()?.as_ref().err()?;
        Some(format!("process {number}: {why}"))
    });
    let failures: Vec<String> = failures.collect();
    let all: Option<Vec<T>> = results
        .into_iter()
        .map(|result| result.and_then(Result::ok))
        .collect();
    all.ok_or_else(|| stopped(failures.join("; ")))
}

/// What a child has said so far.
#[derive(Default)]
struct Text {
    bytes: Vec<u8>,
    ended: bool,
}

/// Waits until one of them says more or ends, and reads it; its number.
fn more(begun: &[Begun], texts: &mut [Text]) -> io::Result<usize> {
    let open: Vec<usize> = (0..texts.len()).filter(|at| !texts[*at].ended).collect();
    let mut polled: Vec<PollFd<'_>> = open
        .iter()
        .map(|at| PollFd::new(&begun[*at].reader, PollFlags::IN))
        .collect();
    // The profiler's signals interrupt.
    retry_on_intr(|| poll(&mut polled, None))?;
    let ready = polled.iter().zip(open);
    let mut ready = ready.filter(|(polled, _)| !polled.revents().is_empty());
    let (_, number) = ready.next().expect("it waits without a limit");
    let mut bytes = [0; 4096];
    let read = (&begun[number].reader).read(&mut bytes)?;
    texts[number].bytes.extend_from_slice(&bytes[..read]);
    texts[number].ended = read == 0;
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processors::exchange::{Exchange, Port, attended};
    use crate::processors::queues::{ProcessorId, Spread};
    use crate::transport::mailbox::SharedPages;

    const SPREAD: Spread = Spread {
        guests: 1,
        queues: 1,
        processors: 2,
    };

    /// Two processors that meet, of which one does something else; what that comes to.
    fn meeting(failing: u32, fail: impl Fn()) -> String {
        let pages = SharedPages::<Exchange>::new().expect("memory");
        let exchange = pages.get();
        let met = together(2, |number| {
            attended(exchange, || {
                if number == failing {
                    fail();
                }
                let mut port = Port::new(exchange, SPREAD, ProcessorId(number), 1);
                port.meet()
                    .map_err(|stop| SystemError::from(Stopped(stop)))?;
                Ok(number)
            })
        });
        match met {
            Ok(numbers) => format!("{numbers:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_a_process_panics_with_is_said() {
        for failing in [0, 1] {
            let text = meeting(failing, || panic!("packet 7 of flow 3"));
            let expected = format!("process {failing}: panicked: packet 7 of flow 3");
            assert!(text.contains(&expected), "{text}");
            assert!(text.contains("another processor has failed"), "{text}");
        }
        assert_eq!(meeting(9, || ()), "[0, 1]");
    }

    /// It tells nobody.
    #[test]
    fn a_process_that_dies_ends_those_who_wait_for_it() {
        for failing in [0, 1] {
            // SAFETY: ends this process.
            let text = meeting(failing, || unsafe { libc::abort() });
            assert!(
                text.contains(&format!("process {failing}: died of signal 6")),
                "{text}"
            );
        }
    }

    #[test]
    fn results_that_are_longer_than_a_pipe_arrive() {
        let long = together(3, |number| Ok(vec![number; 100_000])).expect("results");
        assert_eq!(long, [0, 1, 2].map(|number| vec![number; 100_000]));
    }
}
