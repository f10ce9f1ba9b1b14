//! Tables of an image that is made here: functions in a few lines that use the structures as
//! Xen's do, and their symbols in Xen's format.

use elf_loader::Place;

use crate::image::START;
use crate::table;

/// Where the segment begins, from [`START`].
const BASE: u64 = 0x20_0000;
/// Pointers to functions, as tables of operations have them.
const POINTERS: usize = 200;

/// The functions that values are read from.
const FUNCTIONS: &str = "
vcpu_kick:
        push    %rbx
        mov     %rdi, %rbx
        mov     %rsp, %rdx
        or      $0x7fff, %rdx
        mov     -0x3f(%rdx), %eax
        cmp     %rbx, -0x37(%rdx)
        mov     4(%rbx), %edi
        ret
xen_major_version:
        mov     $4, %eax
        ret
xen_minor_version:
        mov     $17, %eax
        ret
get_domain_by_id:
        mov     %rsp, %r8
        or      $0x7fff, %r8
        add     -0x2f(%r8), %rdx
        ret
write_cr4:
        mov     %rsp, %rax
        or      $0x7fff, %rax
        mov     -0x27(%rax), %rdx
        ret
vcpu_show_execution_state:
        mov     0x10(%rdi), %rax
        mov     (%rdi), %edx
        movzwl  (%rax), %esi
        ret
do_page_walk:
        mov     0x10(%rdi), %rax
        mov     0xb08(%rdi), %rdx
        ret
send_guest_global_virq:
        mov     8(%rdi), %rax
        ret
domain_destroy:
        lock cmpxchg %edx, 0x220(%rdi)
        ret
_domain_destroy:
        mov     0x798(%rdi), %rdi
        mov     0x230(%rbx), %rdi
        mov     %rbx, %rdi
        jmp     domain_destroy
_get_page_type:
        mov     0x10(%rdi), %r13
        ret
pirq_get_info:
        mov     %r14d, (%rax)
        ret
free_xenheap_pages:
        movabs  $0xffff82d07fffffff, %rax
        movabs  $0xffff82e000000000, %rax
        shr     $12, %rdi
        shl     %cl, %edx
        shl     $5, %rdi
        ret
map_domain_page_global:
        movabs  $0xffff830000000000, %rdx
        ret
search_exception_table:
        push    %r12
        push    %rbp
        mov     %rsi, %rbp
        ret
do_page_fault:
        endbr64
        push    %r14
        push    %r13
        push    %r12
        ret
do_double_fault:
        endbr64
        push    %r12
        mov     $0xe060, %ebp
        ret
send_guest_pirq:
        mov     %rdi, %rdx
        test    %rsi, %rsi
        je      1f
1:      ret
evtchn_send:
        mov     0xdc(%rdi), %eax
        ret
do_hypfs_op:
        push    %r15
        push    %r14
        push    %r13
        ret
cpu_down:
        endbr64
        push    %r12
        push    %rbp
        push    %rbx
        sub     $16, %rsp
        ret
flush_area_mask:
        push    %r14
        push    %r13
        mov     %rsi, %r13
        ret
on_selected_cpus:
        push    %r15
        mov     %rsi, %r15
        push    %r14
        ret
mmio_ro_emulated_write:
        endbr64
        mov     %ecx, %eax
        lea     -1(%rcx), %edx
        ret
write_io:
        endbr64
        push    %r15
        push    %r14
        push    %rsi
        ret
rep_outs:
        endbr64
        push    %r15
        mov     %r9, %r15
        ret
__init_begin:
        ud2
__init_end:
";

/// An image with these functions, of which some have another name in Xen.
fn image(functions: &str) -> Vec<u8> {
    let object = filetests::assemble(format!(".text\n{functions}"), &["--64"]);
    let object = elf_loader::read(&object).expect("what the assembler made");
    let text = object.section_named(".text").expect(".text");
    let mut bytes = object.section(text).data.to_vec();
    let own = |name: &str| match name {
        "_domain_destroy" => "tcommon/domain.c#_domain_destroy".to_owned(),
        "_get_page_type" => "tarch/x86/mm.c#_get_page_type".to_owned(),
        name => format!("T{name}"),
    };
    let symbols = object
        .symbols()
        .skip(1)
        .filter(|(_, s)| s.place == Place::In(text));
    let named = symbols.filter(|(_, s)| !s.name.is_empty());
    let mut symbols: Vec<(u64, String)> =
        named.map(|(_, s)| (BASE + s.value, own(&s.name))).collect();
    symbols.push((0, "T__image_base__".into()));
    // As many as a hypervisor has at least.
    symbols.extend((0..2000).map(|n| (0x10_0000 + n, format!("dx.c#v{n}"))));
    symbols.sort();
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let pointer = START
        + symbols
            .iter()
            .find(|s| s.1 == "Tevtchn_send")
            .map_or(0, |s| s.0);
    bytes.extend(pointer.to_le_bytes().repeat(POINTERS));
    carry(&mut bytes, &symbols);
    file(&bytes)
}

