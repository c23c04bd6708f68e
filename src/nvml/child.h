// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nvml/reader.h"

/*
 * The child's main loop: for each command byte on the socket, one pass and one answer byte, until the agent
 * closes its end. Returns an exit status (enum nvml_child_exit). @library NULL: the default.
 */
int child_serve(struct nvml_shared *shared, int socket, const char *library);
