// SPDX-License-Identifier: Apache-2.0
/* Arguments of requests: a list that ends with name NULL, as the request's priv. */
#pragma once

#include "base/macro.h"
#include "serve/http.h"

struct argument {
	const char *name, *value;
};

static inline const char *argument_of(const struct http_request *request, const char *name)
{
	for (const struct argument *a = request->priv; a->name; a++)
		if (STRV_EQ(a->name, name))
			return a->value;
	return NULL;
}
