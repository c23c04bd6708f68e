// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/raised.h"
#include "pipeline/measured.h"
#include "pipeline/stacks.h"

enum { LAST_BYTES = 32 << 20, NAMES_SECONDS = 60 };
#define FINISH_NS (60 * NSEC_PER_SEC) /* a disk that takes longer to write what waits is taken for hung */

struct timeline_file {
	struct trace_recorder *recorder;
	struct trace_kernels *kernels;
	struct stack_sums *stacks; /* NULL: not recorded */
	unsigned seconds, name_at; /* of those in which functions wanted names */
	const char *path; /* the command line's */
	struct timeline_files_config files;
	size_t stem; /* bytes of files.stem before a number */
	int64_t last_ns; /* only the newest part is written; 0: all */
	int64_t unasked_ns; /* when it was written for what happened, last; 0: never */
	unsigned dumps;
	char asked[32]; /* why what is kept is to be written; "": it is not */
	struct strbuf said;
};

struct trace_timeline *timeline_file_timeline(struct timeline_file *file)
{
	return trace_recorder_timeline(file->recorder);
}

void timeline_file_set_stacks(struct timeline_file *file, struct stack_sums *stacks)
{
	file->stacks = stacks;
	trace_timeline_set_stacks(timeline_file_timeline(file), stacks);
}

/* Reading symbols takes this thread's time, so it is done less and less often. */
static void name_functions(struct timeline_file *file)
{
	if (!file->stacks || !trace_timeline_wants_names(timeline_file_timeline(file)) ||
	    file->seconds++ < file->name_at)
		return;
	stack_sums_name(file->stacks);
	file->name_at = MIN(2 * file->seconds, file->seconds + NAMES_SECONDS);
}

void timeline_file_ask(struct timeline_file *file)
{
	snprintf(file->asked, sizeof(file->asked), "a signal");
}

/* What happens again and again is not written again and again. */
static void happened(struct timeline_file *file, const char *what)
{
	int64_t now_ns = clock_mono_ns();

	if (file->last_ns == 0 || (file->unasked_ns && now_ns - file->unasked_ns < file->last_ns))
		return;
	file->unasked_ns = now_ns;
	snprintf(file->asked, sizeof(file->asked), "%s", what);
}

void timeline_file_found(struct timeline_file *file, const char *finding)
{
	if (finding)
		happened(file, finding);
}

static void on_xid(uint32_t code, void *userdata)
{
	char what[sizeof("XID 4294967295")];

	snprintf(what, sizeof(what), "XID %" PRIu32, code);
	happened(userdata, what);
}

/* @number 0: the file itself. */
static int dump(struct timeline_file *file, unsigned number, const char *reason)
{
	WITH_RIGHTS_OF_USER;
	struct timeline_files_config files = file->files;

	if (number > 0)
		snprintf(files.stem + file->stem, sizeof(files.stem) - file->stem, ".%u", number);
	return trace_recorder_dump(file->recorder, &files, true, reason);
}

static void dump_asked(struct timeline_file *file)
{
	int r = dump(file, file->dumps + 1, file->asked);

	/* The one before is still being written: later. */
	if (r == -EBUSY)
		return;
	if (r < 0)
		fprintf(stderr, "gpusonde %s: what is kept for --last cannot be written: %s\n",
			trace_command_name(), strerror(-r));
	file->dumps++;
	file->asked[0] = '\0';
}

void timeline_file_collect(struct timeline_file *file)
{
	name_functions(file);
	trace_recorder_collect(file->recorder, trace_kernels_node(file->kernels));
	if (file->asked[0])
		dump_asked(file);
}

static void add_missing(struct strbuf *out, uint64_t n, const char *what)
{
	if (n > 0)
		strbuf_addf(out, "%s%" PRIu64 " %s", out->len > 0 ? "; " : "", n, what);
}

static int written(const struct timeline_file *file)
{
	struct timeline_writer_status files, dumped;

	trace_recorder_status(file->recorder, &files);
	trace_recorder_dump_status(file->recorder, &dumped);
	return files.error ? files.error : dumped.error;
}

/* Of the user's; what would wait for somebody is no file. */
static int user_open(const char *path)
{
	WITH_RIGHTS_OF_USER;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -ENOTSUP;
}

static void print_incomplete(struct timeline_file *file, const char *path)
{
	if (file->said.len > 0)
		fprintf(stderr, "gpusonde %s: INCOMPLETE: %s: %s\n", trace_command_name(), path,
			file->said.data);
	strbuf_reset(&file->said);
}

