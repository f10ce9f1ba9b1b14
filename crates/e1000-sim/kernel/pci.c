// SPDX-License-Identifier: GPL-2.0-only
/*
 * pci.c: the bus with one device, and drivers that bind to it.
 *
 * Configuration space is the host's device model; BARs were assigned by the host
 * and are resources here. The driver's reads and writes go to the model.
 *
 * Contexts: probe and remove run in the calling task and may sleep. One driver.
 */
#include <linux/io.h>
#include <linux/pci.h>
#include <linux/pm_wakeup.h>

#include "shim.h"

struct pci_dev *pci_device;

static struct pci_bus pci_bus;
static struct pci_driver *pci_bound;
static long pci_regions;                /* BARs that are requested, a bit each */
static struct wakeup_source wakeup_source = { .name = "pci" };

struct bus_type pci_bus_type = { .name = "pci" };

long pci_probe_result;                  /* of the last probe; for kernel_load */

/* ---- Configuration space ----------------------------------------------------- */

static u32 config_read(struct pci_dev *dev, int where, int size)
{
	if (dev != pci_device || where < 0 || where > 256 - size || where % size)
		kernel_unsupported(__func__, "offset %#x, %d bytes", where, size);
	return host_config_read(where, size);
}

static void config_write(struct pci_dev *dev, int where, int size, u32 value)
{
	if (dev != pci_device || where < 0 || where > 256 - size || where % size)
		kernel_unsupported(__func__, "offset %#x, %d bytes", where, size);
	host_config_write(where, size, value);
}

int pci_read_config_byte(const struct pci_dev *dev, int where, u8 *value)
{
	*value = config_read((struct pci_dev *)dev, where, 1);
	return 0;
}

int pci_read_config_word(const struct pci_dev *dev, int where, u16 *value)
{
	*value = config_read((struct pci_dev *)dev, where, 2);
	return 0;
}

int pci_read_config_dword(const struct pci_dev *dev, int where, u32 *value)
{
	*value = config_read((struct pci_dev *)dev, where, 4);
	return 0;
}

int pci_write_config_byte(const struct pci_dev *dev, int where, u8 value)
{
	config_write((struct pci_dev *)dev, where, 1, value);
	return 0;
}

int pci_write_config_word(const struct pci_dev *dev, int where, u16 value)
{
	config_write((struct pci_dev *)dev, where, 2, value);
	return 0;
}

int pci_write_config_dword(const struct pci_dev *dev, int where, u32 value)
{
	config_write((struct pci_dev *)dev, where, 4, value);
	return 0;
}

static void command_change(struct pci_dev *dev, u16 set, u16 clear)
{
	u16 command = config_read(dev, PCI_COMMAND, 2);

	if (((command | set) & ~clear) != command)
		config_write(dev, PCI_COMMAND, 2, (command | set) & ~clear);
}

/* Offset of a capability, or 0. */
static u8 capability(struct pci_dev *dev, u8 id)
{
	u8 at, steps;

	if (!(config_read(dev, PCI_STATUS, 2) & PCI_STATUS_CAP_LIST))
		return 0;
	at = config_read(dev, PCI_CAPABILITY_LIST, 1) & ~3;
	for (steps = 0; at >= 0x40 && steps < 48; steps++) {
		if (config_read(dev, at, 1) == id)
			return at;
		at = config_read(dev, at + 1, 1) & ~3;
	}
	return 0;
}

/* ---- Enabling ------------------------------------------------------------------ */

static int enable(struct pci_dev *dev, unsigned long flags)
{
	u16 command = 0;
	int bar;

	if (atomic_inc_return(&dev->enable_cnt) > 1)
		return 0;
	for (bar = 0; bar < KERNEL_BARS; bar++) {
		if (pci_resource_flags(dev, bar) & flags & IORESOURCE_MEM)
			command |= PCI_COMMAND_MEMORY;
		if (pci_resource_flags(dev, bar) & flags & IORESOURCE_IO)
			command |= PCI_COMMAND_IO;
	}
	pci_set_power_state(dev, PCI_D0);
	command_change(dev, command, 0);
	return 0;
}

