// SPDX-License-Identifier: Apache-2.0
/* "gpusonde doctor --pid": what of each layer can be seen of a process, and why not. */
#include "cmd/doctor/doctor.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/raised.h"
#include "base/text.h"
#include "elf/elf.h"
#include "proc/mapped.h"
#include "proc/maps.h"
#include "proc/mounts.h"
#include "python/find.h"
#include "trace/list.h"
#include "view/table/table.h"

/* A layer of libraries, and how its figures are asked for. */
struct layer {
	const char *name;
	unsigned libraries; /* LIBRARY_BIT() of each */
	const char *how; /* NULL: they are always there */
};

struct layer_tally {
	unsigned files, all, probed;
	unsigned inside; /* of the files, those that have a copy of the library in them, by another name */
	char missing[128]; /* the first that is not probed */
};

static int tally_site(const struct trace_listing *listing, void *userdata)
{
	struct layer_tally *tally = userdata;
	bool seen = listing->site.chosen || listing->left_to_driver;

	tally->all++;
	tally->probed += seen;
	/* Symbols are the file's words. */
	if (!seen && !tally->missing[0] && text_is_printable(listing->symbol)) {
		snprintf(tally->missing, sizeof(tally->missing), "%s", listing->symbol);
		utf8_sanitize(tally->missing); /* it may be cut */
	}
	return 0;
}

/* @libraries: which of the layer's are looked for in it. */
static int tally_file(struct mounts_user *user, const struct proc_map *map, unsigned libraries,
		      bool allow_single_step, struct layer_tally *tally)
{
	_cleanup_close_ int fd = -1;
	_cleanup_(elf_closep) struct elf_file *file = NULL;
	struct site_query query = { 0 };
	unsigned before = tally->all;
	struct stat st;
	int r = proc_map_open("/proc", map, user, &fd, &st);

	if (r == 0)
		r = elf_open(fd, &file);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < PROBE_LIBRARIES; i++)
		query.libraries[i] = libraries & LIBRARY_BIT(i);
	site_rules_default(elf_machine(file), &query.rules);
	query.rules.allow_single_step = allow_single_step;
	r = trace_list_sites(fd, &query, tally_site, tally, NULL);
	tally->files += r == 0 && tally->all > before;
	return r;
}

/* Those of the layer that any file may have a static copy of. */
static unsigned libraries_anywhere(const struct layer *layer)
{
	unsigned found = 0;

	for (unsigned i = 0; i < PROBE_LIBRARIES; i++)
		if (probe_libraries[i].anywhere)
			found |= layer->libraries & LIBRARY_BIT(i);
	return found;
}

/* The same file may be mapped executable several times; that is rare, and counts as often. */
static int tally_layer(const struct doctor *d, pid_t pid, const struct layer *layer,
		       struct layer_tally *tally, char failed[static PATH_MAX])
{
	bool single_step = options_bool(&d->invocation->options, OPT_trace_allow_single_step);
	_cleanup_(mounts_freep) struct mounts *mounts = NULL;
	struct mounts_user user = { .pid = pid };
	struct proc_maps maps = { .fd = -1 };
	uint64_t last_ino = 0;
	struct proc_map map;
	int r = mounts_new("/proc", &mounts), error = 0;

	user.mounts = mounts;
	if (r == 0)
		r = proc_maps_open("/proc", pid, &maps);

	while (r >= 0 && (r = proc_maps_next(&maps, &map)) > 0) {
		bool named = library_of_path(map.path, map.path_n) & layer->libraries;
		unsigned libraries = named ? layer->libraries : libraries_anywhere(layer),
			 files = tally->files;
		int opened;

		if (!map.executable || map.ino == 0 || map.ino == last_ino || !libraries)
			continue;
		last_ino = map.ino;
		opened = tally_file(&user, &map, libraries, single_step, tally);
		/* What has another name has most likely none of it, and need not be readable. */
		if (!named)
			tally->inside += tally->files - files;
		if (named && opened < 0 && error == 0) {
			error = opened;
			snprintf(failed, PATH_MAX, "%.*s", (int)map.path_n, map.path);
		}
	}
	proc_maps_done(&maps);
	return r < 0 ? r : error;
}

static void found_unreadable(struct finding *f, const char *what, int error)
{
	char clean[400];
	struct strbuf text;

	strbuf_init(&text, 0);
	text_clean(&text, what);
	snprintf(clean, sizeof(clean), "%s", text.data);
	strbuf_done(&text);
	found(f, VERDICT_WARNING, "%s cannot be read: %s", clean, strerror(-error));
	if (error == -EACCES || error == -EPERM)
		remedy(f, "run gpusonde doctor as root, or as the process's user with the capabilities that "
			  "gpusonde trace needs (docs/capabilities.md)");
	else if (error == -EREMOTEIO)
		remedy(f, "a user serves its file system, and may never answer: it is not probed either");
	else
		remedy(f, "the file was replaced or removed since the process started: restart the process");
}

