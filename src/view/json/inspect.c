// SPDX-License-Identifier: Apache-2.0
/* The JSON of gpusonde inspect. It is appended piece by piece: jansson would hold all of it in memory. */
#include "view/inspect.h"

#include <string.h>

#include "view/json/json.h"
#include "view/number.h"

enum { ERRORS_BYTES = 256 << 10 };
#define SEPARATOR ","

struct inspect_json {
	uint32_t images;
	struct strbuf errors; /* written at the end of the document */
	uint64_t errors_left_out;
};

bool inspect_is_plain(const char *text, size_t n)
{
	bool plain = true;

	for (size_t i = 0; i < n; i++)
		plain &= (unsigned char)(text[i] - ' ') < 0x80 - ' ' && text[i] != '"' && text[i] != '\\';
	return plain;
}

static void add_plain(struct strbuf *out, const char *text, size_t n)
{
	strbuf_addc(out, '"');
	strbuf_add(out, text, n);
	strbuf_addc(out, '"');
}

static void add_text(struct strbuf *out, const char *text)
{
	size_t n = strlen(text);

	if (inspect_is_plain(text, n))
		add_plain(out, text, n);
	else if (json_write(json_long_text(text), JSON_ENCODE_ANY, out) < 0)
		out->failed = true;
}

static void add_strings(struct strbuf *out, const char *before, const char *text, const char *after)
{
	strbuf_adds(out, before);
	strbuf_adds(out, text);
	strbuf_adds(out, after);
}

static void add_number(struct strbuf *out, const char *before, uint64_t n)
{
	strbuf_adds(out, before);
	strbuf_add_u64(out, n);
}

static void add_arch(struct strbuf *out, struct kernel_arch arch)
{
	char text[KERNEL_ARCH_TEXT];

	kernel_arch_text(arch, text);
	if (text[0])
		add_strings(out, "\"", text, "\"");
	else
		strbuf_adds(out, "null");
}

static void add_three(struct strbuf *out, const char *key, const uint32_t n[static 3])
{
	add_strings(out, ",\"", key, "\":");
	if (!n[0] && !n[1] && !n[2]) {
		strbuf_adds(out, "null");
		return;
	}
	add_number(out, "[", n[0]);
	add_number(out, ",", n[1]);
	add_number(out, ",", n[2]);
	strbuf_addc(out, ']');
}

static void init(void *state, const struct inspect_options *options)
{
	struct inspect_json *j = state;

	(void)options;
	strbuf_init(&j->errors, 0);
}

static void done(void *state)
{
	struct inspect_json *j = state;

	strbuf_done(&j->errors);
}

static void begin(struct strbuf *out, void *state)
{
	(void)state;
	strbuf_adds(out, "{\"images\":[");
}

static void image(struct strbuf *out, void *state, const struct inspect_image *image)
{
	struct inspect_json *j = state;

	strbuf_adds(out, j->images++ ? ",\n{" : "\n{");
	add_strings(out, "\"kind\":\"", cubin_kind_name(image->kind), "\",\"arch\":");
	add_arch(out, image->arch);
	add_strings(out, ",\"compression\":\"", cubin_compression_name(image->compression), "\"");
	add_number(out, ",\"bytes\":", image->bytes);
	add_number(out, ",\"uncompressed_bytes\":", image->uncompressed_bytes);
	add_strings(out, ",\"debug\":", image->debug ? "true" : "false", "");
	add_strings(out, ",\"relocatable\":", image->relocatable ? "true" : "false", "");
	add_number(out, ",\"offset\":", image->offset);
	strbuf_adds(out, ",\"file\":");
	add_text(out, image->file);
	strbuf_addc(out, '}');
}

static void add_occupancy(struct strbuf *out, const struct inspect_kernel *k)
{
	if (!k->has_occupancy) {
		strbuf_adds(out, ",\"occupancy\":null,\"limiter\":null");
		return;
	}
	strbuf_adds(out, ",\"occupancy\":");
	number_add(out, k->occupancy.ratio);
	add_strings(out, ",\"limiter\":\"", occupancy_limiter_name(k->occupancy.limiter), "\"");
}

static void kernels(struct strbuf *out, void *state)
{
	(void)state;
	strbuf_adds(out, "],\n\"kernels\":[");
}

static void add_names(struct strbuf *out, const struct inspect_kernel *k)
{
	static const char name[] = "\n{\"name\":", demangled[] = ",\"demangled\":";

	strbuf_adds(out, name);
	if (k->name.plain) {
		add_plain(out, k->symbol, k->symbol_n);
		strbuf_adds(out, demangled);
		add_plain(out, k->name.text, k->name.n);
		return;
	}
	add_text(out, k->symbol);
	strbuf_adds(out, demangled);
	add_text(out, k->name.text);
}

static void kernel(struct strbuf *out, void *state, const struct inspect_kernel *k)
{
	(void)state;
	strbuf_adds(out, SEPARATOR);
	add_names(out, k);
	strbuf_adds(out, ",\"arch\":");
	add_arch(out, k->arch);
	for (unsigned i = 0; i < KERNEL_FIGURES; i++) {
		add_strings(out, ",\"", kernel_figures[i].json, "\":");
		if (k->figures[i] < 0)
			strbuf_adds(out, "null");
		else
			strbuf_add_i64(out, k->figures[i]);
	}
	add_occupancy(out, k);
	add_three(out, "required_block", k->required_block);
	add_three(out, "cluster", k->cluster);
	add_number(out, ",\"image\":", k->image_index);
	strbuf_addc(out, '}');
}

static void error(void *state, const struct inspect_error *error)
{
	struct inspect_json *j = state;
	size_t before = j->errors.len;

	if (before > ERRORS_BYTES) {
		j->errors_left_out++;
		return;
	}
	strbuf_adds(&j->errors, before ? ",\n{\"file\":" : "\n{\"file\":");
	add_text(&j->errors, error->file);
	if (error->has_offset)
		add_number(&j->errors, ",\"offset\":", error->offset);
	else
		strbuf_adds(&j->errors, ",\"offset\":null");
	strbuf_adds(&j->errors, ",\"text\":");
	add_text(&j->errors, error->text);
	strbuf_addc(&j->errors, '}');
}

static void end(struct strbuf *out, void *state)
{
	const struct inspect_json *j = state;

	strbuf_adds(out, "],\n\"errors\":[");
	strbuf_add(out, j->errors.data, j->errors.len);
	add_number(out, "],\n\"errors_left_out\":", j->errors_left_out);
	strbuf_adds(out, "}\n");
}

const struct inspect_writer inspect_json_writer = {
	.images_first = true,
	.separator_n = sizeof(SEPARATOR) - 1,
	.state_size = sizeof(struct inspect_json),
	.init = init,
	.done = done,
	.begin = begin,
	.image = image,
	.kernels = kernels,
	.kernel = kernel,
	.error = error,
	.end = end,
};
