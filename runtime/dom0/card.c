// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The card and its driver in dom0, as far as stock headers and the card's manual tell.
 *
 * The driver's own structures are private to it. What is needed of them is found
 * elsewhere: NAPI and the queue's byte limit in struct net_device, the interrupt handler in
 * the interrupt's descriptor, the receive buffers in the card's ring (Intel, PCI/PCI-X
 * Family of Gigabit Ethernet Controllers Software Developer's Manual, 3.2.3 and 13.4).
 */
#include "dom0.h"
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/irq.h>
#include <linux/mm.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/sch_generic.h>
#include <xen/events.h>
#include <asm/pgtable.h>
#include <asm/xen/page.h>

/* Registers (13.4) */
#define REGISTER_ICS	0x00c8
#define REGISTER_RCTL	0x0100
#define REGISTER_TCTL	0x0400
#define REGISTER_RDBAL	0x2800
#define REGISTER_RDBAH	0x2804
#define REGISTER_RDLEN	0x2808
#define REGISTER_RDH	0x2810
#define REGISTER_RDT	0x2818

/* of RCTL and of TCTL alike */
#define ENABLE		(1u << 1)
#define ICS_LINK	(1u << 2)	/* LSC */
#define ICS_RECEIVED	(1u << 7)	/* RXT0 */

/* Receive descriptor (3.2.3): the buffer's address, then what the card writes. */
struct descriptor {
	__le64 address;
	__le64 written;
};

/* ---- Finding ---- */

static struct irq_desc *line_of(const struct twin_card *card)
{
	struct irq_data *data = irq_get_irq_data(card->pci->irq);

	return data ? irq_data_to_desc(data) : NULL;
}

/*
 * The handler that the card's driver requested the interrupt with. While the driver is in Xen the
 * line is the card's alone, because all its interrupts go there: nobody else has requested it,
 * and nobody may (kernel/irq/manage.c, __setup_irq, wants IRQF_SHARED of all). -EBUSY: somebody
 * has.
 */
static int claim_interrupt(struct twin_card *card, const struct module *driver)
{
	struct irq_desc *line = line_of(card);
	struct irqaction *action;
	unsigned long flags;
	int error = -ENOENT;

	if (!line)
		return -ENOENT;
	raw_spin_lock_irqsave(&line->lock, flags);
	action = line->action;
	if (action && action->next) {
		error = -EBUSY;
	} else if (action && within_module((unsigned long)action->handler, driver)) {
		card->interrupt = action->handler;
		card->interrupt_cookie = action->dev_id;
		card->shared = action->flags & IRQF_SHARED;
		action->flags &= ~IRQF_SHARED;
		error = 0;
	}
	raw_spin_unlock_irqrestore(&line->lock, flags);
	card->pirq = xen_pirq_from_irq(card->pci->irq);
	return error ? error : card->pirq > 0 ? 0 : -ENOENT;
}

/* Before the driver frees it, which is when the interface is closed; once more is nothing. */
void twin_card_share_interrupt(struct twin_card *card)
{
	struct irq_desc *line = line_of(card);
	unsigned long flags;

	if (!line || !card->shared)
		return;
	raw_spin_lock_irqsave(&line->lock, flags);
	if (line->action && line->action->dev_id == card->interrupt_cookie)
		line->action->flags |= card->shared;
	raw_spin_unlock_irqrestore(&line->lock, flags);
	card->shared = 0;
}

#define LOCK_TRIES	100u	/* of 10 ms */

/*
 * Whoever resets the card, takes it from its driver or has the machine go down has its lock meanwhile (drivers/pci/pci.c,
 * pci_dev_lock; drivers/base/dd.c, device_release_driver_internal; drivers/base/core.c, device_shutdown). What they begin with, this
 * module hears, and what follows it does not. So nothing is attached in between. They ask for RTNL with the lock
 * held, so nobody waits for them for long.
 */
static bool lock(struct twin_card *card)
{
	u32 tries = LOCK_TRIES;

	while (!(card->locked = device_trylock(&card->pci->dev)) && --tries)
		msleep(10);
	return card->locked;
}

void twin_card_unlock(struct twin_card *card)
{
	if (card->locked)
		device_unlock(&card->pci->dev);
	card->locked = false;
}

/*
 * Whether it can move packets: another one would be driven in Xen and move none. The kernel has taken it from its driver after an
 * error of its bus, or it is not the bus's master, as one that did not answer when it was detached (twin_card_reset).
 */
static int check_bus(struct twin_card *card)
{
	const u16 needed = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
	const char *name = card->netdev->name;
	const bool locked = lock(card), present = netif_device_present(card->netdev);
	u16 command = 0;

	if (!locked || !present) {
		TWIN_LOG(err, "%s is being reset, %s: try again", name,
			 present ? "or taken from its driver" : "after an error of its bus");
		return -EBUSY;
	}
	pci_read_config_word(card->pci, PCI_COMMAND, &command);
	if ((command & needed) == needed)
		return 0;
	TWIN_LOG(err, "%s may not access memory: unbind it from /sys/bus/pci/drivers/e1000 and bind it again (%s)", name,
		 pci_name(card->pci));
	return -EIO;
}

static int fill_card(struct twin_card *card)
{
	struct net_device *dev = card->netdev;
	struct device_driver *driver = dev->dev.parent ? dev->dev.parent->driver : NULL;
	int error;

	if (!driver || !dev_is_pci(dev->dev.parent) || strcmp(driver->name, "e1000") || !driver->owner) {
		TWIN_LOG(err, "%s is not a card of the driver e1000", dev->name);
		return -ENODEV;
	}
	if (!netif_running(dev) || dev->real_num_tx_queues != 1 || list_empty(&dev->napi_list)) {
		TWIN_LOG(err, "%s is not up, or has more than one queue", dev->name);
		return -ENETDOWN;
	}
	/* With larger ones it receives in pieces, which the hot routines do not. */
	if (dev->mtu > ETH_DATA_LEN) {
		TWIN_LOG(err, "%s has an MTU of %u: ip link set %s mtu %u", dev->name, dev->mtu,
			 dev->name, ETH_DATA_LEN);
		return -EMSGSIZE;
	}
	card->pci = to_pci_dev(dev->dev.parent);
	error = check_bus(card);
	if (error)
		return error;
	card->napi = list_first_entry(&dev->napi_list, struct napi_struct, dev_list);
	error = claim_interrupt(card, driver->owner);
	if (error) {
		TWIN_LOG(err, "%s %s", dev->name, error == -EBUSY ? "shares its interrupt with another device" :
			 "has no interrupt of Xen's that e1000 handles");
		return error;
	}
	card->registers = ioremap(pci_resource_start(card->pci, 0), pci_resource_len(card->pci, 0));
	return card->registers ? 0 : -ENOMEM;
}

int twin_card_find(const char *name, struct twin_card *card)
{
	int error;

	ASSERT_RTNL();
	memset(card, 0, sizeof(*card));
	card->netdev = dev_get_by_name(&init_net, name);
	if (!card->netdev) {
		TWIN_LOG(err, "no interface %s", name);
		return -ENODEV;
	}
	error = fill_card(card);
	if (error)
		twin_card_put(card);
	return error;
}

void twin_card_put(struct twin_card *card)
{
	if (card->pci) {
		twin_card_share_interrupt(card);
		twin_card_unlock(card);
	}
	if (card->registers)
		iounmap(card->registers);
	dev_put(card->netdev);
	memset(card, 0, sizeof(*card));
}

/* ---- Where the driver has its registers ---- */

bool twin_card_is_registers(const struct twin_card *card, u64 pointer)
{
	unsigned int level;
	pte_t *entry;

	if (!is_vmalloc_addr((void *)pointer) || !PAGE_ALIGNED(pointer))
		return false;
	entry = lookup_address(pointer, &level);
	return entry && level == PG_LEVEL_4K && pte_present(*entry) &&
	       pte_mfn(*entry) == PFN_DOWN(pci_resource_start(card->pci, 0));
}

unsigned long twin_card_registers(const struct twin_card *card)
{
	const u64 *words = netdev_priv(card->netdev);
	u32 i;

	for (i = 0; i < TWIN_PRIVATE_WORDS; i++)
		if (twin_card_is_registers(card, words[i]))
			return words[i];
	return 0;
}

void twin_card_ports(const struct twin_card *card, u32 *first, u32 *count)
{
	u32 i;

	for (i = 0; i < PCI_STD_NUM_BARS; i++)
		if (pci_resource_flags(card->pci, i) & IORESOURCE_IO) {
			*first = pci_resource_start(card->pci, i);
			*count = pci_resource_len(card->pci, i);
		}
}

/* ---- Quiet ---- */

/* The driver writes RCTL, too, when addresses come and go (e1000_set_rx_mode), without RTNL, but with this lock: the bit that
 * it has read would be back. */
static void switch_unit(struct twin_card *card, u32 control, bool on)
{
	u32 value;

	netif_addr_lock_bh(card->netdev);
	value = readl(card->registers + control);
	writel(on ? value | ENABLE : value & ~ENABLE, card->registers + control);
	/* Reading pushes the write to the card. */
	(void)readl(card->registers + control);
	netif_addr_unlock_bh(card->netdev);
}

void twin_card_receive(struct twin_card *card, bool on)
{
	switch_unit(card, REGISTER_RCTL, on);
}

/* Its receive ring has a length while it is open. One that decodes no address has none, or all bits of one. */
static bool answers(const struct twin_card *card)
{
	const u32 length = readl(card->registers + REGISTER_RDLEN);

	return length && length != ~0u;
}

/*
 * The units alone would not do: dom0's instance turns the transmitter on when the carrier comes (e1000_watchdog), and
 * writes back what it read of TCTL before. Both are at rest when the card stops being the bus's master, so nothing of
 * theirs waits for the bus, and by its reset the card forgets its rings (13.4.1; that leaves PCI's registers as they are).
 */
void twin_card_stop(struct twin_card *card)
{
	u16 command;

	switch_unit(card, REGISTER_RCTL, false);
	switch_unit(card, REGISTER_TCTL, false);
	/* A packet that it had begun with ends (13.4.33). */
	msleep(10);
	pci_read_config_word(card->pci, PCI_COMMAND, &command);
	if (!(command & PCI_COMMAND_MASTER))
		return;
	pci_clear_master(card->pci);
	card->stopped = true;
}

bool twin_card_is_lost(struct twin_card *card)
{
	if (!answers(card))
		card->lost = true;
	return card->lost;
}

static void start_master(struct twin_card *card)
{
	if (card->stopped)
		pci_set_master(card->pci);
	card->stopped = card->lost = false;
}

/* One that did not hear of other rings has not heard of a reset either. */
void twin_card_reset(struct twin_card *card)
{
	if (!card->lost)
		start_master(card);
	else
		TWIN_LOG(err, "%s did not answer: it may not access memory until its driver is bound again", card->netdev->name);
}

void twin_card_start(struct twin_card *card)
{
	start_master(card);
	switch_unit(card, REGISTER_TCTL, true);
	switch_unit(card, REGISTER_RCTL, true);
}

/*
 * Xen's instance has the card's interrupts, and what dom0 would have of them, while one gives the card
 * to the other, would have dom0's instance poll beside it. A line that is freed meanwhile, as
 * by closing the interface, is enabled again by whoever requests it (kernel/irq/manage.c).
 */
void twin_card_deafen(struct twin_card *card)
{
	disable_irq(card->pci->irq);
	card->deaf = true;
	napi_synchronize(card->napi);
}

void twin_card_hear(struct twin_card *card)
{
	if (card->deaf)
		enable_irq(card->pci->irq);
	card->deaf = false;
}

void twin_card_interrupt(const struct twin_card *card)
{
	writel(ICS_RECEIVED, card->registers + REGISTER_ICS);
}

void twin_card_link_interrupt(const struct twin_card *card)
{
	writel(ICS_LINK, card->registers + REGISTER_ICS);
}

/* Every packet that was given to the driver is sent and freed: the byte limit counts. */
static bool sent_all(const struct net_device *dev)
{
	const struct dql *dql = &netdev_get_tx_queue(dev, 0)->dql;

	return qdisc_all_tx_empty(dev) && READ_ONCE(dql->num_queued) == READ_ONCE(dql->num_completed);
}

int twin_card_quiet(struct twin_card *card)
{
	u32 tries;

	twin_card_receive(card, false);
	for (tries = 0; tries < 100; tries++) {
		/* Even if the last interrupt came before the last packet was sent. */
		twin_card_interrupt(card);
		msleep(10);
		if (sent_all(card->netdev) && !test_bit(NAPI_STATE_SCHED, &card->napi->state))
			return 0;
	}
	twin_card_receive(card, true);
	TWIN_LOG(err, "%s does not come to rest", card->netdev->name);
	return -ETIMEDOUT;
}

/* ---- Receive buffers ---- */

/* dom0's page of a machine address that the card uses; NULL if it is none of dom0's. */
static struct page *page_at(u64 machine)
{
	unsigned long frame = mfn_to_pfn(PFN_DOWN(machine));

	return pfn_valid(frame) && pfn_to_mfn(frame) == PFN_DOWN(machine) ? pfn_to_page(frame) : NULL;
}

static const struct descriptor *ring_of(const struct twin_card *card, u32 *length)
{
	u64 machine = (u64)readl(card->registers + REGISTER_RDBAH) << 32 |
		      readl(card->registers + REGISTER_RDBAL);
	struct page *page = page_at(machine);

	*length = readl(card->registers + REGISTER_RDLEN) / sizeof(struct descriptor);
	/* A coherent allocation: contiguous for the processor as for the card. */
	return page && *length ? page_to_virt(page) + offset_in_page(machine) : NULL;
}

static int pin_one(struct twin_card *card, u64 machine)
{
	struct page *page = page_at(machine);

	/* swiotlb's pages are reserved since boot. */
	if (!page || PageReserved(page)) {
		TWIN_LOG(err, "a receive buffer of %s is no page of dom0's allocator (%llx)",
			 card->netdev->name, machine);
		return -EINVAL;
	}
	page = compound_head(page);
	get_page(page);
	card->pinned[card->pins++] = page;
	return 0;
}

int twin_card_pin(struct twin_card *card)
{
	u32 length, at, end;
	const struct descriptor *ring = ring_of(card, &length);
	int error = 0;

	if (!ring)
		return -EINVAL;
	card->pinned = kvcalloc(length, sizeof(*card->pinned), GFP_KERNEL);
	if (!card->pinned)
		return -ENOMEM;
	/* Those between head and tail are the card's; others may be long free (3.2.6). */
	at = readl(card->registers + REGISTER_RDH) % length;
	end = readl(card->registers + REGISTER_RDT) % length;
	for (; at != end && !error; at = (at + 1) % length)
		error = pin_one(card, le64_to_cpu(ring[at].address));
	if (error)
		twin_card_unpin(card);
	return error;
}

void twin_card_unpin(struct twin_card *card)
{
	while (card->pins)
		put_page(card->pinned[--card->pins]);
	kvfree(card->pinned);
	card->pinned = NULL;
}
