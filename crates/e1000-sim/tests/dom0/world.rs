//! The small kernel, and a dom0 that runs it.

use std::process::Command as Tool;
use std::sync::OnceLock;
use std::time::Duration;

use e1000_sim::dom0::enter::{self, EnterError};
use e1000_sim::dom0::host;
use e1000_sim::dom0::work::{Local, Work};
use e1000_sim::dom0::{CommandError, Dom0};
use e1000_sim::image::{KernelPlan, Missing, Module};
use e1000_sim::memory::{Machine, Sizes};
use e1000_sim::transport::mailbox::{Mailbox, SharedPages};
use e1000_sim::transport::rendezvous::Limits;

/// tests/common/small.c, compiled as kernel code is.
pub fn small() -> &'static [u8] {
    static OBJECT: OnceLock<Vec<u8>> = OnceLock::new();
    OBJECT.get_or_init(|| {
        let object = std::env::temp_dir().join(format!("twin-small-{}.o", std::process::id()));
        let status = Tool::new("cc")
            .args(["-c", "-O2", "-mcmodel=kernel", "-fno-pic", "-mno-red-zone"])
            .args([
                "-mgeneral-regs-only",
                "-fno-stack-protector",
                "-fno-optimize-sibling-calls",
            ])
            .args([
                "-fcf-protection=none",
                "-ffreestanding",
                "-fno-asynchronous-unwind-tables",
            ])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/common/small.c"))
            .arg("-o")
            .arg(&object)
            .status()
            .expect("a C compiler");
        assert!(status.success());
        let bytes = std::fs::read(&object).expect("the object");
        let _ = std::fs::remove_file(&object);
        bytes
    })
}

pub const SIZES: Sizes = Sizes {
    base: 0,
    dom0: 16 << 20,
    guests: 1,
    guest: 2 << 20,
};

pub const LIMITS: Limits = Limits {
    time: Duration::from_secs(20),
    spin: 1000,
};

pub struct World {
    pub plan: KernelPlan<'static>,
    pub machine: Machine,
    pub mailbox: SharedPages<Mailbox>,
}

impl World {
    pub fn new() -> World {
        let files = [(Module::Kernel, small())];
        let plan = KernelPlan::new(SIZES, &files, &hosts, Missing::Trap).expect("plan");
        let mailbox = Mailbox::new().expect("memory");
        mailbox.get().power_on([2, 0, 0, 0, 0, 1]);
        World {
            plan,
            machine: Machine::new(SIZES).expect("memory"),
            mailbox,
        }
    }

    pub fn dom0(&self) -> Dom0<'_, 'static> {
        Dom0::start_with(&self.plan, &self.machine, self.mailbox.get(), LIMITS, WORKS)
            .expect("dom0")
    }
}

/// Numbers of `WORKS`.
pub const COUNT_UP: u32 = 0;
pub const PANIC: u32 = 1;
const WORKS: &[Work] = &[count_up, panic];

/// Calls `small_calls` many times, without a command for each.
fn count_up(local: &Local<'_>, arguments: [u64; 5]) -> Result<u64, EnterError> {
    let function = local.plan.symbol("small_calls").expect("a function");
    // SAFETY: it is a function without arguments.
    let call = || unsafe { local.call(function, [0; 6]) };
    (0..arguments[0]).try_fold(0, |_, _| call())
}

fn panic(_: &Local<'_>, _: [u64; 5]) -> Result<u64, EnterError> {
    panic!("on purpose")
}

/// The functions that kernel code may import from this test.
pub fn hosts(name: &str) -> Option<u64> {
    match name {
        "host_enter_again" => Some(enter_again as *const () as u64),
        _ => host::address(name),
    }
}

/// Enters kernel code from a function that kernel code called: 1 if that is refused.
extern "C" fn enter_again(function: u64) -> u64 {
    // SAFETY: it is a kernel function, and it is not called.
    let result = unsafe { enter::enter(function, [0; 6]) };
    u64::from(result == Err(EnterError::Nested))
}

pub fn value(dom0: &mut Dom0<'_, '_>, name: &str, arguments: &[u64]) -> u64 {
    let answer = dom0.call(name, arguments).unwrap_or_else(|e| panic!("{e}"));
    answer.value
}

/// The report of an oops.
pub fn oops(dom0: &mut Dom0<'_, '_>, name: &str, arguments: &[u64]) -> String {
    match dom0.call(name, arguments) {
        Err(CommandError::Oops { report, .. }) => report,
        other => panic!("{name}: {other:?}"),
    }
}