/// Appends the symbols; each character is a token.
fn carry(bytes: &mut Vec<u8>, symbols: &[(u64, String)]) {
    for (address, _) in symbols {
        bytes.extend((*address as u32).to_le_bytes());
    }
    bytes.extend((symbols.len() as u32).to_le_bytes());
    for (_, name) in symbols {
        bytes.push(name.len() as u8);
        bytes.extend(name.as_bytes());
    }
    bytes.extend([0; 16]);
    let token = |n: u8| match n.is_ascii_graphic() {
        true => char::from(n).to_string(),
        false => format!("~{n}"),
    };
    let (mut index, mut texts) = (Vec::new(), Vec::new());
    for text in (0..=u8::MAX).map(token) {
        index.extend((texts.len() as u16).to_le_bytes());
        texts.extend(text.as_bytes());
        texts.push(0);
    }
    bytes.extend(texts);
    bytes.extend(index);
}

/// An ELF file of 32 bits with a segment and a build-id.
fn file(segment: &[u8]) -> Vec<u8> {
    const HEADERS: usize = 0x34 + 2 * 0x20;
    let mut note = Vec::new();
    for word in [4u32, 20, 3] {
        note.extend(word.to_le_bytes());
    }
    note.extend(b"GNU\0");
    note.extend(0..20u8);
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(HEADERS, 0);
    let mut put = |at: usize, word: u32| file[at..at + 4].copy_from_slice(&word.to_le_bytes());
    put(0x1c, 0x34);
    put(0x2a, 0x20 | 2 << 16);
    for (n, (kind, offset, at, size)) in [
        (1, HEADERS + note.len(), BASE as u32, segment.len()),
        (4, HEADERS, 0, note.len()),
    ]
    .into_iter()
    .enumerate()
    {
        let header = 0x34 + n * 0x20;
        put(header, kind);
        put(header + 4, offset as u32);
        put(header + 12, at);
        put(header + 16, size as u32);
    }
    [file, note, segment.to_vec()].concat()
}

fn refused(functions: &str) -> String {
    table(&image(functions), "of the tests")
        .map(drop)
        .expect_err("no table")
}

#[test]
fn a_table_has_what_the_functions_say() {
    let text = table(&image(FUNCTIONS), "4.17.0 of the tests").expect("a table");
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("symbol"))
        .collect();
    let expected = "\
twin-xen-table 2
version 4.17.0 of the tests
build-id 000102030405060708090a0b0c0d0e0f10111213
value cpu_info_processor_id 0x40
value cpu_info_current_vcpu 0x38
value vcpu_processor 0x4
value cpu_info_per_cpu_offset 0x30
value cpu_info_cr4 0x28
value vcpu_vcpu_id 0x0
value domain_domain_id 0x0
value vcpu_domain 0x10
value vcpu_guest_table 0xb08
value domain_vcpu 0x8
value domain_refcnt 0x220
value domain_dirty_cpumask 0x230
value page_info_type_info 0x10
value pirq_pirq 0x0
value frame_table 0xffff82e000000000
value page_info_size 0x20
value directmap 0xffff830000000000
head search_exception_table 4154554889f5
head do_page_fault f30f1efa415641554154
head do_double_fault f30f1efa4154bd60e00000
head send_guest_pirq 4889fa4885f6
head evtchn_send 8b87dc000000
head do_hypfs_op 415741564155
head cpu_down f30f1efa415455534883ec10
head flush_area_mask 415641554989f5
head on_selected_cpus 41574989f7
head mmio_ro_emulated_write f30f1efa89c88d51ff
head write_io f30f1efa4157415656
head rep_outs f30f1efa41574d89cf";
    let lines: Vec<&str> = lines
        .into_iter()
        .filter(|line| !["init", "sha256"].iter().any(|word| line.starts_with(word)))
        .collect();
    assert_eq!(lines.join("\n"), expected);
    assert!(text.contains("\nsymbol 0xffff82d040200000 T vcpu_kick\n"));
    assert!(text.contains(" t common/domain.c#_domain_destroy\n"));
    // `twin payload` reads it.
    let read = payload::Table::parse(&text).expect("the format");
    assert_eq!(read.version(), "4.17.0 of the tests");
}

