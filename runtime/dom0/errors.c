// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Others who reset the card while its driver is in Xen.
 *
 * Where the bus has an error of the card's, the kernel has dom0's instance stop the card and free its rings
 * (drivers/pci/pcie/err.c; e1000_main.c, e1000_io_error_detected), beside the instance in Xen, which uses them. Where people ask for a
 * reset (/sys/bus/pci/devices/.../reset), e1000 does not hear of it, nor would Xen: the card would have no rings, and be off. So e1000
 * has other handlers meanwhile (include/linux/pci.h), which detach the device first. Its other cards come by here, too.
 *
 * They are called with the card's lock held, and RTNL is taken below it, as where the driver is unbound (attach.c).
 */
#include "dom0.h"
#include <linux/device.h>
#include <linux/rtnetlink.h>

static struct pci_driver *driver;
/* The driver's own; they stay for who has found the others. */
static const struct pci_error_handlers *own;
static struct pci_error_handlers handlers;

static pci_ers_result_t error_detected(struct pci_dev *pci, pci_channel_state_t state)
{
	const struct pci_error_handlers *drivers = READ_ONCE(own);

	if (!twin_leave(pci, "the card's bus has an error"))
		return PCI_ERS_RESULT_DISCONNECT;
	return drivers->error_detected(pci, state);
}

/* Nothing can refuse a reset. */
static void reset_prepare(struct pci_dev *pci)
{
	twin_leave(pci, "the card is reset");
}

int twin_errors_guard(struct pci_dev *pci)
{
	struct pci_error_handlers filled;

	ASSERT_RTNL();
	driver = pci->driver;
	if (!driver->err_handler || !driver->err_handler->error_detected) {
		TWIN_LOG(err, "%s: its driver does not say what it does after an error of its bus", pci_name(pci));
		return -EOPNOTSUPP;
	}
	/* Who has found the copy before, and has not called yet, finds none of the driver's own in between. */
	filled = *driver->err_handler;
	filled.error_detected = error_detected;
	filled.reset_prepare = reset_prepare;
	barrier();
	handlers = filled;
	WRITE_ONCE(own, driver->err_handler);
	WRITE_ONCE(driver->err_handler, &handlers);
	return 0;
}

void twin_errors_release(void)
{
	ASSERT_RTNL();
	if (driver && driver->err_handler == &handlers)
		WRITE_ONCE(driver->err_handler, own);
	driver = NULL;
}

static int pass(struct device *device, void *unused)
{
	device_lock(device);
	device_unlock(device);
	return 0;
}

/* Who has found ours has the card's lock until they have returned. */
void twin_errors_exit(void)
{
	bus_for_each_dev(&pci_bus_type, NULL, NULL, pass);
}
