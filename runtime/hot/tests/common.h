/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Declarations shared by the hot routines' tests. Each test begins with all objects
 * free and ends with a check that none was lost: nothing_lost(). All run on the caller's
 * CPU, except those that start two.
 */
#ifndef HOT_COMMON_H
#define HOT_COMMON_H

#include "kernel.h"

#define GUEST_PAGE(n)	(TEST_RAM + (n) * PAGE_SIZE)

/* common.c */
struct hot_shared *shared(void);
struct hot_tx_request *request(u32 i);
u64 counted(enum hot_counter which);
bool completion(struct hot_tx_done *done);
u32 completions(void);
void nothing_lost(void);
void begin(void);
struct hot_tx_request *linear(u32 i, u32 length);
void add_fragment(struct hot_tx_request *r, u64 address, u32 length);
u32 fill_tcp(struct hot_tx_request *r, bool v6, u32 tags);
struct hot_tx_request *tso(u32 i, bool v6, u32 tags);
struct test_packet *last_packet(void);
void pools_whole(void);

/* pools.c */
extern struct sk_buff *many[HOT_POOL_MAX + 1];	/* for any one test */
void exhaust_skbs(u32 *taken, struct sk_buff **skbs, u32 most);

/* receive.c */
void frame(u8 *f, u8 first, u16 type);

/* Every test, in the order in which they run. */
#define HOT_TESTS(X)							\
	X(setup) X(linear) X(short_is_padded) X(fragments) X(checksum) \
	X(tso) X(vlan_tag) X(doorbell_once_a_batch) X(large_packets_ring) \
	X(completions_name_their_request) X(unread_completions_stop_senders) \
	X(busy_queue) X(down) X(dropped_by_driver) \
	X(byte_limits_stop_and_restart) X(malformed) X(fuzz) X(double_fetch) \
	X(exhaustion_and_recovery) X(exhausted_in_mid_batch) X(sizes) \
	X(reference_rule) X(reclaimed_when_exhausted) X(bad_frees) \
	X(foreign) X(length) X(trim_fragments) X(guest_pages_are_not_pulled) \
	X(two_cpus_share_pools) X(two_cpus_in_bursts) X(freed_on_two_cpus) \
	X(completed_by_another_cpu) X(receive) X(packet_types) \
	X(release_believes_nothing) X(receive_many_held) X(napi_cycle) \
	X(napi_goes_on_until_done) X(napi_missed) X(napi_looks) X(napi_disable) \
	X(napi_weight_zero_ends) X(bottom_halves) X(napi_on_two_cpus) \
	X(locks_exclude) X(virtual_interrupt_flag) X(recover) \
	X(recover_napi) X(recover_given) X(dql) X(dql_bad_completion) X(dma) X(dma_p2m) X(string) \
	X(csum_ipv6) X(aggregate) X(aggregate_off) X(aggregate_tagged) X(aggregate_sums) X(aggregate_alone) \
	X(aggregate_looks) X(aggregate_first_refused) X(aggregate_refused) \
	X(aggregate_ends) X(aggregate_order) X(aggregate_rivals) X(aggregate_unwanted) X(aggregate_recovered) \
	X(aggregate_given) X(aggregate_referenced) X(aggregate_broken_chain) X(aggregate_long) X(aggregate_model) \
	X(offload_same_frames) X(offload_off) X(offload_waits) X(offload_exhausted) X(offload_forgotten) \
	X(offload_refused) X(offload_kept) X(offload_made) X(offload_at_once) X(offload_at_once_dropped) \
	X(offload_at_once_exhausted) X(offload_at_once_recovered) X(offload_recovered) X(offload_fuzz) \
	X(acks_same_frames) X(acks_refused) X(acks_read_once) X(acks_wait) X(acks_down)

#define DECLARE(name) void test_##name(void);
HOT_TESTS(DECLARE)
#undef DECLARE

#endif /* HOT_COMMON_H */