static void check_layer(const struct doctor *d, pid_t pid, const struct layer *layer, struct finding *f)
{
	char failed[PATH_MAX] = "its mappings";
	struct layer_tally tally = { 0 };
	int r = tally_layer(d, pid, layer, &tally, failed);

	if (r < 0) {
		found_unreadable(f, failed, r);
		return;
	}
	if (tally.all == 0) {
		found(f, VERDICT_NOTE,
		      "no library of %s is mapped, or none with symbols: nothing of it is seen", layer->name);
		return;
	}
	found(f,
	      tally.probed == 0        ? VERDICT_WARNING :
	      tally.probed < tally.all ? VERDICT_NOTE :
					 VERDICT_OK,
	      "%u of %u entry points can be probed, in %u file%s%s%s%s%s", tally.probed, tally.all,
	      tally.files, tally.files == 1 ? "" : "s",
	      tally.inside > 0 ? ", linked in: only gpusonde trace -p looks there" : "",
	      tally.missing[0] ? "; not " : "", tally.missing,
	      tally.missing[0] && tally.all - tally.probed > 1 ? " and others" : "");
	if (tally.probed < tally.all)
		remedy(f, "gpusonde probes FILE says why of each; their calls are not seen");
	else if (layer->how)
		remedy(f, "%s", layer->how);
}

static void check_python(pid_t pid, struct finding *f)
{
	struct trace_python python;
	uint32_t version = 0;
	int r = python_find("/proc", pid, &version, &python);

	if (r == 0) {
		found(f, VERDICT_OK, "CPython %u.%u: its frames can be read", version >> 24,
		      version >> 16 & 0xff);
		remedy(f, "gpusonde trace --stacks FILE -p %d records them", (int)pid);
	} else if (r == -EACCES || r == -EPERM) {
		found_unreadable(f, "its memory", r);
	} else if (version) {
		found(f, VERDICT_WARNING, "CPython %u.%u: its frames cannot be read: %s", version >> 24,
		      version >> 16 & 0xff, strerror(-r));
		remedy(f, "frames of CPython 3.8 to 3.15 can be read, with their symbols");
	} else {
		found(f, VERDICT_NOTE, "no CPython that is known: no frames of Python are seen");
	}
}

/* Tasks of asyncio that await the running one: docs/python.md. */
static void check_tasks(pid_t pid, struct finding *f)
{
	struct trace_python python;
	uint32_t version = 0;
	int r = python_find("/proc", pid, &version, &python);

	if (r == -EACCES || r == -EPERM)
		found_unreadable(f, "its memory", r);
	else if (r < 0)
		found(f, VERDICT_NOTE, "no CPython that is known: no tasks of asyncio are seen");
	else if (python.thread_task)
		found(f, VERDICT_OK, "stacks have the tasks of asyncio that await the running one");
	else if (version < PYTHON_VERSION(3, 14))
		found(f, VERDICT_NOTE,
		      "which task of asyncio awaits the running one is not seen: before 3.14 the interpreter "
		      "does not say which one a thread runs");
	else
		found(f, VERDICT_NOTE,
		      "which task of asyncio awaits the running one is not seen: where a free-threaded build "
		      "has its tasks is not known");
}

/* Start and end of functions of Python by name: docs/python.md. */
static void check_functions(pid_t pid, struct finding *f)
{
	struct trace_python python;
	uint32_t version = 0;
	const char *why = "it runs many functions in one call of its loop, and has no markers for them";
	int r = python_find("/proc", pid, &version, &python);

	if (r == -EACCES || r == -EPERM) {
		found_unreadable(f, "its memory", r);
		return;
	}
	if (r < 0) {
		found(f, VERDICT_NOTE, "no CPython that is known: no functions of Python are seen");
		return;
	}
	if (version < PYTHON_VERSION(3, 11))
		why = "all functions enter its loop at one place, where a probe would be hit by each";
	else if (version < PYTHON_VERSION(3, 12))
		why = "it runs many functions in one call of its loop; its markers want a write into it";
	found(f, VERDICT_NOTE, "start and end of a function by name are not seen: %s", why);
	remedy(f, "gpusonde trace --stacks FILE -p %d says at each call of CUDA which functions run",
	       (int)pid);
}

/* Files with code, and those without rules for native frames. */
struct rules_tally {
	unsigned files, without;
	char missing[128]; /* the first one */
};

static void tally_rules(struct mounts_user *user, const struct proc_map *map, struct rules_tally *tally)
{
	const char *last = memrchr(map->path, '/', map->path_n);
	_cleanup_(elf_closep) struct elf_file *file = NULL;
	_cleanup_close_ int fd = -1;
	uint64_t offset, size;
	struct stat st;
	int r = proc_map_open("/proc", map, user, &fd, &st);

	if (r == 0)
		r = elf_open(fd, &file);
	if (r == 0)
		r = elf_section(file, ".eh_frame", &offset, &size);
	tally->files++;
	tally->without += r < 0;
	if (r == 0 || tally->missing[0] || !last)
		return;
	snprintf(tally->missing, sizeof(tally->missing), "%.*s",
		 (int)(map->path_n - (size_t)(last + 1 - map->path)), last + 1);
	utf8_sanitize(tally->missing);
	if (!text_is_printable(tally->missing))
		tally->missing[0] = '\0';
}