int pci_enable_device(struct pci_dev *dev)
{
	return enable(dev, IORESOURCE_MEM | IORESOURCE_IO);
}

int pci_enable_device_mem(struct pci_dev *dev)
{
	return enable(dev, IORESOURCE_MEM);
}

void pci_disable_device(struct pci_dev *dev)
{
	if (atomic_read(&dev->enable_cnt) <= 0) {
		kernel_complain("pci_disable_device: %s is not enabled", pci_name(dev));
		return;
	}
	if (atomic_dec_return(&dev->enable_cnt))
		return;
	command_change(dev, 0, PCI_COMMAND_MASTER);
	dev->is_busmaster = 0;
}

void pci_set_master(struct pci_dev *dev)
{
	command_change(dev, PCI_COMMAND_MASTER, 0);
	dev->is_busmaster = 1;
}

void pci_clear_master(struct pci_dev *dev)
{
	command_change(dev, 0, PCI_COMMAND_MASTER);
	dev->is_busmaster = 0;
}

int pci_set_mwi(struct pci_dev *dev)
{
	/* A cache line of 64 bytes, in the register's units of four. */
	config_write(dev, PCI_CACHE_LINE_SIZE, 1, L1_CACHE_BYTES / 4);
	if (config_read(dev, PCI_CACHE_LINE_SIZE, 1) != L1_CACHE_BYTES / 4)
		return -EINVAL;
	command_change(dev, PCI_COMMAND_INVALIDATE, 0);
	return 0;
}

void pci_clear_mwi(struct pci_dev *dev)
{
	command_change(dev, 0, PCI_COMMAND_INVALIDATE);
}

/* No such capability: this is conventional PCI. */
int pcix_get_mmrbc(struct pci_dev *dev)
{
	if (capability(dev, PCI_CAP_ID_PCIX))
		kernel_unsupported(__func__, "a PCI-X device");
	return -EINVAL;
}

int pcix_set_mmrbc(struct pci_dev *dev, int bytes)
{
	return pcix_get_mmrbc(dev);
}

/* ---- Power ------------------------------------------------------------------------ */

int pci_save_state(struct pci_dev *dev)
{
	int i;

	for (i = 0; i < 16; i++)
		dev->saved_config_space[i] = config_read(dev, i * 4, 4);
	dev->state_saved = true;
	return 0;
}

void pci_restore_state(struct pci_dev *dev)
{
	int i;

	if (!dev->state_saved)
		return;
	for (i = 15; i >= 0; i--)
		if (config_read(dev, i * 4, 4) != dev->saved_config_space[i])
			config_write(dev, i * 4, 4, dev->saved_config_space[i]);
	dev->state_saved = false;
}

int pci_set_power_state(struct pci_dev *dev, pci_power_t state)
{
	u16 control;

	if (dev->current_state == state)
		return 0;
	if (!dev->pm_cap)
		return state == PCI_D0 ? 0 : -EIO;
	if (state > PCI_D3hot)
		state = PCI_D3hot;
	control = config_read(dev, dev->pm_cap + PCI_PM_CTRL, 2);
	control = (control & ~PCI_PM_CTRL_STATE_MASK) | (__force u16)state;
	config_write(dev, dev->pm_cap + PCI_PM_CTRL, 2, control);
	/* Leaving or entering D3hot takes 10 ms. */
	if (state == PCI_D3hot || dev->current_state == PCI_D3hot)
		msleep(10);
	dev->current_state = state;
	return 0;
}

int pci_enable_wake(struct pci_dev *dev, pci_power_t state, bool on)
{
	u16 control;

	if (!dev->pm_cap || (on && !(dev->pme_support >> (__force int)state & 1)))
		return on ? -EINVAL : 0;
	control = config_read(dev, dev->pm_cap + PCI_PM_CTRL, 2) | PCI_PM_CTRL_PME_STATUS;
	control = on ? control | PCI_PM_CTRL_PME_ENABLE : control & ~PCI_PM_CTRL_PME_ENABLE;
	config_write(dev, dev->pm_cap + PCI_PM_CTRL, 2, control);
	return 0;
}

