// SPDX-License-Identifier: Apache-2.0
/*
 * Of each container a device takes one image. Which one is known when all of them have been seen, so the
 * source is walked twice: the first walk reads headers only, the second the chosen images. Where the device
 * takes PTX, another image of the same container tells the names of the kernels that will be compiled.
 */
#include "symbolize/figures.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cubin/arch.h"
#include "symbolize/names.h"
#include "symbolize/worker.h"

enum { CONTAINERS_MAX = 1 << 20, PTX_MAX = 1 << 16 };

/*
 * What a source may take of CPU time; what is found later is left out. PyTorch's library, of 1 GB, takes two
 * seconds.
 */
#define CPU_LEAST_NS (2 * NSEC_PER_SEC)
#define CPU_NS_PER_BYTE 20
#define SIZE_COUNTED (UINT64_C(4) << 30) /* sparse files can have any size */
#define SIZE_UNKNOWN (UINT64_C(256) << 20) /* assumed of a process's memory */

struct choice {
	uint32_t suits; /* of the best image; 0: none is suitable */
	/* the first image of machine code, which has the kernels' names; UINT32_MAX: none */
	uint32_t named_by;
	bool ptx;
};

struct figures_reading {
	struct symbolizer *symbolizer;
	uint16_t sm;
	const struct figures_limits *limits;
	struct choice *choices;
	uint32_t choices_n, choices_cap;
	struct figures *figures;
	uint32_t cap;
	bool full; /* the table is full; sorting it again for each further kernel would be far too slow */
	bool jit; /* the image being read provides only names */
	bool device_code;
	int64_t cpu_end_ns; /* of the thread's CPU time */
	bool late; /* it is past that */
};

void resources_init(struct resources *resources)
{
	*resources = (struct resources){ 0 };
	for (unsigned i = 0; i < KERNEL_FIGURES; i++)
		resources->figures[i] = -1;
}

void figures_free(struct figures *figures)
{
	if (!figures)
		return;
	free(figures->entries);
	free(figures->ptx);
	free(figures);
}

uint64_t figures_bytes(const struct figures *figures)
{
	return sizeof(*figures) + (uint64_t)figures->n * sizeof(figures->entries[0]) +
	       (uint64_t)figures->ptx_n * sizeof(figures->ptx[0]);
}

/* ---- first walk ---- */

static struct choice *choice_of(struct figures_reading *reading, uint32_t container)
{
	if (container >= CONTAINERS_MAX)
		return NULL;
	if (container >= reading->choices_cap) {
		uint32_t cap = MAX(container + 1, reading->choices_cap * 2);
		struct choice *choices = reallocarray(reading->choices, cap, sizeof(*choices));

		if (!choices)
			return NULL;
		reading->choices = choices;
		reading->choices_cap = cap;
	}
	while (reading->choices_n <= container)
		reading->choices[reading->choices_n++] = (struct choice){ .named_by = UINT32_MAX };
	return &reading->choices[container];
}

static int on_header(const struct cubin_image *image, void *userdata)
{
	struct figures_reading *reading = userdata;
	uint32_t suits = cubin_suits(image, reading->sm);
	struct choice *choice = choice_of(reading, image->container);

	if (symbolizer_stopping(reading->symbolizer))
		return -ECANCELED;
	reading->device_code = true;
	symbolizer_count(reading->symbolizer, &reading->symbolizer->stats.images[image->compression], 1);
	/* Relocatable images are also contained in the linked image. */
	if (image->relocatable)
		return 1;
	if (!choice) {
		reading->figures->whole = false;
		return 1;
	}
	if (suits > choice->suits) {
		choice->suits = suits;
		choice->ptx = image->kind == CUBIN_PTX;
	}
	if (image->kind == CUBIN_ELF && choice->named_by == UINT32_MAX)
		choice->named_by = image->number;
	return 1;
}

/* ---- second walk ---- */

static int keep_ptx(struct figures_reading *reading, const struct cubin_image *image)
{
	struct figures *figures = reading->figures;
	struct cubin_image *ptx;

	if (figures->ptx_n == PTX_MAX) {
		figures->whole = false;
		return 1;
	}
	ptx = reallocarray(figures->ptx, figures->ptx_n + 1, sizeof(*ptx));
	if (!ptx)
		return -ENOMEM;
	figures->ptx = ptx;
	ptx[figures->ptx_n++] = *image;
	return 1;
}

static int on_image(const struct cubin_image *image, void *userdata)
{
	struct figures_reading *reading = userdata;
	const struct choice *choice;

	if (symbolizer_stopping(reading->symbolizer))
		return -ECANCELED;
	reading->device_code = true;
	reading->jit = false;
	if (image->relocatable)
		return 1;
	if (reading->sm == 0)
		return image->kind == CUBIN_PTX ? keep_ptx(reading, image) : image->kind != CUBIN_ELF;
	if (image->container >= reading->choices_n || image->kind != CUBIN_ELF)
		return 1;
	choice = &reading->choices[image->container];
	if (choice->suits == 0)
		return 1;
	reading->jit = choice->ptx;
	if (choice->ptx)
		return image->number != choice->named_by;
	return cubin_suits(image, reading->sm) != choice->suits;
}

