// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nvml/reader.h"

/*
 * The child's life: a pass for each command byte on the socket, an answer byte after it, until the agent
 * closes its end. Returns an exit status (enum nvml_child_exit). @library NULL: the usual one.
 */
int child_serve(struct nvml_shared *shared, int socket, const char *library);
