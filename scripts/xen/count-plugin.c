// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A plugin of QEMU's emulator: whose instructions a machine with Xen executes.
 *
 *   -plugin FILE,out=PATH,xen_end=ADDRESS[,event.NAME=ADDRESS]...[,orders=PATH,wire=PATH]
 *
 * Debian has no header of the interface (docs/devel/tcg-plugins.rst of QEMU's source), so what
 * is used of it, version 1, is declared here.
 *
 * Code is told apart by its linear address, and dom0's from guests' by where it lies in
 * memory, since both have one kernel at one address:
 *
 *   Xen's image        as linked, at 0xffff82d040000000, up to xen_end
 *   the payload        from there on to 16 MiB after the start: what Xen loaded since. Further
 *                      on are pages with code that Xen makes for emulating instructions
 *   a kernel's image   0xffffffff80000000..0xffffffffbfffffff. The first that runs is dom0's,
 *                      whose distance to its place in memory is one number (Xen's builder of
 *                      dom0 takes contiguous memory). Any other distance is a guest's
 *   all else           modules, programs: of the domain whose kernel ran last, when the code is
 *                      translated. A page is one domain's
 *
 * What is counted is executed instructions, but for string instructions with a prefix: their
 * steps are numbers of their own, since the emulator and -icount take each step for an
 * instruction, and a processor does not.
 *
 * A program marks a moment by an instruction that does nothing, nopl (0x74770000 + N)(%rax).
 * What happened since the mark before is then written:
 *
 *   mark N
 *   class NAME INSTRUCTIONS STEPS
 *   event NAME TIMES                   how often the instruction at that address was executed
 *   at OFFSET TIMES [string]           each instruction of Xen's image and of the payload, by
 *                                      its distance from 0xffff82d040000000
 *
 * With `orders` and `wire` it also puts frames on the card's wire, one by one (at_rest).
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- QEMU's interface ---------------------------------------------------------- */

typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
typedef void translated_t(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void executed_t(unsigned int processor, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, translated_t *callback);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, executed_t *callback,
					  enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, executed_t *callback,
					    enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn,
						enum qemu_plugin_op op, void *counter,
						uint64_t add);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED int qemu_plugin_version = 1;
EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
				 char **argv);

/* ---- Counters -------------------------------------------------------------------- */

enum class { XEN, PAYLOAD, DOM0_KERNEL, DOM0_OTHER, GUEST_KERNEL, GUEST_OTHER, EARLY, CLASSES };
static const char *const names[CLASSES] = {
	"xen", "payload", "dom0-kernel", "dom0-other", "guest-kernel", "guest-other", "early",
};

struct counter {
	uint64_t now, before;
};

static struct { struct counter instructions, steps; } classes[CLASSES];

#define EVENTS 16
static struct event {
	const char *name;
	uint64_t address;
	struct counter times;
} events[EVENTS];
static uint32_t event_count;

#define XEN_START	UINT64_C(0xffff82d040000000)
#define FINE		(UINT64_C(16) << 20)	/* bytes of Xen's image and payloads */
static struct counter *fine;		/* [FINE], by the address of an instruction */
static bool *is_string;

static uint64_t xen_end;
static FILE *out;

static uint64_t since(struct counter *counter)
{
	const uint64_t times = counter->now - counter->before;

	counter->before = counter->now;
	return times;
}

/* ---- Whose code it is ---------------------------------------------------------------- */

static uint64_t dom0_distance;		/* 0: dom0 has not run */
static uint32_t running = DOM0_KERNEL;	/* of the two kernels, the last */

static void is_running(unsigned int processor, void *kernel)
{
	(void)processor;
	running = (uint32_t)(uintptr_t)kernel;
}

static enum class class_of_kernel(uint64_t address, const void *place)
{
	const uint64_t distance = (uint64_t)place - address;

	if (!dom0_distance)
		dom0_distance = distance;
	return distance == dom0_distance ? DOM0_KERNEL : GUEST_KERNEL;
}

static bool is_image(uint64_t address)
{
	return address - 0xffffffff80000000ull < 0x40000000;
}

static enum class class_of(uint64_t address, const void *place)
{
	if (address - XEN_START < 0x40000000)
		return address >= xen_end && address - XEN_START < FINE ? PAYLOAD : XEN;
	if (is_image(address))
		return class_of_kernel(address, place);
	if (!dom0_distance)
		return EARLY;
	return running == DOM0_KERNEL ? DOM0_OTHER : GUEST_OTHER;
}

