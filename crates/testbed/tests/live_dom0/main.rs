//! The dom0 process with a kernel of a few functions: entering and oopses,
//! traps, commands to a dom0 that hangs or dies, upcalls.

use std::process::Command as Tool;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use testbed::live::command::Command;
use testbed::live::dom0::{CommandError, Dom0, Failure};
use testbed::live::enter::{self, EnterError};
use testbed::live::host;
use testbed::live::image::{Missing, Module, Plan};
use testbed::live::mailbox::{Counter, Mailbox, SharedPages};
use testbed::live::memory::{
    BarMode, CPUS, DIRECT_MAP, Machine, PORTS, Sizes, VMEMMAP, driver_stack, percpu,
};
use testbed::live::process;
use testbed::live::rendezvous::{Limits, NoAnswer};
use testbed::live::upcall::{self, Upcall, UpcallError};
use testbed::live::work::{Local, Work};

/// tests/live/small.c, compiled as kernel code is.
fn small() -> &'static [u8] {
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
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/small.c"))
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

const SIZES: Sizes = Sizes {
    dom0: 16 << 20,
    guests: 1,
    guest: 2 << 20,
};

const LIMITS: Limits = Limits {
    time: Duration::from_secs(20),
    spin: 1000,
};

struct World {
    plan: Plan<'static>,
    machine: Machine,
    mailbox: SharedPages<Mailbox>,
}

impl World {
    fn new() -> World {
        let files = [(Module::Kernel, small())];
        let plan = Plan::new(SIZES, &files, &hosts, Missing::Trap).expect("plan");
        let mailbox = Mailbox::new().expect("memory");
        mailbox.get().power_on([2, 0, 0, 0, 0, 1]);
        World {
            plan,
            machine: Machine::new(SIZES).expect("memory"),
            mailbox,
        }
    }

    fn dom0(&self) -> Dom0<'_, 'static> {
        Dom0::start_with(&self.plan, &self.machine, self.mailbox.get(), LIMITS, WORKS)
            .expect("dom0")
    }
}

/// Numbers of `WORKS`.
const COUNT_UP: u32 = 0;
const PANIC: u32 = 1;
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

/// What kernel code may import from this test.
fn hosts(name: &str) -> Option<u64> {
    match name {
        "host_enter_again" => Some(enter_again as *const () as u64),
        _ => host::address(name),
    }
}

/// Enters kernel code from what kernel code called: 1 if that is refused.
extern "C" fn enter_again(function: u64) -> u64 {
    // SAFETY: it is a kernel function; besides, it is not called.
    let result = unsafe { enter::enter(function, [0; 6]) };
    u64::from(result == Err(EnterError::Nested))
}

fn value(dom0: &mut Dom0<'_, '_>, name: &str, arguments: &[u64]) -> u64 {
    let answer = dom0.call(name, arguments).unwrap_or_else(|e| panic!("{e}"));
    answer.value
}

/// The report of an oops.
fn oops(dom0: &mut Dom0<'_, '_>, name: &str, arguments: &[u64]) -> String {
    match dom0.call(name, arguments) {
        Err(CommandError::Oops { report, .. }) => report,
        other => panic!("{name}: {other:?}"),
    }
}

/// Nobody else moves the clock: e1000's loopback test would hang on a packet that
/// does not come back.
#[test]
fn kernel_code_that_spins_on_the_clock_sees_it_move() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let waited = value(&mut dom0, "small_wait", &[20]);
    assert!((20..30).contains(&waited), "{waited} jiffies");
}

// ---- Images ------------------------------------------------------------------------

#[test]
fn a_missing_import_is_refused_by_name() {
    let files = [(Module::Kernel, small())];
    let error = Plan::new(SIZES, &files, &host::address, Missing::Refuse).expect_err("missing");
    assert!(error.to_string().contains("nobodys"), "{error}");
}

#[test]
fn two_definitions_are_refused() {
    let files = [(Module::Hot, small()), (Module::Kernel, small())];
    let error = Plan::new(SIZES, &files, &host::address, Missing::Trap).expect_err("twice");
    assert!(
        error.to_string().contains("hot.o and by kernel.o"),
        "{error}"
    );
}

