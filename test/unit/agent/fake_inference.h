// SPDX-License-Identifier: Apache-2.0
#pragma once

/* Argument: the owner's PID. */
#define FAKE_INFERENCE "/tmp/gpusonde-fake-inference-%d"
/* The same; has the PID of the finder that has answered. */
#define FAKE_INFERENCE_FINDER FAKE_INFERENCE "-finder"
