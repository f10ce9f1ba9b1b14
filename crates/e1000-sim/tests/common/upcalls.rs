//! An upcall of the hypervisor instance that does not return is an error to the
//! driver's caller, and stack variables go to dom0 by reference and back.

use std::collections::HashSet;
use std::time::Duration;

use e1000_sim::hypervisor::instance::{DriverAbort, Stopped};
use e1000_sim::inject::recovery::{Mended, Quiet, Recovery};
use e1000_sim::inject::service::{Exchanged, Service};
use e1000_sim::memory::EXCHANGE;
use e1000_sim::system::System;
use e1000_sim::transport::mailbox::Counter;
use e1000_sim::transport::rendezvous::Limits;
use process_lab::program::Scheme;
use process_lab::runtime;

#[path = "system.rs"]
mod system;

use system::with_scheme;

/// A hot routine that is an upcall here: each packet makes one, or more.
const FORCED: &str = "dma_map_page_attrs";
const GUESTS: u32 = 2;

fn limits(milliseconds: u64) -> Limits {
    Limits {
        time: Duration::from_millis(milliseconds),
        ..Limits::default()
    }
}

struct Bench<'s> {
    system: System<'s>,
    service: Service<'s>,
    quiet: Quiet,
}

impl<'s> Bench<'s> {
    fn new(mut system: System<'s>) -> Self {
        system.dom0.set_limits(limits(2000));
        let engine = system
            .twin(limits(1000))
            .unwrap_or_else(|error| panic!("{error}"));
        let service =
            Service::start(&system, engine, GUESTS).unwrap_or_else(|error| panic!("{error}"));
        Bench {
            quiet: Quiet::note(&system),
            system,
            service,
        }
    }

    /// Packets go both ways, by upcalls.
    fn serves(&mut self) {
        let upcalls = || self.system.mailbox().counters.get(Counter::Upcalls);
        let before = upcalls();
        let exchanged = self.service.exchange(0..GUESTS as usize, 8);
        assert_eq!(exchanged, Ok(Exchanged::default()));
        assert!(upcalls() > before, "no packet made an upcall");
    }

    /// A packet stops the driver at the forced upcall.
    fn aborts(&mut self) -> DriverAbort {
        let stop = self.service.exchange(0..1, 1);
        stop.expect_err("dom0 cannot answer");
        match self.service.packet_loop.engine.engine.twin.take_stopped() {
            Some(Stopped::Aborted(report)) => report,
            other => panic!("not aborted: {other:?}"),
        }
    }

    /// The report names the upcall and says `why`.
    fn aborts_for(&mut self, why: &str) {
        let report = self.aborts();
        let said = report.import.clone().unwrap_or_default();
        assert!(said.contains(&format!("upcall of {FORCED}")), "{report}");
        assert!(said.contains(why), "{report}");
        assert!(report.place.contains("e1000_"), "{report}");
        println!("{report}");
    }

    fn mends(&mut self) -> Mended {
        let mut recovery = Recovery {
            system: &mut self.system,
            service: &mut self.service,
            quiet: &self.quiet,
            start: limits(20_000),
            limits: limits(2000),
        };
        let (mended, why) = recovery.mend().unwrap_or_else(|why| panic!("{why}"));
        println!("{mended:?} {why:?}");
        mended
    }

    /// Sends dom0 a signal and waits until it has taken effect: `kill` returns
    /// while dom0 still runs on another CPU, and may answer once more.
    fn signal(&self, signal: i32) {
        let pid = self.system.dom0.pid();
        // SAFETY: our own child.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
        // The status change stays for other waiters for dom0 (`WNOWAIT`).
        let change = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT;
        // SAFETY: all of siginfo_t is plain data, of which zero is a value.
        let mut seen: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: our own child, and a siginfo_t of ours.
        let done = unsafe { libc::waitid(libc::P_PID, pid as libc::id_t, &raw mut seen, change) };
        assert_eq!(done, 0, "dom0 is not ours");
    }

    /// dom0 does not answer.
    fn hang(&mut self) {
        self.signal(libc::SIGSTOP);
        self.aborts_for("no answer within");
        assert_eq!(self.mends(), Mended::Restarted);
        self.serves();
    }

