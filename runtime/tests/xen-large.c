// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Large packets, which have several pieces and an entry that says how they are cut.
 */
#include "xen.h"

static const struct netif_extra tcp4 = {
	.type = NETIF_EXTRA_GSO, .gso_size = 1448, .gso_type = NETIF_GSO_TCPV4,
};
static const uint8_t outside[6] = { 0x52 };

static void a_large_packet_is_the_cards(void)
{
	start();
	put_large(0, outside, tcp4);
	kick(0);
	CHECK_EQUAL(sent_count, 1);
	CHECK_EQUAL(given[0].gso_size, 1448);
	CHECK_EQUAL(given[0].gso_type, HOT_GSO_TCPV4);
	CHECK_EQUAL(given[0].checksum_start, 34);
	CHECK_EQUAL(given[0].header_length + given[0].rest, 9000);
	CHECK(!memcmp(sent[0], grants[0], 4096));
	CHECK(!memcmp(sent[0] + 4096, grants[1], 4096));
	CHECK(!memcmp(sent[0] + 8192, grants[2], 808));
	CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), 4);
	CHECK_EQUAL(tx_answer(0, 0).id, 60);
	CHECK_EQUAL(tx_answer(0, 0).status, NETIF_RSP_OKAY);
	CHECK_EQUAL(tx_answer(0, 1).status, NETIF_RSP_NULL);
	CHECK_EQUAL(tx_answer(0, 2).id, 61);
	CHECK_EQUAL(tx_answer(0, 3).id, 62);
}

/* The largest that there is: 17 pieces and what follows it. */
static void the_largest_packet_is_taken(void)
{
	uint32_t i;

	start();
	put_large(0, outside, tcp4);
	produced[0][0] = 0;
	put_tx(0, (struct netif_tx_request){
		.reference = 0, .size = 65535, .id = 0,
		.flags = NETTXF_CSUM_BLANK | NETTXF_EXTRA_INFO | NETTXF_MORE_DATA,
	});
	put_extra(0, tcp4);
	for (i = 1; i < 17; i++)
		put_tx(0, (struct netif_tx_request){ .reference = i, .size = i < 16 ? 4096 : 3000,
						     .id = i, .flags = i < 16 ? NETTXF_MORE_DATA : 0 });
	put_tx(0, (struct netif_tx_request){ .reference = 20, .size = 60, .id = 77 });
	kick(0);
	CHECK_EQUAL(sent_count, 2);
	CHECK_EQUAL(given[0].header_length + given[0].rest, 65535);
	CHECK(!memcmp(sent[0] + 65535 - 3000, grants[16], 3000));
	CHECK_EQUAL(tx_answer(0, 18).id, 77);
	CHECK_EQUAL(tx_answer(0, 18).status, NETIF_RSP_OKAY);
}

static struct netif_extra extra_answer(uint32_t guest, uint32_t number)
{
	const struct netif_rx_response answer = rx_answer(guest, number);
	struct netif_extra extra;

	memcpy(&extra, &answer, sizeof(extra));
	return extra;
}

