//! The dom0 kernel shim (`crates/testbed/kernel/`) beneath the stock e1000.ko:
//! settings, resets, self tests, packets, reloading, and the bugs it must catch.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use testbed::live::dom0::{CommandError, Dom0};
use testbed::live::host;
use testbed::live::image::{Missing, Module, Plan};
use testbed::live::interface::{Counters, Info, IrqState, NamedValue, Plain, text};
use testbed::live::mailbox::{Event, Mailbox};
use testbed::live::memory::{EXCHANGE, Machine, Sizes};
use testbed::live::rendezvous::Limits;
use testbed::live::upcall::{self, Upcall};
use testbed::live::wire::NicPort;
use testbed::stock;

const MAC: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1000 * MILLISECOND;

type Tested = Result<(), CommandError>;

fn support(name: &str) -> Vec<u8> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/support"));
    let file = root.join(name);
    std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}: run make support", file.display()))
}

/// Runs `test` with a dom0 that has power and nothing booted. One at a time:
/// the process forks, and should have no other busy threads then.
fn with_dom0(test: impl FnOnce(&mut Dom0<'_, '_>) -> Tested) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let driver = stock::find().unwrap_or_else(|error| panic!("{error}"));
    let (hot, kernel) = (support("hot.o"), support("kernel.o"));
    let files = [
        (Module::Driver, &driver[..]),
        (Module::Hot, &hot[..]),
        (Module::Kernel, &kernel[..]),
    ];
    let plan = Plan::new(Sizes::default(), &files, &host::address, Missing::Refuse)
        .unwrap_or_else(|error| panic!("{error}"));
    let machine = Machine::new(plan.space().sizes()).expect("memory");
    let mailbox = Mailbox::new().expect("memory");
    mailbox.get().power_on(MAC);
    let limits = Limits {
        time: Duration::from_secs(60),
        ..Limits::default()
    };
    let mut dom0 = Dom0::start(&plan, &machine, mailbox.get(), limits).expect("dom0");
    if let Err(error) = test(&mut dom0) {
        panic!("{error}\n{}", mailbox.get().console.since(0));
    }
    if std::env::var_os("TWIN_LOG").is_some() {
        println!("{}", mailbox.get().console.since(0));
    }
}

/// As `with_dom0`, with the driver loaded, open and the link up.
fn with_link(test: impl FnOnce(&mut Dom0<'_, '_>) -> Tested) {
    with_dom0(|dom0| {
        dom0.boot()?;
        dom0.load("")?;
        dom0.open()?;
        dom0.link_wait(10 * SECOND)?;
        test(dom0)
    });
}

/// A structure at a dom0 address.
fn peek<T: Plain>(dom0: &Dom0<'_, '_>, address: u64) -> T {
    let mut bytes = vec![0; size_of::<T>()];
    read(dom0, address, &mut bytes);
    // SAFETY: any bytes are a value.
    unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }
}

fn read(dom0: &Dom0<'_, '_>, address: u64, bytes: &mut [u8]) {
    let machine = dom0
        .plan()
        .space()
        .machine_address(address)
        .expect("dom0's");
    dom0.machine().read(machine, bytes).expect("memory");
}

fn write(dom0: &Dom0<'_, '_>, address: u64, bytes: &[u8]) {
    let machine = dom0
        .plan()
        .space()
        .machine_address(address)
        .expect("dom0's");
    dom0.machine().write(machine, bytes).expect("memory");
}

fn word(dom0: &Dom0<'_, '_>, address: u64) -> u64 {
    let mut bytes = [0; 8];
    read(dom0, address, &mut bytes);
    u64::from_le_bytes(bytes)
}

fn counters(dom0: &mut Dom0<'_, '_>) -> Result<Counters, CommandError> {
    let info = dom0.info()?;
    Ok(peek(dom0, info.counters))
}

fn heap_is_sound(dom0: &mut Dom0<'_, '_>) -> Tested {
    assert_eq!(dom0.call("kernel_check_heap", &[])?.value, 0);
    Ok(())
}

// ---- Settings ------------------------------------------------------------------

