/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Addresses of the window32 tests, for C and for assembly.
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

#endif /* TWIN_TEST_WINDOW_H */
