//! Random assembly: what compilers do not write, in one function that computes the same on every
//! machine of the tests.
//!
//! Its steps are [`STEPS`]: each `$x` in them is replaced by something random.
//!
//! ```text
//! $s $w      the suffix of a width, of one that is not a byte
//! $r $x      a register of that width that may be written, that is read
//! $1 $4 $8   a register to write, of so many bytes; $q another one of eight
//! $m         a place in memory                 $n   a register with a small number
//! $i $k      an immediate, a count             $c   a condition that is defined
//! $o         add, sub, and, or, xor            $v   an xmm register
//! $a         a place for a string              $B   more steps
//! $L         a label                           $d   a distance
//! ```
//!
//! Pointers, small numbers and counters have registers of their own, which no other step writes:
//! so no access leaves [`SYMBOL`]'s memory, the far pages or the frame. Flags are read only where
//! processors define them. At the end all registers and the carry are in `rax`.

use process_lab::address_space::PAGE;
use process_lab::random::{Random, seed};

use super::memory::FAR_PAGES;
use super::object::SYMBOL;
use super::programs::PAGES;

pub use super::memory::{DATA, FAR};

/// Bytes of the frame that are accessed.
const FRAME: u64 = 0x200;
/// Bytes of a pointer's surroundings that nothing is aimed at: for indices and wide operands.
const MARGIN: u64 = 0x840;
/// What a small number is below.
const SMALL: u64 = 0x100;

const CARRY: u8 = 1;
const PARITY: u8 = 2;
const ZERO: u8 = 4;
const SIGN: u8 = 8;
const OVERFLOW: u8 = 16;
const NONE: u8 = 0;
const ALL: u8 = CARRY | PARITY | ZERO | SIGN | OVERFLOW;
const BUT_CARRY: u8 = ALL & !CARRY;
const BUT_OVERFLOW: u8 = ALL & !OVERFLOW;

const CONDITIONS: [(&str, u8); 16] = [
    ("o", OVERFLOW),
    ("no", OVERFLOW),
    ("b", CARRY),
    ("ae", CARRY),
    ("e", ZERO),
    ("ne", ZERO),
    ("be", CARRY | ZERO),
    ("a", CARRY | ZERO),
    ("s", SIGN),
    ("ns", SIGN),
    ("p", PARITY),
    ("np", PARITY),
    ("l", SIGN | OVERFLOW),
    ("ge", SIGN | OVERFLOW),
    ("le", ZERO | SIGN | OVERFLOW),
    ("g", ZERO | SIGN | OVERFLOW),
];

