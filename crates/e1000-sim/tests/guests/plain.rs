//! Honest guests: what each shares, and what is counted.

use e1000_sim::guests::back::{CrossingCounts, State};
use e1000_sim::guests::crossing::Kicks;
use e1000_sim::guests::front::{Entry, Front, Order};
use e1000_sim::stages::{Stage, Stages};
use process_lab::packet_path::NotifyLimits;
use process_lab::process;

use super::rig::{BAD, GUESTS, Rig};

/// The shared lines of a process's map, and its files that are no standard streams.
fn shared_with(pid: libc::pid_t) -> (Vec<(u64, u64, String)>, usize) {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("its map");
    let shared = maps
        .lines()
        .filter(|line| line.split(' ').nth(1).is_some_and(|p| p.contains('s')));
    let shared = shared.map(|line| {
        let mut words = line.split_whitespace();
        let (start, end) = words
            .next()
            .and_then(|r| r.split_once('-'))
            .expect("a range");
        let number = |text: &str| u64::from_str_radix(text, 16).expect("a number");
        let offset = number(words.nth(1).expect("an offset"));
        let name = words.nth(2).unwrap_or_default().to_owned();
        (offset, number(end) - number(start), name)
    });
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("its files");
    let others = files.flatten().filter(|file| {
        let number: u32 = file
            .file_name()
            .to_string_lossy()
            .parse()
            .expect("a number");
        number > 2
    });
    (shared.collect(), others.count())
}

/// Its own part of the machine's memory and its channel, no other shared memory and no file: by what
/// the kernel says of the process.
pub fn what_a_guest_shares(rig: &mut Rig<'_>) {
    for guest in 0..GUESTS {
        let own = rig.guests.machine().sizes().guest(guest);
        let pid = rig.guests.back(guest).pid();
        let (mut shared, files) = shared_with(pid);
        assert_eq!(files, 0);
        let memory = shared.iter().position(|(.., name)| name.contains("memfd"));
        let (offset, length, _) = shared.remove(memory.expect("its memory"));
        assert_eq!(offset..offset + length, own);
        let [(_, length, name)] = &shared[..] else {
            panic!("more than memory and channel: {shared:?}");
        };
        assert!(
            name.contains("zero") && *length < 1 << 20,
            "{name}, {length}"
        );
    }
    // The hypervisor has more, so the look at the map finds what there is.
    let (all, files) = shared_with(process::this_thread().0);
    assert!(all.len() > 5 && files > 2, "{all:?}");
    rig.others_are_served();
}

pub fn reads_anothers_memory(front: &mut Front<'_>, entry: Entry) {
    if entry.order == Order::SendEach {
        let mut bytes = [0; 8];
        // As a wild pointer would: the next guest's first page.
        let _ = front.source.machine().read(front.memory.end, &mut bytes);
        // SAFETY: ends the process; only who could read gets here.
        unsafe { libc::_exit(0) };
    }
    front.act(entry);
}

pub fn who_reads_anothers_memory_dies(rig: &mut Rig<'_>) {
    rig.schedule(BAD, Order::SendEach);
    assert_eq!(rig.guests.back(BAD).state(), State::Dead);
    let fate = rig.guests.back(BAD).fate();
    assert_eq!(fate.as_deref(), Some("died of signal 11"));
    rig.others_are_served();
    rig.nothing_is_held(BAD);
}

/// A kick for each packet, or for each guest's batch; answers and arrivals told as asked. The numbers are exact.
pub fn crossings_are_counted(rig: &mut Rig<'_>) {
    // Linux' limit of bytes in the queue has to grow first.
    rig.others_are_served();
    let before = rig.guests.counts();
    rig.send(30, Kicks::Each);
    let each = rig.guests.counts().since(before);
    // Each interrupt answers all; the card's first interrupt has all three guests' packets.
    let expected = CrossingCounts {
        kicks: 30,
        notifications: 3,
        scheduled: 3,
        ..CrossingCounts::default()
    };
    assert_eq!(each, expected);

    let Rig {
        guests, packets, ..
    } = rig;
    guests.tell_each(packets, false).expect("guests");
    let before = rig.guests.counts();
    rig.send(30, Kicks::Batch);
    let batch = rig.guests.counts().since(before);
    let expected = CrossingCounts {
        kicks: 3,
        scheduled: 3,
        ..CrossingCounts::default()
    };
    assert_eq!(batch, expected);

    let (before, idle) = (rig.guests.counts(), rig.counts(2).notifications);
    rig.receive(&[0, 1, 0, 1, 0]);
    let received = rig.guests.counts().since(before);
    let expected = CrossingCounts {
        notifications: 2,
        ..CrossingCounts::default()
    };
    assert_eq!(received, expected);
    // Only the ring of who has kicked was looked at, and only who got something was told.
    assert_eq!(rig.counts(2).notifications, idle);
    rig.others_are_served();
}

/// With the stage `notify` a guest is told when a count or a delay is reached, and gets all that waited.
pub fn notifications_are_batched(rig: &mut Rig<'_>) {
    let engine = &mut rig.packets.engine;
    engine.play_time();
    engine.set_limits(NotifyLimits {
        delay: 1_000_000,
        count: 4,
        most: 0,
    });
    engine.set_stages(Stages::of([Stage::Bridge, Stage::Notify]));
    let before = rig.guests.counts();
    for _ in 0..8 {
        rig.receive(&[0]);
    }
    rig.receive(&[2]);
    assert_eq!(rig.guests.counts().since(before).notifications, 2);
    rig.packets.engine.set_time(2_000_000);
    rig.deliver();
    assert_eq!(rig.guests.counts().since(before).notifications, 3);
    rig.check();
    let all: Vec<u64> = rig.guests.reports().iter().map(|r| r.received).collect();
    assert_eq!(all, [8, 0, 1]);
}
