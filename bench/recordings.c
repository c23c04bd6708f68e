// SPDX-License-Identifier: Apache-2.0
/*
 * How large a recording gets: the real reader on the simulated driver, the real model and the real store, on
 * a clock that advances by a second at each tick, so that blocks of hours are whole ones.
 *
 *	bench_recordings LIBRARY FOLDER HOURS LINKS
 *
 * LINKS: by how many millionths the NVLinks of a GPU differ. Makes FOLDER/r.db. Prints the CPU time of the
 * store, in seconds.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/strbuf.h"
#include "model/model.h"
#include "nvml/reader.h"
#include "store/tiers.h"

enum { PERIOD_NS = 1000000000, SLOW_TICKS = 10, HOUR_TICKS = 3600 };

static struct reader reader;
static struct nvml_shared *shared;
static struct fields fields[STORE_TABLES];

/* PIDs that are listed now, and when each was listed first: simulated ones come again. */
static struct {
	uint32_t pid, tick, first;
} known[READING_PROCESSES_MAX];
static uint32_t known_n;

static uint64_t start_ticks(uint32_t pid)
{
	for (uint32_t i = 0; i < known_n; i++)
		if (known[i].pid == pid)
			return known[i].first;
	return 0;
}

static void know(uint32_t pid, uint32_t tick)
{
	uint32_t i = 0;

	while (i < known_n && known[i].pid != pid)
		i++;
	if (i == READING_PROCESSES_MAX)
		return;
	known_n = MAX(known_n, i + 1);
	if (known[i].pid != pid || known[i].tick + 1 < tick)
		known[i].first = tick * 100 + pid % 100;
	known[i].pid = pid;
	known[i].tick = tick;
}

/* A name on a GPU is a container: batch jobs come and go in the same one. */
static int identify(uint32_t pid, _unused_ bool full, struct process_identity *ret_identity,
		    _unused_ void *userdata)
{
	const struct reading *reading = &shared->reading;

	for (uint32_t i = 0; i < reading->processes_n; i++) {
		const struct reading_process *p = &reading->processes[i];
		uint64_t hash = hash_bytes(p->name, strlen(p->name));

		if (p->pid != pid)
			continue;
		*ret_identity =
			(struct process_identity){ .id = { .pid = pid, .start_ticks = start_ticks(pid) },
						   .uid = 1000,
						   .kind = WORKLOAD_CONTAINER };
		snprintf(ret_identity->comm, sizeof(ret_identity->comm), "%s", p->name);
		snprintf(ret_identity->workload_id, sizeof(ret_identity->workload_id), "%016llx%048x",
			 (unsigned long long)hash, p->entity);
		return 0;
	}
	return -ESRCH;
}

static void check(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %d\n", what, r);
	exit(EXIT_FAILURE);
}

/* The simulated links of a GPU carry the same; real ones do not quite: each less or more, by chance. */
static void part_links(struct reading *reading, unsigned long tick, unsigned long millionths)
{
	static double more[READING_ENTITIES_MAX][GPU_SLOTS], before[READING_ENTITIES_MAX][GPU_SLOTS];

	for (uint32_t i = 0; i < reading->entities_n; i++) {
		struct reading_entity *e = &reading->entities[i];

		for (unsigned slot = SLOT_NVLINK_LINK_RATE; slot < GPU_SLOTS; slot++) {
			const struct metric *m = gpu_slot_metric(slot);
			const uint64_t chance[] = { tick, slot, i };
			double part = ((double)(hash_bytes(chance, sizeof(chance)) % 2001) / 1e3 - 1) *
				      (double)millionths / 1e6;
			double v = e->v[slot];

			if (!m->index || strcmp(m->index, "link") != 0 || !presence_is(e->p[slot]) || v < 1e6)
				continue;
			if (m->kind == METRIC_GAUGE) {
				e->v[slot] *= 1 + part;
				continue;
			}
			if (before[i][slot])
				more[i][slot] += 1024 * round((v - before[i][slot]) * part / 1024);
			before[i][slot] = v;
			e->v[slot] += more[i][slot];
		}
	}
}

/* As the agent does. */
static void record(struct tiers *tiers, struct publisher *publisher, unsigned long tick,
		   struct frame_mark *mark)
{
	struct snapshot *s = publisher_get(publisher);
	uint64_t left_out;
	struct strbuf bytes;
	struct frame frame;

	strbuf_init(&bytes, FRAME_BYTES_MAX);
	check(frame_write(s, tick % SLOW_TICKS == 0 || tiers_want_slow(tiers), mark, &bytes, &left_out),
	      "frame");
	check(frame_read(bytes.data, bytes.len, &frame), "frame");
	check(tiers_add(tiers, &frame), "tiers");
	strbuf_done(&bytes);
	snapshot_unref(s);
}

static struct database *open_file(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct database *database;
	char why[300] = "no such folder";

	if (fd < 0 || database_open(fd, "r.db", true, &database, why, sizeof(why)) < 0) {
		fprintf(stderr, "%s: %s\n", folder, why);
		exit(EXIT_FAILURE);
	}
	return database;
}

int main(int argc, char **argv)
{
	const struct tiers_settings settings = { .max_bytes = UINT64_C(1) << 40,
						 .frames = { INT32_MAX, INT32_MAX, INT32_MAX } };
	unsigned long ticks = argc == 5 ? strtoul(argv[3], NULL, 10) * HOUR_TICKS : 0;
	unsigned long links = argc == 5 ? strtoul(argv[4], NULL, 10) : 0;
	struct database *database;
	struct publisher *publisher;
	struct frame_mark mark = { 0 };
	struct tiers *tiers;
	struct model *model;
	void (*advance)(int64_t ns);
	int64_t store_ns = 0;

	if (ticks == 0) {
		fprintf(stderr, "usage: bench_recordings LIBRARY FOLDER HOURS LINKS\n");
		return EXIT_FAILURE;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	check(shared == MAP_FAILED ? -1 : 0, "memory");
	check(publisher_new(&publisher), "publisher");
	check(model_new(NULL, &model), "model");
	check(fields_new(fields), "fields");
	database = open_file(argv[2]);
	check(tiers_new(database, fields, &settings, &tiers), "tiers");
	model_set_identify(model, identify, NULL);
	model_set_period(model, PERIOD_NS);
	reader_init(&reader, shared, argv[1]);
	reader_pass(&reader);
	*(void **)&advance = dlsym(dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD), "gpusonde_sim_advance");
	check(advance && shared->reading.state == READING_OK ? 0 : -1, argv[1]);
	for (unsigned long tick = 0; tick < ticks; tick++) {
		int64_t begin_ns;

		clock_advance(PERIOD_NS);
		advance(PERIOD_NS);
		reader_pass(&reader);
		part_links(&shared->reading, tick, links);
		check(reading_check(&shared->reading), "reading");
		for (uint32_t i = 0; i < shared->reading.processes_n; i++)
			know(shared->reading.processes[i].pid, (uint32_t)tick + 1);
		check(model_apply(model, SOURCE_NVML, &shared->reading), "model");
		check(model_publish(model, publisher), "model");
		begin_ns = clock_thread_cpu_ns();
		record(tiers, publisher, tick, &mark);
		store_ns += clock_thread_cpu_ns() - begin_ns;
	}
	check(tiers_flush(tiers), "tiers");
	database_close(database);
	printf("%.3f\n", (double)store_ns / NSEC_PER_SEC);
	return EXIT_SUCCESS;
}
