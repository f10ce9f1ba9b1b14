// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tests of receive aggregation, and the property that they are cases of: whatever comes
 * in, every flow's frames come out in order and unchanged, or as packets that are
 * these frames again when they are taken apart (segments.c).
 */
#include "segments.h"
#include <linux/etherdevice.h>

static void make_run(u32 flow, u32 from, u32 count, u32 payload)
{
	struct fields fields;
	u32 n;

	for (n = from; n < from + count; n++) {
		fields = segment_fields(flow, n, payload);
		make_segment(&fields);
	}
}

static void end(void)
{
	segments_held();
	shared()->aggregate = 0;
	test_host[0].seen = NULL;
	nothing_lost();
}

void test_aggregate(void)
{
	u64 packets = counted(HOT_COUNT_AGGREGATES), merged = counted(HOT_COUNT_MERGED);
	u64 limit = counted(HOT_COUNT_FLUSH_LIMIT), ended = counted(HOT_COUNT_FLUSH_END);

	segments_begin(20);
	make_run(1, 0, 50, 1448);
	poll_segments();
	CHECK(seen_count == 3 && seen[0].segments == 20 && seen[1].segments == 20);
	CHECK(seen[2].segments == 10);
	CHECK(counted(HOT_COUNT_AGGREGATES) == packets + 3);
	CHECK(counted(HOT_COUNT_MERGED) == merged + 50);
	CHECK(counted(HOT_COUNT_FLUSH_LIMIT) == limit + 2);
	CHECK(counted(HOT_COUNT_FLUSH_END) == ended + 1);
	CHECK(test_host[0].held == 3);
	/* 50 sk_buffs are held; only the host's word frees them. */
	consume_skb((struct sk_buff *)test_host[0].queue[0]);
	CHECK(segments_held() == 3);
	pools_whole();
	/* an aggregate never outlives its poll */
	segments_next();
	make_run(1, 0, 3, 1448);
	poll_segments();
	make_run(1, 3, 1, 1448);
	poll_segments();
	CHECK(seen_count == 2 && seen[0].segments == 3 && seen[1].segments == 1);
	end();
}

/* What the host shows before the poll's end follows on what came before. */
void test_aggregate_looks(void)
{
	segments_begin(20);
	shared()->look = 1;
	test_host[0].more = 1;
	make_run(1, 0, 7, 1448);
	poll_more(4);
	CHECK(driver->polls == 2 && test_host[0].asked == 2);
	CHECK(seen_count == 1 && seen[0].segments == 7);
	shared()->look = 0;
	end();
}

void test_aggregate_off(void)
{
	u32 limit;

	for (limit = 0; limit < 2; limit++) {
		segments_begin(limit);
		make_run(0, 0, 5, 1000);
		poll_segments();
		CHECK(seen_count == 5);
		end();
	}
	/* more than there may be is the most there may be */
	segments_begin(1000);
	make_run(0, 0, 50, 1448);
	poll_segments();
	CHECK(seen_count == 2 && seen[0].segments == HOT_RX_SEGMENTS);
	end();
	/* outside of a poll nothing could flush */
	segments_begin(20);
	make_run(0, 0, 4, 1000);
	driver->poll_receives();
	CHECK(seen_count == 4);
	end();
}

/* ---- What is not merged -------------------------------------------------- */

#define BYTE(m, at)	((m)->frame[at])

static void changed_sum(struct made *m)
{
	make_right(m);
}

/* A change of the second of two segments, which then must not be merged. */
struct refusal {
	const char *what;
	bool other_flow;	/* it is of another flow, and need not be second */
	void (*change)(struct fields *fields);
	void (*spoil)(struct made *m);
};

#define CHANGE(name, statement)							\
	static void name(struct fields *f) { statement; }
#define SPOIL(name, statement)							\
	static void name(struct made *m) { statement; }

