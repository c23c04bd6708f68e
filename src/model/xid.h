// SPDX-License-Identifier: Apache-2.0
/*
 * Meaning of NVIDIA's XID codes and what to do about them: the table in xid.def, in our own words.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* What DCGM exporters print the code of a GPU's last XID as: up to 4.8, and from 4.9 on. */
#define DCGM_XID_OLD "DCGM_FI_DEV_XID_ERRORS"
#define DCGM_XID_49 "DCGM_FI_DEV_XID_ERROR"

/* How serious the error is for the GPU and its programs. */
enum xid_severity {
	XID_INFO, /* a note of the driver; nothing is lost */
	XID_APP, /* an error of a program, which is ended or has wrong results */
	XID_WARNING, /* the driver or the hardware had a fault and has recovered, or may have */
	XID_CRITICAL, /* the GPU cannot be trusted until the action is taken */
	XID_SEVERITIES,
};

/* Recommended action. */
enum xid_action {
	XID_IGNORE,
	XID_CHECK_APP,
	XID_RESTART_APP,
	XID_WATCH, /* count it; act if it recurs */
	XID_UPDATE, /* driver or firmware */
	XID_RESET_GPU,
	XID_REBOOT,
	XID_CHECK_POWER,
	XID_CHECK_LINKS, /* NVLink, NVSwitch, cabling, fabric manager */
	XID_REPLACE, /* take the node out of service and have the board examined */
	XID_ACTIONS,
};

/*
 * Where an error most likely comes from. An estimate, made from the advice: what restarting a program mends
 * is of the program, what an update mends is of the driver, what needs a reset or a hand is of the hardware.
 */
enum xid_origin {
	XID_FROM_APPLICATION,
	XID_FROM_DRIVER,
	XID_FROM_HARDWARE,
	XID_FROM_UNKNOWN,
	XID_ORIGINS,
};

struct xid_description {
	uint32_t first, last; /* range of codes with the same meaning */
	enum xid_severity severity;
	enum xid_action action;
	const char *name; /* short: "GPU has fallen off the bus" */
	const char *meaning; /* a sentence */
};

/* The description of a code; for an unknown code one that says so. Never NULL. */
const struct xid_description *xid_describe(uint32_t code);

enum xid_origin xid_origin(const struct xid_description *description);
/* "application", "driver", "hardware", "unknown". */
const char *xid_origin_name(enum xid_origin origin);
/* "info", "app", "warning", "critical"; and the action as a sentence. */
const char *xid_severity_name(enum xid_severity severity);
const char *xid_action_text(enum xid_action action);

/*
 * A PCI address as the kernel log and NVML write it ("PCI:0000:3b:00", "0000:3B:00.0", "00000000:3B:00.0"),
 * in NVML's form with eight digits of domain, upper case. 0 or -EINVAL.
 */
int xid_bus_id(const char *text, size_t length, char ret_bus_id[static 32]);