#[test]
fn variables_of_the_machine_and_percpu_copies_are_set() {
    let world = World::new();
    let mut dom0 = world.dom0();
    assert_eq!(value(&mut dom0, "small_bases", &[0]), DIRECT_MAP);
    assert_eq!(value(&mut dom0, "small_bases", &[1]), VMEMMAP);
    assert_eq!(value(&mut dom0, "small_bases", &[2 + 3]), percpu(3));
    assert_eq!(value(&mut dom0, "small_cpu", &[]), 0);
    assert_eq!(value(&mut dom0, "small_percpu", &[]), 41);
    assert_eq!(value(&mut dom0, "small_percpu", &[]), 42);
}

#[test]
fn addresses_have_names() {
    let world = World::new();
    let plan = &world.plan;
    let function = plan.symbol("small_wild").expect("defined");
    assert_eq!(
        plan.function_at(function),
        Some((Module::Kernel, "small_wild"))
    );
    assert_eq!(plan.function_at(function + 1), None);
    assert_eq!(plan.describe(function + 1), "small_wild+0x1 (kernel.o)");
    assert_eq!(plan.module_of(function), Some(Module::Kernel));
    let data = plan.symbol("vmemmap_base").expect("defined");
    assert_eq!(plan.function_at(data), None);
    assert!(!plan.is_code(data));
    assert_eq!(plan.describe(data + 7), "vmemmap_base+0x7 (kernel.o)");
    let calls = plan
        .symbol_in(Module::Kernel, "calls")
        .expect("a local symbol");
    assert_eq!(
        plan.section(Module::Kernel, ".bss").map(|bss| bss <= calls),
        Some(true)
    );
    assert_eq!(plan.vm_address(Module::Kernel, "vmemmap_base"), Some(data));
    assert_eq!(
        plan.vm_address(Module::Kernel, ".text"),
        plan.section(Module::Kernel, ".text")
    );
    assert_eq!(plan.symbol("calls"), None);
    assert_eq!(plan.missing(), ["nobodys"]);
    assert_eq!(plan.describe(0x1234_5678_9abc), "0x123456789abc");
}

// ---- Entering and oopses -----------------------------------------------------------

#[test]
fn functions_get_arguments_and_print() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let sum = value(&mut dom0, "small_add", &[1, 1, 1, 1, 1, 1]);
    assert_eq!(sum, 21);
    let answer = dom0.call("small_say", &[]).expect("said");
    assert_eq!(answer.console, "<6> hello\n");
}

#[test]
fn an_oops_names_the_place_and_dom0_goes_on() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let report = oops(&mut dom0, "small_wild", &[0x7000]);
    assert!(
        report.contains("page fault at 0x7000 in small_load+"),
        "{report}"
    );
    assert!(report.contains("\n  small_wild+"), "{report}");
    let report = oops(&mut dom0, "small_wild", &[1 << 63 | 1]);
    assert!(report.contains("general protection fault"), "{report}");
    let report = oops(&mut dom0, "small_nobody", &[]);
    assert!(report.contains("stub of nobodys"), "{report}");
    let report = oops(&mut dom0, "small_jump", &[0x7000]);
    assert!(
        report.contains("page fault at 0x7000 in 0x7000"),
        "{report}"
    );
    assert!(report.contains("small_jump+"), "{report}");
    let report = oops(&mut dom0, "small_overflow", &[0]);
    assert!(report.contains("small_overflow+"), "{report}");
    let error = dom0.call("small_fatal", &[]).expect_err("fatal");
    assert!(error.to_string().contains("oops: the end"), "{error}");
    assert_eq!(world.mailbox.get().counters.get(Counter::Oopses), 6);
    assert_eq!(value(&mut dom0, "small_calls", &[]), 1);
}

#[test]
fn a_warning_goes_on_and_a_bug_does_not() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let answer = dom0.call("small_warn", &[5]).expect("goes on");
    assert_eq!(answer.value, 6);
    assert!(
        answer.console.contains("WARNING in small_warn+"),
        "{}",
        answer.console
    );
    assert!(answer.console.contains("line 77"), "{}", answer.console);
    let report = oops(&mut dom0, "small_bug", &[5]);
    assert!(report.contains("BUG"), "{report}");
}

#[test]
fn kernel_code_is_not_entered_twice() {
    let world = World::new();
    let mut dom0 = world.dom0();
    assert_eq!(value(&mut dom0, "small_nested", &[]), 1);
    assert_eq!(value(&mut dom0, "small_calls", &[]), 1);
    // SAFETY: this thread is no CPU, so nothing is entered.
    let refused = unsafe { enter::enter(0, [0; 6]) };
    assert_eq!(refused, Err(EnterError::NotAttached));
}