static void a_large_packet_reaches_a_guest(void)
{
	static const uint8_t guest1[6] = { 0, 0x16, 0x3e, 0, 0, 1 };
	uint32_t i;

	start();
	for (i = 0; i < 4; i++)
		put_rx(1, 40 + i, 8 + i);
	put_large(0, guest1, tcp4);
	kick(0);
	CHECK_EQUAL(sent_count, 0);
	CHECK_EQUAL(get(1, 1, NETIF_RESPONSE_PRODUCE), 4);
	CHECK_EQUAL(rx_answer(1, 0).id, 40);
	CHECK_EQUAL(rx_answer(1, 0).status, 4096);
	CHECK_EQUAL(rx_answer(1, 0).flags, NETRXF_DATA_VALIDATED | NETRXF_CSUM_BLANK |
		    NETRXF_MORE_DATA | NETRXF_EXTRA_INFO);
	CHECK_EQUAL(extra_answer(1, 1).type, NETIF_EXTRA_GSO);
	CHECK_EQUAL(extra_answer(1, 1).gso_size, 1448);
	CHECK_EQUAL(rx_answer(1, 2).id, 42);
	CHECK_EQUAL(rx_answer(1, 2).flags, NETRXF_MORE_DATA);
	CHECK_EQUAL(rx_answer(1, 3).flags, 0);
	CHECK_EQUAL(rx_answer(1, 3).status, 808);
	CHECK(!memcmp(grants[8], grants[0], 4096));
	CHECK(!memcmp(grants[10], grants[1], 4096));
	CHECK(!memcmp(grants[11], grants[2], 808));
	CHECK_EQUAL(vif_status(1).received_bytes, 9000);
	for (i = 0; i < BUFFERS; i++)
		CHECK_EQUAL(buffer_state[i], 0);
	/* Three requests are not enough: none is taken. */
	for (i = 0; i < 3; i++)
		put_rx(1, 50 + i, 8 + i);
	put_large(0, guest1, tcp4);
	kick(0);
	CHECK_EQUAL(get(1, 1, NETIF_RESPONSE_PRODUCE), 4);
	CHECK_EQUAL(vif_status(1).full, 1);
}

static void an_old_frontend_gets_no_large_packet(void)
{
	static const uint8_t guest2[6] = { 0, 0x16, 0x3e, 0, 0, 2 };
	uint32_t i;

	start();
	for (i = 0; i < 4; i++)
		put_rx(2, i, 8 + i);
	put_large(0, guest2, tcp4);
	kick(0);
	CHECK_EQUAL(get(2, 1, NETIF_RESPONSE_PRODUCE), 0);
	CHECK_EQUAL(vif_status(2).full, 1);
	CHECK_EQUAL(tx_answer(0, 0).status, NETIF_RSP_OKAY);
}

/* Refused and answered, or the end of the service: nothing of it is sent. */
static void large_packets_that_are_nonsense(void)
{
	static const struct netif_extra bad[] = {
		{ .type = 2, .gso_size = 1448, .gso_type = NETIF_GSO_TCPV4 },
		{ .type = NETIF_EXTRA_GSO, .gso_size = 1448, .gso_type = 2 },
		{ .type = NETIF_EXTRA_GSO, .gso_size = 0, .gso_type = NETIF_GSO_TCPV4 },
		{ .type = NETIF_EXTRA_GSO, .gso_size = 1448, .gso_type = NETIF_GSO_TCPV4,
		  .flags = NETIF_EXTRA_MORE },
	};
	uint32_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		start();
		put_large(0, outside, bad[i]);
		kick(0);
		CHECK_EQUAL(sent_count, 0);
		is_broken(0);
	}
	for (i = 0; i < 4; i++) {
		struct netif_extra extra = tcp4;

		start();
		if (i == 0)
			extra.gso_size = NETIF_SMALLEST_SEGMENT - 1;
		put_large(0, outside, extra);
		if (i == 1)
			grants[0][23] = 17;
		if (i == 2)
			grants[0][14] = 0x4f, grants[0][74 + 12] = 0xf0;	/* headers of 134 bytes */
		if (i == 3)
			rings[0][0][NETIF_RING_HEADER + 6] &= ~NETTXF_CSUM_BLANK;
		kick(0);
		CHECK_EQUAL(sent_count, 0);
		CHECK_EQUAL(tx_answer(0, 0).status, NETIF_RSP_ERROR);
		CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), 4);
		CHECK_EQUAL(vif_status(0).refused, 1);
	}
	/* The extra entry has not come yet. */
	start();
	put_large(0, outside, tcp4);
	set(0, 0, NETIF_REQUEST_PRODUCE, 1);
	kick(0);
	CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), 0);
	set(0, 0, NETIF_REQUEST_PRODUCE, 4);
	kick(0);
	CHECK_EQUAL(sent_count, 1);
}

int main(void)
{
	RUN(a_large_packet_is_the_cards);
	RUN(the_largest_packet_is_taken);
	RUN(a_large_packet_reaches_a_guest);
	RUN(an_old_frontend_gets_no_large_packet);
	RUN(large_packets_that_are_nonsense);
	return test_summary();
}
