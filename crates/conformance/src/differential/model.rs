//! A deterministic model of the imported routines, the same for both workers.
//!
//! Takes the registers of a call, records the meaningful arguments, performs
//! the effect on dom0's memory and gives the result, a function of the run's
//! seed, the call's index and the routine. Memory is reached through the shared
//! file wherever dom0's addresses are, so nothing here depends on the worker.

use process_lab::address_space::{AddressSpace, RegionAccess, STACK};
use process_lab::imports::{Effect, IMPORTS, Import, Returns};
use process_lab::random::{Random, seed};
use process_lab::shared::Shared;

use crate::differential::trace::{
    Channel, Ending, Event, MAX_ARGUMENTS, MAX_EVENTS, Request, RunOutcome, number,
};

/// The largest effect that is performed; a larger one ends the run.
const LONGEST: u64 = 0x10000;

/// The registers and stack of a call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Number of the import.
    pub number: u32,
    /// `rdi rsi rdx rcx r8 r9`.
    pub registers: [u64; 6],
    /// Address of the seventh argument.
    pub stack: u64,
    /// Return address.
    pub site: u64,
}

/// What a call returns to the driver.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Whether registers that a call may destroy are overwritten at all.
    pub clobbers: bool,
    /// `rax`.
    pub result: u64,
    /// Garbage for `rdi rsi rdx rcx r8 r9`.
    pub garbage: [u64; 6],
}

/// One run's recorder.
pub struct Recorder<'w> {
    space: &'w AddressSpace,
    memory: &'w mut Shared,
    channel: &'w mut Channel,
    request: Request,
    events: usize,
    /// Set when the run is to end.
    ended: Option<RunOutcome>,
    data_stack: u64,
}

