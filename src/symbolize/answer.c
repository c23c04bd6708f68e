// SPDX-License-Identifier: Apache-2.0
#include "symbolize/answer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cubin/name.h"
#include "symbolize/figures.h"
#include "symbolize/file.h"
#include "symbolize/image.h"
#include "symbolize/intern.h"
#include "symbolize/names.h"
#include "symbolize/process.h"
#include "symbolize/stubs.h"
#include "symbolize/worker.h"

/* State of one question while it is answered. */
struct finding {
	struct symbolizer *symbolizer;
	const struct symbolizer_question *question;
	const struct work *work;
	struct process *process; /* NULL: the process has ended, and its mappings were never read */
	enum kernel_source source;
	char *symbol; /* owned */
	const char *file; /* of the question or the process */
	uint64_t offset; /* of an unresolved function */
	struct resources resources;
	bool later; /* something could not be read now, but may be readable later */
	bool lacks; /* all kernels of the last file are known, and it is none of them */
	bool ambiguous; /* variables of several kernels hold the handle */
	struct symbol_key key; /* of the symbol that was found by handle */
};

/* A missing name is a valid answer; out of memory and our termination are not. */
static bool is_fatal(int r)
{
	return r == -ENOMEM || r == -ECANCELED;
}

/* Records a failure that may be temporary. */
static void note(struct finding *f, int r)
{
	f->later |= r < 0 && r != -ENODATA && r != -ENOEXEC && r != -ENOENT && r != -ESRCH;
}

/* ---- resources ---- */

/* Adds the resources from a file that contains the kernel or (@sure false) may contain it. */
static int add_of_file(struct finding *f, struct file *file, const struct place *place, bool sure,
		       bool *ret_found)
{
	struct symbol_key key = symbol_key(f->symbol, strlen(f->symbol));
	const struct figures *figures;
	int r = file_figures(f->symbolizer, file, place, f->question->sm, &figures);

	*ret_found = false;
	note(f, r);
	if (r < 0)
		return is_fatal(r) ? r : 0;
	*ret_found = figures_find(figures, key, f->question->sm, &f->resources);
	f->lacks = !*ret_found && figures->whole && !figures->unnamed_jit && figures->n > 0;
	/* If all other kernels are known, it can only be one of those without names. */
	if (!*ret_found && sure && figures->unnamed_jit && figures->whole) {
		resources_add_unknown(&f->resources, true);
		*ret_found = true;
	}
	return 0;
}

static int add_of_mapped(struct finding *f, struct mapped *mapped, bool sure, bool *ret_found)
{
	struct file *file = mapped_file(f->symbolizer, f->process, mapped);
	struct place place = mapped_place(f->process, mapped);
	int r;

	*ret_found = false;
	if (!file)
		return 0;
	file->busy++;
	r = file_has_device_code(f->symbolizer, file, &place);
	note(f, r);
	r = r == 1 ? add_of_file(f, file, &place, sure, ret_found) : is_fatal(r) ? r : 0;
	file->busy--;
	return r;
}

/* Any of the process's files may contain the kernel; all are read, since two may differ. */
static int add_of_all(struct finding *f)
{
	unsigned files = 0;

	for (uint32_t i = 0; f->process && i < f->process->mapped_n; i++) {
		bool found;
		int r = add_of_mapped(f, &f->process->mapped[i], false, &found);

		if (r < 0)
			return r;
		if (found)
			f->file = files++ == 0 ? f->process->mapped[i].path : "";
	}
	return 0;
}

static int add_of_path(struct finding *f)
{
	struct place place = { .pid = (pid_t)f->question->process.pid, .path = f->question->path };
	struct file *file;
	bool found;
	int r;

	f->file = f->question->path;
	/* Another process, or the next program, may have another file there. */
	if (!f->process || f->process->gone)
		return 0;
	r = file_find(f->symbolizer, &place, &file);
	note(f, r);
	if (r < 0)
		return is_fatal(r) ? r : 0;
	file->busy++;
	r = add_of_file(f, file, &place, true, &found);
	file->busy--;
	return r;
}

