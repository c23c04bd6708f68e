// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/cuda/driver.h"

/* One allocation, by its address: in memory.c's table. For arrays and physical memory it is their handle. */
struct memory {
	struct slot slot;
	enum memory_kind kind;
	int device; /* negative: none is charged */
	struct cu_context *context; /* NULL: outlives contexts */
	uint64_t address;
	size_t bytes; /* as asked for */
	struct memory *physical; /* of a mapping */
	uint32_t references; /* of physical memory: its handle and its mappings */
	bool released; /* its handle */
};

/*
 * A new record that is in the table, its memory charged to the context's device unless @device is negative;
 * @address 0: chooses an address. The caller holds the lock.
 */
int memory_add(enum memory_kind kind, struct cu_context *context, int device, uint64_t address, size_t bytes,
	       struct memory **ret_memory);
struct memory *memory_find(uint64_t address);
void memory_drop(struct memory *memory);

/* Frees the memory of a context that is destroyed. */
void memory_of_context_gone(struct cu_context *context);
