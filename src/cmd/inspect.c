// SPDX-License-Identifier: Apache-2.0
/* gpusonde inspect FILE, or -p PID: the CUDA kernels that files hold, and what the compiler made of them. */
#include "cmd/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "proc/mapped.h"
#include "proc/maps.h"
#include "view/table.h"

enum {
	FLUSH_BYTES = 64 << 10,
	BRIEF_BYTES = 16 << 10,
	FILES_MAX = 4096, /* that a process maps */
	OPEN_MAX_FILES = 256, /* of these, with device code in them */
};

struct inspected_file {
	char *path;
	int fd;
};

struct inspection {
	const struct invocation *inv;
	const struct inspect_writer *writer;
	void *state;
	struct inspect_out out;
	struct inspect_names *names;
	bool by_name, by_arch;
	regex_t regex;
	struct kernel_arch arch;
	struct inspected_file *files;
	size_t files_n;
	const struct inspected_file *file; /* that is being read */
	bool counting; /* images only */
	uint32_t images; /* shown ones, of all files */
	uint64_t images_found, kernels, troubles;
};

int inspect_flush(struct inspect_out *out, bool all)
{
	ssize_t n;

	if (out->error == 0 && out->text.failed)
		out->error = -ENOMEM;
	if (out->error == 0 && (all || out->text.len >= FLUSH_BYTES)) {
		n = write_all(STDOUT_FILENO, out->text.data, out->text.len);
		out->error = n < 0 ? (int)n : 0;
		strbuf_reset(&out->text);
	}
	return out->error;
}

static void say(const struct inspection *in, const char *path, const char *why)
{
	struct strbuf clean;

	strbuf_init(&clean, 0);
	text_clean(&clean, path);
	fprintf(stderr, "gpusonde %s: %s: %s\n", in->inv->command->name, clean.data, why);
	strbuf_done(&clean);
}

static void tell(struct inspection *in, const char *file, const char *text)
{
	struct inspect_trouble t = { .file = file, .text = text };

	in->troubles++;
	in->writer->trouble(&in->out, in->state, &t);
}

static bool wanted_image(const struct inspection *in, const struct cubin_image *image)
{
	return !in->by_arch || (image->arch.sm == in->arch.sm && image->arch.variant == in->arch.variant);
}

static int on_image(const struct cubin_image *image, void *userdata)
{
	struct inspection *in = userdata;
	bool told = in->counting || !in->writer->images_first;

	in->images_found++;
	if (!wanted_image(in, image))
		return 1;
	in->images++;
	if (told && in->writer->image)
		in->writer->image(&in->out, in->state, in->file->path, image);
	if (inspect_flush(&in->out, false) < 0)
		return in->out.error;
	return in->counting ? 1 : 0;
}

static int on_kernel(const struct cubin_image *image, const struct cubin_kernel *kernel, void *userdata)
{
	struct inspection *in = userdata;
	struct inspect_kernel k = {
		.image = image, .kernel = kernel, .image_index = in->images - 1, .file = in->file->path
	};
	int64_t threads = kernel->figures[KERNEL_MAX_THREADS];

	k.name = inspect_names_get(in->names, kernel->symbol, kernel->symbol_n);
	if (in->by_name && regexec(&in->regex, k.name, 0, NULL, 0) != 0 &&
	    regexec(&in->regex, kernel->symbol, 0, NULL, 0) != 0)
		return 0;
	if (threads > 0 && threads <= UINT32_MAX)
		k.has_occupancy = occupancy_of(kernel->arch.sm, kernel->figures, (uint32_t)threads, 0,
					       &k.occupancy) == 0;
	in->kernels++;
	in->writer->kernel(&in->out, in->state, &k);
	return inspect_flush(&in->out, false);
}

static void on_trouble(uint64_t offset, const char *text, void *userdata)
{
	struct inspection *in = userdata;
	struct inspect_trouble t = { .file = in->file->path, .has_offset = true, .offset = offset, .text = text };

	if (in->counting)
		return; /* they come again when kernels are read */
	in->troubles++;
	in->writer->trouble(&in->out, in->state, &t);
}

