// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Packets to the driver.
 *
 * A packet was copied out of its guest: its first bytes go into the request in dom0's
 * memory (<twin/guest.h>), the rest is in a buffer, a page of Xen's that the card reads
 * by DMA and that neither dom0's kernel nor driver code can reach. The guest's own page
 * is no longer needed, so a guest may end while its packet is on its way.
 *
 *   FREE --get--> TAKEN --sent--> SENT --completion--> FREE
 *                   |--returned: not sent, or the driver had ended before--> FREE
 *                   \--the driver ended meanwhile--> LOST
 *   (FREE, but the card has it: HELD --the card is done--> FREE)
 *
 * With the stage `dma` a buffer that a descriptor of the card's names does not come back before the card is
 * done with that descriptor (HELD), whatever the driver completes: held.h counts them.
 *
 * A packet has as many buffers as it needs, of which the first stands for all: it alone is ever
 * SENT. The cookie of a request is its number + 1, 0 for none. Completions are in
 * dom0's memory and may say anything: only a buffer that was sent comes back, once, and a
 * completion of what is not on its way counts for nothing. So packets are on their way as long
 * as one of their buffers is.
 */
#include <twin/gather.h>
#include <twin/sum.h>
#include <twin/guest.h>

#include "held.h"
#include "platform.h"

#define BUFFERS XEN_BUFFERS
/* Cards may have 32 bits of address. */
#define BELOW_4_GIB (32u << 24)

/* The hot routines' interface of one processor, as dom0 had it at attach. */
struct channel {
	uint64_t requests;	/* dom0 addresses */
	uint64_t done;
	uint64_t shared;
	uint32_t consumed;	/* completions */
};

static struct {
	void *page[BUFFERS];
	uint32_t next[BUFFERS];	/* of the same packet; XEN_NO_BUFFER: none */
	uint32_t bytes[BUFFERS];	/* of the packet that it is the first of */
	uint32_t free[BUFFERS];
	uint32_t free_count;
	uint32_t in_flight;	/* packets */
	uint32_t without_buffer;	/* of which */
	struct channel channel[HOT_CPUS];
} transmit;
struct xen_buffer xen_buffers[BUFFERS];

_Static_assert(TWIN_XEN_CPUS == HOT_CPUS, "a channel for each processor");
_Static_assert(offsetof(struct hot_shared, look) == offsetof(struct hot_shared, offload) + 4, "wishes");

/* ---- Buffers -------------------------------------------------------------- */

uint32_t xen_buffer_get(uint32_t count)
{
	uint32_t buffer, first = XEN_NO_BUFFER;

	if (count > transmit.free_count)
		return XEN_NO_BUFFER;
	for (; count; count--) {
		buffer = transmit.free[--transmit.free_count];
		xen_buffers[buffer].state = XEN_BUFFER_TAKEN;
		transmit.bytes[buffer] = 0;
		transmit.next[buffer] = first;
		first = buffer;
	}
	return first;
}

static void set_free(uint32_t buffer)
{
	xen_buffers[buffer].state = XEN_BUFFER_FREE;
	transmit.free[transmit.free_count++] = buffer;
}

static void put_buffer(uint32_t first)
{
	for (; first != XEN_NO_BUFFER; first = transmit.next[first]) {
		if (xen_buffers[first].card)
			xen_buffers[first].state = XEN_BUFFER_HELD;
		else
			set_free(first);
	}
}

void xen_buffer_return(uint32_t first)
{
	if (xen_buffers[first].state == XEN_BUFFER_TAKEN)
		put_buffer(first);
}

uint64_t xen_buffer_frame(uint32_t number)
{
	return xen_machine(transmit.page[number]) >> TWIN_PAGE_SHIFT;
}

void xen_buffer_let_go(uint32_t number)
{
	if (!--xen_buffers[number].card && xen_buffers[number].state == XEN_BUFFER_HELD)
		set_free(number);
}

void *xen_buffer_page(uint32_t first, uint32_t at)
{
	for (; at >= TWIN_PAGE_SIZE; at -= TWIN_PAGE_SIZE)
		first = transmit.next[first];
	return transmit.page[first];
}

