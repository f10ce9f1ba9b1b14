// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * twin_hot.ko: the native instance of the hot routines, whose data the rewritten
 * instance inside Xen uses. The module exports nothing and does nothing by itself:
 * twin_dom0.ko calls it. Its memory is dom0's again when it is unloaded.
 */
#include "dom0.h"
#include <linux/mm.h>
#include <linux/module.h>
#include "hot.h"
#include "internal.h"

static const struct twin_hot hot = {
	.setup = hot_setup,
	.recover = hot_recover,
	.buffers = hot_buffers,
	.shared = hot_shared,
	.vif = &hot_vif,
	.vif_pending = &hot_vif_pending,
	.host_holds = &hot_host_holds,
	.machine_frames = &hot_machine_frames,
	.p2m = &hot_p2m,
	.p2m_frames = &hot_p2m_frames,
};

static struct twin_hot registered;

static int __init hot_module_init(void)
{
	registered = hot;
	registered.owner = THIS_MODULE;
	registered.constants = &hot;
	registered.percpu = THIS_MODULE->percpu;
	return hot_register(&registered);
}

/*
 * Nothing is attached, and the interface was closed since: its rings hold nothing of the pools, and Xen holds no page of
 * them. The allocator gave pages with one reference for all; the pools' have others.
 */
static void __exit give_back(unsigned long base, size_t bytes)
{
	const unsigned int order = get_order(bytes);
	u32 i;

	if (!base)
		return;
	for (i = 0; i < 1u << order; i++)
		set_page_count(virt_to_page(base + i * PAGE_SIZE), !i);
	free_pages(base, order);
}

static void __exit hot_module_exit(void)
{
	u32 i;

	hot_unregister(&registered);
	for (i = 0; i < HOT_POOLS; i++)
		give_back(hot_pools[i].base, (size_t)hot_pools[i].count << hot_pools[i].shift);
	for (i = 0; i < HOT_CPUS; i++) {
		give_back(hot_shared[i].requests, HOT_REQUESTS_BYTES);
		give_back(hot_shared[i].tx_done, HOT_TX_DONE_BYTES);
		give_back(hot_shared[i].release, HOT_RELEASE_BYTES);
	}
}

module_init(hot_module_init);
module_exit(hot_module_exit);
MODULE_DESCRIPTION("TwinDrivers' hot routines, natively in dom0");
MODULE_LICENSE("Dual MIT/GPL");
