// SPDX-License-Identifier: Apache-2.0
/*
 * Memory over many samples: the real reader on the simulated driver, the real model and the real views in one
 * process, on a clock that advances by a period at each tick. A sample is one reading of one GPU, MIG
 * instance or process.
 *
 *	soak LIBRARY SAMPLES
 *
 * Prints one line: samples, ticks, resident bytes after the first half, resident bytes at the end.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "model/model.h"
#include "nvml/reader.h"
#include "proc/proc.h"
#include "view/view.h"

enum { PERIOD_NS = 1000000000, PAGE_LIMIT = 16 << 20 };

static int identify(uint32_t pid, bool full, struct process_identity *ret_identity, void *userdata)
{
	struct proc_identity proc;
	int r = proc_identify("/proc", pid, &proc);

	(void)full;
	(void)userdata;
	if (r < 0)
		return r;
	*ret_identity = (struct process_identity){ .id = proc.id, .uid = proc.uid };
	return 0;
}

static long resident_bytes(void)
{
	long size, resident;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%ld %ld", &size, &resident) != 2)
		exit(EXIT_FAILURE);
	fclose(f);
	return resident * sysconf(_SC_PAGESIZE);
}

/* Requests of clients in this tick: scrapes each 15 s, atop each 10 s, JSON each minute. */
static void look(struct publisher *publisher, unsigned long tick, struct strbuf *page)
{
	struct snapshot *s = publisher_get(publisher);
	uint64_t exit_seq = 0;
	unsigned truncated;
	int r = 0;

	strbuf_reset(page);
	if (tick % 15 == 0)
		r = view_prometheus(s, tick % 30 ? EXPOSITION_OPENMETRICS : EXPOSITION_PROMETHEUS, NULL,
				    page);
	else if (tick % 10 == 0)
		r = view_atop_stats(s, 2, 0, page, &exit_seq, &truncated);
	else if (tick % 60 == 1)
		r = view_json_text(s, JSON_GPUS | JSON_PROCESSES | JSON_NODE, page);
	snapshot_unref(s);
	if (r < 0)
		exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	unsigned long target = argc == 3 ? strtoul(argv[2], NULL, 10) : 0, samples = 0, ticks = 0;
	struct reader *reader = calloc(1, sizeof(*reader));
	struct nvml_shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct publisher *publisher;
	struct model *model;
	struct strbuf page;
	void (*advance)(int64_t ns);
	long warm = 0;

	if (target == 0 || !reader || shared == MAP_FAILED || publisher_new(&publisher) < 0 ||
	    model_new(NULL, &model) < 0) {
		fprintf(stderr, "usage: soak LIBRARY SAMPLES\n");
		return EXIT_FAILURE;
	}
	strbuf_init(&page, PAGE_LIMIT);
	model_set_identify(model, identify, NULL);
	model_set_period(model, PERIOD_NS);
	reader_init(reader, shared, argv[1]);
	reader_pass(reader);
	*(void **)&advance = dlsym(dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD), "gpusonde_sim_advance");
	if (!advance || shared->reading.state != READING_OK) {
		fprintf(stderr, "%s is not the simulated driver: %s\n", argv[1], shared->reading.error);
		return EXIT_FAILURE;
	}
	while (samples < target) {
		clock_advance(PERIOD_NS);
		advance(PERIOD_NS);
		reader_pass(reader);
		if (reading_check(&shared->reading) < 0 ||
		    model_apply(model, SOURCE_NVML, &shared->reading) < 0 ||
		    model_publish(model, publisher) < 0)
			return EXIT_FAILURE;
		look(publisher, ticks++, &page);
		samples += shared->reading.entities_n + shared->reading.processes_n;
		if (!warm && samples >= target / 2)
			warm = resident_bytes();
	}
	printf("%lu %lu %ld %ld\n", samples, ticks, warm, resident_bytes());
	return EXIT_SUCCESS;
}
