// SPDX-License-Identifier: Apache-2.0
#include "symbolize/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

/* Level 1 packs a library's names to a twentieth; higher ones gain a few percent more. */
enum {
	BLOCK = 64 << 10,
	LEVEL = 1,
	REFS_MAX = 1 << 30,
	PACKED_MAX = 32 << 20, /* names that do not pack are made up; PyTorch's take 1 MiB */
};

struct block {
	uint32_t first; /* ref of its first byte */
	uint32_t n; /* unpacked */
	uint32_t packed_n;
	uint8_t *packed;
};

struct names {
	struct block *blocks;
	uint32_t blocks_n, blocks_cap;
	char *open; /* of BLOCK bytes, while adding */
	uint32_t open_n;
	uint32_t sealed; /* ref that open begins with */
	ZSTD_CCtx *context;
	uint64_t packed_bytes;
};

static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Two independent multiplicative hashes (constants: digits of pi), 8 bytes at a time. */
struct symbol_key symbol_key(const char *symbol, size_t n)
{
	uint64_t a = UINT64_C(0x243f6a8885a308d3) ^ n, b = UINT64_C(0x13198a2e03707344) + n;

	for (size_t at = 0; at < n; at += 8) {
		uint64_t word = 0;

		memcpy(&word, symbol + at, MIN(n - at, (size_t)8));
		a = fold(a ^ word, UINT64_C(0xa4093822299f31d1));
		b = fold(b + word, UINT64_C(0x082efa98ec4e6c89)) + a;
	}
	return (struct symbol_key){ .hash = fold(a, UINT64_C(0x452821e638d01377) ^ n),
				    .check = (uint32_t)(fold(b, UINT64_C(0xbe5466cf34e90c6d)) >> 32) };
}

int names_new(struct names **ret_names)
{
	_cleanup_(names_freep) struct names *names = calloc(1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	names->open = malloc(BLOCK);
	names->context = ZSTD_createCCtx();
	if (!names->open || !names->context)
		return -ENOMEM;
	*ret_names = TAKE_PTR(names);
	return 0;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	for (uint32_t i = 0; i < names->blocks_n; i++)
		free(names->blocks[i].packed);
	free(names->blocks);
	free(names->open);
	ZSTD_freeCCtx(names->context);
	free(names);
}

static struct block *new_block(struct names *names)
{
	struct block *blocks;

	if (names->blocks_n == names->blocks_cap) {
		uint32_t cap = names->blocks_cap ? names->blocks_cap * 2 : 16;

		blocks = reallocarray(names->blocks, cap, sizeof(*blocks));
		if (!blocks)
			return NULL;
		names->blocks = blocks;
		names->blocks_cap = cap;
	}
	return &names->blocks[names->blocks_n];
}

static int close_block(struct names *names)
{
	size_t bound = ZSTD_compressBound(names->open_n), n;
	struct block *block = new_block(names);
	_cleanup_free_ uint8_t *packed = malloc(bound);
	uint8_t *fitting;

	if (names->open_n == 0)
		return 0;
	if (!block || !packed)
		return -ENOMEM;
	n = ZSTD_compressCCtx(names->context, packed, bound, names->open, names->open_n, LEVEL);
	if (ZSTD_isError(n))
		return -ENOMEM;
	fitting = malloc(n);
	if (!fitting)
		return -ENOMEM;
	memcpy(fitting, packed, n);
	*block = (struct block){ names->sealed, names->open_n, (uint32_t)n, fitting };
	names->blocks_n++;
	names->packed_bytes += n;
	names->sealed += names->open_n;
	names->open_n = 0;
	return 0;
}

int names_add(struct names *names, const char *text, size_t n, uint32_t *ret_ref)
{
	int r;

	if (n > SYMBOL_MAX || names->sealed > REFS_MAX || names->packed_bytes > PACKED_MAX)
		return -E2BIG;
	if (n + 1 > BLOCK - names->open_n) {
		r = close_block(names);
		if (r < 0)
			return r;
	}
	*ret_ref = names->sealed + names->open_n;
	memcpy(names->open + names->open_n, text, n);
	names->open[names->open_n + n] = '\0';
	names->open_n += (uint32_t)n + 1;
	return 0;
}

int names_seal(struct names *names)
{
	int r = close_block(names);

	if (r < 0)
		return r;
	free(TAKE_PTR(names->open));
	ZSTD_freeCCtx(TAKE_PTR(names->context));
	return 0;
}

static const struct block *block_of(const struct names *names, uint32_t ref)
{
	uint32_t low = LOWER_BOUND(names->blocks_n, middle, names->blocks[middle].first <= ref);

	return low > 0 ? &names->blocks[low - 1] : NULL;
}

int names_get(const struct names *names, uint32_t ref, char **ret_text)
{
	const struct block *block = block_of(names, ref);
	_cleanup_free_ char *open = NULL;
	size_t n;

	if (!block || ref - block->first >= block->n)
		return -EBADMSG;
	open = malloc(block->n);
	if (!open)
		return -ENOMEM;
	n = ZSTD_decompress(open, block->n, block->packed, block->packed_n);
	if (ZSTD_isError(n))
		return ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation ? -ENOMEM : -EBADMSG;
	*ret_text = strdup(open + (ref - block->first));
	return *ret_text ? 0 : -ENOMEM;
}

uint64_t names_bytes(const struct names *names)
{
	return sizeof(*names) + names->blocks_cap * sizeof(struct block) + names->packed_bytes;
}