CHANGE(earlier, f->seq -= 1448 * 2)
CHANGE(same_again, f->seq -= 1448)
CHANGE(overlapping, f->seq -= 1)
CHANGE(gap, f->seq += 1)
CHANGE(half_the_space, f->seq += 0x80000000u)
CHANGE(older_ack, f->ack -= 2)
CHANGE(older_stamp, f->stamp -= 2)
CHANGE(fin, f->flags |= 1)
CHANGE(syn, f->flags |= 2)
CHANGE(rst, f->flags |= 4)
CHANGE(no_ack, f->flags = 8)
CHANGE(urg, f->flags |= 0x20)
CHANGE(ece, f->flags |= 0x40)
CHANGE(cwr, f->flags |= 0x80)
CHANGE(no_payload, f->payload = 0)
CHANGE(larger, f->payload++)
CHANGE(tos, f->tos = 3)
CHANGE(ttl, f->ttl--)
CHANGE(no_stamp, f->stamped = false)
CHANGE(no_df, f->fragment = 0)
CHANGE(more_fragments, f->fragment = 0x2000)
CHANGE(later_fragment, f->fragment = 0x0010)
CHANGE(reserved_flag, f->fragment = 0xc000)
SPOIL(accurate_ecn, BYTE(m, 46) |= 1)
SPOIL(reserved_bits, BYTE(m, 46) |= 8)
SPOIL(ip_sum, BYTE(m, 24) ^= 1)
SPOIL(card_said_no, m->unchecked = true)
SPOIL(ip_options, BYTE(m, 14) = 0x46; changed_sum(m))
SPOIL(ip_version, BYTE(m, 14) = 0x65; changed_sum(m))
SPOIL(longer_than_frame, BYTE(m, 17)++; changed_sum(m))
SPOIL(longest, BYTE(m, 16) = BYTE(m, 17) = 0xff; changed_sum(m))
SPOIL(shorter_than_headers, BYTE(m, 16) = 0; BYTE(m, 17) = 39; changed_sum(m))
SPOIL(nothing_long, BYTE(m, 16) = BYTE(m, 17) = 0; changed_sum(m))
SPOIL(data_offset_low, BYTE(m, 46) = 0x40)
SPOIL(data_offset_high, BYTE(m, 46) = 0xf0)
SPOIL(other_option, BYTE(m, 56) = 5)
SPOIL(unaligned_stamp, BYTE(m, 54) = 8; BYTE(m, 55) = 10)
SPOIL(tagged, m->vlan = 78; m->flow = 2)
SPOIL(other_guest, BYTE(m, 5) = 10; m->flow = 2)
SPOIL(other_sender, BYTE(m, 11) = 10; m->flow = 2)
SPOIL(udp, BYTE(m, 23) = 17; changed_sum(m); m->flow = 2)
SPOIL(ipv6, BYTE(m, 12) = 0x86; BYTE(m, 13) = 0xdd; m->flow = 2)
SPOIL(truncated, m->length = 60)
SPOIL(too_short, m->length = 53; m->flow = 2)