static int read_one(struct inspection *in, const struct inspected_file *file)
{
	static const struct cubin_ops ops = { .image = on_image, .kernel = on_kernel, .trouble = on_trouble };
	struct cubin_source source;
	int r = cubin_source_file(file->fd, &source);

	in->file = file;
	return r < 0 ? r : cubin_read(&source, NULL, &ops, in);
}

/* All files, images or kernels. What is wrong with one is told; -errno: of writing. */
static void read_all(struct inspection *in, bool counting)
{
	in->counting = counting;
	in->images = 0;
	in->images_found = 0;
	for (size_t i = 0; i < in->files_n && in->out.error == 0; i++) {
		int r = read_one(in, &in->files[i]);

		if (r < 0 && r != -ENODATA && r != -ENOEXEC && in->out.error == 0 && !counting)
			tell(in, in->files[i].path, strerror(-r));
	}
}

static int complain(const struct inspection *in, const char *path, int error)
{
	static const struct {
		int error;
		const char *why;
	} known[] = {
		{ ENOENT, "no such file: check the path" },
		{ EACCES, "not readable by this user: run as root, or as who owns it" },
		{ EPERM, "not readable by this user: run as root, or as who owns it" },
		{ EISDIR, "a directory: name a file in it" },
		{ ENOTSUP, "a FIFO, a socket or a device: name a regular file" },
		{ ENXIO, "a FIFO, a socket or a device: name a regular file" },
		{ ENOEXEC,
		  "no file that could hold CUDA kernels: name a program, a library, an object, an archive, a fatbin or "
		  "a cubin" },
		{ ENODATA,
		  "no device code is in it: what it launches is in a library it loads, or is compiled while it runs; "
		  "\"gpusonde inspect -p PID\" looks through all that a process has loaded" },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(known); i++) {
		if (known[i].error == -error) {
			say(in, path, known[i].why);
			return EXIT_FAILURE;
		}
	}
	say(in, path, strerror(-error));
	return EXIT_FAILURE;
}

/* Without waiting for whoever writes to a FIFO. */
static int open_regular(const char *path, int *ret_fd)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENOTSUP;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int add_file(struct inspection *in, const char *path, size_t path_n, int fd)
{
	struct inspected_file *files =
		realloc(in->files, (in->files_n + 1) * sizeof(*files)); /* OPEN_MAX_FILES at most */
	char *copy = strndup(path, path_n);

	if (files)
		in->files = files;
	if (!files || !copy) {
		free(copy);
		return -ENOMEM;
	}
	utf8_sanitize(copy);
	in->files[in->files_n++] = (struct inspected_file){ .path = copy, .fd = fd };
	return 0;
}

/* 1: it has device code, or something that was meant to be some. */
static int has_device_code(int fd)
{
	struct inspected_file file = { .path = (char *)"", .fd = fd };
	struct inspection probe = { .writer = &inspect_json_writer, .counting = true, .by_arch = true };
	int r = read_one(&probe, &file);

	return r == 0 || probe.images_found > 0;
}

struct seen {
	uint64_t dev, ino;
};

struct mapped_search {
	struct inspection *in;
	pid_t pid;
	struct seen seen[FILES_MAX];
	size_t seen_n;
	uint64_t left_out; /* beyond FILES_MAX and OPEN_MAX_FILES */
};

static bool seen_before(struct mapped_search *s, const struct proc_map *map)
{
	for (size_t i = 0; i < s->seen_n; i++)
		if (s->seen[i].dev == map->dev && s->seen[i].ino == map->ino)
			return true;
	if (s->seen_n == FILES_MAX) {
		s->left_out++;
		return true;
	}
	s->seen[s->seen_n++] = (struct seen){ map->dev, map->ino };
	return false;
}

static int take_mapped(struct mapped_search *s, const struct proc_map *map)
{
	struct proc_mapped mapped = { s->pid, map->start, map->end, map->dev, map->ino, map->path, map->path_n };
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	if (map->ino == 0 || map->path_n == 0 || map->path[0] != '/' || seen_before(s, map))
		return 0;
	r = proc_mapped_open("/proc", &mapped, &fd, &st);
	if (r == -ENOTSUP)
		return 0; /* a device, which has no code */
	if (r < 0) {
		path = strndup(map->path, map->path_n);
		if (path)
			tell(s->in, path, strerror(-r));
		return path ? 0 : -ENOMEM;
	}
	if (!has_device_code(fd))
		return 0;
	if (s->in->files_n == OPEN_MAX_FILES) {
		s->left_out++;
		return 0;
	}
	r = add_file(s->in, map->path, map->path_n, fd);
	if (r == 0)
		TAKE_FD(fd);
	return r;
}

