// SPDX-License-Identifier: Apache-2.0
/* What an analysis has found out (model/finding.h), as text and JSON. */
#pragma once

#include "base/strbuf.h"
#include "model/finding.h"
#include "view/view.h"

/* A paragraph for each finding, then which rules could not be judged. 0, or -ENOMEM/-E2BIG. */
int text_findings(const struct findings *findings, const struct table_options *options, struct strbuf *out);
/* An object: findings, rules. 0, or -ENOMEM/-E2BIG. */
int json_findings(const struct findings *findings, struct strbuf *out);