#[test]
fn settings_change_while_the_interface_is_up() {
    with_link(|dom0| {
        for mtu in [1000u64, 1500, 9000, 16110, 1500] {
            dom0.check("kernel_set_mtu", &[mtu])?;
            dom0.link_wait(10 * SECOND)?;
            assert_eq!(u64::from(dom0.info()?.mtu), mtu);
        }
        assert!(
            dom0.check("kernel_set_mtu", &[20_000]).is_err(),
            "too large"
        );

        let mac = [2, 4, 6, 8, 10, 12];
        let at = dom0.give("mac", &mac)?;
        dom0.check("kernel_set_mac", &[at])?;
        assert_eq!(dom0.info()?.mac[..6], mac);

        dom0.check("kernel_set_rx_mode", &[1, 0, 0])?;
        let groups = [1, 0, 0x5e, 0, 0, 1, 0x33, 0x33, 0, 0, 0, 1];
        let at = dom0.give("groups", &groups)?;
        dom0.check("kernel_set_rx_mode", &[0, at, 2])?;
        for vlan in [1, 7, 4095] {
            dom0.check("kernel_vlan_add", &[vlan])?;
        }
        dom0.check("kernel_vlan_kill", &[7])?;

        dom0.check("kernel_ethtool_set_ringparam", &[512, 128])?;
        dom0.link_wait(10 * SECOND)?;
        let ring = dom0.ring_parameters()?;
        assert_eq!((ring.rx, ring.tx), (512, 128));
        dom0.tick(5 * SECOND)?;
        assert_eq!(counters(dom0)?.warnings, 0);
        heap_is_sound(dom0)
    });
}

#[test]
fn module_parameters_are_parsed_and_checked() {
    with_dom0(|dom0| {
        dom0.boot()?;
        assert!(dom0.load("NoSuch=1").is_err());
        assert!(dom0.load("TxDescriptors=many").is_err());
        dom0.load("TxDescriptors=128 RxDescriptors=512,64 debug=1")?;
        let ring = dom0.ring_parameters()?;
        assert_eq!((ring.tx, ring.rx), (128, 512));
        Ok(())
    });
}

// ---- Resets and self tests --------------------------------------------------------

#[test]
fn a_transmit_timeout_resets_the_device_and_the_link_returns() {
    with_link(|dom0| {
        for _ in 0..3 {
            let works = counters(dom0)?.works_run;
            dom0.check("kernel_tx_timeout", &[])?;
            dom0.tick(100 * MILLISECOND)?;
            assert!(counters(dom0)?.works_run > works, "the reset task ran");
            dom0.link_wait(10 * SECOND)?;
        }
        let values = dom0.ethtool_statistics()?;
        let timeouts = values.iter().find(|(name, _)| name == "tx_timeout_count");
        assert_eq!(timeouts.map(|(_, value)| *value), Some(3));
        heap_is_sound(dom0)
    });
}

/// `ethtool -t`: each test's name and result, 0 passed.
fn self_test(dom0: &mut Dom0<'_, '_>, offline: u64) -> Result<Vec<(String, u64)>, CommandError> {
    const MOST: usize = 16;
    let size = 8 + MOST * size_of::<NamedValue>();
    let at = dom0.give("self test", &vec![0; size])?;
    let count = dom0.check(
        "kernel_ethtool_selftest",
        &[offline, at, at + 8, MOST as u64],
    )?;
    Ok((0..count.value)
        .map(|i| {
            peek::<NamedValue>(
                dom0,
                EXCHANGE.start + 8 + i * size_of::<NamedValue>() as u64,
            )
        })
        .map(|value| (text(&value.name), value.value))
        .collect())
}

#[test]
fn self_tests_pass() {
    with_link(|dom0| {
        for offline in [0, 1] {
            let results = self_test(dom0, offline)?;
            assert_eq!(results.len(), 5);
            for (name, result) in results {
                assert_eq!(result, 0, "{name}, offline {offline}");
            }
        }
        dom0.link_wait(10 * SECOND)?;
        heap_is_sound(dom0)
    });
}

#[test]
fn registers_and_eeprom_are_read() {
    with_link(|dom0| {
        let at = dom0.give("regs", &[0; 256])?;
        assert!(dom0.check("kernel_ethtool_regs", &[at, 256])?.value > 64);
        let at = dom0.give("eeprom", &[0; 128])?;
        dom0.check("kernel_ethtool_eeprom", &[0, at, 128])?;
        let mut eeprom = [0; 128];
        dom0.take(&mut eeprom);
        assert_eq!(eeprom[..6], MAC);
        let words = eeprom
            .chunks_exact(2)
            .map(|w| u16::from_le_bytes([w[0], w[1]]));
        assert_eq!(words.fold(0, u16::wrapping_add), 0xbaba, "the checksum");
        Ok(())
    });
}

