// SPDX-License-Identifier: GPL-2.0-only
/*
 * ethtool.c: the helpers that drivers call, and ethtool(8)'s queries for the
 * host. Contexts: may sleep; the configuration mutex is held (device.c).
 */
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/slab.h>

#include "device.h"
#include "shim.h"

/* ---- For drivers ------------------------------------------------------------ */

void ethtool_convert_legacy_u32_to_link_mode(unsigned long *modes, u32 legacy)
{
	memset(modes, 0, BITS_TO_LONGS(__ETHTOOL_LINK_MODE_MASK_NBITS) * sizeof(long));
	modes[0] = legacy;
}

/* False if there are modes that 32 bits do not hold. */
bool ethtool_convert_link_mode_to_legacy_u32(u32 *legacy, const unsigned long *modes)
{
	*legacy = modes[0];
	return _find_next_bit(modes, __ETHTOOL_LINK_MODE_MASK_NBITS, 32) ==
	       __ETHTOOL_LINK_MODE_MASK_NBITS;
}

int ethtool_op_get_ts_info(struct net_device *dev, struct ethtool_ts_info *info)
{
	info->so_timestamping = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE |
				SOF_TIMESTAMPING_SOFTWARE;
	info->phc_index = -1;
	return 0;
}

u32 ethtool_op_get_link(struct net_device *dev)
{
	return netif_carrier_ok(dev) ? 1 : 0;
}

/* ---- For the host: each between begin and finish --------------------------- */

static const struct ethtool_ops *begin(struct net_device *dev, long *error)
{
	const struct ethtool_ops *ops;

	*error = device_begin(dev);
	if (*error)
		return NULL;
	ops = dev->ethtool_ops;
	if (ops->begin)
		*error = ops->begin(dev);
	if (*error) {
		device_end();
		return NULL;
	}
	return ops;
}

static long finish(struct net_device *dev, long result)
{
	if (dev->ethtool_ops->complete)
		dev->ethtool_ops->complete(dev);
	return device_finish(result);
}

long kernel_ethtool_drvinfo(struct kernel_drvinfo *out)
{
	struct net_device *dev = net_device;
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	const struct ethtool_ops *ops;
	long error;

	ops = begin(dev, &error);
	if (!ops)
		return error;
	strscpy(info.bus_info, dev_name(dev->dev.parent), sizeof(info.bus_info));
	strscpy(info.driver, dev_driver_string(dev->dev.parent), sizeof(info.driver));
	if (ops->get_drvinfo)
		ops->get_drvinfo(dev, &info);
	memset(out, 0, sizeof(*out));
	strscpy(out->driver, info.driver, sizeof(out->driver));
	strscpy(out->version, info.version, sizeof(out->version));
	strscpy(out->firmware, info.fw_version, sizeof(out->firmware));
	strscpy(out->bus, info.bus_info, sizeof(out->bus));
	return finish(dev, 0);
}

long kernel_ethtool_link(struct kernel_link *out)
{
	struct net_device *dev = net_device;
	struct ethtool_link_ksettings settings = {};
	const struct ethtool_ops *ops;
	long error;

	ops = begin(dev, &error);
	if (!ops)
		return error;
	memset(out, 0, sizeof(*out));
	error = ops->get_link_ksettings ? ops->get_link_ksettings(dev, &settings) : -EOPNOTSUPP;
	out->carrier = netif_carrier_ok(dev);
	out->link = ops->get_link ? ops->get_link(dev) : out->carrier;
	out->speed = settings.base.speed;
	out->duplex = settings.base.duplex;
	out->autoneg = settings.base.autoneg;
	out->port = settings.base.port;
	out->supported = settings.link_modes.supported[0];
	out->advertising = settings.link_modes.advertising[0];
	return finish(dev, error);
}

long kernel_ethtool_ringparam(struct kernel_ringparam *out)
{
	struct net_device *dev = net_device;
	struct ethtool_ringparam ring = { .cmd = ETHTOOL_GRINGPARAM };
	struct kernel_ethtool_ringparam more = {};
	struct netlink_ext_ack ack = {};
	const struct ethtool_ops *ops;
	long error;

	ops = begin(dev, &error);
	if (!ops)
		return error;
	if (!ops->get_ringparam)
		return finish(dev, -EOPNOTSUPP);
	ops->get_ringparam(dev, &ring, &more, &ack);
	*out = (struct kernel_ringparam){ ring.rx_pending, ring.tx_pending,
					  ring.rx_max_pending, ring.tx_max_pending };
	return finish(dev, 0);
}

