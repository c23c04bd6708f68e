// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <malloc.h>
#include <regex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "cmd/inspect/inspect.h"
#include "cmd/inspect/sort.h"

enum {
	WRITE_BYTES = 64 << 10,
	/* More threads would mostly wait: they share the memory, and large images are read one at a time. */
	THREADS_MAX = 4,
};

struct worker {
	struct work *work;
	void *state;
	struct inspect_names *names;
	regex_t regex; /* one per thread: glibc locks it */
	bool by_name;
	uint64_t part; /* of the file, being read */
	struct inspect_chunk chunk; /* text and errors of that part */
	struct inspect_sorted sorted; /* with --sort, instead of the chunk's text: of all parts */
	uint32_t images; /* shown images of all files */
	uint64_t images_found, to_compile, kernels;
	struct kernel_arch archs[INSPECT_ARCHS]; /* of all images, which every worker sees */
	unsigned archs_n;
	bool archs_left_out;
};

struct work {
	const struct inspect_reading *in;
	const struct inspect_writer *writer;
	struct worker workers[THREADS_MAX];
	unsigned workers_n;
	struct inspect_order order;
	const struct inspect_file *file; /* being read */
	/* Below: used by the main thread, or by the thread of the next part in order. */
	struct strbuf out, heading;
	bool some_kernels;
	unsigned errors; /* of the file */
	uint64_t errors_left_out;
	int error;
};

static int flush(struct work *work, bool all)
{
	ssize_t n;

	if (work->error == 0 && work->out.failed)
		work->error = -ENOMEM;
	if (work->error == 0 && (all || work->out.len >= WRITE_BYTES)) {
		n = write_all(work->in->fd, work->out.data, work->out.len);
		work->error = n < 0 ? (int)n : 0;
		strbuf_reset(&work->out);
	}
	return work->error;
}

void inspect_report(const struct inspect_reading *reading, const struct inspect_error *error)
{
	struct strbuf line;

	if (reading->writer->error) {
		reading->writer->error(reading->state, error);
		return;
	}
	strbuf_init(&line, 0);
	inspect_error_text(error, &line);
	fprintf(stderr, "gpusonde %s: %s\n", reading->command, line.data);
	strbuf_done(&line);
}

static void report_error(struct work *work, const char *text, const uint64_t *offset)
{
	const struct inspect_error error = {
		.file = work->file->path, .has_offset = offset, .offset = offset ? *offset : 0, .text = text
	};

	inspect_report(work->in, &error);
}

static void write_text(struct work *work, const char *text, size_t n)
{
	ssize_t r;

	if (work->heading.len && work->some_kernels)
		strbuf_addc(&work->out, '\n');
	strbuf_add(&work->out, work->heading.data, work->heading.len);
	strbuf_reset(&work->heading);
	if (!work->some_kernels) {
		text += work->writer->separator_n;
		n -= work->writer->separator_n;
	}
	work->some_kernels = true;
	if (n < WRITE_BYTES) {
		strbuf_add(&work->out, text, n);
	} else if (flush(work, true) == 0) {
		r = write_all(work->in->fd, text, n);
		work->error = r < 0 ? (int)r : 0;
	}
}

static int write_chunk(const struct inspect_chunk *chunk, void *userdata)
{
	struct work *work = userdata;
	const char *p = chunk->errors.data, *end = p + chunk->errors.len;

	if (chunk->text.len)
		write_text(work, chunk->text.data, chunk->text.len);
	while (p < end) {
		uint64_t offset;

		memcpy(&offset, p, sizeof(offset));
		p += sizeof(offset);
		if (++work->errors > CUBIN_TROUBLES_MAX)
			work->errors_left_out++;
		else
			report_error(work, p, &offset);
		p += strlen(p) + 1;
	}
	work->errors_left_out += chunk->errors_left_out;
	return flush(work, false);
}

static bool matches(const struct inspect_filter *filter, const struct cubin_image *image)
{
	return !filter->by_arch ||
	       (image->arch.sm == filter->arch.sm && image->arch.variant == filter->arch.variant);
}

static struct inspect_image shown_image(const struct work *work, const struct cubin_image *image)
{
	return (struct inspect_image){
		.file = work->file->path,
		.arch = image->arch,
		.kind = image->kind,
		.compression = image->compression,
		.debug = image->debug,
		.relocatable = image->relocatable,
		.offset = image->offset,
		.bytes = image->bytes,
		.uncompressed_bytes = image->uncompressed_bytes,
	};
}

static int count_image(const struct cubin_image *image, void *userdata)
{
	struct work *work = userdata;
	struct inspect_image shown;

	if (matches(&work->in->filter, image)) {
		shown = shown_image(work, image);
		work->writer->image(&work->out, work->in->state, &shown);
	}
	return flush(work, false) < 0 ? work->error : 1;
}

static void note_arch(struct worker *worker, struct kernel_arch arch)
{
	for (unsigned i = 0; i < worker->archs_n; i++)
		if (worker->archs[i].sm == arch.sm && worker->archs[i].variant == arch.variant)
			return;
	if (worker->archs_n < INSPECT_ARCHS)
		worker->archs[worker->archs_n++] = arch;
	else
		worker->archs_left_out = true;
}

