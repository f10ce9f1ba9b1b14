/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -pthread */
#include "feature.h"
#include <pthread.h>
#include <stdatomic.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static long locked, queue[16], head, tail, sum; static _Atomic long count, ready; static long plain[4][4096];
static NOINLINE void bump(long *p, _Atomic long *q) { pthread_mutex_lock(&m); (*p)++; pthread_mutex_unlock(&m); atomic_fetch_add(q, 2); }
static void *adder(void *v) { long n = (long)v; for (int i = 0; i < 4000; i++) { bump(HIDE(&locked), HIDE(&count)); long *p = HIDE(&plain[n][i & 4095]); *p += i; p[0] ^= n; } return 0; }
static void *consumer(void *v) { (void)v; for (int i = 0; i < 1000; i++) { pthread_mutex_lock(&m); while (head == tail) pthread_cond_wait(&c, &m); sum += *HIDE(&queue[head++ & 15]); pthread_cond_broadcast(&c); pthread_mutex_unlock(&m); } return (void *)sum; }
int main(void)
{
	pthread_t t[5]; void *r;
	for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, adder, (void *)i);
	pthread_create(&t[4], 0, consumer, 0);
	for (int i = 0; i < 1000; i++) { pthread_mutex_lock(&m); while (tail - head == 16) pthread_cond_wait(&c, &m); *HIDE(&queue[tail++ & 15]) = i * 3; pthread_cond_broadcast(&c); pthread_mutex_unlock(&m); }
	for (int i = 0; i < 5; i++) pthread_join(t[i], &r);
	mix(plain, sizeof plain);
	SHOW(r); SHOW(locked); SHOW(count);
	return 0;
}