static int merge(struct timeline_file *file, const char *path)
{
	struct trace_timeline_merged merged = { 0 };
	int fd = user_open(path), r = fd;

	if (fd >= 0)
		r = trace_recorder_merge(file->recorder, fd, &merged);
	closep(&fd);
	if (r < 0) {
		fprintf(stderr, "gpusonde %s: %s is not merged: %s\n", trace_command_name(), path,
			merged.why ? merged.why : strerror(-r));
		return r;
	}
	add_missing(&file->said, merged.left_out, "events were left out");
	add_missing(&file->said, merged.cut, "spans were cut, since they ended after the one they began in");
	print_incomplete(file, path);
	return 0;
}

/* -errno of what could not be written. */
static int end_files(struct timeline_file *file)
{
	int r = 0;

	trace_recorder_stop(file->recorder);
	if (!trace_recorder_wait(file->recorder, FINISH_NS))
		r = -ETIMEDOUT;
	if (r == 0 && file->last_ns > 0)
		r = dump(file, 0, "the end of tracing");
	if (r == 0 && !trace_recorder_wait(file->recorder, FINISH_NS))
		r = -ETIMEDOUT;
	return r < 0 ? r : written(file);
}

int timeline_file_finish(struct timeline_file *file, const char *path)
{
	int merged = path ? merge(file, path) : 0, r = end_files(file);
	struct trace_timeline_missing missing = trace_recorder_missing(file->recorder);

	if (r < 0) {
		fprintf(stderr, "gpusonde %s: cannot write %s: %s\n", trace_command_name(), file->path,
			strerror(-r));
		return r;
	}
	add_missing(&file->said, missing.lost, "events were lost");
	add_missing(&file->said, missing.dropped, "events did not fit");
	add_missing(&file->said, missing.cut, "arguments did not fit");
	add_missing(&file->said, missing.unwritten, "events could not be written in time");
	print_incomplete(file, file->path);
	return merged;
}

/* What was there before stays until there is something to write. */
static int try_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int begin_output(struct timeline_file *file, const char *path)
{
	WITH_RIGHTS_OF_USER;

	return file->last_ns > 0 ? try_open(path) : trace_recorder_start(file->recorder, &file->files, true);
}

static int name_files(struct timeline_file *file, const char *path)
{
	enum timeline_format format;

	if (!timeline_format_of(path, &format, &file->stem) || file->stem >= sizeof(file->files.stem))
		return -ENAMETOOLONG;
	memcpy(file->files.stem, path, file->stem);
	return 0;
}

static int timeline_sinks_add(struct pipeline *pipeline, struct trace_timeline *timeline)
{
	struct measured *measured = pipeline_measured(pipeline);
	int r = span_sinks_add(pipeline_span_sinks(pipeline), trace_timeline_spans(timeline));

	if (r >= 0 && measured)
		r = work_sinks_add(measured_sinks(measured), trace_timeline_works(timeline));
	return r;
}

int timeline_file_new(const char *path, const struct timeline_request *request, struct trace_kernels *kernels,
		      struct timeline_file **ret_file)
{
	_cleanup_(timeline_file_freep) struct timeline_file *file = calloc(1, sizeof(*file));
	const struct trace_recorder_config config = {
		.format = request->format,
		.pipeline = trace_kernels_pipeline(kernels),
		.last_ns = request->last_ns,
		.last_bytes = LAST_BYTES,
		.xid = on_xid,
		.userdata = file,
	};
	int r;

	if (!file)
		return -ENOMEM;
	file->path = path;
	file->kernels = kernels;
	file->last_ns = request->last_ns;
	file->files = (struct timeline_files_config){
		.format = request->format,
		.folder = AT_FDCWD,
		.rotate_bytes = request->rotate_bytes,
		.rotate_ns = request->rotate_ns,
		.keep = request->keep,
	};
	strbuf_init(&file->said, 0);
	r = name_files(file, path);
	if (r == 0)
		r = trace_recorder_new(&config, &file->recorder);
	if (r == 0)
		r = begin_output(file, path);
	if (r < 0)
		return r;
	trace_timeline_node(timeline_file_timeline(file), trace_kernels_node(kernels));
	r = timeline_sinks_add(trace_kernels_pipeline(kernels), timeline_file_timeline(file));
	if (r < 0)
		return r;
	*ret_file = TAKE_PTR(file);
	return 0;
}

void timeline_file_free(struct timeline_file *file)
{
	if (!file)
		return;
	trace_recorder_free(file->recorder);
	strbuf_done(&file->said);
	free(file);
}
