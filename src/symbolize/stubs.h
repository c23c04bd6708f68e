// SPDX-License-Identifier: Apache-2.0
/*
 * Host functions of a file, and the kernels that they launch.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "symbolize/names.h"

struct symbolizer;

struct stub_entry {
	uint64_t address;
	uint64_t handle_address; /* 0: none */
	uint64_t hash; /* of the symbol */
	uint32_t check;
	uint32_t name; /* for names_get() */
	uint8_t source; /* enum kernel_source */
	bool ambiguous; /* several kernels are registered for this address */
};

struct stub_table {
	uint32_t n, handles_n;
	struct stub_entry *entries; /* by address */
	uint32_t *by_handle; /* indexes of the entries with handle_address, sorted by it */
	uint32_t *by_key; /* indexes of all entries, sorted by symbol */
	uint64_t left_out; /* stubs that were dropped or could not be read */
	bool cut; /* stubs were dropped: a handle's kernel cannot be determined */
	struct names *names;
};
/* @root: root of a process that has the file as @path, to search for a debug file. */
int stub_table_read(const struct symbolizer *symbolizer, int fd, const char *root, const char *path,
		    uint32_t max, struct stub_table **ret_table);
void stub_table_free(struct stub_table *table);
DEFINE_CLEANUP(struct stub_table *, stub_table_free, stub_table_freep)
uint64_t stub_table_bytes(const struct stub_table *table);
const struct stub_entry *stub_table_find(const struct stub_table *table, uint64_t address);
bool stub_table_has(const struct stub_table *table, struct symbol_key key);
