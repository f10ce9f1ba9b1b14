// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Guests' packets to the driver (paper, 5.3): the header is copied into a
 * pooled sk_buff, the rest stays in the guest's pages, which are chained as
 * fragments by their struct page alone: dom0 cannot reach them, and only the
 * device accesses them.
 *
 * A request comes from a guest. Scalars are read once into registers, the
 * header is copied before it is parsed, and each fragment is read once. A request
 * that passes is a packet that a correct kernel could have given to the driver.
 */
#include "internal.h"
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/version.h>

#define HOT_MAX_TAGS	2	/* VLAN headers inside header[] */

_Static_assert(HOT_FRAGMENTS == MAX_SKB_FRAGS, "a request's fragments fit");
_Static_assert(HOT_HEADER >= ETH_ZLEN, "short packets are linear");

/* ---- Completion --------------------------------------------------------- */

void hot_tx_complete(const struct hot_tag *tag)
{
	struct hot_shared *shared = &hot_shared[tag->cpu & (HOT_CPUS - 1)];
	struct hot_tx_done *done = (struct hot_tx_done *)shared->tx_done;
	u32 cpu = hot_cpu_id();
	u32 at;

	hot_lock(&shared->tx_done_lock, cpu);
	at = shared->tx_done_produce;
	if (unlikely(at - READ_ONCE(shared->tx_done_consume) >= HOT_TX_DONE)) {
		hot_unlock(&shared->tx_done_lock);
		hot_count_on(cpu, HOT_COUNT_COMPLETION_LOST, 1);
		return;
	}
	done += at % HOT_TX_DONE;
	done->cookie = tag->cookie;
	done->guest = tag->guest;
	smp_store_release(&shared->tx_done_produce, at + 1);
	hot_unlock(&shared->tx_done_lock);
	hot_count_on(cpu, HOT_COUNT_COMPLETED, 1);
}

/*
 * Whether one more request could complete without overrunning tx_done, however
 * late the consumer is. pending: built and not yet counted in tx_sent.
 */
static bool hot_tx_done_room(const struct hot_shared *shared, u32 pending)
{
	return (s32)(shared->tx_sent + pending - READ_ONCE(shared->tx_done_consume)) < HOT_TX_DONE;
}

/* ---- Request to sk_buff ------------------------------------------------- */

static void hot_tx_set_fragment(skb_frag_t *fragment, struct page *page, u32 offset, u32 length)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	skb_frag_fill_page_desc(fragment, page, offset, length);
#else
	fragment->bv_page = page;
	skb_frag_off_set(fragment, offset);
	skb_frag_size_set(fragment, length);
#endif
}

/* Chains the guest's pages. False if one does not exist or is empty. */
static __always_inline bool hot_tx_fragments(struct sk_buff *skb,
					     const struct hot_tx_request *request, u32 n)
{
	struct skb_shared_info *shared = skb_shinfo(skb);
	u32 i, length, total = 0;

	for (i = 0; i < n; i++) {
		u64 address = READ_ONCE(request->fragment[i].address);
		u64 frame = address >> PAGE_SHIFT;
		skb_frag_t *fragment = &shared->frags[i];

		length = READ_ONCE(request->fragment[i].length);
		if (unlikely(!length || length > GSO_LEGACY_MAX_SIZE ||
			     frame >= hot_machine_frames ||
			     (address + length - 1) >> PAGE_SHIFT >= hot_machine_frames))
			return false;
		hot_tx_set_fragment(fragment, pfn_to_page(frame + hot_p2m_frames),
				    address & ~PAGE_MASK, length);
		total += length;
	}
	shared->nr_frags = n;
	skb->data_len = total;
	skb->len += total;
	skb->truesize += total;
	return true;
}

/* Skips VLAN headers in the packet. Sets the network header. */
static __always_inline bool hot_tx_network(struct sk_buff *skb, u32 linear)
{
	u32 at = ETH_HLEN, tags;
	__be16 type = *(__be16 *)(skb->data + ETH_HLEN - 2);

	skb->protocol = type;
	for (tags = 0; eth_type_vlan(type); tags++) {
		if (tags == HOT_MAX_TAGS || at + VLAN_HLEN > linear)
			return false;
		type = *(__be16 *)(skb->data + at + 2);
		at += VLAN_HLEN;
	}
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, at);
	skb_set_transport_header(skb, at);
	skb_reset_mac_len(skb);
	return true;
}