// ---- Packets, natively --------------------------------------------------------------

fn frame(to: [u8; 6], length: usize) -> Vec<u8> {
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
fn received(dom0: &mut Dom0<'_, '_>) -> Result<Vec<Vec<u8>>, CommandError> {
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

// ---- Interrupts, link, works --------------------------------------------------------------

#[test]
fn interrupts_wait_for_the_flag_and_the_disable_depth() {
    const AGAIN: i64 = -11;
    with_link(|dom0| {
        let irq = u64::from(dom0.info()?.irq);
        let take = |dom0: &mut Dom0<'_, '_>| Ok::<_, CommandError>(dom0.interrupt()?.value as i64);
        let lock = dom0.call("__kmalloc", &[64, 0x100])?.value;
        let flags = dom0.call("_raw_spin_lock_irqsave", &[lock])?.value;
        assert_eq!(take(dom0)?, AGAIN, "flag clear");
        dom0.call("_raw_spin_unlock_irqrestore", &[lock, flags])?;
        assert_eq!(take(dom0)?, 0, "not the device's");
        dom0.call("disable_irq", &[irq])?;
        dom0.call("disable_hardirq", &[irq])?;
        dom0.call("enable_irq", &[irq])?;
        assert_eq!(take(dom0)?, AGAIN, "still disabled");
        let frame = frame(MAC, 100);
        NicPort::new(dom0.mailbox(), dom0.machine(), dom0.plan().space().dma()).receive(&frame);
        dom0.tick(10 * MILLISECOND)?;
        assert!(received(dom0)?.is_empty());
        dom0.call("enable_irq", &[irq])?;
        dom0.tick(10 * MILLISECOND)?;
        assert_eq!(received(dom0)?, [frame], "when it is enabled again");
        Ok(())
    });
}

#[test]
fn the_carrier_follows_the_cable() {
    with_link(|dom0| {
        for round in 1..4 {
            dom0.mailbox().device().set_link(false);
            dom0.tick(5 * SECOND)?;
            assert_eq!(
                dom0.mailbox().events.get(Event::Carrier),
                (2 * round + 1, 0)
            );
            assert_eq!(dom0.link()?.carrier, 0);
            dom0.mailbox().device().set_link(true);
            dom0.link_wait(10 * SECOND)?;
            assert_eq!(dom0.mailbox().events.get(Event::Carrier).0, 2 * round + 2);
        }
        Ok(())
    });
}

/// The reset work sleeps half done while the command waits for it.
#[test]
fn a_command_waits_for_a_work_that_sleeps() {
    with_link(|dom0| {
        for mtu in [1000, 1500, 1200, 1500] {
            dom0.check("kernel_tx_timeout", &[])?;
            dom0.check("kernel_set_mtu", &[mtu])?;
            dom0.check("kernel_tx_timeout", &[])?;
            dom0.close()?;
            dom0.open()?;
        }
        dom0.link_wait(10 * SECOND)?;
        assert_eq!(counters(dom0)?.warnings, 0);
        heap_is_sound(dom0)
    });
}

/// A `delayed_work` in dom0's memory; kernel_check_heap is its function.
fn delayed_work(dom0: &mut Dom0<'_, '_>) -> Result<u64, CommandError> {
    let work = dom0.call("__kmalloc", &[96, 0x100])?.value;
    let symbol = |name| dom0.plan().symbol(name).expect("kernel.o has it");
    let fields = [
        (0, 0xf_ffff_ffe0),
        (8, work + 8),
        (16, work + 8),
        (24, symbol("kernel_check_heap")),
        (56, symbol("delayed_work_timer_fn")),
    ];
    for (offset, value) in fields {
        write(dom0, work + offset, &u64::to_le_bytes(value));
    }
    Ok(work)
}

#[test]
fn delayed_works_run_when_due_and_can_be_cancelled() {
    with_dom0(|dom0| {
        dom0.boot()?;
        let work = delayed_work(dom0)?;
        let ran = |dom0: &mut Dom0<'_, '_>| Ok::<_, CommandError>(counters(dom0)?.works_run);
        // 250 ticks of 4 ms.
        assert_eq!(
            dom0.call("queue_delayed_work_on", &[0, 0, work, 250])?
                .value
                & 1,
            1
        );
        assert_eq!(
            dom0.call("queue_delayed_work_on", &[0, 0, work, 1])?.value & 1,
            0,
            "pending"
        );
        dom0.tick(900 * MILLISECOND)?;
        assert_eq!(ran(dom0)?, 0);
        dom0.tick(200 * MILLISECOND)?;
        assert_eq!(ran(dom0)?, 1);

        dom0.call("queue_delayed_work_on", &[0, 0, work, 250])?;
        assert_eq!(dom0.call("cancel_delayed_work_sync", &[work])?.value & 1, 1);
        assert_eq!(dom0.call("cancel_delayed_work_sync", &[work])?.value & 1, 0);
        dom0.tick(2 * SECOND)?;
        assert_eq!(ran(dom0)?, 1, "cancelled");

        assert_eq!(dom0.call("queue_work_on", &[0, 0, work])?.value & 1, 1);
        dom0.tick(MILLISECOND)?;
        assert_eq!(ran(dom0)?, 2);
        dom0.call("kfree", &[work])?;
        heap_is_sound(dom0)
    });
}

#[test]
fn the_clock_moves_by_sleeping_delaying_and_nudging() {
    with_dom0(|dom0| {
        dom0.boot()?;
        let jiffies = dom0.plan().symbol("jiffies").expect("kernel.o has it");
        let start = word(dom0, jiffies);
        let mut expected = 0;
        for (function, argument, ns) in [
            ("msleep", 100, 100 * MILLISECOND),
            ("__udelay", 50, 50_000),
            // 10 us in units of 2^-32 s.
            ("__const_udelay", 10 * 0x10c7, 10_000),
            ("kernel_clock_nudge", 7 * MILLISECOND, 7 * MILLISECOND),
            ("kernel_tick", SECOND, SECOND),
        ] {
            dom0.call(function, &[argument])?;
            expected += ns;
            let now = dom0.info()?.now;
            assert!(
                now.abs_diff(expected) < 1000,
                "{function}: {now}, {expected}"
            );
            assert_eq!(word(dom0, jiffies) - start, now / (4 * MILLISECOND));
        }
        Ok(())
    });
}

// ---- Several CPUs ----------------------------------------------------------------------

/// Calls as CPU `cpu`, as the hypervisor's driver does.
fn upcall(mailbox: &Mailbox, cpu: usize, function: u64, arguments: [u64; 3]) -> u64 {
    let [a, b, c] = arguments;
    let upcall = Upcall {
        function,
        arguments: [a, b, c, 0, 0, 0],
        stack: &[],
        window: 0..0,
    };
    let limits = Limits {
        time: Duration::from_secs(60),
        ..Limits::default()
    };
    // SAFETY: no window.
    let result = unsafe { upcall::call(&mailbox.upcalls[cpu], &upcall, &limits) };
    result
        .unwrap_or_else(|error| panic!("CPU {cpu}: {error}"))
        .0
}

#[test]
fn two_cpus_use_the_kernel_at_once() {
    with_link(|dom0| {
        let symbol = |name| dom0.plan().symbol(name).expect("kernel.o has it");
        let (kmalloc, kfree) = (symbol("__kmalloc"), symbol("kfree"));
        let (sleep, lock, unlock) = (
            symbol("msleep"),
            symbol("mutex_lock"),
            symbol("mutex_unlock"),
        );
        let timeout = symbol("kernel_tx_timeout");
        let before = counters(dom0)?;
        let mutex = dom0.call("__kmalloc", &[64, 0])?.value;
        dom0.call("__mutex_init", &[mutex, 0, 0])?;
        let mailbox = dom0.mailbox();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                for i in 0..300u64 {
                    let size = 1 + i * 37 % 6000;
                    let objects = [0, 1, 2].map(|_| upcall(mailbox, 1, kmalloc, [size, 0, 0]));
                    assert!(objects.iter().all(|object| *object != 0));
                    upcall(mailbox, 1, lock, [mutex, 0, 0]);
                    upcall(mailbox, 1, sleep, [1, 0, 0]);
                    upcall(mailbox, 1, unlock, [mutex, 0, 0]);
                    if i % 50 == 0 {
                        upcall(mailbox, 1, timeout, [0; 3]);
                    }
                    for object in objects {
                        upcall(mailbox, 1, kfree, [object, 0, 0]);
                    }
                }
            });
            while !other.is_finished() {
                dom0.call("mutex_lock", &[mutex])?;
                dom0.call("msleep", &[2])?;
                dom0.call("mutex_unlock", &[mutex])?;
                let object = dom0.call("__kmalloc", &[77, 0])?.value;
                dom0.tick(MILLISECOND)?;
                dom0.call("kfree", &[object])?;
            }
            other.join().expect("the other CPU");
            Ok::<(), CommandError>(())
        })?;
        dom0.link_wait(10 * SECOND)?;
        let after = counters(dom0)?;
        assert_eq!(after.warnings, 0);
        assert!(after.works_run > before.works_run && after.sleeps > before.sleeps);
        heap_is_sound(dom0)
    });
}

