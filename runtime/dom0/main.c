// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * twin_dom0.ko: the controls, in /sys/kernel/twin/.
 *
 *   attach      write an interface's name: its driver runs inside Xen
 *   detach      write anything: it runs in dom0 again; "force": also if the card does not come to
 *               rest, whose packets are lost then
 *   restart     write anything: both, after an abort; "force": as for detach
 *   poison      write "PLACE VALUE": a test's fault in the driver's data (poison.c)
 *   link        write anything: the card's interrupt for a change of its link, for a test
 *   deaf        write 1: upcalls are not answered, for a test; 0: they are
 *   status      read: "name value" a line
 *   hot_percpu  read: where twin_hot.ko's per-CPU data begins; /sys/module does not say
 *
 * A write gives the error of what it asked for; the kernel's log has the reason.
 */
#include "dom0.h"
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <xen/xen.h>

static struct kobject *folder;

static ssize_t written(int error, size_t length)
{
	return error < 0 ? error : (ssize_t)length;
}

static ssize_t attach_store(struct kobject *object, struct kobj_attribute *attribute, const char *text,
			    size_t length)
{
	char name[IFNAMSIZ + 1];	/* and the end of the line */
	int error;

	if (strscpy(name, text, sizeof(name)) < 0)
		return -EINVAL;
	rtnl_lock();
	error = twin_attach(strim(name));
	rtnl_unlock();
	return written(error, length);
}

static ssize_t detach_store(struct kobject *object, struct kobj_attribute *attribute, const char *text,
			    size_t length)
{
	int error;

	rtnl_lock();
	error = twin_detach(sysfs_streq(text, "force"));
	rtnl_unlock();
	return written(error, length);
}

static ssize_t restart_store(struct kobject *object, struct kobj_attribute *attribute, const char *text,
			     size_t length)
{
	int error;

	rtnl_lock();
	error = twin_restart(sysfs_streq(text, "force"));
	rtnl_unlock();
	return written(error, length);
}

static ssize_t poison_store(struct kobject *object, struct kobj_attribute *attribute, const char *text,
			    size_t length)
{
	int error;

	rtnl_lock();
	error = twin_poison(text);
	rtnl_unlock();
	return written(error, length);
}

static ssize_t link_store(struct kobject *object, struct kobj_attribute *attribute, const char *text,
			  size_t length)
{
	int error = -ENOTCONN;

	rtnl_lock();
	if (twin_attached()) {
		twin_card_link_interrupt(twin_attached());
		error = 0;
	}
	rtnl_unlock();
	return written(error, length);
}

static ssize_t deaf_store(struct kobject *object, struct kobj_attribute *attribute, const char *text,
			  size_t length)
{
	bool deaf;
	int error = kstrtobool(text, &deaf);

	if (error)
		return error;
	rtnl_lock();
	twin_upcall_deaf(deaf);
	rtnl_unlock();
	return length;
}

/* ---- Status ---- */

static int vif_lines(char *text, int at, const struct twin_xen_status *status)
{
	u32 i;

	for (i = 0; i < TWIN_XEN_VIFS; i++) {
		const struct twin_xen_vif_status *vif = &status->vif[i];

		if (!vif->connected)
			continue;
		at += sysfs_emit_at(text, at,
				    "vif%u.%u kicks %llu notified %llu sent %llu %llu received %llu %llu refused %llu full %llu\n",
				    vif->domain, vif->handle, vif->kicks, vif->notified, vif->sent, vif->sent_bytes,
				    vif->received, vif->received_bytes, vif->refused, vif->full);
	}
	return at;
}

static int entries_line(char *text, int at, const struct twin_xen_status *status)
{
	u32 cpu;

	at += sysfs_emit_at(text, at, "entries-by-processor");
	for (cpu = 0; cpu < TWIN_XEN_CPUS; cpu++)
		at += sysfs_emit_at(text, at, " %llu", status->processor_entries[cpu]);
	return at + sysfs_emit_at(text, at, "\n");
}

static const char *or_dash(const char *words)
{
	return *words ? words : "-";
}

static int stages_line(char *text, int at, const struct twin_xen_stages *stages)
{
	return at + sysfs_emit_at(text, at, "stages aggregate %u bridge %u storm %u notify %u pace %u dma %u\n",
				  stages->aggregate, stages->bridge, stages->storm, stages->notify, stages->pace, stages->dma);
}

