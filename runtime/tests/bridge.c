// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The bridge: which way packets go, and guests that lie about who they are or send too
 * much to everybody.
 */
#include <string.h>

#include <twin/bridge.h>

#include "test.h"

#define SECOND 1000000000ull
#define WAY(way, bits) ((struct outcome){ way, bits })

struct outcome {
	enum twin_way way;
	uint64_t guests;
};

static struct twin_bridge bridge;
static uint64_t now;

static const uint8_t peer[6] = { 2, 0x50, 0x45, 0x45, 0x52, 0 };
static const uint8_t everybody[6] = { 255, 255, 255, 255, 255, 255 };
static const uint8_t group[6] = { 1, 0, 0x5e, 0, 0, 1 };

static const uint8_t *mac(uint32_t number)
{
	static uint8_t address[4][6];
	static uint32_t turn;
	uint8_t *at = address[turn++ % 4];

	memcpy(at, (const uint8_t[6]){ 2, 0x54, 0x57, 0x49, 0x4e, (uint8_t)number }, 6);
	return at;
}

static void set_up(uint32_t guests, struct twin_storm_limit limit)
{
	uint32_t i;

	memset(&bridge, 0xa5, sizeof(bridge));
	now = 7 * SECOND;
	twin_bridge_init(&bridge, &limit);
	for (i = 0; i < guests; i++)
		CHECK_EQUAL(twin_bridge_add(&bridge, i, mac(i)), TWIN_OK);
}

static const uint8_t *header(const uint8_t *to, const uint8_t *from)
{
	static uint8_t bytes[TWIN_BRIDGE_HEADER];

	memcpy(bytes, to, 6);
	memcpy(bytes + 6, from, 6);
	bytes[12] = 8;
	return bytes;
}

static void check_send(uint32_t number, const uint8_t *to, const uint8_t *from,
		       struct outcome wanted)
{
	uint64_t guests = 0xa5;

	CHECK_EQUAL(twin_bridge_send(&bridge, number, header(to, from), now, &guests), wanted.way);
	CHECK_EQUAL(guests, wanted.guests);
}

static void check_receive(const uint8_t *to, const uint8_t *from, struct outcome wanted)
{
	uint64_t guests = 0xa5;

	CHECK_EQUAL(twin_bridge_receive(&bridge, header(to, from), now, &guests), wanted.way);
	CHECK_EQUAL(guests, wanted.guests);
}

static struct twin_bridge_statistics counts(void)
{
	struct twin_bridge_statistics copy;

	twin_bridge_events(&bridge, &copy);
	return copy;
}

static void a_packet_goes_to_the_guest_of_its_address_or_to_the_wire(void)
{
	set_up(3, (struct twin_storm_limit){ 0 });
	check_send(0, peer, mac(0), WAY(TWIN_WAY_WIRE, 0));
	check_send(0, mac(2), mac(0), WAY(TWIN_WAY_GUESTS, 1 << 2));
	check_send(1, mac(9), mac(1), WAY(TWIN_WAY_WIRE, 0));
	check_send(1, mac(1), mac(1), WAY(TWIN_WAY_NOWHERE, 0));
	check_receive(mac(1), peer, WAY(TWIN_WAY_GUESTS, 1 << 1));
	check_receive(mac(9), peer, WAY(TWIN_WAY_NOWHERE, 0));
	CHECK_EQUAL(counts().wire, 2);
	CHECK_EQUAL(counts().local, 1);
	CHECK_EQUAL(counts().received, 1);
	CHECK_EQUAL(counts().unknown, 2);
}

static void a_group_is_everybody_but_the_sender(void)
{
	set_up(3, (struct twin_storm_limit){ 0 });
	check_send(1, everybody, mac(1), WAY(TWIN_WAY_BOTH, 1 << 0 | 1 << 2));
	check_receive(group, peer, WAY(TWIN_WAY_GUESTS, 7));
	set_up(1, (struct twin_storm_limit){ 0 });
	check_send(0, group, mac(0), WAY(TWIN_WAY_WIRE, 0));
	set_up(0, (struct twin_storm_limit){ 0 });
	check_receive(everybody, peer, WAY(TWIN_WAY_NOWHERE, 0));
}

