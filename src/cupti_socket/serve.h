// SPDX-License-Identifier: Apache-2.0
#pragma once

/* Until the agent closes @channel; returns the exit status. */
int cupti_serve(int channel);