static const struct refusal refusals[] = {
#define BY_CHANGE(name)	{ #name, false, name, NULL }
#define BY_SPOIL(name)	{ #name, false, NULL, name }
#define OTHER_FLOW(name) { #name, true, NULL, name }
	BY_CHANGE(earlier), BY_CHANGE(same_again), BY_CHANGE(overlapping), BY_CHANGE(gap),
	BY_CHANGE(half_the_space), BY_CHANGE(older_ack), BY_CHANGE(older_stamp),
	BY_CHANGE(fin), BY_CHANGE(syn), BY_CHANGE(rst), BY_CHANGE(no_ack), BY_CHANGE(urg),
	BY_CHANGE(ece), BY_CHANGE(cwr), BY_CHANGE(no_payload), BY_CHANGE(larger),
	BY_CHANGE(tos), BY_CHANGE(ttl), BY_CHANGE(no_stamp), BY_CHANGE(no_df),
	BY_CHANGE(more_fragments), BY_CHANGE(later_fragment), BY_CHANGE(reserved_flag),
	BY_SPOIL(accurate_ecn), BY_SPOIL(reserved_bits), BY_SPOIL(ip_sum),
	BY_SPOIL(card_said_no), BY_SPOIL(ip_options), BY_SPOIL(ip_version),
	BY_SPOIL(longer_than_frame), BY_SPOIL(longest), BY_SPOIL(shorter_than_headers),
	BY_SPOIL(nothing_long), BY_SPOIL(data_offset_low), BY_SPOIL(data_offset_high),
	BY_SPOIL(other_option), BY_SPOIL(unaligned_stamp), BY_SPOIL(truncated),
	OTHER_FLOW(tagged), OTHER_FLOW(other_guest), OTHER_FLOW(other_sender), OTHER_FLOW(udp),
	OTHER_FLOW(ipv6), OTHER_FLOW(too_short),
};

/* No frontend takes a large packet with a tag inside. */
void test_aggregate_tagged(void)
{
	u32 i;

	segments_begin(20);
	for (i = 0; i < 5; i++) {
		make_run(1, i, 1, 1448);
		made[i].vlan = 78;
	}
	poll_segments();
	CHECK(seen_count == 5 && !hot_flows_open[0]);
	end();
}

/* Four segments of a card that computes no checksums, that number with a changed byte. */
static void one_of_four(u32 wrong, u32 payload)
{
	u32 i;

	segments_begin(20);
	make_run(1, 0, 4, payload);
	for (i = 0; i < 4; i++)
		make_summed(&made[i]);
	BYTE(&made[wrong], made[wrong].headers + payload - 1) ^= 0x40;
	poll_segments();
}

/* One that found a wrong one says the same. The wrong one is by itself, and comes out in order and as
 * it was; so does one that is right and stays alone. */
void test_aggregate_sums(void)
{
	u32 payload;

	for (payload = 1; payload < 1449; payload += payload < 70 ? 1 : 47) {
		one_of_four(0, payload);
		CHECK(seen_count == 2 && seen[1].segments == 3 && seen[1].first == 1);
		end();
		one_of_four(1, payload);
		CHECK(seen_count == 3 && seen[2].segments == 2 && seen[2].first == 2);
		end();
		one_of_four(2, payload);
		CHECK(seen_count == 3 && seen[0].segments == 2);
		end();
		one_of_four(3, payload);
		CHECK(seen_count == 2 && seen[0].segments == 3);
		end();
	}
}

/* Segments that stay alone: held or not, they are what they were, their checksums not looked at. */
void test_aggregate_alone(void)
{
	u64 ended = counted(HOT_COUNT_FLUSH_END), merged = counted(HOT_COUNT_MERGED);
	u32 push, sum, payload;

	for (push = 0; push < 2; push++)
		for (sum = 0; sum < 3; sum++)
			for (payload = 0; payload < 1449; payload += 181) {
				struct fields fields = segment_fields(1, 0, payload);
				struct made *m;

				segments_begin(20);
				fields.flags |= push ? 8 : 0;
				m = make_segment(&fields);
				if (sum)
					make_summed(m);
				if (sum == 2)
					BYTE(m, 60) ^= 1;
				poll_segments();
				CHECK(seen_count == 1 && seen[0].segments == 1);
				/* Only one that may be followed waits for the poll's end. */
				ended += !push && payload;
				CHECK(counted(HOT_COUNT_FLUSH_END) == ended);
				end();
			}
	CHECK(counted(HOT_COUNT_MERGED) == merged);
}

