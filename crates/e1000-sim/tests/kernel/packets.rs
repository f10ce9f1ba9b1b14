//! Packets that dom0 sends and receives natively.

use e1000_sim::dom0::interface::{Info, IrqState};
use e1000_sim::dom0::{CommandError, Dom0};
use e1000_sim::transport::wire::NicPort;

use crate::setup::{
    MAC, MILLISECOND, SECOND, counters, heap_is_sound, peek, read, with_link, word, write,
};

pub fn frame(to: [u8; 6], length: usize) -> Vec<u8> {
    let mut frame = to.to_vec();
    frame.extend_from_slice(&[2, 0, 0, 0, 0, 9, 0x88, 0xb5]);
    frame.extend((0..length - 14).map(|i| (i * 7 + length) as u8));
    frame
}

/// A `hot_tx_request` of a frame without fragments.
fn request(cookie: u64, frame: &[u8]) -> [u8; 512] {
    let mut request = [0; 512];
    request[..8].copy_from_slice(&cookie.to_le_bytes());
    request[8..12].copy_from_slice(&0xffffu32.to_le_bytes());
    request[12..14].copy_from_slice(&(frame.len() as u16).to_le_bytes());
    request[32..32 + frame.len()].copy_from_slice(frame);
    request
}

/// Sends one request through `hot_transmit`; its result.
fn submit(dom0: &mut Dom0<'_, '_>, info: &Info, request: &[u8]) -> Result<u32, CommandError> {
    let shared = dom0.plan().symbol("hot_shared").expect("hot.o has it");
    let requests = word(dom0, shared);
    write(dom0, requests, request);
    dom0.call("hot_transmit", &[info.net_device, 0, 1])?;
    Ok((word(dom0, requests + 24) >> 32) as u32)
}

#[test]
fn packets_go_out_natively_and_complete() {
    with_link(|dom0| {
        let info = dom0.info()?;
        let mark = dom0.mailbox().wire.mark();
        let mut sent = Vec::new();
        for (i, length) in (60..=128).cycle().take(500).enumerate() {
            let frame = frame([2, 0, 0, 0, 0, 1], length);
            // Busy is no error: byte queue limits begin at one packet a completion.
            for attempt in 0.. {
                match submit(dom0, &info, &request(i as u64, &frame))? {
                    0 => break,
                    1 if attempt < 10 => dom0.tick(MILLISECOND)?,
                    other => panic!("packet {i}: {other}"),
                };
            }
            sent.push(frame);
        }
        assert_eq!(dom0.mailbox().wire.since(mark), Some(sent));
        dom0.tick(SECOND)?;
        assert_eq!(dom0.statistics()?.tx_packets, 500);
        let shared = dom0.plan().symbol("hot_shared").expect("hot.o has it");
        assert_eq!(word(dom0, shared + 64) as u32, 500, "completions");
        heap_is_sound(dom0)
    });
}

/// The frames in the application's ring, taken.
pub fn received(dom0: &mut Dom0<'_, '_>) -> Result<Vec<Vec<u8>>, CommandError> {
    const SLOTS: u64 = 256;
    const SLOT: u64 = 2048;
    const HEADER: u64 = 48;
    let ring = dom0.info()?.rx_ring;
    let indices = word(dom0, ring);
    let (produce, mut consume) = (indices as u32, (indices >> 32) as u32);
    let mut frames = Vec::new();
    while consume != produce {
        let slot = ring + HEADER + u64::from(consume) % SLOTS * SLOT;
        let length = word(dom0, slot) as u32;
        let mut bytes = vec![0; length as usize];
        read(dom0, slot + 16, &mut bytes);
        frames.push(bytes);
        consume = consume.wrapping_add(1);
    }
    write(dom0, ring + 4, &consume.to_le_bytes());
    Ok(frames)
}

#[test]
fn packets_come_in_natively() {
    with_link(|dom0| {
        for length in (60..=1514).step_by(13) {
            let frame = frame(MAC, length);
            NicPort::new(dom0.mailbox(), dom0.machine(), dom0.plan().space().dma()).receive(&frame);
            dom0.tick(MILLISECOND)?;
            assert_eq!(received(dom0)?, [frame], "{length} bytes");
        }
        let other = frame([2, 0, 0, 0, 0, 1], 100);
        NicPort::new(dom0.mailbox(), dom0.machine(), dom0.plan().space().dma()).receive(&other);
        dom0.tick(MILLISECOND)?;
        assert!(received(dom0)?.is_empty(), "not ours");
        let info = dom0.info()?;
        let state: IrqState = peek(dom0, info.irq_state);
        assert!(
            state.count > 100 && state.spurious == 0 && state.running == 0,
            "{state:?}"
        );
        heap_is_sound(dom0)
    });
}

#[test]
fn a_guests_pages_go_out_as_fragments() {
    with_link(|dom0| {
        const LENGTHS: [u32; 3] = [1000, 100, 346];
        let info = dom0.info()?;
        let mut request = request(7, &frame([2, 0, 0, 0, 0, 1], 60));
        request[14..16].copy_from_slice(&(LENGTHS.len() as u16).to_le_bytes());
        let mut expected = frame([2, 0, 0, 0, 0, 1], 60);
        for (i, length) in LENGTHS.into_iter().enumerate() {
            let address = dom0.machine().sizes().guest(i as u32).start + 0x1100;
            let bytes: Vec<u8> = (0..length).map(|k| (k * 3 + length) as u8).collect();
            dom0.machine().write(address, &bytes).expect("the guest's");
            expected.extend(bytes);
            let at = 160 + 16 * i;
            request[at..at + 8].copy_from_slice(&address.to_le_bytes());
            request[at + 8..at + 12].copy_from_slice(&length.to_le_bytes());
        }
        let mark = dom0.mailbox().wire.mark();
        assert_eq!(submit(dom0, &info, &request)?, 0);
        assert_eq!(dom0.mailbox().wire.since(mark), Some(vec![expected]));
        dom0.tick(10 * MILLISECOND)?;
        assert_eq!(counters(dom0)?.warnings, 0);
        dom0.remove()?;
        heap_is_sound(dom0)
    });
}

#[test]
fn jumbo_frames_come_in_natively() {
    with_link(|dom0| {
        dom0.check("kernel_set_mtu", &[9000])?;
        dom0.link_wait(10 * SECOND)?;
        let mut pages = None;
        for length in [60, 1514, 2000, 4096, 5000, 9014].repeat(3) {
            let frame = frame(MAC, length);
            NicPort::new(dom0.mailbox(), dom0.machine(), dom0.plan().space().dma()).receive(&frame);
            dom0.tick(10 * MILLISECOND)?;
            let received = received(dom0)?;
            assert_eq!(received.len(), 1, "{length} bytes");
            let kept = length.min(2032);
            assert_eq!(received[0].len(), length);
            assert_eq!(received[0][..kept], frame[..kept]);
            let now = counters(dom0)?;
            assert_eq!(now.skb_allocated - now.skb_freed, 0, "sk_buffs");
            pages.get_or_insert(now.pages_allocated);
        }
        dom0.remove()?;
        heap_is_sound(dom0)
    });
}
