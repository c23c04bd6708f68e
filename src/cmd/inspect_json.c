// SPDX-License-Identifier: Apache-2.0
/* The JSON of gpusonde inspect, written as it comes: jansson would hold all of it. */
#include <string.h>

#include "base/text.h"
#include "cmd/inspect.h"

enum { ERRORS_BYTES = 256 << 10 };

static void add_escaped(struct strbuf *out, const char *text)
{
	strbuf_addc(out, '"');
	for (const char *p = text; *p;) {
		size_t plain = 0;

		while ((unsigned char)p[plain] >= ' ' && p[plain] != '"' && p[plain] != '\\')
			plain++;
		strbuf_add(out, p, plain);
		p += plain;
		if (*p == '"' || *p == '\\')
			strbuf_addf(out, "\\%c", *p++);
		else if (*p)
			strbuf_addf(out, "\\u%04x", (unsigned char)*p++);
	}
	strbuf_addc(out, '"');
}

static void add_text(struct inspect_json *j, struct strbuf *out, const char *text)
{
	size_t n = strlen(text);

	if (!utf8_valid(text, n)) {
		strbuf_reset(&j->scratch);
		strbuf_add(&j->scratch, text, n);
		utf8_sanitize(j->scratch.data);
		text = j->scratch.data;
	}
	add_escaped(out, text);
}

static void add_arch(struct strbuf *out, struct kernel_arch arch)
{
	char text[KERNEL_ARCH_TEXT];

	kernel_arch_text(arch, text);
	if (text[0])
		strbuf_addf(out, "\"%s\"", text);
	else
		strbuf_adds(out, "null");
}

static void add_three(struct strbuf *out, const char *key, const uint32_t n[static 3])
{
	if (n[0] || n[1] || n[2])
		strbuf_addf(out, ",\"%s\":[%u,%u,%u]", key, n[0], n[1], n[2]);
	else
		strbuf_addf(out, ",\"%s\":null", key);
}

static void begin(struct inspect_out *out, void *state)
{
	(void)state;
	strbuf_adds(&out->text, "{\"images\":[");
}

static void image(struct inspect_out *out, void *state, const char *file, const struct cubin_image *image)
{
	struct inspect_json *j = state;
	struct strbuf *text = &out->text;

	strbuf_addf(text, "%s\n{\"kind\":\"%s\",\"arch\":", j->images++ ? "," : "",
		    cubin_kind_name(image->kind));
	add_arch(text, image->arch);
	strbuf_addf(text, ",\"compression\":\"%s\",\"bytes\":%llu,\"uncompressed_bytes\":%llu",
		    cubin_compression_name(image->compression), (unsigned long long)image->bytes,
		    (unsigned long long)image->uncompressed_bytes);
	strbuf_addf(text, ",\"debug\":%s,\"relocatable\":%s,\"offset\":%llu,\"file\":",
		    image->debug ? "true" : "false", image->relocatable ? "true" : "false",
		    (unsigned long long)image->offset);
	add_text(j, text, file);
	strbuf_addc(text, '}');
}

static void add_occupancy(struct strbuf *out, const struct inspect_kernel *k)
{
	if (!k->has_occupancy) {
		strbuf_adds(out, ",\"occupancy\":null,\"limiter\":null");
		return;
	}
	strbuf_adds(out, ",\"occupancy\":");
	strbuf_add_double(out, k->occupancy.ratio);
	strbuf_addf(out, ",\"limiter\":\"%s\"", occupancy_limiter_name(k->occupancy.limiter));
}

static void enter_kernels(struct inspect_out *out, struct inspect_json *j)
{
	if (!j->in_kernels)
		strbuf_adds(&out->text, "],\n\"kernels\":[");
	j->in_kernels = true;
}

static void kernel(struct inspect_out *out, void *state, const struct inspect_kernel *k)
{
	struct inspect_json *j = state;
	struct strbuf *text = &out->text;

	enter_kernels(out, j);
	strbuf_adds(text, j->kernels++ ? ",\n{\"name\":" : "\n{\"name\":");
	add_text(j, text, k->kernel->symbol);
	strbuf_adds(text, ",\"demangled\":");
	add_text(j, text, k->name);
	strbuf_adds(text, ",\"arch\":");
	add_arch(text, k->kernel->arch);
	for (unsigned i = 0; i < KERNEL_FIGURES; i++) {
		strbuf_addc(text, ',');
		strbuf_addf(text, "\"%s\":", kernel_figures[i].json);
		if (k->kernel->figures[i] < 0)
			strbuf_adds(text, "null");
		else
			strbuf_add_i64(text, k->kernel->figures[i]);
	}
	add_occupancy(text, k);
	add_three(text, "required_block", k->kernel->required_block);
	add_three(text, "cluster", k->kernel->cluster);
	strbuf_addf(text, ",\"image\":%u}", k->image_index);
}

static void trouble(struct inspect_out *out, void *state, const struct inspect_trouble *t)
{
	struct inspect_json *j = state;
	size_t before = j->errors.len;

	(void)out;
	if (before > ERRORS_BYTES) {
		j->errors_left_out++;
		return;
	}
	strbuf_adds(&j->errors, before ? ",\n{\"file\":" : "\n{\"file\":");
	add_text(j, &j->errors, t->file);
	if (t->has_offset)
		strbuf_addf(&j->errors, ",\"offset\":%llu", (unsigned long long)t->offset);
	else
		strbuf_adds(&j->errors, ",\"offset\":null");
	strbuf_adds(&j->errors, ",\"text\":");
	add_text(j, &j->errors, t->text);
	strbuf_addc(&j->errors, '}');
}

static void end(struct inspect_out *out, void *state)
{
	struct inspect_json *j = state;

	enter_kernels(out, j);
	strbuf_adds(&out->text, "],\n\"errors\":[");
	strbuf_add(&out->text, j->errors.data, j->errors.len);
	strbuf_addf(&out->text, "],\n\"errors_left_out\":%llu}\n", (unsigned long long)j->errors_left_out);
}

const struct inspect_writer inspect_json_writer = {
	.images_first = true,
	.begin = begin,
	.image = image,
	.kernel = kernel,
	.trouble = trouble,
	.end = end,
};