static int by_key(const void *a, const void *b)
{
	const struct figures_entry *x = a, *y = b;
	int c = symbol_key_compare(x->hash, x->check, (struct symbol_key){ y->hash, y->check });

	return c ? c : (x->container > y->container) - (x->container < y->container);
}

/* Figures that differ between two kernels of the same name are unknown. */
static void figures_merge(struct figures_entry *into, const struct figures_entry *other)
{
	if (into->arch.sm != other->arch.sm || into->arch.variant != other->arch.variant)
		into->arch = (struct kernel_arch){ 0 };
	into->jit = into->jit && other->jit;
	for (unsigned i = 0; i < KERNEL_FIGURES; i++)
		if (into->figures[i] != other->figures[i])
			into->figures[i] = FIGURES_NONE;
}

static void sort(struct figures *figures)
{
	uint32_t n = 0;

	if (figures->n == 0)
		return;
	qsort(figures->entries, figures->n, sizeof(figures->entries[0]), by_key);
	for (uint32_t i = 1; i < figures->n && figures->sm != 0; i++) {
		struct figures_entry *last = &figures->entries[n], *entry = &figures->entries[i];

		if (entry->hash == last->hash && entry->check == last->check)
			figures_merge(last, entry);
		else
			figures->entries[++n] = *entry;
	}
	if (figures->sm != 0)
		figures->n = n + 1;
}

