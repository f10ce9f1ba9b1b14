/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Addresses of the tests of window32 and window, for C and for assembly.
 */
#ifndef TWIN_TEST_WINDOW_H
#define TWIN_TEST_WINDOW_H

/* The window, at an odd page: nothing depends on its alignment. */
#define WINDOW		0x300000003000
/* What twin_stack_view is. */
#define WINDOW_VIEW	0x200000000000
/* Stack blocks, one of them above 4 GiB. */
#define WINDOW_BLOCK	0x180041000000
#define WINDOW_OTHER	0x42000000
/* A page of dom0's at the window's end. */
#define LAST		0xffff8880fffff000

/* The same for the scheme window. Mirror and guards are around its window. */
#define WIDE_WINDOW	0x280000003000
/* Together with the blocks' bits 32 to 41 it is 0 there. */
#define WIDE_VIEW	0x1ffb00000000
#define WIDE_BLOCK	0x140541000000
#define WIDE_OTHER	0x1c0542000000
#define WIDE_LAST	0xffff8bfffffff000
/* dom0's pages in the mirror, whose low half extended by its sign is all of it. */
#define TABLE		0xffffffffc0000000
#define TABLE_LOW	(-0x40000000)
/* The mirror's first page, as dom0 has it. */
#define BORDER		0xffffffff80000000

#endif /* TWIN_TEST_WINDOW_H */
