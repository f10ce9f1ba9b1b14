// SPDX-License-Identifier: GPL-2.0-only
/*
 * print.c: printk and everything that calls it. A line is formatted on the
 * stack and passed to the host whole, so it may be called from anywhere,
 * by several CPUs at once.
 */
#include <linux/device.h>
#include <linux/dynamic_debug.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/printk.h>

#include "shim.h"

#define LINE 512
#define DEFAULT_LEVEL 6         /* informational: what the kernel calls "default" is 4 */

/* Gives `text` to the host line by line, without newlines. */
static void console(u32 level, const char *text)
{
	while (*text) {
		const char *end = strchrnul(text, '\n');

		host_console(level, text, end - text);
		text = *end ? end + 1 : end;
	}
}

/* printk's prefix: 001, then the level's digit or 'c'. */
static const char *split_level(const char *text, u32 *level)
{
	while (text[0] == KERN_SOH_ASCII && text[1]) {
		if (text[1] >= '0' && text[1] <= '7')
			*level = text[1] - '0';
		text += 2;
	}
	return text;
}

asmlinkage int vprintk(const char *format, va_list args)
{
	char line[LINE];
	u32 level = DEFAULT_LEVEL;
	int length = vscnprintf(line, sizeof(line), format, args);

	console(level, split_level(line, &level));
	return length;
}

int _printk(const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vprintk(format, args);
	va_end(args);
	return length;
}

void __warn_printk(const char *format, ...)
{
	va_list args;

	kernel_counters.warnings++;
	_printk(KERN_WARNING "------------[ warning ]------------\n");
	va_start(args, format);
	vprintk(format, args);
	va_end(args);
}

static void end(const char *prefix, const char *format, va_list args) __noreturn;
static void end(const char *prefix, const char *format, va_list args)
{
	char line[LINE];
	int length = scnprintf(line, sizeof(line), "%s", prefix);

	length += vscnprintf(line + length, sizeof(line) - length, format, args);
	host_console(0, line, length);
	host_fatal(line, length);
}

void kernel_bug(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	end("kernel bug: ", format, args);
}

void kernel_unsupported(const char *function, const char *format, ...)
{
	char prefix[96];
	va_list args;

	scnprintf(prefix, sizeof(prefix), "unsupported: %s: ", function);
	va_start(args, format);
	end(prefix, format, args);
}

void kernel_complain(const char *format, ...)
{
	struct va_format vaf = { .fmt = format };
	va_list args;

	kernel_counters.warnings++;
	va_start(args, format);
	vaf.va = &args;
	_printk(KERN_WARNING "warning: %pV\n", &vaf);
	va_end(args);
}

void fortify_panic(const char *name)
{
	kernel_bug("detected buffer overflow in %s", name);
}

void __stack_chk_fail(void)
{
	kernel_bug("stack protector: the canary was overwritten, seen in %ps",
		   __builtin_return_address(0));
}

bool __list_add_valid(struct list_head *new, struct list_head *prev, struct list_head *next)
{
	if (next->prev == prev && prev->next == next && new != prev && new != next)
		return true;
	kernel_bug("list: adding %p between %p and %p, which are not neighbours", new, prev, next);
}

bool __list_del_entry_valid(struct list_head *entry)
{
	if (entry->prev->next == entry && entry->next->prev == entry)
		return true;
	kernel_bug("list: deleting %p, which its neighbours do not know", entry);
}

/* ---- Devices ------------------------------------------------------------------ */

const char *dev_driver_string(const struct device *dev)
{
	if (dev->driver)
		return dev->driver->name;
	return dev->bus ? dev->bus->name : "";
}

static void dev_vaf(const char *level, const struct device *dev, struct va_format *vaf)
{
	if (!dev) {
		_printk("%s(NULL device *): %pV", level, vaf);
		return;
	}
	_printk("%s%s %s: %pV", level, dev_driver_string(dev), dev_name(dev), vaf);
}

#define DEFINE_DEV_LEVEL(name, level)                                   \
void name(const struct device *dev, const char *format, ...)            \
{                                                                       \
	struct va_format vaf = { .fmt = format };                       \
	va_list args;                                                   \
									\
	va_start(args, format);                                         \
	vaf.va = &args;                                                 \
	dev_vaf(level, dev, &vaf);                                      \
	va_end(args);                                                   \
}

DEFINE_DEV_LEVEL(_dev_emerg, KERN_EMERG)
DEFINE_DEV_LEVEL(_dev_crit, KERN_CRIT)
DEFINE_DEV_LEVEL(_dev_err, KERN_ERR)
DEFINE_DEV_LEVEL(_dev_warn, KERN_WARNING)
DEFINE_DEV_LEVEL(_dev_notice, KERN_NOTICE)
DEFINE_DEV_LEVEL(_dev_info, KERN_INFO)

