// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Indirect calls (paper, 5.1.2). A function pointer in shared data holds an
 * address of dom0's instance; control goes to its counterpart here.
 *
 * The codemap is the exact set of permitted targets. An address that is not
 * in it may be a function of dom0's kernel: then the platform gives a stub
 * that makes an upcall. Any other aborts.
 *
 * twin_stlb_call (entry_x86_64.S) finds recent targets in a hash table of
 * {vm, hyp} without a lock. The rules are those of the translation table: a
 * free entry matches nothing of its index; an entry is written hyp first, vm
 * second, under call_lock, and is not written again while any CPU is inside;
 * targets that collide are looked up each time. After many collisions the
 * whole cache is emptied as soon as no CPU is inside.
 */
#include "internal.h"

/* The hash that twin_stlb_call computes: low bits folded with higher ones,
 * because functions are aligned and jump targets are not. */
uint32_t twin_call_index(uint64_t vm)
{
	return ((uint32_t)vm ^ ((uint32_t)vm >> TWIN_CALL_SHIFT)) & (TWIN_CALL_ENTRIES - 1);
}

/* An address of another index. */
static uint64_t free_target(uint32_t index)
{
	return index ^ 1;
}

/* [setup], or gate closed. */
void twin_call_flush(struct twin_instance *instance)
{
	uint32_t i;

	for (i = 0; i < TWIN_CALL_ENTRIES; i++) {
		__atomic_store_n(&instance->call_cache[i].vm, free_target(i), __ATOMIC_RELAXED);
		__atomic_store_n(&instance->call_cache[i].hyp, 0, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&instance->call_collisions, 0, __ATOMIC_RELAXED);
}

void twin_call_init(struct twin_instance *instance)
{
	instance->codemap = NULL;
	instance->codemap_count = 0;
	twin_call_flush(instance);
}

void twin_call_maintain(struct twin_instance *instance)
{
	if (__atomic_load_n(&instance->call_collisions, __ATOMIC_RELAXED) >= TWIN_CALL_FLUSH)
		twin_call_flush(instance);
}

static bool is_ascending(const struct twin_codemap_entry *codemap, uint64_t count)
{
	uint64_t i;

	for (i = 1; i < count; i++)
		if (codemap[i - 1].vm >= codemap[i].vm)
			return false;
	return true;
}

int twin_instance_set_codemap(struct twin_instance *instance,
			      const struct twin_codemap_entry *codemap, uint64_t count)
{
	if ((count && !codemap) || !is_ascending(codemap, count))
		return TWIN_INVALID;
	instance->codemap = codemap;
	instance->codemap_count = count;
	twin_call_flush(instance);
	return TWIN_OK;
}

static uint64_t search_codemap(const struct twin_instance *instance, uint64_t vm)
{
	uint64_t low = 0, high = instance->codemap_count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (instance->codemap[middle].vm == vm)
			return instance->codemap[middle].hyp;
		if (instance->codemap[middle].vm < vm)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

uint64_t twin_call_lookup(struct twin_instance *instance, uint64_t vm)
{
	uint64_t hyp = search_codemap(instance, vm);

	if (!hyp && instance->ops->resolve_upcall)
		hyp = instance->ops->resolve_upcall(instance, vm);
	return hyp;
}

static void note_call_collision(struct twin_instance *instance)
{
	uint32_t collisions = __atomic_add_fetch(&instance->call_collisions, 1, __ATOMIC_RELAXED);

	if (collisions == TWIN_CALL_FLUSH)
		wish_maintenance(instance);
}

/* Remember the target if its entry is free. */
static void cache_call(struct twin_instance *instance, uint64_t vm, uint64_t hyp)
{
	uint32_t index = twin_call_index(vm);
	struct twin_call_entry *entry = &instance->call_cache[index];
	uint64_t holds;

	lock(&instance->call_lock);
	holds = __atomic_load_n(&entry->vm, __ATOMIC_RELAXED);
	if (holds == free_target(index)) {
		__atomic_store_n(&entry->hyp, hyp, __ATOMIC_RELAXED);
		__atomic_store_n(&entry->vm, vm, __ATOMIC_RELEASE);
	}
	unlock(&instance->call_lock);
	if (holds != free_target(index) && holds != vm)
		note_call_collision(instance);
}

/*
 * Called by twin_stlb_call. site: the return address on top of the driver
 * stack, which for a jump is that of the jumping function's caller. Returns
 * where to go, or 0 after writing the report.
 */
uint64_t twin_call_slow(struct twin_cpu *cpu, uint64_t vm, uint64_t site)
{
	struct twin_instance *instance = cpu->instance;
	uint64_t hyp;

	if (is_dead(instance)) {
		twin_abort_record(cpu, TWIN_ABORT_DEAD, 0, vm, site);
		return 0;
	}
	count(&instance->statistics.call_misses);
	gs_to_host(cpu);
	hyp = twin_call_lookup(instance, vm);
	gs_to_driver(cpu);
	if (!hyp) {
		twin_abort_record(cpu, TWIN_ABORT_CALL, 0, vm, site);
		return 0;
	}
	cache_call(instance, vm, hyp);
	return hyp;
}
