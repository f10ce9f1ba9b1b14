//! Anything a driver may do.

use e1000_sim::nic::{FRAME_LIMIT, Register, Ring};
use process_lab::random::Random;

use crate::card::*;

/// Random registers, descriptors and frames: no panic, no frame longer than the
/// device can send, and a reset always brings it back.
#[test]
fn random_descriptors_do_no_harm() {
    let mut random = Random::new(11);
    let mut frames = 0;
    for _ in 0..3000 {
        let mut card = TestCard::running();
        card.or(Register::Ctrl, (random.below(2) as u32) << 30);
        card.set(Register::Txdctl, random.word() as u32);
        card.set(Register::Rxcsum, random.word() as u32);
        let rctl = random.word() as u32 & !(1 << 18) | 2;
        card.set(Register::Rctl, rctl);
        for word in 0..RINGS * 4 {
            let value = match word % 4 {
                0 => TX_DATA as u32 + random.below(0x1_0000) as u32,
                1 => 1,
                // Lengths that fit, most of the time.
                2 => random.word() as u32 & if random.one_in(8) { !0 } else { 0xff10_0fff },
                _ => random.word() as u32 & if random.one_in(2) { !0 } else { 0x00ff_ffff },
            };
            let at = TX_RING + u64::from(word) * 4;
            card.memory.put(at, &value.to_le_bytes());
        }
        card.set(Register::Tdt, random.below(10) as u32);
        card.transmit();
        for sent in &card.wire.0 {
            assert!(sent.len() >= 14 && sent.len() <= FRAME_LIMIT + 4);
        }
        frames += card.wire.0.len();
        let length = 60 + random.below(1500) as usize;
        let (mut bytes, _) = packet(random.one_in(2), random.one_in(2), length, random.word());
        for _ in 0..random.below(6) {
            let at = 12 + random.below(50) as usize;
            bytes[at] = random.word() as u8;
        }
        card.receive(&bytes);
        card.set(Register::Ctrl, 1 << 26);
        assert!(!card.nic.stopped(Ring::Transmit) && !card.nic.stopped(Ring::Receive));
    }
    assert!(
        frames > 1000,
        "the descriptors are not all nonsense: {frames}"
    );
}
