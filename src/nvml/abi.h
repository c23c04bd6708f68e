// SPDX-License-Identifier: Apache-2.0
#pragma once

/*
 * The C interface of NVIDIA's management library (NVML), as declared by gpusonde.
 *
 * gpusonde opens libnvidia-ml.so.1 at run time and never builds against NVIDIA's header, so this header
 * declares what it calls: constants under their public names, structs and members in our own style. Two
 * programs include it: the agent's NVML child (`typeof(nvmlDeviceGetCount_v2) *` gives a pointer type for
 * dlsym) and the simulated driver in sim/, which implements every function declared here.
 *
 * Invariants
 *  1. Layouts are those of LP64 systems; every size is asserted where the struct is declared.
 *  2. A struct carries its NVML name in a comment behind its opening brace and has NVML's members in NVML's
 *     order; a constant with a name of our own has NVML's name in a comment. The ABI test reads both and
 *     compares them with NVIDIA's own header, where that is available.
 *  3. Enumerations are passed as integers. A value from the driver is not trusted to be one of the constants
 *     below.
 *  4. Nothing here is code, and nothing here allocates.
 */

#include "nvml/abi_base.h"
#include "nvml/abi_clock.h"
#include "nvml/abi_device.h"
#include "nvml/abi_event.h"
#include "nvml/abi_field.h"
#include "nvml/abi_gpm.h"
#include "nvml/abi_license.h"
#include "nvml/abi_link.h"
#include "nvml/abi_memory.h"
#include "nvml/abi_mig.h"
#include "nvml/abi_process.h"
#include "nvml/abi_topology.h"
#include "nvml/abi_util.h"
