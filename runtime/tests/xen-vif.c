// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A guest's interface while it is connected: who keeps its domain, where its rings go on, and
 * who serves its kicks.
 */
#include "xen.h"

static void a_domain_is_kept_until_it_is_disconnected(void)
{
	start();
	CHECK_EQUAL(references[1], 2);
	CHECK_EQUAL(connect_guest(0), -XEN_EBUSY);
	CHECK_EQUAL(references[1], 2);
	references[1]--;	/* it dies */
	CHECK_EQUAL(xen_vif_disconnect(1, 0), 0);
	CHECK_EQUAL(destroyed, 1);
	CHECK_EQUAL(xen_vif_disconnect(1, 0), -XEN_ENOENT);
	CHECK(!kick(0));
	CHECK(kick(1));
}

/* A new attach goes on where the last stopped. */
static void rings_go_on_after_a_reconnection(void)
{
	start();
	fill_frame(100);
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 100 });
	kick(0);
	xen_vif_disconnect(1, 0);
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 90 });
	CHECK(!kick(0));
	CHECK_EQUAL(connect_guest(0), 0);
	xen_vif_service();
	CHECK_EQUAL(sent_count, 2);
	CHECK_EQUAL(given[1].header_length, 90);
}

/* Somebody else has the lock: the tasklet does it. */
static void a_kick_is_not_lost(void)
{
	start();
	fill_frame(100);
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 100 });
	requested = 0;
	CHECK(xen_trylock());
	CHECK(kick(0));
	CHECK_EQUAL(sent_count, 0);
	CHECK_EQUAL(requested, 1);
	xen_vif_service();
	CHECK_EQUAL(sent_count, 1);
	xen_unlock();
}

/* A processor that came later may not run the driver: what it would lose there are the packets. */
static void a_kick_on_a_new_processor_is_the_tasklets(void)
{
	start();
	fill_frame(100);
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 100 });
	requested = 0;
	came_later = true;
	CHECK(kick(0));
	CHECK_EQUAL(sent_count, 0);
	CHECK_EQUAL(requested, 1);
	CHECK(xen_trylock());
	xen_unlock();
	came_later = false;
	xen_vif_service();
	CHECK_EQUAL(sent_count, 1);
}

int main(void)
{
	RUN(a_domain_is_kept_until_it_is_disconnected);
	RUN(rings_go_on_after_a_reconnection);
	RUN(a_kick_is_not_lost);
	RUN(a_kick_on_a_new_processor_is_the_tasklets);
	return test_summary();
}
