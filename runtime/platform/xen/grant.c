// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Guests' pages, by Xen's own rules for a copy between grants: the grant is looked up and
 * checked each time, and while bytes are copied the page has a reference, and one as a
 * writable page where it is written. So it is nobody's page table and nobody else's.
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
	uint8_t *bytes;		/* mapped */
};

static void give_back(const struct page *page)
{
	put_page(page->info);
	release_grant_for_copy(page->guest, page->reference, page->readonly);
}

/* `end` is how far the copy goes. */
static bool take(struct page *page, struct domain *guest, uint32_t reference, bool readonly,
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
		give_back(page);
		return false;
	}
	page->bytes = map_domain_page(frame);
	return true;
}

static void release(const struct page *page)
{
	unmap_domain_page(page->bytes);
	if (!page->readonly)
		put_page_type(page->info);
	give_back(page);
}

bool xen_grant_read(struct domain *guest, uint32_t reference, uint32_t offset, void *to,
		    uint32_t bytes)
{
	struct page page;

	if (bytes > NETIF_GRANT_SIZE || offset > NETIF_GRANT_SIZE ||
	    !take(&page, guest, reference, true, offset + bytes))
		return false;
	memcpy(to, page.bytes + offset, bytes);
	release(&page);
	return true;
}

bool xen_grant_write(struct domain *guest, uint32_t reference, const struct xen_bytes *bytes)
{
	struct page page;
	bool copied = true;

	if (bytes->first_length > NETIF_GRANT_SIZE || bytes->second_length > NETIF_GRANT_SIZE ||
	    !take(&page, guest, reference, false, bytes->first_length + bytes->second_length))
		return false;
	if (bytes->first)
		memcpy(page.bytes, bytes->first, bytes->first_length);
	else
		copied = xen_dom0_read(page.bytes, bytes->dom0, bytes->first_length);
	if (bytes->second_length)
		memcpy(page.bytes + bytes->first_length, bytes->second, bytes->second_length);
	release(&page);
	return copied;
}
