// SPDX-License-Identifier: Apache-2.0
/* gpusonde inspect FILE, or -p PID: the CUDA kernels in a file or in the files of a process. */
#include "cmd/inspect/inspect.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/inspect/sort.h"
#include "cmd/output.h"

/* Of every architecture: CUDA C++ Programming Guide, "Compute Capabilities". */
enum { BLOCK_THREADS_MAX = 1024 };

struct inspection {
	const struct invocation *inv;
	struct inspect_files files;
	struct inspect_reading reading;
	inspect_sort_key sort;
	struct inspect_result result;
};

static void report_file(const struct inspect_error *error, void *userdata)
{
	inspect_report(userdata, error);
}

static int parse_filters(struct inspection *in)
{
	const char *kernel = in->inv->flag[FLAG_KERNEL], *arch = in->inv->flag[FLAG_ARCH];
	struct inspect_filter *filter = &in->reading.filter;
	char why[160];
	regex_t regex;
	int r;

	/* compute_90 would select PTX only, but --arch does not distinguish PTX from machine code. */
	if (arch && (strncmp(arch, "compute_", 8) == 0 || kernel_arch_parse(arch, &filter->arch) < 0)) {
		fprintf(stderr,
			"gpusonde %s: --arch cannot be \"%.80s\": it must be an architecture such as sm_90, "
			"90 or sm_100f\n",
			in->inv->command->name, arch);
		return EXIT_USAGE;
	}
	filter->by_arch = arch != NULL;
	filter->kernel = kernel;
	if (!kernel)
		return EXIT_SUCCESS;
	r = regcomp(&regex, kernel, REG_EXTENDED | REG_NOSUB);
	if (r == 0) {
		regfree(&regex);
		return EXIT_SUCCESS;
	}
	regerror(r, &regex, why, sizeof(why));
	fprintf(stderr,
		"gpusonde %s: --kernel cannot be \"%.80s\": %s; it must be an extended regular expression: "
		"write \\ before ( ) [ ] { } * + ? | . ^ $ to match them literally\n",
		in->inv->command->name, kernel, why);
	return EXIT_USAGE;
}

static int bad_value(const struct inspection *in, const char *flag, const char *value, const char *valid)
{
	fprintf(stderr, "gpusonde %s: %s cannot be \"%.80s\": it must be %s\n", in->inv->command->name, flag,
		value, valid);
	return EXIT_USAGE;
}

/* --sort and --block. */
static int parse_presentation(struct inspection *in)
{
	const char *sort = in->inv->flag[FLAG_SORT], *block = in->inv->flag[FLAG_BLOCK];
	int64_t threads;

	if (sort && inspect_sort_key_parse(sort, &in->sort) < 0) {
		struct strbuf names;

		strbuf_init(&names, 0);
		strbuf_adds(&names, "one of ");
		inspect_sort_key_names(&names);
		int status = bad_value(in, "--sort", sort, names.data);

		strbuf_done(&names);
		return status;
	}
	if (sort)
		in->reading.sort = &in->sort;
	if (!block)
		return EXIT_SUCCESS;
	if (parse_i64(block, &threads) < 0 || threads < 1 || threads > BLOCK_THREADS_MAX)
		return bad_value(in, "--block", block, "a number of threads from 1 to 1024");
	in->reading.block = (uint32_t)threads;
	return EXIT_SUCCESS;
}

static int compare_archs(const void *a, const void *b)
{
	const struct kernel_arch *x = a, *y = b;

	return x->sm != y->sm ? x->sm - y->sm : x->variant - y->variant;
}

static void report_archs(const struct inspection *in)
{
	struct inspect_result result = in->result;
	char arch[KERNEL_ARCH_TEXT];
	struct strbuf text;

	strbuf_init(&text, 0);
	strbuf_adds(&text, "no image is for this architecture; there are images for ");
	qsort(result.archs, result.archs_n, sizeof(*result.archs), compare_archs);
	for (unsigned i = 0; i < result.archs_n; i++) {
		kernel_arch_text(result.archs[i], arch);
		strbuf_addf(&text, "%s%s", i > 0 ? ", " : "", arch[0] ? arch : "an unknown one");
	}
	strbuf_adds(&text, result.archs_left_out ? ", and others" : "");
	inspect_print(in->inv, in->files.file[0].path, text.data);
	strbuf_done(&text);
}

/* Reports after reading why nothing is shown. False: --arch or --kernel matches nothing, as with grep. */
static bool report_missing(const struct inspection *in)
{
	const struct inspect_result *result = &in->result;
	const struct inspect_filter *filter = &in->reading.filter;
	const char *path = in->files.file[0].path;

	if (result->images == 0 && filter->by_arch && result->images_found > 0)
		report_archs(in);
	else if (result->kernels == 0 && result->images > 0 && result->images == result->to_compile)
		inspect_print(
			in->inv, path,
			"the images shown hold only PTX or code for the linker: it is compiled to kernels "
			"when it is loaded or linked");
	else if (result->kernels == 0 && result->images > 0 && !filter->kernel)
		inspect_print(
			in->inv, path,
			"its images hold no kernels: the program may launch kernels of a library it loads, "
			"or compile them at run time");
	else if (result->kernels == 0 && filter->kernel)
		inspect_print(
			in->inv, path,
			"no kernel name matches: --kernel is searched for in mangled and demangled names");
	return !((result->images == 0 && filter->by_arch) || (result->kernels == 0 && filter->kernel));
}

static int inspect(struct inspection *in)
{
	int r = inspect_read(&in->reading, &in->result);

	if (r == -EPIPE)
		return EXIT_SUCCESS;
	if (r < 0) {
		fprintf(stderr, "gpusonde %s: cannot write to standard output: %s\n", in->inv->command->name,
			strerror(-r));
		return EXIT_FAILURE;
	}
	if (in->result.images_found > 0)
		return report_missing(in) ? EXIT_SUCCESS : EXIT_FAILURE;
	inspect_print(in->inv, in->files.file[0].path, "none of its device code could be read");
	return EXIT_FAILURE;
}

static void options_from(const struct invocation *inv, struct inspect_options *ret_options)
{
	ret_options->full = inv->flag[FLAG_FULL] != NULL;
	ret_options->many_files = inv->flag[FLAG_INSPECT_PID] != NULL;
	ret_options->table = output_options(inv, STDOUT_FILENO);
}

static int run(struct inspection *in)
{
	int status = parse_filters(in);

	if (status == EXIT_SUCCESS)
		status = parse_presentation(in);
	if (status == EXIT_SUCCESS)
		status = inspect_files_find(in->inv, &in->files);
	if (status == EXIT_SUCCESS)
		status = inspect(in);
	inspect_files_done(&in->files);
	return status;
}

int inspect_main(struct invocation *inv)
{
	struct inspection in = { .inv = inv };
	struct inspect_reading *reading = &in.reading;
	int status;

	reading->writer = inv->flag[FLAG_JSON] ? &inspect_json_writer : &inspect_table_writer;
	reading->files = &in.files;
	reading->fd = STDOUT_FILENO;
	reading->command = inv->command->name;
	options_from(inv, &reading->options);
	in.files.error = report_file;
	in.files.userdata = reading;
	reading->state = calloc(1, reading->writer->state_size);
	if (!reading->state) {
		fprintf(stderr, "gpusonde %s: %s\n", inv->command->name, strerror(ENOMEM));
		return EXIT_FAILURE;
	}
	reading->writer->init(reading->state, &reading->options);
	status = run(&in);
	reading->writer->done(reading->state);
	free(reading->state);
	return status;
}
