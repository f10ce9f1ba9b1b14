// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stage `bridge`: the core's bridge (<twin/bridge.h>) over the table of guests' interfaces. A guest's
 * number is that of its entry.
 *
 * Without the stage a packet's destination alone says who has it (address.c): any source is believed, and
 * nobody limited.
 *
 * Whoever calls has xen_lock, so the bridge's own lock is never waited for. Its counts are read without
 * (xen_bridge_status), each for itself, as the others are.
 */
#include <twin/bridge.h>

#include "vif.h"

#define SECOND 1000000000ull	/* ns */
/* Packets for groups that a source may send at once: what a guest says of itself when it comes, and more. */
#define BURST 64u

_Static_assert(TWIN_XEN_VIFS <= TWIN_SWITCH_GUESTS, "each entry has a number");
_Static_assert(TWIN_BRIDGE_HEADER == NETIF_SMALLEST, "each packet has a header");

static struct twin_bridge bridge;

void xen_bridge_start(void)
{
	const uint32_t most = xen_device.given.stages.storm;
	const struct twin_storm_limit limit = {
		.interval = most ? SECOND / most : 0, .burst = BURST,
	};

	twin_bridge_init(&bridge, &limit);
}

bool xen_bridge_add(const struct vif *vif)
{
	return twin_bridge_add(&bridge, vif->number, vif->mac) == TWIN_OK;
}

void xen_bridge_remove(const struct vif *vif)
{
	twin_bridge_remove(&bridge, vif->number);
}

/* Only the limit of groups asks for the time. */
static uint64_t time_of(const uint8_t *header)
{
	return xen_is_group(header) ? (uint64_t)get_s_time() : 0;
}

enum twin_way xen_bridge_send(const struct vif *vif, const uint8_t *header, uint64_t *guests)
{
	return twin_bridge_send(&bridge, vif->number, header, time_of(header), guests);
}

void xen_bridge_put_off(const struct vif *vif, const uint8_t *header, enum twin_way way)
{
	twin_bridge_put_off(&bridge, vif->number, header, way);
}

/* To a group each segment is a packet: else a storm would have as many times its limit. */
uint64_t xen_bridge_receive(const uint8_t *header, uint32_t segments)
{
	const bool group = xen_is_group(header);
	uint64_t guests;
	uint32_t i;

	if (twin_bridge_receive(&bridge, header, time_of(header), &guests) != TWIN_WAY_GUESTS)
		return 0;
	for (i = 1; group && i < segments; i++)
		if (twin_bridge_receive(&bridge, header, time_of(header), &guests) != TWIN_WAY_GUESTS)
			return 0;
	return guests;
}

void xen_bridge_status(struct twin_xen_status *status)
{
	status->local = __atomic_load_n(&bridge.statistics.local, __ATOMIC_RELAXED);
	status->spoofed = __atomic_load_n(&bridge.statistics.spoofed, __ATOMIC_RELAXED);
	status->storm = __atomic_load_n(&bridge.statistics.storm, __ATOMIC_RELAXED);
}
