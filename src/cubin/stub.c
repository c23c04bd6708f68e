// SPDX-License-Identifier: Apache-2.0
#include "cubin/stub.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/macro.h"
#include "cubin/stub_scan.h"

enum {
	NAME_MAX_BYTES = 64 << 10,
	SYMBOL_MAX = ELF_NAME_MAX,
	/*
	 * What may be told of a file, in bytes of names and 64 more for each stub. Names may be suffixes of
	 * others, and a host function has a stub for each of its names with each of its handles: so it grows
	 * with the square of a crafted file.
	 */
	TOLD_STUB = 64,
	TOLD_LEAST = 16 << 20,
	TOLD_TIMES = 4, /* the size of the file */
	/* Bytes of code that are searched, in one pass: sections may lie over one another. */
	SCANNED_LEAST = 64 << 20,
	SCANNED_TIMES = 2,
};
/* The largest known library, of 1 GB, takes 1.6 s. */
#define CPU_LEAST_NS NSEC_PER_SEC
#define CPU_NS_PER_BYTE 10
#define SCANNED_MAX (UINT64_C(1) << 30)
#define SIZE_COUNTED (UINT64_C(4) << 30) /* sparse files can have any size */

static const char twin[] = "__device_stub_";

struct reading {
	struct stub_scan scan;
	struct elf_file *file, *debug;
	stub_fn *fn;
	void *userdata;
	struct hashmap registered; /* host functions */
	struct stub_list unregistered; /* by site */
	struct hashmap unregistered_hosts;
	uint64_t may_tell; /* of TOLD_LEAST and so on */
	char name[NAME_MAX_BYTES];
};

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_host(const void *a, const void *b)
{
	const struct stub_found *x = a, *y = b;

	return x->host != y->host ? compare(x->host, y->host) : compare(x->other, y->other);
}

static int by_site(const void *a, const void *b)
{
	const struct stub_found *x = a, *y = b;

	return compare(x->site, y->site);
}

/* By host, each pair once. */
static void sort(struct stub_list *list)
{
	size_t kept = 0;

	if (list->n == 0)
		return;
	qsort(list->items, list->n, sizeof(*list->items), by_host);
	for (size_t i = 1; i < list->n; i++)
		if (by_host(&list->items[kept], &list->items[i]) != 0)
			list->items[++kept] = list->items[i];
	list->n = kept + 1;
}

/* The first of a host's; NULL. */
static const struct stub_found *stub_of_host(const struct stub_list *list, uint64_t host)
{
	size_t low = LOWER_BOUND(list->n, middle, list->items[middle].host < host);

	return low < list->n && list->items[low].host == host ? &list->items[low] : NULL;
}

static int add_symbol(const struct elf_symbol *symbol, void *userdata)
{
	struct reading *reading = userdata;

	return stub_scan_callee(&reading->scan, symbol->name, symbol->address);
}

static int all_functions(struct reading *reading, elf_symbol_fn *fn)
{
	int r = elf_functions(reading->file, fn, reading);

	if (r == 0 && reading->debug)
		r = elf_functions_of(reading->debug, reading->file, fn, reading);
	return stub_scan_late(&reading->scan, r);
}

static bool knows(const struct stub_scan *scan, enum stub_callee callee)
{
	const struct hashmap *maps[] = { &scan->callees, &scan->words };

	for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
		for (uint32_t k = 0; maps[i]->count > 0 && k <= maps[i]->mask; k++)
			if (maps[i]->slots[k].used && maps[i]->slots[k].value == (uint32_t)callee)
				return true;
	return false;
}

