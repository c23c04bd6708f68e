// SPDX-License-Identifier: Apache-2.0
/* What an analysis has found out (model/finding.h), as text and JSON. */
#pragma once

#include "base/strbuf.h"
#include "model/finding.h"
#include "view/view.h"

enum { FINDING_VALUE_TEXT = 64 };
/* "12.0 %", "3.4 ms", ...: the value with its unit. */
void finding_value_text(const struct finding_value *value, char text[static FINDING_VALUE_TEXT]);

enum { FINDING_VALUE_NAME = 96 };
/* What the value is called in JSON, with its unit: "slowest_seconds". */
void finding_value_name(const struct finding_value *value, char name[static FINDING_VALUE_NAME]);

/* What a member of the evidence is in JSON, where its name says the unit: "slowest_seconds". */
struct finding_value finding_value_of(const char *member, double value);

/* A paragraph for each finding, then which rules could not be judged. 0, or -ENOMEM/-E2BIG. */
int text_findings(const struct findings *findings, const struct table_options *options, struct strbuf *out);
/* An object: findings, rules. 0, or -ENOMEM/-E2BIG. */
int json_findings(const struct findings *findings, struct strbuf *out);
