// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A hypercall more, of test builds alone (make xen-test): runs one of the functions of
 * driver.S in the attached instance, with twin_enter's result; or writes a
 * word (retype.c), or hashes Xen's text (text.c), or keeps the lock.
 */
#include "../../platform/xen/platform.h"
#include "retype.h"

/* retype.c, text.c */
long xen_test_write(const void *argument);
long xen_test_text(void);

extern const char xen_test_start[], xen_test_end[];
extern const char xen_test_return[], xen_test_divide[], xen_test_invalid[], xen_test_protection[],
	xen_test_fetch[], xen_test_recurse[], xen_test_touch[], xen_test_loop[],
	xen_test_edge[];

#define FIRST 0x74776f00u

static const char *function_of(unsigned int number)
{
	const char *const functions[] = {
		xen_test_return, xen_test_divide, xen_test_invalid, xen_test_protection,
		xen_test_fetch, xen_test_recurse, xen_test_touch, xen_test_loop,
		xen_test_edge,
	};

	return number - FIRST < sizeof(functions) / sizeof(*functions) ?
	       functions[number - FIRST] : NULL;
}

long xen_test(unsigned int number, uint64_t argument)
{
	const char *function = function_of(number);
	uint64_t result;
	long status = TWIN_OK;

	if (number == XEN_RETYPE_WRITE)
		return xen_test_write((const void *)argument);
	if (number == XEN_TEST_TEXT)
		return xen_test_text();
	if (number == XEN_TEST_LOCK)
		return xen_lock_patiently() ? 0 : -XEN_EAGAIN;
	if (number == XEN_TEST_UNLOCK) {
		xen_unlock();
		return 0;
	}
	if (!function || !xen_attached())
		return -XEN_ENOSYS;
	if (!xen_lock_patiently())
		return -XEN_EAGAIN;
	if (!twin_instance_has_text(&xen_instance, (uint64_t)xen_test_start))
		status = twin_instance_add_text(&xen_instance, (uint64_t)xen_test_start,
						(uint64_t)xen_test_end);
	if (status == TWIN_OK)
		status = xen_run(function, argument, 0, 0, &result);
	xen_unlock();
	return status;
}
