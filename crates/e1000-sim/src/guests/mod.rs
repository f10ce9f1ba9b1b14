//! Guests that are processes of their own, and the crossings between them and the hypervisor.
//!
//! ```text
//! guest's process                            hypervisor's process
//! its own pages, its channel                 dom0's memory, all guests' pages, the driver
//!
//! front: requests ──> channel ── kick ─────> back: each word read once, checked ─> stages, driver
//!        buffers  ──> channel                back: packets copied into the guest's buffers
//!        answers, arrivals <── channel <──── notification
//! ```
//!
//! As on a real machine a processor runs either the guest or the hypervisor. The hypervisor enters
//! a guest, and the guest leaves: by a kick, which is a hypercall, or because it has nothing to do. A kick is
//! of one guest, and the hypervisor looks at that guest's ring only. A guest is entered with a notification if
//! it is to be told of something. Both are counted where they happen.
//!
//! A guest that does not leave is waited for as long as its own processor time has a limit. Then
//! the hypervisor goes on without it. It is the same if the guest runs on though it is not its turn: no word of the channel
//! is believed, and none is read twice.
//!
//! | file | what it has |
//! |---|---|
//! | `channel` | the memory that one guest and the hypervisor share |
//! | `turn` | which of the two runs |
//! | `confine` | what a guest's process keeps of memory and files |
//! | `front` | the guest: sends and receives |
//! | `back` | the hypervisor's view of one guest: what it believes, and what it has counted |
//! | `crossing` | all guests with the driver: kicks are served, guests are told |
//! | `looks` | when rings are looked at without a kick |

pub mod back;
pub mod channel;
mod confine;
pub mod crossing;
pub mod front;
pub mod looks;
pub mod turn;