// ---- Nothing is lost ------------------------------------------------------------------

#[test]
fn reloading_the_driver_leaks_nothing() {
    with_dom0(|dom0| {
        dom0.boot()?;
        let mut before = None;
        for round in 0..10 {
            dom0.load("")?;
            dom0.open()?;
            dom0.link_wait(10 * SECOND)?;
            dom0.close()?;
            dom0.open()?;
            dom0.remove()?;
            assert_eq!(dom0.mailbox().events.get(Event::Unregistered).0, round + 1);
            let now = counters(dom0)?;
            let held = (
                now.allocations - now.frees,
                now.pages_allocated,
                now.warnings,
            );
            // The first round's pools and worker stay.
            if round > 0 {
                assert_eq!(*before.get_or_insert(held), held, "round {round}");
            }
        }
        heap_is_sound(dom0)
    });
}

/// Each allocation of probe and open fails once: the driver reports it and gives
/// back all it had, and then works.
#[test]
fn a_failing_allocation_is_an_error_and_no_leak() {
    with_dom0(|dom0| {
        dom0.boot()?;
        // The pools of hot.o stay, so they come before the count.
        dom0.load("")?;
        dom0.open()?;
        dom0.remove()?;
        let held = |dom0: &mut Dom0<'_, '_>| {
            let now = counters(dom0)?;
            Ok::<_, CommandError>((
                now.allocations - now.frees,
                now.pages_allocated,
                now.warnings,
            ))
        };
        let before = held(dom0)?;
        let mut refused = 0;
        for which in 1.. {
            dom0.call("kernel_fail_allocation", &[which])?;
            let loaded = dom0.load("").is_ok();
            let opened = loaded && dom0.open().is_ok();
            refused += u32::from(!opened);
            let unused = dom0.call("kernel_fail_allocation", &[0])?.value;
            dom0.remove()?;
            assert_eq!(held(dom0)?, before, "allocation {which}");
            if unused > 0 {
                assert!(opened, "no allocation failed");
                break;
            }
        }
        assert!(refused >= 6, "{refused} of the driver's allocations");
        heap_is_sound(dom0)
    });
}

