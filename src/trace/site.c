// SPDX-License-Identifier: Apache-2.0
#include "trace/site.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "trace/site_scan.h"

static const char *const class_names[SITE_CLASSES] = {
	[SITE_EMULATED] = "emulated",
	[SITE_OPTIMISED] = "optimised",
	[SITE_SINGLE_STEP] = "single_step",
	[SITE_REFUSED] = "refused",
};

const char *site_class_name(enum site_class class)
{
	return class_names[class];
}

/*
 * What kernels from 5.10 to 7.2 have in common, tested on each; where they differ, the more expensive
 * treatment. The costs were measured on x86-64 with the real libcuda 550 (Linux 6.18, a virtual machine). For
 * arm64 there are no costs: it was tested under emulation only.
 */
void site_rules_default(uint16_t machine, struct site_rules *ret_rules)
{
	struct site_rules rules = {
		.by_kind = {
			[SITE_KIND_PUSH] = SITE_SINGLE_STEP,
			[SITE_KIND_PUSH_EXTENDED] = SITE_SINGLE_STEP,
			[SITE_KIND_JUMP] = SITE_EMULATED,
			[SITE_KIND_BRANCH] = SITE_EMULATED,
			[SITE_KIND_CALL] = SITE_EMULATED,
			[SITE_KIND_NOP1] = SITE_SINGLE_STEP,
			[SITE_KIND_NOP5] = SITE_SINGLE_STEP,
			[SITE_KIND_NOP10] = SITE_REFUSED,
			[SITE_KIND_ADDRESS] = SITE_SINGLE_STEP,
			[SITE_KIND_OTHER] = SITE_SINGLE_STEP,
		},
	};

	if (machine == EM_X86_64) {
		rules.by_kind[SITE_KIND_PUSH] = SITE_EMULATED;
		rules.by_kind[SITE_KIND_PUSH_EXTENDED] = SITE_EMULATED;
		rules.by_kind[SITE_KIND_NOP1] = SITE_EMULATED;
		rules.nop_rewritten = true;
		rules.entry_ns[SITE_OPTIMISED] = 258;
		rules.return_ns[SITE_OPTIMISED] = 524;
		rules.entry_ns[SITE_EMULATED] = 555;
		rules.return_ns[SITE_EMULATED] = 810;
		rules.entry_ns[SITE_SINGLE_STEP] = 9430;
		rules.return_ns[SITE_SINGLE_STEP] = 9600;
	} else if (machine == EM_AARCH64) {
		rules.by_kind[SITE_KIND_ADDRESS] = SITE_EMULATED;
	}
	*ret_rules = rules;
}

static bool is_nop(enum site_kind kind)
{
	return kind == SITE_KIND_NOP1 || kind == SITE_KIND_NOP5 || kind == SITE_KIND_NOP10;
}

static void describe(struct site *site, const cs_insn *insn)
{
	snprintf(site->instruction, sizeof(site->instruction), "%.20s%s%.40s", insn->mnemonic,
		 insn->op_str[0] ? " " : "", insn->op_str);
}

static void choose(struct site *site, const struct site_machine *m, const struct site_scan *scan,
		   enum site_kind kind, enum site_class class, const cs_insn *insn)
{
	site->offset = scan->at;
	site->kind = kind;
	site->class = class;
	site->chosen = true;
	site->may_return = m->may_return(scan, kind);
	site->stack = scan->stack;
	site->length = (uint8_t)insn->size;
	describe(site, insn);
	snprintf(site->reason, sizeof(site->reason), "%s that the kernel %s%s",
		 scan->at == 0 ? "the function's first instruction, one" :
				 "the first instruction of the prologue",
		 class == SITE_OPTIMISED ? "turns into a call" : "emulates",
		 scan->at == 0 ? "" : "; the instructions before it leave the arguments unchanged");
}

static void no_code(struct site *site, const char *why)
{
	site->class = SITE_REFUSED;
	snprintf(site->reason, sizeof(site->reason), "%s", why);
}

static const char jumps_back[] = "the function jumps back to its beginning: a call would be counted twice";
static const char by_table[] =
	"the function jumps through a table or to a computed address, which may lead back to its beginning: "
	"a call would be counted twice";

static const char read_as_data[] =
	"the function reads the instruction to be probed as data: a probe would change what it reads";

/* NULL, or why a probe would do harm: a call may hit the site twice, or read its bytes. */
static const char *harmed(const struct site_machine *m, const struct site_scan *scan, csh handle,
			  enum site_kind kind)
{
	if (m->jumped_to(scan, handle))
		return jumps_back;
	if (m->reads_site(scan, handle, kind))
		return read_as_data;
	return !m->moves_stack(kind) && m->jumps_by_table(scan, handle) ? by_table : NULL;
}

/*
 * Falls back to the first byte, which every call passes with the arguments and the stack as the caller left
 * them.
 */
static void fall_back_to_first(struct site *site, const struct site_machine *m, csh handle,
			       struct site_scan *scan, const struct site_rules *rules, const char *why)
{
	scan->at = 0;
	memset(scan->starts, 0, sizeof(scan->starts));
	scan->starts[0] = true;
	scan->stack = 0;
	const char *harm = harmed(m, scan, handle, site->kind);