static int on_image(const struct cubin_image *image, void *userdata)
{
	struct worker *worker = userdata;
	struct work *work = worker->work;
	struct inspect_image shown;

	worker->images_found++;
	note_arch(worker, image->arch);
	if (!matches(&work->in->filter, image))
		return 1;
	worker->images++;
	worker->to_compile += image->kind != CUBIN_ELF;
	if (!work->writer->images_first && work->writer->image) {
		shown = shown_image(work, image);
		work->writer->image(&worker->chunk.text, worker->state, &shown);
	}
	return atomic_load(&work->order.error);
}

/* Threads of the block that occupancy is given for; 0: unknown, or more than the kernel takes. */
static uint32_t block_threads(uint32_t wanted, const struct cubin_kernel *kernel)
{
	int64_t most = kernel->figures[KERNEL_MAX_THREADS];

	if (most <= 0 || most > UINT32_MAX)
		return wanted;
	return wanted == 0 ? (uint32_t)most : wanted <= most ? wanted : 0;
}

static int on_kernel(const struct cubin_image *image, const struct cubin_kernel *kernel, void *userdata)
{
	struct worker *worker = userdata;
	struct work *work = worker->work;
	struct inspect_kernel k = {
		.image_index = worker->images - 1,
		.relocatable = image->relocatable,
		.symbol = kernel->symbol,
		.symbol_n = kernel->symbol_n,
		.arch = kernel->arch,
		.figures = kernel->figures,
		.required_block = kernel->required_block,
		.cluster = kernel->cluster,
	};
	uint32_t threads = block_threads(work->in->block, kernel);

	k.name = inspect_names_get(worker->names, kernel->symbol, kernel->symbol_n);
	if (worker->by_name && regexec(&worker->regex, k.name.text, 0, NULL, 0) != 0 &&
	    regexec(&worker->regex, kernel->symbol, 0, NULL, 0) != 0)
		return 0;
	/* The resources of a relocatable kernel are known only after linking. */
	if (threads > 0 && !image->relocatable)
		k.has_occupancy =
			occupancy_of(kernel->arch.sm, kernel->figures, threads, 0, &k.occupancy) == 0;
	worker->kernels++;
	if (work->in->sort) {
		size_t at = worker->sorted.text.len;

		work->writer->kernel(&worker->sorted.text, worker->state, &k);
		return inspect_sorted_add(&worker->sorted, *work->in->sort, &k, worker->part, at);
	}
	work->writer->kernel(&worker->chunk.text, worker->state, &k);
	return inspect_order_flush(&work->order, worker->part, &worker->chunk);
}

static void on_error(uint64_t offset, const char *text, void *userdata)
{
	struct worker *worker = userdata;

	strbuf_add(&worker->chunk.errors, &offset, sizeof(offset));
	strbuf_add(&worker->chunk.errors, text, strlen(text) + 1);
}

static int on_begin(uint64_t part, void *userdata)
{
	struct worker *worker = userdata;

	worker->part = part;
	return 0;
}

static int on_end(uint64_t errors_left_out, void *userdata)
{
	struct worker *worker = userdata;

	worker->chunk.errors_left_out = errors_left_out;
	return inspect_order_end(&worker->work->order, worker->part, &worker->chunk);
}

static int on_alone(void *userdata)
{
	struct worker *worker = userdata;

	return inspect_order_await(&worker->work->order, worker->part);
}

static void write_kernel(const char *text, size_t n, void *userdata)
{
	struct work *work = userdata;

	if (work->error == 0)
		write_text(work, text, n);
	flush(work, false);
}

static void write_sorted(struct work *work)
{
	struct inspect_sorted *sorted[THREADS_MAX];
	int r;

	for (unsigned i = 0; i < work->workers_n; i++)
		sorted[i] = &work->workers[i].sorted;
	r = inspect_sorted_write(sorted, work->workers_n, write_kernel, work);
	if (r < 0)
		work->error = r;
}

static int read_kernels(struct work *work, const struct cubin_source *source)
{
	static const struct cubin_ops ops = { .image = on_image, .kernel = on_kernel, .trouble = on_error };
	static const struct cubin_parts parts = {
		.ops = &ops, .begin = on_begin, .end = on_end, .alone = on_alone
	};
	/* Total memory with names and text: 64 MiB for the libraries of NVIDIA and PyTorch. */
	static const struct cubin_limits limits = { .image_bytes = 20 << 20 };
	void *userdata[THREADS_MAX];
	int r;

	for (unsigned i = 0; i < work->workers_n; i++) {
		userdata[i] = &work->workers[i];
		/* A worker that the previous file did not need has not counted its images. */
		work->workers[i].images = work->workers[0].images;
	}
	inspect_order_restart(&work->order);
	strbuf_reset(&work->heading);
	if (work->writer->heading)
		work->writer->heading(&work->heading, work->in->state, work->file->path);
	r = cubin_read_parallel(source, &limits, &parts, userdata, work->workers_n);
	if (work->error == 0)
		work->error = atomic_load(&work->order.error);
	if (work->in->sort && work->error == 0 && r != -ENOMEM)
		write_sorted(work);
	return r;
}

