// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Guests whose rings have nonsense: their service ends, and nobody else's.
 */
#include "xen.h"

static void nonsense_ends_the_service(void)
{
	static const struct netif_tx_request bad[] = {
		{ .size = 13 },
		{ .size = 100, .offset = 4000 },
		{ .size = 100, .offset = 4000, .flags = NETTXF_DATA_VALIDATED },
	};
	uint32_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		start();
		put_tx(0, bad[i]);
		kick(0);
		is_broken(0);
		CHECK_EQUAL(sent_count, 0);
	}
	start();
	for (i = 0; i < 30; i++)	/* no end */
		put_tx(0, (struct netif_tx_request){ .size = 2000, .flags = NETTXF_MORE_DATA });
	kick(0);
	is_broken(0);
	start();
	set(0, 0, NETIF_REQUEST_PRODUCE, 0x80000000);	/* more than a ring has */
	kick(0);
	is_broken(0);
	start();
	rings_gone = true;
	kick(0);
	CHECK_EQUAL(sent_count, 0);
}

/* Rings of random numbers that are half sensible: no copy leaves an array, and buffers are
 * neither lost nor given back twice. */
static void random_rings(void)
{
	const struct twin_xen_stages usual = stages;
	uint32_t round, i, taken;

	for (round = 0; round < 20000; round++) {
		if (round % 50 == 0) {
			stages.bridge = round / 50 % 2;
			stages.storm = chance(2) ? 1000 : 0;
			stages.notify = chance(2) ? chance(100) : 0;
			stages.pace = chance(2);
			start();
		}
		for (i = chance(24); i; i--)
			put_tx(chance(GUESTS), (struct netif_tx_request){
				.reference = chance(GRANTS + 2),
				.offset = chance(3) ? 0 : chance(5000),
				.size = chance(8) ? 14 + chance(5000) : chance(65536),
				.flags = chance(4) ? chance(4) : chance(chance(20) ? 8 : 16),
				.id = i,
			});
		if (!chance(4))
			put_large(chance(GUESTS), (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, chance(5) },
				  (struct netif_extra){
					.type = chance(20) ? 1 : chance(4),
					.gso_size = chance(4) ? 1000 : chance(2000),
					.gso_type = chance(20) ? 1 : chance(4),
				  });
		for (i = chance(8); i; i--)
			put_rx(chance(GUESTS), i, chance(GRANTS + 1));
		if (!chance(100))
			rings[chance(GUESTS)][chance(2)][chance(4096)] = chance(256);
		memset(grants[chance(GRANTS)], chance(2) ? 0xff : 0x16, 64);
		memcpy(grants[chance(GRANTS)], (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, chance(4) }, 6);
		memcpy(grants[chance(GRANTS)] + 6, (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, chance(4) }, 6);
		for (answered = i = 0; i < 64; i++)
			answers[i] = chance(4) ? HOT_SENT : chance(5);
		answer_count = 64;
		kick(chance(GUESTS));
		xen_vif_service();
		if (chance(2))
			end_window();
		xen_transmit_complete();
		for (taken = i = 0; i < BUFFERS; i++)
			taken += buffer_state[i] != 0;
		CHECK_EQUAL(taken, 0);
	}
	stages = usual;
}

int main(void)
{
	RUN(nonsense_ends_the_service);
	RUN(random_rings);
	return test_summary();
}
