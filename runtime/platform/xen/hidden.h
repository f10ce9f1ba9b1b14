/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Included before every C file of a payload, by the compiler's command line. A payload
 * has no GOT: whatever is declared after this is reached relative to rip.
 */
#pragma GCC visibility push(hidden)
