//! Guests' packets on their way to the driver: each is looked at by the runtime
//! before the driver's rings have it, and known to it until it is completed
//! (`runtime/include/twin/frames.h`).
//!
//! ```text
//! guest ─ submit ─> our copy ─ place: frames its own? pinned ─> dom0's ring
//!                                     └─ not: refused      hot_transmit
//! guest <─ its cookie ─ complete: unpinned <─ ticket ─ dom0's completions
//! ```

use process_lab::runtime::{self, Flight, Piece};

use super::rings::{Done, REQUESTS, Request, Rings, Sent, TX_DONE};
use crate::memory::Frames;

/// What the runtime has counted.
pub type Counts = runtime::OutgoingStatistics;

/// Where a request went.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Into the ring, there at this index, known by this ticket.
    Ring(usize, u64),
    Kept(Sent),
}

/// One CPU's packets of guests.
pub struct Outgoing {
    state: Box<runtime::Outgoing>,
    /// Kept because `state` points to them.
    _flights: Vec<Flight>,
    /// Requests as they were when they were submitted, and whose: what is looked at
    /// is what is sent.
    submitted: Vec<(u32, Request)>,
    places: Vec<Place>,
}

impl Outgoing {
    /// Nothing is on its way yet. As many packets may be as the ring of completions
    /// has room for.
    ///
    /// # Panics
    /// Never: there are places.
    pub fn new(frames: &Frames) -> Outgoing {
        let mut flights = vec![Flight::default(); TX_DONE];
        let mut state = Box::new(runtime::Outgoing::default());
        let count = flights.len() as u32;
        // SAFETY: the flights live as long as the state; the frames belong to the
        // machine, which outlives all of its users.
        let made = unsafe {
            runtime::twin_outgoing_init(&raw mut *state, frames.raw(), flights.as_mut_ptr(), count)
        };
        assert_eq!(made, runtime::OK, "there are places");
        Outgoing {
            state,
            _flights: flights,
            submitted: vec![(0, Request::default()); REQUESTS],
            places: Vec::with_capacity(REQUESTS),
        }
    }

    /// Takes request number `index` of the next batch from `guest`.
    pub fn submit(&mut self, index: usize, guest: u32, request: &Request) {
        let (who, copy) = &mut self.submitted[index];
        *who = guest;
        copy.copy_from(request);
    }

    /// Puts the first `count` submitted requests into the rings, but for those that
    /// are refused; how many are there.
    pub fn place(&mut self, count: usize, rings: &mut Rings) -> u32 {
        self.places.clear();
        let mut placed = 0;
        let mut full = false;
        for index in 0..count {
            let place = match full {
                true => Place::Kept(Sent::Busy),
                false => self.admit(index, placed),
            };
            // What follows waits too: a guest's packets stay in order.
            full |= matches!(place, Place::Kept(Sent::Busy));
            if let Place::Ring(at, _) = place {
                rings.put(at, &self.submitted[index].1);
                placed += 1;
            }
            self.places.push(place);
        }
        placed as u32
    }

    /// Asks the runtime about a submitted request that would be at `at`.
    fn admit(&mut self, index: usize, at: usize) -> Place {
        let (guest, request) = &mut self.submitted[index];
        let pieces = request.fragment.as_ptr().cast::<Piece>();
        let mut ticket = 0;
        if usize::from(request.fragments) > request.fragment.len() {
            return Place::Kept(Sent::Invalid);
        }
        // SAFETY: the state is alive, and there are that many pieces.
        let admission = unsafe {
            runtime::twin_outgoing_admit(
                &raw mut *self.state,
                *guest,
                request.cookie,
                pieces,
                request.fragments.into(),
                &raw mut ticket,
            )
        };
        match admission {
            runtime::ADMITTED => {
                request.cookie = ticket;
                request.guest = *guest;
                Place::Ring(at, ticket)
            }
            runtime::FOREIGN => Place::Kept(Sent::Foreign),
            runtime::FULL => Place::Kept(Sent::Busy),
            _ => Place::Kept(Sent::Invalid),
        }
    }

    /// Reads what became of those that were placed, and forgets the ones that were
    /// not sent; how many were.
    pub fn settle(&mut self, rings: &Rings) -> u32 {
        let mut sent = 0;
        for index in 0..self.places.len() {
            let Place::Ring(at, ticket) = self.places[index] else {
                continue;
            };
            match rings.result(at) {
                Sent::Sent => {
                    self.places[index] = Place::Kept(Sent::Sent);
                    sent += 1;
                }
                result => {
                    self.take(ticket);
                    // Whose a frame is, is not dom0's to say.
                    let invalid = result == Sent::Foreign;
                    let result = if invalid { Sent::Invalid } else { result };
                    self.places[index] = Place::Kept(result);
                }
            }
        }
        sent
    }

    /// What became of request `index` of the last batch, when it is settled.
    pub fn result(&self, index: usize) -> Sent {
        match self.places.get(index) {
            Some(Place::Kept(sent)) => *sent,
            Some(Place::Ring(..)) | None => Sent::Busy,
        }
    }

    /// The next completion of a packet that was on its way. Others are counted, and
    /// looked at no more than a ring holds of them: dom0 goes on writing.
    pub fn completion(&mut self, rings: &mut Rings) -> Option<Done> {
        for _ in 0..TX_DONE {
            let done = rings.completion()?;
            if let Some((guest, cookie)) = self.take(done.cookie) {
                return Some(Done::new(guest, cookie));
            }
        }
        None
    }

    /// The guest and the cookie of a packet that is on its way no more.
    fn take(&mut self, ticket: u64) -> Option<(u32, u64)> {
        let (mut guest, mut cookie) = (0, 0);
        // SAFETY: the state is alive.
        let completed = unsafe {
            runtime::twin_outgoing_complete(
                &raw mut *self.state,
                ticket,
                &raw mut guest,
                &raw mut cookie,
            )
        };
        (completed == runtime::OK).then_some((guest, cookie))
    }

    /// Forgets what is on its way: after a reset of the device.
    pub fn reset(&mut self) {
        // SAFETY: the state is alive.
        unsafe { runtime::twin_outgoing_reset(&raw mut *self.state) };
        self.places.clear();
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.state.statistics
    }
}
