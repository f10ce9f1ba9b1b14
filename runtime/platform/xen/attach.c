// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Taking a device from dom0 and giving it back.
 *
 * Each step of attach is undone by the one beside it, in reverse:
 *
 *   attach                            detach
 *   -----------------------------     ------------------------------------------
 *                                     packets on their way are waited for, and nothing is
 *                                     taken from guests meanwhile: dom0 tries again
 *                                     guests are disconnected
 *   (8) attached = 1                  attached = 0: faults, events, interrupts go by
 *   (7) tasklet, pace, clock          pace, tasklet killed; clock off
 *   (6) the card's rings              the card at rest, and dom0's rings its own
 *   (5) transmit buffers              freed
 *   (4) handler, by the codemap
 *   (3) instance
 *   (2) window, blocks, references    entries, flush, references: all processors were stopped,
 *                                     so a swallowed interrupt is known, and ended
 *   (1) processors stay online        they may go
 *
 * Only then may the payload be reverted (payload.c).
 */
#include "platform.h"

struct xen_device xen_device;
struct twin_xen_status xen_counts;
/* The first half of a detachment is done, the second not: Xen had no memory to go on where it may
 * stop processors, or could not stop them yet. So it is of an attachment that is undone. Written by
 * commands of dom0's, of which there is one at a time. */
static bool half;
static long undone;	/* why that attachment failed */

/* Of dom0's modules, at the first attachment. */
static uint64_t module_data[TWIN_XEN_MODULE_DATA];
static bool has_module_data;

char xen_reason[TWIN_XEN_REASON];

int xen_refuse(int error, const char *text)
{
	uint32_t i;

	memset(xen_reason, 0, sizeof(xen_reason));
	for (i = 0; i + 1 < sizeof(xen_reason) && text[i]; i++)
		xen_reason[i] = text[i];
	return error;
}

/* ---- The machine -------------------------------------------------------------- */

static bool has_bmi2(void)
{
	uint32_t a = 7, b, c = 0, d;

	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	return b & (1u << 8);
}

static bool has_cet(void)
{
	uint64_t cr4;

	__asm__("movq %%cr4, %0" : "=r"(cr4));
	return cr4 & XEN_CR4_CET;
}

uint32_t xen_processors(void)
{
	uint64_t map = cpu_online_map[0];
	uint32_t count = 0;

	for (; map; map &= map - 1)
		count++;
	return count;
}

static const char *machine_fault(void)
{
	if (twin_payload_abi_version != TWIN_ABI_VERSION)
		return "the payload's driver was rewritten for another version of the runtime";
	if (twin_payload_scheme != TWIN_SCHEME_WINDOW)
		return "the payload's driver is not of the scheme window";
	if (!twin_payload_vector_free)
		return "the driver uses vector registers";
	if (!has_bmi2())
		return "the processor has no BMI2 (pext)";
	if (has_cet())
		return "CET is on: start Xen with cet=no";
	if (max_page > 1ull << (32 - TWIN_PAGE_SHIFT))
		return "the machine has memory above 4 GiB, which the card may not reach";
	return NULL;
}

_Static_assert(1ull << 32 <= XEN_MACHINE_LIMIT, "memory ends before the blocks");

int xen_machine_check(void)
{
	const char *fault = machine_fault();

	return fault ? xen_refuse(-XEN_ENODEV, fault) : 0;
}

/* ---- Attach ------------------------------------------------------------------------ */

/*
 * The payload has addresses of dom0's modules as numbers. Where one was loaded anew since, their data is at others, and what
 * the driver would write to is somebody else's. Its code is asked for in the codemap; data, which Linux has apart from it since
 * 6.4, is where it was.
 */
static bool modules_are_the_same(void)
{
	const struct twin_xen_attach *given = &xen_device.given;
	uint32_t i;

	for (i = 0; has_module_data && i < TWIN_XEN_MODULE_DATA; i++)
		if (module_data[i] != given->module_data[i])
			return false;
	return twin_call_lookup(&xen_instance, given->hot_function);
}

static void note_modules(void)
{
	memcpy(module_data, xen_device.given.module_data, sizeof(module_data));
	has_module_data = true;
}

static int prepare_driver(void)
{
	if (xen_instance_create())
		return xen_refuse(-XEN_EINVAL,
				  "the payload is inconsistent: its codemap or its code");
	xen_device.interrupt = twin_call_lookup(&xen_instance, xen_device.given.interrupt);
	if (!xen_device.interrupt)
		return xen_refuse(-XEN_EINVAL, "the interrupt's handler is no function of the "
				  "payload's driver");
	if (!modules_are_the_same())
		return xen_refuse(-XEN_EINVAL, "dom0's modules were loaded anew since the payload was made: make the "
				  "payload again");
	return 0;
}

