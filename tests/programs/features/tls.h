/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
#include <pthread.h>
struct s { long a; char b[50]; int c[9]; };
_Thread_local struct s everyones = { 1, "initial", { 1, 2, 3 } };
static _Thread_local struct s own = { 5, "own", { 4, 5, 6 } };
static _Thread_local long zero, array[20];
_Thread_local long zeros[33];
static NOINLINE long turn(int i) { own.a += everyones.a * i; everyones.c[i % 9] += own.c[(i + 1) % 9]++; zero += array[i % 20] += i; zeros[(i * 7) % 33] ^= zero; own.b[i % 50]++; return own.a + zero; }
static NOINLINE long *place(int i) { return i & 1 ? &zeros[i % 33] : &array[i % 20]; }
static NOINLINE long through(long *p, int i) { *p += turn(i); return *p; }
static void *thread(void *v) { long s = 0; for (int i = 0; i < (int)(long)v; i++) s = s * 3 + through(HIDE(place(i)), i); for (int i = 0; i < 50; i++) s = s * 3 + own.b[i] + zeros[i % 33]; return (void *)s; }
int main(void)
{
	for (long n = 1; n < 5; n++) { pthread_t t[3]; void *r[3]; for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, thread, (void *)(n * 20 + i)); for (int i = 0; i < 3; i++) { pthread_join(t[i], &r[i]); SHOW(r[i]); } SHOW(thread((void *)(n * 9))); }
	return 0;
}
