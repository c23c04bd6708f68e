// SPDX-License-Identifier: Apache-2.0
/* What site.c knows of a machine. Everything here errs on the side of refusal. */
#pragma once

#include <capstone/capstone.h>

#include "trace/site.h"

/* The function as far as it was followed from its entry, in a straight line. */
struct site_scan {
	const uint8_t *code;
	size_t size;
	uint64_t address;
	uint32_t at; /* of the instruction looked at */
	bool starts[SITE_SCAN_MAX]; /* an instruction starts at this byte; up to @at */
	int32_t stack; /* as in struct site */
	bool link_intact; /* arm64: the link register is as the caller set it */
};

struct site_machine {
	uint16_t elf_machine;
	cs_arch arch;
	cs_mode mode;
	bool single_step; /* may be allowed */
	uint8_t zeros; /* so many zero bytes are no code, decodable or not; up to 4 */
	enum site_kind (*kind)(const uint8_t *code, size_t length);
	/* The kernel takes no probe here at all, or it would be no code. */
	bool (*refuses)(const cs_insn *insn);
	/* Goes past an instruction. NULL, or why no site may lie behind it. */
	const char *(*pass)(struct site_scan *scan, csh handle, const cs_insn *insn);
	/* The return address is where the kernel looks for it, at an instruction of this kind. */
	bool (*may_return)(const struct site_scan *scan, enum site_kind kind);
	/* Something in the function jumps to one of scan->starts, or calls what is not its first. */
	bool (*jumped_to)(const struct site_scan *scan, csh handle);
	/* Something in the function reads the site's bytes, at a place that it has from its own address. */
	bool (*reads_site)(const struct site_scan *scan, csh handle, enum site_kind kind);
	/* The site itself makes the stack grow: who came back to it, would do so at another depth. */
	bool (*moves_stack)(enum site_kind kind);
	/*
	 * The function jumps by a table or an address that it reckons, of which nothing is known: it may lead
	 * back.
	 */
	bool (*jumps_by_table)(const struct site_scan *scan, csh handle);
};

enum { SITE_STACK_MAX = 64 << 10 };

extern const struct site_machine site_x86, site_arm64;
