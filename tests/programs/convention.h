/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Functions of one calling convention, and a caller that keeps many values over calls
 * of them: what the convention lets it, in registers. Included once for each.
 *
 *   NAME(x)  the name of `x` for this convention
 *   CC       its attribute
 *   HERE     1: define the callees; 2: define the caller
 */
struct NAME(table) {
	long count;
	CC long (*get)(const long *);
	CC void (*put)(long *, long);
};

CC long NAME(get)(const long *p);
CC void NAME(put)(long *p, long v);
CC long NAME(mix)(const long *p, long a, long b, long c, long d, long e, long f, long g);
long NAME(use)(const struct NAME(table) *t, long *p, long a, long b, long c, long d);

#if HERE == 1

/* One access and few registers: all others are the caller's. */
CC long NAME(get)(const long *p)
{
	return p[1];
}

CC void NAME(put)(long *p, long v)
{
	p[2] = v;
	p[3] += p[2];
}

CC long NAME(mix)(const long *p, long a, long b, long c, long d, long e, long f, long g)
{
	long s = p[0] * a + p[1] * b + p[2] * c;

	for (long i = 0; i < 4; i++)
		s = s * 3 + p[i] * d + e * i - f + (g ^ s >> 7);
	return s;
}

#else

static NOINLINE CC long NAME(local)(const long *p)
{
	return p[0] + 1;
}

/* Calls out of the file, through memory, and inside the file. */
long NAME(use)(const struct NAME(table) *t, long *p, long a, long b, long c, long d)
{
	long w = p[3], x = p[0] * a, y = b - c, z = d ^ a, s = 0;

	for (int i = 0; i < 3; i++) {
		long u = w + i, v = x - i;

		s = s * 5 + NAME(get)(p) * x + u;
		NAME(put)(p, y + i);
		s += t->get(p) * z - v;
		t->put(p, s & 0xff);
		s ^= NAME(local)(p) * w + NAME(mix)(p, a, b, c, d, x, y, z);
		s += (a * b) ^ (c + d) ^ u ^ v;
	}
	return s + t->count + a + b + c + d + w + x + y + z;
}

#endif
#undef NAME
#undef CC
