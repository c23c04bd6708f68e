// SPDX-License-Identifier: Apache-2.0
/* What processes do with PyTorch (model/torch.h) as a table and JSON. */
#pragma once

#include "base/strbuf.h"
#include "model/torch.h"
#include "view/view.h"

/* Allocators, then names with counts, by process; nothing if there is nothing. 0, or -ENOMEM/-E2BIG. */
int table_torch(const struct torch_view *view, const struct table_options *options, struct strbuf *out);
/* An object with a list of processes. 0, or -ENOMEM/-E2BIG. */
int json_torch(const struct torch_view *view, struct strbuf *out);
