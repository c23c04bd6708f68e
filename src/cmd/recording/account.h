// SPDX-License-Identifier: Apache-2.0
/*
 * What was done between two moments, added up from the snapshots of a recording: by GPU, and by who did it.
 * Counters are added by their differences, so it does not matter how many snapshots there are; a counter that
 * begins anew (the agent was started again) goes on. What was done before the first snapshot is not counted.
 */
#pragma once

#include "model/finding.h"
#include "model/snapshot.h"
#include "view/fields/select.h"

enum { ACCOUNT_POINTS = 240, ACCOUNT_NAME = 256 };

/* A sum that may be unknown. */
struct amount {
	double value;
	bool known, estimated;
};

/* Of all readings of a piece of the time. */
struct account_point {
	double sum[3]; /* utilisation, watts, bytes in use */
	uint32_t n[3];
};

struct account_gpu {
	char uuid[96], name[96], instance[16]; /* "1/0"; "": the whole GPU */
	uint32_t index;
	struct amount observed, busy, energy, memory_peak; /* seconds, joules, bytes */
	struct amount slots[GPU_SLOTS]; /* counters */
	struct account_point points[ACCOUNT_POINTS];
};

/* A container, pod, job or unit; or a user, for processes that are in none. */
struct account_who {
	enum workload_kind kind;
	char id[ACCOUNT_NAME]; /* of a user the number */
	char namespace[64], pod[254], container[64], job_name[128];
	uint32_t user; /* whose own cgroup it is: as in struct workload */
	struct amount allocated, idle; /* seconds */
	struct amount busy, energy, memory_peak; /* of the board's time, estimates of its energy; bytes */
	struct amount launches, errors;
	uint32_t processes, ended;
	bool selected; /* else it has had no names so far */
};

struct account_xid {
	char uuid[96], pci_bus_id[32];
	uint32_t code;
	double count;
	int64_t last_real_ns;
};

/* A call, kernel or operator. */
struct account_item {
	char name[ACCOUNT_NAME];
	double count, errors, bytes, seconds;
};
struct account_items {
	struct account_item *list;
	uint32_t n, room;
};

/* As it was recorded last; texts are the account's. */
struct account_finding {
	struct finding f;
	const char *name, *title, *remedy; /* of its rule */
	const char *cause; /* name of the rule whose finding explains it; NULL: none does */
	int64_t begin_real_ns, end_real_ns; /* 0: not known */
};

struct account {
	struct selection selection; /* who; nothing is set: everybody */
	int64_t since_ns, until_ns; /* what was asked for, for the points */
	int64_t first_real_ns, last_real_ns;
	double covered_seconds, missing_seconds; /* of the time between: gaps of the recording */
	uint64_t frames;
	bool simulated, traced;
	char hostname[65];
	struct account_gpu *gpus;
	uint32_t gpus_n;
	struct account_who *who;
	uint32_t who_n, who_room;
	struct account_xid *xids;
	uint32_t xids_n, xids_room;
	struct account_items calls, collectives, kernels, operators;
	bool analysed;
	struct account_finding *findings; /* in the order in which they came */
	uint32_t findings_n, findings_room;
	char **texts; /* of findings */
	uint32_t texts_n, texts_room;
	uint64_t left_out; /* beyond a limit */
	int64_t boot_ns; /* of the newest snapshot */
	int64_t period_ns; /* from one snapshot to the next */
	struct account_counters *counters;
};

/* @selection's texts stay the caller's. @gap_ns: what is longer between two snapshots is a gap. */
int account_new(const struct selection *selection, int64_t since_ns, int64_t until_ns,
		struct account **ret_account);
void account_free(struct account *account);
/* In the order in which they were recorded. -ENOMEM. */
int account_add(struct account *account, const struct snapshot *snapshot, int64_t period_ns);
/* Leaves out who has not turned out to be selected; sorts what is listed, the most first. */
void account_finish(struct account *account);
bool account_selects(const struct account *account);

/* ---- for account.c and account_findings.c ---- */

/* The list, with room for one row more than @n; NULL: beyond @max, or out of memory. */
void *account_room(void *list, uint32_t n, uint32_t *room, uint32_t max, size_t size);
/* What a snapshot's analysis has found; of who is selected, if anybody is. */
void account_add_findings(struct account *account, const struct snapshot *snapshot);
/* Whether the process is of who is selected, by what this snapshot and those before it say. */
bool account_has_process(const struct account *account, const struct snapshot *snapshot, uint32_t pid);
