// SPDX-License-Identifier: Apache-2.0
/*
 * The tables of gpusonde inspect. A kernel is printed when it is read, before the later ones are known: the
 * columns have fixed widths.
 */
#include "view/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/table/table.h"

enum {
	ARCH_WIDTH = 8,
	WIDE = 120, /* terminal columns in which every column of the table fits */
	SUMS = 256,
};

/* Images of one form and architecture. */
struct inspect_sum {
	struct kernel_arch arch;
	enum cubin_kind kind;
	enum cubin_compression compression;
	bool relocatable;
	uint64_t images, bytes, uncompressed_bytes, kernels;
};

struct inspect_table {
	struct inspect_options options;
	struct inspect_sum sums[SUMS];
	unsigned sums_n;
	struct inspect_sum *sum; /* of the last image */
	struct strbuf line;
};

static const struct {
	enum kernel_figure figure;
	int width; /* at least as wide as the heading */
	bool narrow; /* shown on narrow terminals, too */
} columns[] = {
	{ KERNEL_REGISTERS, 4, true },
	{ KERNEL_STATIC_SHARED, 6, true },
	{ KERNEL_RESERVED_SHARED, 8, false },
	{ KERNEL_CONSTANT, 6, true },
	{ KERNEL_LOCAL, 6, false },
	{ KERNEL_STACK, 6, true },
	{ KERNEL_CODE, 8, true },
	{ KERNEL_BARRIERS, 8, false },
	{ KERNEL_MAX_THREADS, 7, true },
};
_Static_assert(ARRAY_SIZE(columns) == KERNEL_FIGURES, "a figure has no column");

static bool is_wide(const struct inspect_table *t)
{
	return t->options.table.width == 0 || t->options.table.width >= WIDE || t->options.full;
}

/* A line is cut at the terminal's width, but not with full names, which the terminal wraps. */
static void put_line(struct strbuf *out, struct inspect_table *t, enum table_colour colour)
{
	struct table_options options = t->options.table;

	if (t->options.full)
		options.width = 0;
	table_cut_line(&options, out, colour, t->line.data);
	strbuf_reset(&t->line);
}

static void put_headings(struct strbuf *out, struct inspect_table *t)
{
	strbuf_addf(&t->line, "%-*s", ARCH_WIDTH, "ARCH");
	for (unsigned i = 0; i < ARRAY_SIZE(columns); i++)
		if (columns[i].narrow || is_wide(t))
			strbuf_addf(&t->line, " %*s", columns[i].width,
				    kernel_figures[columns[i].figure].heading);
	strbuf_addf(&t->line, " %4s", "OCC");
	if (is_wide(t))
		strbuf_addf(&t->line, "  %-13s", "LIMITED BY");
	strbuf_adds(&t->line, "  KERNEL");
	put_line(out, t, COLOUR_HEAD);
}

static void add_occupancy(struct inspect_table *t, const struct inspect_kernel *k)
{
	char text[16] = "-";

	if (k->has_occupancy)
		snprintf(text, sizeof(text), "%.0f%%", k->occupancy.ratio * 100);
	strbuf_addf(&t->line, " %4s", text);
	if (is_wide(t))
		strbuf_addf(&t->line, "  %-13s",
			    k->has_occupancy ? occupancy_limiter_name(k->occupancy.limiter) : "-");
}

/* Marks what must still be linked, whose figures are not final; the last line explains the mark. */
static void mark_relocatable(char arch[static KERNEL_ARCH_TEXT + 1], bool relocatable)
{
	size_t n = strlen(arch);

	arch[n] = relocatable ? '*' : '\0';
	arch[n + relocatable] = '\0';
}

static struct inspect_sum *sum_of(struct inspect_table *t, const struct inspect_sum *like)
{
	struct inspect_sum *sum = t->sums;

	for (; sum < t->sums + t->sums_n; sum++)
		if (sum->arch.sm == like->arch.sm && sum->arch.variant == like->arch.variant &&
		    sum->kind == like->kind && sum->compression == like->compression &&
		    sum->relocatable == like->relocatable)
			return sum;
	/* Only a malformed file has so many: the rest is counted with the last. */
	if (t->sums_n == SUMS)
		return sum - 1;
	t->sums_n++;
	*sum = (struct inspect_sum){ .arch = like->arch,
				     .kind = like->kind,
				     .compression = like->compression,
				     .relocatable = like->relocatable };
	return sum;
}

static void image(struct strbuf *out, void *state, const struct inspect_image *image)
{
	const struct inspect_sum like = { .arch = image->arch,
					  .kind = image->kind,
					  .compression = image->compression,
					  .relocatable = image->relocatable };
	struct inspect_table *t = state;

	(void)out;
	t->sum = sum_of(t, &like);
	t->sum->images++;
	t->sum->bytes += image->bytes;
	t->sum->uncompressed_bytes += image->uncompressed_bytes;
}

static void merge(void *state, const void *from, bool images)
{
	const struct inspect_table *thread = from;

	for (unsigned i = 0; i < thread->sums_n; i++) {
		const struct inspect_sum *more = &thread->sums[i];
		struct inspect_sum *sum = sum_of(state, more);

		sum->kernels += more->kernels;
		if (!images)
			continue;
		sum->images += more->images;
		sum->bytes += more->bytes;
		sum->uncompressed_bytes += more->uncompressed_bytes;
	}
}

