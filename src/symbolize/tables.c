// SPDX-License-Identifier: Apache-2.0
/*
 * Stored contents of a file: its stubs, and its kernels for some architectures. Read on request.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "symbolize/figures.h"
#include "symbolize/file.h"
#include "symbolize/stubs.h"
#include "symbolize/worker.h"

#define FAILED_FIRST_NS (100 * NSEC_PER_MSEC) /* interval before the first retry */
#define FAILED_NS (30 * NSEC_PER_SEC) /* longest interval */

static void weigh(struct symbolizer *symbolizer, struct file *file, uint64_t bytes)
{
	file->bytes += bytes;
	symbolizer_weigh(symbolizer, (int64_t)bytes);
	symbolizer->trim = true; /* reading needed more memory than the result */
	file->busy++;
	make_room(symbolizer);
	file->busy--;
}

/* A failure may be temporary: retries after increasing intervals. */
static int may_try(const struct file *file, enum table table)
{
	uint32_t n = file->failed[table].n;
	int64_t wait = n ? MIN(FAILED_FIRST_NS << MIN(n - 1, 16U), FAILED_NS) : 0;

	return n && clock_mono_ns() - file->failed[table].ns < wait ? -EAGAIN : 0;
}

static int failed(struct symbolizer *symbolizer, struct file *file, const struct place *place,
		  enum table table, int r)
{
	if (r == -ECANCELED)
		return r;
	file->failed[table].ns = clock_mono_ns();
	file->failed[table].n++;
	symbolizer_count(symbolizer, &symbolizer->stats.files_failed, 1);
	log_debug("kernels of %s are not known: %s", place->path, strerror(-r));
	return r;
}

static int on_any(_unused_ const struct cubin_image *image, _unused_ void *userdata)
{
	return -EALREADY; /* one is enough */
}

int file_has_device_code(struct symbolizer *symbolizer, struct file *file, const struct place *place)
{
	static const struct cubin_ops ops = { .image = on_any };
	const struct cubin_limits limits = { .image_bytes = IMAGE_BYTES, .metadata_bytes = METADATA_BYTES };
	_cleanup_close_ int fd = -1;
	struct cubin_source source;
	int r;

	if (file->device_code != DEVICE_CODE_UNKNOWN)
		return file->device_code == DEVICE_CODE;
	r = may_try(file, TABLE_DEVICE_CODE);
	if (r == 0)
		r = file_open(symbolizer, file, place, &fd);
	if (r == 0)
		r = cubin_source_file(fd, &source);
	if (r < 0)
		return r;
	r = cubin_read(&source, &limits, &ops, NULL);
	if (r == -EALREADY) {
		file->device_code = DEVICE_CODE;
	} else if (r == 0 || r == -ENODATA || r == -ENOEXEC) {
		file->device_code = DEVICE_CODE_NONE;
		file_let_go(symbolizer, file);
	} else {
		return failed(symbolizer, file, place, TABLE_DEVICE_CODE, r);
	}
	file->failed[TABLE_DEVICE_CODE].n = 0;
	return file->device_code == DEVICE_CODE;
}

int file_stubs(struct symbolizer *symbolizer, struct file *file, const struct place *place,
	       const struct stub_table **ret_stubs)
{
	uint32_t max = (uint32_t)(symbolizer->config.limits.bytes / 4 / sizeof(struct stub_entry));
	_cleanup_close_ int fd = -1;
	char root[96];
	int r;

	file->used = ++symbolizer->used;
	if (file->stubs) {
		*ret_stubs = file->stubs;
		return 0;
	}
	r = may_try(file, TABLE_STUBS);
	if (r == 0)
		r = file_open(symbolizer, file, place, &fd);
	if (r < 0)
		return r;
	snprintf(root, sizeof(root), "%s/%d/root", symbolizer->proc_root, (int)place->pid);
	r = stub_table_read(symbolizer, fd, root, place->path, max, &file->stubs);
	if (r == 0) {
		r = file_unchanged(file, fd);
		if (r < 0)
			stub_table_free(TAKE_PTR(file->stubs));
	}
	if (r < 0)
		return failed(symbolizer, file, place, TABLE_STUBS, r);
	file->failed[TABLE_STUBS].n = 0;
	symbolizer_count(symbolizer, &symbolizer->stats.files_read, 1);
	symbolizer_count(symbolizer, &symbolizer->stats.left_out, file->stubs->left_out);
	weigh(symbolizer, file, stub_table_bytes(file->stubs));
	*ret_stubs = file->stubs;
	return 0;
}

static struct figures **room_for_figures(struct symbolizer *symbolizer, struct file *file)
{
	struct figures **found = &file->figures[0];

	for (unsigned i = 0; i < FILE_ARCHS; i++) {
		if (!file->figures[i])
			return &file->figures[i];
		if (file->figures[i]->used < (*found)->used)
			found = &file->figures[i];
	}
	file->bytes -= figures_bytes(*found);
	symbolizer_weigh(symbolizer, -(int64_t)figures_bytes(*found));
	symbolizer_count(symbolizer, &symbolizer->stats.evicted, 1);
	figures_free(TAKE_PTR(*found));
	return found;
}

static struct figures *kept_figures(struct symbolizer *symbolizer, struct file *file, uint16_t sm)
{
	for (unsigned i = 0; i < FILE_ARCHS; i++)
		if (file->figures[i] && file->figures[i]->sm == sm) {
			file->figures[i]->used = ++symbolizer->used;
			return file->figures[i];
		}
	return NULL;
}

static int read_figures(struct symbolizer *symbolizer, struct file *file, const struct place *place,
			uint16_t sm, struct figures **ret_figures)
{
	const struct figures_limits limits = {
		.entries = (uint32_t)(symbolizer->config.limits.bytes / 2 / sizeof(struct figures_entry)),
		.image_bytes = IMAGE_BYTES,
		.metadata_bytes = METADATA_BYTES,
	};
	_cleanup_close_ int fd = -1;
	struct cubin_source source;
	int r = may_try(file, TABLE_FIGURES);

	if (r == 0)
		r = file_open(symbolizer, file, place, &fd);
	if (r == 0)
		r = cubin_source_file(fd, &source);
	if (r < 0)
		return r;
	r = figures_read(symbolizer, &source, sm, &limits, ret_figures);
	if (r == -ENODATA || r == -ENOEXEC) {
		file->device_code = DEVICE_CODE_NONE;
		file_let_go(symbolizer, file);
		return -ENODATA;
	}
	if (r == 0) {
		r = file_unchanged(file, fd);
		if (r < 0)
			figures_free(TAKE_PTR(*ret_figures));
	}
	if (r < 0)
		return failed(symbolizer, file, place, TABLE_FIGURES, r);
	file->failed[TABLE_FIGURES].n = 0;
	return 0;
}

int file_figures(struct symbolizer *symbolizer, struct file *file, const struct place *place, uint16_t sm,
		 const struct figures **ret_figures)
{
	struct figures *figures, **room;
	int r;

	file->used = ++symbolizer->used;
	if (file->device_code == DEVICE_CODE_NONE || sm == 0)
		return -ENODATA;
	figures = kept_figures(symbolizer, file, sm);
	if (!figures) {
		r = read_figures(symbolizer, file, place, sm, &figures);
		if (r < 0)
			return r;
		room = room_for_figures(symbolizer, file);
		*room = figures;
		figures->used = ++symbolizer->used;
		file->device_code = DEVICE_CODE;
		symbolizer_count(symbolizer, &symbolizer->stats.files_read, 1);
		weigh(symbolizer, file, figures_bytes(figures));
	}
	*ret_figures = figures;
	return 0;
}
