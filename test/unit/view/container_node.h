// SPDX-License-Identifier: Apache-2.0
/*
 * A node made by hand for the tests of /container/metrics: GPUs, who was given them, and what exporters say.
 * Nothing is freed by hand: container_node_up() and _down() are set-up and tear-down of a case.
 */
#pragma once

#include <jansson.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "view/container/rows.h"

#define MIB (1024.0 * 1024)
#define NOW_BOOT (1000 * NSEC_PER_SEC)
#define NOW_REAL (INT64_C(1790000000) * NSEC_PER_SEC)

struct container_node {
	struct snapshot s;
	struct container_rows *rows;
	struct scraped *scraped;
};
extern struct container_node t;

int container_node_up(void **state);
int container_node_down(void **state);

struct entity *add_gpu(uint32_t index);
struct entity *add_instance(uint16_t parent, uint32_t gi, uint32_t ci, const char *profile);
void set(struct entity *e, enum gpu_slot slot, double value);
void give(uint16_t entity, const char *namespace, const char *pod, const char *container);
void add_job(uint16_t entity, const char *id);
void run(uint32_t allocated, double utilization, double used_mib);
struct scraped_row *add_scraped(const char *uuid, const char *gi, const char *gpu);
void set_scraped(struct scraped_row *row, enum contract_metric metric, double value);

/* The document of a view; the caller's. */
json_t *load_view(int (*view)(const struct snapshot *, int64_t, struct strbuf *));
