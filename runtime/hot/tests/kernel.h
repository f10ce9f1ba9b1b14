/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The kernel half of test-hot: what stands in for dom0's kernel and driver. */
#ifndef HOT_TEST_KERNEL_H
#define HOT_TEST_KERNEL_H

#include "../internal.h"
#include "test.h"

/* ---- kernel.c ---- */

/* Calls of imports that steady state must not make. */
extern unsigned int test_upcalls;
/* How often alloc_pages() still gives pages, and has. */
extern unsigned int test_may_allocate, test_allocated;

/* The next behaviour of host_receive(), and its last arguments. */
struct test_host {
	u32 answer;
	u32 calls, length, flags, vlan;
	u8 *data;
	struct sk_buff *skb;
	u32 held;		/* entries of queue[] */
	u64 queue[HOT_RELEASE];
	u32 gathered;		/* calls of host_gather() */
	u32 alone;		/* of those, without a list */
	u64 forgotten;		/* a cookie that it does not know; 0: none */
	u32 asked, more;	/* whether the card has more: how often, and how often it will have */
	/* told of each call, if there is one: aggregate.c */
	void (*seen)(void *data, u32 length, u32 flags, u32 vlan);
};
extern struct test_host test_host[HOT_CPUS];

/* What is at an address of a guest's memory. */
static inline u8 test_guest_byte(u64 address)
{
	return (address * 0x9e3779b97f4a7c15ull) >> 56;
}

/* dom0's own free path, which knows no pools: true if it would release. */
bool test_dom0_free(struct sk_buff *skb);

/* ---- driver.c: a device that walks sk_buffs as e1000 does ---- */

#define TEST_RING	256

struct test_descriptor {
	u64 address;
	u32 length;
};

struct test_packet {
	struct sk_buff *skb;
	struct test_descriptor descriptor[1 + HOT_FRAGMENTS];
	u32 descriptors;
	u32 needs;		/* of the card's descriptors */
	bool more;
};

struct test_driver {
	struct net_device dev;
	struct netdev_queue txq;
	struct napi_struct napi;
	struct test_packet packet[TEST_RING];
	u32 next, clean;	/* packets, running freely */
	u32 room;		/* packets before the queue is stopped */
	u32 ring, used;		/* the card's descriptors; ring 0: any number */
	u32 doorbells;
	int refuse;		/* answer NETDEV_TX_BUSY this many times */
	bool drop;		/* free instead of sending */
	/* what the poll does */
	int poll_work[8];
	u32 polls;
	bool poll_reschedules;
	void (*poll_receives)(void);
	bool unchecked;		/* what it receives has no checksum that it found right */
	u16 vlan;		/* tag of what it receives, 0: none */
	u32 interrupts_enabled;
};
extern struct test_driver *driver;

void driver_reset(void);
u32 driver_clean(u32 most);	/* completes packets; returns how many */
/* Receives a frame as e1000 does; false if there was no buffer. */
bool driver_receive(const u8 *frame, u32 length, bool copybreak);

#endif /* HOT_TEST_KERNEL_H */