/* ---- Setting up ------------------------------------------------------------- */

/* What the card cannot do the hot routines are to do: guests were offered all of it. With the stage `dma` a poll
 * asks for what the card has written meanwhile. */
static bool open_channel(struct channel *channel, uint64_t at)
{
	const uint32_t wishes[] = { 1, xen_stages.dma };
	struct hot_shared shared;

	if (!xen_dom0_read(&shared, at, sizeof(shared)) ||
	    !xen_dom0_write(at + offsetof(struct hot_shared, offload), wishes, sizeof(wishes)))
		return false;
	channel->requests = shared.requests;
	channel->done = shared.tx_done;
	channel->shared = at;
	channel->consumed = shared.tx_done_consume;
	return shared.requests && shared.tx_done;
}

int xen_transmit_create(void)
{
	uint32_t i;

	memset(&transmit, 0, sizeof(transmit));
	memset(xen_buffers, 0, sizeof(xen_buffers));
	for (i = 0; i < HOT_CPUS; i++)
		if (!open_channel(&transmit.channel[i], xen_device.given.hot_shared +
				  i * sizeof(struct hot_shared)))
			return -XEN_EFAULT;
	for (i = 0; i < BUFFERS; i++) {
		transmit.page[i] = alloc_xenheap_pages(0, BELOW_4_GIB);
		if (!transmit.page[i]) {
			xen_transmit_destroy();
			return -XEN_ENOMEM;
		}
		transmit.next[i] = XEN_NO_BUFFER;
		put_buffer(i);
	}
	return 0;
}

void xen_transmit_destroy(void)
{
	uint32_t i;

	for (i = 0; i < BUFFERS; i++)
		if (transmit.page[i])
			free_xenheap_pages(transmit.page[i], 0);
	memset(&transmit, 0, sizeof(transmit));
	memset(xen_buffers, 0, sizeof(xen_buffers));
}

/* ---- Sending ------------------------------------------------------------------ */

static uint32_t pages_of(const struct xen_packet *packet)
{
	return (packet->rest + TWIN_PAGE_SIZE - 1) / TWIN_PAGE_SIZE;
}

static void fill_fragments(struct hot_tx_request *request, const struct xen_packet *packet)
{
	uint32_t i, at = 0;

	for (i = 0; i < pages_of(packet); i++, at += TWIN_PAGE_SIZE) {
		const uint32_t left = packet->rest - at;

		request->fragment[i] = (struct hot_tx_fragment){
			.address = xen_machine(xen_buffer_page(packet->buffer, at)),
			.length = left < TWIN_PAGE_SIZE ? left : TWIN_PAGE_SIZE,
		};
	}
	request->fragments = i;
}

static void fill(struct hot_tx_request *request, const struct xen_packet *packet)
{
	__builtin_memset(request, 0, offsetof(struct hot_tx_request, header));
	if (packet->header_length < HOT_HEADER)
		memset(request->header, 0, HOT_HEADER);
	request->cookie = packet->rest ? packet->buffer + 1 : 0;
	request->header_length = packet->header_length;
	request->checksum_start = packet->checksum_start;
	request->checksum_offset = packet->checksum_offset;
	request->gso_size = packet->gso_size;
	request->gso_type = packet->gso_type;
	request->result = HOT_INVALID;
	memcpy(request->header, packet->header, packet->header_length);
	fill_fragments(request, packet);
}

/* [off], and the window is there. */
static bool put_requests(uint64_t at, const struct xen_packet *packets, uint32_t count)
{
	struct hot_tx_request request;
	uint32_t i;

	for (i = 0; i < count; i++) {
		fill(&request, &packets[i]);
		if (packets[i].rest)
			transmit.bytes[packets[i].buffer] = packets[i].rest;
		if (!xen_dom0_write_ready(at + i * sizeof(request), &request,
					  offsetof(struct hot_tx_request, fragment) +
					  request.fragments * sizeof(struct hot_tx_fragment)))
			return false;
	}
	return true;
}

