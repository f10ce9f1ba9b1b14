//! Offsets in Xen's structures, read out of functions that use them.
//!
//! Debian's package has no debug information of 4.17. So each offset is taken from an
//! instruction of a small function, which is known by the registers and sizes of its
//! operands; what follows from the language is beside it. A function that is not as
//! described ends the program. For 4.20, whose EFI image has debug information, the results
//! were compared with it, with gdb.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use crate::image::Image;
use crate::symbols::Symbols;

/// Instructions of a function that are looked at.
const SEEN: usize = 64;
/// Bytes of Xen's own stack of a CPU: `cpu_info` is at its end, where `rsp | 0x7fff` points to
/// the last byte.
const STACK_MASK: u64 = 0x7fff;

/// Releases whose structures were read, and in which a driver was run: 4.17 and 4.20.
const RELEASES: [(u64, u64); 2] = [(4, 17), (4, 20)];

/// What is the same in name may be another thing in another release.
pub fn check_release(image: &Image<'_>, symbols: &Symbols) -> Result<(), String> {
    let number = |name: &str| {
        let code = decode(image, symbols, name)?;
        let constant = |i: &&Instruction| i.code() == Code::Mov_r32_imm32;
        let found = code
            .iter()
            .find(constant)
            .map(|i| u64::from(i.immediate32()));
        found.ok_or_else(|| format!("`{name}` is not as expected"))
    };
    let release = (number("xen_major_version")?, number("xen_minor_version")?);
    match RELEASES.contains(&release) {
        true => check_arguments(image, symbols),
        false => Err(format!("it is of Xen {}.{}", release.0, release.1)),
    }
}

/// What the platform puts in place of `search_exception_table` stores through its second argument,
/// which the function has in 4.17.5 and later: in 4.17.3 the register has anything. It is kept before
/// the first call.
fn check_arguments(image: &Image<'_>, symbols: &Symbols) -> Result<(), String> {
    let code = decode(image, symbols, "search_exception_table")?;
    let mut first = code.iter().take_while(|i| i.mnemonic() != Mnemonic::Call);
    let keeps = |i: &Instruction| {
        i.mnemonic() == Mnemonic::Mov
            && i.op1_kind() == OpKind::Register
            && i.op1_register() == Register::RSI
    };
    match first.any(keeps) {
        true => Ok(()),
        false => {
            Err("its `search_exception_table` has one argument, as in 4.17.3: update Xen".into())
        }
    }
}

/// All keys with their values.
pub fn all(image: &Image<'_>, symbols: &Symbols) -> Result<Vec<(&'static str, u64)>, String> {
    let mut values = Vec::new();
    for probe in PROBES {
        let found = decode(image, symbols, probe.function)
            .and_then(|code| (probe.read)(&code).ok_or_else(|| "it is not as expected".to_owned()));
        let value = found.map_err(|why| format!("{} from {}: {why}", probe.key, probe.function))?;
        values.push((probe.key, value));
    }
    Ok(values)
}

/// Where a number is read.
struct Probe {
    key: &'static str,
    function: &'static str,
    read: fn(&[Instruction]) -> Option<u64>,
}

