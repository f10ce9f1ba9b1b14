//! Guests' packets to the driver: the runtime checks each before it is put into the
//! driver's rings, and keeps a record of it until it is completed
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

/// The runtime's counts.
pub type Counts = runtime::OutgoingStatistics;

/// The outcome of placing a request.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Put into the ring at this index, with this ticket.
    Ring(usize, u64),
    Kept(Sent),
}

/// One CPU's packets of guests.
pub struct Outgoing {
    state: Box<runtime::Outgoing>,
    /// Kept because `state` points to them.
    _flights: Vec<Flight>,
    /// Copies of submitted requests, and their guests: what is checked is what is sent.
    submitted: Vec<(u32, Request)>,
    places: Vec<Place>,
    /// The driver says that it has taken all that were placed.
    all_sent: bool,
}

impl Outgoing {
    /// No packets yet. As many may be sent at once as the ring of completions has room
    /// for.
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
            all_sent: false,
        }
    }

    /// The runtime's. It stays where it is.
    pub fn raw(&mut self) -> *mut runtime::Outgoing {
        &raw mut *self.state
    }

    /// Takes request number `index` of the next batch from `guest`.
    pub fn submit(&mut self, index: usize, guest: u32, request: &Request) {
        self.place_for(index, guest).copy_from(request);
    }

    /// The place where `guest` writes request number `index` of the next batch.
    pub fn place_for(&mut self, index: usize, guest: u32) -> &mut Request {
        let (who, place) = &mut self.submitted[index];
        *who = guest;
        place
    }

    /// Puts the first `count` submitted requests into the rings, except refused ones;
    /// gives how many it put there.
    pub fn place(&mut self, count: usize, rings: &mut Rings) -> u32 {
        self.places.clear();
        self.all_sent = false;
        let mut placed = 0;
        let mut full = false;
        for index in 0..count {
            let place = match full {
                true => Place::Kept(Sent::Busy),
                false => self.admit(index, placed),
            };
            // Later packets wait too: a guest's packets stay in order.
            full |= matches!(place, Place::Kept(Sent::Busy));
            if let Place::Ring(at, _) = place {
                rings.put(at, &self.submitted[index].1);
                placed += 1;
            }
            self.places.push(place);
        }
        placed as u32
    }

    /// Puts a guest's template of acknowledgements into the rings, by itself; gives how many requests
    /// it put there. It can name no frame.
    pub fn place_template(&mut self, guest: u32, template: &Request, rings: &mut Rings) -> u32 {
        self.places.clear();
        self.all_sent = false;
        let place = match template.fragments {
            0 => {
                *self.place_for(0, guest) = *template;
                self.admit(0, 0)
            }
            _ => Place::Kept(Sent::Invalid),
        };
        if let Place::Ring(at, _) = place {
            rings.put_template(at, &self.submitted[0].1);
        }
        self.places.push(place);
        u32::from(matches!(place, Place::Ring(..)))
    }

    /// Lets the runtime check a submitted request that would be at `at`.
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

    /// Settles the placed requests, and withdraws those that were not sent; gives how many
    /// were. `claimed`: how many the driver says it took. If it says all, nothing is to be
    /// withdrawn, and its words about each are not read: it could write anything to both.
    pub fn collect_results(&mut self, placed: u32, claimed: u32, rings: &Rings) -> u32 {
        self.all_sent = placed == claimed;
        if self.all_sent {
            return placed;
        }
        let mut sent = 0;
        for index in 0..self.places.len() {
            let Place::Ring(at, ticket) = self.places[index] else {
                continue;
            };
            let mut result = rings.result(at);
            if result == Sent::Sent {
                sent += 1;
            } else {
                self.take(ticket);
                // dom0 does not decide whose a frame is.
                let invalid = matches!(result, Sent::Foreign | Sent::Spoofed);
                result = if invalid { Sent::Invalid } else { result };
            }
            self.places[index] = Place::Kept(result);
        }
        sent
    }

    /// The result of request `index` of the last batch, when it is settled.
    pub fn result(&self, index: usize) -> Sent {
        match self.places.get(index) {
            Some(Place::Kept(sent)) => *sent,
            Some(Place::Ring(..)) if self.all_sent => Sent::Sent,
            Some(Place::Ring(..)) | None => Sent::Busy,
        }
    }

    /// The next completion of a packet that was being sent. Others are counted; no more
    /// of them are read than a ring holds, because dom0 may go on writing.
    pub fn completion(&mut self, rings: &mut Rings) -> Option<Done> {
        for _ in 0..TX_DONE {
            let done = rings.completion()?;
            if let Some((guest, cookie)) = self.take(done.cookie) {
                return Some(Done::new(guest, cookie));
            }
        }
        None
    }

    /// Completes a packet; gives its guest and cookie.
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

    /// Completes all packets: after a reset of the device.
    pub fn reset(&mut self) {
        // SAFETY: the state is alive.
        unsafe { runtime::twin_outgoing_reset(&raw mut *self.state) };
        self.places.clear();
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.state.statistics
    }
}
