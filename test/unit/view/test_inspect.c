// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "view/inspect.h"

/* What cmd/inspect does: a state, and the text of it. */
struct writing {
	const struct inspect_writer *writer;
	void *state;
	struct strbuf out;
};

static void *state_new(const struct inspect_writer *writer, const struct inspect_options *options)
{
	void *state = calloc(1, writer->state_size);

	assert_non_null(state);
	writer->init(state, options);
	return state;
}

static void begin(struct writing *w, const struct inspect_writer *writer,
		  const struct inspect_options *options)
{
	*w = (struct writing){ .writer = writer, .state = state_new(writer, options) };
	strbuf_init(&w->out, 0);
}

static void done(struct writing *w)
{
	w->writer->done(w->state);
	free(w->state);
	strbuf_done(&w->out);
}

static const struct inspect_image sm_90 = {
	.file = "/lib/a",
	.arch = { 90, 'a' },
	.kind = CUBIN_ELF,
	.compression = CUBIN_ZSTD,
	.offset = 64,
	.bytes = 1000,
	.uncompressed_bytes = 4000,
};
static const struct inspect_image ptx = {
	.file = "/lib/\"b\"\xff",
	.arch = { 0 },
	.kind = CUBIN_PTX,
	.compression = CUBIN_PLAIN,
	.debug = true,
	.relocatable = true,
	.offset = 2000,
	.bytes = 10,
	.uncompressed_bytes = 10,
};

static const int64_t figures[KERNEL_FIGURES] = {
	[KERNEL_REGISTERS] = 32, [KERNEL_STATIC_SHARED] = 512, [KERNEL_RESERVED_SHARED] = 1024,
	[KERNEL_CONSTANT] = 548, [KERNEL_LOCAL] = -1,          [KERNEL_STACK] = 0,
	[KERNEL_CODE] = 768,     [KERNEL_BARRIERS] = 1,        [KERNEL_MAX_THREADS] = 1024,
};
static const uint32_t none[3], block[3] = { 128, 2, 1 };

static const struct inspect_kernel plain = {
	.symbol = "_Z4worki",
	.symbol_n = 8,
	.name = { .text = "work(int)", .n = 9, .plain = true, .brief = "work" },
	.arch = { 90, 'a' },
	.figures = figures,
	.required_block = block,
	.cluster = none,
	.has_occupancy = true,
	.occupancy = { .ratio = 0.5, .limiter = OCCUPANCY_REGISTERS },
};
static const struct inspect_kernel hostile = {
	.image_index = 1,
	.relocatable = true,
	.symbol = "a\"\\\n\xff",
	.symbol_n = 5,
	.name = { .text = "\xc3\xa9\033[1m", .n = 6 },
	.figures = figures,
	.required_block = none,
	.cluster = none,
};

