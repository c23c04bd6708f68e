// SPDX-License-Identifier: Apache-2.0
/* What people have chosen, kept in $XDG_CONFIG_HOME/gpusonde/top (~/.config/gpusonde/top), a line each. */
#pragma once

#include "cmd/top/state.h"

/* What is missing or makes no sense there is left as it is. */
void settings_load(struct top *top);
/* If it differs from what is there; without a home nothing is kept. */
void settings_save(const struct top *top);

/* The same from and to a text. */
void settings_parse(struct top *top, const char *text);
void settings_format(const struct top *top, struct strbuf *out);
