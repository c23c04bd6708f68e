// SPDX-License-Identifier: Apache-2.0
/*
 * Reads a page of a DCGM exporter from its standard input as gpusonde-dcgm does, and prints what it says, a
 * line of JSON for each row and device, and what was left out:
 *
 *     dcgm_dump [strict] [PIECE]      PIECE: bytes at a time, 65536
 *
 * Exits with 1 if the page is lost.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dcgm/page.h"

static const char *const line_names[SCRAPE_LINES] = {
#define SCRAPE_LINE(id_, name_, words_) [SCRAPE_LINE_##id_] = (name_),
#include "model/scraped.def"
};

static void print(json_t *line)
{
	json_dumpf(line, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(line);
}

static void print_row(const struct scraped_row *row)
{
	json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "table", "row",
				 "uuid", row->uuid, "gi", row->gi, "gpu", row->gpu, "device", row->device,
				 "profile", row->mig_profile, "namespace", row->namespace, "pod", row->pod,
				 "container", row->container, "node", row->node, "model", row->model);

	for (unsigned i = 0; i < SCRAPED_METRICS; i++)
		if (scraped_has(row, i))
			json_object_set_new(json, contract_rows[i].member, json_real(row->v[i]));
	print(json);
}

static json_t *number(uint32_t value)
{
	return value == UINT32_MAX ? json_null() : json_integer(value);
}

static void print_device(const struct dcgm_device *d)
{
	json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "table", "device",
				 "uuid", d->uuid, "name", d->name, "pci_bus_id", d->pci_bus_id, "profile",
				 d->mig_profile, "driver", d->driver_version, "index", number(d->index),
				 "minor", number(d->minor), "gi", number(d->gi), "xid", number(d->xid));

	for (unsigned i = 0; i < GPU_METRICS; i++)
		if (presence_is(d->p[i]))
			json_object_set_new(json, gpu_metrics[i].id, json_real(d->v[i]));
	print(json);
}

/* Of this program alone, while getrusage() tells also what its parent had. 0: not known. */
static json_int_t peak_kib(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long long kib = 0;

	while (f && fgets(line, sizeof(line), f) && sscanf(line, "VmHWM: %lld", &kib) != 1)
		;
	if (f)
		fclose(f);
	return kib;
}

static void print_end(const struct page *page, int error)
{
	const struct exposition *e = page_exposition(page);
	json_t *json =
		json_pack("{s:s, s:b, s:I, s:I}", "table", "end", "simulated", (int)page_simulated(page),
			  "lines", (json_int_t)e->lines, "peak_kib", peak_kib());

	if (error == -EBADMSG)
		json_object_set_new(json, "lost", json_string(line_names[e->failed]));
	for (unsigned i = SCRAPE_LINE_TAKEN + 1; i < SCRAPE_LINES; i++)
		if (e->dropped[i])
			json_object_set_new(json, line_names[i], json_integer((json_int_t)e->dropped[i]));
	print(json);
}

int main(int argc, char **argv)
{
	static const char *const nodes[] = { NULL };
	_cleanup_(page_freep) struct page *page = NULL;
	bool strict = argc > 1 && strcmp(argv[1], "strict") == 0;
	size_t piece = argc > 1 + strict ? strtoul(argv[1 + strict], NULL, 10) : 65536;
	char *data = malloc(piece + 1);
	ssize_t n;
	int r = families_init();

	if (r == 0)
		r = page_new(strict, true, "", nodes, &page);
	if (!data || r < 0)
		return 2;
	while (r == 0 && (n = read(STDIN_FILENO, data, piece)) > 0)
		r = page_feed(page, data, (size_t)n);
	if (r == 0)
		r = page_end(page);
	free(data);
	for (uint32_t i = 0; r == 0 && i < page_rows(page); i++) {
		struct scraped_row row;

		page_row(page, i, &row);
		print_row(&row);
	}
	for (uint32_t i = 0; r == 0 && i < page_devices(page); i++)
		print_device(page_device(page, i));
	print_end(page, r);
	return r < 0;
}