/* Removes duplicates before growing. */
static int grow(struct figures_reading *reading)
{
	struct figures *figures = reading->figures;
	struct figures_entry *entries;
	uint32_t cap;

	sort(figures);
	if (figures->n < reading->cap - reading->cap / 4)
		return 0;
	if (reading->cap >= reading->limits->entries)
		return -E2BIG;
	cap = MIN(reading->cap ? reading->cap + reading->cap / 2 : 256, reading->limits->entries);
	entries = reallocarray(figures->entries, cap, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	figures->entries = entries;
	reading->cap = cap;
	return 0;
}

static int on_kernel(const struct cubin_image *image, const struct cubin_kernel *kernel, void *userdata)
{
	struct figures_reading *reading = userdata;
	struct figures *figures = reading->figures;
	struct symbol_key key = symbol_key(kernel->symbol, kernel->symbol_n);
	struct figures_entry *entry;
	int r = 0;

	if (reading->full)
		return 0;
	if (figures->n == reading->cap)
		r = grow(reading);
	if (r == -E2BIG) {
		reading->full = true;
		figures->whole = false;
		return 0;
	}
	if (r < 0)
		return r;
	entry = &figures->entries[figures->n++];
	*entry = (struct figures_entry){ .hash = key.hash,
					 .check = key.check,
					 .container = image->container,
					 .arch = reading->jit ? (struct kernel_arch){ 0 } : kernel->arch,
					 .jit = reading->jit };
	for (unsigned i = 0; i < KERNEL_FIGURES; i++)
		entry->figures[i] = !reading->jit && kernel->figures[i] >= 0 &&
						    kernel->figures[i] < (int64_t)FIGURES_NONE ?
					    (uint32_t)kernel->figures[i] :
					    FIGURES_NONE;
	return 0;
}

static void on_trouble(_unused_ uint64_t offset, _unused_ const char *text, void *userdata)
{
	struct figures_reading *reading = userdata;

	reading->figures->whole = false;
}

static bool stop(void *userdata)
{
	struct figures_reading *reading = userdata;

	reading->late = reading->late || clock_thread_cpu_ns() > reading->cpu_end_ns;
	return reading->late || symbolizer_stopping(reading->symbolizer);
}

static int walk(struct figures_reading *reading, const struct cubin_source *source)
{
	const struct cubin_limits limits = { .image_bytes = reading->limits->image_bytes,
					     .metadata_bytes = reading->limits->metadata_bytes };
	/* errors are reported by the second walk */
	const struct cubin_ops first = { .image = on_header, .stop = stop };
	const struct cubin_ops second = {
		.image = on_image, .kernel = on_kernel, .trouble = on_trouble, .stop = stop
	};
	int r = 0;

	if (reading->sm != 0)
		r = cubin_read(source, &limits, &first, reading);
	if (r == 0)
		r = cubin_read(source, &limits, &second, reading);
	return r;
}

static int64_t cpu_limit_ns(const struct cubin_source *source)
{
	uint64_t size = source->size == UINT64_MAX ? SIZE_UNKNOWN : MIN(source->size, SIZE_COUNTED);

	return CPU_LEAST_NS + (int64_t)size * CPU_NS_PER_BYTE;
}

static void fit(struct figures *figures)
{
	struct figures_entry *entries;

	sort(figures);
	entries = reallocarray(figures->entries, MAX(figures->n, 1U), sizeof(*entries));
	if (entries)
		figures->entries = entries;
}

int figures_read(struct symbolizer *symbolizer, const struct cubin_source *source, uint16_t sm,
		 const struct figures_limits *limits, struct figures **ret_figures)
{
	_cleanup_(figures_freep) struct figures *figures = calloc(1, sizeof(*figures));
	struct figures_reading reading = {
		.symbolizer = symbolizer, .sm = sm, .limits = limits, .figures = figures
	};
	int r;

	if (!figures)
		return -ENOMEM;
	figures->sm = sm;
	figures->whole = true;
	reading.cpu_end_ns = clock_thread_cpu_ns() + cpu_limit_ns(source);
	r = walk(&reading, source);
	if (r == -ECANCELED && reading.late && !symbolizer_stopping(symbolizer)) {
		figures->whole = false;
		reading.device_code = true;
		r = 0;
	}
	for (uint32_t i = 0; i < reading.choices_n; i++)
		figures->unnamed_jit |= reading.choices[i].ptx && reading.choices[i].named_by == UINT32_MAX;
	free(reading.choices);
	if (r < 0)
		return r;
	if (!reading.device_code)
		return -ENODATA;
	fit(figures);
	*ret_figures = TAKE_PTR(figures);
	return 0;
}

/* ---- look-up ---- */

static uint32_t first_of(const struct figures *figures, struct symbol_key key)
{
	uint32_t low = 0, high = figures->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct figures_entry *entry = &figures->entries[middle];

		if (symbol_key_compare(entry->hash, entry->check, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is(const struct figures *figures, uint32_t i, struct symbol_key key)
{
	return i < figures->n &&
	       symbol_key_compare(figures->entries[i].hash, figures->entries[i].check, key) == 0;
}

bool figures_has(const struct figures *figures, struct symbol_key key)
{
	return is(figures, first_of(figures, key), key);
}

static void add(struct resources *resources, const struct figures_entry *entry)
{
	if (!resources->any) {
		resources->any = true;
		resources->jit = entry->jit;
		resources->arch = entry->arch;
		for (unsigned i = 0; i < KERNEL_FIGURES; i++)
			resources->figures[i] =
				entry->figures[i] == FIGURES_NONE ? -1 : (int64_t)entry->figures[i];
		return;
	}
	if (resources->arch.sm != entry->arch.sm || resources->arch.variant != entry->arch.variant)
		resources->arch = (struct kernel_arch){ 0 };
	resources->jit = resources->jit && entry->jit;
	for (unsigned i = 0; i < KERNEL_FIGURES; i++)
		if (entry->figures[i] == FIGURES_NONE || resources->figures[i] != (int64_t)entry->figures[i])
			resources->figures[i] = -1;
}

void resources_add_unknown(struct resources *resources, bool jit)
{
	struct figures_entry entry = { .jit = jit };

	for (unsigned i = 0; i < KERNEL_FIGURES; i++)
		entry.figures[i] = FIGURES_NONE;
	add(resources, &entry);
}

/* For one container, whose kernels of this name are entries @from to @to: adds what a device of @sm uses. */
static void add_container(const struct figures *figures, uint32_t from, uint32_t to, uint16_t sm,
			  struct resources *resources)
{
	uint32_t best = 0, ptx = 0, container = figures->entries[from].container;

	for (uint32_t i = from; i < to; i++) {
		const struct cubin_image image = { .kind = CUBIN_ELF, .arch = figures->entries[i].arch };

		best = MAX(best, cubin_suits(&image, sm));
	}
	/* They are in the file's order, and so by container. */
	for (uint32_t i = LOWER_BOUND(figures->ptx_n, middle, figures->ptx[middle].container < container);
	     i < figures->ptx_n && figures->ptx[i].container == container; i++)
		ptx = MAX(ptx, cubin_suits(&figures->ptx[i], sm));
	if (best == 0) {
		resources_add_unknown(resources, ptx > 0);
		return;
	}
	for (uint32_t i = from; i < to; i++) {
		const struct cubin_image image = { .kind = CUBIN_ELF, .arch = figures->entries[i].arch };

		if (cubin_suits(&image, sm) == best)
			add(resources, &figures->entries[i]);
	}
}

bool figures_find(const struct figures *figures, struct symbol_key key, uint16_t sm,
		  struct resources *resources)
{
	uint32_t from = first_of(figures, key);

	if (!is(figures, from, key))
		return false;
	if (figures->sm != 0 || sm == 0) {
		if (figures->sm != 0)
			add(resources, &figures->entries[from]);
		else
			resources_add_unknown(resources, false);
		return true;
	}
	while (is(figures, from, key)) {
		uint32_t to = from + 1;

		while (is(figures, to, key) &&
		       figures->entries[to].container == figures->entries[from].container)
			to++;
		add_container(figures, from, to, sm, resources);
		from = to;
	}
	return true;
}