impl<'w> Recorder<'w> {
    /// A recorder for a run of `request`.
    pub fn new(
        space: &'w AddressSpace,
        memory: &'w mut Shared,
        channel: &'w mut Channel,
        request: Request,
    ) -> Recorder<'w> {
        Recorder {
            space,
            memory,
            channel,
            request,
            events: 0,
            ended: None,
            data_stack: 0,
        }
    }

    /// The same with the driver's data on a second stack, so many bytes above that of
    /// return addresses.
    pub fn with_data_stack(self, data_stack: u64) -> Recorder<'w> {
        Recorder { data_stack, ..self }
    }

    /// Where [`Recorder::with_data_stack`] says the data is.
    pub fn data_stack(&self) -> u64 {
        self.data_stack
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events as u64
    }

    /// How the model ended the run, if it did.
    pub fn ended(&self) -> Option<RunOutcome> {
        self.ended
    }

    fn end(&mut self, ending: Ending, address: u64, site: u64) {
        self.ended = Some(RunOutcome {
            ending: ending as u64,
            address,
            rip: site,
            after: 1,
            ..RunOutcome::default()
        });
    }

    /// Whether the run has used up its budget of events.
    fn is_spent(&self) -> bool {
        self.events as u64 >= self.request.call_budget.min(MAX_EVENTS as u64)
    }

    fn record(&mut self, number: u64, site: u64, arguments: &[u64]) {
        if !self.is_spent() {
            let mut event = Event {
                number,
                site,
                count: arguments.len() as u64,
                ..Event::default()
            };
            event.arguments[..arguments.len()].copy_from_slice(arguments);
            self.channel.set_event(self.events, &event);
            self.events += 1;
        }
    }

    /// The driver met a WARN; `site` is the address after it.
    pub fn warn(&mut self, site: u64) {
        self.record(number::WARN, site, &[]);
    }

    /// The driver reads a port: what it reads.
    pub fn port_in(&mut self, port: u64, size: u64) -> u32 {
        self.record(number::PORT_IN, 0, &[port, size]);
        self.random(number::PORT_IN).word() as u32
    }

    /// The driver writes a port.
    pub fn port_out(&mut self, port: u64, size: u64, value: u64) {
        self.record(number::PORT_OUT, 0, &[port, size, value]);
    }

    /// The driver calls an import. `None` if the run ends here.
    pub fn call(&mut self, call: &Call) -> Option<Answer> {
        let import = &IMPORTS[call.number as usize];
        let arguments = self.arguments(import, call);
        // Only calls can end a run, so only they look at the budget.
        if self.is_spent() {
            self.end(Ending::CallBudget, 0, call.site);
            return None;
        }
        // The rewritten program reaches a routine that keeps every register through a
        // stub that calls it, so the return address is the stub's: not to be compared.
        let site = if import.returns == Returns::KeepsAll {
            0
        } else {
            call.site
        };
        self.record(u64::from(call.number), site, &arguments);
        let mut random = self.random(u64::from(call.number));
        let computed = match self.perform(import, &arguments, &mut random) {
            Ok(computed) => computed,
            Err(address) => {
                self.end(Ending::BadArgument, address, call.site);
                return None;
            }
        };
        if import.returns == Returns::Never {
            self.end(Ending::Stopped, u64::from(call.number), call.site);
            return None;
        }
        let result = self.result(import.returns, computed, &mut random);
        let garbage = std::array::from_fn(|_| random.word());
        Some(Answer {
            clobbers: import.returns != Returns::KeepsAll,
            result,
            garbage,
        })
    }

    fn random(&self, number: u64) -> Random {
        Random::new(seed(
            "import",
            self.request.seed ^ number << 20 ^ self.events as u64,
        ))
    }

    // ---- Arguments ---------------------------------------------------------

    fn argument(&self, call: &Call, index: usize) -> u64 {
        match call.registers.get(index) {
            Some(value) => *value,
            None => self.word(call.stack + 8 * (index as u64 - 6)).unwrap_or(0),
        }
    }

    fn arguments(&self, import: &Import, call: &Call) -> Vec<u64> {
        let mut values = Vec::with_capacity(MAX_ARGUMENTS);
        for letter in import.arguments.bytes() {
            let value = cut(self.argument(call, values.len()), letter);
            values.push(value);
            if letter == b'f' {
                for width in self.conversions(value) {
                    if values.len() < MAX_ARGUMENTS {
                        values.push(cut(self.argument(call, values.len()), width));
                    }
                }
            }
        }
        values
    }

    /// The widths of a format's arguments.
    fn conversions(&self, format: u64) -> Vec<u8> {
        let mut widths = Vec::new();
        let text = self.string(format, 512);
        let mut rest = text.as_slice();
        while let Some(at) = rest.iter().position(|b| *b == b'%') {
            rest = &rest[at + 1..];
            let mut width = b'u';
            while let Some((letter, tail)) = rest.split_first() {
                rest = tail;
                match letter {
                    b'%' => break,
                    b'*' => widths.push(b'u'),
                    b'l' | b'z' | b'j' | b't' => width = b'l',
                    b'p' | b's' => {
                        widths.push(b'p');
                        break;
                    }
                    letter if letter.is_ascii_alphabetic() && *letter != b'h' => {
                        widths.push(width);
                        break;
                    }
                    _ => {}
                }
            }
        }
        widths
    }

    // ---- Memory ------------------------------------------------------------

    fn byte(&self, address: u64) -> Option<u8> {
        let mut byte = [0];
        self.read(address, &mut byte).then_some(byte[0])
    }

    fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)
            .then(|| u64::from_le_bytes(bytes))
    }

    /// The terminated string at `address`, at most `limit` bytes of it.
    fn string(&self, address: u64, limit: u64) -> Vec<u8> {
        let bytes = (0..limit).map_while(|i| self.byte(address.wrapping_add(i)));
        bytes.take_while(|b| *b != 0).collect()
    }

    /// The place of `length` bytes at a stack address, if all are on the stack.
    fn on_stack(&self, address: u64, length: u64) -> Option<*mut u8> {
        let (low, high) = STACK;
        let inside = address >= low && address < high && length <= high - address;
        let data = address.wrapping_add(self.data_stack) as usize;
        inside.then(|| std::ptr::with_exposed_provenance_mut(data))
    }

    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        if let Some(at) = self.on_stack(address, into.len() as u64) {
            // SAFETY: inside the driver stack, which this process has mapped
            // and no code runs on: the driver waits for this call.
            unsafe { std::ptr::copy_nonoverlapping(at, into.as_mut_ptr(), into.len()) };
            return true;
        }
        let Some((offset, _)) = self.space.offset(address, into.len() as u64) else {
            return false;
        };
        self.memory.read(offset, into);
        true
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> bool {
        if let Some(at) = self.on_stack(address, bytes.len() as u64) {
            // SAFETY: as for `read`; the driver expects its variables there to
            // be written through the pointer that it passed.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
            return true;
        }
        match self.space.offset(address, bytes.len() as u64) {
            Some((offset, RegionAccess::Writable)) => {
                self.memory.write(offset, bytes);
                true
            }
            _ => false,
        }
    }

    fn get(&self, address: u64, length: u64) -> Result<Vec<u8>, u64> {
        if length > LONGEST {
            return Err(address);
        }
        let mut bytes = vec![0; length as usize];
        if length == 0 || self.read(address, &mut bytes) {
            Ok(bytes)
        } else {
            Err(address)
        }
    }

    fn put(&mut self, address: u64, bytes: &[u8]) -> Result<(), u64> {
        if bytes.is_empty() || self.write(address, bytes) {
            Ok(())
        } else {
            Err(address)
        }
    }

    // ---- Effects and results -----------------------------------------------

    /// Performs the effect. Gives the computed result, or the address that is not
    /// mapped.
    fn perform(&mut self, import: &Import, a: &[u64], random: &mut Random) -> Result<u64, u64> {
        match import.effect {
            Effect::Nothing => Ok(0),
            Effect::Device => self.device(random),
            Effect::Copy => {
                let bytes = self.get(a[1], a[2])?;
                self.put(a[0], &bytes).map(|()| a[0])
            }
            Effect::Set => {
                if a[2] > LONGEST {
                    return Err(a[0]);
                }
                self.put(a[0], &vec![a[1] as u8; a[2] as usize])
                    .map(|()| a[0])
            }
            Effect::CopyPadded => {
                let mut bytes = self.string(a[1], a[2].min(LONGEST));
                bytes.resize(a[2].min(LONGEST) as usize, 0);
                self.put(a[0], &bytes).map(|()| a[0])
            }
            Effect::CopyString => {
                let mut bytes = self.string(a[1], a[2].min(LONGEST).saturating_sub(1));
                bytes.push(0);
                self.put(a[0], &bytes).map(|()| bytes.len() as u64 - 1)
            }
            Effect::StringLength => Ok(self.string(a[0], a[1].min(LONGEST)).len() as u64),
            Effect::FindByte => {
                let text = self.string(a[0], LONGEST);
                Ok(text
                    .iter()
                    .position(|b| *b == a[1] as u8)
                    .map_or(0, |i| a[0] + i as u64))
            }
            Effect::NextBit => {
                let limit = a[1].min(8 * LONGEST);
                for bit in a[2]..limit {
                    let byte = self.byte(a[0].wrapping_add(bit / 8)).ok_or(a[0])?;
                    if byte >> (bit % 8) & 1 == 1 {
                        return Ok(bit);
                    }
                }
                Ok(a[1])
            }
            Effect::Fill { pointer, bytes } => self.fill(a[pointer], bytes, random),
            Effect::FillCount {
                pointer,
                count,
                unit,
            } => self.fill(a[pointer], a[count].saturating_mul(unit), random),
        }
    }

    /// Registers that drivers poll: sometimes other bits, and often those that say
    /// that the device is ready.
    fn device(&mut self, random: &mut Random) -> Result<u64, u64> {
        const CTRL: u64 = 0;
        const STATUS: u64 = 8;
        const EECD: u64 = 0x10;
        const EERD: u64 = 0x14;
        const MDIC: u64 = 0x20;
        const ICR: u64 = 0xc0;
        const MDIC_READY: u32 = 1 << 28;
        const MDIC_ERROR: u32 = 1 << 30;
        const EERD_DONE: u32 = 1 << 4;
        const EECD_GRANT: u32 = 1 << 7;
        for (register, ready) in [
            (CTRL, 0),
            (STATUS, 2),
            (EECD, EECD_GRANT),
            (EERD, EERD_DONE),
            (MDIC, MDIC_READY),
            (ICR, 0),
        ] {
            let mut value = random.word() as u32;
            if !random.one_in(4) {
                value = (value | ready)
                    & if register == MDIC {
                        !MDIC_ERROR
                    } else {
                        u32::MAX
                    };
            }
            let address = self.request.mmio + register;
            self.write(address, &value.to_le_bytes());
        }
        Ok(0)
    }

    fn fill(&mut self, address: u64, length: u64, random: &mut Random) -> Result<u64, u64> {
        if length > LONGEST {
            return Err(address);
        }
        let bytes: Vec<u8> = (0..length).map(|_| random.word() as u8).collect();
        self.put(address, &bytes).map(|()| 0)
    }

    fn result(&self, returns: Returns, computed: u64, random: &mut Random) -> u64 {
        let garbage = random.word();
        let upper = |bits: u32, value: u64| garbage << bits | value;
        let or_null = |random: &mut Random, value: u64| if random.one_in(12) { 0 } else { value };
        match returns {
            Returns::Void | Returns::Never | Returns::KeepsAll => garbage,
            Returns::Bool => upper(8, random.below(2)),
            Returns::Errno if random.one_in(12) => upper(32, (-12i32) as u32 as u64),
            Returns::Errno | Returns::Zero => upper(32, 0),
            Returns::Small(bound) => upper(32, random.below(bound)),
            Returns::Half => upper(16, random.below(1 << 16)),
            Returns::Word => random.word(),
            Returns::Dma if random.one_in(12) => u64::MAX,
            Returns::Dma => random.below(1 << 36),
            Returns::Page => {
                let value = self.request.arena.0 + random.below(16) * 64;
                or_null(random, value)
            }
            Returns::Memory => {
                let (start, end) = self.request.arena;
                let value = start + random.below((end - start) / 64) * 64;
                or_null(random, value)
            }
            Returns::Skb => {
                let value = self.request.skbs[random.below(4) as usize];
                or_null(random, value)
            }
            Returns::Netdev => or_null(random, self.request.netdev),
            Returns::Mmio => or_null(random, self.request.mmio),
            Returns::Computed => computed,
        }
    }
}

/// The part of a register that is the argument.
fn cut(value: u64, letter: u8) -> u64 {
    match letter {
        b'u' => value & 0xffff_ffff,
        b'h' => value & 0xffff,
        b'b' => value & 0xff,
        _ => value,
    }
}