/* What a process maps, each file once. */
static int find_mapped(struct inspection *in, pid_t pid)
{
	_cleanup_free_ struct mapped_search *s = calloc(1, sizeof(*s));
	struct proc_maps maps = { .fd = -1 };
	struct proc_map map;
	char text[120];
	int r;

	if (!s)
		return -ENOMEM;
	s->in = in;
	s->pid = pid;
	r = proc_maps_open("/proc", pid, &maps);
	while (r >= 0 && (r = proc_maps_next(&maps, &map)) > 0)
		r = take_mapped(s, &map);
	proc_maps_done(&maps);
	if (s->left_out) {
		snprintf(text, sizeof(text), "%llu more mapped files are left out: %u are looked at, %u read",
			 (unsigned long long)s->left_out, FILES_MAX, OPEN_MAX_FILES);
		tell(in, "/proc", text);
	}
	return r;
}

static int find_process(struct inspection *in, const char *text)
{
	uint64_t pid;
	int r;

	if (parse_u64(text, &pid) < 0 || pid == 0 || pid > INT32_MAX) {
		fprintf(stderr, "gpusonde %s: -p cannot be \"%.80s\": it must be the number of a process\n",
			in->inv->command->name, text);
		return EXIT_USAGE;
	}
	r = find_mapped(in, (pid_t)pid);
	if (r == 0 && in->files_n > 0)
		return EXIT_SUCCESS;
	if (r == -ENOENT || r == -ESRCH)
		fprintf(stderr, "gpusonde %s: there is no process %s: check its number\n",
			in->inv->command->name, text);
	else if (r < 0)
		fprintf(stderr, "gpusonde %s: what process %s maps cannot be read: %s%s\n",
			in->inv->command->name, text, strerror(-r),
			r == -EACCES || r == -EPERM ? ": run as root, or as its user" : "");
	else
		fprintf(stderr,
			"gpusonde %s: process %s maps no file with device code that could be read: it uses no CUDA kernels of "
			"its own, or compiles them while it runs\n",
			in->inv->command->name, text);
	return EXIT_FAILURE;
}

static int find_file(struct inspection *in, const char *path)
{
	int fd = -1, r = open_regular(path, &fd);

	if (r < 0)
		return complain(in, path, r);
	r = add_file(in, path, strlen(path), fd);
	if (r < 0) {
		close(fd);
		return complain(in, path, r);
	}
	return EXIT_SUCCESS;
}

/* Files that are read, in->files. */
static int find_files(struct inspection *in)
{
	const struct invocation *inv = in->inv;
	const char *pid = inv->flag[FLAG_INSPECT_PID];

	if ((pid != NULL) == (inv->operands_n > 0)) {
		fprintf(stderr, "gpusonde %s: name one file, or a process with -p: see gpusonde %s --help\n",
			inv->command->name, inv->command->name);
		return EXIT_USAGE;
	}
	return pid ? find_process(in, pid) : find_file(in, inv->operands[0]);
}

static int take_filters(struct inspection *in)
{
	const char *kernel = in->inv->flag[FLAG_KERNEL], *arch = in->inv->flag[FLAG_ARCH];
	char why[160];
	int r;

	if (arch && kernel_arch_parse(arch, &in->arch) < 0) {
		fprintf(stderr,
			"gpusonde %s: --arch cannot be \"%.80s\": it must be an architecture, as sm_90 or sm_100f\n",
			in->inv->command->name, arch);
		return EXIT_USAGE;
	}
	in->by_arch = arch != NULL;
	r = kernel ? regcomp(&in->regex, kernel, REG_EXTENDED | REG_NOSUB) : 0;
	if (r != 0) {
		regerror(r, &in->regex, why, sizeof(why));
		fprintf(stderr,
			"gpusonde %s: --kernel cannot be \"%.80s\": %s; it must be an extended regular expression, in which \\ stands "
			"before ( ) [ ] { } * + ? | . ^ $ that are meant as they are\n",
			in->inv->command->name, kernel, why);
		return EXIT_USAGE;
	}
	in->by_name = kernel != NULL;
	return EXIT_SUCCESS;
}

