// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel log as a source of XID reports: reads /dev/kmsg from the oldest record on, then as records come.
 * Records that a program wrote into the log (facility other than kern) are not believed.
 */
#pragma once

#include <systemd/sd-event.h>

struct kmsg_xid {
	char pci_bus_id[32];  /* as NVML writes it: "00000000:1B:00.0" */
	uint32_t code;
	int64_t boot_ns;      /* time stamp of the record */
	uint64_t sequence;    /* of the record */
	char text[160];       /* rest of the line, sanitised */
};

/* One record of /dev/kmsg ("prio,seq,usec,flags;text\n..."). 0 an XID; -ENOENT another record; -EBADMSG looks like one, unreadable. */
int kmsg_parse(const char *record, size_t length, struct kmsg_xid *ret_xid);

struct kmsg;
struct kmsg_stats { uint64_t xids, unreadable, overruns; uint64_t sequence; };
typedef void kmsg_xid_fn(const struct kmsg_xid *xid, void *userdata);
/* `path` NULL: /dev/kmsg. Also takes a regular file or FIFO of such records (tests). -EACCES/-EPERM: wants CAP_SYSLOG. */
int kmsg_new(sd_event *event, const char *path, kmsg_xid_fn *on_xid, void *userdata, struct kmsg **ret_kmsg);
void kmsg_free(struct kmsg *kmsg);
void kmsg_stats(const struct kmsg *kmsg, struct kmsg_stats *ret_stats);
