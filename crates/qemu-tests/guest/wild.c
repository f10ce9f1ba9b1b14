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

struct wild {
	unsigned long words[4];
};

/* Owned here; freed at exit. */
static struct wild *wild_own;

static noinline void wild_write(struct wild *at)
{
	at->words[1] += 1;
}

static noinline void __init wild_write_init(struct wild *at)
{
	at->words[1] += 1;
}

static noinline void __cold wild_write_cold(struct wild *at)
{
	at->words[1] += 1;
}

static noinline unsigned long wild_read(struct wild *at)
{
	return at->words[1];
}

/* The process that loads the module: its stack is in use, so it is mapped. */
static struct wild *wild_user(void)
{
	return (struct wild *)(current->mm->start_stack & ~63ul);
}

static int __init wild_init(void)
{
	struct wild *at;

	wild_own = kzalloc(sizeof(*wild_own), GFP_KERNEL);
	if (!wild_own)
		return -ENOMEM;
	at = address ? (struct wild *)address : wild_own;
	if (place == 1)
		wild_write_init(at);
	else if (place == 2)
		wild_write_cold(at);
	else if (place == 3)
		pr_info("wild: read %s\n", wild_read(wild_user()) ? "a number" : "zero");
	else if (place == 4)
		wild_write(wild_user());
	else
		wild_write(at);
	pr_info("wild: went on\n");
	return 0;
}

static void __exit wild_exit(void)
{
	kfree(wild_own);
}

module_init(wild_init);
module_exit(wild_exit);
MODULE_DESCRIPTION("a driver with a wild pointer");
MODULE_LICENSE("GPL");
