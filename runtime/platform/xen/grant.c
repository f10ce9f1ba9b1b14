// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Guests' pages, by Xen's own rules for a copy between grants: the grant is looked up and
 * checked each time, and while bytes are copied the page has a reference, and one as a
 * writable page where it is written. So it is nobody's page table and nobody else's.
 *
 * Those rules take locks of Xen's and may flush other processors' TLBs: nothing here is called with
 * interrupts off (receive.c has the reason).
 */
#include "netif.h"
#include "platform.h"

/* Guests grant to the domain of their backend. */
#define DOM0 0

/* In the order of Xen's own copies (grant_table.c, gnttab_copy_release_buf): the grant, whose release
 * may mark the page as written to, while the page is still what it was granted as. */
static inline void give_back(struct domain *guest, uint32_t reference, bool readonly,
			     struct page_info *page, bool typed)
{
	release_grant_for_copy(guest, reference, readonly);
	if (typed)
		put_page_type(page);
	put_page(page);
}

/* For each packet: part of its two callers, which know what `readonly` is. */
#define INLINE static inline __attribute__((always_inline))

/* The page's bytes, of which the first `end` are used; NULL if it is not to be had. */
INLINE uint8_t *take(struct domain *guest, uint32_t reference, bool readonly, uint32_t end,
		     struct page_info **page)
{
	uint16_t offset, length;
	unsigned long frame;

	if (end > NETIF_GRANT_SIZE ||
	    acquire_grant_for_copy(guest, reference, DOM0, readonly, &frame, page, &offset, &length,
				   false))
		return NULL;
	/* Part of a page only, or a page that is a table. */
	if (offset || length < end ||
	    (!readonly && !get_page_type(*page, XEN_TYPE_WRITABLE << XEN_TYPE_SHIFT))) {
		give_back(guest, reference, readonly, *page, false);
		return NULL;
	}
	/* All memory of a machine without any above 4 GiB is there (attach.c). */
	return xen_at((uint64_t)frame << TWIN_PAGE_SHIFT);
}

/* Where parts that begin at `offset` end, or more than a page has. */
static uint32_t end_of(uint32_t offset, const struct xen_part *parts, uint32_t count)
{
	uint32_t i, end = offset;

	for (i = 0; i < count && end <= NETIF_GRANT_SIZE; i++)
		end = parts[i].bytes <= NETIF_GRANT_SIZE ? end + parts[i].bytes : ~0u;
	return end;
}

bool xen_grant_read(struct domain *guest, uint32_t reference, uint32_t offset,
		    const struct xen_part *parts, uint32_t count)
{
	struct page_info *page;
	/* Which refuses what ends behind the page. */
	const uint8_t *from = take(guest, reference, true, end_of(offset, parts, count), &page);
	uint32_t i;

	if (!from)
		return false;
	for (i = 0, from += offset; i < count; from += parts[i++].bytes)
		memcpy(parts[i].to, from, parts[i].bytes);
	give_back(guest, reference, true, page, false);
	return true;
}

/* The part at `at` of a packet, at most `most` bytes: how many were copied. */
static uint32_t copy_part(uint8_t *to, const struct xen_bytes *bytes, uint32_t at, uint32_t most)
{
	const bool first = at < bytes->first_length;
	const uint32_t in_buffers = at - bytes->first_length;
	const uint32_t room = first ? bytes->first_length - at :
			      TWIN_PAGE_SIZE - in_buffers % TWIN_PAGE_SIZE;
	const uint32_t count = most < room ? most : room;

	if (first)
		memcpy(to, (const uint8_t *)bytes->first + at, count);
	else
		memcpy(to, (const uint8_t *)xen_buffer_page(bytes->buffer, in_buffers) +
		       in_buffers % TWIN_PAGE_SIZE, count);
	return count;
}

static __attribute__((noinline)) void copy_parts(uint8_t *to, const struct xen_bytes *bytes,
						 uint32_t from, uint32_t count)
{
	uint32_t at;

	for (at = 0; at < count;)
		at += copy_part(to + at, bytes, from + at, count - at);
}

bool xen_grant_write(struct domain *guest, uint32_t reference, const struct xen_bytes *bytes,
		     uint32_t from, uint32_t count)
{
	struct page_info *page;
	uint8_t *to = take(guest, reference, false, count, &page);

	if (!to)
		return false;
	/* All of it in one place, as of most packets. */
	if (from <= bytes->first_length && count <= bytes->first_length - from)
		memcpy(to, (const uint8_t *)bytes->first + from, count);
	else
		copy_parts(to, bytes, from, count);
	give_back(guest, reference, false, page, true);
	return true;
}