#[test]
fn a_host_function_that_is_given_nonsense_is_an_oops() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let report = oops(&mut dom0, "small_print", &[0x7000, 64]);
    assert!(report.contains("page fault at 0x70"), "{report}");
    assert!(report.contains("small_print+"), "{report}");
    let answer = dom0.call("small_say", &[]).expect("said");
    assert_eq!(answer.console, "<6> hello\n", "the console's lock is free");
}

#[test]
fn work_runs_in_dom0() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let work = |number| Command::Work {
        number,
        arguments: [1000, 0, 0, 0, 0],
    };
    let answer = dom0.command("count up", work(COUNT_UP)).expect("counted");
    assert_eq!(answer.value, 1000);
    let at = world
        .plan
        .percpu_symbol("per_cpu_count", 2)
        .expect("percpu");
    let view = world.plan.view(&world.machine);
    assert_eq!(view.word64(at).map(|w| w.load(Ordering::Relaxed)), Some(40));
    let error = dom0.command("panic", work(PANIC)).expect_err("ended");
    let text = error.to_string();
    assert!(text.contains("ended with status 101"), "{text}");
    assert!(text.contains("on purpose"), "{text}");
}

// ---- Traps -------------------------------------------------------------------------

/// VET: a register that keeps what is written, 16 bits of it.
const VET: u64 = 0x38;
/// TDBAL: keeps all bits but the lowest four.
const TDBAL: u64 = 0x3800;
const TDBAH: u64 = 0x3804;

#[test]
fn loads_and_stores_of_every_form_reach_the_device() {
    let world = World::new();
    let mut dom0 = world.dom0();
    value(&mut dom0, "small_write32", &[TDBAL, 0x8765_43f0]);
    assert_eq!(value(&mut dom0, "small_read32", &[TDBAL]), 0x8765_43f0);
    assert_eq!(value(&mut dom0, "small_read8", &[TDBAL + 1]), 0x43);
    assert_eq!(value(&mut dom0, "small_read16", &[TDBAL + 2]), 0x8765);
    let signed = value(&mut dom0, "small_signed8", &[TDBAL + 3]);
    assert_eq!(signed as i64, i64::from(0x87u8 as i8));
    let signed = value(&mut dom0, "small_signed32", &[TDBAL]);
    assert_eq!(signed as i64, i64::from(0x8765_43f0u32 as i32));
    assert_eq!(
        value(&mut dom0, "small_high_byte", &[TDBAL + 1]),
        0x1111_1111_1111_4311
    );
    assert_eq!(
        value(&mut dom0, "small_low_byte", &[TDBAL + 1]),
        0x2222_2222_2222_2243
    );
    value(&mut dom0, "small_write16", &[TDBAL + 2, 0x1234]);
    value(&mut dom0, "small_write8", &[TDBAL + 1, 0xab]);
    assert_eq!(value(&mut dom0, "small_read32", &[TDBAL]), 0x1234_abf0);
    value(&mut dom0, "small_write_imm", &[TDBAL]);
    assert_eq!(value(&mut dom0, "small_read32", &[TDBAL]), 0x89ab_cde0);
    value(&mut dom0, "small_write64", &[TDBAL, 0x1122_3344_5566_7780]);
    assert_eq!(
        value(&mut dom0, "small_read64", &[TDBAL]),
        0x1122_3344_5566_7780
    );
    assert_eq!(value(&mut dom0, "small_read32", &[TDBAH]), 0x1122_3344);
    assert!(world.mailbox.get().counters.get(Counter::MmioTraps) > 10);
    let report = oops(&mut dom0, "small_add_memory", &[VET]);
    assert!(report.contains("small_add_memory+"), "{report}");
}

#[test]
fn ports_reach_the_device_and_other_ports_are_an_oops() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let port = u64::from(PORTS);
    value(&mut dom0, "small_out32", &[port, TDBAL]);
    value(&mut dom0, "small_out32", &[port + 4, 0x5550]);
    assert_eq!(value(&mut dom0, "small_in32", &[port + 4]), 0x5550);
    assert_eq!(value(&mut dom0, "small_read32", &[TDBAL]), 0x5550);
    let report = oops(&mut dom0, "small_in32", &[0x60]);
    assert!(report.contains("small_in32+"), "{report}");
    oops(&mut dom0, "small_in8", &[port]);
}

