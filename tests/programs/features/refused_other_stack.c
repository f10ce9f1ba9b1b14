/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* refused: rsp was set to another stack before */
/* An outer frame is resumed by a context in an inner one, as libunwind does: what is left to read is
 * below the stack then, in one of many places. */
#include "feature.h"
struct context { long rbx, rbp, r12, r13, r14, r15, rsp, rip, rdi, rsi, rdx, rcx; };
int save(struct context *);
void resume(struct context *) __attribute__((noreturn));
__asm__(".text\n.type save,@function\nsave:\n\tmov %rbx,(%rdi)\n\tmov %rbp,8(%rdi)\n\tmov %r12,16(%rdi)\n\tmov %r13,24(%rdi)\n\tmov %r14,32(%rdi)\n\tmov %r15,40(%rdi)\n\tlea 8(%rsp),%rax\n\tmov %rax,48(%rdi)\n\tmov (%rsp),%rax\n\tmov %rax,56(%rdi)\n\txor %eax,%eax\n\tret\n.size save,.-save\n"
	".type resume,@function\nresume:\n\tmov (%rdi),%rbx\n\tmov 8(%rdi),%rbp\n\tmov 16(%rdi),%r12\n\tmov 24(%rdi),%r13\n\tmov 32(%rdi),%r14\n\tmov 40(%rdi),%r15\n\tmov 72(%rdi),%rsi\n\tmov 80(%rdi),%rdx\n\tmov 88(%rdi),%rax\n\tmov 48(%rdi),%rsp\n\tmov 56(%rdi),%rcx\n\tpush %rcx\n\tadd 64(%rdi),%rax\n\tmov 80(%rdi),%rcx\n\tret\n.size resume,.-resume\n");
static NOINLINE void inner(const struct context *outer, long place) { long room[64]; memcpy(HIDE(&room[place]), outer, sizeof *outer); resume((struct context *)HIDE(&room[place])); }
int main(void) { struct context here = { .rdi = 7 }; volatile long place = 0, sum = 0; for (; place < 50; place++) { int back = save(HIDE(&here)); if (!back) inner(HIDE(&here), place); sum += back * place; } SHOW((long)sum); return 0; }
