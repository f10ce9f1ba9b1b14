// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A dom0 that makes page tables of pages that the window has just shown, and maps others in their
 * place, and that flushes no TLB itself: only what Xen does for its own safety is left.
 *
 *   echo "ROUNDS PROCESSOR [out]" >/sys/module/xen_retype/parameters/run
 *
 * Each round, twice, with a page at an address that dom0 may write to:
 *
 *   PROCESSOR writes A to the address, through the window: it has the translation in its TLB
 *   dom0 takes write access to the page away, and pins it as a page table
 *     once  the address leads to the page still, for reading	(its direct map)
 *     once  it leads to another page now			(vmalloc)
 *   PROCESSOR writes B to the address
 *   the page must have A still; B is refused, or is in the other page
 *
 * A and B are even: as entries of a page table they are not present. With `out` PROCESSOR stays
 * out of dom0's dirty mask, and pages with B are found: the test can fail. Reading gives "rounds N
 * stale M wrong K": M pages had B, K times something else was not as above.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>
#include <asm/xen/hypercall.h>
#include <asm/xen/page.h>
#include <xen/interface/xen.h>
#include <xen/xen-ops.h>
#include <twin/xen.h>

#include "retype.h"

#define A 0x5a5a5a5a00000000ull
#define B 0xb4b4b4b400000000ull

static struct {
	unsigned long rounds, stale, wrong;
} result;

struct pages {
	struct page *page, *other;
	u64 *direct, *elsewhere;	/* of page: its direct map, and in vmalloc */
};

/* Without any flush. */
static int map(u64 *address, struct page *page, pgprot_t rights)
{
	return HYPERVISOR_update_va_mapping((unsigned long)address,
					    mfn_pte(pfn_to_mfn(page_to_pfn(page)), rights), UVMF_NONE);
}

/* And after the round no wrong translation of dom0's own is left. */
static int map_flush(u64 *address, struct page *page)
{
	return HYPERVISOR_update_va_mapping((unsigned long)address,
					    mfn_pte(pfn_to_mfn(page_to_pfn(page)), PAGE_KERNEL),
					    UVMF_TLB_FLUSH | UVMF_ALL);
}

static int pin(struct page *page, bool on)
{
	struct mmuext_op op = {
		.cmd = on ? MMUEXT_PIN_L1_TABLE : MMUEXT_UNPIN_TABLE,
		.arg1.mfn = pfn_to_mfn(page_to_pfn(page)),
	};

	return HYPERVISOR_mmuext_op(&op, 1, NULL, DOMID_SELF);
}

static long write(struct xen_retype *job, u64 *address, u64 value)
{
	job->address = (u64)address;
	job->value = value;
	return xen_single_call(TWIN_XEN_HYPERCALL, XEN_RETYPE_WRITE, (unsigned long)job, 0, 0, 0);
}

static void expect(bool as_it_should)
{
	result.wrong += !as_it_should;
}

/* `wanted`: what becomes of B. */
static void round(struct pages *pages, struct xen_retype *job, u64 *address, long wanted)
{
	u64 *other = page_address(pages->other);
	long written;

	*pages->direct = 0;
	*other = 0;
	expect(write(job, address, A) == XEN_RETYPE_WRITTEN && READ_ONCE(*pages->direct) == A);
	expect(!map(pages->direct, pages->page, PAGE_KERNEL_RO));
	expect(!map(pages->elsewhere, pages->other, PAGE_KERNEL));
	if (pin(pages->page, true)) {
		expect(false);
	} else {
		written = write(job, address, B);
		if (READ_ONCE(*pages->direct) != A) {
			result.stale++;
		} else {
			expect(written == wanted);
			expect(READ_ONCE(*other) == (wanted == XEN_RETYPE_WRITTEN ? B : 0));
		}
		expect(!pin(pages->page, false));
	}
	expect(!map_flush(pages->direct, pages->page));
	expect(!map_flush(pages->elsewhere, pages->page));
}

static void rounds(struct pages *pages, struct xen_retype *job, unsigned long count)
{
	memset(&result, 0, sizeof(result));
	while (result.rounds < count) {
		round(pages, job, pages->direct, XEN_RETYPE_REFUSED);
		round(pages, job, pages->elsewhere, XEN_RETYPE_WRITTEN);
		result.rounds++;
		cond_resched();
	}
}

static int with_pages(struct xen_retype *job, unsigned long count)
{
	struct pages pages = { .page = alloc_page(GFP_KERNEL | __GFP_ZERO),
			       .other = alloc_page(GFP_KERNEL | __GFP_ZERO) };
	int error = -ENOMEM;

	if (!pages.page || !pages.other)
		goto out;
	pages.direct = page_address(pages.page);
	pages.elsewhere = vmap(&pages.page, 1, VM_MAP, PAGE_KERNEL);
	if (!pages.elsewhere)
		goto out;
	error = 0;
	rounds(&pages, job, count);
	vunmap(pages.elsewhere);
out:
	if (pages.page)
		__free_page(pages.page);
	if (pages.other)
		__free_page(pages.other);
	return error;
}

static int run(const char *text, const struct kernel_param *parameter)
{
	struct xen_retype *job;
	unsigned long count;
	unsigned int processor;
	int error = -EINVAL;

	if (sscanf(text, "%lu %u", &count, &processor) != 2)
		return -EINVAL;
	job = kzalloc(sizeof(*job), GFP_KERNEL);
	if (!job)
		return -ENOMEM;
	job->processor = processor;
	job->stay_out = strstr(text, "out") != NULL;
	error = with_pages(job, count);
	/* Back into the mask. */
	job->stay_out = 0;
	write(job, &job->value, 0);
	kfree(job);
	return error;
}

static int show(char *buffer, const struct kernel_param *parameter)
{
	return sprintf(buffer, "rounds %lu stale %lu wrong %lu\n", result.rounds, result.stale,
		       result.wrong);
}

static const struct kernel_param_ops operations = { .set = run, .get = show };
module_param_cb(run, &operations, NULL, 0600);
MODULE_DESCRIPTION("Page tables out of pages that driver code inside Xen has used, for tests");
MODULE_LICENSE("Dual MIT/GPL");
