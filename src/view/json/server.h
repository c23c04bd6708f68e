// SPDX-License-Identifier: Apache-2.0
/* Member `inference` of the node: inference servers. */
#pragma once

#include "view/json/json.h"

/* null: nobody looks for them. */
json_t *json_inference(struct json_maker *j);
/* The inverse. @snapshot has the time of the document. */
void json_read_inference(const json_t *object, struct snapshot *snapshot);
