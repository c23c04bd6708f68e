// SPDX-License-Identifier: Apache-2.0
/*
 * Is this node's data good? One answer for /readyz, systemd's status line and doctor.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/snapshot.h"

#define PCI_DEVICES "/sys/bus/pci/devices"

/* NVIDIA display devices and accelerators on the PCI bus below @root (PCI_DEVICES), driver or not. -errno. */
int pci_gpus(const char *root);

/*
 * Ready when the newest reading is recent and complete, or when there is nothing to read: no driver, and no
 * GPU either. @why then says what is there; else the cause and the remedy. `now_boot_ns` finds a main loop
 * that has stopped publishing.
 */
bool readiness(const struct snapshot *snapshot, int64_t now_boot_ns, char *why, size_t size);

/* Has the main loop published lately? Alive is less than ready. */
bool liveness(const struct snapshot *snapshot, int64_t now_boot_ns);
