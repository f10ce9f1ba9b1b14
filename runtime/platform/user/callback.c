// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * From the runtime's operations to the host's callbacks.
 *
 * Port accesses and warnings are not calls in the driver's source, so its
 * vector registers may be live there, and the host's code may use them: x87
 * and SSE state is saved around it. Imports and calls through pointers are
 * calls, where they are dead (psABI 3.2.1). This file is compiled without
 * vector registers.
 */
#include <stddef.h>

#include "platform.h"

/* FXSAVE's image (SDM vol. 1, 10.5.1). */
struct vector_state {
	_Alignas(16) uint8_t image[512];
};

static inline void save_vectors(struct vector_state *state)
{
	__asm__ volatile("fxsave64 %0" : "=m"(*state));
}

static inline void restore_vectors(const struct vector_state *state)
{
	__asm__ volatile("fxrstor64 %0" : : "m"(*state));
}

static const struct twin_user_host *host_of(struct twin_instance *instance)
{
	return &((struct twin_user *)instance->platform)->host;
}

static uint64_t resolve_upcall(struct twin_instance *instance, uint64_t vm)
{
	const struct twin_user_host *host = host_of(instance);

	return host->resolve_upcall(host->data, vm);
}

static int import(struct twin_instance *instance, struct twin_call_frame *frame)
{
	const struct twin_user_host *host = host_of(instance);

	return host->import(host->data, frame);
}

static uint32_t port_in(struct twin_instance *instance, uint16_t port, uint32_t size)
{
	const struct twin_user_host *host = host_of(instance);
	struct vector_state state;
	uint32_t value;

	save_vectors(&state);
	value = host->port_in(host->data, port, size);
	restore_vectors(&state);
	return value;
}

static void port_out(struct twin_instance *instance, uint16_t port, uint32_t size, uint32_t value)
{
	const struct twin_user_host *host = host_of(instance);
	struct vector_state state;

	save_vectors(&state);
	host->port_out(host->data, port, size, value);
	restore_vectors(&state);
}

static void warn(struct twin_instance *instance, uint64_t site)
{
	const struct twin_user_host *host = host_of(instance);
	struct vector_state state;

	save_vectors(&state);
	host->warn(host->data, site);
	restore_vectors(&state);
}

void twin_user_set_callbacks(struct twin_platform_ops *ops, const struct twin_user_host *host)
{
	ops->resolve_upcall = host->resolve_upcall ? resolve_upcall : NULL;
	ops->import = host->import ? import : NULL;
	ops->port_in = host->port_in ? port_in : NULL;
	ops->port_out = host->port_out ? port_out : NULL;
	ops->warn = host->warn ? warn : NULL;
}
