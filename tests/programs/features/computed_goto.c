/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
static NOINLINE long absolute(const unsigned char *pc, long *regs)
{
	static const void *const ops[] = { &&halt, &&add, &&mul, &&load, &&store, &&jnz, &&dec };
	goto *ops[*pc++];
add:	regs[0] += regs[*pc++]; goto *ops[*pc++];
mul:	regs[0] *= regs[*pc++]; goto *ops[*pc++];
load:	regs[0] = regs[*pc++]; goto *ops[*pc++];
store:	regs[*pc++] = regs[0]; goto *ops[*pc++];
dec:	regs[*pc++]--; goto *ops[*pc++];
jnz:	if (regs[*pc]) pc = pc - pc[1]; else pc += 2; goto *ops[*pc++];
halt:	return regs[0];
}
static NOINLINE long relative(const unsigned char *pc, int *p)
{
	static const int ops[] = { &&end - &&end, &&one - &&end, &&two - &&end, &&three - &&end };
	long s = 0;
next:	goto *(&&end + ops[*pc++]);
one:	s = s * 3 + p[0]++; goto next;
two:	s ^= p[1] += 5; goto next;
three:	s += p[2] *= 3; goto next;
end:	return s;
}
static NOINLINE long stored(int n, long *p)
{
	void *go[3] = { &&a, &&b, &&c }, *volatile next = &&a;
	long s = 0;
	goto *next;
a:	s += p[0] * 2; next = go[n % 3]; if (n-- == 0) return s; goto *next;
b:	s ^= p[1] + n; next = go[(n + 1) % 3]; if (n-- == 0) return s; goto *next;
c:	s = s * 5 + p[2]; next = go[(n + 2) % 3]; if (n-- == 0) return s; goto *next;
}
int main(void)
{
	long r[4] = { 1, 3, 10, 0 };
	int q[3] = { 1, 2, 3 };
	SHOW(absolute((const unsigned char[]){ 3, 1, 2, 1, 1, 1, 6, 2, 5, 2, 7, 0 }, HIDE(&r[0])));
	SHOW(relative((const unsigned char[]){ 1, 2, 3, 1, 2, 3, 3, 2, 1, 0 }, HIDE(&q[0])));
	SHOW(stored(17, HIDE(&r[0])));
	mix(r, sizeof r); mix(q, sizeof q);
	SHOW(r[0]);
	return 0;
}
