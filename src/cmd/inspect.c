// SPDX-License-Identifier: Apache-2.0
/* gpusonde inspect FILE, or -p PID: the CUDA kernels that files hold, and what the compiler made of them. */
#include "cmd/inspect.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "cmd/cmd.h"

enum { FLUSH_BYTES = 64 << 10, BRIEF_BYTES = 16 << 10 };

struct inspection {
	const struct invocation *inv;
	const struct inspect_writer *writer;
	void *state;
	struct inspect_out out;
	struct inspect_names *names;
	bool by_name, by_arch;
	regex_t regex;
	struct kernel_arch arch;
	struct inspect_files files;
	const struct inspect_file *file; /* that is being read */
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

static void tell_file(const char *file, const char *text, void *userdata)
{
	struct inspection *in = userdata;
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
	/* What is still to be linked does not know yet what it will need. */
	if (threads > 0 && threads <= UINT32_MAX && !image->relocatable)
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

static int read_one(struct inspection *in, const struct inspect_file *file)
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
	for (size_t i = 0; i < in->files.n && in->out.error == 0; i++) {
		int r = read_one(in, &in->files.file[i]);

		if (r < 0 && r != -ENODATA && r != -ENOEXEC && in->out.error == 0 && !counting)
			tell_file(in->files.file[i].path, strerror(-r), in);
	}
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
		tell_file(in->files.file[0].path, text, in);
	}
	if (in->images == 0 && in->by_arch && in->images_found > 0)
		inspect_say(in->inv, in->files.file[0].path,
			    "no image is for that architecture: without --arch all are shown");
	else if (in->kernels == 0 && in->by_name)
		inspect_say(
			in->inv, in->files.file[0].path,
			"no kernel has such a name: --kernel looks for a part of it, as compiled or demangled");
}

/* Files as they were found, and what was wrong with others. */
static int find_files(struct inspection *in)
{
	in->files.tell = tell_file;
	in->files.userdata = in;
	return inspect_files_find(in->inv, &in->files);
}

static int inspect(struct inspection *in)
{
	const struct inspect_writer *w = in->writer;

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
	if (in->images_found > 0 || in->out.error == -EPIPE)
		return EXIT_SUCCESS;
	inspect_say(in->inv, in->files.file[0].path, "nothing of its device code could be read");
	return EXIT_FAILURE;
}

static void inspection_done(struct inspection *in)
{
	inspect_files_done(&in->files);
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
		status = inspect_complain(in->inv, in->files.file[0].path, -ENOMEM);
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
