//! The MAC's filters of frames: by length, pause address, VLAN and destination.

use super::FCS;
use crate::nic::network::be16;
use crate::nic::registers::{ctrl, rctl};
use crate::nic::statistics::Cast;
use crate::nic::{Nic, Register};

/// Frame lengths with FCS (3.2.2, 13.4.22 LPE).
const SHORTEST: usize = 64;
const LONGEST: usize = 1522;
const LONGEST_LPE: usize = 16384;

/// Why a frame was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// No address filter takes the destination.
    Address,
    /// The VLAN filter table does not have the tag's identifier.
    Vlan,
    /// The canonical form bit is not RCTL.CFI's.
    CanonicalForm,
    /// Shorter than 64 bytes with FCS.
    TooShort,
    /// Longer than 1522 bytes with FCS and RCTL.LPE is 0, or than 16384.
    TooLong,
    /// A pause frame; the MAC keeps it.
    Pause,
}

/// How an address filter accepted a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    Exact,
    /// By hash or promiscuously: software has to check the address.
    Inexact,
}

impl Nic {
    /// Whether the frame passes, and how.
    pub(super) fn filter(&mut self, frame: &[u8], control: u32) -> Result<Match, Filter> {
        let length = frame.len() + FCS;
        if length < SHORTEST {
            self.count(Register::Ruc);
            return Err(Filter::TooShort);
        }
        let long = control & rctl::LPE != 0;
        if length > if long { LONGEST_LPE } else { LONGEST } {
            self.count(Register::Roc);
            return Err(Filter::TooLong);
        }
        self.pause(frame, control)?;
        if let Some(tag) = self.vlan_tag(frame) {
            self.vlan_filter(tag, control)?;
        }
        self.address_filter(frame, control).ok_or(Filter::Address)
    }

    /// Pause frames (IEEE 802.3 31B; FCAL, FCAH and FCT): counted, and kept by
    /// the MAC. Transmission here takes no time, so none is held up.
    fn pause(&mut self, frame: &[u8], control: u32) -> Result<(), Filter> {
        let address = station(frame);
        let low = u64::from(self.peek(Register::Fcal));
        if address != u64::from(self.peek(Register::Fcah)) << 32 | low
            || u32::from(be16(frame, 12)) != self.peek(Register::Fct)
            || be16(frame, 14) != 1
        {
            return Ok(());
        }
        if self.peek(Register::Ctrl) & ctrl::RFCE == 0 {
            self.count(Register::Fcruc);
        } else if be16(frame, 16) == 0 {
            self.count(Register::Xonrxc);
        } else {
            self.count(Register::Xoffrxc);
        }
        let keep = self.peek(Register::Ctrl) & ctrl::RFCE != 0 || control & rctl::DPF != 0;
        match keep && control & rctl::PMCF == 0 {
            true => Err(Filter::Pause),
            false => Ok(()),
        }
    }

    /// The tag of a frame whose type is VET (9.1).
    pub(super) fn vlan_tag(&self, frame: &[u8]) -> Option<u16> {
        (u32::from(be16(frame, 12)) == self.peek(Register::Vet)).then(|| be16(frame, 14))
    }

    /// RCTL.VFE, CFIEN and VFTA (9.4).
    fn vlan_filter(&self, tag: u16, control: u32) -> Result<(), Filter> {
        if control & rctl::VFE == 0 {
            return Ok(());
        }
        let identifier = usize::from(tag & 0xfff);
        if self.vlan[identifier / 32] >> (identifier % 32) & 1 == 0 {
            return Err(Filter::Vlan);
        }
        let form = tag & 0x1000 != 0;
        if control & rctl::CFIEN != 0 && form != (control & rctl::CFI != 0) {
            return Err(Filter::CanonicalForm);
        }
        Ok(())
    }

    /// Exact, hashed, broadcast and promiscuous address filters (3.2.2, 13.5.1
    /// to 13.5.3).
    fn address_filter(&self, frame: &[u8], control: u32) -> Option<Match> {
        let address = station(frame);
        for pair in self.receive_address.chunks_exact(2) {
            let (low, high) = (pair[0], pair[1]);
            let valid = high >> 31 != 0;
            // Address select 0: the destination address.
            let destination = high >> 16 & 3 == 0;
            if valid && destination && address == u64::from(high & 0xffff) << 32 | u64::from(low) {
                return Some(Match::Exact);
            }
        }
        let passes = match Cast::of(frame) {
            Cast::Broadcast if control & rctl::BAM != 0 => return Some(Match::Exact),
            Cast::Unicast => control & rctl::UPE != 0,
            Cast::Broadcast | Cast::Multicast => {
                control & rctl::MPE != 0 || self.multicast_hash(address, control)
            }
        };
        passes.then_some(Match::Inexact)
    }

    /// MTA: twelve bits of the address, RCTL.MO tells which (13.5.1).
    fn multicast_hash(&self, address: u64, control: u32) -> bool {
        let shift = match control >> rctl::MO_SHIFT & 3 {
            0 => 36,
            1 => 35,
            2 => 34,
            _ => 32,
        };
        let hash = (address >> shift & 0xfff) as usize;
        self.multicast[hash / 32] >> (hash % 32) & 1 != 0
    }
}

/// The destination address as RAL and RAH hold it: first byte lowest.
fn station(frame: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..6].copy_from_slice(&frame[..6]);
    u64::from_le_bytes(bytes)
}
