// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The driver's watchdog in dom0 at the wrong moment: the carrier has come, and it turns the transmitter on
 * (e1000_main.c, e1000_watchdog) when the card is stopped, Xen has freed its packets, and the driver has not reset it yet.
 *
 *   insmod xen_watchdog.ko interface=NAME
 *
 * Writing N to `lock` keeps the lock of the card's device for N seconds, as who resets it does.
 *
 * Writing N to `hold` turns the transmitter off, so that packets wait in the card's ring. When the interface is closed the
 * watchdog's write is done; `sent` is how many packets the card has sent for it, and `closed` how often there was such a write.
 */
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/pci.h>

/* Intel, 317453, 13.4.33 and 13.7.29, which reading clears. */
#define TCTL	0x0400
#define ENABLE	(1u << 1)
#define GPTC	0x4080

static char *interface = "eth0";
module_param(interface, charp, 0400);
static uint sent;
module_param(sent, uint, 0400);
static uint closed;
module_param(closed, uint, 0400);

/* Not for longer than a write: where Xen guards the registers a mapping may be read, and is so afterwards. */
static u8 __iomem *registers_of(const struct net_device *dev)
{
	const struct pci_dev *pci = to_pci_dev(dev->dev.parent);

	return ioremap(pci_resource_start(pci, 0), pci_resource_len(pci, 0));
}

static void enable(u8 __iomem *registers, bool on)
{
	const u32 value = readl(registers + TCTL);

	writel(on ? value | ENABLE : value & ~ENABLE, registers + TCTL);
}

static int hold(const char *words, const struct kernel_param *unused)
{
	struct net_device *dev = dev_get_by_name(&init_net, interface);
	u8 __iomem *registers = dev ? registers_of(dev) : NULL;

	dev_put(dev);
	if (!registers)
		return -ENODEV;
	enable(registers, false);
	iounmap(registers);
	return 0;
}

static const struct kernel_param_ops hold_ops = { .set = hold };
module_param_cb(hold, &hold_ops, NULL, 0200);

static int lock(const char *words, const struct kernel_param *unused)
{
	struct net_device *dev = dev_get_by_name(&init_net, interface);
	unsigned int seconds;
	int error = kstrtouint(words, 0, &seconds);

	if (dev && !error) {
		device_lock(dev->dev.parent);
		ssleep(seconds);
		device_unlock(dev->dev.parent);
	}
	dev_put(dev);
	return dev ? error : -ENODEV;
}

static const struct kernel_param_ops lock_ops = { .set = lock };
module_param_cb(lock, &lock_ops, NULL, 0200);

/* Last of all that hear of it, and before the driver does. */
static int notified(struct notifier_block *block, unsigned long event, void *data)
{
	struct net_device *dev = netdev_notifier_info_to_dev(data);
	u8 __iomem *registers;

	if (event != NETDEV_GOING_DOWN || strcmp(dev->name, interface))
		return NOTIFY_DONE;
	registers = registers_of(dev);
	if (!registers)
		return NOTIFY_DONE;
	(void)readl(registers + GPTC);
	enable(registers, true);
	msleep(50);
	sent += readl(registers + GPTC);
	closed++;
	iounmap(registers);
	return NOTIFY_DONE;
}

static struct notifier_block notifier = { .notifier_call = notified, .priority = INT_MIN };

static int __init xen_watchdog_init(void)
{
	return register_netdevice_notifier(&notifier);
}

static void __exit xen_watchdog_exit(void)
{
	unregister_netdevice_notifier(&notifier);
}

module_init(xen_watchdog_init);
module_exit(xen_watchdog_exit);
MODULE_DESCRIPTION("The transmitter turned on while the card is stopped, for tests");
MODULE_LICENSE("Dual MIT/GPL");