static int xen_lines(char *text, int at, const struct twin_xen_status *status)
{
	at += sysfs_emit_at(text, at, "state %u\n", status->state);
	at = stages_line(text, at, &status->stages);
	at += sysfs_emit_at(text, at, "interrupts %llu\nentries %llu\nimports %llu\naborts %llu\n",
			    status->interrupts, status->entries, status->imports, status->aborts);
	at = entries_line(text, at, status);
	at += sysfs_emit_at(text, at, "polls %llu\nrescheduled %llu\ntransmitted %llu\ncompleted %llu\n",
			    status->polls, status->rescheduled, status->transmitted, status->completed);
	at += sysfs_emit_at(text, at, "received %llu\nunwanted %llu\noverrun %llu\nbusy %llu\nupcalls %llu\n",
			    status->received, status->unwanted, status->overrun, status->busy,
			    status->upcalls);
	at += sysfs_emit_at(text, at, "aggregates %llu\nmerged %llu\n", status->aggregates, status->merged);
	at += sysfs_emit_at(text, at, "local %llu\nspoofed %llu\nstorm %llu\n", status->local, status->spoofed,
			    status->storm);
	at += sysfs_emit_at(text, at, "doorbells %llu\ndescriptors %llu\nwritten-back %llu\nheld-pages %llu\npolled-on %llu\nrefused-writes %llu\n",
			    status->doorbells, status->descriptors, status->written_back, status->held_pages,
			    status->polled_on, status->refused_writes);
	at += sysfs_emit_at(text, at, "dirty %llu\nlate-aliases %llu\n", status->dirty, status->late_aliases);
	at += sysfs_emit_at(text, at, "abort-kind %u\nabort-reason %u\nabort-address %llx\n",
			    status->abort_kind, status->abort_reason, status->abort_address);
	at += sysfs_emit_at(text, at, "abort-rip %llx\nabort-entry %llx\n", status->abort_rip,
			    status->abort_entry);
	at += sysfs_emit_at(text, at, "abort-what %s\nabort-at %s\n", or_dash(status->abort_what),
			    or_dash(status->abort_at));
	at += sysfs_emit_at(text, at, "abort-entered %s\nabort-import %s\n",
			    or_dash(status->abort_entered), or_dash(status->abort_import));
	at += sysfs_emit_at(text, at, "abort-card %s\n", or_dash(status->abort_card));
	return vif_lines(text, at, status);
}

/* Whether there is something of a large packet that the card does not do. Under RTNL. */
static bool offloads(const struct twin_card *card)
{
	const netdev_features_t all = NETIF_F_TSO | NETIF_F_SG | NETIF_F_HW_CSUM;

	return card && (card->netdev->features & all) != all;
}

static ssize_t status_show(struct kobject *object, struct kobj_attribute *attribute, char *text)
{
	struct twin_xen_status *status = kzalloc(sizeof(*status), GFP_KERNEL);
	int error, at = 0;

	if (!status)
		return -ENOMEM;
	rtnl_lock();
	/* "No payload" is an answer; "another command is in Xen" is none. */
	error = twin_xen_call_patiently(TWIN_XEN_STATUS, status, sizeof(*status));
	at += sysfs_emit_at(text, at, "interface %s\noffload %u\n",
			    twin_attached() ? twin_attached()->netdev->name : "-", offloads(twin_attached()));
	rtnl_unlock();
	at += sysfs_emit_at(text, at, "dropped-egress %llu\nkicks-in-dom0 %llu\nupcalls-answered %llu\npayload %d\n",
			    twin_egress_dropped(), twin_vif_kicks(), twin_upcalls_answered(), error);
	if (!error)
		at = xen_lines(text, at, status);
	kfree(status);
	return at;
}

static ssize_t hot_percpu_show(struct kobject *object, struct kobj_attribute *attribute, char *text)
{
	ssize_t length = -ENODEV;

	rtnl_lock();
	if (twin_hot())
		length = sysfs_emit(text, "0x%016lx\n", (unsigned long)twin_hot()->percpu);
	rtnl_unlock();
	return length;
}

static struct kobj_attribute attach_attribute = __ATTR(attach, 0200, NULL, attach_store);
static struct kobj_attribute detach_attribute = __ATTR(detach, 0200, NULL, detach_store);
static struct kobj_attribute restart_attribute = __ATTR(restart, 0200, NULL, restart_store);
static struct kobj_attribute poison_attribute = __ATTR(poison, 0200, NULL, poison_store);
static struct kobj_attribute link_attribute = __ATTR(link, 0200, NULL, link_store);
static struct kobj_attribute deaf_attribute = __ATTR(deaf, 0200, NULL, deaf_store);
static struct kobj_attribute status_attribute = __ATTR(status, 0400, status_show, NULL);
static struct kobj_attribute hot_percpu_attribute = __ATTR(hot_percpu, 0400, hot_percpu_show, NULL);

static const struct attribute *const attributes[] = {
	&attach_attribute.attr, &detach_attribute.attr, &restart_attribute.attr,
	&poison_attribute.attr, &link_attribute.attr, &deaf_attribute.attr,
	&status_attribute.attr, &hot_percpu_attribute.attr,
	NULL,
};

/* ---- The module ---- */

static int __init twin_dom0_init(void)
{
	int error;

	if (!xen_initial_domain())
		return -ENODEV;
	error = twin_attach_init();
	if (error)
		return error;
	error = twin_upcall_init();
	if (error)
		goto no_upcall;
	error = twin_vif_init();
	if (error)
		goto no_vif;
	error = -ENOMEM;
	folder = kobject_create_and_add("twin", kernel_kobj);
	if (!folder)
		goto no_folder;
	error = sysfs_create_files(folder, attributes);
	if (!error)
		return 0;
	kobject_put(folder);
no_folder:
	twin_vif_exit();
no_vif:
	twin_upcall_exit();
no_upcall:
	twin_attach_exit();
	return error;
}

/* Nothing is attached: attach holds a reference to this module. */
static void __exit twin_dom0_exit(void)
{
	kobject_put(folder);
	twin_vif_exit();
	twin_upcall_exit();
	twin_attach_exit();
}

module_init(twin_dom0_init);
module_exit(twin_dom0_exit);
MODULE_DESCRIPTION("A network driver inside Xen: dom0's side");
MODULE_LICENSE("Dual MIT/GPL");
