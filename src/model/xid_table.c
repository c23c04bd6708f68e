// SPDX-License-Identifier: Apache-2.0
#include "model/xid.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/cursor.h"
#include "base/macro.h"

static const struct xid_description descriptions[] = {
#define XID(first_, last_, severity_, action_, name_, meaning_) \
	{ (first_), (last_), (severity_), (action_), (name_), (meaning_) },
#include "model/xid.def"
};

static const struct xid_description unknown = {
	.first = 0,
	.last = UINT32_MAX,
	.severity = XID_WARNING,
	.action = XID_WATCH,
	.name = "Unknown XID",
	.meaning =
		"A code that gpusonde has no description of; NVIDIA's documentation of XID errors may have "
		"one.",
};

static const char *const severity_names[XID_SEVERITIES] = {
	[XID_INFO] = "info",
	[XID_APP] = "app",
	[XID_WARNING] = "warning",
	[XID_CRITICAL] = "critical",
};

static const char *const action_texts[XID_ACTIONS] = {
	[XID_IGNORE] = "Nothing to do.",
	[XID_CHECK_APP] =
		"Debug the program (compute-sanitizer); restart it. The GPU is fine unless others see this "
		"too.",
	[XID_RESTART_APP] = "Restart the program; when it comes back, report it to NVIDIA.",
	[XID_WATCH] = "Keep an eye on it; act when it comes often.",
	[XID_UPDATE] = "Update driver and firmware; when it comes back, report it to NVIDIA.",
	[XID_RESET_GPU] =
		"Stop the GPU's programs and reset it (nvidia-smi --gpu-reset); when it comes back, report "
		"it to NVIDIA.",
	[XID_REBOOT] =
		"Drain the node and reboot it; when it comes back, have board, slot and power examined.",
	[XID_CHECK_POWER] = "Check the board's power cables and supply.",
	[XID_CHECK_LINKS] =
		"Check NVLink: fabric manager, NVSwitches, bridges and cables; reset the GPU if the link "
		"stays down.",
	[XID_REPLACE] =
		"Take the GPU out of service, run a field diagnostic, and have the board replaced if it "
		"fails.",
};

static const char *const origin_names[XID_ORIGINS] = {
	[XID_FROM_APPLICATION] = "application",
	[XID_FROM_DRIVER] = "driver",
	[XID_FROM_HARDWARE] = "hardware",
	[XID_FROM_UNKNOWN] = "unknown",
};

static const enum xid_origin origins[XID_ACTIONS] = {
	[XID_IGNORE] = XID_FROM_DRIVER,           [XID_CHECK_APP] = XID_FROM_APPLICATION,
	[XID_RESTART_APP] = XID_FROM_APPLICATION, [XID_WATCH] = XID_FROM_UNKNOWN,
	[XID_UPDATE] = XID_FROM_DRIVER,           [XID_RESET_GPU] = XID_FROM_HARDWARE,
	[XID_REBOOT] = XID_FROM_HARDWARE,         [XID_CHECK_POWER] = XID_FROM_HARDWARE,
	[XID_CHECK_LINKS] = XID_FROM_HARDWARE,    [XID_REPLACE] = XID_FROM_HARDWARE,
};

enum xid_origin xid_origin(const struct xid_description *description)
{
	return origins[description->action];
}

const char *xid_origin_name(enum xid_origin origin)
{
	return origin_names[origin];
}

const struct xid_description *xid_describe(uint32_t code)
{
	for (size_t i = 0; i < ARRAY_SIZE(descriptions) && descriptions[i].first <= code; i++)
		if (code <= descriptions[i].last)
			return &descriptions[i];
	return &unknown;
}

const char *xid_severity_name(enum xid_severity severity)
{
	return severity_names[severity];
}

const char *xid_action_text(enum xid_action action)
{
	return action_texts[action];
}

/* Hexadecimal digits of a number below `limit`. */
static bool hex_below(struct cursor *c, uint64_t limit, uint64_t *ret_value)
{
	return cursor_hex(c, ret_value) == 0 && *ret_value < limit;
}

int xid_bus_id(const char *text, size_t length, char ret_bus_id[static 32])
{
	struct cursor c = cursor_over(text, length);
	uint64_t domain, bus, device, function = 0;

	cursor_literal(&c, "PCI:");
	if (!hex_below(&c, UINT64_C(1) << 32, &domain) || !cursor_literal(&c, ":") ||
	    !hex_below(&c, 256, &bus) || !cursor_literal(&c, ":") || !hex_below(&c, 32, &device))
		return -EINVAL;
	if (cursor_literal(&c, ".") && !hex_below(&c, 8, &function))
		return -EINVAL;
	if (!cursor_eof(&c))
		return -EINVAL;
	snprintf(ret_bus_id, 32, "%08X:%02X:%02X.%X", (unsigned)domain, (unsigned)bus, (unsigned)device,
		 (unsigned)function);
	return 0;
}