/* After reading. */
static void tell_what_is_missing(struct inspection *in)
{
	uint64_t mangled = inspect_names_mangled(in->names);
	char text[120];

	if (mangled) {
		snprintf(text, sizeof(text), "%llu names are shown as they are, since they cannot be demangled",
			 (unsigned long long)mangled);
		tell(in, in->files[0].path, text);
	}
	if (in->images == 0 && in->by_arch && in->images_found > 0)
		say(in, in->files[0].path, "no image is for that architecture: without --arch all are shown");
	else if (in->kernels == 0 && in->by_name)
		say(in, in->files[0].path,
		    "no kernel has such a name: --kernel looks for a part of it, as compiled or demangled");
}

static int inspect(struct inspection *in)
{
	const struct inspect_writer *w = in->writer;

	/* A file without anything to show is refused before a document begins. */
	if (in->files_n == 1 && !in->inv->flag[FLAG_INSPECT_PID] && !has_device_code(in->files[0].fd)) {
		struct cubin_ops none = { .image = on_image, .trouble = on_trouble };
		struct cubin_source source;
		int r = cubin_source_file(in->files[0].fd, &source);

		in->file = &in->files[0];
		in->counting = false;
		r = r < 0 ? r : cubin_read(&source, NULL, &none, in);
		return complain(in, in->files[0].path, r < 0 ? r : -ENODATA);
	}
	if (w->begin)
		w->begin(&in->out, in->state);
	if (w->images_first)
		read_all(in, true);
	read_all(in, false);
	tell_what_is_missing(in);
	w->end(&in->out, in->state);
	inspect_flush(&in->out, true);
	if (in->out.error < 0 && in->out.error != -EPIPE) {
		fprintf(stderr, "gpusonde %s: cannot write to standard output: %s\n", in->inv->command->name,
			strerror(-in->out.error));
		return EXIT_FAILURE;
	}
	return in->images_found > 0 || in->out.error == -EPIPE ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void inspection_done(struct inspection *in)
{
	for (size_t i = 0; i < in->files_n; i++) {
		free(in->files[i].path);
		close(in->files[i].fd);
	}
	free(in->files);
	if (in->by_name)
		regfree(&in->regex);
	inspect_names_free(in->names);
	strbuf_done(&in->out.text);
}

static void table_setup(struct inspect_table *table, const struct invocation *inv)
{
	bool terminal = isatty(STDOUT_FILENO);
	const char *no_color = getenv("NO_COLOR");
	struct winsize size;

	table->command = inv->command->name;
	table->full = inv->flag[FLAG_FULL] != NULL;
	table->many_files = inv->flag[FLAG_INSPECT_PID] != NULL;
	table->options.colour = terminal && !(no_color && *no_color);
	if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		table->options.width = size.ws_col;
}

static int run(struct inspection *in)
{
	int status = take_filters(in);

	if (status == EXIT_SUCCESS)
		status = find_files(in);
	if (status == EXIT_SUCCESS && inspect_names_new(&in->names) < 0)
		status = complain(in, in->files[0].path, -ENOMEM);
	return status == EXIT_SUCCESS ? inspect(in) : status;
}

int inspect_main(struct invocation *inv)
{
	static char brief[BRIEF_BYTES];
	struct inspect_json json = { 0 };
	struct inspect_table table = { .brief = brief, .brief_size = sizeof(brief) };
	struct inspection in = { .inv = inv };
	int status;

	strbuf_init(&in.out.text, 0);
	strbuf_init(&json.errors, 0);
	strbuf_init(&json.scratch, 0);
	strbuf_init(&table.line, 0);
	table_setup(&table, inv);
	in.writer = inv->flag[FLAG_JSON] ? &inspect_json_writer : &inspect_table_writer;
	in.state = inv->flag[FLAG_JSON] ? (void *)&json : (void *)&table;
	status = run(&in);
	inspection_done(&in);
	strbuf_done(&json.errors);
	strbuf_done(&json.scratch);
	strbuf_done(&table.line);
	return status;
}
