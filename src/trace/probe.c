// SPDX-License-Identifier: Apache-2.0
#include "trace/probe.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/macro.h"
#include "trace/pattern.h"

#define ADDR(...) .operands[TRACE_OPERAND_ADDR] = __VA_ARGS__
#define SIZE(...) .operands[TRACE_OPERAND_SIZE] = __VA_ARGS__
#define TIMES(...) .operands[TRACE_OPERAND_TIMES] = __VA_ARGS__
#define STREAM(...) .operands[TRACE_OPERAND_STREAM] = __VA_ARGS__
#define HANDLE(...) .operands[TRACE_OPERAND_HANDLE] = __VA_ARGS__
#define KIND(...) .operands[TRACE_OPERAND_KIND] = __VA_ARGS__
#define SHAPE(name) .shape = TRACE_SHAPE_##name
#define RESULT(name) .result = TRACE_RESULT_##name

#define OPERAND(from_, arg_, width_, value_)                                              \
	{                                                                                 \
		.from = TRACE_FROM_##from_, .arg = arg_, .width = width_, .value = value_ \
	}
#define CONST(value) OPERAND(CONST, 0, 4, value)
#define ARG(n) OPERAND(ARG, n, 8, 0)
#define ARG4(n) OPERAND(ARG, n, 4, 0)
#define ARG_OF(n, bytes) OPERAND(ARG, n, 8, bytes) /* a number of elements of this many bytes */
#define IN(n, offset) OPERAND(IN, n, 8, offset)
#define IN4(n, offset) OPERAND(IN, n, 4, offset)
#define OUT(n) OPERAND(OUT, n, 8, 0)
#define OUT4(n) OPERAND(OUT, n, 4, 0)
#define OUT_AT(n, offset) OPERAND(OUT, n, 8, offset)
#define DIGEST(n, bytes) OPERAND(DIGEST_IN, n, bytes, 0)
#define DIGEST_OUT(n, bytes) OPERAND(DIGEST_OUT, n, bytes, 0)
#define DIGEST_MADE(n, bytes) OPERAND(DIGEST_MADE, n, bytes, 0)

/* CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER in cuda.h: memory types, width in bytes, height, depth. */
#define COPY_2D                                                                    \
	HANDLE(IN4(0, 16)), ADDR(IN4(0, 72)), SIZE(IN(0, 112)), TIMES(IN(0, 120)), \
		KIND(CONST(TRACE_COPY_DEFAULT))
#define COPY_3D HANDLE(IN4(0, 32)), ADDR(IN4(0, 120)), SIZE(IN(0, 176)), TIMES(IN(0, 184)), .depth_in = 192
/* cudaMemcpy3DParms, cudaMemcpy3DPeerParms in driver_types.h: offsets of the arrays and the extent. */
#define RUNTIME_3D(from, to, extent)                                              \
	SHAPE(ARRAYS), HANDLE(IN(0, from)), ADDR(IN(0, to)), SIZE(IN(0, extent)), \
		TIMES(IN(0, (extent) + 8)), .depth_in = (extent) + 16

/*
 * Multiplications of cuBLAS, and their twins with 64-bit sizes: m, n, k are arguments 3 to 5. @batch: 1, or
 * an argument; the rest: KIND(...).
 */
