/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -mcx16 */
#include "feature.h"
typedef unsigned __int128 u;
static NOINLINE int swap(u *p, u *e, u v) { u old = __sync_val_compare_and_swap(p, *e, v); int r = old == *e; *e = old; return r; }
static NOINLINE u add(u *p, u v) { u e = *p; while (!__sync_bool_compare_and_swap(p, e, e + v)) e = *p; return e; }
static NOINLINE int raw(u *p, uint64_t *el, uint64_t *eh, uint64_t l, uint64_t h) { unsigned char ok; __asm__ volatile("lock cmpxchg16b %1\n\tsete %0" : "=q"(ok), "+m"(*p), "+a"(*el), "+d"(*eh) : "b"(l), "c"(h) : "cc"); return ok; }
static NOINLINE int eight(uint64_t *p, uint32_t *el, uint32_t *eh, uint32_t l, uint32_t h) { unsigned char ok; __asm__ volatile("lock cmpxchg8b %1\n\tsete %0" : "=q"(ok), "+m"(*p), "+a"(*el), "+d"(*eh) : "b"(l), "c"(h) : "cc"); return ok; }
int main(void)
{
	u x[2] = { 5, (u)7 << 64 | 9 }, e = 4; uint64_t l = 1, h = 2, y = 0x300000004; uint32_t a = 4, b = 3;
	SHOW(swap(HIDE(&x[0]), HIDE(&e), 77)); SHOW(swap(HIDE(&x[0]), HIDE(&e), 77)); SHOW(add(HIDE(&x[1]), ((u)1 << 64) | (uint64_t)-1)); SHOW(x[1]);
	SHOW(raw(HIDE(&x[1]), HIDE(&l), HIDE(&h), 3, 4)); SHOW(raw(HIDE(&x[1]), HIDE(&l), HIDE(&h), 3, 4)); SHOW(x[1]);
	SHOW(eight(HIDE(&y), HIDE(&a), HIDE(&b), 9, 8)); SHOW(eight(HIDE(&y), HIDE(&a), HIDE(&b), 9, 8)); SHOW(y);
	return 0;
}
