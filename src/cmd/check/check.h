// SPDX-License-Identifier: Apache-2.0
/* gpusonde check: conditions of a snapshot, as monitoring systems want to know them. */
#pragma once

#include "base/strbuf.h"
#include "model/snapshot.h"

/* In the order of the exit statuses of Nagios' and Icinga's plugins. */
enum check_state { CHECK_OK, CHECK_WARNING, CHECK_CRITICAL, CHECK_UNKNOWN, CHECK_STATES };

enum check_condition {
#define CONDITION(name, function, text) CHECK_##name,
#include "cmd/check/conditions.def"
	CHECK_CONDITIONS
};

struct check_subject {
	const struct snapshot *s; /* NULL: there is none */
	const char *no_snapshot; /* why */
	const char *no_agent; /* why it is none's; "" */
	unsigned gpus_expected; /* 0: as many as there were */
};

struct verdict {
	enum check_state state;
	struct strbuf text; /* what is wrong and what to do, things separated by ";"; else what holds */
};

const char *check_name(enum check_condition condition);
const char *check_state_name(enum check_state state);
/* @ret_verdict is to be freed with strbuf_done(&ret_verdict->text). */
void check_judge(const struct check_subject *subject, enum check_condition condition,
		 struct verdict *ret_verdict);
/* The state of both: what is critical, then a warning, then what is unknown. */
enum check_state check_worse(enum check_state a, enum check_state b);
/*
 * Appends performance data of the GPUs in the format of the Monitoring Plugins' guidelines, with blanks in
 * between: 'label'=value[unit];warning;critical;least;greatest. Only what is known and current.
 */
void check_figures(const struct snapshot *s, struct strbuf *out);