/* The first of a flow cannot be merged, which is seen when the second has come. */
void test_aggregate_first_refused(void)
{
	u32 way;

	for (way = 0; way < 4; way++) {
		struct fields fields = segment_fields(1, 0, 1000);
		struct made *m;

		segments_begin(20);
		m = make_segment(&fields);
		if (way == 0)
			BYTE(m, 24) ^= 1;	/* IP's checksum */
		if (way == 1)
			BYTE(m, 56) = 5;	/* an option */
		if (way == 2)
			m->length = 800;	/* shorter than IP says */
		if (way == 3)
			m->unchecked = true;
		make_run(1, 1, 3, 1000);
		poll_segments();
		CHECK(seen_count == 2 && seen[0].segments == 1 && seen[1].segments == 3);
		end();
	}
}

void test_aggregate_refused(void)
{
	u32 i, n;

	for (i = 0; i < ARRAY_SIZE(refusals); i++) {
		const struct refusal *refusal = &refusals[i];

		segments_begin(20);
		for (n = 0; n < 4; n++) {
			struct fields fields = segment_fields(1, n, 1448);
			struct made *m;

			if (n == 2 && refusal->change)
				refusal->change(&fields);
			m = make_segment(&fields);
			if (n == 2 && refusal->spoil)
				refusal->spoil(m);
		}
		poll_segments();
		/* Two are merged. The third is by itself, and then the fourth, unless only
		 * what came before made the third one wrong. */
		CHECK(seen[refusal->other_flow && seen[0].segments == 1].segments == 2);
		CHECK(seen_count == 3 || (seen_count == 2 && seen[1].segments == 2));
		if (seen_count == 2)
			CHECK(refusal->change == older_ack || refusal->change == older_stamp);
		end();
	}
}

/* ---- What ends an aggregate ---------------------------------------------- */

void test_aggregate_ends(void)
{
	u64 boundary = counted(HOT_COUNT_FLUSH_BOUNDARY);
	struct fields fields;

	/* A short segment is the last of one, with PSH or without; PSH alone ends none. */
	segments_begin(20);
	make_run(1, 0, 3, 1000);
	fields = segment_fields(1, 3, 1000);
	fields.flags |= 8;
	make_segment(&fields);
	make_run(1, 4, 2, 1000);
	fields = segment_fields(1, 6, 1000);
	fields.payload = 1;
	make_segment(&fields);
	fields.seq++;
	fields.payload = 1000;
	for (u32 n = 0; n < 3; n++, fields.seq += fields.payload) {
		fields.flags = n == 2 ? 0x18 : 0x10;
		fields.payload = n == 2 ? 999 : 1000;
		make_segment(&fields);
	}
	poll_segments();
	CHECK(seen_count == 2 && seen[0].segments == 7 && seen[1].segments == 3);
	CHECK(counted(HOT_COUNT_FLUSH_BOUNDARY) == boundary + 2);
	end();
	/* The last one's PSH, and all of an aggregate's but the first. */
	for (u32 pushed = 1; pushed < 5; pushed++) {
		segments_begin(20);
		for (u32 n = 0; n < 5; n++) {
			fields = segment_fields(1, n, 1000);
			fields.flags |= n >= pushed ? 8 : 0;
			make_segment(&fields);
		}
		poll_segments();
		CHECK(seen_count == 1 && seen[0].segments == 5);
		end();
	}
	/* One with PSH that nothing comes before does not wait: the other's is last. */
	segments_begin(20);
	make_run(2, 0, 2, 1000);
	fields = segment_fields(1, 0, 1000);
	fields.flags |= 8;
	make_segment(&fields);
	poll_segments();
	CHECK(seen_count == 2 && seen[0].first == 2 && seen[1].segments == 2);
	end();
	/* Without DF, IP's numbers must be in sequence. */
	segments_begin(20);
	for (u32 n = 0; n < 6; n++) {
		fields = segment_fields(1, n, 1000);
		fields.fragment = 0;
		fields.id += n == 4 || n == 5;
		make_segment(&fields);
	}
	poll_segments();
	CHECK(seen_count == 2 && seen[0].segments == 4 && seen[1].segments == 2);
	end();
}

