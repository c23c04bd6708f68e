// SPDX-License-Identifier: Apache-2.0
/* Each kind of work of gpusonde-reader, with the rights that it needs. */
#pragma once

#include <stddef.h>

#include "helper/confine.h"

struct reader_role {
	const char *name; /* the program's argument; NULL ends the table */
	struct confinement confinement;
	int (*serve)(int channel); /* until the owner closes it; returns the exit status */
};

extern const struct reader_role reader_roles[];

/* NULL: none has that name. */
const struct reader_role *reader_role_find(const char *name);