static void nobody_sends_in_anothers_name(void)
{
	set_up(2, (struct twin_storm_limit){ 0 });
	check_send(0, peer, mac(1), WAY(TWIN_WAY_SPOOFED, 0));
	check_send(0, peer, peer, WAY(TWIN_WAY_SPOOFED, 0));
	check_send(0, peer, group, WAY(TWIN_WAY_SPOOFED, 0));
	check_send(5, peer, mac(5), WAY(TWIN_WAY_SPOOFED, 0));
	check_send(64, peer, mac(0), WAY(TWIN_WAY_SPOOFED, 0));
	check_send(UINT32_MAX, peer, mac(0), WAY(TWIN_WAY_SPOOFED, 0));
	check_receive(mac(1), mac(0), WAY(TWIN_WAY_SPOOFED, 0));
	check_receive(mac(1), group, WAY(TWIN_WAY_SPOOFED, 0));
	CHECK_EQUAL(counts().spoofed, 8);
	check_send(0, peer, mac(0), WAY(TWIN_WAY_WIRE, 0));
}

/* A source has its burst, then one each interval; the others are not concerned. */
static void a_storm_is_limited_by_source(void)
{
	uint32_t i, passed_on = 0;
	uint64_t guests;

	set_up(2, (struct twin_storm_limit){ .interval = SECOND / 100, .burst = 16 });
	for (i = 0; i < 1000; i++)
		passed_on += twin_bridge_send(&bridge, 0, header(everybody, mac(0)), now,
					      &guests) == TWIN_WAY_BOTH;
	CHECK_EQUAL(passed_on, 16);
	CHECK_EQUAL(counts().storm, 984);
	check_send(1, everybody, mac(1), WAY(TWIN_WAY_BOTH, 1));
	check_receive(everybody, peer, WAY(TWIN_WAY_GUESTS, 3));
	check_send(0, peer, mac(0), WAY(TWIN_WAY_WIRE, 0));
	now += SECOND / 100;
	check_send(0, everybody, mac(0), WAY(TWIN_WAY_BOTH, 2));
	check_send(0, everybody, mac(0), WAY(TWIN_WAY_STORM, 0));
	now += 10 * SECOND;
	for (i = 0, passed_on = 0; i < 1000; i++)
		passed_on += twin_bridge_send(&bridge, 0, header(group, mac(0)), now,
					      &guests) == TWIN_WAY_BOTH;
	CHECK_EQUAL(passed_on, 16);
}

/* A packet that waits is asked for each time that it is looked at: it has one place of its source's. */
static void what_is_put_off_counts_for_nothing(void)
{
	const struct twin_bridge_statistics none = { 0 };
	struct twin_bridge_statistics after;
	uint32_t i;

	set_up(2, (struct twin_storm_limit){ .interval = 1000, .burst = 4 });
	for (i = 0; i < 100; i++) {
		check_send(0, everybody, mac(0), WAY(TWIN_WAY_BOTH, 2));
		twin_bridge_put_off(&bridge, 0, header(everybody, mac(0)), TWIN_WAY_BOTH);
		check_send(0, peer, mac(0), WAY(TWIN_WAY_WIRE, 0));
		twin_bridge_put_off(&bridge, 0, header(peer, mac(0)), TWIN_WAY_WIRE);
		check_send(0, mac(1), mac(0), WAY(TWIN_WAY_GUESTS, 2));
		twin_bridge_put_off(&bridge, 0, header(mac(1), mac(0)), TWIN_WAY_GUESTS);
		check_send(0, mac(0), mac(0), WAY(TWIN_WAY_NOWHERE, 0));
		twin_bridge_put_off(&bridge, 0, header(mac(0), mac(0)), TWIN_WAY_NOWHERE);
		check_send(0, peer, mac(1), WAY(TWIN_WAY_SPOOFED, 0));
		twin_bridge_put_off(&bridge, 0, header(peer, mac(1)), TWIN_WAY_SPOOFED);
	}
	after = counts();
	CHECK(!memcmp(&after, &none, sizeof(none)));
	for (i = 0; i < 4; i++)
		check_send(0, everybody, mac(0), WAY(TWIN_WAY_BOTH, 2));
	/* A storm has used no place, so none is given back. */
	for (i = 0; i < 4; i++) {
		check_send(0, everybody, mac(0), WAY(TWIN_WAY_STORM, 0));
		twin_bridge_put_off(&bridge, 0, header(everybody, mac(0)), TWIN_WAY_STORM);
	}
	/* One of those sent, later: time has done its part as well. */
	now += 1000;
	twin_bridge_put_off(&bridge, 0, header(everybody, mac(0)), TWIN_WAY_BOTH);
	check_send(0, everybody, mac(0), WAY(TWIN_WAY_BOTH, 2));
	check_send(0, everybody, mac(0), WAY(TWIN_WAY_BOTH, 2));
	check_send(0, everybody, mac(0), WAY(TWIN_WAY_STORM, 0));
	twin_bridge_put_off(&bridge, TWIN_SWITCH_GUESTS, header(everybody, mac(0)), TWIN_WAY_BOTH);

	/* The only guest: a group is the wire. */
	set_up(1, (struct twin_storm_limit){ .interval = 1000, .burst = 1 });
	for (i = 0; i < 3; i++) {
		check_send(0, everybody, mac(0), WAY(TWIN_WAY_WIRE, 0));
		twin_bridge_put_off(&bridge, 0, header(everybody, mac(0)), TWIN_WAY_WIRE);
	}
	after = counts();
	CHECK(!memcmp(&after, &none, sizeof(none)));
}

