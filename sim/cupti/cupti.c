// SPDX-License-Identifier: Apache-2.0
/*
 * The simulated CUPTI: records of the simulated driver's work, as the versions of CUPTI deliver them. Nothing
 * is delivered before it has ended, unless a flush is forced; README.md has the variables.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cupti_plugin/interface.h"
#include "sim/cuda/observe.h"

#define EXPORTED __attribute__((visibility("default")))

enum { PENDING = 1 << 17, KINDS = 64, CALLS = 1024 };
enum { DEFAULT_VERSION = 130001 };

/* What a record of each version has in front of what follows. */
union record {
	struct activity_kernel kernel;
	struct activity_memory memory;
	struct activity_graph graph;
	uint32_t kind;
	uint8_t bytes[256];
};

struct pending {
	struct sim_work work;
	uint64_t node; /* plus one: a kernel of a graph */
};

static struct {
	pthread_mutex_t lock;
	uint32_t version;
	const char *fails, *hostile; /* "Subscribe:39"; what records are to be */
	bool other; /* has subscribed */
	bool subscribed, observing;
	bool ended; /* with the program */
	cupti_called called;
	void *userdata;
	bool calls[CALLS], kinds[KINDS];
	cupti_requested requested;
	cupti_completed completed;
	cupti_time time;
	struct pending *pending;
	uint32_t pending_n;
	atomic_size_t dropped;
} sim = { .lock = PTHREAD_MUTEX_INITIALIZER, .version = DEFAULT_VERSION };

/* As C++ libraries do: what is called after it finds nothing any more. */
static void ended(void)
{
	sim.ended = true;
}

/* The code that a function is to fail with; 0: it is not. */
static int failure(const char *function)
{
	const char *at = sim.fails ? strstr(sim.fails, function) : NULL;
	size_t n = strlen(function);

	if (sim.ended)
		abort();
	return at && at[n] == ':' ? atoi(at + n + 1) : 0;
}
#define FAIL_IF_TOLD()                                              \
	do {                                                        \
		int failure_ = failure(__func__ + strlen("cupti")); \
		if (failure_)                                       \
			return failure_;                            \
	} while (0)

__attribute__((constructor)) static void load(void)
{
	const char *version = getenv("GPUSONDE_SIM_CUPTI_VERSION"),
		   *other = getenv("GPUSONDE_SIM_CUPTI_OTHER");

	if (version)
		sim.version = (uint32_t)atoi(version);
	sim.other = other && *other == '1';
	sim.fails = getenv("GPUSONDE_SIM_CUPTI_FAIL");
	sim.hostile = getenv("GPUSONDE_SIM_CUPTI_RECORDS");
	sim.pending = calloc(PENDING, sizeof(*sim.pending));
	atexit(ended);
}

static bool is_hostile(const char *how)
{
	return sim.hostile && strcmp(sim.hostile, how) == 0;
}

/* ---- records ---- */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t real_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

/* Bytes of a record of this version. */
static size_t record_size(uint32_t kind)
{
	switch (kind) {
	case ACTIVITY_KERNEL:
		return sim.version < 17     ? 168 :
		       sim.version < 18     ? 176 :
		       sim.version < 20     ? 200 :
		       sim.version < 100000 ? 208 :
					      216;
	case ACTIVITY_GRAPH:
		return sim.version < 20 ? 48 : 56;
	case ACTIVITY_MEMCPY:
		return sim.version < 28 ? 88 : 96;
	default:
		return 88;
	}
}

/* @ahead: what the wanted clock is ahead of the one since boot. */
static uint32_t record_make(const struct pending *pending, int64_t ahead, bool complete, union record *record)
{
	const struct sim_work *w = &pending->work;
	uint64_t start = complete ? (uint64_t)(w->start_ns + ahead) : 0,
		 end = complete ? (uint64_t)(w->end_ns + ahead) : 0;

	memset(record, 0xff, sizeof(*record));
	switch (w->kind) {
	case SIM_KERNEL:
		record->kernel = (struct activity_kernel){ .kind = ACTIVITY_KERNEL,
							   .start_ns = start,
							   .end_ns = end,
							   .device = w->device,
							   .context = w->context,
							   .stream = w->stream,
							   .correlation = w->correlation,
							   .name = w->name,
							   .node = pending->node,
							   .graph = (uint32_t)(w->graph >> 4) };
		break;
	case SIM_GRAPH:
		record->graph = (struct activity_graph){ .kind = ACTIVITY_GRAPH,
							 .correlation = w->correlation,
							 .start_ns = start,
							 .end_ns = end,
							 .device = w->device,
							 .graph = (uint32_t)(w->graph >> 4),
							 .context = w->context,
							 .stream = w->stream };
		break;
	default:
		record->memory = (struct activity_memory){ .kind = w->kind == SIM_SET ? ACTIVITY_MEMSET :
											ACTIVITY_MEMCPY,
							   .copy = 1,
							   .bytes = w->bytes,
							   .start_ns = start,
							   .end_ns = end,
							   .device = w->device,
							   .context = w->context,
							   .stream = w->stream,
							   .correlation = w->correlation };
	}
	return record->kind;
}

