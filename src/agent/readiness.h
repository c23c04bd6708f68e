// SPDX-License-Identifier: Apache-2.0
/*
 * Is this node's data current? One answer for /readyz, systemd's status line and doctor.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/snapshot.h"

#define PCI_DEVICES "/sys/bus/pci/devices"

/*
 * The number of NVIDIA display devices and accelerators below @root (PCI_DEVICES), with or without a driver;
 * -errno.
 */
int pci_gpus(const char *root);

/*
 * Ready when the newest reading is recent and complete, or when there is neither a driver nor a GPU. @why is
 * then a summary of the node, else the cause and the remedy. A main loop that has stopped publishing is
 * detected by @now_boot_ns.
 */
bool readiness(const struct snapshot *snapshot, int64_t now_boot_ns, char *why, size_t size);

/* Whether the main loop has published lately. A live agent need not be ready. */
bool liveness(const struct snapshot *snapshot, int64_t now_boot_ns);
