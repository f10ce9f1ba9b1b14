// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Instructions that kernels of other configurations have inline: popf, which restores
 * saved flags (without CONFIG_PARAVIRT_XXL, up to Linux 5.10), and clang's trap of UBSAN
 * (CONFIG_UBSAN_TRAP). Loading the module saves and restores flags, and fails where
 * interrupts are not as they were.
 *
 * With astray=1 the flags that it restores set the direction; with astray=2 it ends at
 * the trap. Both must stop it, rewritten.
 */
#include <linux/irqflags.h>
#include <linux/module.h>

#define TWIN_DIRECTION (1ul << 10)

static unsigned int astray;
module_param(astray, uint, 0);
MODULE_PARM_DESC(astray, "0 nothing, 1 the direction flag, 2 a trap");

static noinline unsigned long flags_save(void)
{
	unsigned long flags;

	asm volatile("pushfq; popq %0; cli" : "=r"(flags) : : "memory");
	return flags;
}

static noinline void flags_restore(unsigned long flags)
{
	asm volatile("pushq %0; popfq" : : "r"(flags) : "memory", "cc");
}

/* ud1l 22(%eax), %eax: what clang's number 22 is does not matter. */
static noinline void flags_trap(void)
{
	asm volatile(".byte 0x67, 0x0f, 0xb9, 0x40, 0x16");
}

static int __init flags_init(void)
{
	bool before = irqs_disabled(), between, after;
	unsigned long flags = flags_save();

	between = irqs_disabled();
	flags_restore(flags);
	after = irqs_disabled();
	if (astray == 1)
		flags_restore(flags | TWIN_DIRECTION);
	if (astray == 2)
		flags_trap();
	pr_info("flags: interrupts %d, %d, %d\n", before, between, after);
	return !before && between && !after ? 0 : -EIO;
}

static void __exit flags_exit(void)
{
}

module_init(flags_init);
module_exit(flags_exit);
MODULE_DESCRIPTION("instructions of kernels of other configurations");
MODULE_LICENSE("GPL");