int pci_wake_from_d3(struct pci_dev *dev, bool on)
{
	if (dev->pme_support >> (__force int)PCI_D3cold & 1)
		return pci_enable_wake(dev, PCI_D3cold, on);
	return pci_enable_wake(dev, PCI_D3hot, on);
}

int device_set_wakeup_enable(struct device *dev, bool on)
{
	if (!dev->power.can_wakeup)
		return on ? -EINVAL : 0;
	dev->power.wakeup = on ? &wakeup_source : NULL;
	return 0;
}

static void power_setup(struct pci_dev *dev)
{
	dev->pm_cap = capability(dev, PCI_CAP_ID_PM);
	dev->current_state = PCI_D0;
	if (!dev->pm_cap)
		return;
	dev->pme_support = config_read(dev, dev->pm_cap + PCI_PM_PMC, 2) >> PCI_PM_CAP_PME_SHIFT;
	dev->dev.power.can_wakeup = dev->pme_support != 0;
}

/* ---- Resources ----------------------------------------------------------------------- */

int pci_select_bars(struct pci_dev *dev, unsigned long flags)
{
	int bar, mask = 0;

	for (bar = 0; bar < PCI_NUM_RESOURCES; bar++)
		if (pci_resource_flags(dev, bar) & flags)
			mask |= 1 << bar;
	return mask;
}

int pci_request_selected_regions(struct pci_dev *dev, int bars, const char *name)
{
	if (pci_regions & bars)
		return -EBUSY;
	pci_regions |= bars;
	return 0;
}

void pci_release_selected_regions(struct pci_dev *dev, int bars)
{
	if (~pci_regions & bars)
		kernel_complain("pci: releasing BARs %#lx that are not requested", ~pci_regions & bars);
	pci_regions &= ~bars;
}

void __iomem *ioremap(resource_size_t start, unsigned long size)
{
	int i;

	for (i = 0; i < KERNEL_BARS; i++) {
		const struct kernel_bar *bar = &boot.bar[i];

		if (bar->address && start >= bar->start &&
		    start + size <= bar->start + bar->size)
			return (void __iomem *)(bar->address + (start - bar->start));
	}
	kernel_unsupported(__func__, "%#llx, %lu bytes: no BAR is there", start, size);
}

void iounmap(volatile void __iomem *address)
{
	int i;

	if (!address)
		return;
	for (i = 0; i < KERNEL_BARS; i++)
		if ((u64)address - boot.bar[i].address < boot.bar[i].size)
			return;
	kernel_complain("iounmap(%p): nothing is mapped there", address);
}

void __iomem *pci_ioremap_bar(struct pci_dev *dev, int bar)
{
	if (!(pci_resource_flags(dev, bar) & IORESOURCE_MEM))
		return NULL;
	return ioremap(pci_resource_start(dev, bar), pci_resource_len(dev, bar));
}

/* An address below 64 Ki is a port, as from ioport_map(). */
void ioread16_rep(const void __iomem *port, void *buffer, unsigned long count)
{
	u16 *to = buffer;

	if ((u64)port < 0x20000)
		kernel_unsupported(__func__, "port %p", port);
	while (count--)
		*to++ = readw(port);
}

void iowrite16_rep(void __iomem *port, const void *buffer, unsigned long count)
{
	const u16 *from = buffer;

	if ((u64)port < 0x20000)
		kernel_unsupported(__func__, "port %p", port);
	while (count--)
		writew(*from++, port);
}

/* ---- Drivers --------------------------------------------------------------------------- */

static bool id_matches(const struct pci_device_id *id, const struct pci_dev *dev)
{
	return (id->vendor == PCI_ANY_ID || id->vendor == dev->vendor) &&
	       (id->device == PCI_ANY_ID || id->device == dev->device) &&
	       (id->subvendor == PCI_ANY_ID || id->subvendor == dev->subsystem_vendor) &&
	       (id->subdevice == PCI_ANY_ID || id->subdevice == dev->subsystem_device) &&
	       !((id->class ^ dev->class) & id->class_mask);
}

