// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Copies from and to guests' pages: platform/xen/grant.c. Whatever is refused, all that was taken
 * is given back, in the order of Xen's own copies.
 */
#include <string.h>

#include "../platform/xen/platform.h"
#include "test.h"

#include "../platform/xen/grant.c"

/* ---- What stands for Xen ------------------------------------------------------------------ */

const uint64_t twin_value_directmap = 0;
static _Alignas(4096) uint8_t guest_page[4096];
static uint8_t buffer[2][4096];

/* What is held: a grant with its page, and the page's type. */
static bool granted, typed, paged;
/* What Xen is to say. */
static bool no_grant, no_type;
static uint16_t granted_offset, granted_length;

int16_t acquire_grant_for_copy(struct domain *domain, uint32_t reference, uint16_t ldom,
			       bool readonly, unsigned long *frame, struct page_info **page,
			       uint16_t *offset, uint16_t *length, bool transitive)
{
	(void)domain;
	(void)reference;
	(void)readonly;
	CHECK_EQUAL(ldom, 0);
	CHECK(!transitive);
	CHECK(!granted && !typed && !paged);
	if (no_grant)
		return -1;
	*frame = (uint64_t)guest_page >> 12;
	*page = (struct page_info *)guest_page;
	*offset = granted_offset;
	*length = granted_length;
	granted = paged = true;
	return 0;
}

/* Which may mark the page as written to: it is still there, and a writable one. */
void release_grant_for_copy(struct domain *domain, uint32_t reference, bool readonly)
{
	(void)domain;
	(void)reference;
	CHECK(granted && paged);
	CHECK(readonly || typed || no_type || granted_length < 4096);
	granted = false;
}

int get_page_type(struct page_info *page, unsigned long type)
{
	(void)page;
	CHECK_EQUAL(type, XEN_TYPE_WRITABLE << XEN_TYPE_SHIFT);
	CHECK(paged);
	typed = !no_type;
	return typed;
}

void put_page_type(struct page_info *page)
{
	(void)page;
	CHECK(typed && paged && !granted);
	typed = false;
}

void put_page(struct page_info *page)
{
	CHECK(page == (struct page_info *)guest_page);
	CHECK(paged && !typed && !granted);
	paged = false;
}

void *xen_buffer_page(uint32_t first, uint32_t at)
{
	return buffer[first + at / 4096];
}

/* ---- Tests -------------------------------------------------------------------------------- */

static void begin(void)
{
	memset(guest_page, 0x11, sizeof(guest_page));
	memset(buffer, 0x22, sizeof(buffer));
	granted = typed = paged = no_grant = no_type = false;
	granted_offset = 0;
	granted_length = 4096;
}

static const uint8_t header[100] = { 0x33 };

static bool write(uint32_t from, uint32_t count)
{
	const struct xen_bytes bytes = {
		.first = header, .first_length = sizeof(header), .buffer = 0, .buffer_length = 6000,
	};
	const bool done = xen_grant_write(NULL, 5, &bytes, from, count);

	CHECK(!granted && !typed && !paged);
	return done;
}

static bool read(uint32_t offset, uint32_t bytes)
{
	static uint8_t to[4096];
	const struct xen_part part = { .to = to, .bytes = bytes };
	const bool done = xen_grant_read(NULL, 5, offset, &part, 1);

	CHECK(!granted && !typed && !paged);
	return done;
}

static void what_was_taken_is_given_back(void)
{
	begin();
	CHECK(write(0, 4096));
	CHECK_EQUAL(guest_page[0], 0x33);
	CHECK_EQUAL(guest_page[100], 0x22);
	CHECK(write(4096, 2004));
	CHECK(read(4000, 96));
}

static void what_is_refused_is_given_back(void)
{
	begin();
	CHECK(!write(0, 4097));
	CHECK(!read(4000, 97));
	no_type = true;
	CHECK(!write(0, 4096));
	no_type = false;
	no_grant = true;
	CHECK(!write(0, 60));
	no_grant = false;
	granted_length = 50;
	CHECK(!write(0, 60));
	CHECK(!read(0, 60));
	granted_offset = 8;
	granted_length = 4000;
	CHECK(!write(0, 60));
	CHECK_EQUAL(guest_page[0], 0x11);
}

int main(void)
{
	RUN(what_was_taken_is_given_back);
	RUN(what_is_refused_is_given_back);
	return test_summary();
}
