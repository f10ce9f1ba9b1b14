// SPDX-License-Identifier: GPL-2.0-only
/*
 * layout.c: offsets in the kernel's structures, for a host that injects faults into
 * them. Modules carry no debug information, so the compiler gives the offsets here,
 * from the headers that the driver was compiled against.
 */
#include <linux/netdevice.h>
#include <linux/skbuff.h>

#include "shim.h"

#define FIELD(type, field) \
	{ #type "." #field, offsetof(struct type, field), sizeof_field(struct type, field) }
#define WHOLE(type) { #type, 0, sizeof(struct type) }

const struct kernel_field kernel_fields[] = {
	WHOLE(net_device),
	FIELD(net_device, netdev_ops),
	FIELD(net_device, ethtool_ops),
	FIELD(net_device, _tx),
	FIELD(net_device, num_tx_queues),
	FIELD(net_device, state),
	FIELD(net_device, flags),
	FIELD(net_device, features),
	FIELD(net_device, mtu),
	FIELD(net_device, dev_addr),
	WHOLE(net_device_ops),
	FIELD(net_device_ops, ndo_start_xmit),
	WHOLE(netdev_queue),
	FIELD(netdev_queue, dev),
	FIELD(netdev_queue, _xmit_lock),
	FIELD(netdev_queue, xmit_lock_owner),
	FIELD(netdev_queue, state),
	WHOLE(napi_struct),
	FIELD(napi_struct, poll_list),
	FIELD(napi_struct, state),
	FIELD(napi_struct, weight),
	FIELD(napi_struct, poll),
	FIELD(napi_struct, dev),
	WHOLE(sk_buff),
	FIELD(sk_buff, next),
	FIELD(sk_buff, prev),
	FIELD(sk_buff, dev),
	FIELD(sk_buff, len),
	FIELD(sk_buff, data_len),
	FIELD(sk_buff, data),
	FIELD(sk_buff, head),
	FIELD(sk_buff, tail),
	FIELD(sk_buff, end),
	FIELD(sk_buff, truesize),
	FIELD(sk_buff, users),
	FIELD(sk_buff, csum),
	FIELD(sk_buff, protocol),
	FIELD(sk_buff, transport_header),
	FIELD(sk_buff, network_header),
	WHOLE(skb_shared_info),
	FIELD(skb_shared_info, nr_frags),
	FIELD(skb_shared_info, gso_size),
	FIELD(skb_shared_info, frag_list),
	FIELD(skb_shared_info, dataref),
	FIELD(skb_shared_info, frags),
};

const __u64 kernel_fields_count = ARRAY_SIZE(kernel_fields);
