/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
extern long missing(long) __attribute__((weak)); extern int absent __attribute__((weak));
__attribute__((weak)) long given(long *p) { return *p + 1; }
static long real(long *p) { return *p * 7; }
long other(long *p) __attribute__((alias("real"))); long again(long *p) __attribute__((weak, alias("real")));
static long ref(long *p) __attribute__((weakref("given")));
__attribute__((visibility("hidden"))) long hidden = 5; __attribute__((section("own_data"))) long placed[3] = { 1, 2, 3 };
__attribute__((section(".text.elsewhere"))) NOINLINE long elsewhere(long *p) { return p[1] - p[0]; }
extern long __start_own_data[], __stop_own_data[];
static NOINLINE long all(long *p) { long s = missing ? missing(1) : 100; if (&absent) s += absent; s = s * 3 + given(p) + other(p) + again(p) + ref(p); for (long *q = __start_own_data; q < __stop_own_data; q++) s = s * 5 + *q; return s + hidden + elsewhere(p); }
static int order[8], at;
__attribute__((constructor(202))) static void second(void) { *HIDE(&order[at++]) = 2; }
__attribute__((constructor(201))) static void first(void) { *HIDE(&order[at++]) = 1; }
__attribute__((constructor)) static void third(int n, char **v) { *HIDE(&order[at++]) = 3 + (n > 0 && v[0] != 0); }
__attribute__((destructor)) static void last(void) { printf("last %d\n", *HIDE(&order[0])); }
static void exiting(void) { printf("exiting %d\n", *HIDE(&order[1])); }
int main(void) { long x[2] = { 3, 10 }; atexit(exiting); SHOW(all(HIDE(&x[0]))); mix(order, sizeof order); SHOW(at); return 0; }
