// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Accesses that may fault, and whose faults the kernel handles by __ex_table: it
 * continues at another place, or supplies the loaded value. Loading the module makes
 * each of these accesses, and fails where one is not handled as the headers promise.
 */
#include <asm/word-at-a-time.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#define TWIN_FIXUP_FILL 0xa5

/* Two bytes are mapped; the kernel supplies zeroes for the others (EX_TYPE_ZEROPAD). */
static noinline bool fixup_pads(const void *end)
{
	return load_unaligned_zeropad(end - 2) == 0xa5a5;
}

/* Continues at a label; a load of mapped memory must not (EX_TYPE_UACCESS). */
static noinline bool fixup_kernel_reads(const void *at, unsigned long *word)
{
	__get_kernel_nofault(word, at, unsigned long, hole);
	return true;
hole:
	return false;
}

static noinline bool fixup_kernel_writes(void *at, unsigned long *word)
{
	__put_kernel_nofault(at, word, unsigned long, hole);
	return true;
hole:
	return false;
}

/* The same in the process that loads this: a user-space address is no wild pointer. */
static noinline bool fixup_user_reads(unsigned long at, unsigned long *word)
{
	unsigned long __user *from = (unsigned long __user *)at;

	if (!user_access_begin(from, sizeof(*from)))
		return false;
	unsafe_get_user(*word, from, hole);
	user_access_end();
	return true;
hole:
	user_access_end();
	return false;
}

static int __init fixup_check(const char *what, bool holds)
{
	pr_info("fixup: %s: %s\n", what, holds ? "answered" : "NOT ANSWERED");
	return holds ? 0 : -EIO;
}

static int __init fixup_init(void)
{
	unsigned long word = 0, words = 0;
	/* vmalloc leaves a hole after each area. */
	u8 *page = vmalloc(PAGE_SIZE);
	int error;

	if (!page)
		return -ENOMEM;
	memset(page, TWIN_FIXUP_FILL, PAGE_SIZE);
	error = fixup_check("padded", fixup_pads(page + PAGE_SIZE));
	error |= fixup_check("kernel load", fixup_kernel_reads(page, &words) &&
						   words == 0xa5a5a5a5a5a5a5a5);
	error |= fixup_check("kernel load from a hole",
				  !fixup_kernel_reads(page + PAGE_SIZE, &words));
	error |= fixup_check("kernel store", fixup_kernel_writes(page + 8, &word) &&
						    *(unsigned long *)(page + 8) == 0);
	error |= fixup_check("kernel store into a hole",
				  !fixup_kernel_writes(page + PAGE_SIZE, &word));
	error |= fixup_check("user load",
				  fixup_user_reads(current->mm->arg_start, &word) && word);
	error |= fixup_check("user load from the null page",
				  !fixup_user_reads(8, &word));
	vfree(page);
	return error;
}

static void __exit fixup_exit(void)
{
}

module_init(fixup_init);
module_exit(fixup_exit);
MODULE_DESCRIPTION("accesses whose faults the kernel answers");
MODULE_LICENSE("GPL");
