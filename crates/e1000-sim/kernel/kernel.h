/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel.h: the interface between the host (the Rust side, crates/e1000-sim/src/)
 * and the dom0 kernel shim (kernel.o).
 *
 * Everything is plain 64-bit Linux C. Structures have fixed-width fields only and
 * no padding by the compiler. They begin with their own size where they are passed
 * in, so an outdated mirror is refused, not misread.
 *
 * Contexts. kernel_*() are called on a dom0 thread whose GS base is the percpu
 * area of one CPU, on a kernel stack that lies in the direct map. They may
 * sleep; sleeping is virtual: the clock advances, timers, works and interrupts run,
 * and the call returns without real delay. At most one thread runs on a CPU. A task
 * that slept may continue on another CPU, so the canary at %gs:0x28 is the same in
 * all percpu areas.
 * Results are 0 (or a count) or a negative errno.
 *
 * Time. The kernel's clock is virtual. Only host_advance() advances the NIC's
 * clock, and the kernel calls it for all time that passes: while it sleeps, while
 * it delays and in kernel_tick().
 *
 * Interrupts. The device's line is level triggered. The kernel calls
 * host_interrupt_pending() whenever it could take an interrupt (while it
 * sleeps, at each tick, when an entry point returns), and then the handler on this
 * CPU; the host returns 0 where the hypervisor serves the interrupt.
 * kernel_interrupt() delivers one from outside.
 *
 * A bug (BUG, a bad free, a missing function) ends in host_fatal(), which does
 * not return. After that, or a fault, locks stay held and tasks half run: the
 * kernel only serves to be looked at (kernel_info, kernel_check_heap), and what
 * sleeps or takes a mutex ends in another bug. WARN() prints, then executes `ud2` in the kernel's way: the
 * host looks the address up in the module's __bug_table and, if
 * BUGFLAG_WARNING is set there, goes on after the two bytes.
 */
#ifndef TWIN_KERNEL_H
#define TWIN_KERNEL_H

#include <linux/types.h>

#define KERNEL_CPUS 8           /* percpu areas at most */
#define KERNEL_BARS 6
#define KERNEL_NAME 32          /* bytes of a name, NUL included */
#define KERNEL_RX_SLOTS 256     /* packets the application ring holds */
#define KERNEL_RX_SLOT_SIZE 2048

/* ---- The host gives: imports of kernel.o ------------------------------- */

/* `level` as printk's: 0 emergency .. 7 debug. `text` ends in no newline. */
void host_console(__u32 level, const char *text, __u64 length);

/* PCI configuration space of the one device; `size` 1, 2 or 4. */
__u32 host_config_read(__u32 offset, __u32 size);
void host_config_write(__u32 offset, __u32 size, __u32 value);

/* Virtual time passed; the NIC's timers run up to the new now. */
void host_advance(__u64 ns);

/* Nonzero: the line is asserted and this CPU is to run the handler. */
__u32 host_interrupt_pending(__u32 irq);

/* Copies from a guest's memory, which the kernel has not mapped; 0: there is no such memory. */
__u32 host_guest_read(void *to, __u64 machine, __u32 length);

/* The kernel waits for another thread or process: yield the processor. */
void host_idle(void);

/* The kernel cannot go on. Does not return. */
void host_fatal(const char *text, __u64 length) __attribute__((noreturn));

enum kernel_event {
	KERNEL_EVENT_IRQ_REQUESTED = 1,    /* argument: irq */
	KERNEL_EVENT_IRQ_FREED = 2,        /* argument: irq */
	KERNEL_EVENT_IRQ_ENABLED = 3,      /* disable depth fell to 0; irq */
	KERNEL_EVENT_IRQ_DISABLED = 4,     /* irq */
	KERNEL_EVENT_CARRIER = 5,          /* argument: 1 on, 0 off */
	KERNEL_EVENT_REGISTERED = 6,       /* argument: address of the net_device */
	KERNEL_EVENT_UNREGISTERED = 7,     /* argument: address of the net_device */
	KERNEL_EVENT_QUEUE_WOKEN = 8,      /* reserved: hot_shared.tx_wake tells it */
};
void host_event(__u32 event, __u64 argument);

/* ---- Boot --------------------------------------------------------------- */

