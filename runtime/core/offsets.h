/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Offsets in struct twin_cpu and struct twin_instance that assembly uses. core/enter.c asserts each.
 */
#ifndef TWIN_OFFSETS_H
#define TWIN_OFFSETS_H

#define CPU_INSTANCE	16
#define CPU_CALL_CACHE	24
#define CPU_HOST_RSP	32
#define CPU_START_RSP	40
#define CPU_IN_DRIVER	48
#define CPU_ENTRY_FUNCTION 72
#define CPU_SAVED	80
#define CPU_RAX		(CPU_SAVED + 0)
#define CPU_RCX		(CPU_SAVED + 8)
#define CPU_RDX		(CPU_SAVED + 16)
#define CPU_RSI		(CPU_SAVED + 24)
#define CPU_RDI		(CPU_SAVED + 32)
#define CPU_R8		(CPU_SAVED + 40)
#define CPU_R9		(CPU_SAVED + 48)
#define CPU_R10		(CPU_SAVED + 56)
#define CPU_R11		(CPU_SAVED + 64)
#define CPU_FLAGS	(CPU_SAVED + 72)
#define CPU_RSP		(CPU_SAVED + 80)
#define CPU_SITE	(CPU_SAVED + 88)

#define CPU_STOP	176
#define CPU_LOCKS	180
#define CPU_LOCK	184
#define HELD_LOCKS	8	/* TWIN_HELD_LOCKS */

#define CPU_HOST_GS	480
#define CPU_STACK_LAYOUT 488
#define CPU_QUICK	496
#define CPU_QUICK_RSP	504
#define CPU_KEPT	512

#define INSTANCE_LAYOUT	64
#define INSTANCE_GATE	96
#define INSTANCE_DEAD	100	/* and maintain */
#define INSTANCE_ENTRIES 17184
#define INSTANCE_CALL_CACHE 17424

/* log2 of the call cache's entries: TWIN_CALL_SHIFT */
#define CALL_SHIFT	10
/* TWIN_ABORTED */
#define STATUS_ABORTED	1
/* TWIN_FROZEN */
#define STATUS_FROZEN	7

#endif /* TWIN_OFFSETS_H */
