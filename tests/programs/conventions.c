/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What compilers do apart from the psABI's calling convention, or with it in ways that
 * show: attributes, local functions whose registers the caller knows (-fipa-ra), static
 * chains, global register variables, own stacks, non-local gotos. Two files in one, so
 * that either can be rewritten alone: HERE=1 has callees, HERE=2 the rest and `main`.
 * Prints a line for each.
 */
#include <stddef.h>

#define NOINLINE __attribute__((noinline))
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

#define CC
#define NAME(x) JOIN(x, psabi)
#include "convention.h"

#define CC __attribute__((ms_abi))
#define NAME(x) JOIN(x, ms)
#include "convention.h"

#ifdef __clang__
#define CC __attribute__((preserve_most))
#define NAME(x) JOIN(x, most)
#include "convention.h"
#define CC __attribute__((preserve_all))
#define NAME(x) JOIN(x, all)
#include "convention.h"
#define CC __attribute__((regcall))
#define NAME(x) JOIN(x, regcall)
#include "convention.h"
#ifdef VECTORCALL
/* Its names, get@@8, are in clang's assembly as no assembler takes them. */
#define CC __attribute__((vectorcall))
#define NAME(x) JOIN(x, vectorcall)
#include "convention.h"
#endif
#if __has_attribute(preserve_none)
#define HAS_NONE 1
#define CC __attribute__((preserve_none))
#define NAME(x) JOIN(x, none)
#include "convention.h"
#endif
#endif

#ifdef GENERAL_REGS
#define CC __attribute__((no_caller_saved_registers))
#define NAME(x) JOIN(x, keeps)
#include "convention.h"
#endif

#if HERE == 1

long counted(const long *p)
{
	return p[0] * 3 + p[1];
}

#ifdef GENERAL_REGS
struct frame { unsigned long ip, cs, flags, sp, ss; };

/* Compiled, and called only by hand: it must keep every register. */
__attribute__((interrupt)) void interrupted(struct frame *f)
{
	((volatile unsigned long *)f)[0] += 0;
}
#endif

#else /* HERE == 2 */

#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

long counted(const long *p);

/* -fipa-ra: `work` keeps its arguments in registers that `load` leaves alone. */
static NOINLINE int load(const int *p)
{
	return *p;
}

NOINLINE long work(const int *p, long a, long b, long c, long d, long e)
{
	long s = load(p);

	s = s * 3 + load(p + 1) * a + load(p + 2) * b;
	return s + c * d + e;
}

/* The callee is known, yet called through a register (-mforce-indirect-call, retpolines). */
static NOINLINE void store(int *p, int v)
{
	p[0] = v;
	p[1] += p[0];
}

NOINLINE long work_more(int *p, long a, long b, long c)
{
	store(p, 3);
	store(p + 1, (int)a);
	return a * b + c + p[0] + p[2];
}

static NOINLINE long switched(const int *p, int n)
{
	switch (p[n]) {
	case 0: return p[1] * 3;
	case 1: return p[2] - p[1];
	case 2: return 1L << p[1];
	case 3: return p[3] ^ 0x55;
	case 4: return -p[1];
	case 5: return 99 + p[0];
	case 6: return p[0] * p[2];
	default: return 0;
	}
}

static NOINLINE long gone(const unsigned char *code)
{
	static const void *const table[] = { &&stop, &&inc, &&dbl, &&dec };
	long a = 1;

	goto *table[*code++];
inc:	a++; goto *table[*code++];
dbl:	a *= 2; goto *table[*code++];
dec:	a--; goto *table[*code++];
stop:	return a;
}

static NOINLINE long room(const char *s, int n)
{
	char vla[n];
	char *a = alloca((size_t)n + 17);
	long sum = 0;

	memcpy(vla, s, (size_t)n);
	for (int i = 0; i < n; i++)
		a[i] = (char)(vla[n - 1 - i] ^ 1);
	for (int i = 0; i < n; i++)
		sum = sum * 31 + a[i];
	return sum;
}

static NOINLINE long aligned(const long *p)
{
	long wide[8] __attribute__((aligned(64)));
	long s = (long)((size_t)wide & 63);

	for (int i = 0; i < 4; i++)
		wide[i] = p[i] * i;
	__asm__ volatile("" : : "r"(wide) : "memory");
	for (int i = 0; i < 4; i++)
		s += wide[i];
	return s;
}

#ifndef NO_LEAP
static void *back[5];

static NOINLINE void leap(const int *p)
{
	if (p[0])
		__builtin_longjmp(back, 1);
}

static NOINLINE long leapt(int *p)
{
	volatile long before = p[1];

	if (__builtin_setjmp(back) == 0) {
		leap(p);
		return -1;
	}
	return before + p[0];
}
#endif

static jmp_buf far;

static NOINLINE long far_leapt(int *p)
{
	volatile int turns = 0;
	int value = setjmp(far);

	turns += p[0];
	if (value < 3)
		longjmp(far, value + 1);
	return turns * 10 + value;
}

#ifndef NO_NAKED
__attribute__((naked)) static long naked(const long *p, long a)
{
	__asm__("mov %rsi, %rax\n\tadd 8(%rdi), %rax\n\tret");
}
#endif

static NOINLINE long several(int n, ...)
{
	va_list list;
	long s = 0;

	va_start(list, n);
	while (n--)
		s = s * 7 + va_arg(list, int);
	va_end(list);
	return s;
}