struct kernel_bar {
	__u64 start;            /* as the bus sees it; a port number for I/O */
	__u64 size;             /* 0: there is no such BAR */
	__u64 flags;            /* IORESOURCE_MEM 0x200 or IORESOURCE_IO 0x100 */
	__u64 address;          /* where dom0 reaches it; 0 for I/O */
};

struct kernel_boot_info {
	__u64 size;             /* sizeof(struct kernel_boot_info) */
	__u64 direct_map;       /* page_offset_base */
	__u64 page_map;         /* vmemmap_base; mapped and zero for all frames */
	__u64 ram_frames;       /* dom0's: frames 0 .. ram_frames */
	__u64 machine_frames;   /* all, guests' included */
	__u64 first_free_frame; /* frames below are the host's: never allocated */
	__u32 cpus;             /* percpu areas that exist */
	__u32 irq;              /* the device's line */
	__u64 percpu[KERNEL_CPUS];  /* percpu area k: .data..percpu copied, GS base */
	struct kernel_bar bar[KERNEL_BARS];
};

/* First call, on CPU 0, before any other thread runs kernel code. */
long kernel_boot(const struct kernel_boot_info *info);

/* ---- The module --------------------------------------------------------- */

struct kernel_module_info {
	__u64 size;             /* sizeof(struct kernel_module_info) */
	__u64 init;             /* init_module */
	__u64 exit;             /* cleanup_module, 0 if there is none */
	__u64 parameters;       /* section __param, 0 if there is none */
	__u64 parameters_size;
	__u64 arguments;        /* "TxDescriptors=256 RxDescriptors=256", or 0 */
	__u64 ctors;            /* must be 0: constructors are not supported */
};

/* Sets parameters, runs init (which probes the device). */
long kernel_load(const struct kernel_module_info *module);

/* Closes the device if it is open, runs exit (which removes the device). */
long kernel_remove(void);

/* ---- The device: as ip(8) and ethtool(8) do ----------------------------- */

long kernel_open(void);
long kernel_close(void);

/* Lets time pass: timers, works, interrupts. */
void kernel_tick(__u64 ns);

/*
 * Advances the kernel's clock and does nothing else. For a host that finds that kernel
 * code runs long without a change of the clock (kernel_info.now), because drivers spin
 * on jiffies. Any thread, also in a signal handler, concurrent with any other code.
 */
void kernel_clock_nudge(__u64 ns);

/* Lets at most `ns` pass until carrier is on: 0, or -ETIMEDOUT. */
long kernel_link_wait(__u64 ns);

/*
 * Delivers `irq` on this CPU: the handler, then hot_poll. 1: handled; 0: the
 * handler said it was not its device's; -EAGAIN: interrupts are off here (vif
 * clear), disabled, or the handler is running elsewhere; the line stays.
 */
long kernel_interrupt(__u32 irq);

/* The handler alone: the caller runs hot_poll, a piece at a time. */
long kernel_handle(__u32 irq);

long kernel_set_mtu(__u32 mtu);
long kernel_set_mac(const __u8 *mac);                   /* 6 bytes */
#define KERNEL_RX_PROMISC 1
#define KERNEL_RX_ALLMULTI 2
/* Flags, and `count` multicast addresses of 6 bytes each. */
long kernel_set_rx_mode(__u32 flags, const __u8 *multicast, __u32 count);
long kernel_vlan_add(__u16 vlan);
long kernel_vlan_kill(__u16 vlan);
long kernel_set_features(__u64 set, __u64 clear);       /* NETIF_F_* bits */
/* As the transmit watchdog does when a queue hangs; the reset work then runs. */
long kernel_tx_timeout(void);

/* ---- Queries ------------------------------------------------------------ */

struct kernel_drvinfo {
	char driver[KERNEL_NAME];
	char version[KERNEL_NAME];
	char firmware[KERNEL_NAME];
	char bus[KERNEL_NAME];
};
long kernel_ethtool_drvinfo(struct kernel_drvinfo *out);

struct kernel_link {
	__u32 carrier;          /* netif_carrier_ok */
	__u32 link;             /* ethtool's get_link, which asks the hardware */
	__u32 speed;            /* Mb/s, 0xffffffff unknown */
	__u32 duplex;           /* 0 half, 1 full, 0xff unknown */
	__u32 autoneg;
	__u32 supported;        /* legacy 32-bit link mode masks */
	__u32 advertising;
	__u32 port;
};
long kernel_ethtool_link(struct kernel_link *out);

