// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Making instances and contexts.
 */
#include "internal.h"

uint64_t twin_instance_size(void)
{
	return sizeof(struct twin_instance);
}

static bool has_vector_ops(const struct twin_platform_ops *ops)
{
	return ops->vector_save && ops->vector_clear && ops->vector_restore;
}

static bool is_table_valid(const struct twin_instance_config *config)
{
	if (!config->stlb || ((uint64_t)config->stlb & PAGE_MASK))
		return false;
	if (config->node_count && !config->nodes)
		return false;
	if (config->window || config->stack_view || config->range_limit)
		return false;
	return config->ops->map_window;
}

/* The window, its mirror and its guards are addresses, and not at the ends of them. */
static bool is_window_valid(const struct twin_instance_config *config)
{
	const struct twin_window_shape shape = twin_window_shape_of(config->scheme);

	if (config->stlb || config->node_count)
		return false;
	if ((config->window & PAGE_MASK) || config->window < shape.mirror + shape.guard ||
	    config->window > UINT64_MAX - (shape.size + shape.guard))
		return false;
	if (config->stack_view & (TWIN_WINDOW_SIZE - 1))
		return false;
	if (config->range_limit && !config->ranges)
		return false;
	return config->ops->unmap_range && (config->ops->set_gs_base || config->gs_is_set);
}

static bool is_memory_valid(const struct twin_instance_config *config)
{
	switch (config->scheme) {
	case TWIN_SCHEME_PAPER:
	case TWIN_SCHEME_STLB:
		return is_table_valid(config);
	case TWIN_SCHEME_WINDOW32:
	case TWIN_SCHEME_WINDOW:
		return is_window_valid(config);
	default:
		return false;
	}
}

static bool is_config_valid(const struct twin_instance_config *config)
{
	if (!config->ops || !is_memory_valid(config))
		return false;
	if (config->port_count && !config->ports)
		return false;
	return config->vector_free || has_vector_ops(config->ops);
}

static void clear_bytes(void *start, uint64_t bytes)
{
	volatile uint8_t *byte = start;	/* volatile: not to become a call of memset */

	while (bytes--)
		*byte++ = 0;
}

int twin_instance_init(struct twin_instance *instance, const struct twin_instance_config *config)
{
	if (!is_config_valid(config))
		return TWIN_INVALID;
	clear_bytes(instance, sizeof(*instance));
	instance->scheme = config->scheme;
	instance->vector_free = config->vector_free;
	instance->enters_gs = config->window && !config->gs_is_set;
	instance->switches_gs = config->window && config->ops->set_gs_base;
	instance->stlb = config->stlb;
	instance->nodes = config->nodes;
	instance->node_count = config->node_count;
	instance->window = config->window;
	instance->stack_view = config->stack_view;
	instance->ranges = config->ranges;
	instance->range_limit = config->range_limit;
	instance->layout = twin_window_layout();
	instance->ports = config->ports;
	instance->port_count = config->port_count;
	instance->ops = config->ops;
	instance->platform = config->platform;
	if (!has_window(instance))
		twin_stlb_init(instance);
	twin_call_init(instance);
	return TWIN_OK;
}

int twin_instance_add_text(struct twin_instance *instance, uint64_t start, uint64_t end)
{
	if (start > end || instance->text_count == TWIN_TEXT_RANGES)
		return TWIN_INVALID;
	instance->text[instance->text_count].start = start;
	instance->text[instance->text_count].end = end;
	instance->text_count++;
	return TWIN_OK;
}

bool twin_instance_has_text(const struct twin_instance *instance, uint64_t rip)
{
	uint32_t i;

	for (i = 0; i < instance->text_count; i++)
		if (rip >= instance->text[i].start && rip < instance->text[i].end)
			return true;
	return false;
}

int twin_cpu_init(struct twin_cpu *cpu)
{
	uint64_t block = (uint64_t)cpu - TWIN_STACK_CONTEXT;

	if (block & (TWIN_STACK_BLOCK - 1))
		return TWIN_INVALID;
	clear_bytes(cpu, sizeof(*cpu));
	cpu->driver_low = block + TWIN_STACK_LOW;
	cpu->driver_high = block + TWIN_STACK_HIGH;
	return TWIN_OK;
}

void twin_instance_statistics(const struct twin_instance *instance, struct twin_statistics *copy)
{
	const uint64_t *from = (const uint64_t *)&instance->statistics;
	uint64_t *to = (uint64_t *)copy;
	uint32_t i;

	for (i = 0; i < sizeof(*copy) / sizeof(*to); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}
