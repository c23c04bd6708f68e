// SPDX-License-Identifier: Apache-2.0
/*
 * Workloads per device (workload.c); internal to the model. Indexes stay valid while a workload has a place.
 */
#pragma once

#include "model/model.h"
#include "model/share.h"

/* A workload's identity, with borrowed texts. `user` is as in struct process_identity. */
struct workload_ref {
	enum workload_kind kind; /* WORKLOAD_NONE: in none */
	const char *id, *pod_uid;
	uint32_t user;
};
struct workload_ref workload_ref_of(const struct process_identity *identity);
/* @device: NO_INDEX for a workload on any. */
uint64_t workload_key(enum workload_kind kind, const char *id, uint16_t device);
/*
 * Index of the workload on the device, created if needed. Without a place for it that of the device's
 * "other": then *ret_wanted is the workload's key, else 0.
 */
uint16_t workload_find(struct model *model, const struct workload_ref *ref, uint16_t device,
		       uint64_t *ret_wanted);
/* Whether a workload that there was no place for would get one now. */
bool workload_has_place(const struct model *model, uint64_t wanted, uint32_t user);
/* Counts a workload that lost its place, or got none. */
void workload_count_dropped(struct model *model, enum share_room room);
void workload_credit(struct model *model, uint16_t workload, enum process_metric row, double increment,
		     uint8_t presence);
void workload_enter(struct model *model, uint16_t workload);
void workload_leave(struct model *model, uint16_t workload, int64_t now_ns);
/* A live process leaves one, if not NO_INDEX, and enters another. */
void workload_move(struct model *model, uint16_t from, uint16_t to);
void workloads_forget_device(struct model *model, uint16_t device);
