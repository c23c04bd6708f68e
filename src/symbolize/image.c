// SPDX-License-Identifier: Apache-2.0
/*
 * Images that programs load from their memory. When an image replaces another at the same address, both are
 * stored, since kernels of the first may be requested later. Figures that differ between them are unknown.
 */
#include "symbolize/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/figures.h"
#include "symbolize/file.h"
#include "symbolize/names.h"
#include "symbolize/process.h"
#include "symbolize/progress.h"
#include "symbolize/worker.h"

enum {
	ENTRIES_MAX = 1 << 16,
	HEADER = 4096,
	PTX_LOOK = 4096,
	WRAPPER_MAGIC = 0x466243b1, /* __fatBinC_Wrapper_t of CUDA's fatbinary_section.h */
};

struct image {
	struct image *next;
	pid_t pid;
	uint64_t incarnation, address;
	uint64_t seq;
	struct figures *figures; /* NULL: PTX alone, or lost */
	bool lost; /* the memory may have been reused before it was read */
	uint64_t bytes, used;
};

static void image_free(struct symbolizer *symbolizer, struct image *image)
{
	symbolizer_weigh(symbolizer, -(int64_t)image->bytes);
	figures_free(image->figures);
	free(image);
}

uint64_t image_address(pid_t pid, uint64_t address)
{
	struct {
		uint32_t magic, version;
		uint64_t data;
	} wrapper;

	if (process_peek(pid, address, &wrapper, sizeof(wrapper)) != sizeof(wrapper) ||
	    wrapper.magic != WRAPPER_MAGIC)
		return address;
	return wrapper.data;
}

/* PTX text begins with comments and ".version". */
static bool is_ptx(pid_t pid, uint64_t address)
{
	static const char word[] = ".version";
	char text[PTX_LOOK];
	ssize_t n = -1;

	/* The text may end before an unmapped page. */
	for (size_t want = sizeof(text); n < 0 && want >= 64; want /= 2)
		n = process_peek(pid, address, text, want);
	return n > 0 && memmem(text, (size_t)n, word, sizeof(word) - 1) != NULL &&
	       !memchr(text, '\0',
		       (size_t)((const char *)memmem(text, (size_t)n, word, sizeof(word) - 1) - text));
}

/* Removes the oldest version if there are too many. */
static void limit_versions(struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation, uint64_t address)
{
	struct image **oldest = NULL;
	unsigned n = 0;

	for (struct image **at = &symbolizer->memory_images; *at; at = &(*at)->next)
		if ((*at)->pid == pid && (*at)->incarnation == incarnation && (*at)->address == address) {
			n++;
			oldest = at; /* newest first */
		}
	if (n > IMAGE_VERSIONS) {
		struct image *old = *oldest;

		*oldest = old->next;
		image_free(symbolizer, old);
	}
}

static int image_keep(struct symbolizer *symbolizer, const struct work *work, struct figures *figures,
		      bool lost)
{
	const struct symbolizer_question *q = &work->question;
	struct image *image = calloc(1, sizeof(*image));

	if (!image)
		return -ENOMEM;
	*image = (struct image){ .pid = (pid_t)q->process.pid,
				 .incarnation = q->incarnation,
				 .address = q->image,
				 .seq = work->seq,
				 .figures = figures,
				 .lost = lost,
				 .bytes = sizeof(*image) + (figures ? figures_bytes(figures) : 0),
				 .used = ++symbolizer->used,
				 .next = symbolizer->memory_images };
	symbolizer->memory_images = image;
	symbolizer_weigh(symbolizer, (int64_t)image->bytes);
	limit_versions(symbolizer, (pid_t)q->process.pid, q->incarnation, q->image);
	make_room(symbolizer);
	return 0;
}

/* Whether a later image at this address is queued: a compiler's buffer that is reused. */
static bool next_is_there(struct symbolizer *symbolizer, const struct symbolizer_question *q)
{
	bool found = false;

	pthread_mutex_lock(&symbolizer->lock);
	for (const struct work *work = symbolizer->images.first; work && !found; work = work->next)
		found = work->kind == WORK_IMAGE && work->question.process.pid == q->process.pid &&
			work->question.incarnation == q->incarnation && work->question.image == q->image;
	pthread_mutex_unlock(&symbolizer->lock);
	return found;
}

