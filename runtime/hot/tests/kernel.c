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

/* Guests' memory is not there: its bytes are what test_guest_byte() says. Those of a packet at one place of it. */
static u8 packet_byte(const struct skb_shared_info *info, u32 at)
{
	u32 i;

	for (i = 0; i < info->nr_frags; i++) {
		const skb_frag_t *fragment = &info->frags[i];

		if (at < skb_frag_size(fragment))
			return test_guest_byte((page_to_pfn(skb_frag_page(fragment)) << PAGE_SHIFT) +
					       skb_frag_off(fragment) + at);
		at -= skb_frag_size(fragment);
	}
	CHECK(!"behind its end");
	return 0;
}

u32 host_gather(void *to, u64 cookie, u32 offset, u32 bytes, u32 each, const struct sk_buff *whole)
{
	struct test_host *host = &test_host[raw_smp_processor_id()];
	u64 *list = to;
	u32 i, length, sum;

	host->gathered++;
	if (host->forgotten == cookie)
		return 0;
	if (!each) {
		CHECK(bytes && bytes <= HOT_GATHER_MOST);
		for (i = 0; i < bytes; i++)
			((u8 *)to)[i] = packet_byte(skb_shinfo(whole), offset + i);
		host->alone++;
		return 1;
	}
	CHECK(bytes && each <= HOT_GATHER_MOST && bytes <= each * HOT_GATHERS);
	for (; bytes; bytes -= length, offset += length, list++) {
		u8 *place = (u8 *)*list;

		length = min(bytes, each);
		for (i = 0, sum = 0; i < length; i++) {
			place[i] = packet_byte(skb_shinfo(whole), offset + i);
			sum += i % 2 ? place[i] << 8 : place[i];
		}
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		*list = sum;
	}
	return 1;
}