// ---- Bugs are caught --------------------------------------------------------------------

/// What the kernel says when it cannot go on.
fn dies(dom0: &mut Dom0<'_, '_>, function: &str, arguments: &[u64]) -> String {
    match dom0.call(function, arguments) {
        Err(CommandError::Oops { console, .. }) => console,
        other => panic!("{function} went on: {other:?}"),
    }
}

#[test]
fn a_second_free_is_a_bug() {
    with_dom0(|dom0| {
        dom0.boot()?;
        let object = dom0.call("__kmalloc", &[100, 0])?.value;
        dom0.call("__kmalloc", &[100, 0])?;
        dom0.call("kfree", &[object])?;
        let text = dies(dom0, "kfree", &[object]);
        assert!(text.contains("of what is free already"), "{text}");
        Ok(())
    });
}

#[test]
fn a_write_after_the_free_is_found() {
    with_dom0(|dom0| {
        dom0.boot()?;
        let object = dom0.call("__kmalloc", &[100, 0])?.value;
        dom0.call("__kmalloc", &[100, 0])?;
        dom0.call("kfree", &[object])?;
        write(dom0, object + 77, b"x");
        assert_eq!(dom0.call("kernel_check_heap", &[])?.value, 1);
        let text = dies(dom0, "__kmalloc", &[100, 0]);
        assert!(text.contains("was written at +77"), "{text}");
        Ok(())
    });
}

