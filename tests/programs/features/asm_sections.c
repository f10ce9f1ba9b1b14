/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Inline assembly that goes to another section where a jump through a table arrives, as probes
   do, and a table of labels in a section with a name of information. */
#include "feature.h"

#define PROBE(name) \
    __asm__ volatile(".pushsection .probes,\"a\"\n\t.asciz \"" name "\"\n\t.popsection")

__attribute__((noinline)) static int by_switch(int i, int *p, int e)
{
    int c = e;

    switch (i) {
    case 0:
        c += p[0];
        /* falls through */
    case 1:
        PROBE("one");
        c += p[1] * 3 + p[2];
        break;
    case 2:
        c ^= 5;
        break;
    case 3:
        c *= p[3];
        break;
    case 4:
        c -= p[1];
        break;
    case 5:
        c += 77;
        break;
    default:
        c = 1;
    }
    return c;
}

__attribute__((noinline)) static int by_label(long i, int *p, int e)
{
    static void *const t[] = {&&a, &&b};
    int c = e, d, g;

    goto *t[i];
a:
    c = p[0];
b:
    PROBE("two");
    d = p[1];
    g = p[2];
    return c + d + g;
}

__attribute__((noinline)) static int by_note(long i, int *p, int e)
{
    static void *const t[] __attribute__((section(".note.t"))) = {&&a, &&b};
    int c = e, d, g;

    goto *t[i];
a:
    c = p[0];
b:
    d = p[1];
    g = p[2];
    return c + d + g;
}

int main(void)
{
    int a[4] = {1, 20, 300, 4};

    for (int i = 0; i < 7; i++)
        printf("%d ", by_switch(i, a, 7));
    for (int i = 0; i < 2; i++)
        printf("%d %d ", by_label(i, a, 7), by_note(i, a, 7));
    puts("");
    return 0;
}
