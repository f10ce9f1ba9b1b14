// SPDX-License-Identifier: GPL-2.0-only
/*
 * release.c: the kernel that this was compiled for, in the form that modules have it.
 *
 * Structures of another kernel may have their fields elsewhere, so the host
 * refuses a driver whose `vermagic` names another release, as a kernel does.
 */
#define INCLUDE_VERMAGIC
#include <linux/compiler.h>
#include <linux/vermagic.h>

static const char kernel_vermagic[] __used __section(".modinfo") = "vermagic=" VERMAGIC_STRING;
