// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A dom0 that wants one of the pages for something else that the card may use all the time: a page of
 * the hot routines' buffers, which Xen holds while the stage `dma` is on (platform/xen/held.c).
 *
 *   echo 1 >/sys/module/xen_held/parameters/run		with nothing on its way
 *
 * dom0 takes its own mappings of the page away as far as it must, so that its own references are no
 * reason for Xen to refuse. Reading gives "table N exchange K", what Xen answered:
 *
 *   table	the page is made a page table: 0 where nothing holds it. It is none any more afterwards
 *   exchange	it is given to Xen for another one. Asked only if it could not be made a page table, since it
 *		would be gone; 1: not asked
 */
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <asm/xen/hypercall.h>
#include <asm/xen/page.h>
#include <xen/interface/memory.h>
#include <xen/interface/xen.h>
#include <xen/page.h>
#include <twin/guest.h>

static struct {
	long table, exchange;
} result;

/* twin_hot.ko exports nothing. */
static void (*find_buffers(void))(struct hot_memory memory[HOT_BUFFER_POOLS])
{
	struct kprobe probe = { .symbol_name = "hot_buffers" };
	void *found;

	if (register_kprobe(&probe))
		return NULL;
	found = probe.addr;
	unregister_kprobe(&probe);
	return found;
}

static int map(void *address, pte_t entry)
{
	return HYPERVISOR_update_va_mapping((unsigned long)address, entry, UVMF_TLB_FLUSH | UVMF_ALL);
}

static long pin(unsigned long frame, bool on)
{
	struct mmuext_op op = {
		.cmd = on ? MMUEXT_PIN_L1_TABLE : MMUEXT_UNPIN_TABLE,
		.arg1.mfn = frame,
	};

	return HYPERVISOR_mmuext_op(&op, 1, NULL, DOMID_SELF);
}

static long exchange(unsigned long frame, unsigned long number)
{
	struct xen_memory_exchange exchange = {
		.in = { .nr_extents = 1, .domid = DOMID_SELF },
		.out = { .nr_extents = 1, .domid = DOMID_SELF },
	};

	set_xen_guest_handle(exchange.in.extent_start, &frame);
	set_xen_guest_handle(exchange.out.extent_start, &number);
	return HYPERVISOR_memory_op(XENMEM_exchange, &exchange);
}

/* All of it is dom0's direct map, and nobody uses it meanwhile. */
static int want(void *address)
{
	const unsigned long number = page_to_pfn(virt_to_page(address)), frame = pfn_to_mfn(number);

	memset(address, 0, PAGE_SIZE);
	if (map(address, mfn_pte(frame, PAGE_KERNEL_RO)))
		return -EIO;
	result.table = pin(frame, true);
	result.exchange = 1;
	if (!result.table) {
		pin(frame, false);
	} else if (!map(address, __pte(0))) {
		result.exchange = exchange(frame, number);
	}
	return map(address, mfn_pte(frame, PAGE_KERNEL));
}

static int run(const char *text, const struct kernel_param *parameter)
{
	struct hot_memory memory[HOT_BUFFER_POOLS];
	void (*buffers)(struct hot_memory memory[HOT_BUFFER_POOLS]) = find_buffers();

	if (!buffers)
		return -ENOENT;
	buffers(memory);
	/* The last page of headers: which are taken from the pool's other end. */
	return memory[0].bytes ? want((void *)(memory[0].start + memory[0].bytes - PAGE_SIZE)) : -ENOENT;
}

static int show(char *buffer, const struct kernel_param *parameter)
{
	return sprintf(buffer, "table %ld exchange %ld\n", result.table, result.exchange);
}

static const struct kernel_param_ops operations = { .set = run, .get = show };
module_param_cb(run, &operations, NULL, 0600);
MODULE_DESCRIPTION("A dom0 that wants pages which Xen holds for the card, for tests");
MODULE_LICENSE("Dual MIT/GPL");
