// SPDX-License-Identifier: Apache-2.0
/*
 * A model with a frozen clock, readings made by hand, and a /proc of its own. A test fills lab->reading and
 * steps; each step hands the reading to the model and leaves an empty one and the new snapshot.
 */
#pragma once

#include <math.h>

#include "model/model.h"

#define assert_near(value_, wanted_, within_)                                                 \
	do {                                                                                  \
		double near_value = (value_), near_wanted = (wanted_);                        \
		if (!(fabs(near_value - near_wanted) <= (within_)))                           \
			fail_msg("%s is %.17g, not %.17g", #value_, near_value, near_wanted); \
	} while (0)

enum { LAB_PIDS = 512 };

struct lab_process {
	bool exists;
	struct process_identity identity;
};

struct lab {
	struct model *model;
	struct publisher *publisher;
	struct reading *reading;
	struct snapshot *s;
	struct lab_process proc[LAB_PIDS]; /* by PID */
	unsigned looks; /* into that /proc */
};

struct lab *lab_new(const struct model_limits *limits);
void lab_free(struct lab *lab);

/* cmocka's setup and teardown; the state is the lab. */
int lab_setup(void **state);
int lab_teardown(void **state);

/* Adds to the reading at hand. A GPU's name, UUID and address come of its index. */
struct reading_entity *lab_gpu(struct lab *lab, unsigned index);
struct reading_entity *lab_mig(struct lab *lab, const struct reading_entity *gpu, unsigned gi, unsigned ci);
struct reading_process *lab_process(struct lab *lab, const struct reading_entity *entity, uint32_t pid);
void lab_event(struct lab *lab, const struct reading_entity *entity, uint32_t xid);
/* A record of the kernel log. */
void lab_kmsg(struct model *model, const char *pci_bus_id, uint32_t code, int64_t boot_ns, uint64_t sequence);

void lab_set(struct reading_entity *entity, unsigned slot, double value);
void lab_set_process(struct reading_process *process, unsigned row, double value);

/* Lets a PID exist from now on: started at `ticks`, in the workload (WORKLOAD_NONE: in none). */
void lab_exists(struct lab *lab, uint32_t pid, uint64_t ticks, enum workload_kind kind, const char *id);

/* Time passes, and the reading ends now. Returns what model_apply() did. */
int lab_step(struct lab *lab, int64_t ns);
/* The same, the reading being that source's. */
int lab_step_of(struct lab *lab, enum source_id source, int64_t ns);
/* Time passes without a reading. */
void lab_wait(struct lab *lab, int64_t ns);

/* In the newest snapshot; NULL when it is not there. */
const struct process *lab_find(const struct lab *lab, uint32_t pid);
const struct process *lab_exited(const struct lab *lab, uint32_t pid);
const struct entity *lab_entity(const struct lab *lab, const char *uuid);
const struct workload *lab_workload(const struct lab *lab, const char *id);
