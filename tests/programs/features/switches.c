/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
static NOINLINE long negative(const signed char *p, long *q) { switch (*p) { case -5: return q[0]; case -4: return q[1] * 3; case -3: return q[0] - q[1]; case -2: q[2]++; return 7; case -1: return q[2]; case 0: return -q[0]; case 1: return q[1] ^ 9; case 2: return 1L << (q[0] & 31); default: return -99; } }
static NOINLINE long wide(long long v, const int *p) { switch (v) { case 0x100000000LL: return p[0]; case 0x100000001LL: return p[1]; case 0x100000002LL: return p[2] + 1; case 0x100000003LL: return p[0] * p[1]; case 0x100000004LL: return p[3]; case 0x100000005LL: return p[1] + 5; case 0x100000006LL: return 6; default: return p[0] ^ 0x77; } }
static NOINLINE long ranges(unsigned v, const int *p) { switch (v) { case 0 ... 9: return p[0]; case 10: return p[1]; case 11 ... 20: return p[2]; case 1000 ... 2000: return p[3]; case 0xfffffff0u ... 0xffffffffu: return p[4]; case 30: return p[5] * p[0]; case 31: return 3; case 32: return p[0] + 3; case 33: return p[1]; case 34: return p[5] - 9; } return p[6]; }
static NOINLINE long machine(const char *s, long *count)
{
	enum { START, WORD, NUMBER, SPACE, QUOTE, DONE } state = START;
	for (;; s++)
		switch (state) {
		case START: if (!*s) state = DONE; else if (*s == '"') state = QUOTE; else if (*s == ' ') state = SPACE; else state = *s >= '0' && *s <= '9' ? NUMBER : WORD; s--; if (state == DONE) return count[0] * 1000 + count[1] * 100 + count[2] * 10 + count[3]; if (state == QUOTE) s++; break;
		case WORD: if (*s >= 'a') break; count[0]++; state = START; s--; break;
		case NUMBER: if (*s >= '0' && *s <= '9') break; count[1]++; state = START; s--; break;
		case SPACE: if (*s == ' ') break; count[2]++; state = START; s--; break;
		case QUOTE: if (*s && *s != '"') break; count[3]++; state = START; if (!*s) s--; break;
		case DONE: return -1;
		}
}
int main(void)
{
	long q[3] = { 100, 31, 7 }, s = 0, count[4] = { 0 };
	int p[7] = { 3, 5, 7, 11, 13, 17, 19 };
	for (int i = -8; i < 6; i++) { signed char c = (signed char)i; s = s * 31 + negative(HIDE(&c), HIDE(&q[0])); }
	SHOW(s);
	for (long long v = 0xfffffffell; v < 0x10000000all; v++) s = s * 31 + wide(v, HIDE(&p[0]));
	SHOW(s);
	for (unsigned v = 0; v < 40; v++) s = s * 31 + ranges(v, p) + ranges(v + 990, p) + ranges(v - 20, p);
	SHOW(s);
	SHOW(machine("some 12 words \"and a quote\" 77 end ", count));
	return 0;
}