/* Flows by turns: each is merged, whether they share a place or not. */
void test_aggregate_order(void)
{
	u64 collisions = counted(HOT_COUNT_FLUSH_COLLISION);
	u32 flows, n, flow;

	for (flows = 1; flows <= 12; flows++) {
		segments_begin(20);
		for (n = 0; n < 5; n++)
			for (flow = 0; flow < flows; flow++)
				make_run(flow, n, 1, 500);
		poll_segments();
		CHECK(seen_count >= flows);
		end();
	}
	/* Two for one place: the other has that beside it. */
	CHECK(counted(HOT_COUNT_FLUSH_COLLISION) == collisions);
}

/* Finds three flows for the same two places: the third flushes one. */
static bool find_rivals(u32 rivals[3])
{
	u64 collisions;
	u32 a, b, c;

	for (a = 0; a < MADE_FLOWS; a++)
		for (b = a + 1; b < MADE_FLOWS; b++)
			for (c = b + 1; c < MADE_FLOWS; c++) {
				collisions = counted(HOT_COUNT_FLUSH_COLLISION);
				segments_begin(20);
				make_run(a, 0, 1, 500);
				make_run(b, 0, 1, 500);
				make_run(c, 0, 1, 500);
				poll_segments();
				end();
				if (counted(HOT_COUNT_FLUSH_COLLISION) > collisions) {
					rivals[0] = a;
					rivals[1] = b;
					rivals[2] = c;
					return true;
				}
			}
	return false;
}

/* Three flows for two places: two of them are merged, or each by itself comes whole and in order. */
void test_aggregate_rivals(void)
{
	u32 rivals[3], n, i, at, packets;

	CHECK(find_rivals(rivals));
	/* Two of them never drive each other out, whichever they are. */
	for (i = 0; i < 3; i++) {
		segments_begin(20);
		for (n = 0; n < 5; n++) {
			make_run(rivals[i], n, 1, 500);
			make_run(rivals[(i + 1) % 3], n, 1, 500);
		}
		poll_segments();
		CHECK(seen_count == 2);
		end();
	}
	/* One after the other each is merged, whichever was flushed for it. */
	segments_begin(20);
	for (i = 0; i < 3; i++)
		make_run(rivals[i], 0, 5, 500);
	poll_segments();
	CHECK(seen_count == 3);
	end();
	/* By turns one of the three is merged at least. */
	segments_begin(20);
	for (n = 0; n < 5; n++)
		for (i = 0; i < 3; i++)
			make_run(rivals[i], n, 1, 500);
	poll_segments();
	for (at = packets = 0; at < seen_count; at++)
		packets += seen[at].segments == 5;
	CHECK(packets >= 1);
	end();
	/* One that waits in the other place is found there when its own has become free. Two of them have the same
	 * own place, whichever. */
	for (i = 0; i < 3; i++) {
		struct fields fields = segment_fields(rivals[i], 2, 500);

		fields.payload = 499;
		segments_begin(20);
		make_run(rivals[i], 0, 2, 500);
		make_run(rivals[(i + 1) % 3], 0, 2, 500);
		make_segment(&fields);
		make_run(rivals[(i + 1) % 3], 2, 2, 500);
		poll_segments();
		CHECK(seen_count == 2 && seen[0].segments == 3 && seen[1].segments == 4);
		end();
	}
}

/* More than 64 KiB, from frames that are longer than Ethernet's. */
void test_aggregate_long(void)
{
	segments_begin(32);
	make_run(1, 0, 32, 3000);
	poll_segments();
	CHECK(seen_count == 2 && seen[0].segments == 21 && seen[1].segments == 11);
	end();
}

/* ---- The host's side ----------------------------------------------------- */

void test_aggregate_unwanted(void)
{
	segments_begin(20);
	test_host[0].answer = HOT_RX_UNWANTED;
	make_run(1, 0, 30, 1448);
	poll_segments();
	CHECK(seen_count == 2 && test_host[0].held == 0);
	end();
}