static int note_hosts(const struct stub_list *list, struct hashmap *hosts)
{
	for (size_t i = 0; i < list->n; i++) {
		int r = hashmap_put(hosts, list->items[i].host, 1);

		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * A CUDA file without a name for the registering function: statically linked with the runtime, and stripped.
 */
static int scan_unnamed(struct reading *reading)
{
	struct stub_scan *scan = &reading->scan;
	uint64_t offset, size;
	int r;

	if (knows(scan, STUB_REGISTER) || elf_section(reading->file, ".nvFatBinSegment", &offset, &size) < 0)
		return 0;
	r = stub_scan_unnamed_register(scan);
	if (r == 0)
		r = note_hosts(&scan->found[STUB_REGISTER], &reading->registered);
	if (r == 0 && reading->registered.count > 0 && !knows(scan, STUB_GET_KERNEL))
		r = stub_scan_unnamed_get_kernel(scan, &reading->registered);
	return r;
}

/* Counts handle variables without a known host function. */
static int count_lost(struct stub_scan *scan)
{
	struct hashmap handles = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < scan->found[STUB_GET_KERNEL].n; i++)
		r = hashmap_put(&handles, scan->found[STUB_GET_KERNEL].items[i].other, 1);
	for (size_t i = 0; r == 0 && i < scan->lost.n; i++) {
		if (hashmap_get(&handles, scan->lost.items[i].other, &(uint32_t){ 0 }))
			continue;
		scan->skipped++;
		r = hashmap_put(&handles, scan->lost.items[i].other, 1);
	}
	hashmap_done(&handles);
	return r;
}

static int scan(struct reading *reading)
{
	struct stub_scan *scan = &reading->scan;
	int r = stub_scan_slots(scan);

	if (r == 0)
		r = all_functions(reading, add_symbol);
	if (r == 0)
		r = stub_scan_thunks(scan);
	if (r == 0)
		r = stub_scan_calls(scan);
	if (r == 0)
		r = scan_unnamed(reading);
	for (size_t i = 0; i < STUB_CALLEES; i++)
		sort(&scan->found[i]);
	if (r == 0)
		r = count_lost(scan);
	return r < 0 ? r : note_hosts(&scan->found[STUB_REGISTER], &reading->registered);
}

/* Emits one stub for each variable with its handle, or one. */
static int emit(struct reading *reading, struct stub *stub)
{
	const struct stub_list *handles = &reading->scan.found[STUB_GET_KERNEL];
	const struct stub_found *handle = stub_of_host(handles, stub->address);
	uint64_t cost = TOLD_STUB + strlen(stub->symbol);

	do {
		int r;

		if (cost > reading->may_tell) {
			reading->may_tell = 0;
			reading->scan.skipped++;
			return 0;
		}
		reading->may_tell -= cost;
		stub->handle_address = handle ? handle->other : 0;
		r = reading->fn(stub, reading->userdata);
		if (r != 0)
			return r;
		if (handle && ++handle == handles->items + handles->n)
			handle = NULL;
	} while (handle && handle->host == stub->address);
	return 0;
}

static int emit_registered(struct reading *reading)
{
	const struct stub_list *list = &reading->scan.found[STUB_REGISTER];

	for (size_t i = 0; i < list->n; i++) {
		struct stub stub = { .address = list->items[i].host,
				     .symbol = reading->name,
				     .source = KERNEL_SOURCE_REGISTERED };
		int r = reading->may_tell == 0 ? -E2BIG :
						 stub_scan_name(&reading->scan, list->items[i].other,
								reading->name, sizeof(reading->name));

		/* It took as long to read. */
		if (r == -E2BIG)
			reading->may_tell -= MIN((uint64_t)sizeof(reading->name), reading->may_tell);
		if (r == -ENOENT || r == -E2BIG) {
			reading->scan.skipped++;
			continue;
		}
		if (r == 0)
			r = emit(reading, &stub);
		if (r != 0)
			return r;
	}
	return 0;
}

/* Host functions that are launched and that no code was seen to register. */
static int note_unregistered(struct reading *reading)
{
	static const enum stub_callee from[] = { STUB_GET_KERNEL, STUB_LAUNCH, STUB_LAUNCH_EX };
	struct stub_list *list = &reading->unregistered;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(from); i++)
		n += reading->scan.found[from[i]].n;
	list->items = n > 0 ? calloc(n, sizeof(*list->items)) : NULL;
	if (n > 0 && !list->items)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(from); i++) {
		const struct stub_list *found = &reading->scan.found[from[i]];

		for (size_t k = 0; k < found->n; k++)
			if (!hashmap_get(&reading->registered, found->items[k].host, &(uint32_t){ 0 }))
				list->items[list->n++] = found->items[k];
	}
	if (list->n > 0)
		qsort(list->items, list->n, sizeof(*list->items), by_site);
	return note_hosts(list, &reading->unregistered_hosts);
}

/*
 * The kernel's name in the symbol of the function that launches it: nvcc's is called __device_stub_ and all
 * of the kernel's symbol, mangled once more; clang's __device_stub__ and the kernel's name, before mangling.
 * NULL: not such a symbol.
 */
static const char *name_in_twin(const char *symbol, char buf[static SYMBOL_MAX + 1])
{
	const char *at = strstr(symbol, twin), *digits = at, *rest;
	size_t n, length = 0;

	if (!at)
		return NULL;
	while (digits > symbol && digits[-1] >= '0' && digits[-1] <= '9')
		digits--;
	rest = at + strlen(twin);
	if (digits == at) /* not mangled */
		return at == symbol && rest[0] == '_' ? strcpy(buf, rest + 1) : NULL;
	for (const char *p = digits; p < at && length <= SYMBOL_MAX; p++)
		length = length * 10 + (size_t)(*p - '0');
	if (length <= strlen(twin) + 1 || length > strlen(at))
		return NULL;
	n = length - strlen(twin);
	if (rest[0] == '_' && rest[1] == 'Z') {
		memcpy(buf, rest, n);
		buf[n] = '\0';
		return buf;
	}
	/* Shorter than the symbol, and so than the buffer. */
	snprintf(buf, SYMBOL_MAX + 1, "%.*s%zu%s", (int)(digits - symbol), symbol, n - 1, rest + 1);
	return buf;
}