/* The protocol after Ethernet and VLAN headers. */
static __be16 hot_tx_type(const struct sk_buff *skb)
{
	return *(__be16 *)(skb_network_header(skb) - 2);
}

/*
 * The transport protocol if the linear part holds the whole network header,
 * which ends at *end (from skb->data). 0 if not IP or cut off.
 */
static __always_inline u8 hot_tx_transport(const struct sk_buff *skb, u32 linear, u32 *end)
{
	u32 at = skb_network_offset(skb);

	if (hot_tx_type(skb) == htons(ETH_P_IP) && at + sizeof(struct iphdr) <= linear) {
		const struct iphdr *ip = ip_hdr(skb);

		*end = at + ip->ihl * 4;
		return ip->version == 4 && ip->ihl >= 5 && *end <= linear ? ip->protocol : 0;
	}
	if (hot_tx_type(skb) == htons(ETH_P_IPV6) && at + sizeof(struct ipv6hdr) <= linear) {
		const struct ipv6hdr *ip = ipv6_hdr(skb);

		*end = at + sizeof(*ip);
		return ip->version == 6 ? ip->nexthdr : 0;
	}
	return 0;
}

/*
 * CHECKSUM_PARTIAL: the device sums from start and stores at start + offset.
 * Drivers look at the network header to tell TCP from others, so if the type
 * says IP that header must be there.
 */
static __always_inline bool hot_tx_checksum(struct sk_buff *skb, u32 linear, u32 start,
					    u32 offset)
{
	__be16 type = hot_tx_type(skb);
	u32 at = skb_network_offset(skb);

	if (start < at || start + offset + sizeof(__sum16) > linear)
		return false;
	if (type == htons(ETH_P_IP) && at + sizeof(struct iphdr) > linear)
		return false;
	if (type == htons(ETH_P_IPV6) && at + sizeof(struct ipv6hdr) > linear)
		return false;
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_headroom(skb) + start;
	skb->csum_offset = offset;
	skb_set_transport_header(skb, start);
	return true;
}

/*
 * TCP segmentation: all headers linear, checksum partial at TCP's, segments
 * that fit the link.
 */
static __always_inline bool hot_tx_segment(struct sk_buff *skb, u32 linear, u32 size, u32 type,
					   u32 mtu)
{
	struct skb_shared_info *shared = skb_shinfo(skb);
	__be16 network = type == HOT_GSO_TCPV4 ? htons(ETH_P_IP) : htons(ETH_P_IPV6);
	u32 at, headers;

	if (skb->ip_summed != CHECKSUM_PARTIAL || hot_tx_type(skb) != network)
		return false;
	if (skb->csum_offset != offsetof(struct tcphdr, check) ||
	    hot_tx_transport(skb, linear, &at) != IPPROTO_TCP || skb_transport_offset(skb) != at)
		return false;
	if (at + sizeof(struct tcphdr) > linear || tcp_hdr(skb)->doff < 5)
		return false;
	headers = at + tcp_hdrlen(skb);
	if (headers > linear || skb->len <= headers || skb->len > GSO_LEGACY_MAX_SIZE)
		return false;
	if (size < HOT_MIN_GSO_SIZE || headers - skb_network_offset(skb) + size > mtu)
		return false;
	shared->gso_size = size;
	shared->gso_segs = DIV_ROUND_UP(skb->len - headers, size);
	shared->gso_type = type == HOT_GSO_TCPV4 ? SKB_GSO_TCPV4 : SKB_GSO_TCPV6;
	return true;
}

static bool hot_can(netdev_features_t features, netdev_features_t needed)
{
	return (features & needed) == needed;
}

/*
 * Fills an sk_buff from a request; gives whether the request is valid, for a device with these
 * features. Inline, for every packet is here; the second caller is rare.
 */