static int tally_native(pid_t pid, struct rules_tally *tally)
{
	_cleanup_(proc_maps_done) struct proc_maps maps = { .fd = -1 };
	_cleanup_(mounts_freep) struct mounts *mounts = NULL;
	struct mounts_user user = { .pid = pid };
	uint64_t last_dev = 0, last_ino = 0;
	struct proc_map map;
	int r = mounts_new("/proc", &mounts);

	user.mounts = mounts;
	if (r == 0)
		r = proc_maps_open("/proc", pid, &maps);
	while (r >= 0 && (r = proc_maps_next(&maps, &map)) > 0) {
		if (!map.executable || map.ino == 0 || map.path_n == 0 ||
		    (map.dev == last_dev && map.ino == last_ino))
			continue;
		last_dev = map.dev;
		last_ino = map.ino;
		tally_rules(&user, &map, tally);
	}
	return r;
}

static void check_native(pid_t pid, struct finding *f)
{
	struct rules_tally tally = { 0 };
	int r = tally_native(pid, &tally);

	if (r < 0 || tally.files == 0) {
		found_unreadable(f, "its mappings", r < 0 ? r : -ENOENT);
		return;
	}
	found(f, tally.without == 0 ? VERDICT_OK : VERDICT_NOTE,
	      "%u of %u files with code say how their frames are unwound%s%s%s", tally.files - tally.without,
	      tally.files, tally.missing[0] ? "; not " : "", tally.missing,
	      tally.missing[0] && tally.without > 1 ? " and others" : "");
	if (tally.without == 0)
		remedy(f,
		       "gpusonde trace --stacks FILE -p %d records them; the agent with trace.native_stacks",
		       (int)pid);
	else
		remedy(f, "through other files stacks go on by frame pointers, where these are kept, or end");
}

/* What the agent says of the process. */
static void check_traced(const struct doctor *d, pid_t pid, struct finding *f)
{
	json_t *processes = json_object_get(d->trace, "processes"), *process, *bit;
	struct strbuf bits;
	size_t i, k;

	if (!d->trace) {
		found(f, VERDICT_NOTE, "no agent that traces answers: gpusonde trace -p %d shows its calls",
		      (int)pid);
		return;
	}
	strbuf_init(&bits, 0);
	json_array_foreach(processes, i, process) {
		if (json_integer_value(json_object_get(process, "pid")) != pid ||
		    json_is_true(json_object_get(process, "exited")))
			continue;
		json_array_foreach(json_object_get(process, "incomplete"), k, bit)
			strbuf_addf(&bits, "%s%s", k > 0 ? ", " : "", json_string_value(bit));
		found(f, bits.len > 0 ? VERDICT_WARNING : VERDICT_OK, "the agent traces it%s%s",
		      bits.len > 0 ? "; incomplete: " : "", bits.len > 0 ? bits.data : "");
		if (bits.len > 0)
			remedy(f, "docs/tracing.md says what each word means, and what helps");
		strbuf_done(&bits);
		return;
	}
	strbuf_done(&bits);
	found(f, VERDICT_NOTE, "the agent has seen no call of it");
}

static const struct layer layers[] = {
	{ "CUDA", LIBRARY_BIT(PROBE_CUDA) | LIBRARY_BIT(PROBE_CUDART), NULL },
	{ "cuBLAS", LIBRARY_BIT(PROBE_CUBLAS) | LIBRARY_BIT(PROBE_CUBLASLT),
	  "gpusonde trace --blas shows them; the agent with trace.blas" },
	{ "cuDNN", LIBRARY_BIT(PROBE_CUDNN), "gpusonde trace --blas shows them; the agent with trace.blas" },
	{ "NCCL", LIBRARY_BIT(PROBE_NCCL), "gpusonde trace --nccl shows them; the agent with trace.nccl" },
	{ "PyTorch", LIBRARY_BIT(PROBE_TORCH),
	  "gpusonde trace --torch shows them; the agent with trace.operators" },
};

unsigned doctor_process(const struct doctor *d, pid_t pid, struct named_finding *rows)
{
	unsigned n = 0;
	WITH_CAPABILITIES;

	for (size_t i = 0; i < ARRAY_SIZE(layers); i++, n++) {
		rows[n].name = layers[i].name;
		check_layer(d, pid, &layers[i], &rows[n].finding);
	}
	rows[n].name = "CPython";
	check_python(pid, &rows[n++].finding);
	rows[n].name = "asyncio";
	check_tasks(pid, &rows[n++].finding);
	rows[n].name = "Python functions";
	check_functions(pid, &rows[n++].finding);
	rows[n].name = "native";
	check_native(pid, &rows[n++].finding);
	rows[n].name = "agent";
	check_traced(d, pid, &rows[n++].finding);
	return n;
}