static const char *registration(const struct net_device *dev)
{
	switch (dev->reg_state) {
	case NETREG_UNINITIALIZED: return " (uninitialized)";
	case NETREG_REGISTERED: return "";
	case NETREG_UNREGISTERING: return " (unregistering)";
	case NETREG_UNREGISTERED: return " (unregistered)";
	}
	return " (released)";
}

static void netdev_vaf(const char *level, const struct net_device *dev, struct va_format *vaf)
{
	const struct device *parent = dev ? dev->dev.parent : NULL;

	if (parent)
		_printk("%s%s %s %s%s: %pV", level, dev_driver_string(parent), dev_name(parent),
			netdev_name(dev), registration(dev), vaf);
	else
		_printk("%s%s: %pV", level, dev ? netdev_name(dev) : "(NULL net_device)", vaf);
}

#define DEFINE_NETDEV_LEVEL(name, level)                                \
void name(const struct net_device *dev, const char *format, ...)        \
{                                                                       \
	struct va_format vaf = { .fmt = format };                       \
	va_list args;                                                   \
									\
	va_start(args, format);                                         \
	vaf.va = &args;                                                 \
	netdev_vaf(level, dev, &vaf);                                   \
	va_end(args);                                                   \
}

DEFINE_NETDEV_LEVEL(netdev_err, KERN_ERR)
DEFINE_NETDEV_LEVEL(netdev_warn, KERN_WARNING)
DEFINE_NETDEV_LEVEL(netdev_notice, KERN_NOTICE)
DEFINE_NETDEV_LEVEL(netdev_info, KERN_INFO)

void netdev_printk(const char *level, const struct net_device *dev, const char *format, ...)
{
	struct va_format vaf = { .fmt = format };
	va_list args;

	va_start(args, format);
	vaf.va = &args;
	netdev_vaf(level, dev, &vaf);
	va_end(args);
}

void __dynamic_netdev_dbg(struct _ddebug *descriptor, const struct net_device *dev,
			  const char *format, ...)
{
	struct va_format vaf = { .fmt = format };
	va_list args;

	va_start(args, format);
	vaf.va = &args;
	netdev_vaf(KERN_DEBUG, dev, &vaf);
	va_end(args);
}

/* Ten messages in five seconds, as the network stack's. */
int net_ratelimit(void)
{
	static u64 window;
	static u32 messages;
	u64 now = time_now() / (5ull * NSEC_PER_SEC);

	if (now != READ_ONCE(window)) {
		WRITE_ONCE(window, now);
		__atomic_store_n(&messages, 0, __ATOMIC_RELAXED);
	}
	return __atomic_fetch_add(&messages, 1, __ATOMIC_RELAXED) < 10;
}

/* ---- Hexadecimal dumps ------------------------------------------------------------ */

static void dump_group(char *line, size_t room, const u8 *bytes, int size)
{
	int length = strlen(line), i;

	length += scnprintf(line + length, room - length, " ");
	/* Groups are little endian numbers, as the kernel prints them. */
	for (i = size; i--; )
		length += scnprintf(line + length, room - length, "%02x", bytes[i]);
}

static void dump_text(char *line, size_t room, const u8 *bytes, int count)
{
	int length = strlen(line), i;

	length += scnprintf(line + length, room - length, "  ");
	for (i = 0; i < count; i++)
		length += scnprintf(line + length, room - length, "%c",
				    bytes[i] >= ' ' && bytes[i] < 0x7f ? bytes[i] : '.');
}

void print_hex_dump(const char *level, const char *prefix, int prefix_type, int row, int group,
		    const void *buffer, size_t length, bool ascii)
{
	const u8 *bytes = buffer;
	size_t at;

	row = row == 32 ? 32 : 16;
	if (group != 1 && group != 2 && group != 4 && group != 8)
		group = 1;
	for (at = 0; at < length; at += row) {
		int count = min_t(size_t, row, length - at), i;
		int size = length % group ? 1 : group;
		char line[200] = "";

		for (i = 0; i < count; i += size)
			dump_group(line, sizeof(line), bytes + at + i, size);
		if (ascii)
			dump_text(line, sizeof(line), bytes + at, count);
		if (prefix_type == DUMP_PREFIX_ADDRESS)
			_printk("%s%s%px:%s\n", level, prefix, bytes + at, line);
		else if (prefix_type == DUMP_PREFIX_OFFSET)
			_printk("%s%s%.8zx:%s\n", level, prefix, at, line);
		else
			_printk("%s%s%s\n", level, prefix, line + 1);
	}
}
