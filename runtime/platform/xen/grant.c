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

struct page {
	struct domain *guest;
	uint32_t reference;
	bool readonly;
	struct page_info *info;
	uint8_t *bytes;
};

/* In the order of Xen's own copies (grant_table.c, gnttab_copy_release_buf): the grant, whose release
 * may mark the page as written to, while the page is still what it was granted as. */
static void give_back(const struct page *page, bool typed)
{
	release_grant_for_copy(page->guest, page->reference, page->readonly);
	if (typed)
		put_page_type(page->info);
	put_page(page->info);
}

/* For each packet: part of its two callers, which know what `readonly` is. */
#define INLINE static inline __attribute__((always_inline))

/* `end` is how far the copy goes. */
INLINE bool take(struct page *page, struct domain *guest, uint32_t reference, bool readonly,
		 uint32_t end)
{
	uint16_t offset, length;
	unsigned long frame;

	*page = (struct page){ .guest = guest, .reference = reference, .readonly = readonly };
	if (end > NETIF_GRANT_SIZE ||
	    acquire_grant_for_copy(guest, reference, DOM0, readonly, &frame, &page->info,
				   &offset, &length, false))
		return false;
	/* Part of a page only, or a page that is a table. */
	if (offset || length < end ||
	    (!readonly && !get_page_type(page->info, XEN_TYPE_WRITABLE << XEN_TYPE_SHIFT))) {
		give_back(page, false);
		return false;
	}
	/* All memory of a machine without any above 4 GiB is there (attach.c). */
	page->bytes = xen_at((uint64_t)frame << TWIN_PAGE_SHIFT);
	return true;
}

INLINE void release(const struct page *page)
{
	give_back(page, !page->readonly);
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
	struct page page;
	uint32_t i;

	/* Which refuses what ends behind the page. */
	if (!take(&page, guest, reference, true, end_of(offset, parts, count)))
		return false;
	for (i = 0; i < count; offset += parts[i++].bytes)
		memcpy(parts[i].to, page.bytes + offset, parts[i].bytes);
	release(&page);
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

bool xen_grant_write(struct domain *guest, uint32_t reference, const struct xen_bytes *bytes,
		     uint32_t from, uint32_t count)
{
	struct page page;
	uint32_t at;

	if (!take(&page, guest, reference, false, count))
		return false;
	for (at = 0; at < count;)
		at += copy_part(page.bytes + at, bytes, from + at, count - at);
	release(&page);
	return true;
}
