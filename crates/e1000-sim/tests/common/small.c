/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A kernel.o of a few functions, for the tests of the live system: compiled as
 * kernel code is, loaded at dom0's addresses.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

void host_console(u32 level, const char *text, u64 length);
void host_fatal(const char *text, u64 length) __attribute__((noreturn));
u64 host_enter_again(u64 function);
void nobodys(void);

#define PERCPU __attribute__((section(".data..percpu")))
#define BAR ((volatile u32 *)0x333450000000)	/* memory/layout.rs */

PERCPU u64 this_cpu_off = 1;
PERCPU u32 cpu_number = 99;
PERCPU u64 per_cpu_count = 40;
u64 __per_cpu_offset[4] = { 1 };
u64 page_offset_base;
u64 vmemmap_base;
static u64 calls;

u64 small_add(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

u32 small_cpu(void)
{
	u32 cpu;
	asm volatile("movl %%gs:cpu_number(%%rip), %0" : "=r"(cpu));
	return cpu;
}

u64 small_percpu(void)
{
	u64 value;
	asm volatile("incq %%gs:per_cpu_count(%%rip); movq %%gs:per_cpu_count(%%rip), %0"
		     : "=r"(value));
	return value;
}

u64 small_bases(u64 which)
{
	return which == 0 ? page_offset_base : which == 1 ? vmemmap_base : __per_cpu_offset[which - 2];
}

u64 small_calls(void)
{
	return ++calls;
}

/* A clock, and a wait for it as drivers have one. */
volatile u64 jiffies;

__attribute__((no_stack_protector)) void kernel_clock_nudge(u64 ns)
{
	jiffies += ns / 4000000;
}

u64 small_wait(u64 ticks)
{
	u64 start = jiffies;

	while (jiffies - start < ticks)
		;
	return jiffies - start;
}

void small_say(void)
{
	host_console(6, "hello", 5);
}

void small_print(const char *text, u64 length)
{
	host_console(6, text, length);
	asm volatile("");
}

u64 small_nested(void)
{
	return host_enter_again((u64)small_calls);
}

/* A callback, so that the trace has something to show. */
__attribute__((noinline)) u64 small_load(const u64 *at)
{
	return *at;
}

u64 small_wild(u64 at)
{
	return small_load((const u64 *)at) + 1;
}

void small_nobody(void)
{
	nobodys();
}

void small_fatal(void)
{
	host_fatal("the end", 7);
}

u64 small_overflow(u64 n)
{
	volatile u64 room[64];
	room[n & 63] = n;
	return small_overflow(n + 1) + room[n & 63];
}

u64 small_jump(u64 at)
{
	return ((u64 (*)(void))at)() + 1;
}

void small_hang(void)
{
	for (;;)
		asm volatile("pause");
}

void small_stuck(void)
{
	asm volatile("mov $60, %eax; mov $3, %edi; syscall");
}

/* ---- Registers of the NIC: one access of each form. */

u32 small_read32(u64 offset) { return *(volatile u32 *)((u8 *)BAR + offset); }
u64 small_read8(u64 offset) { return *(volatile u8 *)((u8 *)BAR + offset); }
u64 small_read16(u64 offset) { return *(volatile u16 *)((u8 *)BAR + offset); }
u64 small_read64(u64 offset) { return *(volatile u64 *)((u8 *)BAR + offset); }
long small_signed8(u64 offset) { return *(volatile signed char *)((u8 *)BAR + offset); }
long small_signed32(u64 offset) { return *(volatile int *)((u8 *)BAR + offset); }
void small_write32(u64 offset, u32 value) { *(volatile u32 *)((u8 *)BAR + offset) = value; }
void small_write16(u64 offset, u16 value) { *(volatile u16 *)((u8 *)BAR + offset) = value; }
void small_write8(u64 offset, u8 value) { *(volatile u8 *)((u8 *)BAR + offset) = value; }
void small_write64(u64 offset, u64 value) { *(volatile u64 *)((u8 *)BAR + offset) = value; }
void small_write_imm(u64 offset) { *(volatile u32 *)((u8 *)BAR + offset) = 0x89abcdef; }

u64 small_high_byte(u64 offset)
{
	u64 value = 0x1111111111111111;
	asm volatile("movb (%1), %%ah" : "+a"(value) : "r"((u8 *)BAR + offset));
	return value;
}

u64 small_low_byte(u64 offset)
{
	u64 value = 0x2222222222222222;
	asm volatile("movb (%1), %b0" : "+r"(value) : "r"((u8 *)BAR + offset));
	return value;
}

void small_add_memory(u64 offset) { asm volatile("addl $1, (%0)" : : "r"((u8 *)BAR + offset)); }

u32 small_in32(u16 port) { u32 v; asm volatile("inl %1, %0" : "=a"(v) : "d"(port)); return v; }
u64 small_in8(u16 port)
{
	u64 v = 0x3333333333333333;
	asm volatile("inb %1, %b0" : "+a"(v) : "d"(port));
	return v;
}
void small_out32(u16 port, u32 value) { asm volatile("outl %0, %1" : : "a"(value), "d"(port)); }

/* ---- WARN and BUG, as the kernel marks them. */

#define BUG_ENTRY(flags) \
	asm volatile("1: ud2\n" \
		     ".pushsection __bug_table, \"aw\"\n" \
		     "2: .long 1b - 2b\n   .long file - (2b + 4)\n" \
		     "   .word 77\n   .word " #flags "\n.popsection")
static const char file[] __attribute__((used)) = "small.c";

u64 small_warn(u64 value)
{
	BUG_ENTRY(1);
	return value + 1;
}

u64 small_bug(u64 value)
{
	BUG_ENTRY(0);
	return value + 1;
}

/* ---- Upcalls: variables on the caller's stack. */

u64 small_by_reference(u64 *at, u64 value)
{
	u64 old = *at;
	*at = value;
	return old;
}

unsigned __int128 small_pair(u64 low, u64 high)
{
	return (unsigned __int128)high << 64 | low;
}
