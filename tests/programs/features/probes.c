/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Probes (USDT): a `nop` whose arguments are in registers that no instruction reads. What looks at
   one puts a breakpoint there, as the kernel's uprobes do. */
#define _GNU_SOURCE
#include "feature.h"
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#define PROBE(a, b) \
	__asm__ volatile("990: nop\n\t.pushsection probes,\"aw\"\n\t.8byte 990b\n\t.popsection" ::"r"(a), "r"(b))

extern unsigned char *__start_probes[];
static long seen[2], hits;

static void look(int s, siginfo_t *i, void *u)
{
	greg_t *registers = ((ucontext_t *)u)->uc_mcontext.gregs;

	(void)s, (void)i;
	seen[0] += registers[REG_R8];
	seen[1] ^= registers[REG_R9];
	hits++;
}

NOINLINE static long work(long *p, long *q, long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++) {
		long a = q[i], b = p[i + 1];
		register long x __asm__("r8") = a, y __asm__("r9") = b;

		PROBE(x, y);
		p[3] = i;
		sum ^= q[i + 1] * 3 + p[i];
		sum += p[i + 2];
	}
	return sum;
}

int main(void)
{
	long p[20], q[20];
	struct sigaction action = { .sa_sigaction = look, .sa_flags = SA_SIGINFO };
	unsigned char *at = __start_probes[0];

	for (int i = 0; i < 20; i++)
		p[i] = i * i, q[i] = i * 7;
	SHOW(mprotect((void *)((uintptr_t)at & ~4095ul), 4096, PROT_READ | PROT_WRITE | PROT_EXEC));
	sigaction(SIGTRAP, &action, NULL);
	*at = 0xcc;
	SHOW(work(HIDE(&p[0]), HIDE(&q[0]), 9));
	SHOW(hits);
	SHOW(seen[0]);
	SHOW(seen[1]);
	return 0;
}
