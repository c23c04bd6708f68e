// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "helper/confine.h"

extern const struct confinement inference_confinement;
/* gpusonde-inference's end: serves until the owner closes the socket. Returns the exit status. */
int inference_serve(int channel, pid_t owner);
