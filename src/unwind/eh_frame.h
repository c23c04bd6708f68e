// SPDX-License-Identifier: Apache-2.0
/*
 * Reads .eh_frame (the Linux Standard Base's core specification; DWARF 4, 6.4): for each instruction of a
 * file, where its caller's registers are. Only the forms that the kernel side can follow (bpf/unwind.h);
 * others are told as UNWIND_NONE. The section is hostile: everything is read with bounds.
 *
 * Without libdw: dwarf_cfi_addrframe() runs a function's instructions from the beginning for every address
 * that is asked for, allocates each answer, and maps the file, which its owner may shorten meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind.h"

enum {
	EH_FRAME_BYTES_MAX = 64 << 20, /* of a section: PyTorch's largest has 20 MB */
	EH_FUNCTIONS_MAX = 2 << 20, /* of a file */
	EH_ROWS_MAX = 4096, /* of a function */
};

/* A section's bytes, and where it lies as linked. */
struct eh_frame {
	const uint8_t *data;
	size_t n;
	uint64_t address;
	uint16_t machine; /* EM_X86_64, EM_AARCH64 */
};

/* A function, or a part of one, for eh_rows(). Addresses as linked. */
struct eh_function {
	uint64_t start, end;
	uint32_t entry; /* where it is in the section */
};

/*
 * Reads the entry at *at, and moves *at behind it. 1: a function; 0: another entry, or one that is not
 * understood; -ENODATA: there are no more.
 */
int eh_frame_next(const struct eh_frame *frame, uint32_t *at, struct eh_function *ret_function);

/* From @pc on, up to the next row, this is the rule. Pcs rise. Returning non-zero stops. */
typedef int eh_row_fn(uint64_t pc, const struct unwind_rule *rule, void *userdata);
/* The first row is at function->start. What is not understood is told as UNWIND_NONE from there on. */
int eh_rows(const struct eh_frame *frame, const struct eh_function *function, eh_row_fn *fn, void *userdata);
