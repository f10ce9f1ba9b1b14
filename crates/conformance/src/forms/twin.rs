//! The rewritten code on the runtime, with dom0's memory in windows only, or,
//! to make the table the identity, at dom0's addresses too.

use std::ffi::c_void;

use process_lab::address_space::{PAGE, STACK, STACK_BLOCK};
use process_lab::code_memory;
use process_lab::error::Error;
use process_lab::program::{NO_VIEW, STLB, Scheme, WINDOW, map_constants};
use process_lab::random::Random;
use process_lab::runtime::{self, Config, Cpu, Host, Instance, Region, Testbed};
use process_lab::shared::Shared;

use super::campaign::Execution;
use super::copies;
use super::enter::{self, Block};
use super::image::Rewritten;
use super::memory::{ALIASES, DATA, Memory, READ_ONLY, pieces};
use super::native::fault;
use super::ports;
use super::process::Machine;
use super::record::{Ending, Record};
use super::state::{GS_BASE, State, Table};

unsafe extern "C" {
    fn twin_flush(instance: *mut Instance, patience: u64) -> i32;
    fn twin_translate(instance: *mut Instance, va: u64, mapped: *mut u64) -> i32;
}

/// The rewritten process's machine.
pub struct Twin<'r> {
    program: &'r Rewritten<'r>,
    block: Block,
    cpu: *mut Cpu,
    testbed: *mut Testbed,
    fd: i32,
    pages: u64,
    identity: bool,
    /// Whether it has a table; if not, it has a window.
    has_table: bool,
    /// The pages of the data stack.
    data_stack: Shared,
    table: Option<Table>,
}

