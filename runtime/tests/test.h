/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A test is a function; CHECK says what must hold in it and, if it does not,
 * where. The last line of a test program is read by run.sh.
 */
#ifndef TWIN_TEST_H
#define TWIN_TEST_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

/* One each for a program, of however many files. */
__attribute__((weak)) unsigned int passed, failed;
__attribute__((weak)) int holds;

#define CHECK(condition)							\
	do {									\
		if (!(condition)) {						\
			fprintf(stderr, "%s:%d: %s: not so: %s\n", __FILE__,	\
				__LINE__, __func__, #condition);		\
			holds = 0;						\
		}								\
	} while (0)

#define CHECK_EQUAL(got, wanted)						\
	do {									\
		uint64_t got_ = (uint64_t)(got), wanted_ = (uint64_t)(wanted);	\
		if (got_ != wanted_) {						\
			fprintf(stderr,						\
				"%s:%d: %s: %s is %#" PRIx64 ", not %#" PRIx64 "\n", \
				__FILE__, __LINE__, __func__, #got, got_, wanted_); \
			holds = 0;						\
		}								\
	} while (0)

#define RUN(test)								\
	do {									\
		holds = 1;							\
		test();								\
		if (holds)							\
			passed++;						\
		else								\
			failed++;						\
	} while (0)

static inline int test_summary(void)
{
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}

#endif /* TWIN_TEST_H */
