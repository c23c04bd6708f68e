// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/library.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "config.h"
#include "sim/scenario/locate.h"

enum { CONTROL_INTERVAL_MS = 50 };

/* For programs to detect simulated data: the library's version and the scenario's name. */
__attribute__((visibility("default"))) extern char gpusonde_sim_identity[];
char gpusonde_sim_identity[128] = "gpusonde-sim " GPUSONDE_VERSION;

/* Moves the library's clock forward, for benches that run faster than time. */
__attribute__((visibility("default"))) void gpusonde_sim_advance(int64_t ns);

/* Faults of one source, and for each function which of them may concern it. */
struct fault_set {
	struct fault faults[FAULT_MAX];
	uint32_t count;
	int64_t began_ms; /* where FAULT_SINCE_LOAD counts from */
	uint32_t by_function[FUNCTION_COUNT];
	uint32_t unloaded, removed; /* faults of these kinds */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *node;
static uint32_t init_count;
static uint64_t init_epoch; /* how often the driver had been loaded when the library was initialised */
static int64_t offset_ms; /* from time since boot to time since 1970 */
static struct fault_set sets[2];
static uint8_t unsupported[SCENARIO_MAX_GPUS][(FUNCTION_COUNT + 7) / 8];

/* The control file as last seen. */
static struct {
	char path[4096]; /* empty: there is none; a copy, because the environment may change */
	int64_t next_ms;
	struct timespec mtime;
	ino_t inode;
	uint64_t unloads; /* how often it unloaded the driver, by faults that were removed from it again */
	int64_t loaded_ms; /* when the driver last came back in this way */
} control;

void library_lock(void)
{
	pthread_mutex_lock(&lock);
}

void library_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void gpusonde_sim_advance(int64_t ns)
{
	clock_advance(ns);
}

struct node *call_node(void)
{
	return node;
}

uint64_t stamp_us(int64_t boot_ms)
{
	return (uint64_t)((boot_ms + offset_ms) * 1000);
}

int64_t unstamp_ms(uint64_t stamp)
{
	int64_t ms = (int64_t)MIN(stamp / 1000, (uint64_t)INT64_MAX / 1000);

	return MAX(ms - offset_ms, INT64_C(0));
}

const struct fault *library_fault(unsigned set, unsigned number)
{
	return &sets[set].faults[number];
}

void library_faults(enum function function, int gpu, int64_t now_ms, uint32_t ret_active[2])
{
	for (unsigned set = 0; set < 2; set++) {
		ret_active[set] = 0;
		for (uint32_t bits = sets[set].by_function[function]; bits; bits &= bits - 1) {
			const struct fault *fault = &sets[set].faults[__builtin_ctz(bits)];

			if (fault->gpus != 0 && (gpu < 0 || !(fault->gpus >> gpu & 1)))
				continue;
			if (fault_active(fault, now_ms, sets[set].began_ms))
				ret_active[set] |= bits & -bits;
		}
	}
}

static void index_faults(struct fault_set *set)
{
	memset(set->by_function, 0, sizeof(set->by_function));
	set->unloaded = set->removed = 0;
	for (uint32_t i = 0; i < set->count; i++) {
		uint32_t bit = UINT32_C(1) << i;

		set->unloaded |= set->faults[i].kind == FAULT_UNLOADED ? bit : 0;
		set->removed |= set->faults[i].kind == FAULT_REMOVED ? bit : 0;
		for (enum function function = 0; function < FUNCTION_COUNT; function++) {
			const struct name_globs *names = &set->faults[i].functions;

			if (names->count == 0 || name_globs_match(names, function_name(function)))
				set->by_function[function] |= bit;
		}
	}
}

/* Whether the driver is unloaded, how often it was, and when it was last loaded. */
static bool driver_away(int64_t now_ms, uint64_t *ret_epoch, int64_t *ret_loaded_ms)
{
	uint64_t epoch = control.unloads;
	int64_t loaded_ms = control.loaded_ms;
	bool away = false;

	for (unsigned set = 0; set < 2; set++) {
		for (uint32_t bits = sets[set].unloaded; bits; bits &= bits - 1) {
			const struct fault *fault = &sets[set].faults[__builtin_ctz(bits)];
			int64_t began_ms = fault->since == FAULT_SINCE_LOAD ? sets[set].began_ms : 0;
			int64_t openings = window_openings(&fault->window, now_ms - began_ms);

			if (openings == 0)
				continue;
			epoch += (uint64_t)openings;
			if (window_open(&fault->window, now_ms - began_ms))
				away = true;
			else
				loaded_ms = MAX(loaded_ms, began_ms + fault->window.length_ms +
								   window_last_opening(&fault->window,
										       now_ms - began_ms));
		}
	}
	*ret_epoch = epoch;
	*ret_loaded_ms = loaded_ms;
	return away;
}

enum nvml_return library_state(int64_t now_ms)
{
	uint64_t epoch;
	int64_t loaded_ms;

