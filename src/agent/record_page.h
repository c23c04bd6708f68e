// SPDX-License-Identifier: Apache-2.0
/* /control/record: what is recorded, and asking for it (web/routes.def). */
#pragma once

#include <jansson.h>

#include "agent/record.h"
#include "serve/http.h"

/* The request that the query's arguments make. False: @reply says what they must be. */
bool record_page_parse(const struct http_request *request, struct record_request *ret_request,
		       struct http_reply *reply);
/* NULL: no memory. */
json_t *record_page_status(struct record *record);
