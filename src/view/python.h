// SPDX-License-Identifier: Apache-2.0
/* Waits for Python's lock, and collections of garbage (model/python.h), as a table and JSON. */
#pragma once

#include "base/strbuf.h"
#include "model/python.h"
#include "view/view.h"

/* By process and thread, who waited longest first; a sentence if there are none. 0, or -ENOMEM/-E2BIG. */
int table_python(const struct python_view *view, const struct table_options *options, struct strbuf *out);
/* An object: processes with their threads, and sums. 0, or -ENOMEM/-E2BIG. */
int json_python(const struct python_view *view, struct strbuf *out);