/// As the compilers of Debian's sid have it.
#[test]
fn a_short_jump_may_end_a_head() {
    let old = "test    %rsi, %rsi\n";
    let functions = FUNCTIONS.replacen(
        "send_guest_pirq:\n        mov     %rdi, %rdx\n",
        "send_guest_pirq:\n",
        1,
    );
    let functions = functions.replacen(old, "test %rsi, %rsi; je 1f; .skip 7, 0x90; 1:\n", 1);
    let text = table(&image(&functions), "4.20.4 of the tests").expect("a table");
    assert!(
        text.contains("\nhead send_guest_pirq 4885f6 7407\n"),
        "{text}"
    );
    payload::Table::parse(&text).expect("the format");
}

#[test]
fn what_is_not_as_expected_ends_it() {
    let cases = [
        (
            "mov     -0x3f(%rdx), %eax",
            "mov -0x3f(%rcx), %eax",
            "cpu_info_processor_id from vcpu_kick",
        ),
        (
            "mov     0xb08(%rdi), %rdx",
            "nop",
            "vcpu_guest_table from do_page_walk",
        ),
        (
            "shl     $5, %rdi",
            "shl $5, %rsi",
            "page_info_size from free_xenheap_pages",
        ),
        ("write_cr4:", "another:", "has not one symbol `write_cr4`"),
        (
            "mov     0xdc(%rdi), %eax",
            "mov 0xdc(%rip), %eax",
            "`evtchn_send` begins with",
        ),
        (
            "test    %rsi, %rsi\n",
            "call evtchn_send\n",
            "`send_guest_pirq` begins with",
        ),
        ("__init_end:", "another:", "`__init_end`"),
        ("mov     $17, %eax", "mov $16, %eax", "it is of Xen 4.16"),
        // As Ubuntu 24.04's 4.17.3 has it: Xen ended with a page fault of the platform's.
        (
            "mov     %rsi, %rbp",
            "mov %rdi, %rbp",
            "one argument, as in 4.17.3",
        ),
        // Backward it would lead into what is overwritten.
        (
            "send_guest_pirq:\n",
            "send_guest_pirq: test %rsi, %rsi; je send_guest_pirq\n",
            "`send_guest_pirq` begins with",
        ),
        // Loops at the beginning, which is overwritten.
        (
            "mov     %rsi, %r15\n",
            "1: mov %rsi, %r15; dec %ecx; jne 1b\n",
            "`on_selected_cpus` jumps back to its beginning",
        ),
        (
            "mov     %rsi, %r13\n",
            "mov %rsi, %r13; jmp flush_area_mask\n",
            "`flush_area_mask` jumps back to its beginning",
        ),
    ];
    for (old, new, why) in cases {
        assert!(FUNCTIONS.contains(old), "{old}");
        let found = refused(&FUNCTIONS.replacen(old, new, 1));
        assert!(found.contains(why), "{why}: {found}");
    }
}

#[test]
fn other_files_end_it() {
    let image = image(FUNCTIONS);
    let refuse = |bytes: &[u8]| table(bytes, "").map(drop).expect_err("no table");
    assert!(refuse(b"\x7fELF\x02\x01").contains("32 bits"));
    assert!(refuse(&image[..0x40]).contains("cut off"));
    assert!(refuse(&file(b"nothing of a hypervisor")).contains("no table of symbols"));
    // Symbols, but for another address: no word is a function's.
    let mut other = image.clone();
    let pointer = image
        .windows(8)
        .position(|w| w == image_pointer(&image))
        .expect("pointers");
    other[pointer..pointer + 8 * POINTERS].fill(0);
    assert!(refuse(&other).contains("not linked for"));
}

/// The word that the image has many of.
fn image_pointer(image: &[u8]) -> [u8; 8] {
    let words = image
        .windows(16)
        .find(|w| w[..8] == w[8..] && w[4..8] == [0xd0, 0x82, 0xff, 0xff]);
    words.expect("two equal words")[..8]
        .try_into()
        .expect("eight bytes")
}