/// A step: its text, the flags that it reads, that it makes undefined, and that it defines.
type Step = (&'static str, u8, u8, u8);

const STEPS: [Step; 96] = [
    ("mov$s $m,$r", NONE, NONE, NONE),
    ("mov$s $m,$r", NONE, NONE, NONE),
    ("mov$s $x,$m", NONE, NONE, NONE),
    ("mov$s $x,$m", NONE, NONE, NONE),
    ("mov$s $i,$m", NONE, NONE, NONE),
    ("movzbl $m,$4", NONE, NONE, NONE),
    ("movsbq $m,$8", NONE, NONE, NONE),
    ("movzwl $m,$4", NONE, NONE, NONE),
    ("movswq $m,$8", NONE, NONE, NONE),
    ("movslq $m,$8", NONE, NONE, NONE),
    ("movb $m,%ah", NONE, NONE, NONE),
    ("movb %ch,$m", NONE, NONE, NONE),
    ("lea $d($8,$q,4),$8", NONE, NONE, NONE),
    ("$o$s $m,$r", NONE, NONE, ALL),
    ("$o$s $m,$r", NONE, NONE, ALL),
    ("$o$s $x,$m", NONE, NONE, ALL),
    ("$o$s $x,$m", NONE, NONE, ALL),
    ("$o$s $i,$m", NONE, NONE, ALL),
    ("lock $o$s $x,$m", NONE, NONE, ALL),
    ("$o$s $x,$r", NONE, NONE, ALL),
    ("$o$s $i,$r", NONE, NONE, ALL),
    ("cmp$s $i,$m", NONE, NONE, ALL),
    ("cmp$s $m,$x", NONE, NONE, ALL),
    ("cmp$s $x,$m", NONE, NONE, ALL),
    ("test$s $x,$m", NONE, NONE, ALL),
    ("adc$s $m,$r", CARRY, NONE, ALL),
    ("sbb$s $x,$m", CARRY, NONE, ALL),
    ("adc$s $i,$m", CARRY, NONE, ALL),
    ("sbb$s $x,$r", CARRY, NONE, ALL),
    ("inc$s $m", NONE, NONE, BUT_CARRY),
    ("dec$s $m", NONE, NONE, BUT_CARRY),
    ("neg$s $m", NONE, NONE, ALL),
    ("not$s $m", NONE, NONE, NONE),
    ("inc$s $r", NONE, NONE, BUT_CARRY),
    ("stc", NONE, NONE, CARRY),
    ("clc", NONE, NONE, CARRY),
    ("cmc", CARRY, NONE, CARRY),
    ("shl$s $$1,$m", NONE, NONE, ALL),
    ("shr$s $$3,$m", NONE, OVERFLOW, BUT_OVERFLOW),
    ("sar$s %cl,$m", NONE, CARRY | OVERFLOW, NONE),
    ("rol$s $$1,$m", NONE, NONE, CARRY | OVERFLOW),
    ("ror$s $$5,$m", NONE, OVERFLOW, CARRY),
    ("rol$s %cl,$m", NONE, CARRY | OVERFLOW, NONE),
    ("rcl$s $$1,$m", CARRY, NONE, CARRY | OVERFLOW),
    ("rcr$s $$2,$r", CARRY, OVERFLOW, CARRY),
    ("shldq $$7,$8,$m", NONE, OVERFLOW, BUT_OVERFLOW),
    ("shrdl %cl,$4,$m", NONE, CARRY | OVERFLOW, NONE),
    ("set$c $m", NONE, NONE, NONE),
    ("set$c $m", NONE, NONE, NONE),
    ("set$c $1", NONE, NONE, NONE),
    ("cmov$c$w $m,$r", NONE, NONE, NONE),
    ("cmov$c$w $m,$r", NONE, NONE, NONE),
    ("cmov$c$w $x,$r", NONE, NONE, NONE),
    ("imul$w $m,$r", NONE, ALL, CARRY | OVERFLOW),
    ("imul$w $i,$m,$r", NONE, ALL, CARRY | OVERFLOW),
    ("mul$s $m", NONE, ALL, CARRY | OVERFLOW),
    ("bt$w $$11,$m", NONE, ALL & !ZERO, CARRY),
    ("bts$w $$3,$m", NONE, ALL & !ZERO, CARRY),
    ("btc$w $n,$m", NONE, ALL & !ZERO, CARRY),
    ("bsf$w $m,$r; mov $x,$r", NONE, ALL, ZERO),
    ("xchg$s $r,$m", NONE, NONE, NONE),
    ("xadd$s $r,$m", NONE, NONE, ALL),
    ("lock xadd$s $r,$m", NONE, NONE, ALL),
    ("cmpxchg$s $x,$m", NONE, NONE, ALL),
    ("cmpxchg8b $m", NONE, NONE, ZERO),
    ("pushq $m; popq $8", NONE, NONE, NONE),
    ("push $8; popq $m", NONE, NONE, NONE),
    ("push $8; $B; pop $8", NONE, NONE, NONE),
    ("lahf; and $$0xc5,%ah", BUT_OVERFLOW, NONE, ALL),
    ("sahf", NONE, NONE, BUT_OVERFLOW),
    // The number is small again before anything else can use it.
    ("movl $m,$N; and $$0xff,$N", NONE, NONE, ALL),
    ("movzbl $m,$N", NONE, NONE, NONE),
    (
        "lea $a,%rsi; lea $a,%rdi; mov $k,%ecx; rep movs$s",
        NONE,
        NONE,
        NONE,
    ),
    (
        "lea $a,%rsi; lea 5(%rsi),%rdi; mov $k,%ecx; rep movsb",
        NONE,
        NONE,
        NONE,
    ),
    ("lea $a,%rsi; lea $a,%rdi; movs$s", NONE, NONE, NONE),
    ("lea $a,%rdi; mov $k,%ecx; rep stos$s", NONE, NONE, NONE),
    ("lea $a,%rdi; stos$s; mov %rdi,$m", NONE, NONE, NONE),
    ("lea $a,%rsi; lods$s", NONE, NONE, NONE),
    (
        "lea $a,%rdi; mov $k,%ecx; cmp %ecx,%ecx; repne scas$s",
        NONE,
        NONE,
        ALL,
    ),
    (
        "lea $a,%rdi; lea $a,%rsi; mov $k,%ecx; cmp %eax,%ecx; repe cmps$s",
        NONE,
        NONE,
        ALL,
    ),
    (
        "lea $a,%rdi; mov $k,%ecx; std; rep stos$s; cld",
        NONE,
        NONE,
        NONE,
    ),
    (
        "lea $a,%rdi; lea $a,%rsi; mov $k,%ecx; std; rep movs$s; cld",
        NONE,
        NONE,
        NONE,
    ),
    ("movdqu $m,$v", NONE, NONE, NONE),
    ("movups $v,$m", NONE, NONE, NONE),
    ("movq $m,$v", NONE, NONE, NONE),
    ("movd $v,$m", NONE, NONE, NONE),
    ("movhps $m,$v", NONE, NONE, NONE),
    ("movlpd $v,$m", NONE, NONE, NONE),
    ("pinsrw $$3,$m,$v", NONE, NONE, NONE),
    ("cvtsi2sdq $m,$v", NONE, NONE, NONE),
    ("ucomisd $m,$v", NONE, NONE, ALL),
    ("paddd $v,$v; movq $v,$8", NONE, NONE, NONE),
    ("j$c .L$L; $B; .L$L:", NONE, NONE, NONE),
    ("j$c .L$L; $B; .L$L:", NONE, NONE, NONE),
    ("j$c .L$L; $B; jmp .M$L; .L$L:; $B; .M$L:", NONE, NONE, NONE),
    (
        "mov $$3,$C; .L$L:; $B; dec $C; jne .L$L",
        NONE,
        CARRY,
        BUT_CARRY,
    ),
];

/// What is not for a hypervisor's drivers.
const UNPRIVILEGED: [Step; 4] = [
    ("pushfq; $B; popfq", ALL, NONE, ALL),
    (
        "mov $8,-8(%rsp); $o$s $m,$r; $o -8(%rsp),$8",
        NONE,
        NONE,
        ALL,
    ),
    ("fildq $m; fistpq $m", NONE, NONE, NONE),
    ("fldl $m; faddl $m; fstpl $m", NONE, NONE, NONE),
];

const LEGACY: [&str; 8] = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];
/// Registers by number that no step names.
const FREE: [usize; 10] = [3, 5, 8, 9, 10, 11, 12, 13, 14, 15];
/// Those that steps name: rax rcx rdx rsi rdi.
const NAMED: [usize; 5] = [0, 1, 2, 6, 7];

