// SPDX-License-Identifier: Apache-2.0
/* The JSON of gpusonde inspect, written as it comes: jansson would hold all of it. */
#include <string.h>

#include "base/text.h"
#include "cmd/inspect/inspect.h"

enum { ERRORS_BYTES = 256 << 10 };
#define SEPARATOR ","

static bool is_plain(unsigned char c)
{
	return c >= ' ' && c != '"' && c != '\\';
}

static void add_escaped(struct strbuf *out, const char *text, size_t n)
{
	const char *end = text + n;

	strbuf_addc(out, '"');
	for (const char *p = text; p < end;) {
		size_t plain = 0;

		while (p + plain < end && is_plain((unsigned char)p[plain]))
			plain++;
		strbuf_add(out, p, plain);
		p += plain;
		if (p == end)
			break;
		if (*p == '"' || *p == '\\')
			strbuf_addf(out, "\\%c", *p++);
		else
			strbuf_addf(out, "\\u%04x", (unsigned char)*p++);
	}
	strbuf_addc(out, '"');
}

static void add_text(struct inspect_json *j, struct strbuf *out, const char *text, size_t n)
{
	if (!utf8_valid(text, n)) {
		strbuf_reset(&j->scratch);
		strbuf_add(&j->scratch, text, n);
		utf8_sanitize(j->scratch.data);
		text = j->scratch.data;
		n = strlen(text);
	}
	add_escaped(out, text, n);
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

static void init(void *state, const struct inspect_look *look)
{
	struct inspect_json *j = state;

	(void)look;
	strbuf_init(&j->errors, 0);
	strbuf_init(&j->scratch, 0);
}

static void done(void *state)
{
	struct inspect_json *j = state;

	strbuf_done(&j->errors);
	strbuf_done(&j->scratch);
}

static void begin(struct strbuf *out, void *state)
{
	(void)state;
	strbuf_adds(out, "{\"images\":[");
}

static void image(struct strbuf *out, void *state, const char *file, const struct cubin_image *image)
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
	add_text(j, out, file, strlen(file));
	strbuf_addc(out, '}');
}

static void add_occupancy(struct strbuf *out, const struct inspect_kernel *k)
{
	if (!k->has_occupancy) {
		strbuf_adds(out, ",\"occupancy\":null,\"limiter\":null");
		return;
	}
	strbuf_adds(out, ",\"occupancy\":");
	strbuf_add_double(out, k->occupancy.ratio);
	add_strings(out, ",\"limiter\":\"", occupancy_limiter_name(k->occupancy.limiter), "\"");
}

static void kernels(struct strbuf *out, void *state)
{
	(void)state;
	strbuf_adds(out, "],\n\"kernels\":[");
}

static void add_names(struct strbuf *out, struct inspect_json *j, const struct inspect_kernel *k)
{
	static const char name[] = "\n{\"name\":", demangled[] = ",\"demangled\":";

	strbuf_adds(out, name);
	if (k->name.plain) {
		strbuf_addc(out, '"');
		strbuf_add(out, k->kernel->symbol, k->kernel->symbol_n);
		strbuf_addc(out, '"');
		strbuf_adds(out, demangled);
		strbuf_addc(out, '"');
		strbuf_add(out, k->name.text, k->name.n);
		strbuf_addc(out, '"');
		return;
	}
	add_text(j, out, k->kernel->symbol, k->kernel->symbol_n);
	strbuf_adds(out, demangled);
	add_text(j, out, k->name.text, k->name.n);
}

static void kernel(struct strbuf *out, void *state, const struct inspect_kernel *k)
{
	strbuf_adds(out, SEPARATOR);
	add_names(out, state, k);
	strbuf_adds(out, ",\"arch\":");
	add_arch(out, k->kernel->arch);
	for (unsigned i = 0; i < KERNEL_FIGURES; i++) {
		add_strings(out, ",\"", kernel_figures[i].json, "\":");
		if (k->kernel->figures[i] < 0)
			strbuf_adds(out, "null");
		else
			strbuf_add_i64(out, k->kernel->figures[i]);
	}
	add_occupancy(out, k);
	add_three(out, "required_block", k->kernel->required_block);
	add_three(out, "cluster", k->kernel->cluster);
	add_number(out, ",\"image\":", k->image_index);
	strbuf_addc(out, '}');
}

static void trouble(void *state, const struct inspect_trouble *t)
{
	struct inspect_json *j = state;
	size_t before = j->errors.len;

	if (before > ERRORS_BYTES) {
		j->errors_left_out++;
		return;
	}
	strbuf_adds(&j->errors, before ? ",\n{\"file\":" : "\n{\"file\":");
	add_text(j, &j->errors, t->file, strlen(t->file));
	if (t->has_offset)
		add_number(&j->errors, ",\"offset\":", t->offset);
	else
		strbuf_adds(&j->errors, ",\"offset\":null");
	strbuf_adds(&j->errors, ",\"text\":");
	add_text(j, &j->errors, t->text, strlen(t->text));
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
	.trouble = trouble,
	.end = end,
};
