/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * device.h: the begin and end of the host's calls on the device. Commands hold one
 * mutex, as the kernel's hold rtnl, so they may come on any CPU.
 */
#ifndef TWIN_DEVICE_H
#define TWIN_DEVICE_H

#include <linux/netdevice.h>

/* 0 with the mutex held, or -ENODEV without. */
long device_begin(struct net_device *dev);
/* Gives the mutex back. */
void device_end(void);
/* As device_end, then runs what is due; returns `result`. */
long device_finish(long result);

#endif
