// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What guests have of a detachment that Xen refuses, because the card has packets: platform/
 * xen/attach.c and pace.c. They stay connected, and nothing of theirs waits for ever.
 */
#include "xen.h"
#include "xen-stack.h"

/* ---- What else detaching asks and ends ------------------------------------------------- */

static uint32_t ends;
static bool is_idle, is_dead;
static struct twin_abort_report report;

const uint64_t twin_value_cpu_info_processor_id = 8;
struct twin_instance xen_instance;
uint64_t cpu_online_map[1] = { 1 };
unsigned long max_page;
const uint32_t twin_payload_abi_version = TWIN_ABI_VERSION;
const uint32_t twin_payload_scheme = TWIN_SCHEME_WINDOW;
const uint32_t twin_payload_vector_free = 1;
const struct twin_text_range twin_payload_text[1];

const struct twin_abort_report *twin_instance_report(const struct twin_instance *instance)
{
	(void)instance;
	return is_dead ? &report : NULL;
}

uint64_t twin_call_lookup(struct twin_instance *instance, uint64_t target)
{
	(void)instance;
	return target;
}

bool xen_interrupt_idle(void)
{
	return is_idle;
}

int xen_alias_plan(const struct twin_xen_attach *attach)
{
	(void)attach;
	return 0;
}

static bool kept, one_goes, no_window;
static uint32_t busy;	/* so often the processors cannot be stopped */
static uint32_t windows;

bool xen_processors_keep(void)
{
	CHECK(!kept);
	kept = !one_goes;
	return kept;
}

void xen_processors_release(void)
{
	CHECK(kept);
	/* Their blocks are gone. */
	CHECK_EQUAL(windows, 0);
	kept = false;
}

int xen_alias_install(void)
{
	CHECK(kept);
	windows += !no_window;
	return no_window ? -XEN_EBUSY : 0;
}

static bool no_instance, no_packets;

int xen_instance_create(void)
{
	return no_instance ? -XEN_EINVAL : 0;
}

int xen_transmit_create(void)
{
	return no_packets ? -XEN_ENOMEM : 0;
}

static bool no_rings;
static uint32_t cards_rings;
static bool mapped;	/* the card's registers, by the first half */

long xen_dma_plan(const struct twin_xen_attach *attach)
{
	(void)attach;
	return 0;
}

int xen_dma_take(void)
{
	CHECK(windows);
	cards_rings += !no_rings;
	return no_rings ? -XEN_EBUSY : 0;
}

/* Whether there are any, that knows. */
void xen_dma_give_back(void)
{
	cards_rings = 0;
	mapped = false;
}

void xen_interrupt_start(uint32_t home)
{
	(void)home;
}

void xen_upcall_start(uint32_t home)
{
	(void)home;
}

void xen_clock_start(void)
{
}

void xen_transmit_destroy(void)
{
}

bool xen_alias_remove(void)
{
	if (busy) {
		busy--;
		return false;
	}
	windows--;
	return true;
}

void xen_interrupt_stop(void)
{
	ends++;
}

void xen_interrupt_give_back(void)
{
}

static uint32_t forsaken;

void xen_upcall_forsake(void)
{
	forsaken++;
}

void xen_upcall_stop(void)
{
	ends++;
}

void xen_clock_stop(void)
{
	ends++;
}

/* ---- Guests of a driver that dom0 wants back ---------------------------------------------- */

static void begin(void)
{
	start();
	fill_frame(60);
	in_flight = ends = forsaken = 0;
	kept = true;
	windows = 1;
	is_idle = true;
	is_dead = false;
}

static const struct twin_xen_attach device;

static void put_frames(uint32_t guest, uint32_t count)
{
	for (; count; count--)
		put_tx(guest, (struct netif_tx_request){ .reference = 0, .size = 60 });
}

static void is_detached(bool stopped)
{
	uint32_t i;

	CHECK_EQUAL(xen_detach_begin(stopped), 0);
	CHECK_EQUAL(ends, 3);
	CHECK(!xen_attached());
	CHECK(!timer_set);
	for (i = 0; i < GUESTS; i++)
		CHECK(!vif_status(i).connected);
	/* Xen could not go on with the second half: it does when it is asked again. */
	CHECK(xen_occupied());
	CHECK_EQUAL(xen_detach_begin(stopped), 0);
	CHECK_EQUAL(ends, 3);
	CHECK_EQUAL(xen_attach_begin(&device), -XEN_EBUSY);
	CHECK(kept);
	busy = 2;
	CHECK_EQUAL(xen_detach_finish(), XEN_LATER);
	CHECK_EQUAL(xen_detach_finish(), XEN_LATER);
	CHECK(kept);
	CHECK(xen_occupied());
	CHECK_EQUAL(xen_detach_finish(), 0);
	CHECK(!kept);
	CHECK(!xen_occupied());
	CHECK_EQUAL(xen_detach_begin(stopped), -XEN_ENOENT);
}

