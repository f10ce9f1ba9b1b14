// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Several segments of TCP that guests get as one packet: platform/xen/receive.c and deliver.c, with
 * chains that driver code wrote, and when they are asked for (vif.c).
 */
#include "xen.h"

/* Frames of TCP to guest 1, one after the other in its ring's page behind the ring; the chain is in
 * that of guest 2. */
#define SEGMENT_HEADERS 54u
#define SEGMENTS_AT 2500u
#define CHAIN_AT 2504u

static struct hot_rx_chain *chain_in_dom0(void)
{
	return (struct hot_rx_chain *)&rings[2][1][CHAIN_AT];
}

static void make_chain(uint32_t segments, uint32_t size, uint32_t last)
{
	struct hot_rx_chain *chain = chain_in_dom0();
	uint8_t *frame = &rings[1][1][SEGMENTS_AT];
	const uint32_t length = 40 + (segments - 1) * size + last;
	uint32_t i, at = SEGMENTS_AT;

	for (i = 0; i < 1500; i++)
		frame[i] = i * 5 + 3;
	memset(frame, 0, SEGMENT_HEADERS);
	memcpy(frame, (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0, 0x45, 0 }, 16);
	frame[16] = length >> 8;
	frame[17] = length;
	frame[20] = 0x40;	/* don't fragment */
	frame[23] = 6;
	frame[46] = 0x50;
	*chain = (struct hot_rx_chain){ .segments = segments, .size = size };
	for (i = 0; i < segments; i++) {
		const uint32_t bytes = (i ? 0 : SEGMENT_HEADERS) + (i + 1 < segments ? size : last);

		chain->piece[i].data = ring_of(1, 1) + at;
		chain->piece[i].length = bytes;
		at += bytes;
	}
}

static bool receive_chain(void)
{
	return receive(ring_of(2, 1) + CHAIN_AT, offsetof(struct hot_rx_chain, piece) +
		       chain_in_dom0()->segments * sizeof(struct hot_rx_piece),
		       HOT_RX_PIECES | HOT_RX_CHECKSUM_OK);
}

static void segments_are_one_large_packet(void)
{
	const uint64_t merged = xen_counts.merged, aggregates = xen_counts.aggregates;
	struct netif_extra extra;

	start();
	put_rx(1, 8, 3);
	put_rx(1, 9, 4);
	make_chain(5, 200, 77);
	CHECK(receive_chain());
	xen_vif_publish();
	CHECK_EQUAL(rx_answer(1, 0).status, SEGMENT_HEADERS + 4 * 200 + 77);
	CHECK_EQUAL(rx_answer(1, 0).flags,
		    NETRXF_DATA_VALIDATED | NETRXF_CSUM_BLANK | NETRXF_EXTRA_INFO);
	memcpy(&extra, &rings[1][1][NETIF_RING_HEADER + 8], sizeof(extra));
	CHECK_EQUAL(extra.type, NETIF_EXTRA_GSO);
	CHECK_EQUAL(extra.gso_size, 200);
	CHECK_EQUAL(extra.gso_type, NETIF_GSO_TCPV4);
	CHECK(!memcmp(grants[3], &rings[1][1][SEGMENTS_AT], SEGMENT_HEADERS + 4 * 200 + 77));
	CHECK_EQUAL(xen_counts.merged - merged, 5);
	CHECK_EQUAL(xen_counts.aggregates - aggregates, 1);
	CHECK_EQUAL(vif_status(1).received_bytes, SEGMENT_HEADERS + 4 * 200 + 77);
}

/* More than a page: every piece is the same one. */
static void segments_have_several_pages(void)
{
	const uint32_t bytes = SEGMENT_HEADERS + HOT_RX_SEGMENTS * 1000;
	const uint32_t pages = (bytes + NETIF_GRANT_SIZE - 1) / NETIF_GRANT_SIZE;
	uint32_t i, at;

	start();
	make_chain(2, 1000, 1000);
	chain_in_dom0()->segments = HOT_RX_SEGMENTS;
	for (i = 2; i < HOT_RX_SEGMENTS; i++)
		chain_in_dom0()->piece[i] = chain_in_dom0()->piece[1];
	at = 40 + HOT_RX_SEGMENTS * 1000;
	rings[1][1][SEGMENTS_AT + 16] = at >> 8;
	rings[1][1][SEGMENTS_AT + 17] = at;
	/* Pieces 2 and later are read from where there is something. */
	for (i = 1; i < HOT_RX_SEGMENTS; i++)
		chain_in_dom0()->piece[i].data = ring_of(1, 1) + SEGMENTS_AT + SEGMENT_HEADERS;
	/* Behind the first is the slot that has no page. */
	for (i = 0; i <= pages; i++)
		put_rx(1, i, 3 + i);
	CHECK(receive_chain());
	CHECK_EQUAL(vif_status(1).received, 1);
	xen_vif_publish();
	CHECK_EQUAL(rx_answer(1, 0).status, NETIF_GRANT_SIZE);
	for (i = 2; i < pages; i++)
		CHECK_EQUAL(rx_answer(1, i).status, NETIF_GRANT_SIZE);
	CHECK_EQUAL(rx_answer(1, pages).status, bytes - (pages - 1) * NETIF_GRANT_SIZE);
	CHECK_EQUAL(rx_answer(1, pages).flags, 0);
	for (i = 0, at = SEGMENT_HEADERS; i < HOT_RX_SEGMENTS; i++, at += 1000)
		CHECK_EQUAL(grants[3 + (at / 4096 ? at / 4096 + 1 : 0)][at % 4096],
			    rings[1][1][SEGMENTS_AT + SEGMENT_HEADERS]);
}