long kernel_ethtool_set_ringparam(u32 rx, u32 tx)
{
	struct net_device *dev = net_device;
	struct ethtool_ringparam ring = { .cmd = ETHTOOL_SRINGPARAM };
	struct kernel_ethtool_ringparam more = {};
	struct netlink_ext_ack ack = {};
	const struct ethtool_ops *ops;
	long error;

	ops = begin(dev, &error);
	if (!ops)
		return error;
	if (!ops->get_ringparam || !ops->set_ringparam)
		return finish(dev, -EOPNOTSUPP);
	ops->get_ringparam(dev, &ring, &more, &ack);
	if (rx > ring.rx_max_pending || tx > ring.tx_max_pending)
		return finish(dev, -EINVAL);
	ring.rx_pending = rx;
	ring.tx_pending = tx;
	return finish(dev, ops->set_ringparam(dev, &ring, &more, &ack));
}

/* Names of string set `set`, each paired with one of `values`. */
static void name_values(struct net_device *dev, u32 set, const u64 *values, long count,
			struct kernel_named_value *out, u32 max)
{
	u8 *names = kzalloc(count * ETH_GSTRING_LEN, GFP_KERNEL);
	long i;

	if (names)
		dev->ethtool_ops->get_strings(dev, set, names);
	for (i = 0; i < min_t(long, count, max); i++) {
		strscpy(out[i].name, names ? (char *)names + i * ETH_GSTRING_LEN : "?",
			sizeof(out[i].name));
		out[i].value = values[i];
	}
	kfree(names);
}

long kernel_ethtool_stats(struct kernel_named_value *out, u32 max)
{
	struct net_device *dev = net_device;
	struct ethtool_stats stats = { .cmd = ETHTOOL_GSTATS };
	const struct ethtool_ops *ops;
	long error, count;
	u64 *values;

	ops = begin(dev, &error);
	if (!ops)
		return error;
	if (!ops->get_sset_count || !ops->get_ethtool_stats || !ops->get_strings)
		return finish(dev, -EOPNOTSUPP);
	count = ops->get_sset_count(dev, ETH_SS_STATS);
	if (count <= 0)
		return finish(dev, count);
	values = kcalloc(count, sizeof(*values), GFP_KERNEL);
	if (!values)
		return finish(dev, -ENOMEM);
	stats.n_stats = count;
	ops->get_ethtool_stats(dev, &stats, values);
	name_values(dev, ETH_SS_STATS, values, count, out, max);
	kfree(values);
	return finish(dev, count);
}

long kernel_ethtool_regs(void *out, u32 max)
{
	struct net_device *dev = net_device;
	struct ethtool_regs regs = { .cmd = ETHTOOL_GREGS };
	const struct ethtool_ops *ops;
	long error, length;
	void *buffer;

	ops = begin(dev, &error);
	if (!ops)
		return error;
	if (!ops->get_regs || !ops->get_regs_len)
		return finish(dev, -EOPNOTSUPP);
	length = ops->get_regs_len(dev);
	buffer = vzalloc(length);
	if (!buffer)
		return finish(dev, -ENOMEM);
	regs.len = length;
	ops->get_regs(dev, &regs, buffer);
	memcpy(out, buffer, min_t(u32, length, max));
	vfree(buffer);
	return finish(dev, length);
}

long kernel_ethtool_eeprom(u32 offset, void *out, u32 length)
{
	struct net_device *dev = net_device;
	struct ethtool_eeprom eeprom = { .cmd = ETHTOOL_GEEPROM, .offset = offset, .len = length };
	const struct ethtool_ops *ops;
	long error;
	u32 size;

	ops = begin(dev, &error);
	if (!ops)
		return error;
	if (!ops->get_eeprom || !ops->get_eeprom_len)
		return finish(dev, -EOPNOTSUPP);
	size = ops->get_eeprom_len(dev);
	if (offset > size || length > size - offset)
		return finish(dev, -EINVAL);
	error = ops->get_eeprom(dev, &eeprom, out);
	return finish(dev, error);
}

long kernel_ethtool_selftest(u32 offline, u64 *failed, struct kernel_named_value *out, u32 max)
{
	struct net_device *dev = net_device;
	struct ethtool_test test = { .cmd = ETHTOOL_TEST };
	const struct ethtool_ops *ops;
	long error, count;
	u64 *values;

	ops = begin(dev, &error);
	if (!ops)
		return error;
	if (!ops->self_test || !ops->get_sset_count || !ops->get_strings)
		return finish(dev, -EOPNOTSUPP);
	count = ops->get_sset_count(dev, ETH_SS_TEST);
	if (count <= 0)
		return finish(dev, count);
	values = kcalloc(count, sizeof(*values), GFP_KERNEL);
	if (!values)
		return finish(dev, -ENOMEM);
	test.len = count;
	test.flags = offline ? ETH_TEST_FL_OFFLINE : 0;
	ops->self_test(dev, &test, values);
	*failed = !!(test.flags & ETH_TEST_FL_FAILED);
	name_values(dev, ETH_SS_TEST, values, count, out, max);
	kfree(values);
	return finish(dev, count);
}
