/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#define _GNU_SOURCE
#include "feature.h"
#include <ucontext.h>
struct co { void *sp; long turns; char *stack; };
void swap(void **from, void *to);
__asm__(".text\n.type swap,@function\nswap:\n\tpush %rbx\n\tpush %rbp\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\tmov %rsp, (%rdi)\n\tmov %rsi, %rsp\n\tpop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbp\n\tpop %rbx\n\tret\n.size swap,.-swap\n");
static struct co a, b; static void *main_sp; static long trace[64]; static int at;
static void body(struct co *self, struct co *other) { for (long i = 0; i < 10; i++) { long *p = HIDE(&trace[at++]); *p = i * 10 + self->turns++; swap(&self->sp, other->sp); } swap(&self->sp, main_sp); }
static void run_a(void) { body(&a, &b); } static void run_b(void) { body(&b, &a); }
static void begin(struct co *c, void (*f)(void)) { c->stack = malloc(65536); void **sp = (void **)(c->stack + 65536 - 64); *--sp = 0; *--sp = (void *)f; for (int i = 0; i < 6; i++) *--sp = 0; c->sp = sp; }
static ucontext_t m, u; static void context(int x, int y) { for (int i = 0; i < 5; i++) { *HIDE(&trace[i]) += x * i + y; swapcontext(&u, &m); } }
int main(void) { begin(&a, run_a); begin(&b, run_b); swap(&main_sp, a.sp); mix(trace, sizeof trace); SHOW(at); getcontext(&u); u.uc_stack.ss_sp = malloc(65536); u.uc_stack.ss_size = 65536; u.uc_link = &m; makecontext(&u, (void (*)(void))context, 2, 3, 4); for (int i = 0; i < 6; i++) swapcontext(&m, &u); mix(trace, sizeof trace); SHOW(at); return 0; }
