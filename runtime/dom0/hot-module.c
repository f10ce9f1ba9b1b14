// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * twin_hot.ko: the native instance of the hot routines, whose data the rewritten
 * instance inside Xen uses. The module exports nothing and does nothing by itself:
 * twin_dom0.ko calls it.
 */
#include "dom0.h"
#include <linux/module.h>
#include "hot.h"

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
	registered.percpu = THIS_MODULE->percpu;
	return hot_register(&registered);
}

static void __exit hot_module_exit(void)
{
	hot_unregister(&registered);
}

module_init(hot_module_init);
module_exit(hot_module_exit);
MODULE_DESCRIPTION("TwinDrivers' hot routines, natively in dom0");
MODULE_LICENSE("Dual MIT/GPL");