struct kernel_ringparam {
	__u32 rx, tx, rx_max, tx_max;
};
long kernel_ethtool_ringparam(struct kernel_ringparam *out);
long kernel_ethtool_set_ringparam(__u32 rx, __u32 tx);

struct kernel_named_value {
	char name[KERNEL_NAME];
	__u64 value;
};
/* ethtool -S: at most `max` entries written; returns how many there are. */
long kernel_ethtool_stats(struct kernel_named_value *out, __u32 max);

/* ethtool -d: returns bytes there are; at most `max` written. */
long kernel_ethtool_regs(void *out, __u32 max);

/* ethtool -e: reads the EEPROM. */
long kernel_ethtool_eeprom(__u32 offset, void *out, __u32 length);

/* ethtool -t: per-test results; offline if `offline`. Returns their number. */
long kernel_ethtool_selftest(__u32 offline, __u64 *failed,
			     struct kernel_named_value *out, __u32 max);

struct kernel_statistics {
	__u64 rx_packets, tx_packets, rx_bytes, tx_bytes;
	__u64 rx_errors, tx_errors, rx_dropped, tx_dropped;
	__u64 multicast, collisions, rx_crc_errors, rx_length_errors;
	__u64 rx_missed_errors, tx_carrier_errors;
};
long kernel_statistics(struct kernel_statistics *out);

/* ---- State the host reads ----------------------------------------------- */

/* Native receive: what dom0's own stack delivered. Fields run freely. */
struct kernel_rx_slot {
	__u32 length;           /* of the frame, from its MAC header on */
	__u32 flags;            /* host_receive's */
	__u32 vlan;
	__u32 zero;
	__u8 data[KERNEL_RX_SLOT_SIZE - 16];
};

#define KERNEL_RX_APPLICATION 0 /* into the ring */
#define KERNEL_RX_DISCARD 1     /* counted only */
#define KERNEL_RX_BRIDGE 2      /* to the bridge */

struct kernel_rx_ring {
	__u32 produce;          /* the kernel's */
	__u32 consume;          /* the application's */
	__u64 packets;          /* delivered, into the ring or not */
	__u64 bytes;
	__u64 dropped;          /* ring full */
	__u64 truncated;        /* longer than a slot */
	__u32 discard;          /* KERNEL_RX_*: where frames go */
	__u32 zero;
	struct kernel_rx_slot slot[KERNEL_RX_SLOTS];
};

/*
 * The software bridge (bridge.c): port 0 is the card, the others are guests'. Whoever
 * serves a guest takes from its port's queue and counts the uses of a held packet down; one that has none
 * left is given back by kernel_bridge_release().
 */
#define KERNEL_BRIDGE_PORTS 16
#define KERNEL_BRIDGE_QUEUE 64  /* packets that wait for a port */
#define KERNEL_BRIDGE_HELD 192  /* for all: the driver's pool has 512 buffers, its ring 256 */
#define KERNEL_BRIDGE_BATCH 256 /* HOT_REQUESTS */
#define KERNEL_BRIDGE_PIECES 45 /* HOT_RX_SEGMENTS */

struct kernel_bridge_piece {
	__u64 data;             /* dom0 address */
	__u32 length;
	__u32 zero;
};

/* A received packet that waits. */
struct kernel_bridge_held {
	__u64 skb;
	__u32 uses;             /* queues that it is in */
	__u32 next;             /* of the free places: number + 1, or 0 */
	__u32 pieces;
	__u32 length;           /* bytes in all */
	__u32 size;             /* payload of each TCP segment; 0: it is no aggregate */
	__u32 flags;            /* host_receive's */
	struct kernel_bridge_piece piece[KERNEL_BRIDGE_PIECES];
};

struct kernel_bridge_queue {
	__u32 produce;          /* the bridge's */
	__u32 consume;          /* the back end's */
	__u64 dropped;          /* it was full */
	__u32 held[KERNEL_BRIDGE_QUEUE];
};

