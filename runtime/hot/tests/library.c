// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tests of the hot routines: those for purposes other than packets (DMA, strings,
 * checksums).
 */
#include "common.h"
#include <linux/ipv6.h>
#include <linux/mm.h>
#include <net/ip6_checksum.h>

void test_dma(void)
{
	struct page *page = pfn_to_page(GUEST_PAGE(7) >> PAGE_SHIFT);

	begin();
	CHECK(dma_map_page_attrs(NULL, page, 123, 400, DMA_TO_DEVICE, 0) == GUEST_PAGE(7) + 123);
	CHECK(dma_map_page_attrs(NULL, page, 5000, 400, DMA_TO_DEVICE, 0) == GUEST_PAGE(7) + 5000);
	CHECK(!is_vmalloc_addr((void *)TEST_DIRECT_MAP));
	CHECK(!is_vmalloc_addr((void *)(TEST_DIRECT_MAP + TEST_RAM - 1)));
	CHECK(is_vmalloc_addr((void *)(TEST_DIRECT_MAP - 1)));
	CHECK(is_vmalloc_addr((void *)0xffffc90000000000ul));
	nothing_lost();
}

/* A paravirtual dom0's frames are elsewhere in the machine; guests' come after them. */
void test_dma_p2m(void)
{
	static unsigned long list[3] = { 0x1234, 0x77 | 1ul << 63, 0x9 };
	unsigned long guest = GUEST_PAGE(7) >> PAGE_SHIFT;

	begin();
	hot_p2m = list;
	hot_p2m_frames = ARRAY_SIZE(list);
	CHECK(dma_map_page_attrs(NULL, pfn_to_page(0), 8, 40, DMA_TO_DEVICE, 0) == 0x1234008);
	CHECK(dma_map_page_attrs(NULL, pfn_to_page(1), 0, 40, DMA_TO_DEVICE, 0) == 0x77000);
	CHECK(dma_map_page_attrs(NULL, pfn_to_page(guest + hot_p2m_frames), 5, 40, DMA_TO_DEVICE,
				 0) == GUEST_PAGE(7) + 5);
	hot_p2m = NULL;
	hot_p2m_frames = 0;
	nothing_lost();
}

void test_string(void)
{
	static u8 a[5000], b[5000];
	void *volatile to = b + 3;	/* the routines themselves, not builtins */
	u32 i, n;

	begin();
	for (n = 0; n < 4200; n += 1 + n / 3) {
		for (i = 0; i < sizeof(a); i++) {
			a[i] = test_random();
			b[i] = 0x55;
		}
		CHECK(memcpy(to, a + 1, n) == b + 3);
		CHECK(!memcmp(b + 3, a + 1, n) && b[2] == 0x55 && b[3 + n] == 0x55);
		CHECK(memset(to, 0x1ee, n) == b + 3);
		for (i = 0; i < n; i++)
			CHECK(b[3 + i] == 0xee);
		CHECK(b[2] == 0x55 && b[3 + n] == 0x55);
	}
	nothing_lost();
}

/* RFC 1071 by the book: 16-bit words, carries added at the end. */
void test_csum_ipv6(void)
{
	u32 round;

	begin();
	for (round = 0; round < 20000; round++) {
		struct in6_addr from, to;
		u32 length = test_random(), seed = test_random(), i;
		u8 protocol = test_random();
		u64 sum = (seed & 0xffff) + (seed >> 16);

		for (i = 0; i < 8; i++) {
			from.s6_addr16[i] = round & 1 ? 0xffff : test_random();
			to.s6_addr16[i] = round & 1 ? 0xffff : test_random();
			sum += from.s6_addr16[i] + to.s6_addr16[i];
		}
		sum += htons(length >> 16) + htons(length & 0xffff) + htons(protocol);
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		CHECK((u16)csum_ipv6_magic(&from, &to, length, protocol, seed) == (u16)~sum);
	}
	nothing_lost();
}
