// SPDX-License-Identifier: Apache-2.0
/* The one thing that is said above all tabs: what is wrong, and what is to be done. */
#pragma once

#include "cmd/top/sample.h"

struct alert {
	bool severe;
	char text[400];
};

/*
 * No data at all; a GPU that is gone; one that should not be used as it is; the newest XID of the last hour;
 * other warnings of GPUs; a finding. The first of them; false: nothing is wrong.
 */
bool alert_newest(const struct sample *sample, struct alert *ret_alert);
