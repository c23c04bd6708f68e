// SPDX-License-Identifier: Apache-2.0
#include "view/kernels.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

void kernel_label(const struct kernel *kernel, char buf[static KERNEL_LABEL_BYTES + 1])
{
	static const char more[] = "...";
	const char *name = *kernel->brief ? kernel->brief : kernel->symbol;
	size_t n = strlen(name), end = KERNEL_LABEL_BYTES - strlen(more);

	if (n <= KERNEL_LABEL_BYTES) {
		memcpy(buf, name, n + 1);
	} else {
		/* Do not cut within a UTF-8 character. */
		while (end > 0 && ((unsigned char)name[end] & 0xc0) == 0x80)
			end--;
		memcpy(buf, name, end);
		memcpy(buf + end, more, sizeof(more));
	}
	utf8_sanitize(buf);
}

/* 64-bit FNV-1a. The NUL is hashed, too, so that two texts cannot be confused with their concatenation. */
static uint64_t add_text(uint64_t hash, const char *text)
{
	for (;; text++) {
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
		if (!*text)
			return hash;
	}
}

uint64_t kernel_id(const struct kernel *kernel)
{
	return add_text(add_text(UINT64_C(0xcbf29ce484222325), kernel->symbol), kernel->file);
}

void kernel_id_text(const struct kernel *kernel, char buf[static KERNEL_ID_TEXT])
{
	snprintf(buf, KERNEL_ID_TEXT, "%016" PRIx64, kernel_id(kernel));
}

void launches_numbers(const struct traced_launches *launches, uint8_t presence,
		      double v[static KERNEL_METRICS], uint8_t p[static KERNEL_METRICS])
{
	memset(v, 0, KERNEL_METRICS * sizeof(*v));
	memset(p, PRESENCE_ABSENT, KERNEL_METRICS * sizeof(*p));
	v[KERNEL_METRIC_LAUNCHES] = (double)launches->launches;
	v[KERNEL_METRIC_THREADS] = (double)launches->threads;
	v[KERNEL_METRIC_BUSY] = launches->seconds;
	p[KERNEL_METRIC_LAUNCHES] = p[KERNEL_METRIC_THREADS] = p[KERNEL_METRIC_BUSY] = presence;
	if (presence_is(presence))
		p[KERNEL_METRIC_BUSY] |= PRESENCE_ESTIMATED;
}

static void set_figure(const struct kernel *kernel, enum kernel_figure figure, enum kernel_metric row,
		       double v[static KERNEL_METRICS], uint8_t p[static KERNEL_METRICS])
{
	if (kernel->figures[figure] < 0)
		return;
	v[row] = (double)kernel->figures[figure];
	p[row] = PRESENCE_PRESENT;
}

/*
 * Adds the launch's dynamic shared memory and the system's own to what the kernel declares; unknown if the
 * launch shapes are not known separately.
 */
static void add_dynamic(const struct traced_kernel *kernel, double *v, uint8_t *p)
{
	double bytes = 0, launches = 0, reserved = (double)kernel->kernel->figures[KERNEL_RESERVED_SHARED];

	for (uint32_t i = 0; i < kernel->shapes_n; i++) {
		bytes += (double)kernel->shapes[i].shared_bytes * (double)kernel->shapes[i].launches;
		launches += (double)kernel->shapes[i].launches;
	}
	if (!presence_is(*p) || launches == 0) {
		*p = PRESENCE_ABSENT;
		return;
	}
	*v += bytes / launches + MAX(reserved, 0.0);
	if (kernel->other_shapes > 0)
		*p |= PRESENCE_ESTIMATED;
}

void kernel_numbers(const struct traced_kernel *kernel, const struct traced_launches *part,
		    double v[static KERNEL_METRICS], uint8_t p[static KERNEL_METRICS])
{
	const struct kernel *k = kernel->kernel;

	launches_numbers(part, kernel->p, v, p);
	if (!k)
		return;
	if (kernel->occupancy_known) {
		v[KERNEL_METRIC_OCCUPANCY] = kernel->occupancy.ratio;
		p[KERNEL_METRIC_OCCUPANCY] = PRESENCE_PRESENT;
	}
	set_figure(k, KERNEL_STATIC_SHARED, KERNEL_METRIC_SHARED, v, p);
	add_dynamic(kernel, &v[KERNEL_METRIC_SHARED], &p[KERNEL_METRIC_SHARED]);
	set_figure(k, KERNEL_CONSTANT, KERNEL_METRIC_CONSTANT, v, p);
	set_figure(k, KERNEL_CODE, KERNEL_METRIC_CODE, v, p);
}
