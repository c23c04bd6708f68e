// SPDX-License-Identifier: Apache-2.0
/*
 * What it costs to know whose 2,000 processes in as many containers are, in steady state: prints microseconds
 * of CPU for each second of the model with and without containers, names, jobs and allocations, and of a scan
 * of the node's files in which nothing has changed.
 *
 *   attribution FOLDER SECONDS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "model/model.h"
#include "model/publisher.h"
#include "owners/scan.h"

enum { CONTAINERS = 2000, GIVEN = 64, GPUS = 8, FIRST_PID = 10000, SCANS = 20 };
#define LINKS "/var/log/containers"
#define BUNDLES "/run/containerd/io.containerd.runtime.v2.task/k8s.io"
#define NODE ",\"linux\":{\"devices\":[{\"path\":\"/dev/nvidia0\",\"type\":\"c\",\"major\":195,\"minor\":0}]}"

static void must(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(EXIT_FAILURE);
}

static double cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void container_id(unsigned i, char id[static 65])
{
	snprintf(id, 65, "%064x", i + 1);
}

/* ---- the node's files ---- */

static void make_folder(char *path)
{
	for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	mkdir(path, 0755);
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	must(file != NULL, path);
	fputs(text, file);
	fclose(file);
}

static void make_files(const char *root)
{
	char path[4096], text[512], id[65];
	size_t folder;

	snprintf(path, sizeof(path), "%s" LINKS, root);
	make_folder(path);
	for (unsigned i = 0; i < CONTAINERS; i++) {
		container_id(i, id);
		snprintf(path, sizeof(path), "%s" LINKS "/pod-%u_space_main-%s.log", root, i, id);
		write_text(path, "");
		snprintf(path, sizeof(path), "%s" BUNDLES "/%s", root, id);
		make_folder(path);
		folder = strlen(path);
		strcat(path, "/config.json");
		snprintf(text, sizeof(text),
			 "{\"annotations\":{\"io.kubernetes.cri.sandbox-namespace\":\"space\","
			 "\"io.kubernetes.cri.sandbox-name\":\"pod-%u\","
			 "\"io.kubernetes.cri.container-name\":\"main\"}%s}",
			 i, i < GIVEN ? NODE : "");
		write_text(path, text);
		snprintf(path + folder, sizeof(path) - folder, "/init.pid");
		snprintf(text, sizeof(text), "%d", (int)getpid());
		write_text(path, text);
	}
}

/* Of one scan; the first ones read, and a folder's time must have settled. */
static double scan_us(const char *root, struct scan *scan, struct scan_table *table)
{
	double begin;

	for (unsigned i = 0; i < 2; i++) {
		must(scan_run(scan, root, "", table) == 0 && table->n == CONTAINERS, "the first scan");
		usleep(200000);
	}
	begin = cpu_us();
	for (unsigned i = 0; i < SCANS; i++)
		must(scan_run(scan, root, "", table) == 0 && table->n == CONTAINERS, "a scan");
	return (cpu_us() - begin) / SCANS;
}

/* ---- the model ---- */

static int identify(uint32_t pid, bool full, struct process_identity *ret_identity, void *userdata)
{
	bool attributed = *(bool *)userdata;

	ret_identity->id = (struct process_id){ pid, pid };
	if (!full)
		return 0;
	*ret_identity = (struct process_identity){ .id = { pid, pid }, .uid = 1000, .comm = "python3" };
	if (!attributed)
		return 0;
	ret_identity->kind = WORKLOAD_CONTAINER;
	container_id(pid - FIRST_PID, ret_identity->workload_id);
	return 0;
}

static void fill_reading(struct reading *reading)
{
	memset(reading, 0, offsetof(struct reading, entities));
	reading->attach = 1;
	reading->begin_ns = reading->end_ns = clock_boot_ns();
	for (unsigned i = 0; i < GPUS; i++) {
		struct reading_entity *e = &reading->entities[reading->entities_n++];

		*e = (struct reading_entity){ .index = i,
					      .minor = i,
					      .gi = UINT32_MAX,
					      .ci = UINT32_MAX,
					      .parent = READING_NONE,
					      .process_list = PRESENCE_PRESENT,
					      .process_util = PRESENCE_PRESENT };
		snprintf(e->uuid, sizeof(e->uuid), "GPU-%u", i);
	}
	for (unsigned i = 0; i < CONTAINERS; i++) {
		struct reading_process *p = &reading->processes[reading->processes_n++];

		*p = (struct reading_process){ .pid = FIRST_PID + i,
					       .entity = i % GPUS,
					       .types = PROCESS_TYPE_COMPUTE };
		p->v[PROCESS_BUSY] = 0.01;
		p->v[PROCESS_MEMORY] = 1 << 20;
		p->p[PROCESS_BUSY] = p->p[PROCESS_MEMORY] = PRESENCE_PRESENT;
	}
}

static void step(struct model *model, struct publisher *publisher, struct reading *reading)
{
	clock_advance(NSEC_PER_SEC);
	fill_reading(reading);
	must(model_apply(model, SOURCE_NVML, reading) == 0, "a reading");
	must(model_publish(model, publisher) == 0, "a snapshot");
}

/* What the agent does once for each process, and for each table that has changed. */
static void attribute(struct model *model, const struct scan_table *table)
{
	struct job_claim claim = { .rank = { RANK_UNKNOWN, RANK_UNKNOWN, RANK_UNKNOWN } };
	struct model_unread unread;
	uint32_t at = 0;

	must(model_set_owners(model, SOURCE_FILES, table->list, table->n) == 0, "owners");
	while (model_next_unread(model, &at, &unread)) {
		model_mark_read(model, unread.id, true);
		model_set_job(model, unread.id, &claim);
	}
}

/* Of one second. */
static double model_us(const struct scan_table *table, unsigned seconds)
{
	const struct model_limits limits = {
		.processes = 4096, .series = 128, .exited = 64, .workloads = 4096
	};
	struct reading *reading = calloc(1, sizeof(*reading));
	struct publisher *publisher = NULL;
	bool attributed = table != NULL;
	struct model *model = NULL;
	double begin, used;

	must(reading && model_new(&limits, &model) == 0 && publisher_new(&publisher) == 0, "a model");
	model_set_identify(model, identify, &attributed);
	for (unsigned i = 0; i < 20; i++) {
		step(model, publisher, reading);
		if (table)
			attribute(model, table);
	}
	begin = cpu_us();
	for (unsigned i = 0; i < seconds; i++) {
		struct model_unread unread;
		uint32_t at = 0;

		step(model, publisher, reading);
		/* As the agent asks in each second. */
		if (table && (model_next_unread(model, &at, &unread) || model_wants_owners(model)))
			must(false, "everything to be known");
	}
	used = (cpu_us() - begin) / seconds;
	model_free(model);
	publisher_free(publisher);
	free(reading);
	return used;
}

int main(int argc, char **argv)
{
	unsigned seconds = argc == 3 ? (unsigned)atoi(argv[2]) : 0;
	struct scan_table table;
	struct scan *scan;
	double without, with, scanning;

	if (seconds == 0) {
		fprintf(stderr, "attribution FOLDER SECONDS\n");
		return 2;
	}
	make_files(argv[1]);
	must(scan_new(&scan) == 0, "a scan");
	scanning = scan_us(argv[1], scan, &table);
	clock_freeze(true);
	without = model_us(NULL, seconds);
	with = model_us(&table, seconds);
	printf("%.1f %.1f %.1f\n", without, with, scanning);
	scan_free(scan);
	return 0;
}
