// SPDX-License-Identifier: Apache-2.0
/*
 * Between the agent (agent/dcgm/dcgm.c) and gpusonde-dcgm: a question, in as many parts as its exporters
 * need; for each exporter, in any order, its rows, its devices and what became of it; then the end.
 */
#pragma once

#include <limits.h>
#include <stdint.h>

#include "dcgm/family.h"
#include "exposition/reason.h"
#include "helper/helper.h"
#include "model/metric.h"
#include "model/reading.h"
#include "model/scraped.h"

enum {
	DCGM_URL_MAX = 768,
	DCGM_NODE_MAX = sizeof(((struct scraped_row *)NULL)->node),
	DCGM_ASKED_MAX = 100, /* exporters of one part of a question */
	DCGM_ROWS = 96, /* of one message */
};

struct dcgm_asked {
	char url[DCGM_URL_MAX];
	char node[DCGM_NODE_MAX]; /* "": as its page says */
};

struct dcgm_question {
	char version[32]; /* GPUSONDE_VERSION; of another one's question nothing else is read */
	uint32_t n; /* exporters in this part */
	uint32_t more; /* 1: another part follows */
	uint32_t strict;
	uint32_t here; /* 1: their GPUs are this node's, whatever their pages say */
	char ca_file[PATH_MAX]; /* to verify them with, of the first question; "": the system's */
	int64_t page_cpu_ns; /* CPU time that one page may take; 0: as much as it needs */
	uint8_t left_out[FAMILY_NUMBERS]; /* of every exporter's page; of the question's last part */
	char nodes[2][DCGM_NODE_MAX]; /* what this node is called; "": one name less */
	struct dcgm_asked asked[DCGM_ASKED_MAX]; /* only @n are sent */
};

/* A GPU or MIG instance of this node, in the words of struct reading_entity; its parent is found by UUID. */
struct dcgm_device {
	char uuid[96]; /* of the GPU */
	char name[96];
	char pci_bus_id[32];
	char mig_profile[32];
	char driver_version[80];
	uint32_t index; /* UINT32_MAX: not said */
	uint32_t minor; /* UINT32_MAX: not said */
	uint32_t gi; /* UINT32_MAX on a GPU */
	uint32_t xid; /* code of the last one; 0: none, UINT32_MAX: not said */
	uint8_t p[GPU_METRICS]; /* enum presence */
	double v[GPU_METRICS]; /* in units of metrics.def, of each row's first slot */
};

enum { DCGM_DEVICES = (HELPER_MESSAGE_MAX - 64) / sizeof(struct dcgm_device) };

enum dcgm_message { DCGM_PART_ROWS = 1, DCGM_PART_DEVICES, DCGM_TARGET, DCGM_END };

struct dcgm_part {
	uint32_t message; /* DCGM_PART_ROWS, DCGM_PART_DEVICES */
	uint32_t target; /* index in the question */
	uint32_t n;
	uint32_t reserved;
	union {
		struct scraped_row rows[DCGM_ROWS];
		struct dcgm_device devices[DCGM_DEVICES];
	};
};

/* What became of an exporter's page; after its parts, which count only if it was read. */
struct dcgm_outcome {
	uint32_t message; /* DCGM_TARGET */
	uint32_t target;
	uint32_t failure; /* enum scrape_failure */
	uint32_t simulated; /* 1: its page says that its numbers are */
	int64_t real_ns, boot_ns; /* when it had come */
	uint64_t bytes; /* of the page */
	uint64_t dropped[SCRAPE_LINES];
	char error[256]; /* why it was not read; "" */
};

struct dcgm_end {
	uint32_t message; /* DCGM_END */
	uint32_t reserved;
	int64_t begin_ns, end_ns; /* boot time of the whole cycle */
	int64_t cpu_ns; /* CPU time of the process for it */
};

_Static_assert(sizeof(struct dcgm_question) <= HELPER_MESSAGE_MAX, "a question fits in a message");
_Static_assert(sizeof(struct dcgm_part) <= HELPER_MESSAGE_MAX, "a part fits in a message");
