// SPDX-License-Identifier: Apache-2.0
/* /control/record: what is recorded, and asking for it (web/routes.def). */
#pragma once

#include <jansson.h>

#include "agent/record/record.h"
#include "serve/http.h"

/* The request that the numbers make, which another process may have sent. -EINVAL. */
int record_page_request(const struct http_request *request, struct record_request *ret_request);
const char *record_action_name(enum record_action action);
/* NULL: no memory. */
json_t *record_page_status(struct record *record);
