/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The driver of window.S for the scheme window.
 */
#define WIDE
#include "window.S"
