// SPDX-License-Identifier: Apache-2.0
/*
 * Completions of shells, generated from the tables of commands, flags and options.
 */
#pragma once

#include "cmd/cmd.h"

void completion_bash(struct strbuf *out);
void completion_zsh(struct strbuf *out);
void completion_fish(struct strbuf *out);
