/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -fsplit-stack -fuse-ld=gold -pthread */
/* compilers: gcc */
#include "feature.h"
#include <pthread.h>
#include <stdarg.h>
static NOINLINE long deep(long *p, int n, ...) { char big[3000]; va_list l; va_start(l, n); long x = va_arg(l, long); va_end(l); memset(HIDE(&big[0]), n, sizeof big); p[0] += big[n]; return n ? deep(p, n - 1, x + p[0]) + big[5] : p[0] + x; }
static void *thread(void *v) { return (void *)deep(v, 200, 5L); }
int main(void) { long x = 3; pthread_t t; void *r; SHOW(deep(HIDE(&x), 100, 7L)); pthread_attr_t a; pthread_attr_init(&a); pthread_attr_setstacksize(&a, 65536); pthread_create(&t, &a, thread, HIDE(&x)); pthread_join(t, &r); SHOW(r); return 0; }
