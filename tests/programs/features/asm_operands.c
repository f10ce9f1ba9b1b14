/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Operands of assembly with characters, names in quotes, and registers by other names. */
/* flags: -no-pie -fno-pie */
/* compilers: gcc */
#include "feature.h"
char text[64]; int values[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
int characters(long), renamed(long, long), bare(long), spaced(int *);
__asm__(".data\n\"a,(b\":\t.long 10, 20, 30, 40\n.text\n"
	".globl characters\n.type characters,@function\ncharacters:\n\tmovb $',', text(%rdi)\n\tmovb $'(', text+1(%rdi)\n\tmovb $'\\'', text+2(%rdi)\n\tmovb $'\"', text+3(%rdi)\n\tmovb $';', text+4(%rdi)\n\tmovb $'$, text+5(%rdi)\n\tmovl $(','+('('<<8)), text+8(%rdi)\n\tcmpb $',', text(%rdi)\n\tsete %al\n\tmovzbl %al, %eax\n\tret\n.size characters,.-characters\n"
	".globl renamed\n.type renamed,@function\n.set at, %rdi\nby = %rsi\nrenamed:\n\tmovl values(at), %eax\n\taddl values+4(at), %eax\n\taddl 4+values(at,by,4), %eax\n\taddl $2, values+8(at)\n\taddl \"a,(b\"+4(at), %eax\n\tret\n.size renamed,.-renamed\n"
	".globl bare\n.type bare,@function\n.att_syntax noprefix\nbare:\n\tmov values(rdi), eax\n\tmov eax, values+12(rdi)\n\taddl $3, (values+8)(rdi)\n\tret\n.size bare,.-bare\n.att_syntax prefix\n"
	".globl spaced\n.type spaced,@function\nspaced:\n\tlea \"in side+1\"(%rip), %rax\n\tcall *%rax\n\tcall \"in side+1\"\n\tret\n\"in side+1\":\n\tmov (%rdi), %eax\n\taddl $2, (%rdi)\n\tret\n.size spaced,.-spaced\n");
static NOINLINE int $dollar(int *p) { return *p + 1; }
static NOINLINE int by(int (*f)(int *), int *p) { return f(p); }
int main(void) { int n = 5; SHOW(characters(1)); mix(text, sizeof text); SHOW(renamed(4, 1)); SHOW(bare(4)); mix(values, sizeof values); SHOW(spaced(&n)); SHOW($dollar(&n)); SHOW(by($dollar, &n)); return 0; }
