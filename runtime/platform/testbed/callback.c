// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * From the runtime's operations to the host's callbacks.
 *
 * Port accesses, warnings and the search for a call's target are not calls in the
 * driver's source, so its vector registers may be live there, and the host's code may
 * use them: they are saved around it, unless the driver has none. Imports are calls,
 * where they are dead (psABI 3.2.1). This file is compiled without vector registers.
 */
#include <stddef.h>

#include "platform.h"

static void save_vectors(struct twin_instance *instance, struct twin_vectors *state)
{
	if (!instance->vector_free)
		twin_testbed_vector_save(instance, state);
}

static void restore_vectors(struct twin_instance *instance, const struct twin_vectors *state)
{
	if (!instance->vector_free)
		twin_testbed_vector_restore(instance, state);
}

static const struct twin_testbed_host *host_of(struct twin_instance *instance)
{
	return &((struct twin_testbed *)instance->platform)->host;
}

static uint64_t resolve_upcall(struct twin_instance *instance, uint64_t vm)
{
	const struct twin_testbed_host *host = host_of(instance);
	struct twin_vectors state;
	uint64_t stub;

	save_vectors(instance, &state);
	stub = host->resolve_upcall(host->data, vm);
	restore_vectors(instance, &state);
	return stub;
}

static int import(struct twin_instance *instance, struct twin_call_frame *frame)
{
	const struct twin_testbed_host *host = host_of(instance);

	return host->import(host->data, frame);
}

static uint32_t port_in(struct twin_instance *instance, uint16_t port, uint32_t size)
{
	const struct twin_testbed_host *host = host_of(instance);
	struct twin_vectors state;
	uint32_t value;

	save_vectors(instance, &state);
	value = host->port_in(host->data, port, size);
	restore_vectors(instance, &state);
	return value;
}

static void port_out(struct twin_instance *instance, uint16_t port, uint32_t size, uint32_t value)
{
	const struct twin_testbed_host *host = host_of(instance);
	struct twin_vectors state;

	save_vectors(instance, &state);
	host->port_out(host->data, port, size, value);
	restore_vectors(instance, &state);
}

static void warn(struct twin_instance *instance, uint64_t site)
{
	const struct twin_testbed_host *host = host_of(instance);
	struct twin_vectors state;

	save_vectors(instance, &state);
	host->warn(host->data, site);
	restore_vectors(instance, &state);
}

void twin_testbed_set_callbacks(struct twin_platform_ops *ops, const struct twin_testbed_host *host)
{
	ops->resolve_upcall = host->resolve_upcall ? resolve_upcall : NULL;
	ops->import = host->import ? import : NULL;
	ops->port_in = host->port_in ? port_in : NULL;
	ops->port_out = host->port_out ? port_out : NULL;
	ops->warn = host->warn ? warn : NULL;
	ops->vector_save = twin_testbed_vector_save;
	ops->vector_clear = twin_testbed_vector_clear;
	ops->vector_restore = twin_testbed_vector_restore;
}