/* The CPU dies while it merges: all of it is the pools' again. */
void test_aggregate_recovered(void)
{
	segments_begin(20);
	make_run(1, 0, 30, 1448);
	make_run(2, 0, 7, 1448);
	make_run(3, 0, 1, 1448);
	hot_cpus[0].polling = 1;
	hot_cpus[0].aggregate = 20;
	driver->poll_receives();
	CHECK(hot_flows_open[0] && seen_count == 1 && seen[0].segments == 20);
	CHECK(hot_recover(&driver->dev, 0) == 0);
	CHECK(!hot_flows_open[0] && !hot_cpus[0].aggregate);
	clear_bit(__LINK_STATE_START, &driver->dev.state);
	/* An sk_buff and a buffer each; the host keeps what it has. */
	CHECK(hot_recover(&driver->dev, 0) == 2 * 18);
	set_bit(__LINK_STATE_START, &driver->dev.state);
	end();
}

/* Nobody releases an aggregate whose driver died while it was given. A host that holds none
 * loses no segment of it, also if it died while it freed them and some are not HELD. */
void test_aggregate_given(void)
{
	struct sk_buff *first;
	u32 freed;

	for (freed = 0; freed < 2; freed++) {
		segments_begin(20);
		make_run(1, 0, 20, 1448);
		poll_segments();
		first = (struct sk_buff *)test_host[0].queue[0];
		if (freed)
			hot_pools[HOT_POOL_SKB].state[hot_skb_index(first)] = HOT_OBJECT_CLAIMED;
		test_host[0].held = 0;
		clear_bit(__LINK_STATE_START, &driver->dev.state);
		hot_host_holds = 0;
		CHECK(hot_recover(&driver->dev, 0) == 2 * 20);
		hot_host_holds = 1;
		set_bit(__LINK_STATE_START, &driver->dev.state);
		end();
	}
}

/* The driver writes where the links are: what they say is not believed. */
void test_aggregate_broken_chain(void)
{
	u64 bad = counted(HOT_COUNT_BAD_FREE);
	struct sk_buff *first, *second, *third, *busy;
	u32 way;

	for (way = 0; way < 4; way++) {
		segments_begin(20);
		make_run(1, 0, 3, 1448);
		poll_segments();
		first = (struct sk_buff *)test_host[0].queue[0];
		second = first->next;
		third = second->next;
		busy = napi_alloc_skb(&driver->napi, 60);
		first->next = way == 0 ? first : way == 1 ? busy :
			      way == 2 ? (struct sk_buff *)((u8 *)second + 8) :
					 (struct sk_buff *)16;
		CHECK(segments_held() == 1);
		CHECK(counted(HOT_COUNT_BAD_FREE) == bad + way + 1);
		/* What the links do not lead to stays held, and nothing else is harmed. */
		CHECK(hot_pools[HOT_POOL_SKB].state[hot_skb_index(busy)] == HOT_OBJECT_BUSY);
		test_host[0].queue[0] = (u64)second;
		test_host[0].queue[1] = (u64)third;
		test_host[0].held = 2;
		consume_skb(busy);
		end();
	}
}

/* dom0 has a reference to a segment: it is freed when that is dropped and not before, and the others are not kept for
 * any but the first. */
void test_aggregate_referenced(void)
{
	const u8 *state = hot_pools[HOT_POOL_SKB].state;
	struct sk_buff *segment[3];
	u32 kept, i;

	for (kept = 0; kept < 3; kept++) {
		segments_begin(20);
		make_run(1, 0, 3, 1448);
		poll_segments();
		segment[0] = (struct sk_buff *)test_host[0].queue[0];
		for (i = 1; i < 3; i++)
			segment[i] = segment[i - 1]->next;
		skb_get(segment[kept]);
		CHECK(segments_held() == 1);
		for (i = 0; i < 3; i++) {
			const u8 now = state[hot_skb_index(segment[i])];

			if (i == kept)
				CHECK(now == HOT_OBJECT_BUSY && (!i || !segment[i]->next));
			else
				CHECK(now == (kept ? HOT_OBJECT_FREE : HOT_OBJECT_HELD));
		}
		consume_skb(segment[kept]);
		for (i = 0; i < 3; i++)
			CHECK(state[hot_skb_index(segment[i])] == HOT_OBJECT_FREE);
		end();
	}
}