/* A prefix of repetition, any others, and a string instruction (SDM vol. 2, table A-2). */
static bool repeats(const uint8_t *bytes, size_t size)
{
	bool repeated = false;
	size_t i;

	for (i = 0; i + 1 < size; i++) {
		if (bytes[i] == 0xf2 || bytes[i] == 0xf3)
			repeated = true;
		else if (bytes[i] != 0x66 && bytes[i] != 0x67 && (bytes[i] & 0xf0) != 0x40)
			return false;
	}
	return repeated && ((bytes[i] >= 0xa4 && bytes[i] <= 0xa7) ||
			    (bytes[i] >= 0xaa && bytes[i] <= 0xaf) ||
			    (bytes[i] >= 0x6c && bytes[i] <= 0x6f));
}

/* ---- Marks ------------------------------------------------------------------------------- */

static void write_all(unsigned int processor, void *number)
{
	uint64_t i, times, steps;

	(void)processor;
	fprintf(out, "mark %u\n", (unsigned int)(uintptr_t)number);
	for (i = 0; i < CLASSES; i++) {
		times = since(&classes[i].instructions);
		steps = since(&classes[i].steps);
		fprintf(out, "class %s %" PRIu64 " %" PRIu64 "\n", names[i], times, steps);
	}
	for (i = 0; i < event_count; i++)
		fprintf(out, "event %s %" PRIu64 "\n", events[i].name, since(&events[i].times));
	for (i = 0; i < FINE; i++)
		if (fine[i].now != fine[i].before) {
			times = since(&fine[i]);
			fprintf(out, "at %" PRIu64 " %" PRIu64 "%s\n", i, times,
				is_string[i] ? " string" : "");
		}
	fflush(out);
}

#define MARK 0x74770000u

static bool is_mark(const uint8_t *bytes, size_t size, uint32_t *number)
{
	uint32_t word;

	if (size != 7 || bytes[0] != 0x0f || bytes[1] != 0x1f || bytes[2] != 0x80)
		return false;
	memcpy(&word, bytes + 3, sizeof(word));
	*number = word - MARK;
	return *number < 256;
}

/* ---- Frames, one by one -------------------------------------------------------------------- */

/*
 * The next frame comes when the machine has nothing left to do: Xen's idle loop is about to halt the
 * processor, and since the frame before the card has interrupted it. So frames come one after the
 * other by what the machine executes, and not by the host's clock: while the emulator's main loop
 * takes the frame from the pipe, this processor waits in the middle of its instruction, and no
 * time goes by for it (-icount).
 *
 * An order is one write to a pipe, so that it is read whole: how many, as four bytes, highest first;
 * then a frame as the wire takes it (filter-redirector), its length in four bytes before it. A new
 * order takes the place of one that is not done.
 */
#define ORDER 4096	/* PIPE_BUF: what is written at once */
static struct {
	int orders, wire;		/* pipes; -1: none */
	const char *path;		/* the latter's */
	const struct counter *interrupts;
	uint64_t seen;			/* of those, when the last frame went */
	uint32_t left;
	size_t size;
	uint8_t bytes[ORDER];
} arrivals = { .orders = -1, .wire = -1 };

#define COUNT 4		/* bytes of an order before its frame */

static void take_order(void)
{
	const ssize_t size = read(arrivals.orders, arrivals.bytes, sizeof(arrivals.bytes));

	if (size <= COUNT)
		return;
	/* QEMU has its end open by now. */
	if (arrivals.wire < 0)
		arrivals.wire = open(arrivals.path, O_WRONLY | O_NONBLOCK);
	arrivals.size = (size_t)size - COUNT;
	arrivals.left = (uint32_t)arrivals.bytes[0] << 24 | arrivals.bytes[1] << 16 |
			arrivals.bytes[2] << 8 | arrivals.bytes[3];
	arrivals.seen = arrivals.interrupts->now - 1;
}

/* Until the main loop has the frame, but not for ever. */
#define MOST 100000
static void wait_for_main_loop(void)
{
	int tries, there = 1;

	for (tries = 0; there && tries < MOST; tries++)
		if (ioctl(arrivals.wire, FIONREAD, &there))
			return;
		else if (there)
			usleep(10);
}

