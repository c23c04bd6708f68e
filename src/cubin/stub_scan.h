// SPDX-License-Identifier: Apache-2.0
/*
 * One file's calls of the CUDA runtime, as far as their arguments are constants: the input of stub.c.
 */
#pragma once

#include "base/hashmap.h"
#include "cubin/stub_code.h"
#include "elf/elf.h"

enum {
	STUB_CALLEES_MAX = 1024, /* places that calls of the functions wanted go to */
	STUB_FOUND_MAX = 1 << 18, /* of each kind */
	STUB_SLOTS_MAX = 1 << 20,
};

enum stub_callee {
	STUB_REGISTER, /* __cudaRegisterFunction(…, host function, name, name, …) */
	STUB_GET_KERNEL, /* __cudaGetKernel(&handle, host function) */
	STUB_LAUNCH, /* cudaLaunchKernel(host function, …) */
	STUB_LAUNCH_EX, /* cudaLaunchKernelExC(…, host function, …) */
	STUB_CALLEES
};

struct stub_found {
	uint64_t host;
	uint64_t other; /* the name's address; the handle variable's */
	uint64_t site; /* of the call */
	uint64_t callee;
};

struct stub_list {
	struct stub_found *items;
	size_t n, room;
};

struct stub_slot {
	uint64_t address, value;
};

struct stub_scan {
	struct elf_file *file;
	const struct stub_machine *machine;
	void *decoder;
	/* Sorted by address once they are read. */
	struct stub_slot *slots;
	size_t slots_n, slots_room;
	/* enum stub_callee by address: of functions; of words that have a function's address. */
	struct hashmap callees, words;
	uint64_t filter; /* a bit for each of `callees` */
	enum stub_callee only; /* are calls looked for; STUB_CALLEES: of all */
	struct stub_list found[STUB_CALLEES];
	struct stub_list lost; /* handle variables whose call does not have the host function */
	uint64_t scanned, decoded; /* bytes: of this pass, of all */
	uint64_t scanned_max;
	int64_t cpu_end_ns; /* of the thread's CPU time: what is not found by then is skipped */
	bool over; /* a bound on the whole file is reached */
	uint64_t skipped;
};

/* Whether decoding must end: enough bytes, or enough time. */
bool stub_scan_over(struct stub_scan *scan);
/* -ETIME of elf_limit_cpu() is no failure: what was found before counts, and the rest is skipped. */
int stub_scan_late(struct stub_scan *scan, int r);
void stub_scan_done(struct stub_scan *scan);
/* Adds a function with this name at @address, or called through a word there. Other names are ignored. */
int stub_scan_callee(struct stub_scan *scan, const char *name, uint64_t address);
/* Reads all words that the loader fills in, and those of the wanted functions. */
int stub_scan_slots(struct stub_scan *scan);
/* Calls through tables of the linker become calls of the function. */
int stub_scan_thunks(struct stub_scan *scan);
/* Calls of known functions. */
int stub_scan_calls(struct stub_scan *scan);
/* Calls of unknown functions that can only be STUB_REGISTER, or STUB_GET_KERNEL with one of @hosts. */
int stub_scan_unnamed_register(struct stub_scan *scan);
int stub_scan_unnamed_get_kernel(struct stub_scan *scan, const struct hashmap *hosts);
/* The name at an address, at most @size - 1 bytes, all of them such as symbols have. -ENOENT. */
int stub_scan_name(struct stub_scan *scan, uint64_t address, char *buf, size_t size);