/* The card has packets, or a poll is due. */
static void is_refused(void)
{
	uint32_t i;

	requested = 0;
	CHECK_EQUAL(xen_detach_begin(false), -XEN_EAGAIN);
	CHECK_EQUAL(requested, 1);
	CHECK_EQUAL(ends, 0);
	CHECK(xen_attached());
	for (i = 0; i < GUESTS; i++)
		CHECK(vif_status(i).connected);
	xen_vif_service();	/* the tasklet */
}

static void a_quiet_driver_is_given_back(void)
{
	begin();
	is_detached(false);
}

/* The driver waits for dom0, whose processor may be this one: who spins for it here keeps it from answering. */
static void a_driver_that_waits_is_not_spun_for(void)
{
	begin();
	CHECK(xen_trylock());
	upcall_waits = true;
	waits_asked = 0;
	CHECK_EQUAL(xen_detach_begin(false), -XEN_EAGAIN);
	CHECK_EQUAL(waits_asked, 1);
	upcall_waits = false;
	xen_unlock();
	is_detached(false);
}

static void a_dead_driver_is_not_waited_for(void)
{
	begin();
	in_flight = 3;
	is_idle = false;
	is_dead = true;
	is_detached(true);
}

/* It died while dom0 was waiting for its packets: the card still reads their buffers. */
static void a_dead_drivers_card_is_stopped_first(void)
{
	begin();
	in_flight = 3;
	is_refused();
	is_dead = true;
	is_refused();
	in_flight = 0;
	is_refused();
	is_detached(true);
}

/* A card that completes nothing, or interrupts for ever, is given back all the same. */
static void a_stopped_card_is_not_waited_for(void)
{
	begin();
	in_flight = 3;
	is_idle = false;
	is_refused();
	CHECK_EQUAL(forsaken, 0);
	/* The lock is a driver's that waits for dom0: it is not waited for, either. */
	CHECK(xen_trylock());
	CHECK_EQUAL(xen_detach_begin(true), -XEN_EAGAIN);
	CHECK_EQUAL(forsaken, 1);
	xen_unlock();
	is_detached(true);
}

static void guests_outlive_a_refusal(void)
{
	begin();
	put_frames(0, 1);
	kick(0);
	CHECK_EQUAL(sent_count, 1);
	in_flight = 1;
	is_refused();
	/* dom0 gives up, the card goes on, and so does the guest. */
	put_frames(0, 1);
	kick(0);
	CHECK_EQUAL(sent_count, 1);
	while (end_window())
		;
	CHECK_EQUAL(sent_count, 2);
	CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), 2);
	CHECK_EQUAL(notified, 1);
	put_frames(0, 1);
	kick(0);
	CHECK_EQUAL(sent_count, 3);
	in_flight = 0;
	is_idle = false;
	is_refused();
	is_idle = true;
	is_detached(false);
}

/* So that the card's packets come to their end while a guest sends for ever. */
static void nothing_is_taken_until_dom0_tries_again(void)
{
	uint32_t i;

	begin();
	in_flight = 1;
	for (i = 0; i < 50; i++) {
		is_refused();
		put_frames(0, 1);
		kick(0);
		now += 10000000;
		xen_vif_service();
	}
	CHECK_EQUAL(sent_count, 0);
	in_flight = 0;
	is_detached(false);
	/* What it has put there is the next attachment's. */
	xen_device.attached = 1;
	xen_pace_start(0);
	CHECK_EQUAL(connect_guest(0), 0);
	xen_vif_service();
	CHECK_EQUAL(sent_count, 50);
}

/* Each refusal begins the second anew, also when its timer runs. */
static void a_hold_lasts_from_the_last_refusal(void)
{
	begin();
	in_flight = 1;
	is_refused();
	put_frames(0, 1);
	now += 900000000;
	is_refused();
	CHECK(end_window());
	CHECK_EQUAL(sent_count, 0);
	CHECK(end_window());
	CHECK_EQUAL(sent_count, 1);
}

/* It does not notify for each packet: it is looked at all the same. */
static void a_paced_guest_is_looked_at_afterwards(void)
{
	begin();
	put_frames(0, 20);
	kick(0);
	CHECK(get(0, 0, NETIF_REQUEST_EVENT) > 21);
	in_flight = 1;
	is_refused();
	put_frames(0, 1);
	while (end_window())
		;
	CHECK_EQUAL(sent_count, 21);
	CHECK_EQUAL(get(0, 0, NETIF_REQUEST_EVENT), 22);
}