struct filling {
	uint8_t *buffer;
	size_t size, used;
};

static void filling_end(struct filling *filling)
{
	size_t used = filling->used;

	if (filling->buffer && is_hostile("short") && used > 64)
		used -= 64; /* the last record is cut */
	if (filling->buffer)
		sim.completed(NULL, 0, filling->buffer, filling->size, used);
	*filling = (struct filling){ NULL, 0, 0 };
}

static bool filling_room(struct filling *filling, size_t n)
{
	size_t most;

	if (filling->buffer && filling->used + n <= filling->size)
		return true;
	filling_end(filling);
	sim.requested(&filling->buffer, &filling->size, &most);
	return filling->buffer && n <= filling->size;
}

/* Unknown kinds are told by a record of 32 bytes. */
static void filling_add(struct filling *filling, const union record *record, size_t n)
{
	if (!filling_room(filling, n)) {
		sim.dropped++;
		return;
	}
	memcpy(filling->buffer + filling->used, record, n);
	filling->used += n;
}

static int deliver(bool forced)
{
	int64_t boot = (int64_t)clock_ns(CLOCK_BOOTTIME),
		ahead = (int64_t)(sim.time ? sim.time() : real_ns()) - boot;
	struct filling filling = { NULL, 0, 0 };
	uint32_t kept = 0;

	for (uint32_t i = 0; i < sim.pending_n; i++) {
		struct pending *pending = &sim.pending[i];
		bool complete = pending->work.end_ns <= boot;
		union record record;
		uint32_t kind;

		if (!complete && !forced) {
			sim.pending[kept++] = *pending;
			continue;
		}
		kind = record_make(pending, ahead, complete, &record);
		filling_add(&filling, &record, record_size(kind));
		if (is_hostile("unknown")) {
			record.kind = 60;
			filling_add(&filling, &record, 32);
		}
	}
	sim.pending_n = kept;
	filling_end(&filling);
	return CUPTI_SUCCESS;
}

/* ---- the driver's work ---- */

static void called(uint32_t call, uint32_t correlation)
{
	struct callback_data data = { .site = CALLBACK_ENTER, .correlation = correlation };

	if (sim.subscribed && sim.calls[call])
		sim.called(sim.userdata, CALLBACK_DRIVER, call, &data);
}

static void pending_add(const struct sim_work *work, uint64_t node)
{
	if (sim.pending_n < PENDING)
		sim.pending[sim.pending_n++] = (struct pending){ *work, node };
	else
		sim.dropped++;
}

static bool is_wanted(const struct sim_work *work)
{
	static const int kinds[] = { [SIM_KERNEL] = ACTIVITY_KERNEL,
				     [SIM_GRAPH] = ACTIVITY_GRAPH,
				     [SIM_COPY] = ACTIVITY_MEMCPY,
				     [SIM_SET] = ACTIVITY_MEMSET };

	return sim.kinds[kinds[work->kind]];
}

/* One after the other, each as long as the others. */
static void nodes_add(const struct sim_work *graph)
{
	int64_t each = graph->kernels > 0 ? (graph->end_ns - graph->start_ns) / (int64_t)graph->kernels : 0;
	struct sim_work work = *graph;

	work.kind = SIM_KERNEL;
	work.name = "node";
	for (uint64_t i = 0; i < graph->kernels; i++) {
		work.start_ns = graph->start_ns + (int64_t)i * each;
		work.end_ns = work.start_ns + each;
		pending_add(&work, i + 1);
	}
}

static void worked(const struct sim_work *work)
{
	pthread_mutex_lock(&sim.lock);
	if (is_wanted(work))
		pending_add(work, 0);
	else if (work->kind == SIM_GRAPH && sim.kinds[ACTIVITY_KERNEL])
		nodes_add(work);
	pthread_mutex_unlock(&sim.lock);
}

