// SPDX-License-Identifier: Apache-2.0
/*
 * The reader: one pass over the devices through NVML, into a struct reading. It is what the child process
 * does; tests give it a table of fake functions.
 *
 * Invariants
 *  1. Every call of the driver goes through NVML_CALL, which reports the current call to the agent and
 *     detects a lost GPU or an unloaded driver.
 *  2. No answer is trusted: numbers pass reader_report*(), which turns errors into presences and rejects
 *     impossible values.
 *  3. A pass allocates nothing, except for a process table that grows with the number of processes.
 *  4. Values that are read rarely stay in the reading until they are read again; increments are written in
 *     each pass.
 *  5. One thread. It waits for the driver only.
 */
#pragma once

#include <stdbool.h>

#include "base/hashmap.h"
#include "base/macro.h"
#include "nvml/library.h"
#include "nvml/shared.h"
#include "nvml/stamps.h"

enum {
	FIELD_BITS = 2048, /* (field, index) pairs that one device can be asked for */
	GETTERS_MAX = 64,
	PROCESS_NAME_CALLS = 16, /* names of processes asked in one pass */
	CLOCK_SLACK_US = 1000000, /* a time stamp further in the future means that the clock was set back */
};

/* The state of one device or MIG instance besides its reading_entity. The arrays run in parallel. */
struct device {
	struct nvml_device *handle;
	struct reading_entity *entity;
	struct persistent_state *slot; /* where its state goes when the pass is complete */
	struct persistent_state work;
	uint16_t parent; /* index of a MIG instance's GPU, READING_NONE */
	bool sole_ci; /* the only compute instance of its GPU instance */
	bool mig; /* a GPU with MIG on: its instances have the processes and the utilisation */
	bool due[CADENCE_STATIC + 1]; /* what to read in this pass */
	unsigned missing; /* parts of its identity that may be readable later */
	int64_t next_ns[CADENCE_STATIC + 1]; /* when slow and static metrics are due, CLOCK_BOOTTIME */
	int64_t retry_ns; /* when unsupported ones are asked again */
	/* read.c: whether its work is read in this pass; the CPU time that took in the newest that did */
	bool work_due, read_before;
	bool occupied; /* the newest pass saw processes on it */
	int64_t work_cost_ns;
	int64_t work_ns, work_elapsed_ns; /* the newest pass that read it; time since the one before */
	int64_t pass_ns,
		elapsed_ns; /* begin of its newest pass, and the time since the previous one (0: none) */
	uint64_t reasons_known; /* clocks.c: bits that the driver reports as supported */
	uint64_t getters_off; /* bit of the getter table: unsupported */
	uint64_t fields_off[FIELD_BITS / 64];
	uint64_t ecc_off; /* ecc.c: a bit for each row */
	uint32_t nvlinks, c2c_links;
	uint8_t switched; /* links to switches (topology.c) */
	/* samples.c */
	uint8_t samples_off; /* bit of enum engine: GetSamples is unsupported */
	uint8_t rates_off;
	uint64_t newest_us[ENGINES];
	uint64_t period_us[ENGINES];
	int64_t utilized_ns; /* newest pass with a window that was not empty */
	/* gpm.c */
	struct nvml_gpm_sample *gpm[2];
	int64_t gpm_ns[2]; /* when taken, 0 not */
	int64_t gpm_retry_ns; /* failed: not before this */
	unsigned gpm_newest;
	bool gpm_works; /* the newest pair of samples was valid */
	bool gpm_read; /* ... in this pass */
	double gpm_seconds; /* its length */
	enum nvml_return gpm_result; /* while it does not work: why */
	/* memory.c */
	bool memory_known; /* its newest reading had it */
	/* power.c */
	bool energy_estimated;
	/* pcie.c, nvlink.c: totals at the newest pass, for rates; negative: none yet */
	double pcie_last[DIRECTIONS], nvlink_last[DIRECTIONS], link_last[NVLINKS_MAX];
	uint16_t process_calls_off; /* processes.c: a bit for each list and version of its call */
	bool process_util_off;
	int64_t process_period_us; /* shortest time between samples of processes; 0: not known yet */
	struct driver_clock clock;
};

