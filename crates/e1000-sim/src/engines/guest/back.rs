//! dom0's side: a back end that trusts nothing in the ring. dom0 cannot know whether a
//! guest's frames are its own: it asks the hypervisor, which has the table.

use std::sync::atomic::Ordering;

use super::ring::{Ask, DEFERRED, FAILED, NetRing};
use crate::measure::profile::{Component, cycles, enter_phase};
use crate::packets::outgoing::Outgoing;
use crate::packets::packet_loop::Stop;
use crate::packets::rings::{REQUESTS, Request, Rings, TX_DONE};

/// The operations that the back end needs from dom0.
pub trait BackEnd {
    /// This CPU's rings with the driver.
    fn rings(&mut self) -> &mut Rings;
    /// `hot_transmit`.
    ///
    /// # Errors
    /// [`Stop::Driver`].
    fn transmit(&mut self, count: u32) -> Result<u32, Stop>;
    /// Handler and poll; false if they were put off.
    ///
    /// # Errors
    /// [`Stop::Driver`].
    fn interrupt(&mut self) -> Result<bool, Stop>;
    /// Packets that came in.
    fn packets(&mut self, take: &mut dyn FnMut(&[u8]));
}

/// Serves the front end until that ends, and counts the cycles of this, except waits
/// for the front end. Runs in dom0.
pub fn serve(ring: &NetRing, back: &mut dyn BackEnd, outgoing: &mut Outgoing, guests: u32) {
    let mut go_on = true;
    while go_on {
        ring.meet.serve(0, || {
            let start = cycles();
            enter_phase(Component::Dom0);
            let ask = ring.ask.load(Ordering::Relaxed);
            go_on = ask != Ask::End as u64;
            let answer = answer(ring, back, outgoing, guests, ask).unwrap_or_else(|stop| {
                // SAFETY: the back end's turn.
                unsafe { &mut *ring.failure.get() }.set(&stop.to_string());
                FAILED
            });
            ring.answer.store(answer, Ordering::Relaxed);
            enter_phase(Component::Idle);
            let worked = cycles() - start;
            ring.served.fetch_add(worked, Ordering::Relaxed);
        });
    }
}

fn answer(
    ring: &NetRing,
    back: &mut dyn BackEnd,
    outgoing: &mut Outgoing,
    guests: u32,
    ask: u64,
) -> Result<u64, Stop> {
    if ask == Ask::Transmit as u64 {
        return transmit(ring, back, outgoing, guests);
    }
    if ask == Ask::Interrupt as u64 {
        let ran = back.interrupt()?;
        for _ in 0..TX_DONE {
            let Some(done) = outgoing.completion(back.rings()) else {
                break;
            };
            ring.put_done(done);
        }
        back.packets(&mut |packet| ring.put_packet(packet));
        return Ok(if ran { 1 } else { DEFERRED });
    }
    Ok(0)
}

/// Each request is copied once, so that the guest cannot change it after the check.
fn transmit(
    ring: &NetRing,
    back: &mut dyn BackEnd,
    outgoing: &mut Outgoing,
    guests: u32,
) -> Result<u64, Stop> {
    let count = (ring.count.load(Ordering::Relaxed) as usize).min(REQUESTS);
    for index in 0..count {
        // SAFETY: inside the ring; whatever is there is a valid value.
        let request = unsafe {
            ring.requests
                .get()
                .cast::<Request>()
                .add(index)
                .read_volatile()
        };
        if request.guest >= guests {
            return Err(Stop::Driver(format!(
                "a request of guest {}",
                request.guest
            )));
        }
        outgoing.submit(index, request.guest, &request);
    }
    let placed = outgoing.place(count, back.rings());
    let claimed = back.transmit(placed)?;
    let accepted = outgoing.collect_results(placed, claimed, back.rings());
    for index in 0..count {
        let result = outgoing.result(index);
        // SAFETY: inside the ring; the back end's turn.
        unsafe {
            let request = ring.requests.get().cast::<Request>().add(index);
            (&raw mut (*request).result).write_volatile(result as u32);
        }
    }
    Ok(accepted.into())
}
