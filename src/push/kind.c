// SPDX-License-Identifier: Apache-2.0
#include "push/kind.h"

#include "push/otlp.h"
#include "push/otlp_logs.h"
#include "push/remote_write.h"
#include "push/rows.h"

const struct push_kind *const push_kinds[PUSH_KINDS] = {
	[PUSH_ROWS] = &rows_kind,
	[PUSH_REMOTE_WRITE] = &remote_write_kind,
	[PUSH_OTLP] = &otlp_kind,
	[PUSH_OTLP_LOGS] = &otlp_logs_kind,
};