#define GEMM_ROW(symbol, arg, batch, ...)                                                               \
	ROW(CUBLAS, symbol, CALLS, BLAS_GEMM, TRACE_SPEC_EVENT | TRACE_SPEC_SKIP_BYTES, 0, SHAPE(GEMM), \
	    HANDLE(ARG(0)), ADDR(arg(3)), OTHER(arg(4)), STREAM(arg(5)), SIZE(batch), ##__VA_ARGS__)
#define GEMM(symbol, ...)                                             \
	GEMM_ROW(#symbol, ARG4, OPERAND(CONST, 0, 4, 1), __VA_ARGS__) \
	GEMM_ROW(#symbol "_64", ARG, OPERAND(CONST, 0, 4, 1), __VA_ARGS__)
#define GEMM_BATCHED(symbol, batch, ...)                  \
	GEMM_ROW(#symbol, ARG4, ARG4(batch), __VA_ARGS__) \
	GEMM_ROW(#symbol "_64", ARG, ARG(batch), __VA_ARGS__)
/* Where the types are: of A, B, C and of computing; 0: there is none. */
#define TYPES_AT(a, b, c, compute) KIND(OPERAND(ARG, a, 4, TRACE_GEMM_WHERE(b, c, compute)))
/* enum cudaDataType_t of A, B and C, and enum cublasComputeType_t. */
#define TYPES(type, compute) KIND(CONST(TRACE_GEMM_TYPES(type, type, type, compute)))
#define TYPES_S TYPES(0, 0)
#define TYPES_D TYPES(1, 70)
#define TYPES_C TYPES(4, 0)
#define TYPES_Z TYPES(5, 70)
#define TYPES_H TYPES(2, 64)
/*
 * Bytes of struct cublasLtMatrixLayoutOpaque_t that 11 to 13 allocate, not all that the header has; and of a
 * descriptor's its first ones.
 */
#define LAYOUT_BYTES 56
#define DESC_BYTES 16

/* The pitch that the driver chose, times the extent's height and depth. */
#define MALLOC_3D SHAPE(EXTENT), ADDR(OUT(0)), SIZE(OUT_AT(0, 8))
/*
 * Structures by value: on x86-64 they are on the stack from the first slot on, which is argument 6, and use
 * no register; on arm64 the register has their address. cudaExtent is width, height, depth; cudaPitchedPtr is
 * ptr, pitch, xsize, ysize.
 */
#if defined(__aarch64__)
#define MEMSET_3D ADDR(IN(0, 0)), SIZE(IN(2, 0)), TIMES(IN(2, 8)), .depth_in = 16
#define MEMSET_3D_STREAM STREAM(ARG(3))
#else
#define MEMSET_3D ADDR(ARG(6)), SIZE(ARG(10)), TIMES(ARG(11)), .depth_in = 12
#define MEMSET_3D_STREAM STREAM(ARG(1))
#endif

/* NCCL: a number of elements and their type; a number that is no factor; rank and ID by value (as above). */
#define OTHER(...) .operands[TRACE_OPERAND_TIMES] = __VA_ARGS__
#define ELEMENTS(count, type) SHAPE(ELEMENTS), SIZE(ARG(count)), KIND(ARG4(type))
#if defined(__aarch64__)
#define NCCL_RANK_AND_ID SHAPE(UNIQUE_ID), ADDR(ARG(2)), OTHER(ARG4(3))
#else
#define NCCL_RANK_AND_ID SHAPE(UNIQUE_ID), OTHER(ARG4(2))
#endif

/* may_return: all are extern "C" and throw nothing; not used with ENTRY. */
#define ROW(library_, symbol_, group_, op_, spec_flags_, event_flags_, ...) \
	{                                                                   \
		.symbol = symbol_,                                          \
		.library = PROBE_##library_,                                \
		.group = PROBE_GROUP_##group_,                              \
		.may_return = !((event_flags_)&TRACE_FLAG_NO_RESULT),       \
		.spec = { .op = TRACE_OP_##op_,                             \
			  .flags = spec_flags_,                             \
			  .event_flags = event_flags_,                      \
			  ##__VA_ARGS__ },                                  \
	},
#define VARIANTS(suffix, library, symbol, group, op, spec_flags, event_flags, ...)                 \
	ROW(library, #symbol, group, op, spec_flags, event_flags, ##__VA_ARGS__)                   \
	ROW(library, #symbol suffix, group, op, spec_flags, (event_flags) | TRACE_FLAG_PER_THREAD, \
	    ##__VA_ARGS__)
#define PROBE(library, symbol, group, op, ...) \
	ROW(library, #symbol, group, op, TRACE_SPEC_EVENT, 0, ##__VA_ARGS__)
#define PROBE_PTSZ(library, symbol, group, op, ...) \
	VARIANTS("_ptsz", library, symbol, group, op, TRACE_SPEC_EVENT, 0, ##__VA_ARGS__)
#define PROBE_PTDS(library, symbol, group, op, ...) \
	VARIANTS("_ptds", library, symbol, group, op, TRACE_SPEC_EVENT, 0, ##__VA_ARGS__)
#define WAITS_PTDS(library, symbol, group, op, ...) \
	VARIANTS("_ptds", library, symbol, group, op, TRACE_SPEC_EVENT, TRACE_FLAG_WAITS, ##__VA_ARGS__)
#define ALWAYS(library, symbol, group, op, ...) \
	ROW(library, #symbol, group, op, TRACE_SPEC_EVENT | TRACE_SPEC_ALWAYS, 0, ##__VA_ARGS__)
#define ENTRY(library, symbol, group, op, ...) \
	ROW(library, #symbol, group, op, TRACE_SPEC_EVENT, TRACE_FLAG_NO_RESULT, ##__VA_ARGS__)
#define NO_BYTES(library, symbol, group, op, ...) \
	ROW(library, #symbol, group, op, TRACE_SPEC_EVENT | TRACE_SPEC_SKIP_BYTES, 0, ##__VA_ARGS__)
#define COUNT(library, symbol, group, op, ...) ROW(library, #symbol, group, op, 0, 0, ##__VA_ARGS__)
#define COUNT_PTSZ(library, symbol, group, op, ...) \
	VARIANTS("_ptsz", library, symbol, group, op, 0, 0, ##__VA_ARGS__)

const struct probe probes[] = {
#define LIBRARY(...)
#define LIBRARY_PROBES
#include "trace/libraries.def"
};
const uint16_t probes_n = ARRAY_SIZE(probes);
_Static_assert(ARRAY_SIZE(probes) + PATTERN_ROWS_MAX < TRACE_CALLS_MAX,
	       "there is room for rows of all kinds");

struct trace_spec probe_spec(const struct probe *probe)
{
	const struct library *library = &probe_libraries[probe->library];
	struct trace_spec spec = probe->spec;

	spec.layer = library->layer & TRACE_LAYER_BITS;
	if (probe->user && !probe->may_return)
		spec.layer = TRACE_LAYER_USER_ENTRY;
	if (spec.result == TRACE_RESULT_OF_LIBRARY)
		spec.result = library->result & TRACE_RESULT_BITS;
	spec.event_flags |= library->event_flags;
	return spec;
}

/* ---- rows that are added: of the user's probes, and of functions that patterns find ---- */

/* Rows of one kind. */
struct added {
	uint16_t n;
	uint16_t of_users; /* for files that users can write */
};

static struct {
	struct probe *rows[TRACE_CALLS_MAX]; /* from probes_n on */
	struct hashmap by_name; /* key_of_added(): call */
	uint64_t secret;
	uint16_t n;
	struct added user, patterns;
} added_rows;

bool probe_user_is_found(unsigned user)
{
	for (uint16_t i = 0; i < added_rows.n; i++)
		if (added_rows.rows[i]->user == user + 1)
			return true;
	return false;
}

/* What a row is of. */
struct added_name {
	uint64_t secret, user, pattern;
	char symbol[USER_SYMBOL_MAX];
};

/* With a secret, so that nobody can name a function such that another one's name is taken. */
static uint64_t key_of_added(unsigned user, unsigned pattern, const char *symbol)
{
	struct added_name name = { .user = user, .pattern = pattern };
	size_t n = strnlen(symbol, sizeof(name.symbol));

	if (!added_rows.secret && getrandom(&added_rows.secret, sizeof(added_rows.secret), GRND_NONBLOCK) < 0)
		added_rows.secret = (uint64_t)clock_mono_ns();
	name.secret = added_rows.secret;
	memcpy(name.symbol, symbol, n);
	return hash_bytes(&name, offsetof(typeof(name), symbol) + n);
}

uint16_t probe_calls(void)
{
	return (uint16_t)(probes_n + added_rows.n);
}

uint16_t probe_calls_max(void)
{
	return library_user()->n || library_patterns() ? TRACE_CALLS_MAX : probes_n;
}

const struct probe *probe_at(uint16_t call)
{
	return call < probes_n ? &probes[call] : added_rows.rows[call - probes_n];
}

bool probe_symbol_may_throw(const char *symbol)
{
	return symbol[0] == '_' && (symbol[1] == 'Z' || symbol[1] == 'R');
}

/* struct trace_name has one text and two numbers, struct trace_call four. */
enum trace_operand_index probe_user_operand(const struct user_probe *user, unsigned arg)
{
	static const enum trace_operand_index numbers[USER_ARGS_MAX] = {
		TRACE_OPERAND_HANDLE, TRACE_OPERAND_STREAM, TRACE_OPERAND_ADDR, TRACE_OPERAND_SIZE
	};
	unsigned before = 0;

	if (user->args[arg].type == USER_ARG_STRING)
		return TRACE_OPERAND_ADDR;
	for (unsigned i = 0; i < arg; i++)
		before += user->args[i].type != USER_ARG_STRING;
	return numbers[before];
}

static struct trace_spec user_spec(const struct user_probe *user)
{
	static const enum trace_result result_of[] = {
		[USER_RESULT_NONE] = TRACE_RESULT_NONE,
		[USER_RESULT_STATUS] = TRACE_RESULT_INT,
		[USER_RESULT_POINTER] = TRACE_RESULT_POINTER,
	};
	struct trace_spec spec = { .op = TRACE_OP_NONE,
				   .flags = TRACE_SPEC_SKIP_BYTES | TRACE_SPEC_EACH,
				   .result = result_of[user->result] & TRACE_RESULT_BITS };

	for (unsigned i = 0; i < user->args_n; i++) {
		enum user_arg_type type = user->args[i].type;

		spec.operands[probe_user_operand(user, i)] =
			(struct trace_operand){ .from = TRACE_FROM_ARG,
						.arg = user->args[i].position,
						.width = (uint8_t)user_arg_width(type) };
		spec.flags |= TRACE_SPEC_EVENT;
		if (type == USER_ARG_STRING)
			spec.shape = TRACE_SHAPE_STRING;
	}
	return spec;
}

/* The first functions that are found in files of each kind have series; others are summed up. */
enum { SERIES_OF_ROOT = 768, SERIES_OF_USERS = 256 };

/* Files of users make at most half of the rows, so that root's find some. */
static bool has_room(const struct added *added, bool of_users, uint16_t room)
{
	return added->n < room && !(of_users && added->of_users >= room / 2);
}

/* Adds a row, of which all but its name, its call and its file is told. */
static int row_add(struct added *added, const struct probe *made, bool of_users, uint64_t key,
		   uint16_t *ret_call)
{
	_cleanup_free_ char *copy = strdup(made->symbol);
	struct probe *row = copy ? malloc(sizeof(*row)) : NULL;
	int r = row ? hashmap_put(&added_rows.by_name, key, probe_calls()) : -ENOMEM;

	if (r < 0) {
		free(row);
		return r;
	}
	*row = *made;
	row->symbol = TAKE_PTR(copy);
	row->added_call = probe_calls();
	row->of_users = of_users;
	*ret_call = row->added_call;
	added_rows.rows[added_rows.n++] = row;
	added->n++;
	added->of_users += of_users;
	return 0;
}

/* 1: it is there; 0: it is not; -ENOSPC: of two names with one hash the second has no row. */
static int row_find(const struct probe *made, uint64_t key, uint16_t *ret_call)
{
	const struct probe *row;
	uint32_t call;

	if (!hashmap_get(&added_rows.by_name, key, &call))
		return 0;
	row = probe_at((uint16_t)call);
	if (row->user != made->user || row->pattern != made->pattern || !STRV_EQ(row->symbol, made->symbol))
		return -ENOSPC;
	*ret_call = (uint16_t)call;
	return 1;
}

int probe_of_user(unsigned user, const char *symbol, bool of_users, uint16_t *ret_call)
{
	const struct user_probe *of = &library_user()->at[user];
	struct added *added = &added_rows.user;
	const struct probe row = { .symbol = symbol,
				   .library = PROBE_USER,
				   .group = PROBE_GROUP_USER,
				   .may_return = of->returns && !probe_symbol_may_throw(symbol),
				   .user = (uint8_t)(user + 1),
				   .has_series = of_users ? added->of_users < SERIES_OF_USERS :
							    added->n - added->of_users < SERIES_OF_ROOT,
				   .spec = user_spec(of) };
	uint64_t key = key_of_added(row.user, 0, symbol);
	int r = row_find(&row, key, ret_call);

	if (r != 0)
		return MIN(r, 0);
	if (!has_room(added, of_users, (uint16_t)(TRACE_CALLS_MAX - PATTERN_ROWS_MAX - probes_n)))
		return -ENOSPC;
	return row_add(added, &row, of_users, key, ret_call);
}

int probe_of_pattern(uint8_t pattern, const char *symbol, bool of_users, uint16_t *ret_call)
{
	const struct pattern *of = &patterns[pattern - 1];
	const struct probe row = { .symbol = symbol,
				   .library = of->library,
				   .group = PROBE_GROUP_OPERATORS,
				   .pattern = pattern,
				   .spec = of->spec };
	uint64_t key = key_of_added(0, pattern, symbol);
	int r = row_find(&row, key, ret_call);

	if (r != 0)
		return MIN(r, 0);
	if (!has_room(&added_rows.patterns, of_users, PATTERN_ROWS_MAX))
		return -ENOSPC;
	return row_add(&added_rows.patterns, &row, of_users, key, ret_call);
}

/*
 * Rows are ordered by topic, so this is an index by name: names are looked up for each symbol of a file,
 * perhaps 100,000s.
 */
static uint16_t by_name[ARRAY_SIZE(probes)];
static pthread_once_t sorted = PTHREAD_ONCE_INIT;

static int order(const struct probe *probe, enum probe_library library, const char *symbol)
{
	if (probe->library != library)
		return probe->library < library ? -1 : 1;
	return strcmp(probe->symbol, symbol);
}

static int compare_rows(const void *a, const void *b)
{
	const struct probe *other = &probes[*(const uint16_t *)b];

	return order(&probes[*(const uint16_t *)a], other->library, other->symbol);
}

static void sort_rows(void)
{
	for (uint16_t i = 0; i < probes_n; i++)
		by_name[i] = i;
	qsort(by_name, probes_n, sizeof(by_name[0]), compare_rows);
}

const struct probe *probe_find(enum probe_library library, const char *symbol)
{
	size_t low = 0, high = probes_n;

	pthread_once(&sorted, sort_rows);
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int c = order(&probes[by_name[middle]], library, symbol);

		if (c == 0)
			return &probes[by_name[middle]];
		if (c < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* NAME, NAME_v2, NAME_v2_ptsz, ... */
struct version {
	size_t base_n; /* of NAME */
	unsigned number; /* 1 if it has none */
	bool variant;
};

static struct version version_of(const char *symbol)
{
	struct version version = { .base_n = strlen(symbol), .number = 1 };
	size_t n = version.base_n, digits = 0;

	if (n > 5 && (memcmp(symbol + n - 5, "_ptsz", 5) == 0 || memcmp(symbol + n - 5, "_ptds", 5) == 0)) {
		version.variant = true;
		n -= 5;
	}
	while (digits < n && symbol[n - 1 - digits] >= '0' && symbol[n - 1 - digits] <= '9')
		digits++;
	version.base_n = n;
	if (digits > 0 && digits < 9 && n > digits + 2 && memcmp(symbol + n - digits - 2, "_v", 2) == 0) {
		version.number = (unsigned)strtoul(symbol + n - digits, NULL, 10);
		version.base_n = n - digits - 2;
	}
	return version;
}

/* The first row, by name, that is not less than the first @n bytes of @text. */
static size_t first_row(enum probe_library library, const char *text, size_t n)
{
	size_t low = 0, high = probes_n;

	pthread_once(&sorted, sort_rows);
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct probe *probe = &probes[by_name[middle]];

		if (probe->library < library ||
		    (probe->library == library && strncmp(probe->symbol, text, n) < 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct probe *probe_of_newer(enum probe_library library, const char *symbol)
{
	struct version version = version_of(symbol), newest = { .number = 0 };
	const struct probe *found = NULL;

	for (size_t i = first_row(library, symbol, version.base_n); i < probes_n; i++) {
		const struct probe *probe = &probes[by_name[i]];
		struct version known = version_of(probe->symbol);

		if (probe->library != library || strncmp(probe->symbol, symbol, version.base_n) != 0)
			break;
		if (known.base_n != version.base_n || known.number < newest.number)
			continue;
		if (strcmp(probe->symbol, symbol) == 0)
			return NULL;
		newest = known;
		found = probe;
	}
	return found && (version.number > newest.number ||
			 (version.number == newest.number && version.variant)) ?
		       found :
		       NULL;
}

const char *probe_group_name(enum probe_group group)
{
	static const char *const names[PROBE_GROUPS] = {
		[PROBE_GROUP_SETUP] = "setup", [PROBE_GROUP_MEMORY] = "memory",
		[PROBE_GROUP_SYNC] = "sync",   [PROBE_GROUP_COPY] = "copy",
		[PROBE_GROUP_EVENT] = "event", [PROBE_GROUP_LAUNCH] = "launch",
		[PROBE_GROUP_CALLS] = "calls", [PROBE_GROUP_OPERATORS] = "operators",
		[PROBE_GROUP_USER] = "user",
	};

	return (unsigned)group < PROBE_GROUPS ? names[group] : "";
}
