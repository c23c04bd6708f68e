// SPDX-License-Identifier: Apache-2.0
/* Reports of XIDs, one by one and counted by code. */
#pragma once

#include <stdint.h>

enum { XID_TEXT_MAX = 160 };

/* One XID report, or one that several sources gave. */
struct xid_event {
	uint64_t number; /* from 1, in the order in which they came */
	char pci_bus_id[32];
	uint16_t entity; /* READING_NONE if that GPU is unknown */
	uint32_t code;
	uint32_t gi, ci; /* MIG instances; UINT32_MAX: none, or not said */
	unsigned sources; /* bits 1 << enum source_id of those that gave it */
	int64_t real_ns; /* the kernel log's time, else the end of the driver's reading */
	/* the kernel log's, behind the code; valid UTF-8; "" if it has not been seen */
	char text[XID_TEXT_MAX];
};

/* An XID code on one GPU since boot. */
struct xid {
	char pci_bus_id[32];
	uint16_t entity; /* READING_NONE if that GPU is unknown */
	uint32_t code;
	uint64_t count;
	int64_t last_real_ns;
};

/* A report, which another source may repeat within the window. */
struct xid_report {
	struct xid_event event; /* without its entity */
	int64_t from_ns, to_ns; /* the error happened between these times */
};
