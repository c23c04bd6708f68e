// SPDX-License-Identifier: Apache-2.0
/*
 * gpusonde-owners: tells the agent who owns the node's containers and pods, so that a hung file system or
 * server delays nothing but their names.
 */
#pragma once

#include "helper/confine.h"

extern const struct confinement owners_confinement;

/* Answers struct owners_question on @channel until the agent closes it. Returns the exit status. */
int owners_serve(int channel);