    /// dom0 dies.
    fn death(&mut self) {
        self.signal(libc::SIGKILL);
        self.aborts_for("dom0 is dead");
        assert_eq!(self.mends(), Mended::Restarted);
        self.serves();
    }

    /// The routine that is called has a BUG.
    fn oops(&mut self) {
        const UD2: [u8; 2] = [0x0f, 0x0b];
        let plan = &self.system.blueprint().plan;
        let view = plan.view(self.system.machine());
        let at = plan.symbol(FORCED).expect("hot.o has it");
        let mut code = [0; 2];
        view.read(at, &mut code).expect("dom0's code");
        view.write(at, &UD2).expect("dom0's code");
        self.aborts_for("oops of dom0");
        view.write(at, &code).expect("dom0's code");
        // dom0 itself lives on.
        assert!(self.system.dom0.is_alive());
        assert_eq!(self.mends(), Mended::Reset);
        self.serves();
    }

    /// `e1000_set_link_ksettings` gives dom0 the address of its variable
    /// `advertising`, and puts what is there then into its adapter. The function
    /// goes on to the interface's state, which is made unreachable: it is
    /// aborted there, before it resets the card.
    fn by_reference(&mut self, scheme: Scheme) {
        const ADVERTISING: u32 = 0x0123_4502;
        const TP_AUTONEG: u16 = 0xc0;
        let plan = &self.system.blueprint().plan;
        let view = plan.view(self.system.machine());
        let info = self.system.info;
        let settings = EXCHANGE.start;
        // struct ethtool_link_ksettings: base.autoneg at 11, link_modes at 48.
        let (autoneg, advertising) = (settings + 11, settings + 0x40);
        view.write(settings, &[0; 256]).expect("exchange");
        view.write(autoneg, &[1]).expect("exchange");
        view.write(advertising, &ADVERTISING.to_le_bytes())
            .expect("exchange");
        let adapter = info.netdev_priv..info.netdev_priv + 0x900;
        let bytes = |from: &std::ops::Range<u64>| {
            let mut bytes = vec![0; (from.end - from.start) as usize];
            view.read(from.start, &mut bytes).expect("the adapter");
            bytes
        };
        let wanted = (ADVERTISING as u16 | TP_AUTONEG).to_le_bytes();
        let count = |bytes: &[u8]| {
            bytes
                .chunks_exact(2)
                .filter(|pair| **pair == wanted)
                .count()
        };
        let before = count(&bytes(&adapter));
        for at in adapter.clone().step_by(8) {
            let mut word = [0; 8];
            view.read(at, &mut word).expect("the adapter");
            if u64::from_le_bytes(word) == info.net_device {
                view.write(at, &8u64.to_le_bytes()).expect("the adapter");
            }
        }
        let instance = &mut self.service.packet_loop.engine.engine.twin.instance;
        let upcalls = instance.upcalls();
        let called = instance.call("e1000_set_link_ksettings", &[info.net_device, settings]);
        let Err(Stopped::Aborted(report)) = called else {
            panic!("not aborted: {called:?}");
        };
        assert!(
            report.place.contains("e1000_set_link_ksettings"),
            "{report}"
        );
        let kind = match scheme {
            Scheme::Paper | Scheme::Stlb => runtime::ABORT_ACCESS,
            Scheme::Window32 | Scheme::Window => runtime::ABORT_FAULT,
        };
        assert_eq!(report.kind, kind, "{report}");
        assert_ne!(instance.upcalls(), upcalls, "no upcall was made");
        assert_eq!(count(&bytes(&adapter)), before + 1, "not what dom0 wrote");
        self.mends();
        self.serves();
    }
}

/// An upcall that does not come back is an error, and dom0 is replaced. Once in a process.
pub fn run(scheme: Scheme) {
    let upcalls = HashSet::from([FORCED.to_owned()]);
    with_scheme(scheme, &upcalls, limits(20_000), |system| {
        let mut bench = Bench::new(system);
        bench.serves();
        bench.hang();
        bench.death();
        bench.oops();
        bench.by_reference(scheme);
        bench.hang();
    });
}
