// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The imports of hot.o: as little of dom0's kernel as its tests need. */
#include "kernel.h"
#include <linux/mm.h>

unsigned long page_offset_base = TEST_DIRECT_MAP;
unsigned long vmemmap_base = TEST_VMEMMAP;
unsigned long phys_base;
unsigned long volatile jiffies;

DEFINE_PER_CPU_READ_MOSTLY(int, cpu_number);
DEFINE_PER_CPU(int, __preempt_count);
DEFINE_PER_CPU_ALIGNED(struct softnet_data, softnet_data);

unsigned int test_upcalls;
struct test_host test_host[HOT_CPUS];

static unsigned long next_page;		/* frame that alloc_pages() gives next */

void test_cpu_init(unsigned int cpu)
{
	this_cpu_write(cpu_number, cpu);
}

unsigned int test_may_allocate = ~0u;
unsigned int test_allocated;

/* Naturally aligned, never freed: hot_setup() is the only user. */
struct page *alloc_pages(gfp_t gfp, unsigned int order)
{
	unsigned long first = ALIGN(next_page, 1ul << order);

	if (!test_may_allocate)
		return NULL;
	test_may_allocate--;
	test_allocated++;
	if ((first + (1ul << order)) << PAGE_SHIFT > TEST_RAM)
		return NULL;
	next_page = first + (1ul << order);
	atomic_set(&pfn_to_page(first)->_refcount, 1);
	return pfn_to_page(first);
}

void kfree(const void *p)
{
	test_upcalls++;
}

void __folio_put(struct folio *folio)
{
	test_upcalls++;
}

void __fix_address kfree_skb_reason(struct sk_buff *skb, enum skb_drop_reason reason)
{
	test_upcalls++;
}

int pskb_expand_head(struct sk_buff *skb, int nhead, int ntail, gfp_t gfp)
{
	test_upcalls++;
	return -ENOMEM;
}

void *__pskb_pull_tail(struct sk_buff *skb, int delta)
{
	test_upcalls++;
	return NULL;
}

int skb_copy_bits(const struct sk_buff *skb, int offset, void *to, int len)
{
	test_upcalls++;
	return -EFAULT;
}

void refcount_warn_saturate(refcount_t *r, enum refcount_saturation_type t)
{
	CHECK(!"reference count saturated");
}

const char *dev_driver_string(const struct device *dev)
{
	return "test";
}

void __warn_printk(const char *fmt, ...)
{
	CHECK(!"warning");
}

bool test_dom0_free(struct sk_buff *skb)
{
	return atomic_dec_and_test(&skb->users.refs);
}

u32 host_receive(void *data, u32 length, struct sk_buff *skb, u32 flags, u32 vlan)
{
	struct test_host *host = &test_host[raw_smp_processor_id()];

	if (flags & HOT_RX_LOOK) {
		CHECK(flags == HOT_RX_LOOK && !data && !length && !skb && !vlan);
		host->asked++;
		return host->more && host->more-- ? HOT_RX_MORE : HOT_RX_UNWANTED;
	}
	host->calls++;
	host->data = data;
	host->length = length;
	host->skb = skb;
	host->flags = flags;
	host->vlan = vlan;
	if (host->seen)
		host->seen(data, length, flags, vlan);
	if (host->answer == HOT_RX_HELD && host->held < HOT_RELEASE)
		host->queue[host->held++] = (u64)skb;
	return host->answer;
}

/* Guests' memory is not there: its bytes are what test_guest_byte() says. */
u32 host_gather(void *to, u64 cookie, u32 offset, u32 length, const struct sk_buff *whole)
{
	const struct skb_shared_info *info = skb_shinfo(whole);
	u32 i, n = 0, sum = 0;

	test_host[raw_smp_processor_id()].gathered++;
	if (test_host[raw_smp_processor_id()].forgotten == cookie)
		return ~0u;
	for (i = 0; i < info->nr_frags && n < length; i++) {
		u64 at = (page_to_pfn(skb_frag_page(&info->frags[i])) << PAGE_SHIFT) +
			 skb_frag_off(&info->frags[i]);
		u32 size = skb_frag_size(&info->frags[i]), k;

		for (k = offset < size ? offset : size; k < size && n < length; k++, n++)
			((u8 *)to)[n] = test_guest_byte(at + k);
		offset -= min(offset, size);
	}
	CHECK(n == length);
	for (i = 0; i < n; i++)
		sum += i % 2 ? ((u8 *)to)[i] << 8 : ((u8 *)to)[i];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}