static void at_rest(unsigned int processor, void *unused)
{
	(void)processor;
	(void)unused;
	take_order();
	if (!arrivals.left || arrivals.interrupts->now == arrivals.seen)
		return;
	arrivals.seen = arrivals.interrupts->now;
	arrivals.left--;
	if (write(arrivals.wire, arrivals.bytes + COUNT, arrivals.size) != (ssize_t)arrivals.size)
		fprintf(stderr, "count: a frame did not get on the wire\n");
	else
		wait_for_main_loop();
}

static bool open_arrivals(void)
{
	uint32_t i;

	for (i = 0; i < event_count; i++)
		if (!strcmp(events[i].name, "interrupts"))
			arrivals.interrupts = &events[i].times;
	return arrivals.interrupts && arrivals.path;
}

/* hlt, of one byte. Only Xen halts: a guest asks it to. */
static bool halts(const uint8_t *bytes, size_t size)
{
	return size == 1 && bytes[0] == 0xf4;
}

/* ---- Translation --------------------------------------------------------------------------- */

static void add(struct qemu_plugin_insn *insn, struct counter *counter)
{
	qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
						   &counter->now, 1);
}

static void count_events(struct qemu_plugin_insn *insn, uint64_t address)
{
	uint32_t i;

	for (i = 0; i < event_count; i++)
		if (events[i].address == address)
			add(insn, &events[i].times);
}

static void count(struct qemu_plugin_insn *insn, enum class class)
{
	const uint64_t address = qemu_plugin_insn_vaddr(insn);
	const uint8_t *bytes = qemu_plugin_insn_data(insn);
	const size_t size = qemu_plugin_insn_size(insn);
	const bool string = repeats(bytes, size);
	uint32_t number;

	add(insn, string ? &classes[class].steps : &classes[class].instructions);
	if (class <= PAYLOAD && address - XEN_START < FINE) {
		is_string[address - XEN_START] = string;
		add(insn, &fine[address - XEN_START]);
		count_events(insn, address);
	}
	if (is_mark(bytes, size, &number))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, write_all, QEMU_PLUGIN_CB_NO_REGS,
						       (void *)(uintptr_t)number);
	if (arrivals.orders >= 0 && class == XEN && halts(bytes, size))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, at_rest, QEMU_PLUGIN_CB_NO_REGS, NULL);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	const size_t instructions = qemu_plugin_tb_n_insns(tb);
	struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);
	const uint64_t address = qemu_plugin_insn_vaddr(first);
	const enum class class = class_of(address, qemu_plugin_insn_haddr(first));
	size_t i;

	(void)id;
	if (is_image(address))
		qemu_plugin_register_vcpu_tb_exec_cb(tb, is_running, QEMU_PLUGIN_CB_NO_REGS,
						     (void *)(uintptr_t)class);
	for (i = 0; i < instructions; i++)
		count(qemu_plugin_tb_get_insn(tb, i), class);
}

/* ---- Start --------------------------------------------------------------------------------- */

static bool take(char *word)
{
	char *value = strchr(word, '=');

	if (!value)
		return false;
	*value++ = 0;
	if (!strcmp(word, "out"))
		return (out = fopen(value, "w"));
	if (!strcmp(word, "xen_end"))
		return (xen_end = strtoull(value, NULL, 16));
	if (!strcmp(word, "orders"))
		return (arrivals.orders = open(value, O_RDONLY | O_NONBLOCK)) >= 0;
	if (!strcmp(word, "wire"))
		return (arrivals.path = strdup(value));
	if (strncmp(word, "event.", 6) || event_count == EVENTS)
		return false;
	events[event_count].name = strdup(word + 6);
	events[event_count++].address = strtoull(value, NULL, 16);
	return true;
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	int i;

	(void)info;
	for (i = 0; i < argc; i++)
		if (!take(argv[i])) {
			fprintf(stderr, "count: %s is wrong\n", argv[i]);
			return 1;
		}
	fine = calloc(FINE, sizeof(*fine));
	is_string = calloc(FINE, sizeof(*is_string));
	if (arrivals.orders >= 0 && !open_arrivals()) {
		fprintf(stderr, "count: orders= needs wire= and event.interrupts=\n");
		return 1;
	}
	if (!out || !xen_end || !fine || !is_string) {
		fprintf(stderr, "count: out= and xen_end= are needed, and 272 MiB\n");
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
