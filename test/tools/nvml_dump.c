// SPDX-License-Identifier: Apache-2.0
/*
 * Prints readings as text, from within one process: nvml_dump [-n readings] [-i interval_ms] [-a] [LIBRARY]
 * Only numbers that are there; with -a the reasons for absence, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "nvml/reader.h"

static bool all;

static void print_number(const struct metric *metric, unsigned index, double value, uint8_t presence)
{
	if (!presence_is(presence) && (!all || presence == PRESENCE_ABSENT))
		return;
	printf("    %-40s", metric->id);
	if (metric->count > 1)
		printf("[%2u]", index);
	if (presence_is(presence))
		printf(" %.15g%s\n", value, presence & PRESENCE_ESTIMATED ? " (estimated)" : "");
	else
		printf(" %s\n", presence_name(presence));
}

static void print_entity(const struct reading_entity *e, unsigned number)
{
	printf("  entity %u: %s %s%s%s index %u pci %s minor %d numa %d arch %s cc %s serial %s vbios %s\n",
	       number, e->name, e->uuid, e->mig_uuid[0] ? " " : "", e->mig_uuid, e->index, e->pci_bus_id,
	       (int)e->minor, e->numa_node, e->architecture, e->compute_capability, e->serial, e->vbios);
	if (e->parent != READING_NONE)
		printf("    instance of %u, gi %u ci %u profile %s\n", e->parent, e->gi, e->ci,
		       e->mig_profile);
	printf("    lost %u, process list %s, process utilisation %s\n", e->lost,
	       presence_name(e->process_list), presence_name(e->process_util));
	for (unsigned row = 0; row < GPU_METRICS; row++)
		for (unsigned i = 0; i < gpu_metrics[row].count; i++)
			print_number(&gpu_metrics[row], i, e->v[gpu_metrics[row].slot + i],
				     e->p[gpu_metrics[row].slot + i]);
}

static void print_rejected(const struct reading *r)
{
	for (unsigned row = 0; row < GPU_METRICS; row++)
		if (r->rejected[row])
			printf("  rejected %s %u\n", gpu_metrics[row].id, r->rejected[row]);
	for (unsigned row = 0; row < PROCESS_METRICS; row++)
		if (r->rejected_process[row])
			printf("  rejected process %s %u\n", process_metrics[row].id,
			       r->rejected_process[row]);
}

static void print_reading(const struct reading *r)
{
	printf("reading: state %u error %d \"%s\" attach %u simulated %u driver %s nvml %s cuda %u library "
	       "%s, %.3f ms\n",
	       r->state, r->nvml_error, r->error, r->attach, r->simulated, r->driver_version, r->nvml_version,
	       r->cuda_version, r->library, (double)(r->end_ns - r->begin_ns) / 1e6);
	for (uint32_t i = 0; i < r->entities_n; i++)
		print_entity(&r->entities[i], i);
	for (uint32_t i = 0; i < r->processes_n; i++) {
		const struct reading_process *p = &r->processes[i];

		printf("  process %u on entity %u, types %u, \"%s\"\n", p->pid, p->entity, p->types, p->name);
		for (unsigned row = 0; row < PROCESS_METRICS; row++)
			print_number(&process_metrics[row], 0, p->v[row], p->p[row]);
	}
	for (uint32_t i = 0; i < r->events_n; i++)
		printf("  xid %u on entity %u gi %d ci %d\n", r->events[i].xid, r->events[i].entity,
		       (int)r->events[i].gi, (int)r->events[i].ci);
	for (uint32_t i = 0; i < r->topology_n; i++) {
		printf("  topology %u:", i);
		for (uint32_t j = 0; j < r->topology_n; j++)
			printf(" %u/%u", r->topology[i][j], r->topology_nvlinks[i][j]);
		printf("\n");
	}
	print_rejected(r);
}

int main(int argc, char **argv)
{
	static struct reader reader;
	struct nvml_shared *shared;
	int readings = 2, interval_ms = 1000, option;

	while ((option = getopt(argc, argv, "n:i:a")) != -1) {
		if (option == 'n')
			readings = atoi(optarg);
		else if (option == 'i')
			interval_ms = atoi(optarg);
		else if (option == 'a')
			all = true;
		else
			return 2;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	reader_init(&reader, shared, argv[optind]);
	for (int i = 0; i < readings; i++) {
		struct timespec wait = { interval_ms / 1000, interval_ms % 1000 * NSEC_PER_MSEC };

		if (i)
			nanosleep(&wait, NULL);
		reader_pass(&reader);
		print_reading(&shared->reading);
	}
	reader_done(&reader);
	return 0;
}
