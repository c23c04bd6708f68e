// SPDX-License-Identifier: Apache-2.0
/*
 * Kernels shared by processes. Unreferenced ones are removed when there are twice as many as were in use.
 */
#include "symbolize/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"

enum { SWEEP_MIN = 1024 };

struct kernels {
	struct kernel **list;
	uint32_t n, cap, sweep_at;
	struct hashmap by_hash; /* to the index of the first with that hash */
};

int kernels_new(struct kernels **ret_kernels)
{
	struct kernels *kernels = calloc(1, sizeof(*kernels));

	if (!kernels)
		return -ENOMEM;
	kernels->sweep_at = SWEEP_MIN;
	*ret_kernels = kernels;
	return 0;
}

void kernels_free(struct kernels *kernels)
{
	if (!kernels)
		return;
	for (uint32_t i = 0; i < kernels->n; i++)
		kernel_unref(kernels->list[i]);
	free(kernels->list);
	hashmap_done(&kernels->by_hash);
	free(kernels);
}

static uint64_t hash_of(const struct kernel *kernel)
{
	uint64_t parts[] = {
		hash_bytes(kernel->symbol, strlen(kernel->symbol)),
		hash_bytes(kernel->file, strlen(kernel->file)),
		hash_bytes(kernel->figures, sizeof(kernel->figures)),
		kernel->offset,
		((uint64_t)kernel->source << 40) | ((uint64_t)kernel->arch.sm << 16) |
			((uint64_t)(unsigned char)kernel->arch.variant << 8) | kernel->jit,
	};

	return hash_bytes(parts, sizeof(parts));
}

static bool same(const struct kernel *a, const struct kernel *b)
{
	return a->source == b->source && a->offset == b->offset && a->arch.sm == b->arch.sm &&
	       a->arch.variant == b->arch.variant && a->jit == b->jit &&
	       memcmp(a->figures, b->figures, sizeof(a->figures)) == 0 && strcmp(a->symbol, b->symbol) == 0 &&
	       strcmp(a->file, b->file) == 0;
}

uint32_t kernels_count(const struct kernels *kernels)
{
	return kernels->n;
}

static void sweep(struct kernels *kernels)
{
	uint32_t n = 0;

	hashmap_clear(&kernels->by_hash);
	for (uint32_t i = 0; i < kernels->n; i++) {
		struct kernel *kernel = kernels->list[i];

		if (atomic_load_explicit(&kernel->refs, memory_order_acquire) == 1) {
			kernel_unref(kernel);
			continue;
		}
		kernels->list[n] = kernel;
		hashmap_put(&kernels->by_hash, hash_of(kernel), n++);
	}
	kernels->n = n;
	kernels->sweep_at = MAX(n * 2, (uint32_t)SWEEP_MIN);
}

int kernels_intern(struct kernels *kernels, const struct kernel *from, struct kernel **ret_kernel)
{
	uint64_t hash = hash_of(from);
	struct kernel *made;
	uint32_t at;
	int r;

	if (hashmap_get(&kernels->by_hash, hash, &at) && same(kernels->list[at], from)) {
		*ret_kernel = kernel_ref(kernels->list[at]);
		return 0;
	}
	r = kernel_new(from, &made);
	if (r < 0)
		return r;
	if (kernels->n >= kernels->sweep_at)
		sweep(kernels);
	if (kernels->n == kernels->cap) {
		uint32_t cap = kernels->cap ? kernels->cap * 2 : 64;
		struct kernel **list = reallocarray(kernels->list, cap, sizeof(struct kernel *));

		if (list) {
			kernels->list = list;
			kernels->cap = cap;
		}
	}
	/* If it cannot be shared, it is returned nevertheless. */
	if (kernels->n < kernels->cap && hashmap_put(&kernels->by_hash, hash, kernels->n) == 0)
		kernels->list[kernels->n++] = kernel_ref(made);
	*ret_kernel = made;
	return 0;
}