static int add_of_image(struct finding *f)
{
	const struct symbolizer_question *q = f->question;
	struct symbol_key key = symbol_key(f->symbol, strlen(f->symbol));
	struct area *area = NULL;
	bool found;

	if (image_find(f->symbolizer, q, f->work->seq, key, &f->resources))
		return 0;
	if (f->process && (f->process->gone || !f->symbolizer->config.read_memory))
		area = process_area(f->process, q->image);
	else if (f->process)
		area = process_area(f->process, image_address((pid_t)q->process.pid, q->image));
	if (!area)
		return 0;
	f->file = f->process->mapped[area->mapped].path;
	return add_of_mapped(f, &f->process->mapped[area->mapped], true, &found);
}

static int find_resources(struct finding *f)
{
	if (f->question->path[0])
		return add_of_path(f);
	if (f->question->image)
		return add_of_image(f);
	return add_of_all(f);
}

/* ---- names ---- */

static int take_stub(struct finding *f, const struct stub_table *stubs, const struct stub_entry *entry,
		     enum kernel_source source, struct mapped *mapped)
{
	bool found;
	int r = names_get(stubs->names, entry->name, &f->symbol);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	f->source = source;
	f->file = mapped->path;
	f->lacks = false;
	r = add_of_mapped(f, mapped, true, &found);
	/* Code that looks like a stub, but is none. */
	if (entry->source == KERNEL_SOURCE_SYMBOL && f->lacks)
		free(TAKE_PTR(f->symbol));
	return r;
}

/* Several variables hold the handle: only an answer if all belong to one kernel. */
static int take_holder(struct finding *f, const struct stub_table *stubs, const struct stub_entry *entry,
		       struct mapped *mapped)
{
	bool found;

	if (!f->symbol) {
		f->key = (struct symbol_key){ entry->hash, entry->check };
		return take_stub(f, stubs, entry, KERNEL_SOURCE_REGISTERED, mapped);
	}
	if (symbol_key_compare(entry->hash, entry->check, f->key) == 0)
		return add_of_mapped(f, mapped, true, &found);
	f->ambiguous = true;
	return 0;
}

/* Used if the address lies in a file. */
static int find_host_function(struct finding *f, struct area *area)
{
	struct mapped *mapped = &f->process->mapped[area->mapped];
	struct file *file = mapped_file(f->symbolizer, f->process, mapped);
	struct place place = mapped_place(f->process, mapped);
	const struct stub_table *stubs;
	const struct stub_entry *entry;
	uint64_t linked;
	int r;

	f->file = mapped->path;
	f->offset = f->question->function - area->start + area->offset;
	if (!file || !area->executable || file_linked(file, f->offset, &linked) < 0)
		return 0;
	file->busy++;
	r = file_stubs(f->symbolizer, file, &place, &stubs);
	note(f, r);
	entry = r == 0 ? stub_table_find(stubs, linked) : NULL;
	if (entry)
		r = take_stub(f, stubs, entry, (enum kernel_source)entry->source, mapped);
	file->busy--;
	return is_fatal(r) ? r : 0;
}

static int find_in_area(struct finding *f, struct area *area)
{
	struct mapped *mapped = &f->process->mapped[area->mapped];
	struct file *file = mapped_file(f->symbolizer, f->process, mapped);
	struct place place = mapped_place(f->process, mapped);
	const struct stub_table *stubs;
	const struct stub_entry *entry;
	int r;

	if (!file)
		return 0;
	file->busy++;
	r = file_has_device_code(f->symbolizer, file, &place);
	note(f, r);
	if (r == 1)
		r = file_stubs(f->symbolizer, file, &place, &stubs);
	note(f, r);
	/* r == 0 may also mean "no device code"; then there are no stubs. */
	if (r == 0 && file->device_code == DEVICE_CODE) {
		r = area_handle(f->symbolizer, f->process, area, stubs, f->work->asked_ns,
				f->question->function, &entry);
		f->ambiguous |= r == -ENOTUNIQ;
		if (r == 0)
			r = take_holder(f, stubs, entry, mapped);
	}
	file->busy--;
	return is_fatal(r) ? r : 0;
}

/*
 * For a handle: a stub's variable contains it. A handle that was freed and reused may be in another variable,
 * too.
 */