/// A register's name.
fn register(number: usize, bytes: u64) -> String {
    let Some(name) = LEGACY.get(number) else {
        let suffix = match bytes {
            8 => "",
            4 => "d",
            2 => "w",
            _ => "b",
        };
        return format!("%r{number}{suffix}");
    };
    match bytes {
        8 => format!("%r{name}"),
        4 => format!("%e{name}"),
        2 => format!("%{name}"),
        _ if number < 4 => format!("%{}l", &name[..1]),
        _ => format!("%{name}l"),
    }
}

/// Memory that pointers point into.
#[derive(Clone, Copy)]
struct Region {
    /// What an assembler is told of its beginning.
    start: &'static str,
    bytes: u64,
}

/// A register that points somewhere.
#[derive(Clone, Copy)]
struct Pointer {
    register: usize,
    region: Region,
    offset: u64,
}

struct Function {
    random: Random,
    name: String,
    steps: Vec<Step>,
    text: String,
    pointers: Vec<Pointer>,
    small: Vec<usize>,
    counters: Vec<usize>,
    data: Vec<usize>,
    /// Flags that are defined.
    flags: u8,
    /// Bytes pushed.
    pushed: u64,
    labels: u64,
    loops: usize,
}

/// What the function is executed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Inside a hypervisor.
    Hypervisor,
    /// In a process of its own.
    Process,
}

/// The function of a seed.
pub fn function(name: &str, number: u64, place: Place) -> String {
    let mut random = Random::new(seed("assembly", number));
    let mut free = FREE.to_vec();
    for n in (1..free.len()).rev() {
        free.swap(n, random.below(n as u64 + 1) as usize);
    }
    let dom0 = Region {
        start: SYMBOL,
        bytes: PAGES * PAGE,
    };
    let far = Region {
        start: "",
        bytes: FAR_PAGES * PAGE,
    };
    let pointer = |(n, register): (usize, usize)| Pointer {
        register,
        region: if n == 0 { far } else { dom0 },
        offset: MARGIN,
    };
    let pointers = free.drain(..3).enumerate().map(pointer).collect();
    let mut function = Function {
        name: name.to_owned(),
        steps: match place {
            Place::Hypervisor => STEPS.to_vec(),
            Place::Process => [&STEPS[..], &UNPRIVILEGED].concat(),
        },
        text: format!("\t.text\n\t.globl {name}\n\t.type {name},@function\n{name}:\n"),
        pointers,
        small: free.drain(..2).collect(),
        counters: free.drain(..2).collect(),
        data: NAMED.into_iter().chain(free).collect(),
        flags: NONE,
        pushed: 0,
        labels: 0,
        loops: 0,
        random,
    };
    function.whole();
    function.text
}