static const struct pci_device_id *id_find(const struct pci_driver *driver,
					   const struct pci_dev *dev)
{
	const struct pci_device_id *id = driver->id_table;

	for (; id && (id->vendor || id->subvendor || id->class_mask); id++)
		if (id_matches(id, dev))
			return id;
	return NULL;
}

/* As in the kernel, a failed probe is not a failure of the driver's registration. */
int __pci_register_driver(struct pci_driver *driver, struct module *owner, const char *name)
{
	const struct pci_device_id *id = id_find(driver, pci_device);

	if (pci_bound)
		kernel_unsupported(__func__, "a second driver, %s", driver->name);
	driver->driver.name = driver->name;
	driver->driver.owner = owner;
	driver->driver.mod_name = name;
	driver->driver.bus = &pci_bus_type;
	pci_probe_result = -ENODEV;
	if (!id)
		return 0;
	pci_device->driver = driver;
	pci_device->dev.driver = &driver->driver;
	pci_probe_result = driver->probe(pci_device, id);
	if (pci_probe_result) {
		_printk(KERN_ERR "%s: probe of %s failed with error %ld\n", driver->name,
			pci_name(pci_device), pci_probe_result);
		pci_device->driver = NULL;
		pci_device->dev.driver = NULL;
		pci_device->dev.driver_data = NULL;
		return 0;
	}
	pci_bound = driver;
	return 0;
}

void pci_unregister_driver(struct pci_driver *driver)
{
	if (pci_bound != driver)
		return;
	if (driver->remove)
		driver->remove(pci_device);
	pci_device->driver = NULL;
	pci_device->dev.driver = NULL;
	pci_device->dev.driver_data = NULL;
	pci_bound = NULL;
	if (atomic_read(&pci_device->enable_cnt) || pci_regions)
		kernel_complain("pci: the driver left the device enabled (%d) or BARs (%#lx) taken",
				atomic_read(&pci_device->enable_cnt), pci_regions);
}

static void resources_setup(struct pci_dev *dev)
{
	int i;

	for (i = 0; i < KERNEL_BARS; i++) {
		if (!boot.bar[i].size)
			continue;
		dev->resource[i].start = boot.bar[i].start;
		dev->resource[i].end = boot.bar[i].start + boot.bar[i].size - 1;
		dev->resource[i].flags = boot.bar[i].flags;
		dev->resource[i].name = "0000:00:03.0";
	}
}

void pci_setup(void)
{
	struct pci_dev *dev = shim_zalloc(sizeof(*dev));

	pci_device = dev;
	dev->bus = &pci_bus;
	dev->devfn = PCI_DEVFN(3, 0);
	dev->vendor = config_read(dev, PCI_VENDOR_ID, 2);
	dev->device = config_read(dev, PCI_DEVICE_ID, 2);
	dev->subsystem_vendor = config_read(dev, PCI_SUBSYSTEM_VENDOR_ID, 2);
	dev->subsystem_device = config_read(dev, PCI_SUBSYSTEM_ID, 2);
	dev->class = config_read(dev, PCI_CLASS_REVISION, 4) >> 8;
	dev->revision = config_read(dev, PCI_REVISION_ID, 1);
	dev->irq = boot.irq;
	dev->error_state = pci_channel_io_normal;
	dev->dma_mask = DMA_BIT_MASK(32);
	dev->dev.dma_mask = &dev->dma_mask;
	dev->dev.coherent_dma_mask = DMA_BIT_MASK(32);
	dev->dev.init_name = "0000:00:03.0";
	dev->dev.bus = &pci_bus_type;
	mutex_init(&dev->dev.mutex);
	resources_setup(dev);
	power_setup(dev);
	_printk(KERN_INFO "pci %s: [%04x:%04x] class %#08x irq %u\n", pci_name(dev), dev->vendor,
		dev->device, dev->class, dev->irq);
}