	if (init_count == 0)
		return NVML_ERROR_UNINITIALIZED;
	driver_away(now_ms, &epoch, &loaded_ms);
	return epoch == init_epoch ? NVML_SUCCESS : NVML_ERROR_GPU_IS_LOST;
}

bool library_removed(uint32_t gpu, int64_t now_ms)
{
	for (unsigned set = 0; set < 2; set++) {
		for (uint32_t bits = sets[set].removed; bits; bits &= bits - 1) {
			const struct fault *fault = &sets[set].faults[__builtin_ctz(bits)];

			if ((fault->gpus == 0 || fault->gpus >> gpu & 1) &&
			    fault_active(fault, now_ms, sets[set].began_ms))
				return true;
		}
	}
	return false;
}

bool library_unsupported(enum function function, uint32_t gpu)
{
	return unsupported[gpu][function / 8] >> function % 8 & 1;
}

/* If a removed fault of the control file had unloaded the driver, it is loaded again now. */
static void remember_unloads(int64_t now_ms)
{
	struct fault_set *set = &sets[1];

	for (uint32_t bits = set->unloaded; bits; bits &= bits - 1) {
		const struct fault *fault = &set->faults[__builtin_ctz(bits)];
		int64_t began_ms = fault->since == FAULT_SINCE_LOAD ? set->began_ms : 0;
		int64_t openings = window_openings(&fault->window, now_ms - began_ms);

		control.unloads += (uint64_t)openings;
		if (openings > 0)
			control.loaded_ms = now_ms;
	}
}

static void read_control(int64_t now_ms, bool exists)
{
	static struct fault faults[FAULT_MAX];
	struct scenario_error err;
	uint32_t count = 0;

	if (exists && scenario_load_faults(control.path, faults, &count, &err) < 0) {
		fprintf(stderr, "gpusonde-sim: %s; the faults of before stay\n", err.message);
		return;
	}
	remember_unloads(now_ms);
	memcpy(sets[1].faults, faults, count * sizeof(faults[0]));
	sets[1].count = count;
	sets[1].began_ms = now_ms;
	index_faults(&sets[1]);
}

void library_refresh(int64_t now_ms)
{
	struct stat st = { 0 };
	bool exists;

	if (!*control.path || now_ms < control.next_ms)
		return;
	control.next_ms = now_ms + CONTROL_INTERVAL_MS;
	exists = stat(control.path, &st) == 0;
	if (st.st_ino == control.inode && st.st_mtim.tv_sec == control.mtime.tv_sec &&
	    st.st_mtim.tv_nsec == control.mtime.tv_nsec)
		return;
	control.inode = st.st_ino;
	control.mtime = st.st_mtim;
	read_control(now_ms, exists);
}

static void index_unsupported(const struct scenario *scenario)
{
	for (uint32_t gpu = 0; gpu < scenario->gpu_count; gpu++) {
		for (enum function function = 0; function < FUNCTION_COUNT; function++) {
			if (name_globs_match(&scenario->gpus[gpu].unsupported, function_name(function)))
				unsupported[gpu][function / 8] |= (uint8_t)(1 << function % 8);
		}
	}
}

/*
 * A library that exports what one generation did is of that generation; with another's scenario it makes no
 * node.
 */
static int settle_generation(const char *path, struct scenario *scenario, struct scenario_error *err)
{
	enum generation_id wanted = scenario->generation;

	if (library_generation == GENERATION_NEWEST || wanted == library_generation)
		return 0;
	if (wanted == GENERATION_NEWEST) {
		scenario_set_generation(scenario, library_generation);
		return 0;
	}
	snprintf(err->message, sizeof(err->message),
		 "%.300s: a scenario of generation %s, and a library of %s: take the library of that "
		 "generation, or the plain one",
		 path, generations[wanted].name, generations[library_generation].name);
	free(scenario);
	return -EINVAL;
}

/* A scenario with an error makes no node at all. */
static int load_node(void)
{
	struct scenario_error err = { "" };
	struct scenario *scenario;
	char path[4096];
	int r;

	locate_scenario(locate_scenario_name(library_scenario), path, sizeof(path));
	r = scenario_load_file(path, &scenario, &err);
	if (r == 0)
		r = settle_generation(path, scenario, &err);
	if (r == 0) {
		r = node_new(scenario, &node);
		snprintf(err.message, sizeof(err.message), "%.400s: out of memory", path);
	}
	if (r < 0) {
		fprintf(stderr,
			"gpusonde-sim: %s\ngpusonde-sim: GPUSONDE_SIM_SCENARIO names the scenario, or its "
			"file\n",
			err.message);
		return r;
	}
	memcpy(sets[0].faults, node->scenario->faults, sizeof(sets[0].faults));
	sets[0].count = node->scenario->fault_count;
	index_faults(&sets[0]);
	index_unsupported(node->scenario);
	return 0;
}

/* Counters begin where the driver was loaded. */
static void set_driver_start(int64_t loaded_ms)
{
	for (uint32_t i = 0; i < node->scenario->gpu_count; i++) {
		struct gpu *gpu = &node->gpus[i];

		if (gpu->driver_ms == loaded_ms)
			continue;
		gpu->driver_ms = loaded_ms;
		gpu_totals_at(gpu, loaded_ms, &gpu->driver_totals);
	}
}

enum nvml_return library_init(enum function function)
{
	int64_t loaded_ms;
	uint64_t epoch;
	int r = 0;

