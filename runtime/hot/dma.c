// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * DMA mapping: the machine address of a page, dom0's or a guest's (paper,
 * 5.3: "return the correct guest machine page addresses").
 *
 * The device can reach all machine memory, which is coherent, so unmapping and
 * synchronising do nothing. The NIC model checks what the device may reach at each
 * access; it is not checked here.
 */
#include "internal.h"
#include <linux/dma-mapping.h>
#include <linux/mm.h>

dma_addr_t dma_map_page_attrs(struct device *dev, struct page *page, size_t offset, size_t size,
			      enum dma_data_direction dir, unsigned long attrs)
{
	return ((dma_addr_t)page_to_pfn(page) << PAGE_SHIFT) + offset;
}

void dma_unmap_page_attrs(struct device *dev, dma_addr_t addr, size_t size,
			  enum dma_data_direction dir, unsigned long attrs)
{
}

void dma_sync_single_for_cpu(struct device *dev, dma_addr_t addr, size_t size,
			     enum dma_data_direction dir)
{
}

void dma_sync_single_for_device(struct device *dev, dma_addr_t addr, size_t size,
				enum dma_data_direction dir)
{
}

/*
 * Drivers call this to refuse mapping memory outside the direct map. dom0 has no
 * memory but the direct map's for which virt_to_page() works.
 */
bool is_vmalloc_addr(const void *x)
{
	return (unsigned long)x - page_offset_base >= vmemmap_base - page_offset_base;
}
