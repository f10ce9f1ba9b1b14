/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef TWIN_XEN_STORE_H
#define TWIN_XEN_STORE_H

#include "hypervisor.h"

/*
 * The length of an instruction that stores 32 bits and does nothing else, and what it stores; 0: it is
 * another one. At most 15 bytes of code are read. registers: as they are before it. [any]
 */
uint32_t xen_store_read(const struct xen_registers *registers, const uint8_t *code, uint64_t *value);

#endif /* TWIN_XEN_STORE_H */