	library_lock();
	if (!node)
		r = load_node();
	library_unlock();
	if (r < 0)
		return NVML_ERROR_UNKNOWN;

	CALL_WITH(call_begin_bare(call, function));

	if (driver_away(call->now_ms, &epoch, &loaded_ms))
		return NVML_ERROR_DRIVER_NOT_LOADED;
	init_count++;
	init_epoch = epoch;
	set_driver_start(loaded_ms);
	return NVML_SUCCESS;
}

enum nvml_return library_shutdown(void)
{
	CALL_WITH(call_begin_bare(call, FN_nvmlShutdown));

	if (init_count == 0)
		return NVML_ERROR_UNINITIALIZED;
	init_count--;
	return NVML_SUCCESS;
}

__attribute__((constructor)) static void load(void)
{
	const char *name = locate_scenario_name(library_scenario), *slash = strrchr(name, '/');
	int length;

	name = slash ? slash + 1 : name;
	length = (int)strcspn(name, ".");
	snprintf(gpusonde_sim_identity, sizeof(gpusonde_sim_identity), "gpusonde-sim %s %.*s",
		 GPUSONDE_VERSION, MIN(length, 64), name);
	/*
	 * Rounded, so that all programs have the same: it is read from two clocks at almost the same
	 * moment.
	 */
	offset_ms = (clock_real_ns() - clock_boot_ns() + NSEC_PER_MSEC / 2) / NSEC_PER_MSEC;
	sets[0].began_ms = sets[1].began_ms = clock_boot_ns() / NSEC_PER_MSEC;
	if (getenv("GPUSONDE_SIM_CONTROL"))
		snprintf(control.path, sizeof(control.path), "%s", getenv("GPUSONDE_SIM_CONTROL"));
}

/* Frees all memory when a program unloads the library. */
__attribute__((destructor)) static void unload(void)
{
	node_free(node);
}