static size_t read_header(pid_t pid, uint64_t address, char header[static HEADER])
{
	ssize_t n = -1;

	/* The image may end before an unmapped page. */
	for (size_t want = HEADER; n < 0 && want >= 64; want /= 2)
		n = process_peek(pid, address, header, want);
	return n < 0 ? 0 : (size_t)n;
}

static int read_memory(struct symbolizer *symbolizer, pid_t pid, uint64_t address,
		       struct figures **ret_figures)
{
	static const struct figures_limits limits = { ENTRIES_MAX, IMAGE_BYTES, METADATA_BYTES };
	struct cubin_process memory = { .pid = pid, .address = address };
	char before[HEADER], after[HEADER];
	_cleanup_(figures_freep) struct figures *figures = NULL;
	struct cubin_source source;
	size_t n = read_header(pid, address, before);
	int r;

	progress_memory();
	cubin_source_process(&memory, &source);
	r = figures_read(symbolizer, &source, 0, &limits, &figures);
	if (r < 0 && !is_ptx(pid, address))
		return r;
	if (read_header(pid, address, after) != n || memcmp(before, after, n) != 0)
		return -ESTALE;
	*ret_figures = TAKE_PTR(figures);
	return 0;
}

void image_read(struct symbolizer *symbolizer, const struct work *work)
{
	const struct symbolizer_question *q = &work->question;
	_cleanup_(figures_freep) struct figures *figures = NULL;
	struct process *process;
	uint64_t address;
	bool lost;
	int r;

	if (!symbolizer->config.read_memory || symbolizer_over(symbolizer))
		return;
	r = process_look(symbolizer, q, work->asked_ns, &process);
	/* It usually belongs to a library, whose file is read once for all processes, on request. */
	if (r < 0 || process->gone)
		return;
	address = image_address((pid_t)q->process.pid, q->image);
	if (process_area(process, address))
		return;
	r = read_memory(symbolizer, (pid_t)q->process.pid, address, &figures);
	if (symbolizer_over(symbolizer) || (r < 0 && r != -ESTALE))
		return;
	/* For a lost image it is still recorded that there was one. */
	lost = r == -ESTALE || next_is_there(symbolizer, q);
	if (lost)
		figures_free(TAKE_PTR(figures));
	symbolizer->trim = true;
	if (image_keep(symbolizer, work, figures, lost) == 0)
		(void)TAKE_PTR(figures);
}

bool image_find(struct symbolizer *symbolizer, const struct symbolizer_question *question, uint64_t seq,
		struct symbol_key key, struct resources *resources)
{
	bool found = false;

	for (struct image *image = symbolizer->memory_images; image; image = image->next) {
		if (image->pid != (pid_t)question->process.pid ||
		    image->incarnation != question->incarnation || image->address != question->image ||
		    image->seq > seq)
			continue;
		image->used = ++symbolizer->used;
		if (!image->figures) {
			resources_add_unknown(resources, !image->lost);
			found = true;
		} else if (figures_find(image->figures, key, question->sm, resources)) {
			found = true;
		}
	}
	return found;
}

bool image_has(const struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation, struct symbol_key key)
{
	for (const struct image *image = symbolizer->memory_images; image; image = image->next)
		if (image->pid == pid && image->incarnation == incarnation && image->figures &&
		    figures_has(image->figures, key))
			return true;
	return false;
}

void images_forget(struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation)
{
	struct image **at = &symbolizer->memory_images;

	while (*at) {
		struct image *image = *at;

		if (image->pid == pid && image->incarnation == incarnation) {
			*at = image->next;
			image_free(symbolizer, image);
		} else {
			at = &image->next;
		}
	}
}

void images_done(struct symbolizer *symbolizer)
{
	while (symbolizer->memory_images) {
		struct image *image = symbolizer->memory_images;

		symbolizer->memory_images = image->next;
		image_free(symbolizer, image);
	}
}

uint64_t images_oldest(const struct symbolizer *symbolizer)
{
	uint64_t used = UINT64_MAX;

	for (const struct image *image = symbolizer->memory_images; image; image = image->next)
		used = MIN(used, image->used);
	return used;
}

bool images_evict(struct symbolizer *symbolizer, uint64_t used)
{
	for (struct image **at = &symbolizer->memory_images; *at; at = &(*at)->next)
		if ((*at)->used <= used) {
			struct image *image = *at;

			*at = image->next;
			image_free(symbolizer, image);
			return true;
		}
	return false;
}