/* The first call in a function whose host function is not registered. */
static const struct stub_found *site_in(const struct stub_list *list, const struct elf_symbol *symbol)
{
	size_t low = LOWER_BOUND(list->n, middle, list->items[middle].site < symbol->address);

	return low < list->n && list->items[low].site - symbol->address < symbol->size ? &list->items[low] :
											 NULL;
}

static int emit_symbol(const struct elf_symbol *symbol, void *userdata)
{
	struct reading *reading = userdata;
	struct stub stub = { .address = symbol->address,
			     .size = symbol->size,
			     .symbol = symbol->name,
			     .source = KERNEL_SOURCE_SYMBOL };
	const struct stub_found *site;
	int r = 0;

	if (strstr(symbol->name, twin)) {
		stub.symbol = name_in_twin(symbol->name, reading->name);
		site = site_in(&reading->unregistered, symbol);
		if (!stub.symbol || !site)
			return 0;
		if (site->host != symbol->address) {
			stub.address = site->host;
			stub.size = 0;
		}
		return emit(reading, &stub);
	}
	if (hashmap_get(&reading->unregistered_hosts, symbol->address, &(uint32_t){ 0 }))
		r = emit(reading, &stub);
	return r;
}

static void set_bounds(struct reading *reading, int fd, struct elf_file *file, struct elf_file *debug)
{
	struct stat st = { 0 };
	uint64_t size = fstat(fd, &st) == 0 ? MIN((uint64_t)st.st_size, SIZE_COUNTED) : 0;

	reading->may_tell = TOLD_LEAST + size * TOLD_TIMES;
	reading->scan.scanned_max = MIN(SCANNED_LEAST + size * SCANNED_TIMES, SCANNED_MAX);
	reading->scan.cpu_end_ns = clock_thread_cpu_ns() + CPU_LEAST_NS + (int64_t)size * CPU_NS_PER_BYTE;
	elf_limit_cpu(file, reading->scan.cpu_end_ns);
	if (debug)
		elf_limit_cpu(debug, reading->scan.cpu_end_ns);
}

static int read_all(struct reading *reading, struct elf_file *file, struct elf_file *debug)
{
	int r;

	reading->file = reading->scan.file = file;
	reading->scan.only = STUB_CALLEES;
	reading->debug = debug;
	reading->scan.machine = elf_machine(file) == stub_x86.elf_machine   ? &stub_x86 :
				elf_machine(file) == stub_arm64.elf_machine ? &stub_arm64 :
									      NULL;
	if (!reading->scan.machine)
		return -ENOEXEC;
	if (reading->scan.machine->decoder_new) {
		r = reading->scan.machine->decoder_new(&reading->scan.decoder);
		if (r < 0)
			return r;
	}
	r = scan(reading);
	if (r == 0)
		r = emit_registered(reading);
	if (r == 0)
		r = note_unregistered(reading);
	if (r == 0 && reading->unregistered.n > 0)
		r = all_functions(reading, emit_symbol);
	return r;
}

static void reading_free(struct reading *reading)
{
	stub_scan_done(&reading->scan);
	hashmap_done(&reading->registered);
	hashmap_done(&reading->unregistered_hosts);
	free(reading->unregistered.items);
	free(reading);
}
DEFINE_CLEANUP(struct reading *, reading_free, reading_freep)

int stubs_read(int fd, int debug_fd, stub_fn *fn, void *userdata, uint64_t *ret_skipped)
{
	_cleanup_(reading_freep) struct reading *reading = NULL;
	_cleanup_(elf_closep) struct elf_file *file = NULL, *debug = NULL;
	int r = elf_open(fd, &file);

	if (r < 0)
		return r;
	/* An invalid debug file is ignored. */
	if (debug_fd >= 0 && elf_open(debug_fd, &debug) == -ENOMEM)
		return -ENOMEM;
	reading = calloc(1, sizeof(*reading));
	if (!reading)
		return -ENOMEM;
	reading->fn = fn;
	reading->userdata = userdata;
	set_bounds(reading, fd, file, debug);
	r = read_all(reading, file, debug);
	if (r >= 0)
		*ret_skipped = reading->scan.skipped;
	return r;
}