/* A buffer that was given to the driver is the device's, whatever dom0's memory says. */
static void note_result(struct xen_packet *packet)
{
	if (packet->result != HOT_SENT) {
		if (packet->result == HOT_BUSY || packet->result == HOT_NO_BUFFER)
			xen_count(&xen_counts.busy);
		return;
	}
	xen_count(&xen_counts.transmitted);
	transmit.in_flight++;
	if (packet->rest)
		xen_buffers[packet->buffer].state = XEN_BUFFER_SENT;
	else
		transmit.without_buffer++;
}

/* The driver ended in between: the device may have any of them. They are its own until it
 * was reset. Those of which the result was read are on their way. Where nothing of the driver ran, the device
 * has none: guests that send to each other need the buffers. */
static void give_up(struct xen_packet *packets, uint32_t count, bool ran)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		packets[i].result = HOT_DOWN;
		if (ran && packets[i].rest && xen_buffers[packets[i].buffer].state == XEN_BUFFER_TAKEN)
			xen_buffers[packets[i].buffer].state = XEN_BUFFER_LOST;
	}
}

/*
 * The driver was aborted on this processor. If it had the queue's lock, dom0 would spin for it for ever, with
 * RTNL: when the carrier is lost, or the queue replaced. RTNL is what taking the driver back
 * begins with. The instance is dead, so nobody takes the lock here again. [off]
 */
static void free_queue(void)
{
	const uint32_t nobody = UINT32_MAX;
	const uint8_t free = 0;
	uint32_t owner;

	if (!xen_dom0_read_ready(&owner, xen_device.given.queue_owner, sizeof(owner)) ||
	    owner != HOT_QUEUE_OWNER + xen_processor())
		return;
	xen_dom0_write_ready(xen_device.given.queue_owner, &nobody, sizeof(nobody));
	xen_dom0_write_ready(xen_device.given.queue_lock, &free, sizeof(free));
}

/* [off], and the window is there. Whether the driver has done what it was asked for; *ran: whether it was entered. */
static bool run(uint32_t count, bool *ran)
{
	uint64_t sent;
	const int status = xen_run(twin_function_hot_transmit, xen_device.given.netdev, 0, count, &sent);

	*ran = status != TWIN_DEAD;
	if (status == TWIN_ABORTED)
		free_queue();
	return status == TWIN_OK;
}

bool xen_transmit(struct xen_packet *packets, uint32_t count)
{
	const uint64_t flags = xen_interrupts_off();
	const uint64_t at = transmit.channel[xen_processor() % HOT_CPUS].requests;
	uint32_t i;
	bool done, ran = false;

	xen_alias_ready(xen_processor());
	done = put_requests(at, packets, count) && run(count, &ran);
	for (i = 0; done && i < count; i++) {
		done = xen_dom0_read_ready(&packets[i].result,
					   at + i * sizeof(struct hot_tx_request) +
					   offsetof(struct hot_tx_request, result),
					   sizeof(packets[i].result));
		if (done)
			note_result(&packets[i]);
	}
	xen_interrupts_restore(flags);
	done = done && xen_dma_ring();
	if (!done)
		give_up(packets, count, ran);
	return done;
}

/* ---- Bytes for the hot routines ----------------------------------------------------- */

/* The packet of a cookie that driver code says, while the driver has it or is being given it. */
static bool is_known(uint64_t cookie)
{
	return cookie && cookie <= BUFFERS && (xen_buffers[cookie - 1].state == XEN_BUFFER_TAKEN ||
					       xen_buffers[cookie - 1].state == XEN_BUFFER_SENT);
}

/* Copies from a buffer of Xen's to one place of dom0's, and gives the sum, unless sum is NULL. [off] */
static bool fill_place(uint64_t to, uint32_t buffer, uint32_t at, uint32_t left, uint64_t *sum)
{
	struct twin_sum total = { 0 };
	uint32_t part;

	for (; left; at += part, left -= part, to += part) {
		const uint8_t *from = (const uint8_t *)xen_buffer_page(buffer, at) + at % TWIN_PAGE_SIZE;

		part = TWIN_PAGE_SIZE - at % TWIN_PAGE_SIZE;
		part = part < left ? part : left;
		if (!xen_dom0_write_ready(to, from, part))
			return false;
		if (sum)
			twin_sum_add(&total, from, part);
	}
	if (sum)
		*sum = twin_sum_of(&total);
	return true;
}