static void report_left_out(struct work *work)
{
	static const uint64_t start = 0;
	char text[64];

	if (work->errors_left_out) {
		snprintf(text, sizeof(text), "%llu more things that could not be read",
			 (unsigned long long)work->errors_left_out);
		report_error(work, text, &start);
	}
	work->errors = 0;
	work->errors_left_out = 0;
}

static void read_one(struct work *work, bool images)
{
	static const struct cubin_ops counting = { .image = count_image };
	struct cubin_source source;
	int r = cubin_source_file(work->file->fd, &source);

	if (r == 0)
		r = images ? cubin_read(&source, NULL, &counting, work) : read_kernels(work, &source);
	if (work->error < 0 || images)
		return; /* errors are reported when the kernels are read */
	report_left_out(work);
	if (r < 0 && r != -ENODATA && r != -ENOEXEC)
		report_error(work, strerror(-r), NULL);
}

/* Errors of a file are reported; those of writing end it, in work->error. */
static void read_files(struct work *work, bool images)
{
	for (size_t i = 0; i < work->in->files->n && work->error == 0; i++) {
		work->file = &work->in->files->file[i];
		read_one(work, images);
	}
	work->file = &work->in->files->file[0];
}

static int worker_init(struct work *work, struct worker *worker)
{
	const struct inspect_filter *filter = &work->in->filter;

	worker->work = work;
	inspect_chunk_init(&worker->chunk);
	inspect_sorted_init(&worker->sorted);
	worker->state = calloc(1, work->writer->state_size);
	if (!worker->state)
		return -ENOMEM;
	work->writer->init(worker->state, &work->in->options);
	if (filter->kernel && regcomp(&worker->regex, filter->kernel, REG_EXTENDED | REG_NOSUB) != 0)
		return -ENOMEM;
	worker->by_name = filter->kernel != NULL;
	return inspect_names_new(work->writer->brief && !work->in->options.full, &worker->names);
}

static void worker_done(struct worker *worker)
{
	if (worker->state)
		worker->work->writer->done(worker->state);
	free(worker->state);
	if (worker->by_name)
		regfree(&worker->regex);
	inspect_names_free(worker->names);
	inspect_chunk_done(&worker->chunk);
	inspect_sorted_done(&worker->sorted);
}

static unsigned cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static int work_init(struct work *work, const struct inspect_reading *in)
{
	unsigned n = CLAMP(in->threads ? in->threads : cpus(), 1u, (unsigned)THREADS_MAX);
	int r = 0;

	*work = (struct work){ .in = in, .writer = in->writer };
	/* main() sets one arena; the threads would contend for it, since demangling allocates constantly. */
	mallopt(M_ARENA_MAX, THREADS_MAX);
	strbuf_init(&work->out, 0);
	strbuf_init(&work->heading, 0);
	inspect_order_init(&work->order, write_chunk, work);
	while (r == 0 && work->workers_n < n)
		r = worker_init(work, &work->workers[work->workers_n++]);
	return r;
}

static void work_done(struct work *work)
{
	for (unsigned i = 0; i < work->workers_n; i++)
		worker_done(&work->workers[i]);
	inspect_order_done(&work->order);
	strbuf_done(&work->out);
	strbuf_done(&work->heading);
}

static struct inspect_result result_of(struct work *work)
{
	struct inspect_result result = { .images_found = work->workers[0].images_found,
					 .images = work->workers[0].images,
					 .to_compile = work->workers[0].to_compile,
					 .archs_n = work->workers[0].archs_n,
					 .archs_left_out = work->workers[0].archs_left_out };

	memcpy(result.archs, work->workers[0].archs, sizeof(result.archs));
	for (unsigned i = 0; i < work->workers_n; i++) {
		result.kernels += work->workers[i].kernels;
		result.mangled += inspect_names_mangled(work->workers[i].names);
		if (work->writer->merge)
			work->writer->merge(work->in->state, work->workers[i].state, i == 0);
	}
	return result;
}

static void report_mangled(struct work *work, uint64_t n)
{
	char text[120];

	if (n == 0)
		return;
	snprintf(text, sizeof(text), "%llu names cannot be demangled and are shown mangled",
		 (unsigned long long)n);
	report_error(work, text, NULL);
}

int inspect_read(const struct inspect_reading *reading, struct inspect_result *ret_result)
{
	const struct inspect_writer *writer = reading->writer;
	_cleanup_(work_done) struct work work;
	int r = work_init(&work, reading);

	if (r < 0)
		return r;
	if (writer->begin)
		writer->begin(&work.out, reading->state);
	if (writer->images_first)
		read_files(&work, true);
	if (writer->kernels)
		writer->kernels(&work.out, reading->state);
	read_files(&work, false);
	*ret_result = result_of(&work);
	report_mangled(&work, ret_result->mangled);
	writer->end(&work.out, reading->state);
	return flush(&work, true);
}
