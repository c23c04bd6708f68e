// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/top/host.h"
#include "cmd/top/value.h"
#include "view/view.h"

void tree_done(struct tree *tree)
{
	free(tree->headings);
	free(tree->of);
	*tree = (struct tree){ 0 };
}

const json_t *groups_document(const struct sample *sample, enum group_by by, json_t *documents)
{
	struct strbuf text;
	json_t *document = json_object();
	int r;

	strbuf_init(&text, 0);
	r = document ? json_groups(sample->snapshot, by, document, &text) : -ENOMEM;
	json_decref(document);
	document = r == 0 ? json_loadb(text.data, text.len, 0, NULL) : NULL;
	strbuf_done(&text);
	if (!document || json_array_append_new(documents, document) < 0)
		return NULL;
	return json_object_get(document, "groups");
}

/* ---- what the host says ---- */

static void add_host(struct heading_host *sums, const struct host_process *host)
{
	sums->known &= host != NULL;
	sums->cores_known &= host && host->cores >= 0;
	if (!host)
		return;
	sums->cores += MAX(host->cores, 0.0);
	sums->resident_bytes += (double)host->resident_bytes;
	sums->threads += (double)host->threads;
}

/* A process that uses several GPUs is added once. */
static int add_hosts(struct tree *tree, const struct sample *sample)
{
	const struct snapshot *s = sample->snapshot;
	_cleanup_free_ bool *counted = calloc(sample->processes_n + 1, sizeof(*counted));

	if (!counted)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->processes_n; i++) {
		const struct host_process *host = sample_process(sample, s->processes[i].id.pid);

		if (host && counted[host - sample->processes])
			continue;
		if (host)
			counted[host - sample->processes] = true;
		add_host(&tree->headings[tree->of[i]].host, host);
	}
	return 0;
}

/* ---- headings ---- */

static void set_heading(struct heading *heading, const struct sample *sample, const json_t *object)
{
	const struct row row = { .sample = sample, .object = object };
	struct value value = { 0 };

	*heading = (struct heading){ .sample = sample,
				     .object = object,
				     .host = { .known = true, .cores_known = true } };
	value_owner(sample, &row, &value);
	snprintf(heading->text, sizeof(heading->text), "%.120s", object ? value.text : "(not known)");
}

/* One more than there are groups: for processes that are in none. */
static int add_headings(struct tree *tree, const struct sample *sample, const json_t *list)
{
	uint32_t n = (uint32_t)json_array_size(list) + 1;
	struct heading *larger = realloc(tree->headings, (tree->n + n) * sizeof(*larger));

	if (!larger)
		return -ENOMEM;
	tree->headings = larger;
	for (uint32_t i = 0; i < n; i++)
		set_heading(&larger[tree->n + i], sample, json_array_get(list, i));
	tree->n += n;
	return 0;
}

/* Groups stand in the document in the order in which groups_make() makes them. */
static int find_headings(struct tree *tree, const struct sample *sample, enum group_by by, uint32_t first)
{
	const struct snapshot *s = sample->snapshot;
	_cleanup_free_ struct group *groups = NULL;
	uint32_t n = 0;
	int r = groups_make(s, by, &groups, &n);

	free(tree->of);
	tree->of = calloc(s->processes_n + 1, sizeof(*tree->of));
	if (r == 0)
		r = tree->of ? groups_of_processes(s, by, groups, n, tree->of) : -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < s->processes_n; i++)
		tree->of[i] = first + MIN(tree->of[i], tree->n - 1 - first);
	return r;
}

int tree_add(struct tree *tree, const struct sample *sample, enum group_by by, json_t *documents)
{
	const json_t *list = groups_document(sample, by, documents);
	uint32_t first = tree->n;
	int r = list ? add_headings(tree, sample, list) : -ENOMEM;

	if (r == 0)
		r = find_headings(tree, sample, by, first);
	return r < 0 ? r : add_hosts(tree, sample);
}

uint32_t tree_heading_of(const struct tree *tree, const struct sample *sample, const struct process *process)
{
	return process ? tree->of[process - sample->snapshot->processes] : tree->n - 1;
}

/* ---- which are closed ---- */

static uint32_t find_except(const struct closed *closed, uint64_t id)
{
	uint32_t i = 0;

	while (i < closed->n && closed->except[i] != id)
		i++;
	return i;
}

bool is_closed(const struct closed *closed, uint64_t id)
{
	return closed->all != (find_except(closed, id) < closed->n);
}

int toggle_closed(struct closed *closed, uint64_t id)
{
	uint32_t at = find_except(closed, id);
	uint64_t *larger;

	if (at < closed->n) {
		closed->except[at] = closed->except[--closed->n];
		return 0;
	}
	larger = realloc(closed->except, (closed->n + 1u) * sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	closed->except = larger;
	closed->except[closed->n++] = id;
	return 0;
}

void toggle_all_closed(struct closed *closed)
{
	free(closed->except);
	*closed = (struct closed){ .all = !closed->all };
}
