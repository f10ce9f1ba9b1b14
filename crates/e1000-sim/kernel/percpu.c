// SPDX-License-Identifier: GPL-2.0-only
/*
 * percpu.c: the kernel's per-CPU variables that e1000, hot.o and inline kernel
 * code name, and the base addresses by which they are found.
 *
 * The loader links `.data..percpu` at small values: GS base plus a variable's
 * value is this CPU's copy, __per_cpu_offset[k] plus it the copy of CPU k. The
 * host copies the sections into each area before kernel_boot(), and sets the stack
 * protector's canary at %gs:0x28.
 */
#include <linux/cpumask.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/smp.h>

#include "shim.h"

DEFINE_PER_CPU_READ_MOSTLY(unsigned long, this_cpu_off);
DEFINE_PER_CPU_READ_MOSTLY(int, cpu_number);
DEFINE_PER_CPU(int, numa_node);
DEFINE_PER_CPU(int, __preempt_count) = PREEMPT_ENABLED;
DEFINE_PER_CPU(struct task_struct *, current_task);
DEFINE_PER_CPU_ALIGNED(struct softnet_data, softnet_data);

unsigned long __per_cpu_offset[NR_CPUS];
unsigned int nr_cpu_ids;
struct cpumask __cpu_possible_mask;
struct cpumask __cpu_online_mask;
struct cpumask __cpu_present_mask;

/* Dynamic percpu data: allocated from here, never freed. */
#define PERCPU_DYNAMIC 4096
static DEFINE_PER_CPU_ALIGNED(u8[PERCPU_DYNAMIC], percpu_dynamic);
static size_t percpu_taken;
static struct shim_lock percpu_lock;

void __percpu *__alloc_percpu_gfp(size_t size, size_t align, gfp_t gfp)
{
	void __percpu *given = NULL;
	size_t start;
	unsigned int cpu;

	shim_lock(&percpu_lock);
	start = ALIGN(percpu_taken, align);
	if (start + size <= PERCPU_DYNAMIC) {
		percpu_taken = start + size;
		given = (void __percpu *)&percpu_dynamic + start;
	}
	shim_unlock(&percpu_lock);
	for (cpu = 0; given && cpu < boot.cpus; cpu++)
		memset(per_cpu_ptr(given, cpu), 0, size);
	return given;
}

void __percpu *__alloc_percpu(size_t size, size_t align)
{
	return __alloc_percpu_gfp(size, align, 0);
}

void free_percpu(void __percpu *pointer)
{
}

static void softnet_setup(struct softnet_data *data, unsigned int cpu)
{
	INIT_LIST_HEAD(&data->poll_list);
	skb_queue_head_init(&data->input_pkt_queue);
	skb_queue_head_init(&data->process_queue);
	data->output_queue_tailp = &data->output_queue;
	data->cpu = cpu;
}

void percpu_setup(void)
{
	unsigned int cpu;

	nr_cpu_ids = boot.cpus;
	for (cpu = 0; cpu < boot.cpus; cpu++) {
		__per_cpu_offset[cpu] = boot.percpu[cpu];
		per_cpu(this_cpu_off, cpu) = boot.percpu[cpu];
		per_cpu(cpu_number, cpu) = cpu;
		per_cpu(__preempt_count, cpu) = PREEMPT_ENABLED;
		softnet_setup(per_cpu_ptr(&softnet_data, cpu), cpu);
		__cpu_possible_mask.bits[0] |= 1ul << cpu;
		__cpu_online_mask.bits[0] |= 1ul << cpu;
		__cpu_present_mask.bits[0] |= 1ul << cpu;
	}
}