struct kernel_bridge {
	__u64 size;             /* sizeof: the host checks it */
	__u32 ports;            /* bits of those that are attached */
	__u32 free;             /* places in held[]: number + 1, or 0 */
	__u64 learned, moved, aged, full;       /* addresses */
	__u64 forwarded;        /* frames to the port of an address */
	__u64 flooded;          /* to all others: a group, or an address that nobody has shown */
	__u64 filtered;         /* to where they came from */
	__u64 refused;          /* a group as source, a group of bridges, a tag or a form not served */
	__u64 dropped;          /* no place in held[] */
	__u32 verdict[KERNEL_BRIDGE_BATCH];     /* kernel_bridge_route()'s: bits of ports */
	__u32 release[KERNEL_BRIDGE_HELD];      /* numbers for kernel_bridge_release() */
	struct kernel_bridge_queue queue[KERNEL_BRIDGE_PORTS];
	struct kernel_bridge_held held[KERNEL_BRIDGE_HELD];
};

/* Its address; made at the first call, with port 0. 0: out of memory. */
__u64 kernel_bridge(void);
/* A guest's port, empty, or the card's. An address behind it is learned: a guest's as from the packet by which it
 * announces itself when it is connected, one behind the card as from the answer to a guest that asks for it. */
long kernel_bridge_attach(__u32 port, __u64 mac);       /* its first byte is the lowest */
/* The port is gone, with all addresses behind it. Its queue must be empty. */
long kernel_bridge_detach(__u32 port);
/* Where the hot routines' requests `first` to `first + count` of CPU 0 go, in verdict[] at the same index: the
 * guest is the port, less one. Returns how many go anywhere but to the card alone. */
long kernel_bridge_route(__u32 first, __u32 count);
/* Packets release[0] to `count`, which nobody uses, are released and their places free. Returns how
 * many were. */
long kernel_bridge_release(__u32 count);
/* The port that an address is behind, or -ENOENT. */
long kernel_bridge_port(__u64 mac);

struct kernel_irq_state {
	__u64 handler;          /* 0: none requested */
	__u64 dev_id;
	__u32 depth;            /* > 0: disabled, do not call the handler */
	__u32 running;          /* 1 while a CPU runs the handler: take it by cmpxchg 0 -> 1 */
	__u64 count;            /* handled natively */
	__u64 spurious;         /* handler answered IRQ_NONE */
};

struct kernel_counters {
	__u64 pages_free, pages_allocated, allocations, frees;
	__u64 works_run, timers_run, warnings, sleeps;
	__u64 skb_allocated, skb_freed;
};

struct kernel_info {
	__u64 size;             /* sizeof, set by the caller and checked */
	__u64 now;              /* virtual ns since boot */
	__u64 net_device;       /* 0 until probed */
	__u64 netdev_priv;
	__u64 napi;             /* the device's first napi_struct, or 0 */
	__u64 ndo_start_xmit;
	__u64 ndo_tx_timeout;
	__u64 poll;             /* the napi's */
	__u64 irq_state;        /* struct kernel_irq_state, in dom0 memory */
	__u64 rx_ring;          /* struct kernel_rx_ring, in dom0 memory */
	__u64 counters;         /* struct kernel_counters, in dom0 memory */
	__u64 softnet_data;     /* percpu offsets */
	__u64 current_task;
	__u64 preempt_count;
	__u64 cpu_number;
	__u32 irq;
	__u32 mtu;
	__u32 flags;            /* net_device.flags: IFF_UP is 1 */
	__u32 carrier;
	__u64 state;            /* net_device.state */
	__u64 features;
	__u8 mac[8];            /* 6 used */
	char name[16];
};
long kernel_info(struct kernel_info *out);

/* Offset of a field in a structure of the kernel's: "sk_buff.data"; without a dot
 * the structure itself, at 0. The host reads the table in kernel.o's data. */
struct kernel_field {
	char name[48];
	__u64 offset;
	__u64 size;
};
extern const struct kernel_field kernel_fields[];
extern const __u64 kernel_fields_count;

/*
 * The `which`th allocation from now on (1: the next) fails, once; 0: none does.
 * Returns how many were left of the previous choice: 0 if that one has failed.
 */
long kernel_fail_allocation(__u64 which);

/*
 * Checks every heap page: 0, the number of damaged objects (each printed), or
 * -EBUSY where a bug left the heap locked.
 */
long kernel_check_heap(void);

#endif
