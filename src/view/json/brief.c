// SPDX-License-Identifier: Apache-2.0
/* What is left out of a document for screens (JSON_BRIEF), besides members that are null. */
#include "view/view.h"

#include <string.h>

#include "base/macro.h"

/*
 * Members, at any depth, that no column, curve, state or warning of a screen is of. "*" at the end: all that
 * begin so.
 */
static const struct {
	const char *name;
	size_t length;
} unread[] = {
#define UNREAD(name_)                    \
	{                                \
		name_, sizeof(name_) - 1 \
	}
	UNREAD("unavailable"), /* why there is no number: "-" in any case */
	UNREAD("recent"), /* of `ps --last` */
	UNREAD("nvlink_link_*"), /* by link */
	UNREAD("ecc_aggregate_errors_total"),
	UNREAD("attribution_*"),
	UNREAD("bar1_memory_bytes"),
	UNREAD("c2c_errors_total"),
	UNREAD("clock_application_hertz"),
	UNREAD("clock_max_hertz"),
	UNREAD("driver_clock"),
	UNREAD("engine_busy_seconds_total"),
	UNREAD("memory_byte_seconds_total"),
	UNREAD("nvlink_errors_total"),
	UNREAD("nvlink_raw_*"),
	UNREAD("pcie_errors_total"),
	UNREAD("row_remapper_banks"),
	UNREAD("sm_cycles_total"),
	UNREAD("throttle_seconds_total"),
	UNREAD("agent"),
	UNREAD("architecture"),
	UNREAD("compute_capability"),
	UNREAD("graphics_engine_active_ratio"),
	UNREAD("jpeg"),
	UNREAD("memory_free_bytes"),
	UNREAD("memory_reserved_bytes"),
	UNREAD("memory_used_peak_bytes"),
	UNREAD("nvlink_rx_bytes_total"),
	UNREAD("nvlink_tx_bytes_total"),
	UNREAD("observed_seconds_total"),
	UNREAD("ofa"),
	UNREAD("pcie_rx_bytes_total"),
	UNREAD("pcie_tx_bytes_total"),
	UNREAD("power_instant_watts"),
	UNREAD("sampled_at"),
	UNREAD("serial"),
	UNREAD("temperature_margin_celsius"),
	UNREAD("utilization_max_ratio"),
	UNREAD("vbios"),
	UNREAD("vgpu_license"),
#undef UNREAD
};

bool json_brief_omits(const char *name, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(unread); i++) {
		size_t n = unread[i].length;
		bool begins = unread[i].name[n - 1] == '*';

		n -= begins;
		if ((begins ? length > n : length == n) && memcmp(name, unread[i].name, n) == 0)
			return true;
	}
	return false;
}
