// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A dom0 whose driver writes to the card's registers all the time, as its watchdog does each two
 * seconds (e1000_watchdog): on another virtual processor than the one that attaches and detaches.
 *
 *   insmod xen_writer.ko interface=NAME processor=N
 *
 * It writes until it is removed, where the driver has its registers mapped: ICS, no bit, which is
 * nothing to the card (Intel, 317453, 13.4.18). Reading `written` gives how often, and `longest` the most
 * nanoseconds between two writes since that was set to 0: for so long this processor stood.
 *
 * A write to a page that is read-only, and that Xen does not guard, ends the writer by an oops
 * (dom0/registers.c).
 */
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <asm/pgtable.h>
#include <asm/xen/page.h>

#define PRIVATE_WORDS	512	/* of the driver's structure that are looked at */
#define ICS		0x00c8

static char *interface = "eth0";
module_param(interface, charp, 0400);
static int processor = 1;
module_param(processor, int, 0400);
static ulong written;
module_param(written, ulong, 0400);
static ulong longest;
module_param(longest, ulong, 0600);

static struct task_struct *task;

/* As dom0/card.c finds it. */
static void __iomem *registers_of(struct net_device *dev)
{
	const unsigned long frame = PFN_DOWN(pci_resource_start(to_pci_dev(dev->dev.parent), 0));
	const unsigned long *words = netdev_priv(dev);
	unsigned int level;
	pte_t *entry;
	u32 i;

	for (i = 0; i < PRIVATE_WORDS; i++) {
		if (!is_vmalloc_addr((void *)words[i]) || !PAGE_ALIGNED(words[i]))
			continue;
		entry = lookup_address(words[i], &level);
		if (entry && level == PG_LEVEL_4K && pte_present(*entry) && pte_mfn(*entry) == frame)
			return (void __iomem *)words[i];
	}
	return NULL;
}

static int run(void *registers)
{
	u64 last = ktime_get_ns(), now;

	while (!kthread_should_stop()) {
		writel(0, (u8 __iomem *)registers + ICS);
		written++;
		now = ktime_get_ns();
		if (now - last > longest)
			longest = now - last;
		last = now;
		cond_resched();
	}
	return 0;
}

static int __init xen_writer_init(void)
{
	struct net_device *dev = dev_get_by_name(&init_net, interface);
	void __iomem *registers = dev ? registers_of(dev) : NULL;

	dev_put(dev);
	if (!registers)
		return -ENODEV;
	task = kthread_create(run, (void *)registers, "xen_writer");
	if (IS_ERR(task))
		return PTR_ERR(task);
	kthread_bind(task, processor);
	wake_up_process(task);
	return 0;
}

static void __exit xen_writer_exit(void)
{
	kthread_stop(task);
}

module_init(xen_writer_init);
module_exit(xen_writer_exit);
MODULE_DESCRIPTION("A dom0 that writes to the card's registers all the time, for tests");
MODULE_LICENSE("Dual MIT/GPL");