#[test]
fn memory_is_reused_and_runs_out() {
    with_dom0(|dom0| {
        dom0.boot()?;
        for size in [1u64, 32, 33, 100, 2048, 2049, 5000, 70_000] {
            let first = dom0.call("__kmalloc", &[size, 0])?.value;
            let aligned = size.next_power_of_two().clamp(32, 4096);
            assert_eq!(first % aligned, 0, "{size}");
            dom0.call("kfree", &[first])?;
        }
        assert_eq!(dom0.call("__kmalloc", &[0, 0])?.value, 16, "ZERO_SIZE_PTR");
        let mut taken = Vec::new();
        loop {
            match dom0.call("__kmalloc", &[1 << 20, 0])?.value {
                0 => break,
                address => taken.push(address),
            }
        }
        assert!(taken.len() > 40 && taken.len() < 64, "{} MiB", taken.len());
        for address in taken {
            dom0.call("kfree", &[address])?;
        }
        heap_is_sound(dom0)
    });
}

#[test]
fn sleeping_with_a_lock_held_is_a_bug() {
    with_dom0(|dom0| {
        dom0.boot()?;
        let lock = dom0.give("lock", &[0; 64])?;
        dom0.call("_raw_spin_lock", &[lock])?;
        let text = dies(dom0, "msleep", &[1]);
        assert!(text.contains("sleeping while atomic"), "{text}");
        Ok(())
    });
}

// ---- Formats --------------------------------------------------------------------------------

/// `snprintf` with up to three arguments; `{}` is where their bytes lie.
fn format(
    dom0: &mut Dom0<'_, '_>,
    format: &str,
    arguments: [u64; 3],
) -> Result<String, CommandError> {
    let mut bytes = vec![0xffu8; 256];
    bytes.extend_from_slice(format.as_bytes());
    bytes.push(0);
    let at = dom0.give("format", &bytes)?;
    let [a, b, c] = arguments;
    let length = dom0.call("snprintf", &[at, 256, at + 256, a, b, c])?.value;
    let mut out = [0; 256];
    dom0.take(&mut out);
    let text = text(&out);
    assert_eq!(text.len() as u64, length, "{format}");
    Ok(text)
}

#[test]
fn formats_are_the_kernels() {
    with_dom0(|dom0| {
        dom0.boot()?;
        let strings = EXCHANGE.start + 0x1000;
        write(dom0, strings, b"e1000\0");
        write(dom0, strings + 16, &MAC);
        let minus = -5i64 as u64;
        let cases: &[(&str, [u64; 3], &str)] = &[
            ("plain", [0; 3], "plain"),
            ("%d %i %u", [minus, 7, 8], "-5 7 8"),
            ("%x|%X|%#x", [255, 255, 255], "ff|FF|0xff"),
            (
                "%#08x|%08x|%8x",
                [0x2a, 0x2a, 0x2a],
                "0x00002a|0000002a|      2a",
            ),
            ("%-6d|%6d|%+d", [42, 42, 42], "42    |    42|+42"),
            ("%.3d|%5.3d|%-5.2d|", [7, 7, 7], "007|  007|07   |"),
            (
                "%ld %lld %llx",
                [minus, minus, u64::MAX],
                "-5 -5 ffffffffffffffff",
            ),
            ("%hhu %hd %hhx", [300, 0xffff, 0x1234], "44 -1 34"),
            ("%s|%8s|%-8s|", [strings; 3], "e1000|   e1000|e1000   |"),
            ("%.2s|%c|%%", [strings, 65, 0], "e1|A|%"),
            ("%s", [0; 3], "(null)"),
            (
                "%pM|%pm|%px",
                [strings + 16, strings + 16, 0xabc],
                "52:54:00:12:34:56|525400123456|abc",
            ),
            ("%p", [0xabc, 0, 0], "0000000000000abc"),
            (
                "%3phC|%*ph",
                [strings + 16, 2, strings + 16],
                "52:54:00|52 54",
            ),
            ("%*d|%d", [4, 7, 8], "   7|8"),
            ("%o %zu", [8, 9, 0], "10 9"),
            ("a %y b", [1, 2, 3], "a <%y b>"),
        ];
        for (pattern, arguments, expected) in cases {
            assert_eq!(format(dom0, pattern, *arguments)?, *expected, "{pattern}");
        }
        Ok(())
    });
}
