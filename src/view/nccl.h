// SPDX-License-Identifier: Apache-2.0
/* NCCL's figures (model/nccl.h) as tables and JSON. */
#pragma once

#include "base/strbuf.h"
#include "model/nccl.h"
#include "model/nccl_measured.h"
#include "view/view.h"

/* Operations, communicators and groups by process; a sentence if there are none. 0, or -ENOMEM/-E2BIG. */
int table_nccl(const struct nccl_view *view, const struct table_options *options, struct strbuf *out);
/* An object: processes with their operations and communicators, and sums. 0, or -ENOMEM/-E2BIG. */
int json_nccl(const struct nccl_view *view, struct strbuf *out);

/* The same of what its plugin measured; the table is empty if that is nothing. */
int table_measured(const struct nccl_measurements *measured, const struct table_options *options,
		   struct strbuf *out);
int json_measured(const struct nccl_measurements *measured, struct strbuf *out);
/* Over all processes that ever were. */
int json_measured_totals(const struct nccl_measurements *measured, struct strbuf *out);