static json_t *document(const struct strbuf *out)
{
	json_t *root = json_loads(out->data, JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(root);
	return root;
}

static void json_has_images_kernels_and_errors(_unused_ void **state)
{
	const struct inspect_writer *writer = &inspect_json_writer;
	struct writing w;

	begin(&w, writer, &(struct inspect_options){ 0 });
	writer->begin(&w.out, w.state);
	writer->image(&w.out, w.state, &sm_90);
	writer->image(&w.out, w.state, &ptx);
	writer->kernels(&w.out, w.state);
	writer->error(w.state, &(struct inspect_error){ "/lib/a", true, 16, "no \"magic\"" });
	writer->error(w.state, &(struct inspect_error){ "/lib/b", false, 16, "gone" });
	writer->end(&w.out, w.state);
	assert_string_equal(w.out.data,
			    "{\"images\":[\n"
			    "{\"kind\":\"elf\",\"arch\":\"sm_90a\",\"compression\":\"zstd\",\"bytes\":1000,"
			    "\"uncompressed_bytes\":4000,\"debug\":false,\"relocatable\":false,\"offset\":64,"
			    "\"file\":\"/lib/a\"},\n"
			    "{\"kind\":\"ptx\",\"arch\":null,\"compression\":\"none\",\"bytes\":10,"
			    "\"uncompressed_bytes\":10,\"debug\":true,\"relocatable\":true,\"offset\":2000,"
			    "\"file\":\"/lib/\\\"b\\\"?\"}],\n"
			    "\"kernels\":[],\n"
			    "\"errors\":[\n"
			    "{\"file\":\"/lib/a\",\"offset\":16,\"text\":\"no \\\"magic\\\"\"},\n"
			    "{\"file\":\"/lib/b\",\"offset\":null,\"text\":\"gone\"}],\n"
			    "\"errors_left_out\":0}\n");
	json_decref(document(&w.out));
	done(&w);
}

static void json_has_every_figure_of_a_kernel(_unused_ void **state)
{
	const struct inspect_writer *writer = &inspect_json_writer;
	struct writing w;
	json_t *row;

	begin(&w, writer, &(struct inspect_options){ 0 });
	writer->kernel(&w.out, w.state, &plain);
	assert_string_equal(w.out.data + writer->separator_n,
			    "\n{\"name\":\"_Z4worki\",\"demangled\":\"work(int)\",\"arch\":\"sm_90a\","
			    "\"registers\":32,\"static_shared_bytes\":512,\"reserved_shared_bytes\":1024,"
			    "\"constant_bytes\":548,\"local_bytes\":null,\"stack_bytes\":0,"
			    "\"code_bytes\":768,\"barriers\":1,\"max_threads\":1024,\"occupancy\":0.5,"
			    "\"limiter\":\"registers\",\"required_block\":[128,2,1],\"cluster\":null,"
			    "\"image\":0}");
	strbuf_reset(&w.out);
	writer->kernel(&w.out, w.state, &hostile);
	row = json_loads(w.out.data + writer->separator_n, 0, NULL);
	assert_non_null(row);
	assert_string_equal(json_string_value(json_object_get(row, "name")), "a\"\\\n?");
	assert_string_equal(json_string_value(json_object_get(row, "demangled")), "\xc3\xa9\033[1m");
	assert_true(json_is_null(json_object_get(row, "occupancy")));
	assert_true(json_is_null(json_object_get(row, "limiter")));
	json_decref(row);
	done(&w);
}

static void errors_have_a_limit_and_are_counted_behind_it(_unused_ void **state)
{
	const struct inspect_writer *writer = &inspect_json_writer;
	static char text[2000];
	json_t *root, *errors;
	struct writing w;

	memset(text, 'x', sizeof(text) - 1);
	begin(&w, writer, &(struct inspect_options){ 0 });
	writer->begin(&w.out, w.state);
	writer->kernels(&w.out, w.state);
	for (unsigned i = 0; i < 1000; i++)
		writer->error(w.state, &(struct inspect_error){ .file = "/lib/a", .text = text });
	writer->end(&w.out, w.state);
	root = document(&w.out);
	errors = json_object_get(root, "errors");
	assert_in_range(json_array_size(errors), 100, 200);
	assert_int_equal(json_integer_value(json_object_get(root, "errors_left_out")),
			 1000 - json_array_size(errors));
	json_decref(root);
	done(&w);
}

static void plain_text_is_what_json_writes_unchanged(_unused_ void **state)
{
	assert_true(inspect_is_plain("", 0));
	assert_true(inspect_is_plain("void f<int>(int*) ~", 19));
	for (unsigned c = 0; c < 256; c++) {
		char text[2] = { (char)c, '\0' };
		json_t *string = json_string(text);
		char *quoted = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
		bool unchanged = c > 0 && c < 0x80 && quoted && strlen(quoted) == 3;

		assert_int_equal(inspect_is_plain(text, 1), unchanged);
		free(quoted);
		json_decref(string);
	}
}

static void table_has_lines_then_sums_by_architecture(_unused_ void **state)
{
	const struct inspect_writer *writer = &inspect_table_writer;
	struct writing w;

	begin(&w, writer, &(struct inspect_options){ .many_files = true });
	writer->image(&w.out, w.state, &sm_90);
	writer->image(&w.out, w.state, &sm_90);
	writer->heading(&w.out, w.state, "/lib/a");
	writer->kernel(&w.out, w.state, &plain);
	writer->image(&w.out, w.state, &ptx);
	writer->kernel(&w.out, w.state, &hostile);
	writer->end(&w.out, w.state);
	assert_string_equal(
		w.out.data,
		"/lib/a:\n"
		"ARCH     REGS SHARED RESERVED  CONST  LOCAL  STACK     CODE BARRIERS THREADS  OCC"
		"  LIMITED BY     KERNEL\n"
		"sm_90a     32    512     1024    548      -      0      768        1    1024  50%"
		"  registers      work\n"
		"*          32    512     1024    548      -      0      768        1    1024    -"
		"  -              \xc3\xa9?[1m\n"
		"\n"
		"ARCH    KIND               COMPRESSION  IMAGES  BYTES  UNCOMPRESSED  KERNELS\n"
		"*       ptx, to be linked  none              1     10            10        1\n"
		"sm_90a  elf                zstd              2   2000          8000        1\n"
		"\n"
		"2 kernels shown, 3 images\n"
		"*: to be linked with others first, which decides what its kernels need\n");
	done(&w);
}

static void narrow_terminals_get_fewer_columns_and_cut_names(_unused_ void **state)
{
	struct inspect_options options = { .table.width = 62 };
	const struct inspect_writer *writer = &inspect_table_writer;
	struct inspect_kernel kernel = plain;
	struct writing w;

	kernel.name.brief = NULL;
	begin(&w, writer, &options);
	writer->image(&w.out, w.state, &sm_90);
	writer->heading(&w.out, w.state, "/lib/a");
	writer->kernel(&w.out, w.state, &kernel);
	assert_string_equal(w.out.data, "ARCH     REGS SHARED  CONST  STACK     CODE THREADS  OCC  KER~\n"
					"sm_90a     32    512    548      0      768    1024  50%  wor~\n");
	done(&w);
	options.full = true;
	begin(&w, writer, &options);
	writer->image(&w.out, w.state, &sm_90);
	writer->kernel(&w.out, w.state, &kernel);
	assert_non_null(strstr(w.out.data, "registers      work(int)\n"));
	done(&w);
}

static void sums_of_threads_add_up(_unused_ void **state)
{
	const struct inspect_options options = { 0 };
	const struct inspect_writer *writer = &inspect_table_writer;
	struct writing w;
	void *threads[2];

	begin(&w, writer, &options);
	for (unsigned i = 0; i < 2; i++) {
		threads[i] = state_new(writer, &options);
		writer->image(&w.out, threads[i], &sm_90); /* each thread sees all images */
		for (unsigned k = 0; k <= i; k++)
			writer->kernel(&w.out, threads[i], &plain);
	}
	strbuf_reset(&w.out);
	for (unsigned i = 0; i < 2; i++) {
		writer->merge(w.state, threads[i], i == 0);
		writer->done(threads[i]);
		free(threads[i]);
	}
	writer->end(&w.out, w.state);
	assert_non_null(strstr(w.out.data, "3 kernels shown, 1 image\n"));
	assert_non_null(
		strstr(w.out.data, "sm_90a  elf   zstd              1   1000          4000        3\n"));
	done(&w);
}

static void an_error_is_a_clean_line(_unused_ void **state)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	inspect_error_text(&(struct inspect_error){ "/a\033[1m", true, 16, "odd\xff" }, &out);
	assert_string_equal(out.data, "/a?[1m: at 0x10: odd?");
	strbuf_reset(&out);
	inspect_error_text(&(struct inspect_error){ .file = "/a", .text = "gone" }, &out);
	assert_string_equal(out.data, "/a: gone");
	strbuf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_has_images_kernels_and_errors),
		cmocka_unit_test(json_has_every_figure_of_a_kernel),
		cmocka_unit_test(errors_have_a_limit_and_are_counted_behind_it),
		cmocka_unit_test(plain_text_is_what_json_writes_unchanged),
		cmocka_unit_test(table_has_lines_then_sums_by_architecture),
		cmocka_unit_test(narrow_terminals_get_fewer_columns_and_cut_names),
		cmocka_unit_test(sums_of_threads_add_up),
		cmocka_unit_test(an_error_is_a_clean_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