/* As another CPU reads it. */
static void a_clock_a_little_behind_neither_blocks_nor_gives(void)
{
	uint32_t i;

	set_up(1, (struct twin_storm_limit){ .interval = 1000, .burst = 4 });
	for (i = 0; i < 3; i++) {
		check_receive(everybody, peer, WAY(TWIN_WAY_GUESTS, 1));
		now -= 10;
	}
	now = 0;
	check_receive(everybody, peer, WAY(TWIN_WAY_STORM, 0));
}

/* Addresses that collide in the hash, in all orders of leaving. */
static void every_guest_is_found_whoever_has_left(void)
{
	uint32_t gone, i, guest;
	uint64_t guests;

	for (gone = 0; gone < TWIN_SWITCH_GUESTS; gone++) {
		set_up(TWIN_SWITCH_GUESTS, (struct twin_storm_limit){ 0 });
		for (i = 0; i <= gone; i++)
			twin_bridge_remove(&bridge, (i * 37) % TWIN_SWITCH_GUESTS);
		for (guest = 0; guest < TWIN_SWITCH_GUESTS; guest++) {
			const bool there = bridge.present >> guest & 1;

			CHECK_EQUAL(twin_bridge_receive(&bridge, header(mac(guest), peer), now,
							&guests),
				    there ? TWIN_WAY_GUESTS : TWIN_WAY_NOWHERE);
			CHECK_EQUAL(guests, there ? 1ull << guest : 0);
		}
	}
	for (guest = 0; guest < TWIN_SWITCH_GUESTS; guest++)
		if (!(bridge.present >> guest & 1))
			CHECK_EQUAL(twin_bridge_add(&bridge, guest, mac(guest)), TWIN_OK);
}

static void addresses_are_checked(void)
{
	set_up(2, (struct twin_storm_limit){ 0 });
	CHECK_EQUAL(twin_bridge_add(&bridge, 2, mac(1)), TWIN_INVALID);
	CHECK_EQUAL(twin_bridge_add(&bridge, 1, mac(3)), TWIN_INVALID);
	CHECK_EQUAL(twin_bridge_add(&bridge, 2, group), TWIN_INVALID);
	CHECK_EQUAL(twin_bridge_add(&bridge, 2, (const uint8_t[6]){ 0 }), TWIN_INVALID);
	CHECK_EQUAL(twin_bridge_add(&bridge, TWIN_SWITCH_GUESTS, mac(3)), TWIN_INVALID);
	twin_bridge_remove(&bridge, TWIN_SWITCH_GUESTS);
	twin_bridge_remove(&bridge, 1);
	check_send(1, peer, mac(1), WAY(TWIN_WAY_SPOOFED, 0));
	CHECK_EQUAL(twin_bridge_add(&bridge, 2, mac(1)), TWIN_OK);
	check_receive(mac(1), peer, WAY(TWIN_WAY_GUESTS, 1 << 2));
}

int main(void)
{
	RUN(a_packet_goes_to_the_guest_of_its_address_or_to_the_wire);
	RUN(a_group_is_everybody_but_the_sender);
	RUN(nobody_sends_in_anothers_name);
	RUN(a_storm_is_limited_by_source);
	RUN(what_is_put_off_counts_for_nothing);
	RUN(a_clock_a_little_behind_neither_blocks_nor_gives);
	RUN(every_guest_is_found_whoever_has_left);
	RUN(addresses_are_checked);
	return test_summary();
}