/* Driver code wrote the chain, and a stranger the packet: neither is believed. */
static void chains_are_judged(void)
{
	uint8_t *frame = &rings[1][1][SEGMENTS_AT];
	struct hot_rx_chain *chain = chain_in_dom0();
	const uint64_t data = ring_of(2, 1) + CHAIN_AT;
	const uint32_t size = offsetof(struct hot_rx_chain, piece) + 3 * sizeof(chain->piece[0]);
	uint32_t i;

	start();
	for (i = 0; i < 8; i++)
		put_rx(1, i, 3 + i);
#define REFUSED(change)									\
	do {										\
		make_chain(3, 200, 100);						\
		change;									\
		CHECK(!receive(data, size, HOT_RX_PIECES));				\
	} while (0)
	REFUSED(chain->segments = 2);		/* which is not what was said of its length */
	REFUSED(chain->segments = 0);
	REFUSED(chain->segments = UINT32_MAX);
	REFUSED(chain->size = 0);
	REFUSED(chain->size = 500);
	REFUSED(chain->size = UINT32_MAX);
	REFUSED(chain->piece[1].length = 0);
	REFUSED(chain->piece[1].length = NETIF_GRANT_SIZE + 1);
	REFUSED(chain->piece[1].length = UINT32_MAX);
	REFUSED(chain->piece[1].length = 201);	/* IP says another length */
	REFUSED(chain->piece[2].data = 0xdead0000);
	REFUSED(chain->piece[0].length = 53);	/* not all headers */
	REFUSED(frame[12] = 0x86);
	REFUSED((frame[12] = 0x81, frame[13] = 0));
	REFUSED(frame[14] = 0x65);
	REFUSED(frame[14] = 0x44);
	REFUSED(frame[17]++);
	REFUSED(frame[20] = 0x20);		/* more fragments */
	REFUSED(frame[21] = 1);			/* a later one */
	REFUSED(frame[23] = 17);
	REFUSED(frame[46] = 0x40);
	REFUSED((frame[46] = 0xf0, chain->piece[0].length = 93, chain->piece[1].length += 161));
	make_chain(3, 200, 100);
	CHECK(!receive(data, size - 1, HOT_RX_PIECES));
	CHECK(!receive(data, 7, HOT_RX_PIECES));
	CHECK(!receive(data, UINT32_MAX, HOT_RX_PIECES));
	CHECK(!receive(0xdead0000, size, HOT_RX_PIECES));
	CHECK_EQUAL(vif_status(1).received, 0);
	/* All together are more than a packet may be. */
	make_chain(2, 200, 100);
	chain->segments = HOT_RX_SEGMENTS;
	for (i = 0; i < HOT_RX_SEGMENTS; i++)
		chain->piece[i] = (struct hot_rx_piece){
			.data = ring_of(0, 1), .length = NETIF_GRANT_SIZE,
		};
	CHECK(!receive_chain());
	make_chain(3, 200, 100);
	CHECK(receive_chain());
	CHECK_EQUAL(vif_status(1).received, 1);
}

/* The queue has room for so much: no more is written, and the next service has all of it again. */
static void chains_without_end_are_dropped(void)
{
	const uint64_t overrun = xen_counts.overrun;
	uint32_t i;

	start();
	make_chain(2, 1000, 1000);
	chain_in_dom0()->segments = HOT_RX_SEGMENTS;
	for (i = 1; i < HOT_RX_SEGMENTS; i++)
		chain_in_dom0()->piece[i] = (struct hot_rx_piece){
			.data = ring_of(0, 1), .length = 1000,
		};
	rings[1][1][SEGMENTS_AT + 16] = (40 + HOT_RX_SEGMENTS * 1000) >> 8;
	rings[1][1][SEGMENTS_AT + 17] = (40 + HOT_RX_SEGMENTS * 1000) & 0xff;
	for (i = 0; i < 100; i++)
		give_frame(ring_of(2, 1) + CHAIN_AT, offsetof(struct hot_rx_chain, piece) +
			   HOT_RX_SEGMENTS * sizeof(struct hot_rx_piece), HOT_RX_PIECES);
	CHECK(xen_counts.overrun > overrun);
	CHECK(xen_counts.overrun < overrun + 100);
	give_frame(ring_of(1, 1) + SEGMENTS_AT, 60, 0);
	xen_receive_deliver();
	for (i = 0; i < NETIF_ENTRIES; i++)
		put_rx(1, i, 3);
	CHECK(receive_chain());
	CHECK_EQUAL(vif_status(1).received, 1);
}

/* A guest whose frontend takes no large packets would lose its segments. */
static void segments_are_merged_while_all_guests_take_it(void)
{
	uint32_t i;

	start();
	CHECK_EQUAL(hot[0].aggregate, 0);	/* the last one is an old frontend */
	xen_vif_disconnect(GUESTS, 0);
	for (i = 0; i < HOT_CPUS; i++)
		CHECK_EQUAL(hot[i].aggregate, 20);
	CHECK_EQUAL(connect_guest(GUESTS - 1), 0);
	CHECK_EQUAL(hot[0].aggregate, 0);
	xen_vif_disconnect(GUESTS, 0);
	CHECK_EQUAL(hot[0].aggregate, 20);
	xen_vif_disconnect_all();
	CHECK_EQUAL(hot[0].aggregate, 0);
	xen_stages.aggregate = 0;
	CHECK_EQUAL(connect_guest(0), 0);
	CHECK_EQUAL(hot[0].aggregate, 0);
}

int main(void)
{
	RUN(segments_are_one_large_packet);
	RUN(segments_have_several_pages);
	RUN(chains_are_judged);
	RUN(chains_without_end_are_dropped);
	RUN(segments_are_merged_while_all_guests_take_it);
	return test_summary();
}