impl Function {
    fn line(&mut self, text: &str) {
        self.text += &format!("\t{text}\n");
    }

    fn whole(&mut self) {
        self.line(&format!("lea -{FRAME}(%rsp),%rsp"));
        for offset in (0..FRAME).step_by(8) {
            self.line(&format!("movq ${},{offset}(%rsp)", offset * 77 + 5));
        }
        for n in 0..self.pointers.len() {
            self.point(n);
        }
        for n in self.small.clone() {
            self.line(&format!("and ${},{}", SMALL - 1, register(n, 4)));
        }
        let steps = 5 + self.random.below(60);
        for _ in 0..steps {
            if self.random.one_in(8) {
                let n = self.random.below(self.pointers.len() as u64);
                self.point(n as usize);
            }
            self.step(2);
        }
        self.digest();
        self.line(&format!("lea {FRAME}(%rsp),%rsp"));
        self.line("ret");
        let size = format!("\t.size {0},.-{0}\n", self.name);
        self.text += &size;
    }

    /// All that is left goes into `rax`.
    fn digest(&mut self) {
        if self.flags & CARRY != 0 {
            self.line("adc $0,%rax");
        }
        for n in self.data.clone() {
            if n != 0 {
                self.line("rol $7,%rax");
                self.line(&format!("xor {},%rax", register(n, 8)));
            }
        }
    }

    /// Lets a pointer point elsewhere. Flags stay.
    fn point(&mut self, n: usize) {
        let Pointer {
            register: r,
            region,
            offset,
        } = self.pointers[n];
        let new = MARGIN + self.random.below(region.bytes - 2 * MARGIN);
        let name = register(r, 8);
        let distance = new as i64 - offset as i64;
        let line = match self.random.below(4) {
            0 if offset != MARGIN => format!("lea {distance}({name}),{name}"),
            1 if offset != MARGIN => {
                self.flags = ALL;
                format!("add ${distance},{name}")
            }
            _ if region.start.is_empty() => format!("movabs ${:#x},{name}", FAR + new),
            _ => format!("lea {}+{new}(%rip),{name}", region.start),
        };
        self.line(&line);
        self.pointers[n].offset = new;
    }

