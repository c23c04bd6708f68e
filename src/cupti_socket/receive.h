// SPDX-License-Identifier: Apache-2.0
/*
 * src/cupti_socket receives what CUPTI's plugin in programs (src/cupti_plugin) sends, and adds it up by
 * process and device. Who sends, and how much, is plugin_socket/clients.h's; a client has CUPTI_DEVICES
 * devices, and what does not fit is counted as lost.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/row_list.h"
#include "model/cupti_wire.h"
#include "model/gpu_work.h"
#include "plugin_socket/clients.h"

enum { CUPTI_DEVICES = 16 };

struct cupti_receiver;

/* What else is done with records, which are valid; each may be NULL. */
struct cupti_receiver_ops {
	/* @uuid: of the device, "" if it is not known. */
	void (*work)(uint32_t pid, const char *uuid, const struct cupti_work *work, void *userdata);
	/* All work that began in the slice is told, if no more is @missing since the one before. */
	void (*slice)(uint32_t pid, const struct cupti_slice *slice, uint64_t missing, void *userdata);
	void (*name)(uint32_t pid, const struct cupti_name *name, void *userdata);
};

/* What clients are told when they connect; its magic and version are set. */
struct cupti_receiver *cupti_receiver_new(const struct cupti_wanted *wanted,
					  const struct cupti_receiver_ops *ops, void *userdata);
void cupti_receiver_free(struct cupti_receiver *receiver);
DEFINE_CLEANUP(struct cupti_receiver *, cupti_receiver_free, cupti_receiver_freep)

/* The same, from the next client on. */
void cupti_receiver_want(struct cupti_receiver *receiver, const struct cupti_wanted *wanted);
/* Those that send. */
struct plugin_clients *cupti_receiver_clients(struct cupti_receiver *receiver);
/* The rows of all clients (struct gpu_time); those that are gone are in it for the last time. */
void cupti_receiver_rows(struct cupti_receiver *receiver, struct row_list *rows);
/*
 * From now on records are kept, too, to be handed on (struct gpu_work), within bounds: GPU_WORKS_MAX, of one
 * connection GPU_WORKS_PROCESS, and of one user no more than leaves room for the others (base/user_shares.h).
 */
void cupti_receiver_keep(struct cupti_receiver *receiver);
/* In the order in which they came. */
struct row_list *cupti_receiver_kept(struct cupti_receiver *receiver);
void cupti_receiver_forget_kept(struct cupti_receiver *receiver);
/* For which there was no room, so far. */
uint64_t cupti_receiver_not_kept(const struct cupti_receiver *receiver);
/* Records that plugins had no room for, of all clients that ever were. */
uint64_t cupti_receiver_lost(const struct cupti_receiver *receiver);

/* For one message of @n bytes: whether it is whole and means something. */
bool cupti_wire_is_valid(const struct cupti_wire *message, size_t n);