/* The state of one process on one entity between passes. */
struct process_state {
	uint32_t pid;
	uint16_t entity;
	bool used;
	bool named; /* the driver was asked for its name */
	uint32_t pass; /* newest pass that saw it */
	uint32_t sampled_pass; /* newest pass with a sample of its utilisation */
	uint32_t observed_pass; /* newest pass in which its utilisation was asked for */
	uint32_t index; /* its place in the reading of that pass */
	uint32_t aged_pass; /* newest pass that added its time to the two below */
	uint64_t sample_us; /* newest sample of its utilisation; 0 none yet */
	int64_t since_us; /* observed since then */
	int64_t uncovered_us; /* observed time not covered by samples */
	uint8_t percent[ENGINES]; /* of the newest sample */
	char name[64];
};

struct process_table {
	struct hashmap map; /* entity << 32 | pid -> index in states */
	uint32_t states_n; /* ever used, from the front */
	uint32_t free_hint;
	uint16_t of_reading[READING_PROCESSES_MAX]; /* place in this pass's reading -> index in states */
	struct process_state states[READING_PROCESSES_MAX];
};

struct reader {
	struct nvml_api api;
	struct nvml_library library;
	struct nvml_shared *shared;
	struct reading *reading;
	const char *library_name;
	bool fake; /* a test provided the table: no library to open */
	bool attached;
	bool gone; /* the driver was found unloaded in this pass */
	bool changed; /* an index or handle became invalid: enumerate again */
	bool reattach; /* ... and the library must be initialised again to see what is there */
	/* GPUs that the kernel module lists; more or fewer than at first: initialise again */
	uint32_t kernel_gpus;
	bool lost, system_incomplete; /* the last calls' GPU is; versions may be readable later */
	enum nvml_return gone_result;
	int64_t retry_ns, backoff_ns;
	int64_t layout_ns, lost_retry_ns, lost_backoff_ns; /* layout: its next comparison */
	int64_t group_ns; /* when the group under way began, CLOCK_MONOTONIC */
	int64_t now_ns; /* CLOCK_BOOTTIME and CLOCK_REALTIME at the begin of the pass */
	int64_t real_us;
	uint32_t pass, names_asked;
	unsigned driver; /* 550 of 550.163.01; 0 unknown */
	uint32_t gpus, unlisted; /* as the driver counts; of these, lost before their identity was read */
	int64_t identify_retry_ns, identify_backoff_ns; /* layout.c: of what could not be identified */
	struct nvml_event_set *events;
	int64_t events_retry_ns;
	bool events_registered[READING_ENTITIES_MAX];
	struct device devices[READING_ENTITIES_MAX];
	struct process_table processes;
};

/*
 * Calls a driver's function by its name in nvml.def; NVML_ERROR_FUNCTION_NOT_FOUND where the library has
 * none. Not for functions that return no enum nvml_return.
 */
