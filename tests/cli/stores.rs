//! `twin cc --accesses stores`: programs compute the same, whatever their strings.

use std::process::Command;

use crate::cc::{PROGRAM, done, gcc, run};
use crate::sandbox::Sandbox;

/// Strings and other instructions of one function, in C that prints what memory holds then.
const STRINGS: &str = r#"
#include <stdio.h>
#include <string.h>
static unsigned char memory[3 * 4096] __attribute__((aligned(4096)));
static void fill(void) { for (int i = 0; i < (int)sizeof(memory); i++) memory[i] = i * 7 + (i >> 8); }
static void show(const char *what, long rdi, long rsi, long rcx)
{
    unsigned sum = 0;
    for (int i = 0; i < (int)sizeof(memory); i++) sum = sum * 31 + memory[i];
    printf("%s %u %ld %ld %ld\n", what, sum, rdi, rsi, rcx);
}
#define COPY(name, before, insn, after, to, from, n) do { \
    unsigned char *d = memory + (to), *s = memory + (from); unsigned long c = (n), a = 0x1122334455667788; fill(); \
    asm volatile(before insn after : "+D"(d), "+S"(s), "+c"(c), "+a"(a) : : "memory", "cc", "rbx"); \
    show(name, d - memory, s - memory, c); } while (0)
__attribute__((noinline)) unsigned gather(const unsigned *from, int n)
{
    unsigned sum = 0;
    for (int i = 0; i < n; i++) sum += from[from[i] & 63];
    return sum;
}
int main(void)
{
    for (int n = 0; n < 6000; n = n * 3 + 1) {
        COPY("movsb", "", "rep movsb", "", 100, 5000, n);
        COPY("near", "", "rep movsb", "", 107, 100, n);
        COPY("below", "", "rep movsb", "", 100, 107, n);
        COPY("back", "std;", "rep movsb", ";cld", 6007, 6000, n);
        COPY("stosb", "", "rep stosb", "", 4000, 0, n);
        COPY("cmpsb", "", "repe cmpsb", "", 0, 256, n);
        COPY("scasb", "", "repne scasb", "", 10, 0, n);
        COPY("lodsb", "", "rep lodsb", "", 0, 10, n);
    }
    for (int n = 0; n < 700; n = n * 3 + 1) {
        COPY("movsq", "", "rep movsq", "", 4091, 100, n);
        COPY("backq", "std;", "rep movsq", ";cld", 9000, 8999, n);
        COPY("stosq", "", "rep stosq", "", 4091, 0, n);
    }
    COPY("once", "", "movsq", "", 4091, 8190, 1);
    COPY("push", "", "push (%%rsi); pop (%%rdi)", "", 4095, 8190, 1);
    COPY("rmw", "", "addq %%rax,(%%rdi); xchg %%cl,(%%rsi); btsq %%rcx,(%%rdi)", "", 4090, 8190, 77);
    COPY("xlat", "", "mov %%rdi,%%rbx; xlat; movzbl %%al,%%ecx; sub %%rbx,%%rbx", "", 10, 20, 1);
    fill();
    printf("%u\n", gather((unsigned *)memory, 640));
    return 0;
}
"#;

/// Loads stay as they are: programs compute the same, whatever their strings.
#[test]
fn programs_compute_the_same_where_stores_alone_are_translated() {
    let sandbox = Sandbox::new();
    sandbox.write("strings.c", STRINGS);
    sandbox.write("program.c", PROGRAM);
    for flags in ["-O0", "-O2 -mstringop-strategy=rep_8byte", "-O3 -mavx2"] {
        // It is executed only where the processor has it.
        let flags = match flags.contains("avx2") && !std::arch::is_x86_feature_detected!("avx2") {
            true => "-O3",
            false => flags,
        };
        for source in ["strings", "program"] {
            done(&gcc(&sandbox, &format!("{flags} {source}.c -o original")));
            let output = Command::new(env!("CARGO_BIN_EXE_twin"))
                .args(["cc", "--accesses", "stores", "--", "gcc"])
                .args(format!("{flags} {source}.c -o rewritten").split(' '))
                .current_dir(sandbox.path(""))
                .output()
                .expect("twin runs");
            done(&output);
            let (expected, found) = (run(&sandbox, "original"), run(&sandbox, "rewritten"));
            assert!(!expected.1.is_empty());
            assert_eq!(found, expected, "{flags} {source}");
        }
    }
}