static __always_inline bool hot_tx_fill(struct sk_buff *skb, struct net_device *dev,
					const struct hot_tx_request *request,
					netdev_features_t features)
{
	u32 header = READ_ONCE(request->header_length);
	u32 fragments = READ_ONCE(request->fragments);
	u32 gso_size = READ_ONCE(request->gso_size);
	u32 gso_type = READ_ONCE(request->gso_type);
	u32 start = READ_ONCE(request->checksum_start);
	u32 flags = READ_ONCE(request->flags);

	if (header < ETH_HLEN || header > HOT_HEADER || fragments > HOT_FRAGMENTS)
		return false;
	if (flags & ~HOT_TX_VLAN || gso_type > HOT_GSO_TCPV6 || !gso_size != !gso_type)
		return false;

	skb_reserve(skb, HOT_HEADROOM);
	memcpy(skb->data, request->header, header);
	skb->tail += header;
	skb->len = header;
	skb->dev = dev;
	if (!hot_tx_network(skb, header))
		return false;
	if (fragments && (!hot_can(features, NETIF_F_SG) ||
			  !hot_tx_fragments(skb, request, fragments)))
		return false;
	/* The driver pads short packets, which is impossible with fragments. */
	if (fragments && skb->len < ETH_ZLEN)
		return false;
	if (start && (!(features & NETIF_F_HW_CSUM) ||
		      !hot_tx_checksum(skb, header, start, READ_ONCE(request->checksum_offset))))
		return false;
	if (gso_size) {
		if (!hot_can(features, gso_type == HOT_GSO_TCPV4 ? NETIF_F_TSO : NETIF_F_TSO6) ||
		    !hot_tx_segment(skb, header, gso_size, gso_type, dev->mtu))
			return false;
	} else if (skb->len - skb_network_offset(skb) > dev->mtu) {
		return false;
	}
	if (flags & HOT_TX_VLAN) {
		if (!hot_can(features, NETIF_F_HW_VLAN_CTAG_TX))
			return false;
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), READ_ONCE(request->vlan_tag));
	}
	return true;
}

/* Frees an sk_buff that was built and not sent: no completion, the result says why. */
static void hot_tx_drop(struct sk_buff *skb)
{
	hot_skb_tag(skb)->flags &= ~HOT_TAG_COMPLETE;
	hot_skb_free(skb);
}

/* The sk_buff of a request, or NULL and why. */
static __always_inline struct sk_buff *hot_tx_build(struct net_device *dev,
						    const struct hot_tx_request *request, u32 cpu,
						    netdev_features_t features, u32 *result)
{
	void *buffer = hot_buffer_get(HOT_TX_BUFFER);
	struct sk_buff *skb;
	struct hot_tag *tag;

	*result = HOT_NO_BUFFER;
	if (unlikely(!buffer))
		return NULL;
	skb = hot_skb_build(buffer, HOT_TX_BUFFER);
	if (unlikely(!skb)) {
		hot_buffer_put(buffer);
		return NULL;
	}
	tag = hot_skb_tag(skb);
	tag->cookie = READ_ONCE(request->cookie);
	tag->guest = READ_ONCE(request->guest);
	tag->cpu = cpu;
	tag->flags = HOT_TAG_GUEST_PAGES;
	if (unlikely(!hot_tx_fill(skb, dev, request, features))) {
		hot_tx_drop(skb);
		*result = HOT_INVALID;
		return NULL;
	}
	tag->flags = HOT_TAG_GUEST_PAGES | HOT_TAG_COMPLETE;
	*result = HOT_SENT;
	return skb;
}

/* ---- sk_buff to driver -------------------------------------------------- */

/* With the queue's lock held. False: the driver did not take it, skb is freed. */
static bool hot_tx_send(struct sk_buff *skb, struct net_device *dev, struct netdev_queue *txq,
			u32 cpu, bool more)
{
	if (likely(!netif_xmit_frozen_or_stopped(txq))) {
		int rc;

		__this_cpu_write(softnet_data.xmit.more, more);
		rc = dev->netdev_ops->ndo_start_xmit(skb, dev);
		if (likely(dev_xmit_complete(rc))) {
			hot_shared[cpu].tx_sent++;
			hot_count_on(cpu, HOT_COUNT_SENT, 1);
			txq_trans_update(txq);
			return true;
		}
	}
	hot_tx_drop(skb);
	return false;
}

static void hot_tx_result(struct hot_tx_request *request, u32 cpu, u32 result)
{
	static const u8 counter[] = {
		[HOT_BUSY] = HOT_COUNT_BUSY,
		[HOT_NO_BUFFER] = HOT_COUNT_NO_BUFFER,
		[HOT_INVALID] = HOT_COUNT_INVALID,
		[HOT_DOWN] = HOT_COUNT_DOWN,
	};

	WRITE_ONCE(request->result, result);
	if (result != HOT_SENT)
		hot_count_on(cpu, counter[result], 1);
}

/*
 * The doorbell waits for the last packet (xmit_more). Whether a packet is the last
 * is known only after the next one is built, so one is always built ahead.
 *
 * Who said "more" and is then refused the next packet has nobody to ring the doorbell, and
 * nothing completes that would wake the queue. A driver that lets its queue run has room for
 * any packet but a large one, which may need a descriptor for every few segments
 * (e1000_xmit_frame() of Linux 6.1: 24 are free, and 64 KiB may need 132). So nothing waits
 * for a large one.
 */