#define NVML_CALL(reader_, name_, ...)                                     \
	__extension__({                                                    \
		struct reader *_reader = (reader_);                        \
		enum nvml_return _result = NVML_ERROR_FUNCTION_NOT_FOUND;  \
		if (_reader->api.name_) {                                  \
			reader_call_begin(_reader, NVML_FUNCTION_##name_); \
			_result = _reader->api.name_(__VA_ARGS__);         \
			reader_call_end(_reader, _result);                 \
		}                                                          \
		_result;                                                   \
	})

/* Adds a phrase without semicolons to the list of unrecognised driver features; duplicates are ignored. */
void reader_unrecognised(struct reader *reader, const char *format, ...) _printf_(2, 3);
/* After opening a library: lists the functions that it lacks. */
void unrecognised_begin(struct reader *reader);
/* Lists a call whose result is unexpected. */
void unrecognised_call(struct reader *reader, unsigned function, enum nvml_return result);

void reader_call_begin(struct reader *reader, enum nvml_function function);
void reader_call_end(struct reader *reader, enum nvml_return result);

/*
 * Around what belongs to a group, whose time is counted; groups do not nest. False: it is left out. Both do
 * nothing for READING_GROUP_NONE.
 */
bool reader_group_begin(struct reader *reader, enum reading_group group);
void reader_group_end(struct reader *reader, enum reading_group group);

/*
 * Around calls that tell what a device has done since they were last made: utilisation, energy,
 * utilisation of its processes. Drivers spend milliseconds of CPU time on them. So that a GPU that nobody
 * uses takes no more than a thousandth of a core, all of them may be left out of a pass of such a one.
 * Returns when they began; negative: leave them out.
 */
int64_t reader_work_begin(const struct device *device);
void reader_work_end(struct device *device, int64_t begin_ns);

/* Is a sample with this time stamp newer than @since_us, and not from the future? */
static inline bool reader_in_time(const struct reader *reader, uint64_t timestamp_us, uint64_t since_us)
{
	return timestamp_us > since_us && timestamp_us <= (uint64_t)reader->real_us + CLOCK_SLACK_US;
}

static inline unsigned device_index(const struct reader *reader, const struct device *device)
{
	return (unsigned)(device - reader->devices);
}

/*
 * Whole passes (read.c). @reader is zeroed memory, of which only the part needed for devices and processes is
 * touched; @shared is mapped, and zeroed or carries persistent state; @library_name NULL is the default.
 */
void reader_init(struct reader *reader, struct nvml_shared *shared, const char *library_name);
void reader_done(struct reader *reader);
void reader_pass(struct reader *reader);

/* Attaching and detaching (attach.c, layout.c, identity.c). */
void reader_attach(struct reader *reader);
void reader_detach(struct reader *reader);
/* Fills the entities from scratch. Anything but NVML_SUCCESS means that the driver is not usable now. */
enum nvml_return reader_enumerate(struct reader *reader);
/* Whether GPUs and instances are as enumerated, and none can be identified that could not be then. */
bool reader_layout_same(struct reader *reader);
void identity_system(struct reader *reader);
/* How many parts may be readable later; -ENODEV: the device's identity cannot be read. */
int identity_device(struct reader *reader, struct nvml_device *handle, uint32_t index,
		    struct reading_entity *entity);
void identity_instance(struct reader *reader, struct nvml_device *handle, struct reading_entity *entity);
void persistent_state_find(struct reader *reader, struct device *device);
void persistent_state_commit(struct reader *reader);

/* Parts of a pass over one device, each in the file of its name. */
void values_expire(struct reader *reader, struct device *device); /* expire.c */
void getters_read(struct reader *reader, struct device *device);
void fallback_getters_read(struct reader *reader, struct device *device);
void fields_read(struct reader *reader, struct device *device);
bool fields_has(const struct device *device, unsigned row); /* has the driver this row's own field? */
uint32_t fields_links(struct reader *reader, struct nvml_device *handle, uint16_t field);
void gpm_read(struct reader *reader, struct device *device);
void gpm_done(struct reader *reader, struct device *device);
void samples_read(struct reader *reader, struct device *device);
/*
 * A rate in bytes per second, from a counter and its value in the previous pass (@last, negative: unknown),
 * where GPM has none.
 */
void rate_derive(struct reader *reader, struct device *device, double *last, unsigned counter_slot,
		 unsigned row, unsigned slot);
void pcie_derive(struct reader *reader, struct device *device);
void nvlink_derive(struct reader *reader, struct device *device);
void activity_derive(struct reader *reader, struct device *device);
void energy_derive(struct reader *reader, struct device *device);
void processes_read(struct reader *reader, struct device *device);
void processes_begin(struct reader *reader);
void processes_end(struct reader *reader);
void processes_forget(struct reader *reader);
/* The process's entry in this pass's reading, created if needed. NULL if the reading is full. */
struct reading_process *process_take(struct reader *reader, struct device *device, uint32_t pid,
				     struct process_state **ret_state);
void process_utilization_read(struct reader *reader, struct device *device);
void events_begin(struct reader *reader);
void events_read(struct reader *reader);
void events_done(struct reader *reader);
void topology_read(struct reader *reader, struct device *device);
