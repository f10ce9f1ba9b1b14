//! A ring and its event index, by two processes at once: no wake is lost.

use std::io::{self, Read, Write};
use std::sync::atomic::Ordering;

use e1000_sim::guests::channel::{Channel, RING};
use e1000_sim::transport::mailbox::SharedPages;
use process_lab::process;

const REQUESTS: u32 = 200_000;

/// Who arms the ring and looks again, and who puts a request there and looks at the index, in each order: at least one sees
/// the other.
#[test]
fn in_each_order_one_sees_the_other() {
    let [put, ask, arm, look] = [0, 1, 2, 3];
    let orders = [
        [put, ask, arm, look],
        [put, arm, ask, look],
        [put, arm, look, ask],
        [arm, put, ask, look],
        [arm, put, look, ask],
        [arm, look, put, ask],
    ];
    for start in [0, 5, u32::MAX] {
        for order in orders {
            let pages = SharedPages::<Channel>::new().expect("memory");
            let channel = pages.get();
            channel.by_index.store(1, Ordering::Relaxed);
            channel.requests.store(start, Ordering::Relaxed);
            channel.arm(start.wrapping_add(RING / 2));
            let next = start.wrapping_add(1);
            let (mut kicked, mut seen) = (false, false);
            for step in order {
                match step {
                    0 => channel.requests.store(next, Ordering::Release),
                    1 => kicked = channel.is_kick_wanted(start, next),
                    2 => {
                        channel.arm(next);
                        Channel::is_armed();
                    }
                    _ => seen = channel.requests.load(Ordering::Acquire) == next,
                }
            }
            assert!(kicked || seen, "{start} {order:?}");
        }
    }
}

/// The guest puts requests there and kicks when it is asked to, by a byte in a pipe; the hypervisor takes what is there, arms the
/// ring, looks again and sleeps. If a wake were lost, requests would be left when the pipe ends.
#[test]
fn no_wake_is_lost_between_two_processes() {
    let _turn = super::turn::turn();
    let pages = SharedPages::<Channel>::new().expect("memory");
    let channel = pages.get();
    channel.by_index.store(1, Ordering::Relaxed);
    channel.arm(1);
    let (mut kicks, mut kick) = io::pipe().expect("a pipe");
    let mut guest = process::fork(|| {
        for request in 0..REQUESTS {
            channel.requests.store(request + 1, Ordering::Release);
            if channel.is_kick_wanted(request, request + 1) && kick.write_all(&[1]).is_err() {
                return 1;
            }
            // Now and then long enough for the other to fall asleep.
            if request % 61 == 0 {
                std::thread::yield_now();
            }
        }
        0
    })
    .expect("fork");
    drop(kick);
    let (mut taken, mut slept) = (0, 0u32);
    loop {
        let requests = channel.requests.load(Ordering::Acquire);
        if requests != taken {
            taken = requests;
            channel.arm(taken + RING / 2);
            continue;
        }
        channel.arm(taken + 1);
        Channel::is_armed();
        if channel.requests.load(Ordering::Acquire) != taken {
            continue;
        }
        slept += 1;
        if kicks.read(&mut [0; 64]).expect("the pipe") == 0 {
            break;
        }
        channel.arm(taken + RING / 2);
    }
    assert_eq!(taken, REQUESTS, "slept {slept} times");
    guest.wait();
    assert_eq!(guest.fate().as_deref(), Some("ended with status 0"));
}
