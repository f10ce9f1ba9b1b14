/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What a fault says, and that an access that faulted goes on. */
#define _GNU_SOURCE
#include "feature.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
static sigjmp_buf out;
static char *area;
static volatile long faults, mended;
static void caught(int s, siginfo_t *i, void *u) { (void)u; printf("signal %d code %d at %p\n", s, i->si_code, i->si_addr); faults++; siglongjmp(out, 1); }
static void mend(int s, siginfo_t *i, void *u) { (void)s; (void)u; char *a = (char *)((uintptr_t)i->si_addr & ~4095ul); mended++; printf("mend +%ld\n", (long)((char *)i->si_addr - area)); mprotect(a, 4096, PROT_READ | PROT_WRITE); }
static NOINLINE long load(const long *p) { return p[0] * 3; }
static NOINLINE void store(int *p, int v) { p[5] = v; }
static NOINLINE void add(char *p) { *p += 3; }
static NOINLINE long many(long *p) { long s = 0; for (int i = 0; i < 512 * 6; i += 64) { s += p[i]; p[i] = s + i; p[i + 1] ^= p[i] * 3; } return s; }
static NOINLINE long copy(char *d, const char *s, size_t n) { char *e = d; __asm__ volatile("rep movsb" : "+D"(e), "+S"(s), "+c"(n) : : "memory"); return e - d + (long)n; }
static NOINLINE long fill(long *d, size_t n) { long *e = d; __asm__ volatile("rep stosq" : "+D"(e), "+c"(n) : "a"(7L) : "memory"); return (long)((char *)e - (char *)d); }
static NOINLINE long call(long (**f)(const long *), const long *p) { return (*f)(p); }
int main(void)
{
	struct sigaction sa = { .sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_NODEFER };
	static const uintptr_t bad[] = { 0, 8, 4095, 0x1000, 0xffff800000000000u, 0xffffffffffffff00u, 0x8000000000000000u, 0x7fffffffffffeu, 0x800000000000u, 0x123456789abcdef0u };
	sigaction(SIGSEGV, &sa, 0); sigaction(SIGBUS, &sa, 0);
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (!sigsetjmp(out, 1)) SHOW(load((const long *)HIDE(bad[i])));
		if (!sigsetjmp(out, 1)) store((int *)HIDE(bad[i]), 5);
		if (!sigsetjmp(out, 1)) add((char *)HIDE(bad[i]));
		if (!sigsetjmp(out, 1)) SHOW(copy((char *)HIDE(bad[i]), (const char *)main, 5));
		if (!sigsetjmp(out, 1)) SHOW(call((long (**)(const long *))HIDE(bad[i]), 0));
	}
	area = mmap((void *)0x10000000, 16 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sa.sa_sigaction = mend;
	sigaction(SIGSEGV, &sa, 0);
	SHOW(many(HIDE((long *)area)));
	SHOW(many(HIDE((long *)area)));
	mprotect(area, 16 * 4096, PROT_NONE);
	SHOW(copy(HIDE(area + 4000), HIDE(area + 20000), 9000));
	SHOW(fill((long *)HIDE(area + 30003), 3000));
	long *last = (long *)(area + 4096 * 16 - 8);
	*last = 5; SHOW(load(HIDE(last)));
	mprotect(area, 16 * 4096, PROT_READ | PROT_WRITE); mix(area, 16 * 4096);
	mprotect(area + 8192, 4096, PROT_NONE);
	/* The last bytes before a page that is not there, of every size. */
	SHOW(load((long *)HIDE(area + 8184))); store((int *)HIDE(area + 8172), 9); add(HIDE(area + 8191)); SHOW(copy(HIDE(area + 8000), HIDE(area + 7000), 192));
	SHOW(faults); SHOW(mended);
	return 0;
}
