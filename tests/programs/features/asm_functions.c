/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Functions in assembly beside C: own loops, tables, labels, sections. */
#include "feature.h"
long total(const long *p, long n, long start); long picked(const long *p, long i); long local(long *p); extern const long constants[4];
__asm__(".text\n.globl total\n.type total,@function\ntotal:\n\tmov %rdx, %rax\n\ttest %rsi, %rsi\n\tjz 2f\n1:\tadd -8(%rdi,%rsi,8), %rax\n\trol $3, %rax\n\tsub $1, %rsi\n\tjnz 1b\n2:\tret\n.size total,.-total\n"
	".globl picked\n.type picked,@function\npicked:\n\tcmp $3, %rsi\n\tja .Lnone\n\tlea .Ltable(%rip), %rax\n\tmovslq (%rax,%rsi,4), %rcx\n\tadd %rcx, %rax\n\tjmp *%rax\n.Lzero: mov (%rdi), %rax\n\tret\n.Lone: mov 8(%rdi), %rax\n\tneg %rax\n\tret\n.Ltwo: mov 16(%rdi), %rax\n\tadd (%rdi), %rax\n\tret\n.Lthree: imul $9, 24(%rdi), %rax\n\tret\n.Lnone: mov $-1, %rax\n\tret\n.size picked,.-picked\n"
	".section .rodata\n.p2align 2\n.Ltable: .long .Lzero-.Ltable, .Lone-.Ltable, .Ltwo-.Ltable, .Lthree-.Ltable\n.globl constants\n.p2align 3\nconstants: .quad 1, 2, 3, 4\n.text\n"
	".globl local\n.type local,@function\nlocal:\n\tpush %rbx\n\tmov %rdi, %rbx\n\tcall .Lhelper\n\tadd 8(%rbx), %rax\n\tcall .Lhelper\n\tpop %rbx\n\tret\n.Lhelper:\tnop\n\tadd (%rbx), %rax\n\tincq (%rbx)\n\tret\n.size local,.-local\n");
static NOINLINE long there(long *p) { long r; __asm__ volatile(".pushsection .data\n1:\t.quad 77\n.popsection\n\tmov 1b(%%rip), %0\n\tadd (%1), %0\n\taddq $3, 1b(%%rip)\n\tjmp 3f\n2:\tneg %0\n\tjmp 4f\n3:\ttest $1, %0\n\tjz 2b\n4:" : "=&r"(r) : "r"(p) : "cc", "memory"); return r; }
static NOINLINE long called(long *p) { register long a __asm__("rax") = 0; __asm__ volatile("lea -128(%%rsp), %%rsp\n\tcall local\n\tlea 128(%%rsp), %%rsp" : "+a"(a), "+D"(p) : : "memory", "cc", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11"); return a; }
int main(void) { long p[5] = { 3, -5, 7, 11, 13 }; SHOW(total(HIDE(&p[0]), 5, 9)); for (long i = -1; i < 5; i++) SHOW(picked(HIDE(&p[0]), i)); SHOW(picked(HIDE(&constants[0]), 2)); SHOW(called(HIDE(&p[0]))); SHOW(there(HIDE(&p[0]))); SHOW(there(HIDE(&p[1]))); mix(p, sizeof p); SHOW(p[0]); return 0; }
