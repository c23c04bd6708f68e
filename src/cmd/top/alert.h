// SPDX-License-Identifier: Apache-2.0
/* The one thing that is said above all tabs: what is wrong, and what is to be done. */
#pragma once

#include "cmd/top/columns.h"

struct alert {
	bool severe;
	enum tab tab; /* which has more of it */
	const struct sample *sample; /* of the machine that it is of */
	const json_t *finding; /* NULL: it is none */
	char text[400];
};

/*
 * No data at all; a GPU that is gone; one that should not be used as it is; the newest XID of the last hour;
 * other warnings of GPUs; the newest finding. The first of them; false: nothing is wrong.
 */
bool alert_newest(const struct sample *sample, struct alert *ret_alert);
