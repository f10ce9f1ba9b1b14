// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Port input and output: checks the policy, calls the platform.
 */
#include "internal.h"

bool twin_port_allowed(const struct twin_instance *instance, uint16_t port, uint32_t size)
{
	uint32_t last = (uint32_t)port + size - 1;
	uint32_t i;

	for (i = 0; i < instance->port_count; i++)
		if (port >= instance->ports[i].first && last <= instance->ports[i].last)
			return true;
	return false;
}

/* Whether the access is permitted. If not, the report is written. */
static bool permit(struct twin_cpu *cpu, bool possible, uint16_t port, uint32_t size,
		   uint64_t site)
{
	if (is_dead(cpu->instance)) {
		twin_abort_record(cpu, TWIN_ABORT_DEAD, size, port, site);
		return false;
	}
	if (!possible || !twin_port_allowed(cpu->instance, port, size)) {
		twin_abort_record(cpu, TWIN_ABORT_PORT, size, port, site);
		return false;
	}
	return true;
}

int64_t twin_port_in(struct twin_cpu *cpu, uint16_t port, uint32_t size, uint64_t site)
{
	const struct twin_platform_ops *ops = cpu->instance->ops;
	uint32_t value;

	if (!permit(cpu, ops->port_in, port, size, site))
		return -1;
	gs_to_host(cpu);
	value = ops->port_in(cpu->instance, port, size);
	gs_to_driver(cpu);
	return value;
}

static uint32_t truncated(uint32_t value, uint32_t size)
{
	return size == 4 ? value : value & ((1u << (8 * size)) - 1);
}

int twin_port_out(struct twin_cpu *cpu, uint16_t port, uint32_t size, uint32_t value,
		  uint64_t site)
{
	const struct twin_platform_ops *ops = cpu->instance->ops;

	if (!permit(cpu, ops->port_out, port, size, site))
		return TWIN_ABORTED;
	gs_to_host(cpu);
	ops->port_out(cpu->instance, port, size, truncated(value, size));
	gs_to_driver(cpu);
	return 0;
}