#[test]
fn an_open_bar_does_not_trap() {
    let world = World::new();
    let mut dom0 = world.dom0();
    dom0.command("open", Command::SetBar(BarMode::Open))
        .expect("opened");
    let before = world.mailbox.get().counters.get(Counter::MmioTraps);
    value(&mut dom0, "small_write32", &[TDBAL, 77]);
    assert_eq!(value(&mut dom0, "small_read32", &[TDBAL]), 77);
    assert_eq!(world.mailbox.get().counters.get(Counter::MmioTraps), before);
    dom0.command("close", Command::SetBar(BarMode::Trapped))
        .expect("closed");
    assert_eq!(value(&mut dom0, "small_read32", &[TDBAL]), 0);
}

// ---- A dom0 that hangs or dies -----------------------------------------------------

#[test]
fn a_hanging_dom0_is_noticed_and_a_new_one_serves() {
    let world = World::new();
    let mut dom0 = world.dom0();
    dom0.set_limits(Limits {
        time: Duration::from_millis(300),
        ..LIMITS
    });
    let error = dom0.call("small_hang", &[]).expect_err("hangs");
    assert!(
        error.to_string().contains("no answer within 300ms"),
        "{error}"
    );
    let error = dom0.call("small_calls", &[]).expect_err("busy");
    assert!(error.to_string().contains("still busy"), "{error}");
    drop(dom0);
    let mut dom0 = world.dom0();
    assert_eq!(
        value(&mut dom0, "small_calls", &[]),
        1,
        "its data is new as well"
    );
}

