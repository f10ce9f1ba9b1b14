//! Statistics registers.

use e1000_sim::nic::Register;

use crate::card::*;

#[test]
fn statistics_count_and_clear() {
    let mut card = TestCard::running();
    let group = [0x01, 0x00, 0x5e, 0, 0, 1];
    card.or(Register::Rctl, 1 << 4);
    // Lengths without FCS at both ends of each bin.
    let lengths = [60, 61, 123, 124, 251, 252, 507, 508, 1019, 1020, 1514];
    let mut octets = 0;
    for (number, length) in lengths.into_iter().enumerate() {
        let to = [MAC, group, [0xff; 6]][number % 3];
        let bytes = frame(to, length, 1);
        octets += length as u32 + 4;
        card.data = TX_DATA;
        card.queue_buffer(&bytes, EOP, 0);
        card.transmit();
        card.receive(&bytes);
        let tail = (number as u32 + RINGS - 1) % RINGS;
        card.set(Register::Rdt, tail);
    }
    // Seen, not received.
    card.receive(&frame([2, 2, 2, 2, 2, 2], 60, 1));
    for (register, value) in [
        (Register::Gprc, 11),
        (Register::Tpr, 12),
        (Register::Gptc, 11),
        (Register::Tpt, 11),
        (Register::Mprc, 4),
        (Register::Bprc, 3),
        (Register::Mptc, 4),
        (Register::Bptc, 3),
        (Register::Prc64, 1),
        (Register::Prc127, 2),
        (Register::Prc255, 2),
        (Register::Prc511, 2),
        (Register::Prc1023, 2),
        (Register::Prc1522, 2),
        (Register::Ptc64, 1),
        (Register::Ptc127, 2),
        (Register::Ptc255, 2),
        (Register::Ptc511, 2),
        (Register::Ptc1023, 2),
        (Register::Ptc1522, 2),
        (Register::Mpc, 0),
        (Register::Crcerrs, 0),
    ] {
        assert_eq!(card.read(register), value, "{}", register.name());
        assert_eq!(card.read(register), 0, "{} clears", register.name());
        card.set(register, 5);
        assert_eq!(card.read(register), 0, "{} is not written", register.name());
    }
    for (low, high, value) in [
        (Register::Gorcl, Register::Gorch, octets),
        (Register::Gotcl, Register::Gotch, octets),
        (Register::Torl, Register::Torh, octets + 64),
        (Register::Totl, Register::Toth, octets),
    ] {
        // The low half stays until the high half is read.
        assert_eq!(card.read(low), value, "{}", low.name());
        assert_eq!(card.read(low), value);
        assert_eq!(card.read(high), 0);
        assert_eq!(card.read(low), 0);
    }
    // The last statistic the watchdog reads, and all between, are known.
    for offset in (Register::Crcerrs.offset()..=Register::Tsctfc.offset()).step_by(4) {
        let gaps = [0x4024, 0x402c, 0x4044, 0x4084, 0x4098, 0x409c];
        assert_eq!(Register::at(offset).is_none(), gaps.contains(&offset));
    }
}
