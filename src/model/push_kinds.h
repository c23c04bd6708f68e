// SPDX-License-Identifier: Apache-2.0
/*
 * Kinds of destinations that numbers are pushed to: one destination of each at a time, by a process of its
 * own (src/push).
 *
 *   X_(ID, name, ...)   name: label `destination`, folder of its queue
 *
 * A macro and not a file, since metrics.def needs it within the rows of other tables.
 */
#pragma once

#define PUSH_KIND_LIST(X_, ...)                       \
	X_(ROWS, "push", __VA_ARGS__)                 \
	X_(REMOTE_WRITE, "remote_write", __VA_ARGS__) \
	X_(OTLP, "otlp", __VA_ARGS__)                 \
	X_(OTLP_LOGS, "otlp_logs", __VA_ARGS__)

enum push_kind_id {
#define PUSH_KIND(id_, name_, ...) PUSH_##id_,
	PUSH_KIND_LIST(PUSH_KIND, )
#undef PUSH_KIND
		PUSH_KINDS
};