static int find_handle(struct finding *f)
{
	for (uint32_t i = 0; i < f->process->areas_n && !f->ambiguous; i++) {
		int r = f->process->areas[i].executable ? find_in_area(f, &f->process->areas[i]) : 0;

		if (r < 0)
			return r;
	}
	if (f->ambiguous) {
		free(TAKE_PTR(f->symbol));
		f->file = "";
		resources_init(&f->resources);
	}
	return 0;
}

static int find_in_memory(struct finding *f)
{
	int r = memory_symbol(f->symbolizer, f->process, f->question->function, &f->symbol);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	f->source = KERNEL_SOURCE_MEMORY;
	return add_of_all(f);
}

static int find_name(struct finding *f)
{
	struct area *area = process_area(f->process, f->question->function);
	int r;

	if (area)
		return find_host_function(f, area);
	r = find_handle(f);
	if (r == 0 && !f->symbol && f->symbolizer->config.read_memory)
		r = find_in_memory(f);
	/* The file that it belongs to may just be being mapped. */
	f->later |= !f->symbol;
	return r;
}

/* ---- the answer ---- */

/* Names of files and symbols are untrusted. */
static char *clean(const char *text)
{
	char *copy = strdup(text);

	for (char *c = copy; c && *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	if (copy)
		utf8_sanitize(copy);
	return copy;
}

static void name_unresolved(struct finding *f, const char *file)
{
	struct symbolizer *symbolizer = f->symbolizer;
	const char *base = strrchr(file, '/');

	if (file[0])
		snprintf(symbolizer->brief, sizeof(symbolizer->brief), "%s+0x%" PRIx64,
			 base ? base + 1 : file, f->offset);
	else
		snprintf(symbolizer->brief, sizeof(symbolizer->brief), "0x%" PRIx64, f->question->function);
	memcpy(symbolizer->name, symbolizer->brief, sizeof(symbolizer->brief));
}

static int make(struct finding *f, struct kernel **ret_kernel)
{
	struct symbolizer *symbolizer = f->symbolizer;
	_cleanup_free_ char *file = clean(f->file);
	_cleanup_free_ char *symbol = clean(f->symbol ? f->symbol : "");
	struct kernel kernel = { .source = f->symbol ? f->source : KERNEL_SOURCE_UNRESOLVED };
	int r;

	if (!file || !symbol)
		return -ENOMEM;
	if (f->symbol) {
		kernel_name_demangle(f->symbol, symbolizer->name, sizeof(symbolizer->name));
		kernel_name_brief(symbolizer->name, symbolizer->brief, sizeof(symbolizer->brief));
		kernel.arch = f->resources.arch;
		kernel.jit = f->resources.jit;
	} else {
		name_unresolved(f, file);
		kernel.offset = file[0] ? f->offset : 0;
	}
	kernel.symbol = f->symbol ? symbol : symbolizer->brief;
	kernel.name = symbolizer->name;
	kernel.brief = symbolizer->brief;
	kernel.file = file;
	memcpy(kernel.figures, f->resources.figures, sizeof(kernel.figures));
	r = kernels_intern(symbolizer->kernels, &kernel, ret_kernel);
	pthread_mutex_lock(&symbolizer->lock);
	symbolizer->stats.kernels = kernels_count(symbolizer->kernels);
	pthread_mutex_unlock(&symbolizer->lock);
	return r;
}

int answer_find(struct symbolizer *symbolizer, const struct work *work, struct kernel **ret_kernel)
{
	const struct symbolizer_question *q = &work->question;
	struct finding f = { .symbolizer = symbolizer, .question = q, .work = work, .file = "" };
	int r;

	resources_init(&f.resources);
	r = process_look(symbolizer, q, work->asked_ns, &f.process);
	if (is_fatal(r))
		return r;
	if (r < 0)
		f.process = NULL;
	r = 0;
	if (f.process && (!q->symbol || q->symbol_last))
		r = find_name(&f);
	if (r == 0 && q->symbol && !f.symbol) {
		f.source = KERNEL_SOURCE_HANDLE;
		f.symbol = strdup(q->symbol);
		f.file = "";
		f.later = false;
		resources_init(&f.resources);
		r = f.symbol ? find_resources(&f) : -ENOMEM;
	}
	if (r == 0)
		r = make(&f, ret_kernel);
	if (r == 0 && f.later && f.process && !f.process->gone)
		r = -EAGAIN;
	free(f.symbol);
	return r;
}