#[test]
fn a_dead_dom0_is_noticed_before_the_limit() {
    let world = World::new();
    let mut dom0 = world.dom0();
    dom0.set_limits(Limits {
        time: Duration::from_secs(600),
        ..LIMITS
    });
    let start = Instant::now();
    dom0.kill();
    let error = dom0.call("small_calls", &[]).expect_err("dead");
    assert!(error.to_string().contains("died of signal 9"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_dom0_that_ends_in_a_command_is_noticed() {
    let world = World::new();
    let dom0 = world.dom0();
    dom0.exit();
}

// ---- Upcalls -----------------------------------------------------------------------

/// Maps the driver stack of CPU 1, as the runtime does in the hypervisor, and
/// keeps other tests of this process from doing so at the same time.
struct DriverStack {
    _alone: std::sync::MutexGuard<'static, ()>,
}

impl DriverStack {
    fn new() -> DriverStack {
        static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
        let stack = driver_stack(1);
        // SAFETY: nothing is there: it is mapped under the lock only.
        let at = unsafe {
            libc::mmap(
                stack.start as *mut libc::c_void,
                (stack.end - stack.start) as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        assert_eq!(at as u64, stack.start);
        DriverStack { _alone: alone }
    }
}

impl Drop for DriverStack {
    fn drop(&mut self) {
        let stack = driver_stack(1);
        let length = (stack.end - stack.start) as usize;
        // SAFETY: mapped by `new`; no references into it.
        unsafe { libc::munmap(stack.start as *mut libc::c_void, length) };
    }
}

fn up(
    world: &World,
    name: &str,
    arguments: [u64; 6],
    stack: &[u64],
    window: std::ops::Range<u64>,
    limits: &Limits,
) -> Result<(u64, u64), UpcallError> {
    let upcall = Upcall {
        function: world.plan.symbol(name).expect("a function"),
        arguments,
        stack,
        window,
    };
    // SAFETY: the window is empty or in the driver stack, which the test mapped
    // and has for itself.
    unsafe { upcall::call(&world.mailbox.get().upcalls[1], &upcall, limits) }
}

#[test]
fn upcalls_pass_eight_arguments_and_two_results() {
    let world = World::new();
    let _dom0 = world.dom0();
    let plain = |name, arguments, stack: &[u64]| {
        up(&world, name, arguments, stack, 0..0, &LIMITS).expect("an answer")
    };
    let (sum, _) = plain("small_add", [1, 2, 3, 4, 5, 6], &[7, 8]);
    assert_eq!(sum, (1..=8).map(|i| i * i).sum());
    assert_eq!(plain("small_pair", [3, 4, 0, 0, 0, 0], &[]), (3, 4));
    assert_eq!(plain("small_cpu", [0; 6], &[]).0, 1, "they run as CPU 1");
    assert_eq!(world.mailbox.get().counters.get(Counter::Upcalls), 3);
}

#[test]
fn a_variable_on_the_drivers_stack_goes_by_reference() {
    let world = World::new();
    let stack = DriverStack::new();
    let mut parent = world.dom0();
    let range = driver_stack(1);
    let at = range.end - 64;
    // SAFETY: in the mapped driver stack.
    unsafe { (at as *mut u64).write(1234) };
    let call = |window| {
        let arguments = [at, 5678, 0, 0, 0, 0];
        up(
            &world,
            "small_by_reference",
            arguments,
            &[],
            window,
            &LIMITS,
        )
    };
    let (old, _) = call(range.end - 128..range.end).expect("an answer");
    assert_eq!(old, 1234);
    // SAFETY: as above.
    assert_eq!(unsafe { (at as *const u64).read() }, 5678);
    assert_eq!(
        value(&mut parent, "small_calls", &[]),
        1,
        "commands go on beside it"
    );
    // Only the CPU's own driver stack may cross.
    let mut mine = [0u64; 2];
    let low = mine.as_mut_ptr() as u64;
    match call(low..low + 16) {
        Err(UpcallError::Failed(Failure::Window)) => {}
        other => panic!("{other:?}"),
    }
    drop(stack);
}

#[test]
fn an_upcall_that_oopses_hangs_or_finds_dom0_dead_is_an_error() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let short = Limits {
        time: Duration::from_millis(300),
        ..LIMITS
    };
    let call = |name, limits: &Limits| up(&world, name, [0x7000; 6], &[], 0..0, limits);
    match call("small_wild", &LIMITS) {
        Err(UpcallError::Oops(oops)) => assert_eq!(oops.address, 0x7000),
        other => panic!("{other:?}"),
    }
    assert!(call("small_calls", &LIMITS).is_ok(), "it serves on");
    match call("small_hang", &short) {
        Err(UpcallError::NoAnswer(NoAnswer::Timeout(_))) => {}
        other => panic!("{other:?}"),
    }
    match call("small_calls", &short) {
        Err(UpcallError::NoAnswer(NoAnswer::Busy)) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(value(&mut dom0, "small_calls", &[]), 2, "CPU 0 goes on");
    dom0.kill();
    match call("small_calls", &LIMITS) {
        Err(UpcallError::NoAnswer(NoAnswer::Dead)) => {}
        other => panic!("{other:?}"),
    }
}

// ---- What processes share ----------------------------------------------------------

#[test]
fn a_process_that_dies_with_the_device_leaves_it_to_others() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let mailbox = world.mailbox.get();
    value(&mut dom0, "small_write32", &[TDBAL, 0x7770]);
    let mut hypervisor = process::fork(|| {
        std::mem::forget(mailbox.device());
        0
    })
    .expect("fork");
    hypervisor.wait();
    assert_eq!(value(&mut dom0, "small_read32", &[TDBAL]), 0x7770);
    assert_eq!(mailbox.counters.get(Counter::LocksFromTheDead), 1);
}

#[test]
fn several_cpus_call_while_commands_run() {
    const CALLS: u64 = 3000;
    let world = World::new();
    let mut dom0 = world.dom0();
    let call = |cpu: usize| {
        let upcall = Upcall {
            function: world.plan.symbol("small_percpu").expect("a function"),
            arguments: [0; 6],
            stack: &[],
            window: 0..0,
        };
        for count in 1..=CALLS {
            let slot = &world.mailbox.get().upcalls[cpu];
            // SAFETY: there is no window.
            let (value, _) = unsafe { upcall::call(slot, &upcall, &LIMITS) }.expect("an answer");
            assert_eq!(value, 40 + count, "each CPU has its own count");
        }
    };
    std::thread::scope(|scope| {
        for cpu in 1..CPUS {
            scope.spawn(move || call(cpu));
        }
        for count in 1..=CALLS {
            assert_eq!(value(&mut dom0, "small_percpu", &[]), 40 + count);
        }
    });
    let upcalls = world.mailbox.get().counters.get(Counter::Upcalls);
    assert_eq!(upcalls, (CPUS as u64 - 1) * CALLS);
}
