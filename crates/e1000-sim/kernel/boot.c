// SPDX-License-Identifier: GPL-2.0-only
/*
 * boot.c: bringing the kernel up, the module in and out.
 */
#include <linux/kernel.h>
#include <linux/moduleparam.h>

#include "shim.h"

struct kernel_boot_info boot;
struct kernel_counters kernel_counters;

extern long pci_probe_result;
extern unsigned long hot_machine_frames;

static void (*module_exit_function)(void);
static bool module_loaded;

static void check_info(const struct kernel_boot_info *info)
{
	if (info->size != sizeof(*info))
		kernel_bug("boot: the host's kernel_boot_info is %llu bytes, not %zu", info->size,
			   sizeof(*info));
	if (!info->cpus || info->cpus > KERNEL_CPUS)
		kernel_bug("boot: %u CPUs", info->cpus);
	if (info->first_free_frame >= info->ram_frames || info->ram_frames > info->machine_frames)
		kernel_bug("boot: frames %llu, %llu, %llu are out of order", info->first_free_frame,
			   info->ram_frames, info->machine_frames);
}

long kernel_boot(const struct kernel_boot_info *info)
{
	check_info(info);
	boot = *info;
	percpu_setup();
	memory_setup();
	task_setup();
	/* printk, memory and tasks from here on. */
	hot_machine_frames = boot.machine_frames;
	receive_setup();
	pci_setup();
	system_state = SYSTEM_RUNNING;
	_printk(KERN_INFO "dom0 kernel: %llu MiB, %u CPUs\n", boot.ram_frames >> 8, boot.cpus);
	return 0;
}

static long parameters(const struct kernel_module_info *module)
{
	if (!module->arguments)
		return 0;
	return params_parse((const struct kernel_param *)module->parameters,
			    module->parameters_size / sizeof(struct kernel_param),
			    (const char *)module->arguments);
}

long kernel_load(const struct kernel_module_info *module)
{
	int (*init)(void) = (int (*)(void))module->init;
	long error;

	if (module->size != sizeof(*module) || module->ctors || !init)
		return -EINVAL;
	if (module_loaded)
		return -EBUSY;
	error = parameters(module);
	if (error)
		return error;
	pci_probe_result = 0;
	error = init();
	if (error)
		return error;
	module_loaded = true;
	module_exit_function = (void (*)(void))module->exit;
	task_run_due();
	return pci_probe_result;
}

long kernel_remove(void)
{
	if (!module_loaded)
		return -ENODEV;
	if (!module_exit_function)
		return -EBUSY;
	module_exit_function();
	module_loaded = false;
	task_run_due();
	return 0;
}