/*
 * host_gather (hot/hot.h): which packet is driver code's choice, of those that are being sent through
 * it anyway; the bytes are in buffers of Xen's, which nobody changes. One that was got and is
 * not yet a packet has no bytes. The list is read once. [off], and the window is there.
 */
enum xen_gathered xen_transmit_gather(const struct twin_gather *gather)
{
	const uint32_t places = twin_gather_places(gather), each = gather->each;
	uint32_t at = gather->offset, left = gather->bytes, buffer, bytes, i;
	uint64_t list[TWIN_GATHERS];

	if (!places || !is_known(gather->ticket))
		return XEN_GATHERED_NOTHING;
	buffer = (uint32_t)gather->ticket - 1;
	bytes = transmit.bytes[buffer];
	if (at > bytes || left > bytes - at)
		return XEN_GATHERED_NOTHING;
	if (!each)
		return fill_place(gather->list, buffer, at, left, NULL) ? XEN_GATHERED : XEN_GATHERED_ELSEWHERE;
	if (!xen_dom0_read_ready(list, gather->list, places * sizeof(list[0])))
		return XEN_GATHERED_ELSEWHERE;
	for (i = 0; i < places; i++, at += each, left -= each)
		if (!fill_place(list[i], buffer, at, left < each ? left : each, &list[i]))
			return XEN_GATHERED_ELSEWHERE;
	if (!xen_dom0_write_ready(gather->list, list, places * sizeof(list[0])))
		return XEN_GATHERED_ELSEWHERE;
	return XEN_GATHERED;
}

/* ---- Completion ------------------------------------------------------------------ */

/* Whether such a packet is on its way; it is not any more. */
static bool take_back(uint64_t cookie)
{
	if (!cookie) {
		if (!transmit.without_buffer)
			return false;
		transmit.without_buffer--;
		return true;
	}
	if (cookie > BUFFERS || xen_buffers[cookie - 1].state != XEN_BUFFER_SENT)
		return false;
	put_buffer(cookie - 1);
	return true;
}

static void complete(uint64_t cookie)
{
	if (!take_back(cookie))
		return;
	transmit.in_flight--;
	xen_count(&xen_counts.completed);
}

/* Completions that are copied at once. */
#define DONE_BATCH 8u

/* Of `count` that are there, those that are one after the other; 0 if they are not there. */
static uint32_t take_done(struct channel *channel, uint32_t count)
{
	const uint32_t at = channel->consumed % HOT_TX_DONE;
	struct hot_tx_done done[DONE_BATCH];
	uint32_t i;

	count = count < DONE_BATCH ? count : DONE_BATCH;
	count = count < HOT_TX_DONE - at ? count : HOT_TX_DONE - at;
	if (!xen_dom0_read(done, channel->done + at * sizeof(*done), count * sizeof(*done)))
		return 0;
	for (i = 0; i < count; i++)
		complete(done[i].cookie);
	channel->consumed += count;
	return count;
}

static uint32_t drain(struct channel *channel)
{
	const uint64_t index = channel->shared + offsetof(struct hot_shared, tx_done_consume);
	uint32_t produced, count, taken = 0;

	if (!xen_dom0_read(&produced, channel->shared + offsetof(struct hot_shared,
								 tx_done_produce),
			   sizeof(produced)) || produced - channel->consumed > HOT_TX_DONE)
		return 0;
	for (; channel->consumed != produced; taken += count) {
		count = take_done(channel, produced - channel->consumed);
		if (!count)
			break;
	}
	if (taken)
		xen_dom0_write(index, &channel->consumed, sizeof(channel->consumed));
	return taken;
}

uint32_t xen_transmit_complete(void)
{
	uint32_t i, taken = 0;

	/* Most frames that come find nothing on its way. Whose completion it is, driver code says:
	 * all are looked at while there is one. */
	for (i = 0; transmit.in_flight && i < HOT_CPUS; i++)
		taken += drain(&transmit.channel[i]);
	return taken;
}

uint32_t xen_transmit_in_flight(void)
{
	return transmit.in_flight;
}
