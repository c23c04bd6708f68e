// SPDX-License-Identifier: Apache-2.0
/* A finding's own screen: what was found, by which figures, of what, what to do, and where to look. */
#pragma once

#include "cmd/top/state.h"

/* Shows this one, of the sample's machine. */
void finding_open(struct top *top, const struct sample *sample, const json_t *finding);
/* The first of the process whose screen is shown, those of now before others. False: it has none. */
bool finding_open_of_process(struct top *top);
/* The one after that which is shown: of the same process, where that was the screen before. */
void finding_open_next(struct top *top);
