// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A driver with a wild pointer: loaded with address=A, it writes there. Rewritten,
 * it must be stopped with a message in the log where A is no address of the kernel.
 *
 * With address=0 it behaves: it writes to its own memory. With place=3 and 4 the address
 * is that of the loading process's stack, which is mapped: it is read, or written.
 */
#include <linux/mm_types.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>

static unsigned long address;
module_param(address, ulong, 0);
MODULE_PARM_DESC(address, "where to write");

static unsigned int place;
module_param(place, uint, 0);
MODULE_PARM_DESC(place, "who writes: 0 a function, 1 one in .init.text, 2 one in .text.unlikely, 3 nobody, 4 a function");

struct twin_wild {
	unsigned long words[4];
};

/* Owned here; freed at exit. */
static struct twin_wild *twin_wild_own;

static noinline void twin_wild_write(struct twin_wild *at)
{
	at->words[1] += 1;
}

static noinline void __init twin_wild_write_init(struct twin_wild *at)
{
	at->words[1] += 1;
}

static noinline void __cold twin_wild_write_cold(struct twin_wild *at)
{
	at->words[1] += 1;
}

static noinline unsigned long twin_wild_read(struct twin_wild *at)
{
	return at->words[1];
}

/* The process that loads the module: its stack is in use, so it is mapped. */
static struct twin_wild *twin_wild_user(void)
{
	return (struct twin_wild *)(current->mm->start_stack & ~63ul);
}

static int __init twin_wild_init(void)
{
	struct twin_wild *at;

	twin_wild_own = kzalloc(sizeof(*twin_wild_own), GFP_KERNEL);
	if (!twin_wild_own)
		return -ENOMEM;
	at = address ? (struct twin_wild *)address : twin_wild_own;
	if (place == 1)
		twin_wild_write_init(at);
	else if (place == 2)
		twin_wild_write_cold(at);
	else if (place == 3)
		pr_info("twin_wild: read %s\n", twin_wild_read(twin_wild_user()) ? "a number" : "zero");
	else if (place == 4)
		twin_wild_write(twin_wild_user());
	else
		twin_wild_write(at);
	pr_info("twin_wild: went on\n");
	return 0;
}

static void __exit twin_wild_exit(void)
{
	kfree(twin_wild_own);
}

module_init(twin_wild_init);
module_exit(twin_wild_exit);
MODULE_DESCRIPTION("a driver with a wild pointer");
MODULE_LICENSE("GPL");