    fn one_of<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len() as u64) as usize].clone()
    }

    /// One step; steps in it are `depth` deep.
    fn step(&mut self, depth: u64) {
        for _ in 0..20 {
            let (template, reads, undefines, defines) = self.one_of(&self.steps.clone());
            if reads & !self.flags != 0 || depth == 0 && template.contains("$B") {
                continue;
            }
            if template.contains("$C") && self.loops == self.counters.len() {
                continue;
            }
            let Some(condition) = self.condition(template) else {
                continue;
            };
            self.expand(template, &condition, depth);
            self.flags = self.flags & !undefines | defines;
            return;
        }
    }

    /// A condition that is defined, if the step needs one.
    fn condition(&mut self, template: &str) -> Option<String> {
        let defined = |&&(_, needs): &&(&str, u8)| needs & !self.flags == 0;
        let known: Vec<_> = CONDITIONS.iter().filter(defined).collect();
        match (template.contains("$c"), known.is_empty()) {
            (false, _) => Some(String::new()),
            (true, true) => None,
            (true, false) => Some(self.one_of(&known).0.to_owned()),
        }
    }

    fn expand(&mut self, template: &str, condition: &str, depth: u64) {
        let mut bytes = self.one_of(&[1, 2, 4, 8, 8, 4]);
        if template.contains("$w") && bytes == 1 {
            bytes = 4;
        }
        let data = self.data.clone();
        let (write, other) = (self.one_of(&data), self.one_of(&data));
        let read = self.one_of(&data);
        let vector = format!("%xmm{}", self.random.below(16));
        let small = self.one_of(&self.small.clone());
        self.labels += 1;
        let label = format!("{}_{}", self.name, self.labels);
        let is_loop = template.contains("$C");
        let counter = self.counters.get(self.loops).copied().unwrap_or_default();
        self.loops += usize::from(is_loop);
        // A jump comes from where the flags were these, a loop from its end.
        let before = if is_loop { NONE } else { self.flags };
        let block = |s: &mut Function| {
            s.flags &= before;
            let after = s.flags;
            for _ in 0..1 + s.random.below(4) {
                s.step(depth - 1);
            }
            s.flags &= after;
        };
        for part in template.split("; ") {
            if part == "$B" {
                block(self);
                continue;
            }
            let mut text = String::new();
            let mut rest = part.chars();
            while let Some(c) = rest.next() {
                if c != '$' {
                    text.push(c);
                    continue;
                }
                text += &match rest.next().unwrap_or_default() {
                    '$' => "$".to_owned(),
                    's' | 'w' => suffix(bytes).to_owned(),
                    'r' => register(write, bytes),
                    'x' => register(read, bytes),
                    '1' => register(write, 1),
                    '4' => register(write, 4),
                    '8' => register(write, 8),
                    'q' => register(other, 8),
                    'n' => register(small, bytes),
                    'N' => register(small, 4),
                    'C' => register(counter, 4),
                    'm' => self.place(part),
                    'i' => self.immediate(bytes),
                    'k' => format!("${}", self.one_of(&[0, 1, 2, 3, 8, 31, 64, 100, 255])),
                    'a' => self.string(),
                    'd' => self.random.below(0x1000).to_string(),
                    'c' => condition.to_owned(),
                    'o' => self.one_of(&["add", "sub", "and", "or", "xor"]).to_owned(),
                    'v' => vector.clone(),
                    'L' => label.clone(),
                    other => unreachable!("${other} in {template}"),
                };
            }
            match part {
                "push $8" | "pushfq" => self.pushed += 8,
                "pop $8" | "popfq" => self.pushed -= 8,
                _ => {}
            }
            self.line(&text);
            // The frame is where it was, from here on.
            match part {
                "pushq $m" => self.pushed += 8,
                "popq $8" | "popq $m" => self.pushed -= 8,
                _ => {}
            }
        }
        self.loops -= usize::from(is_loop);
    }

    fn immediate(&mut self, bytes: u64) -> String {
        let small = self.random.below(256) as i64 - 128;
        match bytes {
            1 => format!("${small}"),
            _ if self.random.one_in(2) => format!("${small}"),
            2 => format!("${}", self.random.below(0x8000)),
            _ => format!("${}", self.random.word() as i32),
        }
    }

    /// A place in memory, aligned as it happens.
    fn place(&mut self, part: &str) -> String {
        // `ah` and `ch` have no room for a prefix; the word that `pop` reads is not below `rsp`.
        let old = part.contains("%ah") || part.contains("%ch");
        match self.random.below(8) {
            0 if part != "popq $m" => {
                let offset = self.random.below(FRAME / 8 - 8) * 8;
                return format!("{}(%rsp)", offset + self.pushed);
            }
            1 => {
                let offset = MARGIN + self.random.below(PAGES * PAGE - 2 * MARGIN);
                return format!("{SYMBOL}+{offset}(%rip)");
            }
            _ => {}
        }
        let pointers: Vec<Pointer> = self.pointers.clone();
        let usable: Vec<&Pointer> = pointers.iter().filter(|p| !old || p.register < 8).collect();
        if usable.is_empty() {
            return format!("{SYMBOL}+{MARGIN}(%rip)");
        }
        let Pointer {
            register: base,
            region,
            offset,
        } = *self.one_of(&usable);
        let near = self.random.one_in(2);
        let to = match near {
            true => offset as i64 + self.random.below(0x100) as i64 - 0x80,
            false => (MARGIN / 2 + self.random.below(region.bytes - 2 * MARGIN)) as i64,
        };
        let distance = to - offset as i64;
        let base = register(base, 8);
        if self.random.one_in(3) && !old && to as u64 + SMALL * 4 < region.bytes - 0x80 {
            let index = self.one_of(&self.small.clone());
            let scale = self.one_of(&[1, 2, 4]);
            return format!("{distance}({base},{},{scale})", register(index, 8));
        }
        match distance {
            0 => format!("({base})"),
            _ => format!("{distance}({base})"),
        }
    }

    /// A place with room for a string to both sides.
    fn string(&mut self) -> String {
        let regions: Vec<Pointer> = self.pointers.clone();
        let Pointer {
            register: base,
            region,
            offset,
        } = self.one_of(&regions);
        let room = 0x800;
        let to = room + self.random.below(region.bytes - 2 * room);
        format!("{}({})", to as i64 - offset as i64, register(base, 8))
    }
}

fn suffix(bytes: u64) -> &'static str {
    match bytes {
        8 => "q",
        4 => "l",
        2 => "w",
        _ => "b",
    }
}
