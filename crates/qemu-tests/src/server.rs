//! The host's side of the guest's network: one port sends bytes, the other receives
//! them. QEMU's user network shows 127.0.0.1 of the host as 10.0.2.2.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use process_lab::random::Random;

use super::{Error, io};

/// The server; it ends with the process.
pub struct Server {
    /// Port that bytes are read from.
    pub down: u16,
    /// Port that bytes are written to.
    pub up: u16,
    data: &'static [u8],
    received: Receiver<Vec<u8>>,
}

impl Server {
    /// Starts one. `data` is sent on every connection to [`Server::down`].
    ///
    /// # Errors
    /// No port is free.
    pub fn start(data: &'static [u8]) -> Result<Server, Error> {
        let (down, up) = (listen()?, listen()?);
        let (send, received) = channel();
        let server = Server {
            down: port(&down)?,
            up: port(&up)?,
            data,
            received,
        };
        thread::spawn(move || {
            for stream in down.incoming().flatten() {
                // A client that hangs up early is noticed by its own count.
                let _ = give(stream, data);
            }
        });
        thread::spawn(move || {
            for mut stream in up.incoming().flatten() {
                let mut bytes = Vec::new();
                if stream.read_to_end(&mut bytes).is_ok() && send.send(bytes).is_err() {
                    return;
                }
            }
        });
        Ok(server)
    }

    /// SHA-256 of the data that is sent down, by the system's own program.
    ///
    /// # Errors
    /// There is none.
    pub fn sum(&self) -> Result<String, Error> {
        let mut program = Command::new("sha256sum");
        let program = program.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = io("sha256sum", program.spawn())?;
        if let Some(mut input) = child.stdin.take() {
            io("sha256sum", input.write_all(self.data))?;
        }
        let output = io("sha256sum", child.wait_with_output())?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.split(' ').next().unwrap_or_default().to_owned())
    }

    /// The data that came up so far, one item for each connection.
    pub fn received(&self) -> Vec<Vec<u8>> {
        self.received.try_iter().collect()
    }
}

fn give(mut stream: TcpStream, data: &[u8]) -> std::io::Result<()> {
    stream.write_all(data)?;
    stream.shutdown(Shutdown::Write)?;
    // Gone when the guest has it all.
    stream.read_to_end(&mut Vec::new()).map(|_| ())
}

fn listen() -> Result<TcpListener, Error> {
    io("a port of the host", TcpListener::bind("127.0.0.1:0"))
}

fn port(listener: &TcpListener) -> Result<u16, Error> {
    let address = io("a port of the host", listener.local_addr())?;
    Ok(address.port())
}

/// Bytes in which no two places are alike.
pub fn noise(len: usize, seed: u64) -> &'static [u8] {
    let mut random = Random::new(seed);
    let words = (0..len.div_ceil(8)).flat_map(|_| random.word().to_le_bytes());
    let mut bytes: Vec<u8> = words.collect();
    bytes.truncate(len);
    bytes.leak()
}
