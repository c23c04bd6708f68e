// SPDX-License-Identifier: Apache-2.0
/* Member `host` of the node: the machine's own figures. */
#pragma once

#include "view/json/json.h"

/* null: nobody reads them. */
json_t *json_host(struct json_maker *j);
/* The inverse. */
void json_read_host(const json_t *object, struct host *ret_host);