#ifdef GLOBAL_REGISTER
/* With -ffixed-REG everywhere: no code but this file's may use it. */
#define STRING_(x) #x
#define STRING(x) STRING_(x)
register long tally __asm__(STRING(GLOBAL_REGISTER));

static NOINLINE long tallied(const long *p)
{
	long s = 0;

	tally = 1;
	for (int i = 0; i < 4; i++) {
		tally += p[i];
		s += work_more((int[]) { (int)p[i], 2, 3 }, s, p[i], 3);
		tally ^= s & 1;
	}
	return tally + s;
}
#endif

#if !defined(__clang__) && !defined(NO_CHAIN)
typedef long (*counting)(const long *);
struct chained { long pad; counting count; };

/* Nested functions: their static chain is in r10, of a direct call, through a
 * trampoline, and explicitly through memory. */
static NOINLINE long apply(long (*f)(const long *), const long *p)
{
	return f(p) + f(p + 1);
}

static NOINLINE long nested(const long *p, long scale)
{
	long calls = 0;
	long inner(const long *q) { calls++; return *q * scale; }

	return apply(inner, p) + inner(p + 2) + calls;
}

static NOINLINE long chained(const struct chained *c, const long *p)
{
	return __builtin_call_with_static_chain(c->count(p), (void *)p) +
	       __builtin_call_with_static_chain(counted(p), (void *)c);
}
#endif

#ifdef _OPENMP
static NOINLINE long shared_out(const long *p, int n)
{
	long s = 0;

#pragma omp parallel for reduction(+ : s)
	for (int i = 0; i < n; i++)
		s += p[i & 3] * i;
	return s;
}
#endif

static int undone;

static void cleaned(int **p)
{
	undone += **p;
}

static NOINLINE long scoped(int *q)
{
	long s = 0;
	{
		__attribute__((cleanup(cleaned))) int *here = q + 1;
		s = here[0] + q[0];
	}
	return s + undone;
}

static _Thread_local long own = 40;
_Thread_local long everyones = 2;

static NOINLINE long threads(const long *p)
{
	own += p[0];
	everyones += own;
	return own + everyones;
}

#ifdef INSTRUMENTED
static long entered;
__attribute__((no_instrument_function)) void __cyg_profile_func_enter(void *f, void *from)
{
	(void)f, (void)from;
	entered++;
}
__attribute__((no_instrument_function)) void __cyg_profile_func_exit(void *f, void *from)
{
	(void)f, (void)from;
	entered += 2;
}
#endif

#ifdef KERNEL_ADDRESS
/* What the kernel's sanitizer calls, for each size. */
static long reports;
#define ASAN(n) \
	void __asan_load##n##_noabort(unsigned long a) { reports += a & 1; } \
	void __asan_store##n##_noabort(unsigned long a) { reports += a & 2; }
ASAN(1) ASAN(2) ASAN(4) ASAN(8) ASAN(16)
void __asan_loadN_noabort(unsigned long a, size_t n) { reports += (a & 1) + n; }
void __asan_storeN_noabort(unsigned long a, size_t n) { reports += (a & 1) + n; }
void __asan_handle_no_return(void) { }
#endif

#define SHOW(name) do { \
	struct JOIN(table, name) t = { 5, JOIN(get, name), JOIN(put, name) }; \
	long p[4] = { 3, 5, 7, 11 }; \
	printf(#name " %ld\n", JOIN(use, name)(&t, p, 13, 17, 19, 23)); \
} while (0)

int main(void)
{
	int v[6] = { 3, 5, 7, 1, 2, 6 };
	long p[4] = { 3, 5, 7, 11 };

	SHOW(psabi);
	SHOW(ms);
#ifdef __clang__
	SHOW(most);
	SHOW(all);
	SHOW(regcall);
#ifdef VECTORCALL
	SHOW(vectorcall);
#endif
#ifdef HAS_NONE
	SHOW(none);
#endif
#endif
#ifdef GENERAL_REGS
	SHOW(keeps);
#endif
	printf("work %ld\n", work(v, 11, 13, 17, 19, 23));
	printf("work_more %ld\n", work_more(v, 11, 13, 17));
	for (int i = 0; i < 6; i++)
		printf("switched %ld\n", switched(v, i));
	printf("gone %ld\n", gone((const unsigned char[]) { 1, 2, 2, 3, 1, 2, 0 }));
	printf("room %ld\n", room("some bytes of text", 18));
	printf("aligned %ld\n", aligned(p));
#ifndef NO_LEAP
	printf("leapt %ld\n", leapt(v));
#endif
	printf("far_leapt %ld\n", far_leapt(v));
#ifndef NO_NAKED
	printf("naked %ld\n", naked(p, 37));
#endif
	printf("several %ld\n", several(8, 1, 2, 3, 4, 5, 6, 7, 8));
#ifdef GLOBAL_REGISTER
	printf("tallied %ld\n", tallied(p));
#endif
#if !defined(__clang__) && !defined(NO_CHAIN)
	printf("nested %ld\n", nested(p, 3));
	printf("chained %ld\n", chained(&(struct chained) { 0, counted }, p));
#endif
#ifdef _OPENMP
	printf("shared_out %ld\n", shared_out(p, 1000));
#endif
	printf("scoped %ld\n", scoped(v));
	printf("threads %ld\n", threads(p));
#ifdef INSTRUMENTED
	printf("entered %ld\n", entered);
#endif
	return 0;
}

#endif