static u32 hot_tx_batch(struct net_device *dev, struct netdev_queue *txq, u32 cpu,
			struct hot_tx_request *requests, u32 count)
{
	struct sk_buff *skb = NULL, *next;
	u32 i, at = 0, sent = 0, result = HOT_SENT;

	for (i = 0; i < count; i++) {
		if (unlikely(!hot_tx_done_room(&hot_shared[cpu], skb != NULL))) {
			result = HOT_BUSY;
			break;
		}
		next = hot_tx_build(dev, &requests[i], cpu, dev->features, &result);
		if (unlikely(result == HOT_NO_BUFFER))
			break;
		if (unlikely(!next)) {
			hot_tx_result(&requests[i], cpu, result);
			continue;
		}
		if (skb) {
			if (unlikely(!hot_tx_send(skb, dev, txq, cpu, !skb_is_gso(next)))) {
				hot_tx_drop(next);
				i = at;
				skb = NULL;
				result = HOT_BUSY;
				break;
			}
			hot_tx_result(&requests[at], cpu, HOT_SENT);
			sent++;
		}
		skb = next;
		at = i;
	}
	if (skb) {
		if (likely(hot_tx_send(skb, dev, txq, cpu, false))) {
			hot_tx_result(&requests[at], cpu, HOT_SENT);
			sent++;
		} else {
			i = at;
			result = HOT_BUSY;
		}
	}
	/* The packets after the one that could not be sent wait for the same reason. */
	for (; i < count; i++)
		hot_tx_result(&requests[i], cpu, result);
	return sent;
}

/* ---- For a device that lacks something ------------------------------------------ */

/* The packet that is being cut: internal.h. */
struct hot_waits hot_waits;

void hot_transmit_recover(void)
{
	hot_waits.whole = NULL;
	hot_waits.made = NULL;
	hot_waits.made_count = 0;
}

/* Links are in dom0's memory: there are not more than were counted. */
void hot_transmit_drop_made(void)
{
	struct sk_buff *part = hot_waits.made, *next;
	u32 count = hot_waits.made_count;

	hot_waits.made = NULL;
	hot_waits.made_count = 0;
	for (; part && count; count--, part = next) {
		next = part->next;
		part->next = NULL;
		hot_skb_free(part);
	}
}

void hot_transmit_end_wait(void)
{
	struct sk_buff *whole = hot_waits.whole;

	if (!whole)
		return;
	hot_waits.whole = NULL;
	if (unlikely(hot_waits.made_count))
		hot_transmit_drop_made();
	hot_skb_free(whole);
}

/* A request is taken: it is the hot routines' until the driver has all of its parts, which may be one.
 * Its result. acks: it is a template. */
static noinline u32 hot_tx_take(struct net_device *dev, u32 cpu,
				const struct hot_tx_request *request, bool acks)
{
	struct sk_buff *whole;
	u32 result;

	whole = hot_tx_build(dev, request, cpu, ~0ull, &result);
	if (!whole)
		return result;
	hot_waits.acks = 0;
	if (!hot_offload_fits(whole) || (acks && !hot_acks_read(whole, request))) {
		hot_tx_drop(whole);
		return HOT_INVALID;
	}
	hot_waits.dev = dev;
	hot_waits.next = 0;
	/* A poll on another CPU sees it without the queue's lock, and takes the lock of its device. */
	smp_store_release(&hot_waits.whole, whole);
	hot_shared[cpu].tx_sent++;
	hot_count_on(cpu, HOT_COUNT_SENT, 1);
	if (skb_is_gso(whole))
		hot_count_on(cpu, HOT_COUNT_CUT, 1);
	return HOT_SENT;
}

/* hot_tx_batch() for such a device: one after the other, with a doorbell for each. */
static noinline u32 hot_tx_lacking(struct net_device *dev, struct netdev_queue *txq, u32 cpu,
				   struct hot_tx_request *requests, u32 count)
{
	u32 sent = 0, result = HOT_SENT;

	for (; count; requests++, count--) {
		if (!hot_offload_rest(txq) || !hot_tx_done_room(&hot_shared[cpu], 0))
			result = HOT_BUSY;
		else
			result = hot_tx_take(dev, cpu, requests, false);
		if (result != HOT_SENT && result != HOT_INVALID)
			break;
		hot_tx_result(requests, cpu, result);
		sent += result == HOT_SENT;
	}
	hot_offload_rest(txq);
	for (; count; requests++, count--)
		hot_tx_result(requests, cpu, result);
	return sent;
}

