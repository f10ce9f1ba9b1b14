/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#define _GNU_SOURCE
#include "feature.h"
#include <sys/syscall.h>
#include <unistd.h>
static long area[600];
static NOINLINE long gs(long i) { long r; __asm__ volatile("mov %%gs:8(,%1,8), %0\n\tadd %0, %%gs:16\n\tadd %%gs:(%2), %0\n\tlock incl %%gs:24(%2)" : "=&r"(r) : "r"(i), "r"(i * 8) : "memory", "cc"); return r; }
#ifdef __SEG_GS
static NOINLINE long named(long __seg_gs *p, int __seg_gs *q, int n) { long s = 0; for (int i = 0; i < n; i++) { s += p[i]; q[i * 2 + 1] ^= (int)s; p[i + 40] = s; } return s; }
#endif
static NOINLINE long fs(void) { long a, b; __asm__("mov %%fs:0, %0" : "=r"(a)); __asm__("mov %%fs:(%1), %0" : "=r"(b) : "r"(16L)); return (a == b) + (a == *(long *)HIDE(a)); }
int main(void) { for (int i = 0; i < 600; i++) area[i] = i * 12345L; syscall(SYS_arch_prctl, 0x1001, area); SHOW(gs(5)); SHOW(gs(1)); SHOW(fs());
#ifdef __SEG_GS
	SHOW(named((long __seg_gs *)16, (int __seg_gs *)HIDE(800L), 30));
#endif
	mix(area, sizeof area); SHOW(area[2]); return 0; }