	if (harm) {
		no_code(site, harm);
	} else if (site->class == SITE_REFUSED) {
		snprintf(site->reason, sizeof(site->reason), "the kernel accepts no probe on \"%s\", and %s",
			 site->instruction, why);
	} else if (!m->single_step) {
		snprintf(site->reason, sizeof(site->reason),
			 "would be single-stepped, which harms GPU programs on this machine; %s", why);
	} else if (!rules->allow_single_step) {
		snprintf(site->reason, sizeof(site->reason),
			 "would be single-stepped (trace.allow_single_step=yes allows it); %s", why);
	} else {
		site->chosen = true;
		site->may_return = true;
		snprintf(site->reason, sizeof(site->reason),
			 "single-stepped, as trace.allow_single_step allows; %s", why);
	}
}

/* Records the class of the first byte, for functions without a better site. */
static void note_first(struct site *site, const struct site_machine *m, const struct site_rules *rules,
		       const cs_insn *insn)
{
	site->kind = m->kind(insn->bytes, insn->size);
	site->class = rules->by_kind[site->kind] == SITE_REFUSED || m->refuses(insn) ? SITE_REFUSED :
										       SITE_SINGLE_STEP;
	site->length = (uint8_t)insn->size;
	describe(site, insn);
}

/* The class of the current instruction. Only SITE_EMULATED and SITE_OPTIMISED make it a site. */
static enum site_class class_at(const struct site_scan *scan, const struct site_rules *rules,
				enum site_kind kind)
{
	/*
	 * A call would push its return address over data that the function may have below the stack pointer.
	 */
	if (scan->at > 0 && is_nop(kind) && rules->nop_rewritten)
		return SITE_REFUSED;
	return rules->by_kind[kind];
}

static void scan_prologue(const struct site_machine *m, csh handle, cs_insn *insn, struct site_scan *scan,
			  const struct site_rules *rules, struct site *site)
{
	static const uint8_t zeros[4];
	size_t end = MIN(scan->size, (size_t)SITE_SCAN_MAX);
	const char *why = NULL;

	while (!why && scan->at < end) {
		const uint8_t *p = scan->code + scan->at;
		size_t left = scan->size - scan->at;
		uint64_t address = scan->address + scan->at;

		if (left >= m->zeros && memcmp(p, zeros, m->zeros) == 0) {
			no_code(site, "zero bytes where code should be");
			return;
		}
		++*scan->decoded;
		if (!cs_disasm_iter(handle, &p, &left, &address, insn)) {
			no_code(site, "bytes that are no instruction: data, or the function ends within one");
			return;
		}
		if (scan->at == 0)
			note_first(site, m, rules, insn);
		scan->starts[scan->at] = true;
		enum site_kind kind = m->kind(insn->bytes, insn->size);
		enum site_class class = class_at(scan, rules, kind);

		if (class == SITE_EMULATED || class == SITE_OPTIMISED) {
			const char *harm = harmed(m, scan, handle, kind);

			if (harm)
				no_code(site, harm);
			else
				choose(site, m, scan, kind, class, insn);
			return;
		}
		why = m->pass(scan, handle, insn);
		scan->at += insn->size;
	}
	fall_back_to_first(site, m, handle, scan, rules,
			   why ? why : "there is no better instruction near its beginning");
}

static int scan_with(const struct site_machine *m, struct site_scan *scan, const struct site_rules *rules,
		     struct site *site)
{
	csh handle;
	cs_insn *insn;

	if (cs_open(m->arch, m->mode, &handle) != CS_ERR_OK)
		return -ENOMEM;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	insn = cs_malloc(handle);
	if (insn) {
		scan_prologue(m, handle, insn, scan, rules, site);
		cs_free(insn, 1);
	}
	cs_close(&handle);
	return insn ? 0 : -ENOMEM;
}

static const struct site_machine *machine_of(uint16_t machine)
{
	return machine == EM_X86_64 ? &site_x86 : machine == EM_AARCH64 ? &site_arm64 : NULL;
}

bool site_is_boundary(uint16_t machine, const uint8_t *code, size_t size, size_t at)
{
	const struct site_machine *m = machine_of(machine);
	uint64_t address = 0;
	cs_insn *insn;
	csh handle;

	if (!m || cs_open(m->arch, m->mode, &handle) != CS_ERR_OK)
		return false;
	insn = cs_malloc(handle);
	while (insn && address < at)
		if (!cs_disasm_iter(handle, &code, &size, &address, insn))
			break;
	if (insn)
		cs_free(insn, 1);
	cs_close(&handle);
	return address == at;
}

int site_choose(uint16_t machine, const uint8_t *code, size_t size, uint64_t address,
		const struct site_rules *rules, struct site *ret_site)
{
	const struct site_machine *m = machine_of(machine);
	struct site site = { .kind = SITE_KIND_OTHER, .class = SITE_REFUSED };
	struct site_scan scan = {
		.code = code,
		.size = MIN(size, (size_t)SITE_CODE_MAX),
		.address = address,
		.decoded = &site.decoded,
		.link_intact = true,
	};
	int r = 0;

	if (!m)
		return -EOPNOTSUPP;
	if (size == 0)
		no_code(&site, "no bytes of it are in the file");
	else
		r = scan_with(m, &scan, rules, &site);
	if (r == 0)
		*ret_site = site;
	return r;
}