void hot_transmit_rest(void)
{
	struct net_device *dev = hot_waits.dev;
	struct netdev_queue *txq = netdev_get_tx_queue(dev, 0);

	__preempt_count_add(SOFTIRQ_DISABLE_OFFSET);
	HARD_TX_LOCK(dev, txq, HOT_QUEUE_OWNER + hot_cpu_id());
	hot_offload_rest(txq);
	HARD_TX_UNLOCK(dev, txq);
	__preempt_count_sub(SOFTIRQ_DISABLE_OFFSET);
}

/* What guests are offered, so that a device without is worth another path. Tags and TCP over IPv6
 * alone are not: who has neither keeps the short one, and refuses them. */
#define HOT_OFFERED	(NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_TSO)

/* Whether requests are to go in parts; also while one does, whatever the device can meanwhile. */
static bool hot_is_lacking(const struct net_device *dev, u32 cpu)
{
	return (READ_ONCE(hot_shared[cpu].offload) && !hot_can(dev->features, HOT_OFFERED)) ||
	       READ_ONCE(hot_waits.whole);
}

/* ---- Entry points ------------------------------------------------------------------ */

u32 hot_transmit(struct net_device *dev, u32 first, u32 count)
{
	u32 cpu = hot_cpu_id();
	struct hot_tx_request *requests = (struct hot_tx_request *)hot_shared[cpu].requests;
	struct netdev_queue *txq = netdev_get_tx_queue(dev, 0);
	u32 i, sent = 0;

	if (unlikely(!requests || first >= HOT_REQUESTS || count > HOT_REQUESTS - first))
		return 0;
	requests += first;
	__preempt_count_add(SOFTIRQ_DISABLE_OFFSET);
	HARD_TX_LOCK(dev, txq, HOT_QUEUE_OWNER + cpu);
	if (unlikely(!netif_running(dev) || !netif_carrier_ok(dev))) {
		hot_transmit_end_wait();
		for (i = 0; i < count; i++)
			hot_tx_result(&requests[i], cpu, HOT_DOWN);
	} else if (unlikely(hot_is_lacking(dev, cpu))) {
		sent = hot_tx_lacking(dev, txq, cpu, requests, count);
	} else {
		sent = hot_tx_batch(dev, txq, cpu, requests, count);
	}
	HARD_TX_UNLOCK(dev, txq);
	__preempt_count_sub(SOFTIRQ_DISABLE_OFFSET);
	return sent;
}

u32 hot_transmit_acks(struct net_device *dev, u32 index)
{
	u32 cpu = hot_cpu_id();
	struct hot_tx_request *requests = (struct hot_tx_request *)hot_shared[cpu].requests;
	struct netdev_queue *txq = netdev_get_tx_queue(dev, 0);
	u32 result;

	if (unlikely(!requests || index >= HOT_REQUESTS))
		return 0;
	__preempt_count_add(SOFTIRQ_DISABLE_OFFSET);
	HARD_TX_LOCK(dev, txq, HOT_QUEUE_OWNER + cpu);
	if (unlikely(!netif_running(dev) || !netif_carrier_ok(dev))) {
		hot_transmit_end_wait();
		result = HOT_DOWN;
	} else if (!hot_offload_rest(txq) || !hot_tx_done_room(&hot_shared[cpu], 0)) {
		result = HOT_BUSY;
	} else {
		result = hot_tx_take(dev, cpu, &requests[index], true);
		hot_offload_rest(txq);
	}
	hot_tx_result(&requests[index], cpu, result);
	HARD_TX_UNLOCK(dev, txq);
	__preempt_count_sub(SOFTIRQ_DISABLE_OFFSET);
	return result == HOT_SENT;
}

u32 hot_features(struct net_device *dev)
{
	netdev_features_t features = hot_is_lacking(dev, hot_cpu_id()) ? ~0ull : dev->features;
	u32 can = 0;

	if (features & NETIF_F_SG)
		can |= HOT_CAN_FRAGMENTS;
	if (features & NETIF_F_HW_CSUM)
		can |= HOT_CAN_CHECKSUM;
	if (features & NETIF_F_TSO)
		can |= HOT_CAN_TSO4;
	if (features & NETIF_F_TSO6)
		can |= HOT_CAN_TSO6;
	if (features & NETIF_F_HW_VLAN_CTAG_TX)
		can |= HOT_CAN_VLAN;
	return can;
}