/* ---- The property -------------------------------------------------------- */

/* The state of a sender, and what it does wrong now and then. */
static void random_segment(struct fields *next)
{
	struct fields fields = *next;
	struct made *m;
	u32 odd = test_random() % 64;

	switch (odd) {
	case 0: fields.seq += test_random() % 3000; break;
	case 1: fields.seq -= test_random() % 3000; break;
	case 2: fields.ack -= 5; break;
	case 3: fields.stamp -= 5; break;
	case 4: fields.flags ^= 1 << test_random() % 8; break;
	case 5: fields.payload = test_random() % 1449; break;
	case 6: fields.tos = test_random(); break;
	case 7: fields.fragment = test_random(); break;
	case 8: fields.stamped = !fields.stamped; break;
	case 9: fields.ttl = test_random(); break;
	case 10: next->fragment ^= 0x4000; break;
	default: break;
	}
	m = make_segment(&fields);
	if (odd >= 11 && odd < 15) {
		/* Any bit of the headers, but of the protocol, addresses and ports: they say
		 * which flow it is of. Sometimes IP's checksum is right nevertheless. */
		u32 at = 14 + test_random() % 52;

		if (at != 23 && (at < 26 || at >= 38))
			BYTE(m, at) ^= 1 << test_random() % 8;
		if (test_random() % 2 && (BYTE(m, 14) & 15) == 5)
			make_right(m);
	} else if (odd == 15) {
		m->unchecked = true;
	} else if (odd >= 11 && fields.flow % 3 == 0) {
		/* Its card computes none; a few are wrong. */
		make_summed(m);
		BYTE(m, m->headers) ^= odd == 16;
	}
	next->seq = fields.seq + fields.payload;
	next->id++;
	next->ack += test_random() % 2;
	next->stamp += test_random() % 2;
	next->window = test_random();
}

void test_aggregate_model(void)
{
	u64 merged = counted(HOT_COUNT_MERGED), packets = counted(HOT_COUNT_AGGREGATES);
	u64 delivered = 0, given = 0;
	struct fields senders[12];
	u32 round, flow, n, i;

	for (flow = 0; flow < 12; flow++) {
		senders[flow] = segment_fields(flow, test_random(), 1 + test_random() % 1448);
		senders[flow].stamped = flow & 1;
	}
	for (round = 0; round < 2000; round++) {
		u32 flows = 1 + test_random() % 12, polls = 1 + test_random() % 3;

		segments_begin(test_random() % (HOT_RX_SEGMENTS + 2));
		test_host[0].answer = test_random() % 4 ? HOT_RX_HELD : HOT_RX_UNWANTED;
		while (polls--) {
			n = 1 + test_random() % 40;
			flow = test_random() % flows;
			for (i = 0; i < n; i++) {
				/* Trains, as senders and cards make them. */
				if (test_random() % 4 == 0)
					flow = test_random() % flows;
				random_segment(&senders[flow]);
			}
			poll_segments();
		}
		given += made_count;
		delivered += seen_count;
		segments_held();
		pools_whole();
	}
	merged = counted(HOT_COUNT_MERGED) - merged;
	packets = counted(HOT_COUNT_AGGREGATES) - packets;
	CHECK(given - delivered == merged - packets);
	/* It was worth the name. */
	CHECK(packets > 1000 && merged > 3 * packets);
	end();
}
