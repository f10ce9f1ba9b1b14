// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tests of the hot routines: requests that no honest guest makes.
 */
#include "common.h"
#include <linux/etherdevice.h>

static void rejected(const char *why)
{
	u64 before = counted(HOT_COUNT_INVALID);

	if (hot_transmit(&driver->dev, 0, 1) != 0 || request(0)->result != HOT_INVALID)
		test_fail(why, 0, "accepted");
	CHECK(counted(HOT_COUNT_INVALID) == before + 1);
	CHECK(driver->next == 0);
}

#define REJECT(make, change)					\
	do {							\
		struct hot_tx_request *r __maybe_unused = make;	\
		change;						\
		rejected(#make ": " #change);			\
	} while (0)

static struct hot_tx_request *fragmented(void)
{
	struct hot_tx_request *r = linear(0, 60);

	add_fragment(r, GUEST_PAGE(1), 500);
	add_fragment(r, GUEST_PAGE(2), 500);
	return r;
}

static struct hot_tx_request *checksummed(void)
{
	struct hot_tx_request *r = linear(0, 60);

	r->header_length = fill_tcp(r, false, 0);
	return r;
}

void test_malformed(void)
{
	begin();
	REJECT(linear(0, 60), r->header_length = 0);
	REJECT(linear(0, 60), r->header_length = 13);
	REJECT(linear(0, 60), r->header_length = HOT_HEADER + 1);
	REJECT(linear(0, 60), r->header_length = 0xffff);
	REJECT(linear(0, 60), r->flags = 2);
	REJECT(linear(0, 60), r->flags = 0xffff);
	REJECT(linear(0, 60), r->gso_type = 3);
	REJECT(linear(0, 60), r->gso_size = 1000);
	REJECT(linear(0, 60), r->gso_type = HOT_GSO_TCPV4);
	REJECT(linear(0, 14), *(__be16 *)(r->header + 12) = htons(ETH_P_8021Q));
	REJECT(linear(0, 60), *(__be16 *)(r->header + 12) = *(__be16 *)(r->header + 16) =
	       *(__be16 *)(r->header + 20) = htons(ETH_P_8021AD));

	REJECT(fragmented(), r->fragments = HOT_FRAGMENTS + 1);
	REJECT(fragmented(), r->fragments = 0xffff);
	REJECT(fragmented(), r->fragment[1].length = 0);
	REJECT(fragmented(), r->fragment[1].length = 0xffffffff);
	REJECT(fragmented(), r->fragment[1].length = 1442);	/* above the MTU by one */
	REJECT(fragmented(), r->fragment[0].address = TEST_RAM + TEST_GUEST_RAM);
	REJECT(fragmented(), r->fragment[0].address = TEST_RAM + TEST_GUEST_RAM - 499);
	REJECT(fragmented(), r->fragment[0].address = ~0ull);
	REJECT(fragmented(), r->fragment[0].address = ~0ull - 600);
	REJECT(fragmented(), (r->header_length = 14, r->fragments = 1, r->fragment[0].length = 45));

	REJECT(checksummed(), r->checksum_start = 13);
	REJECT(checksummed(), r->checksum_start = r->header_length - 1);
	REJECT(checksummed(), r->checksum_start = 0xffff);
	REJECT(checksummed(), r->checksum_offset = 0xffff);
	REJECT(checksummed(), r->checksum_offset = r->header_length - r->checksum_start - 1);
	REJECT(checksummed(), (r->header_length = 30, r->checksum_start = 14, r->checksum_offset = 0));

	REJECT(tso(0, false, 0), r->gso_size = HOT_MIN_GSO_SIZE - 1);
	REJECT(tso(0, false, 0), r->gso_size = 1449);
	REJECT(tso(0, false, 0), r->gso_type = HOT_GSO_TCPV6);
	REJECT(tso(0, true, 0), r->gso_type = HOT_GSO_TCPV4);
	REJECT(tso(0, false, 0), r->checksum_start = 0);
	REJECT(tso(0, false, 0), r->checksum_start += 4);
	REJECT(tso(0, false, 0), r->checksum_offset = 6);
	REJECT(tso(0, false, 0), r->header_length -= 1);
	REJECT(tso(0, false, 0), r->header[14] = 0x44);		/* ihl below 5 */
	REJECT(tso(0, false, 0), r->header[14] = 0x4f);		/* ihl beyond the header */
	REJECT(tso(0, false, 0), r->header[14] = 0x65);
	REJECT(tso(0, false, 0), r->header[23] = IPPROTO_UDP);
	REJECT(tso(0, false, 0), r->header[34 + 12] = 0x40);	/* doff below 5 */
	REJECT(tso(0, false, 0), r->header[34 + 12] = 0xf0);
	REJECT(tso(0, false, 0), r->fragments = 0);		/* no payload */
	REJECT(tso(0, false, 0), r->fragment[15].length = 5000);	/* beyond 64 KiB */

	driver->dev.features = 0;
	REJECT(fragmented(), );
	REJECT(checksummed(), );
	REJECT(tso(0, false, 0), );
	REJECT(linear(0, 60), r->flags = HOT_TX_VLAN);
	driver->dev.features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_TSO;
	REJECT(tso(0, true, 0), );
	CHECK(hot_transmit(&driver->dev, HOT_REQUESTS, 1) == 0);
	CHECK(hot_transmit(&driver->dev, 1, HOT_REQUESTS) == 0);
	CHECK(hot_transmit(&driver->dev, ~0u, 2) == 0);
	nothing_lost();
}

/* Changes one thing, or many, at random. */
static void mutate(struct hot_tx_request *r)
{
	static const u16 words[] = { 0, 1, 13, 14, 34, 128, 129, 0x7fff, 0xffff };
	u32 n = test_random() % 4;

	while (n--) {
		u32 at = test_random() % 432;

		switch (test_random() % 4) {
		case 0:
			((u8 *)r)[at] = test_random();
			break;
		case 1:
			((u8 *)r)[at] ^= 1 << test_random() % 8;
			break;
		case 2:
			*(u16 *)((u8 *)r + 12 + test_random() % 8 * 2) =
				words[test_random() % ARRAY_SIZE(words)];
			break;
		case 3:
			r->fragment[test_random() % HOT_FRAGMENTS].length =
				words[test_random() % ARRAY_SIZE(words)];
			break;
		}
	}
}

static struct hot_tx_request *random_template(u32 i)
{
	struct hot_tx_request *r;

	switch (test_random() % 4) {
	case 0:
		return linear(i, 14 + test_random() % 115);
	case 1:
		return tso(i, test_random() & 1, test_random() % 3);
	case 2:
		r = linear(i, 60);
		r->header_length = fill_tcp(r, test_random() & 1, test_random() % 3);
		return r;
	default:
		r = linear(i, 60);
		add_fragment(r, GUEST_PAGE(test_random() % 4096), 1 + test_random() % 1400);
		return r;
	}
}

/* The driver checks every packet it is given; here that results agree. */
void test_fuzz(void)
{
	u32 rounds, i, accepted = 0, refused = 0;

	begin();
	for (rounds = 0; rounds < 20000; rounds++) {
		u32 count = 1 + test_random() % 16, sent, n = 0, before = driver->next;

		for (i = 0; i < count; i++)
			mutate(random_template(i));
		driver->dev.mtu = test_random() % 8 ? 1500 : 68 + test_random() % 9000;
		sent = hot_transmit(&driver->dev, 0, count);
		for (i = 0; i < count; i++) {
			CHECK(request(i)->result == HOT_SENT || request(i)->result == HOT_INVALID);
			n += request(i)->result == HOT_SENT;
		}
		CHECK(n == sent && driver->next - before == sent);
		CHECK(!sent || !last_packet()->more);
		accepted += sent;
		refused += count - sent;
		CHECK(driver_clean(1000) == sent);
		CHECK(completions() == sent);
	}
	CHECK(accepted > 20000 && refused > 20000);
	nothing_lost();
}

/* The same for a device that cannot do everything: each packet that was accepted completes. */
void test_offload_fuzz(void)
{
	u32 rounds, i, accepted = 0;

	begin();
	shared()->offload = 1;
	for (rounds = 0; rounds < 5000; rounds++) {
		u32 count = 1 + test_random() % 4, sent, polls;

		for (i = 0; i < count; i++)
			mutate(random_template(i));
		driver->dev.features = test_random() & (NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_TSO |
							NETIF_F_TSO6 | NETIF_F_HW_VLAN_CTAG_TX);
		sent = hot_transmit(&driver->dev, 0, count);
		accepted += sent;
		for (i = 0; i < count; i++)
			CHECK(request(i)->result <= HOT_INVALID);
		for (polls = 0; polls < 10; polls++) {
			driver_clean(1000);
			hot_poll(64);
		}
		driver_clean(1000);
		CHECK(!hot_transmit_waits() && completions() == sent);
	}
	CHECK(accepted > 4000);
	shared()->offload = 0;
	nothing_lost();
}

/* A guest that changes its request while it is read (double fetch). */
static u32 race_stop;

static void race(u32 cpu)
{
	u32 rounds, i;

	if (cpu == 1) {
		struct hot_tx_request *r = (struct hot_tx_request *)hot_shared[0].requests;

		while (!READ_ONCE(race_stop))
			for (i = 0; i < 16; i++)
				mutate(&r[i]);
		return;
	}
	for (rounds = 0; rounds < 20000; rounds++) {
		u32 sent;

		for (i = 0; i < 16; i++)
			random_template(i);
		sent = hot_transmit(&driver->dev, 0, 16);
		CHECK(driver_clean(1000) == sent);
		CHECK(completions() == sent);
	}
	WRITE_ONCE(race_stop, 1);
}

void test_double_fetch(void)
{
	begin();
	WRITE_ONCE(race_stop, 0);
	test_two_cpus(race);
	nothing_lost();
}
