// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A dom0 whose PCI bus reports an error of the card's, by which it reaches nothing, and is reset: what the kernel
 * does then (drivers/pci/pcie/err.c, pcie_do_recovery), without the hardware that reports it.
 *
 *   insmod xen_error.ko interface=NAME wait=SECONDS [asked=1]
 *
 * between the error and the reset; with `asked` it is reset because people have asked for it (drivers/pci/pci.c, pci_reset_function), of
 * which there is only what comes before. It does that while it is inserted: -EIO if the card's driver gives the device up.
 */
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/pci.h>

static char *interface = "eth0";
module_param(interface, charp, 0400);
static unsigned int wait;
module_param(wait, uint, 0400);
static bool asked;
module_param(asked, bool, 0400);

static struct pci_dev *card_of(const char *name)
{
	struct net_device *dev = dev_get_by_name(&init_net, name);
	struct pci_dev *pci = dev && dev->dev.parent ? pci_dev_get(to_pci_dev(dev->dev.parent)) : NULL;

	dev_put(dev);
	return pci;
}

/* The handlers may be others each time. */
static const struct pci_error_handlers *handlers_of(const struct pci_dev *pci)
{
	return pci->driver ? pci->driver->err_handler : NULL;
}

static void wait_here(void)
{
	if (!wait)
		return;
	pr_info("xen_error: %s waits\n", interface);
	msleep(wait * MSEC_PER_SEC);
}

/* All of it under the device's lock, as there. */
static bool reset(struct pci_dev *pci)
{
	if (handlers_of(pci) && handlers_of(pci)->reset_prepare)
		handlers_of(pci)->reset_prepare(pci);
	wait_here();
	return true;
}

/* Under the device's lock, as each of these steps is there. */
static bool recover(struct pci_dev *pci)
{
	pci_ers_result_t result = PCI_ERS_RESULT_DISCONNECT;

	if (handlers_of(pci))
		result = handlers_of(pci)->error_detected(pci, pci_channel_io_frozen);
	wait_here();
	if (result == PCI_ERS_RESULT_NEED_RESET)
		result = handlers_of(pci)->slot_reset(pci);
	if (result != PCI_ERS_RESULT_RECOVERED)
		return false;
	handlers_of(pci)->resume(pci);
	return true;
}

static int __init xen_error_init(void)
{
	struct pci_dev *pci = card_of(interface);
	bool recovered;

	if (!pci)
		return -ENODEV;
	device_lock(&pci->dev);
	recovered = asked ? reset(pci) : recover(pci);
	device_unlock(&pci->dev);
	pci_dev_put(pci);
	return recovered ? 0 : -EIO;
}

static void __exit xen_error_exit(void)
{
}

module_init(xen_error_init);
module_exit(xen_error_exit);
MODULE_DESCRIPTION("A PCI error of the card's, for tests");
MODULE_LICENSE("Dual MIT/GPL");
