// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * What kind of GPU it is: the numbers that data sheets give and the calls that such a board's driver
 * answers. One row of models.def each; a scenario names a row and may override any of it.
 */
struct model {
	char id[24]; /* in scenarios */
	char name[64];
	char part_number[24];
	char vbios[24];
	uint32_t architecture; /* NVML_DEVICE_ARCH_... */
	uint32_t brand;
	uint32_t compute_major, compute_minor;
	uint32_t pci_device; /* device << 16 | vendor */
	uint32_t pci_subsystem;
	uint32_t cores, multiprocessors, bus_width;

	uint32_t memory_mib, reserved_mib, bar1_mib;

	uint32_t idle_mw, demand_mw; /* drawn with nothing to do, and at full load if there were no limit */
	uint32_t limit_mw, limit_min_mw, limit_max_mw;
	/* highest, and what each falls to */
	uint32_t sm_mhz, sm_idle_mhz, memory_mhz, memory_idle_mhz, video_mhz;
	uint32_t idle_pstate;
	int32_t ambient_c, hot_c; /* at no power, and at the default limit */
	uint32_t slowdown_c, shutdown_c, memory_max_c, gpu_max_c;
	uint32_t fans, fan_rpm;

	uint32_t pcie_generation, pcie_width;
	uint32_t nvlinks, nvlink_version, nvlink_mbps; /* of one link, one way, in MB/s */

	/* Engines in sum, and what each kind of call is answered with. */
	uint32_t encoders, decoders, jpegs, ofas;
	uint32_t mig_slices; /* 0: not capable of MIG */
	bool ecc, retired_pages, row_remapping, gpm, accounting, energy, memory_temperature,
		process_utilization, samples;
	bool display, switched; /* NVLinks lead to switches */
	bool gsp, fabric, counted_pcie;
};

/* The row of that id; NULL. */
const struct model *model_find(const char *id);

/* The ids, one after the other; NULL after the last. */
const char *model_id(unsigned index);
