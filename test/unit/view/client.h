// SPDX-License-Identifier: Apache-2.0
/* What clients read of a snapshot. The caller's. */
#pragma once

#include <jansson.h>

#include "model/snapshot.h"
#include "view/view.h"

char *client_page(const struct snapshot *s, enum exposition format);
json_t *client_document(const struct snapshot *s, unsigned sections);