static void heading(struct strbuf *out, void *state, const char *file)
{
	struct inspect_table *t = state;

	if (t->options.many_files) {
		strbuf_addf(&t->line, "%s:", file);
		put_line(out, t, COLOUR_NONE);
	}
	put_headings(out, t);
}

static void kernel(struct strbuf *out, void *state, const struct inspect_kernel *k)
{
	struct inspect_table *t = state;
	char arch[KERNEL_ARCH_TEXT + 1];

	t->sum->kernels++;
	kernel_arch_text(k->arch, arch);
	mark_relocatable(arch, k->relocatable);
	strbuf_addf(&t->line, "%-*s", ARCH_WIDTH, arch[0] ? arch : "-");
	for (unsigned i = 0; i < ARRAY_SIZE(columns); i++) {
		int64_t v = k->figures[columns[i].figure];

		if (!columns[i].narrow && !is_wide(t))
			continue;
		if (v < 0)
			strbuf_addf(&t->line, " %*s", columns[i].width, "-");
		else
			strbuf_addf(&t->line, " %*lld", columns[i].width, (long long)v);
	}
	add_occupancy(t, k);
	strbuf_addf(&t->line, "  %s", k->name.brief ? k->name.brief : k->name.text);
	put_line(out, t, COLOUR_NONE);
}

static int by_arch(const void *a, const void *b)
{
	const struct inspect_sum *x = a, *y = b;

	if (x->arch.sm != y->arch.sm)
		return x->arch.sm < y->arch.sm ? -1 : 1;
	if (x->arch.variant != y->arch.variant)
		return x->arch.variant < y->arch.variant ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind > y->kind ? -1 : 1; /* machine code first */
	if (x->compression != y->compression)
		return x->compression < y->compression ? -1 : 1;
	return x->relocatable - y->relocatable;
}

static const struct table_column sum_columns[] = {
	{ .title = "ARCH" },
	{ .title = "KIND" },
	{ .title = "COMPRESSION", .dispensable = 1 },
	{ .title = "IMAGES", .right = true },
	{ .title = "BYTES", .right = true },
	{ .title = "UNCOMPRESSED", .right = true },
	{ .title = "KERNELS", .right = true },
};

static void add_sum(struct table *table, const struct inspect_sum *sum)
{
	char arch[KERNEL_ARCH_TEXT + 1];

	kernel_arch_text(sum->arch, arch);
	mark_relocatable(arch, sum->relocatable);
	table_cell(table, COLOUR_NONE, arch);
	table_cellf(table, COLOUR_NONE, "%s%s", cubin_kind_name(sum->kind),
		    sum->relocatable ? ", to be linked" : "");
	table_cell(table, COLOUR_NONE, cubin_compression_name(sum->compression));
	table_cellf(table, COLOUR_NONE, "%llu", (unsigned long long)sum->images);
	table_cellf(table, COLOUR_NONE, "%llu", (unsigned long long)sum->bytes);
	table_cellf(table, COLOUR_NONE, "%llu", (unsigned long long)sum->uncompressed_bytes);
	table_cellf(table, COLOUR_NONE, "%llu", (unsigned long long)sum->kernels);
}

static void end(struct strbuf *out, void *state)
{
	struct inspect_table *t = state;
	uint64_t images = 0, kernels = 0, relocatable = 0;
	struct table table;

	qsort(t->sums, t->sums_n, sizeof(*t->sums), by_arch);
	table_init(&table, sum_columns, ARRAY_SIZE(sum_columns));
	for (unsigned i = 0; i < t->sums_n; i++) {
		images += t->sums[i].images;
		kernels += t->sums[i].kernels;
		relocatable += t->sums[i].relocatable ? t->sums[i].images : 0;
		add_sum(&table, &t->sums[i]);
	}
	if (kernels)
		strbuf_addc(out, '\n');
	if (table_write(&table, &t->options.table, out) < 0)
		out->failed = true;
	table_done(&table);
	strbuf_addf(&t->line, "%llu kernel%s shown, %llu image%s", (unsigned long long)kernels,
		    kernels == 1 ? "" : "s", (unsigned long long)images, images == 1 ? "" : "s");
	strbuf_addc(out, '\n');
	put_line(out, t, COLOUR_NONE);
	if (relocatable) {
		strbuf_adds(&t->line,
			    "*: to be linked with others first, which decides what its kernels need");
		put_line(out, t, COLOUR_NONE);
	}
}

static void init(void *state, const struct inspect_options *options)
{
	struct inspect_table *t = state;

	t->options = *options;
	strbuf_init(&t->line, 0);
}

static void done(void *state)
{
	struct inspect_table *t = state;

	strbuf_done(&t->line);
}

void inspect_error_text(const struct inspect_error *error, struct strbuf *out)
{
	text_clean(out, error->file);
	if (error->has_offset)
		strbuf_addf(out, ": at 0x%llx", (unsigned long long)error->offset);
	strbuf_adds(out, ": ");
	text_clean(out, error->text);
}

const struct inspect_writer inspect_table_writer = {
	.brief = true,
	.state_size = sizeof(struct inspect_table),
	.init = init,
	.done = done,
	.heading = heading,
	.merge = merge,
	.image = image,
	.kernel = kernel,
	.end = end,
};
