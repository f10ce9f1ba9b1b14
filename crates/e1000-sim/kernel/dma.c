// SPDX-License-Identifier: GPL-2.0-only
/*
 * dma.c: DMA masks and coherent memory. A machine address is a DMA address and
 * all memory is coherent. hot.o maps and syncs packets.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>

#include "shim.h"

static bool mask_covers_memory(u64 mask)
{
	return mask >= boot.machine_frames * PAGE_SIZE - 1;
}

int dma_set_mask(struct device *dev, u64 mask)
{
	if (!dev->dma_mask || !mask_covers_memory(mask))
		return -EIO;
	*dev->dma_mask = mask;
	return 0;
}

int dma_set_coherent_mask(struct device *dev, u64 mask)
{
	if (!mask_covers_memory(mask))
		return -EIO;
	dev->coherent_dma_mask = mask;
	return 0;
}

/* Zeroed, and aligned to its size rounded up to a power of two. */
void *dma_alloc_attrs(struct device *dev, size_t size, dma_addr_t *handle, gfp_t gfp,
		      unsigned long attrs)
{
	unsigned long count = DIV_ROUND_UP(size, PAGE_SIZE);
	struct page *page = NULL;

	if (!allocation_fails())
		page = frames_allocate(count, roundup_pow_of_two(count));
	if (!page)
		return NULL;
	memset(page_address(page), 0, count * PAGE_SIZE);
	*handle = page_to_phys(page);
	return page_address(page);
}

void dma_free_attrs(struct device *dev, size_t size, void *address, dma_addr_t handle,
		    unsigned long attrs)
{
	struct page *page = virt_to_page(address);

	if (!address)
		return;
	if (page_to_phys(page) != handle || page_private(page) != DIV_ROUND_UP(size, PAGE_SIZE))
		kernel_bug("dma: %zu bytes at %p (%pad) were not allocated so", size, address, &handle);
	frames_free(page);
}
