/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What modules of tests ask platform.c for: one write through the window on a processor of choice,
 * by xen_retype.ko; a hash, and that Xen refuses, by xen_faults.ko.
 */
#ifndef TWIN_XEN_RETYPE_H
#define TWIN_XEN_RETYPE_H

#define XEN_RETYPE_WRITE 0x74776f40u	/* hypercall argument 1; 2 is a struct xen_retype */

struct xen_retype {
	uint64_t address;	/* dom0's */
	uint64_t value;
	uint32_t processor;
	/* That processor stays out of dom0's dirty mask: the fault that the test must find. Only
	 * where no virtual processor of dom0 ever runs. */
	uint32_t stay_out;
};

#define XEN_TEST_TEXT 0x74776f41u	/* a hash of Xen's text */
#define XEN_TEST_LOCK 0x74776f42u	/* the platform's lock is taken, and stays so: the device is not given back */
#define XEN_TEST_UNLOCK 0x74776f43u

/* Results; negative: an errno. */
#define XEN_RETYPE_REFUSED 0	/* nothing there to write to */
#define XEN_RETYPE_WRITTEN 1

#endif /* TWIN_XEN_RETYPE_H */
