/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -finstrument-functions */
#include "feature.h"
static long entered, depth; void __cyg_profile_func_enter(void *, void *) __attribute__((no_instrument_function)); void __cyg_profile_func_exit(void *, void *) __attribute__((no_instrument_function));
void __cyg_profile_func_enter(void *f, void *c) { (void)c; entered += f != 0; ++*HIDE(&depth); }
void __cyg_profile_func_exit(void *f, void *c) { (void)f; (void)c; --*HIDE(&depth); }
static long f(long *p, int n) { p[0] += n; return n ? f(p, n - 1) * 3 + p[0] : p[0]; }
int main(void) { long x = 1; SHOW(f(HIDE(&x), 10)); SHOW(entered); return 0; }
