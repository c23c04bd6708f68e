// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel log as a source of XID reports: reads /dev/kmsg from the oldest record on, then new records as
 * they arrive.
 *
 * Invariants
 *  1. Records written by programs (facility other than kern) are ignored.
 *  2. Nothing blocks, and one wake-up reads a bounded number of records.
 *  3. Lost records (overruns) and unreadable ones are counted.
 *
 * Runs in the thread of its event loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/macro.h"

struct kmsg_xid {
	char pci_bus_id[32]; /* as NVML writes it: "00000000:1B:00.0" */
	uint32_t code;
	uint32_t gi, ci; /* MIG instances; UINT32_MAX: none */
	/* time of arrival; for a record from before the start its own time stamp */
	int64_t boot_ns;
	uint64_t sequence; /* of the record */
	char text[160]; /* rest of the line, sanitised */
};

/*
 * Parses one record of /dev/kmsg ("prio,seq,usec,flags;text\n..."); boot_ns is its time stamp. 0: an XID;
 * -ENOENT: another record; -EBADMSG: an XID that cannot be parsed.
 */
int kmsg_parse(const char *record, size_t length, struct kmsg_xid *ret_xid);

struct kmsg;

struct kmsg_stats {
	uint64_t xids, unreadable;
	uint64_t overruns; /* how often the kernel overwrote records before they were read */
	uint64_t sequence; /* of the newest XID */
	bool failed; /* the log cannot be read any more */
};

typedef void kmsg_xid_fn(const struct kmsg_xid *xid, void *userdata);

/* open(2), with our capabilities if it is /dev/kmsg; any other path is a user's. */
int kmsg_open(const char *path, int flags);

/*
 * `path` NULL: /dev/kmsg. A FIFO or a regular file with one record a line is also accepted (tests, copies of
 * logs). -EACCES, -EPERM: needs CAP_SYSLOG; any errno of open. `event` must outlive it; on_xid is called from
 * its loop.
 */
int kmsg_new(sd_event *event, const char *path, kmsg_xid_fn *on_xid, void *userdata, struct kmsg **ret_kmsg);
void kmsg_free(struct kmsg *kmsg);
DEFINE_CLEANUP(struct kmsg *, kmsg_free, kmsg_freep)

void kmsg_stats(const struct kmsg *kmsg, struct kmsg_stats *ret_stats);