const PROBES: &[Probe] = &[
    // if ( per_cpu(...)[smp_processor_id()] ... && (v != current) ) smp_send_event_check(v->processor)
    Probe {
        key: "cpu_info_processor_id",
        function: "vcpu_kick",
        read: |code| from_end(code, Code::Mov_r32_rm32),
    },
    Probe {
        key: "cpu_info_current_vcpu",
        function: "vcpu_kick",
        read: |code| from_end(code, Code::Cmp_rm64_r64),
    },
    Probe {
        key: "vcpu_processor",
        function: "vcpu_kick",
        read: |code| {
            let to_edi = |i: &&Instruction| {
                i.code() == Code::Mov_r32_rm32 && i.op0_register() == Register::EDI
            };
            field(code.iter().find(to_edi)?)
        },
    },
    // this_cpu(...)++
    Probe {
        key: "cpu_info_per_cpu_offset",
        function: "get_domain_by_id",
        read: |code| from_end(code, Code::Add_r64_rm64),
    },
    // old = get_cpu_info()->cr4
    Probe {
        key: "cpu_info_cr4",
        function: "write_cr4",
        read: |code| from_end(code, Code::Mov_r64_rm64),
    },
    // printk("*** Dumping Dom%d vcpu#%d state: ***\n", v->domain->domain_id, v->vcpu_id)
    Probe {
        key: "vcpu_vcpu_id",
        function: "vcpu_show_execution_state",
        read: |code| {
            let third = |i: &&Instruction| {
                i.code() == Code::Mov_r32_rm32 && i.op0_register() == Register::EDX
            };
            field(code.iter().find(third)?)
        },
    },
    Probe {
        key: "domain_domain_id",
        function: "vcpu_show_execution_state",
        read: |code| {
            let second = |i: &&Instruction| {
                i.code() == Code::Movzx_r32_rm16 && i.op0_register() == Register::ESI
            };
            field(code.iter().find(second)?)
        },
    },
    // v->domain->..., v->arch.guest_table
    Probe {
        key: "vcpu_domain",
        function: "do_page_walk",
        read: |code| words_of_first_argument(code).find(|offset| *offset < NEAR),
    },
    Probe {
        key: "vcpu_guest_table",
        function: "do_page_walk",
        read: |code| words_of_first_argument(code).find(|offset| *offset >= NEAR),
    },
    // if ( d->vcpu == NULL ) of domain_vcpu
    Probe {
        key: "domain_vcpu",
        function: "send_guest_global_virq",
        read: |code| words_of_first_argument(code).next(),
    },
    // cmpxchg(&d->refcnt, 0, DOMAIN_DESTROYED)
    Probe {
        key: "domain_refcnt",
        function: "domain_destroy",
        read: |code| {
            let exchange = |i: &&Instruction| {
                i.code() == Code::Cmpxchg_rm32_r32 && i.memory_base() == Register::RDI
            };
            field(code.iter().find(exchange)?)
        },
    },
    // free_cpumask_var(d->dirty_cpumask); free_domain_struct(d) as the last
    Probe {
        key: "domain_dirty_cpumask",
        function: "_domain_destroy",
        read: |code| {
            let tail = code.iter().position(|i| {
                i.mnemonic() == Mnemonic::Jmp && i.op0_kind() == OpKind::NearBranch64
            })?;
            let load = |i: &&Instruction| {
                i.code() == Code::Mov_r64_rm64
                    && i.op0_register() == Register::RDI
                    && i.op1_kind() == OpKind::Memory
            };
            field(code[..tail].iter().rev().find(load)?)
        },
    },
    // x = page->u.inuse.type_info
    Probe {
        key: "page_info_type_info",
        function: "_get_page_type",
        read: |code| words_of_first_argument(code).next(),
    },
    // info->pirq = pirq, after alloc_pirq_struct
    Probe {
        key: "pirq_pirq",
        function: "pirq_get_info",
        read: |code| {
            let store = |i: &&Instruction| {
                i.code() == Code::Mov_rm32_r32 && i.memory_base() == Register::RAX
            };
            field(code.iter().find(store)?)
        },
    },
    // virt_to_page(v): frame_table + (maddr >> 12) * sizeof(struct page_info)
    Probe {
        key: "frame_table",
        function: "free_xenheap_pages",
        read: |code| constants(code).find(|n| *n % GIB == 0 && (FRAMES..DIRECTMAP).contains(n)),
    },
    Probe {
        key: "page_info_size",
        function: "free_xenheap_pages",
        read: |code| {
            let to_frame = code
                .iter()
                .position(|i| i.mnemonic() == Mnemonic::Shr && i.immediate8() == 12)?;
            let shift = |i: &&Instruction| {
                i.code() == Code::Shl_rm64_imm8 && i.op0_register() == code[to_frame].op0_register()
            };
            Some(1 << code[to_frame..].iter().find(shift)?.immediate8())
        },
    },
    // mfn_to_virt(mfn)
    Probe {
        key: "directmap",
        function: "map_domain_page_global",
        read: |code| constants(code).find(|n| *n == DIRECTMAP),
    },
];

/// An offset that is `domain`'s, not `guest_table`'s.
const NEAR: u64 = 0x100;
const GIB: u64 = 1 << 30;
/// Above Xen's own code and data, and where the directmap begins (slot 262), by the map of
/// addresses in xen/arch/x86/include/asm/config.h.
const FRAMES: u64 = 0xffff_82d0_8000_0000;
const DIRECTMAP: u64 = 0xffff_8300_0000_0000;

/// The first instructions of a function.
fn decode(image: &Image<'_>, symbols: &Symbols, name: &str) -> Result<Vec<Instruction>, String> {
    const LONGEST: usize = 15;
    let address = symbols.one(name)?;
    let size = symbols.after(address) - address;
    let bytes = image.at(address, (SEEN * LONGEST).min(size as usize))?;
    let decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    Ok(decoder.into_iter().take(SEEN).collect())
}

/// The displacement of the memory operand from a register, if it is a field of a structure.
fn field(i: &Instruction) -> Option<u64> {
    let from_register = i.memory_base() != Register::None && !i.is_ip_rel_memory_operand();
    let alone = from_register && i.memory_index() == Register::None;
    let offset = i.memory_displacement64();
    (alone && offset < 1 << 16).then_some(offset)
}

/// The distance of a field of `cpu_info` from its end: of the first instruction of that form
/// whose base was made by `or $0x7fff`.
fn from_end(code: &[Instruction], form: Code) -> Option<u64> {
    let or = code
        .iter()
        .position(|i| i.mnemonic() == Mnemonic::Or && i.immediate(1) == STACK_MASK)?;
    let last = code[or].op0_register();
    let uses = |i: &&Instruction| {
        i.code() == form && i.memory_base() == last && i.memory_index() == Register::None
    };
    let offset = code[or + 1..].iter().find(uses)?.memory_displacement64() as i64;
    // The base is the address of the last byte.
    (-0x100..0).contains(&offset).then(|| (1 - offset) as u64)
}

/// Offsets of the words of 8 bytes that are loaded through the first argument.
fn words_of_first_argument(code: &[Instruction]) -> impl Iterator<Item = u64> {
    let load =
        |i: &&Instruction| i.code() == Code::Mov_r64_rm64 && i.memory_base() == Register::RDI;
    code.iter().filter(load).filter_map(field)
}

/// The constants of `movabs`.
fn constants(code: &[Instruction]) -> impl Iterator<Item = u64> {
    let movabs = |i: &&Instruction| i.code() == Code::Mov_r64_imm64;
    code.iter().filter(movabs).map(Instruction::immediate64)
}