/* Answers from before are told of as ever, frames are still delivered. */
static void guests_hear_during_a_hold(void)
{
	const int64_t before = now;

	begin();
	put_frames(0, 1);
	kick(0);
	in_flight = 1;
	is_refused();
	CHECK_EQUAL(notified, 0);
	CHECK(end_window());
	CHECK(now - before < 1000000);
	CHECK_EQUAL(notified, 1);
	memcpy(&rings[0][1][3000], (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, 1 }, 6);
	put_rx(1, 0, 1);
	CHECK(receive(ring_of(0, 1) + 3000, 100, 0));
	xen_vif_service();
	CHECK_EQUAL(notified, 2);
}

/* Somebody runs the driver, or it waits for dom0. */
static void nothing_changes_without_the_lock(void)
{
	begin();
	CHECK(xen_trylock());
	CHECK_EQUAL(xen_detach_begin(false), -XEN_EAGAIN);
	xen_unlock();
	CHECK(!timer_set);
	CHECK(vif_status(0).connected);
	put_frames(0, 1);
	kick(0);
	CHECK_EQUAL(sent_count, 1);
}

/* ---- Attachments that fail -------------------------------------------------------------- */

/* The first half asks the machine for CR4, which no process may. */
static void fails(bool *reason, long error)
{
	*reason = mapped = true;
	CHECK_EQUAL(xen_attach_finish(), error);
	CHECK(!mapped);
	*reason = false;
	CHECK(!xen_occupied());
	CHECK(!kept);
	CHECK_EQUAL(windows, 0);
}

static void an_attachment_that_fails_keeps_no_processor(void)
{
	begin();
	is_detached(false);
	xen_device.given.interrupt = xen_device.given.hot_function = 1;
	fails(&one_goes, -XEN_EBUSY);
	CHECK(xen_reason[0]);
	fails(&no_window, -XEN_EBUSY);
	fails(&no_instance, -XEN_EINVAL);
	fails(&no_packets, -XEN_ENOMEM);
	fails(&no_rings, -XEN_EBUSY);
	CHECK_EQUAL(cards_rings, 0);
}

/* It is undone, and its reason stays. */
static void an_attachment_that_cannot_be_undone_at_once(void)
{
	begin();
	is_detached(false);
	xen_device.given.interrupt = xen_device.given.hot_function = 1;
	no_packets = true;
	busy = 2;
	CHECK_EQUAL(xen_attach_finish(), XEN_LATER);
	CHECK(xen_occupied());
	no_packets = false;
	CHECK_EQUAL(xen_attach_finish(), XEN_LATER);
	CHECK(kept);
	CHECK_EQUAL(xen_attach_finish(), -XEN_ENOMEM);
	CHECK(!xen_occupied());
	CHECK(!kept);
	CHECK_EQUAL(windows, 0);
	CHECK(!xen_attached());
}

/* Whose data and code are at other addresses than the payload has: the first attachment knows the data, the codemap the code. */
static void modules_that_were_loaded_anew(void)
{
	uint32_t i;

	begin();
	is_detached(false);
	xen_device.given.interrupt = xen_device.given.hot_function = 1;
	CHECK_EQUAL(xen_attach_finish(), 0);
	ends = 0;
	is_detached(false);
	for (i = 0; i < TWIN_XEN_MODULE_DATA; i++) {
		xen_device.given.module_data[i]++;
		CHECK_EQUAL(xen_attach_finish(), -XEN_EINVAL);
		CHECK(!xen_occupied());
		xen_device.given.module_data[i]--;
	}
	xen_device.given.hot_function = 0;
	CHECK_EQUAL(xen_attach_finish(), -XEN_EINVAL);
	CHECK(xen_reason[0]);
	xen_device.given.hot_function = 1;
	CHECK_EQUAL(xen_attach_finish(), 0);
}

static void on_stack(void)
{
	RUN(an_attachment_that_fails_keeps_no_processor);
	RUN(an_attachment_that_cannot_be_undone_at_once);
	RUN(modules_that_were_loaded_anew);
}

int main(void)
{
	RUN(a_quiet_driver_is_given_back);
	RUN(a_driver_that_waits_is_not_spun_for);
	RUN(a_dead_driver_is_not_waited_for);
	RUN(a_dead_drivers_card_is_stopped_first);
	RUN(a_stopped_card_is_not_waited_for);
	RUN(guests_outlive_a_refusal);
	RUN(nothing_is_taken_until_dom0_tries_again);
	RUN(a_hold_lasts_from_the_last_refusal);
	RUN(a_paced_guest_is_looked_at_afterwards);
	RUN(guests_hear_during_a_hold);
	RUN(nothing_changes_without_the_lock);
	on_xens_stack(on_stack, NULL);
	return test_summary();
}
