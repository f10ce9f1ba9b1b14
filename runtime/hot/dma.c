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
#include <linux/version.h>

unsigned long *hot_p2m;
unsigned long hot_p2m_frames;

/* What marks entries of the list that are not dom0's own memory (asm/xen/page.h). */
#define HOT_P2M_MARKS	(3ul << (BITS_PER_LONG - 2))

/* The machine frame of a struct page, which may be a guest's (transmit.c). */
static unsigned long hot_machine_frame(const struct page *page)
{
	unsigned long frame = page_to_pfn(page);

	if (frame >= hot_p2m_frames)
		return frame - hot_p2m_frames;
	return READ_ONCE(hot_p2m[frame]) & ~HOT_P2M_MARKS;
}

dma_addr_t dma_map_page_attrs(struct device *dev, struct page *page, size_t offset, size_t size,
			      enum dma_data_direction dir, unsigned long attrs)
{
	return ((dma_addr_t)hot_machine_frame(page) << PAGE_SHIFT) + offset;
}

void dma_unmap_page_attrs(struct device *dev, dma_addr_t addr, size_t size,
			  enum dma_data_direction dir, unsigned long attrs)
{
}

/* Since Linux 6.10 the names without underscores are inline, and skip these where they may. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define dma_sync_single_for_cpu		__dma_sync_single_for_cpu
#define dma_sync_single_for_device	__dma_sync_single_for_device
#endif

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
