// SPDX-License-Identifier: Apache-2.0
/* What the options say about a destination that numbers are pushed to. */
#pragma once

#include "agent/outputs/push_key.h"
#include "config/options.h"
#include "push/protocol.h"

struct push_config {
	const char *program; /* NULL: gpusonde-push */
	struct push_key key;
	const char *families; /* borrowed from the options; NULL: all */
	int64_t interval_ns;
	struct push_settings settings;
};

/* As PUSH_KIND_LIST has them. */
extern const char *const push_kind_names[PUSH_KINDS];

/*
 * What the options and the process's environment say. 0: *ret_config; -ENOENT: nobody wants it; -EINVAL: only
 * some of it is configured, or wrongly: @why says what is to be done.
 */
int push_configure(const struct options *options, enum push_kind_id kind, struct push_config *ret_config,
		   char *why, size_t size);
