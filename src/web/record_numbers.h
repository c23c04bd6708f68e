// SPDX-License-Identifier: Apache-2.0
/* The arguments of /control/record as numbers (struct http_request). */
#pragma once

#include "serve/http.h"

enum record_number {
	RECORD_NUMBER_ACTION, /* index in record_actions */
	RECORD_NUMBER_DURATION, /* nanoseconds; 0: none was given */
	RECORD_NUMBER_BYTES, /* the same */
	RECORD_NUMBER_PID,
};

enum { RECORD_ACTIONS = 3 };
extern const char *const record_actions[RECORD_ACTIONS]; /* by enum record_action (agent/record/record.h) */