static void observe(void)
{
	static const struct sim_observer observer = { called, worked };
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	sim_observe to = NULL;

	if (driver && !sim.observing)
		*(void **)&to = dlsym(driver, SIM_OBSERVE);
	if (to)
		to(&observer);
	sim.observing |= to != NULL;
}

/* ---- the interface ---- */

#define FUNCTION(name_, needed_, parameters_) EXPORTED int cupti##name_ parameters_;
CUPTI_FUNCTIONS
#undef FUNCTION

int cuptiGetVersion(uint32_t *version)
{
	FAIL_IF_TOLD();
	*version = sim.version;
	return CUPTI_SUCCESS;
}

int cuptiGetTimestamp(uint64_t *timestamp)
{
	FAIL_IF_TOLD();
	*timestamp = sim.time ? sim.time() : real_ns();
	return CUPTI_SUCCESS;
}

int cuptiSubscribe(void **subscriber, cupti_called function, void *userdata)
{
	FAIL_IF_TOLD();
	if (sim.other || sim.subscribed)
		return CUPTI_ERROR_SUBSCRIBED;
	sim.called = function;
	sim.userdata = userdata;
	sim.subscribed = true;
	*subscriber = &sim;
	observe();
	return CUPTI_SUCCESS;
}

int cuptiUnsubscribe(void *subscriber)
{
	FAIL_IF_TOLD();
	if (subscriber != &sim)
		return CUPTI_ERROR_INVALID_PARAMETER;
	sim.subscribed = false;
	memset(sim.calls, 0, sizeof(sim.calls));
	return CUPTI_SUCCESS;
}

/* CUDA 11.8 has cuLaunchKernelEx first. */
int cuptiEnableCallback(uint32_t enable, void *subscriber, int domain, uint32_t call)
{
	FAIL_IF_TOLD();
	if (subscriber != &sim || domain != CALLBACK_DRIVER || call >= CALLS ||
	    (sim.version < 18 && call >= 652))
		return CUPTI_ERROR_INVALID_PARAMETER;
	sim.calls[call] = enable;
	return CUPTI_SUCCESS;
}

int cuptiActivityRegisterCallbacks(cupti_requested requested, cupti_completed completed)
{
	FAIL_IF_TOLD();
	sim.requested = requested;
	sim.completed = completed;
	return CUPTI_SUCCESS;
}

int cuptiActivityEnable(int kind)
{
	FAIL_IF_TOLD();
	pthread_mutex_lock(&sim.lock);
	sim.kinds[kind % KINDS] = true;
	pthread_mutex_unlock(&sim.lock);
	return CUPTI_SUCCESS;
}

int cuptiActivityDisable(int kind)
{
	FAIL_IF_TOLD();
	pthread_mutex_lock(&sim.lock);
	sim.kinds[kind % KINDS] = false;
	pthread_mutex_unlock(&sim.lock);
	return CUPTI_SUCCESS;
}

int cuptiActivityFlushAll(uint32_t flag)
{
	FAIL_IF_TOLD();
	pthread_mutex_lock(&sim.lock);
	deliver(flag & 1);
	pthread_mutex_unlock(&sim.lock);
	return CUPTI_SUCCESS;
}

/* As NVIDIA's: what is behind the last one ends it; a cut one, too, as nobody's would. */
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *at = *record;
	uint32_t kind;

	FAIL_IF_TOLD();
	if (is_hostile("backwards") && at)
		at = buffer; /* the same again */
	else if (at) {
		memcpy(&kind, at, sizeof(kind));
		at += kind == 60 ? 32 : record_size(kind);
	} else {
		at = buffer;
	}
	if (is_hostile("far") && *record)
		at = buffer + valid + 4096;
	else if (at >= buffer + valid)
		return CUPTI_ERROR_NO_MORE;
	*record = at;
	return CUPTI_SUCCESS;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
	(void)context;
	(void)stream;
	FAIL_IF_TOLD();
	*dropped = atomic_exchange(&sim.dropped, 0);
	return CUPTI_SUCCESS;
}

int cuptiActivityRegisterTimestampCallback(cupti_time time)
{
	FAIL_IF_TOLD();
	if (!time)
		return CUPTI_ERROR_INVALID_PARAMETER;
	sim.time = time;
	return CUPTI_SUCCESS;
}