impl<'r> Twin<'r> {
    /// Loads the rewritten code. For a process that does nothing else.
    pub fn new(
        program: &'r Rewritten<'r>,
        memory: &Memory,
        execution: Execution,
    ) -> Result<Twin<'r>, Error> {
        if execution.identity {
            memory.map_at_dom0()?;
        }
        let has_table = Scheme::TABLES.contains(&program.variant.scheme);
        map_constants(program.variant.scheme, execution.dom0)
            .map_err(Error::system("mapping memory for forms"))?;
        let data_stack = Shared::new(STACK.1 - STACK.0);
        let data_stack = data_stack.map_err(Error::system("making a data stack"))?;
        // SAFETY: once in this process, on its only thread; nothing is at the
        // block's address.
        let cpu = unsafe {
            if runtime::twin_testbed_faults_start() != 0
                || runtime::twin_testbed_thread_start() != 0
            {
                return Err(Error::last("catching faults"));
            }
            runtime::twin_testbed_block_create(STACK_BLOCK)
        };
        if cpu.is_null() {
            return Err(Error::last("making a stack block"));
        }
        let (start, end) = program.image.span();
        let mut code = program.image.bytes.clone();
        copies::replay(execution.copies, start, &mut code[..program.instructions])?;
        code_memory::load(start, end, &[(start, &code)])
            .map_err(Error::system("mapping memory for forms"))?;
        let mut twin = Twin {
            program,
            block: Block::new()?,
            cpu,
            testbed: std::ptr::null_mut(),
            fd: memory.fd(),
            pages: memory.pages(),
            identity: execution.identity,
            has_table,
            data_stack,
            table: None,
        };
        twin.renew();
        Ok(twin)
    }

    /// A new instance; the previous one, if any, is dead.
    fn renew(&mut self) {
        let host = Host {
            data: std::ptr::null_mut(),
            resolve_upcall: None,
            import: None,
            port_in: Some(ports::port_in),
            port_out: Some(ports::port_out),
            warn: None,
        };
        let config = Config {
            scheme: self.program.variant.scheme as u32,
            windows: 2 * self.pages as u32 + 8,
            regions: 8,
            port_count: ports::ALL.len() as u32,
            vector_free: 0,
            gs_is_set: 0,
            ports: ports::ALL.as_ptr(),
            stlb: match self.has_table {
                true => STLB as *mut c_void,
                false => std::ptr::null_mut(),
            },
            window: WINDOW,
            stack_view: NO_VIEW,
            host,
        };
        // SAFETY: the former instance does not run; the table is mapped here;
        // the rest of the configuration is copied.
        unsafe {
            if !self.testbed.is_null() {
                runtime::twin_testbed_destroy(self.testbed);
            }
            self.testbed = runtime::twin_testbed_create(&config);
        }
        assert!(!self.testbed.is_null(), "no instance");
        self.furnish();
        if self.identity && self.has_table {
            self.fill_identity();
        }
        self.table = None;
    }

    fn instance(&self) -> *mut Instance {
        // SAFETY: `testbed` is an instance from `renew` on.
        unsafe { runtime::twin_testbed_instance(self.testbed) }
    }

    /// Registers dom0's memory, the codemap and the code with the new instance.
    fn furnish(&self) {
        let (start, end) = self.program.image.span();
        let codemap = self.program.entries.codemap();
        // SAFETY: the instance does not run; the codemap outlives it.
        unsafe {
            for piece in pieces(self.pages) {
                let region = Region {
                    dom0_start: piece.start,
                    length: piece.length,
                    file_offset: piece.offset,
                    fd: self.fd,
                    writable: u32::from(piece.writable),
                };
                let added = runtime::twin_testbed_add_region(self.testbed, &region);
                assert_eq!(added, runtime::OK, "a region");
            }
            if !self.has_table {
                let fd = self.data_stack.fd();
                let added = runtime::twin_testbed_add_stack(self.testbed, self.cpu, fd, 0);
                assert_eq!(added, runtime::OK, "a data stack");
            }
            let (instance, count) = (self.instance(), codemap.len() as u64);
            let set = runtime::twin_instance_set_codemap(instance, codemap.as_ptr(), count);
            assert_eq!(set, runtime::OK, "the codemap");
            let added = runtime::twin_instance_add_text(instance, start, end);
            assert_eq!(added, runtime::OK, "text");
        }
    }

    /// Entries that translate each page to itself, where it is mapped.
    fn fill_identity(&self) {
        let data = (0..self.pages).map(|n| DATA + n * PAGE);
        for page in data.chain([READ_ONLY]) {
            let offset = page >> twin_abi::stlb::INDEX_SHIFT & twin_abi::stlb::INDEX_MASK;
            let translation = self.program.variant.scheme.xlate(page, page);
            let translation = translation.expect("a scheme with a table");
            // SAFETY: inside the table, which no code reads now.
            unsafe {
                let entry = (STLB + offset) as *mut u64;
                entry.add(1).write(translation);
                entry.write(page);
            }
        }
    }

    fn prepare(&mut self, state: &State) {
        if self.identity
            || !self.has_table
            || (self.table == Some(state.table) && state.table != Table::Cold)
        {
            return;
        }
        let mut pages: Vec<u64> = match state.table {
            Table::Cold => Vec::new(),
            Table::Warm | Table::Shuffled => (0..self.pages).map(|n| DATA + n * PAGE).collect(),
            Table::Colliding => (0..self.pages).map(|n| ALIASES + n * PAGE).collect(),
        };
        if state.table == Table::Shuffled {
            let mut random = Random::new(state.order);
            for n in (1..pages.len()).rev() {
                pages.swap(n, random.below(n as u64 + 1) as usize);
            }
        }
        let instance = self.instance();
        let mut mapped = 0;
        // SAFETY: the instance lives and no CPU is inside.
        unsafe {
            assert_eq!(twin_flush(instance, 1), runtime::OK, "a flush");
            for page in pages {
                let translated = twin_translate(instance, page, &mut mapped);
                assert_eq!(translated, runtime::OK, "a page");
            }
        }
        self.table = Some(state.table);
    }

    fn aborted(&self) -> Record {
        // SAFETY: the report stays as long as the instance.
        let report = unsafe { runtime::twin_instance_report(self.instance()).as_ref() };
        let Some(report) = report else {
            return Record::ended(Ending::Aborted);
        };
        let place = |rip| self.program.original(rip).unwrap_or(u64::MAX);
        let top = report.address as i64 >> 47;
        match report.kind {
            runtime::ABORT_ACCESS if top != 0 && top != -1 => fault(13, 0, place(report.rip - 1)),
            runtime::ABORT_ACCESS => fault(14, report.address, place(report.rip - 1)),
            runtime::ABORT_FAULT => fault(report.reason.into(), report.address, place(report.rip)),
            runtime::ABORT_RETURN => Record {
                trap: report.kind.into(),
                address: report.address,
                place: place(report.rip - 1),
                ..Record::ended(Ending::Aborted)
            },
            kind => Record {
                trap: kind.into(),
                address: report.address,
                ..Record::ended(Ending::Aborted)
            },
        }
    }
}

impl Machine for Twin<'_> {
    fn run(&mut self, name: &str, state: &State, _uses_fs: bool) -> Record {
        let Some(entry) = self.program.entries.function(name) else {
            return Record::ended(Ending::None);
        };
        self.prepare(state);
        self.block.load(state, entry, false);
        // SAFETY: the instance is alive, the stack block is ours, and the
        // trampoline calls a function of the rewritten code.
        let status = unsafe {
            (*self.cpu).gs_base = GS_BASE;
            (*self.cpu).fs_base = state.fs_base;
            let (instance, result) = (self.instance(), &mut 0);
            runtime::twin_enter(self.cpu, instance, enter::trampoline(), &[0; 6], result)
        };
        if status == runtime::OK {
            return Record::ended(Ending::Returned);
        }
        enter::reset();
        let record = self.aborted();
        self.renew();
        record
    }

    fn block(&self) -> &Block {
        &self.block
    }

    fn data_stack(&self) -> u64 {
        match self.has_table {
            true => 0,
            // The stack is below 4 GiB.
            false => WINDOW,
        }
    }
}
