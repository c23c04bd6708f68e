// SPDX-License-Identifier: Apache-2.0
/*
 * Native frames of stacks: files are read for them when the event loop is idle, and symbols at the end; or a
 * helper reads both (unwind/reader.h), as they come.
 */
#pragma once

#include <systemd/sd-event.h>

#include "base/user_shares.h"
#include "python/stacks.h"
#include "trace/engine.h"
#include "model/stacks.h"

struct stack_natives;

struct stack_natives_config {
	bool helper;
	uint32_t names, names_bytes; /* of places, of their texts; at most UNWIND_NAMES, UNWIND_NAMES_BYTES */
	struct user_shares *shares; /* that texts are charged to; NULL: all are one user's */
	unsigned texts_table;
};

/* Names the native frames of @python's paths. */
int stack_natives_new(sd_event *event, const struct stack_natives_config *config,
		      struct python_stacks *python, struct stack_natives **ret_native);
void stack_natives_free(struct stack_natives *native);

/* A process maps a probed library. */
void stack_natives_mapped(struct stack_natives *native, struct trace_engine *engine, pid_t pid);
/* A process that may be one of these has mapped another file: what lay there before does no longer. */
void stack_natives_remapped(struct stack_natives *native, pid_t pid);
/* Before python_stacks_event(). @user: of the process, with shares. */
void stack_natives_event(struct stack_natives *native, const struct trace_header *event, uint32_t user);
/* All names begin anew, of the paths of @python. */
int stack_natives_renew(struct stack_natives *native, struct python_stacks *python);
/* How many places have names, or will have. */
uint32_t stack_natives_names(const struct stack_natives *native);
/* Reads the symbols of all that was met. */
void stack_natives_resolve(struct stack_natives *native);
/* As unwind_reader_stats(). */
struct helper_stats;
bool stack_natives_reader_stats(const struct stack_natives *native, struct helper_stats *ret_stats);
/* Names that are missing (unwind_names_lost()); *ret_crowded: as unwind_crowded(). */
uint64_t stack_natives_lost(const struct stack_natives *native, uint64_t *ret_crowded);
/* A place's `native` as it is shown; valid until the next resolving. */
void stack_natives_place(const struct stack_natives *native, uint32_t number, struct stack_place *ret_place);
