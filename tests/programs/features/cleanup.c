/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -fexceptions -pthread */
#define _GNU_SOURCE
#include "feature.h"
#include <pthread.h>
#include <unwind.h>
static long log_[32]; static int at;
static void undo(long **p) { log_[at++] = **p; (**p)++; }
static NOINLINE long scopes(long *p, int n) { long *a __attribute__((cleanup(undo))) = p; for (int i = 0; i < n; i++) { long *b __attribute__((cleanup(undo))) = p + 1; if (i == 2) continue; if (i == 4) return p[0] + p[1]; if (i == n - 1) goto out; *b += i; } out: return *a * 2; }
static NOINLINE void forever(long *p) { long *a __attribute__((cleanup(undo))) = p; long *b __attribute__((cleanup(undo))) = p + 1; for (;;) { pthread_testcancel(); if (p[0]++ > 5) pthread_exit(p); *b ^= 3; } }
static void pushed(void *v) { *(long *)v += 100; }
static void *thread(void *v) { pthread_cleanup_push(pushed, v); forever(v); pthread_cleanup_pop(0); return 0; }
static _Unwind_Reason_Code stop(int v, _Unwind_Action a, _Unwind_Exception_Class c, struct _Unwind_Exception *e, struct _Unwind_Context *x, void *p) { (void)v; (void)c; (void)e; (void)x; (*(long *)p)++; return a & _UA_END_OF_STACK ? _URC_NORMAL_STOP : _URC_NO_REASON; }
static _Unwind_Reason_Code frame(struct _Unwind_Context *c, void *p) { (void)c; ++*(int *)p; return _URC_NO_REASON; }
static NOINLINE int depth(int n, long *p) { if (n) { int r = depth(n - 1, p); *p += r; return r; } int d = 0; _Unwind_Backtrace(frame, &d); return d; }
int main(void)
{
	long p[2] = { 1, 10 }; pthread_t t; void *r;
	SHOW(scopes(HIDE(&p[0]), 8)); SHOW(scopes(HIDE(&p[0]), 3)); p[0] = 0;
	pthread_create(&t, 0, thread, HIDE(&p[0])); pthread_join(t, &r); SHOW(r == p); mix(p, sizeof p); mix(log_, sizeof log_); SHOW(at);
	p[0] = 0; pthread_create(&t, 0, thread, HIDE(&p[0])); pthread_cancel(t); pthread_join(t, &r); SHOW(p[0] >= 100);
	(void)stop; SHOW(depth(9, HIDE(&p[0])) > 3); 
	return 0;
}