static int prepare_packets(void)
{
	const int status = xen_transmit_create();

	if (!status)
		return 0;
	return xen_refuse(status, status == -XEN_ENOMEM ? "no memory for packets" :
			  "hot_shared is not set up");
}

long xen_attach_begin(const struct twin_xen_attach *given)
{
	long status;

	if (xen_occupied())
		return xen_refuse(-XEN_EBUSY, "a device is attached already");
	status = xen_machine_check();
	if (status)
		return status;
	memset(&xen_counts, 0, sizeof(xen_counts));
	xen_device.given = *given;
	status = xen_alias_plan(given);
	return status ? status : xen_dma_plan(given);
}

/* The card's registers are mapped since it began. */
void xen_attach_abandon(void)
{
	xen_dma_give_back();
}

/* Steps 1 and 2, both or none. */
static int prepare_machine(void)
{
	int status;

	if (!xen_processors_keep())
		return xen_refuse(-XEN_EBUSY, "a processor is going offline: try again");
	/* It was to be one that gets a block, and has gone since. */
	if (xen_processor() >= TWIN_XEN_CPUS)
		status = xen_refuse(-XEN_EBUSY, "a processor went offline: try again");
	else
		status = xen_alias_install();
	if (status)
		xen_processors_release();
	return status;
}

/* Steps 1 to 6. What there is of them if one fails is half an attachment; after the first two it is nothing. */
static int prepare(void)
{
	int status = prepare_machine();

	if (status) {
		xen_attach_abandon();
		return status;
	}
	status = prepare_driver();
	if (!status)
		status = prepare_packets();
	if (!status)
		status = xen_dma_take();
	half = status;
	return status;
}

/* Steps 6 to 1, whatever there is of them. Whether it is done. */
static bool give_back(void)
{
	xen_dma_give_back();
	xen_transmit_destroy();
	if (!xen_alias_remove())
		return false;
	xen_interrupt_give_back();
	xen_processors_release();
	half = false;
	return true;
}

long xen_attach_finish(void)
{
	if (!half)
		undone = prepare();
	if (half && !give_back())
		return XEN_LATER;
	if (undone)
		return undone;
	xen_interrupt_start(xen_processor());
	xen_bridge_start();
	xen_pace_start(xen_processor());
	xen_upcall_start(xen_processor());
	xen_clock_start();
	xen_refuse(0, "");
	note_modules();
	__atomic_store_n(&xen_device.attached, 1, __ATOMIC_RELEASE);
	printk(XEN_INFO "twin: attached, interrupt %u, %u processors\n", xen_device.given.pirq,
	       xen_processors());
	printk(XEN_INFO "twin: driver code at %lx\n", twin_payload_text[0].start);
	return 0;
}

/* ---- Detach ------------------------------------------------------------------------- */

/*
 * Whether the device has nothing of a guest's, nor the driver anything to do. A driver that is dead
 * completes nothing, and may have died since dom0 looked: the device may still read buffers, so
 * it has to be stopped. Served.
 */
static bool is_quiet(bool stopped)
{
	if (stopped || twin_instance_report(&xen_instance))
		return stopped;
	xen_transmit_complete();
	return !xen_transmit_in_flight() && xen_interrupt_idle();
}

bool xen_occupied(void)
{
	return xen_attached() || half;
}

long xen_detach_begin(bool stopped)
{
	bool quiet;

	if (!xen_attached())
		return half ? 0 : -XEN_ENOENT;
	/* A driver that waits for dom0 has the lock. */
	if (stopped)
		xen_upcall_forsake();
	if (!xen_lock_patiently())
		return -XEN_EAGAIN;
	quiet = is_quiet(stopped);
	if (quiet) {
		xen_vif_disconnect_all();
		half = true;
		__atomic_store_n(&xen_device.attached, 0, __ATOMIC_RELEASE);
	} else {
		xen_vif_hold();
	}
	xen_unlock();
	if (!quiet) {
		xen_service_request();
		return -XEN_EAGAIN;
	}
	xen_pace_stop();
	xen_interrupt_stop();
	xen_upcall_stop();
	xen_clock_stop();
	return 0;
}

/* Those that had seen it attached, and then taken the lock, saw no more that it is. */
long xen_detach_finish(void)
{
	if (!give_back())
		return XEN_LATER;
	printk(XEN_INFO "twin: detached\n");
	return 0;
}
