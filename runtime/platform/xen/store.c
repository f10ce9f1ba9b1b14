// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Stores of driver code to the card's registers, which are done for it; see guard.c.
 *
 * The kernel's writel() is `mov` from a register, or of a constant, to memory, of 32 bits (asm/io.h, build_mmio_write).
 * These forms are known, with the window's segment and any address (SDM vol. 2, 2.1.5 and MOV):
 *
 *   [65] [REX] 89 /r		mov r32, m32
 *   [65] [REX] C7 /0 id	mov imm32, m32
 *
 * No other prefix, no REX.W: what is not known is no store, and the driver's end. Where it stores, the processor
 * has said; the bytes of the address are only counted.
 */
#include "store.h"

#define PREFIX_GS	0x65
#define REX		0x40
#define REX_MASK	0xf0
#define REX_W		8
#define REX_R		4
#define MOV_REGISTER	0x89
#define MOV_CONSTANT	0xc7

/* ModR/M (SDM vol. 2, 2.1.3) */
static uint32_t mode_of(uint8_t modrm)
{
	return modrm >> 6;
}

static uint32_t middle_of(uint8_t modrm)
{
	return modrm >> 3 & 7;
}

/* Bytes of ModR/M and of the address that follows it. 0: it names a register (table 2-2). */
static uint32_t address_length(const uint8_t *at)
{
	const uint32_t mode = mode_of(*at), base = *at & 7;
	const uint32_t with_sib = base == 4;

	switch (mode) {
	case 0:
		/* No base: 32 bits of displacement, with SIB or relative to rip. */
		return 1 + with_sib + ((with_sib ? at[1] & 7 : base) == 5 ? 4 : 0);
	case 1:
		return 1 + with_sib + 1;
	case 2:
		return 1 + with_sib + 4;
	default:
		return 0;
	}
}

/* Where a register of that number is kept (SDM vol. 2, table 2-2). */
#define KEPT(name)	((uint8_t)offsetof(struct xen_registers, name))
static const uint8_t kept[] = {
	KEPT(rax), KEPT(rcx), KEPT(rdx), KEPT(rbx), KEPT(rsp), KEPT(rbp), KEPT(rsi), KEPT(rdi),
	KEPT(r8), KEPT(r9), KEPT(r10), KEPT(r11), KEPT(r12), KEPT(r13), KEPT(r14), KEPT(r15),
};
_Static_assert(sizeof(struct xen_registers) <= 256, "an offset is a byte");

static uint32_t register_of(const struct xen_registers *registers, uint32_t number)
{
	uint32_t value;

	__builtin_memcpy(&value, (const uint8_t *)registers + kept[number], sizeof(value));
	return value;
}

uint32_t xen_store_read(const struct xen_registers *registers, const uint8_t *code, uint64_t *value)
{
	uint32_t at = 0, rex = 0, address, constant;

	if (code[at] == PREFIX_GS)
		at++;
	if ((code[at] & REX_MASK) == REX)
		rex = code[at++];
	address = address_length(&code[at + 1]);
	if (!address || rex & REX_W)
		return 0;
	if (code[at] == MOV_REGISTER) {
		*value = register_of(registers, middle_of(code[at + 1]) | (rex & REX_R ? 8 : 0));
		return at + 1 + address;
	}
	if (code[at] != MOV_CONSTANT || middle_of(code[at + 1]))
		return 0;
	__builtin_memcpy(&constant, &code[at + 1 + address], sizeof(constant));
	*value = constant;
	return at + 1 + address + sizeof(constant);
}
