// SPDX-License-Identifier: Apache-2.0
/* The machine-dependent part of site.c. In doubt, every function here refuses. */
#pragma once

#include <capstone/capstone.h>

#include "trace/site.h"

/* A function, decoded linearly from its entry up to @at. */
struct site_scan {
	const uint8_t *code;
	size_t size;
	uint64_t address;
	uint32_t at; /* offset of the current instruction */
	bool starts[SITE_SCAN_MAX]; /* an instruction starts at this byte; up to @at */
	int32_t stack; /* as in struct site */
	uint32_t *decoded; /* counts instructions */
	bool link_intact; /* arm64: the link register is as the caller set it */
};

struct site_machine {
	uint16_t elf_machine;
	cs_arch arch;
	cs_mode mode;
	bool single_step; /* allow_single_step applies */
	uint8_t zeros; /* this many zero bytes are not code, even if they decode; up to 4 */
	enum site_kind (*kind)(const uint8_t *code, size_t length);
	/* The kernel accepts no probe on it, or it does not occur in normal code. */
	bool (*refuses)(const cs_insn *insn);
	/* Updates @scan for an instruction before the site. NULL, or why no site may follow it. */
	const char *(*pass)(struct site_scan *scan, csh handle, const cs_insn *insn);
	/* The return address is where the kernel expects it, at an instruction of this kind. */
	bool (*may_return)(const struct site_scan *scan, enum site_kind kind);
	/* The function jumps to one of scan->starts, or calls one other than its first byte. */
	bool (*jumped_to)(const struct site_scan *scan, csh handle);
	/* The function reads the site's bytes by an address relative to the program counter. */
	bool (*reads_site)(const struct site_scan *scan, csh handle, enum site_kind kind);
	/* The site itself moves the stack pointer: a jump back to it would find another stack depth. */
	bool (*moves_stack)(enum site_kind kind);
	/* The function jumps through a table or to a computed address, which may be the site or before it. */
	bool (*jumps_by_table)(const struct site_scan *scan, csh handle);
};

enum { SITE_STACK_MAX = 64 << 10 };

extern const struct site_machine site_x86, site_arm64;
