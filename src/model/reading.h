// SPDX-License-Identifier: Apache-2.0
/*
 * A reading: the result of one pass over the devices, as plain data.
 *
 * Readings are the only data that a device source passes to the model, in memory shared with the child
 * process that holds the driver's library. So a reading has no pointers, every array has a fixed capacity,
 * and the model trusts none of it: counts, indexes, presences and numbers are checked by reading_check()
 * before use.
 */
#pragma once

#include "model/metric.h"

enum {
	READING_ENTITIES_MAX = 256, /* GPUs and MIG instances of one node */
	READING_PROCESSES_MAX = 4096, /* (process, GPU) pairs */
	READING_EVENTS_MAX = 256,
	READING_TOPOLOGY_MAX = 32, /* GPUs in the topology matrices: those with lower indexes */
	READING_NONE = 0xffff,
};

enum reading_state {
	READING_OK = 0,
	READING_NO_LIBRARY, /* libnvidia-ml could not be loaded */
	READING_NO_DRIVER, /* loaded, but reports that the kernel driver is missing */
	READING_FAILED, /* loaded, but nvmlInit or the device count failed */
	READING_RELEASED, /* released on request */
	READING_STATES,
};

/* Numbers of a GPU with times of the driver's. */
enum stamped {
#define STAMPED(metric_, name_) STAMPED_##metric_,
#include "model/stamped.def"
#undef STAMPED
	STAMPED_METRICS
};
struct stamped_row {
	unsigned slot;
	const char *name;
};
extern const struct stamped_row stamped_rows[STAMPED_METRICS];

#define STAMP_AGE_MAX_NS (60 * INT64_C(1000000000))

/* What the driver's clock said in a reading. All zero: nothing. */
struct reading_stamps {
	int64_t offset_ns; /* to be added to CLOCK_REALTIME at the end of the reading, as measured */
	int64_t error_ns; /* how far off that may be; 0: the clock was not measured */
	uint8_t unusable; /* it jumps, stands still, or is too inexact: there are no times */
	uint8_t pad[3];
	int64_t at_ns[STAMPED_METRICS]; /* CLOCK_BOOTTIME; 0: it has no time */
};

/*
 * A GPU, or a MIG instance (then `parent` is its GPU's index in the array and gi, ci are set). GPUs come
 * before their instances.
 */
struct reading_entity {
	char uuid[96]; /* of the GPU; an instance has its parent's here and its own in mig_uuid */
	char mig_uuid[96];
	char name[96];
	char pci_bus_id[32]; /* "00000000:1B:00.0", as NVML writes it */
	char serial[32];
	char vbios[32];
	char architecture[16]; /* "hopper", lower case; empty when unknown */
	char mig_profile[32]; /* "1g.10gb" */
	char compute_capability[8]; /* "9.0" */
	uint32_t index; /* NVML index of the GPU */
	uint32_t minor; /* N of /dev/nvidiaN; UINT32_MAX unknown */
	int32_t numa_node; /* -1 unknown */
	uint32_t gi, ci; /* UINT32_MAX on a GPU */
	uint16_t parent; /* READING_NONE on a GPU */
	/* the driver reported "GPU is lost": the identity is the last known one, without values */
	uint8_t lost;
	uint8_t process_list; /* enum presence: could its processes be listed? */
	uint8_t process_util; /* enum presence: could their utilisation be read? */
	uint8_t mig_number; /* 1 and the driver's index of the instance among its GPU's; 0: not known */
	uint8_t pad[2];
	double v[GPU_SLOTS];
	uint8_t p[GPU_SLOTS]; /* enum presence, PRESENCE_ESTIMATED */
	struct reading_stamps stamps;
};

enum process_type { PROCESS_TYPE_COMPUTE = 1, PROCESS_TYPE_GRAPHICS = 2, PROCESS_TYPE_MPS = 4 };

struct reading_process {
	uint32_t pid;
	uint16_t entity; /* index in entities */
	uint8_t types; /* enum process_type bits */
	uint8_t pad;
	char name[64]; /* the driver's name for it, empty if not queried; /proc is preferred */
	double v[PROCESS_METRICS];
	uint8_t p[PROCESS_METRICS];
};

/* What is read of the driver, in groups (model/groups.def). */
enum reading_group {
#define GROUP(id_, ...) READING_GROUP_##id_,
#include "model/groups.def"
#undef GROUP
	READING_GROUPS,
	READING_GROUP_NONE = READING_GROUPS,
};
struct reading_group_row {
	const char *name, *help;
};
extern const struct reading_group_row reading_groups[READING_GROUPS];
/* Names separated by commas, as bits (1 << enum reading_group). -EINVAL: one is unknown, or empty. */
int reading_groups_parse(const char *names, int64_t *ret_groups);

struct reading_event {
	uint16_t entity;
	uint16_t pad;
	uint32_t gi, ci; /* UINT32_MAX none */
	uint32_t xid; /* XID code */
};

struct reading {
	uint32_t state; /* enum reading_state */
	int32_t nvml_error; /* nvmlReturn_t behind a state that is not OK */
	char error[256]; /* cause and remedy; empty if OK */
	int64_t begin_ns, end_ns; /* CLOCK_BOOTTIME around the pass */
	/* counts attachments to the driver by this child: another number means new handles */
	uint32_t attach;
	uint8_t simulated; /* the library is gpusonde's simulated driver */
	uint8_t pad[3];
	char driver_version[80];
	char nvml_version[80];
	char library[256]; /* path the library was loaded from */
	/* features of this driver that are not recognised, and so not read; empty: none */
	char unrecognised[512];
	uint32_t cuda_version; /* 13000 is 13.0; 0 unknown */
	uint32_t entities_n, processes_n, events_n;
	/* found in this pass, but beyond the capacity */
	uint32_t entities_dropped, processes_dropped, events_dropped;
	double group_seconds[READING_GROUPS]; /* spent in this pass; of groups that are left out 0 */
	uint32_t rejected[GPU_METRICS]; /* implausible values in this reading, by row */
	uint32_t rejected_process[PROCESS_METRICS];
	uint32_t gpus_unidentified; /* counted by the driver, but lost or inaccessible from the start */
	uint32_t topology_n; /* the matrices are by `index` of the GPUs; rows without a GPU are 0 */
	/* NVML common-ancestor level / 10 + 1; 0 unknown */
	uint8_t topology[READING_TOPOLOGY_MAX][READING_TOPOLOGY_MAX];
	/* direct or switched links between the two */
	uint8_t topology_nvlinks[READING_TOPOLOGY_MAX][READING_TOPOLOGY_MAX];
	struct reading_entity entities[READING_ENTITIES_MAX];
	struct reading_process processes[READING_PROCESSES_MAX];
	struct reading_event events[READING_EVENTS_MAX];
};

/* Of a reading that ended at @end_ns (since boot): what cannot be is none. */
void reading_check_stamps(struct reading_stamps *stamps, int64_t end_ns);
/*
 * Validates a reading. Terminates every string, rejects counts and indexes out of range (-EBADMSG), and turns
 * implausible numbers and unknown presences into PRESENCE_REJECTED, counting them. Changes only the reading.
 */
int reading_check(struct reading *reading);
