// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a function: a site lies in it, and breaks none of the rules that it was chosen by. The first
 * byte says machine and rules.
 */
#include "fuzz.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "trace/site.h"

static bool is_nop(enum site_kind kind)
{
	return kind == SITE_KIND_NOP1 || kind == SITE_KIND_NOP5 || kind == SITE_KIND_NOP10;
}

static void check_chosen(const struct site *site, bool arm64, size_t size, const struct site_rules *rules)
{
	if (site->class == SITE_REFUSED || site->offset >= SITE_SCAN_MAX || site->length == 0 ||
	    site->offset + site->length > size || site->instruction[0] == '\0')
		abort();
	if (site->stack < 0 || site->stack > 64 << 10)
		abort();
	if (site->class == SITE_SINGLE_STEP ? arm64 || !rules->allow_single_step || site->offset > 0 :
					      rules->by_kind[site->kind] != site->class)
		abort();
	if (site->offset > 0 && is_nop(site->kind) && rules->nop_rewritten)
		abort();
	if (arm64 ? site->offset % 4 != 0 || (site->may_return && site->kind == SITE_KIND_CALL) :
		    site->may_return != (site->stack == 0))
		abort();
}

int fuzz_one(const uint8_t *data, size_t size)
{
	struct site_rules rules;
	struct site site;
	bool arm64;

	if (size == 0)
		return 0;
	arm64 = data[0] & 1;
	site_rules_default(arm64 ? EM_AARCH64 : EM_X86_64, &rules);
	rules.allow_single_step = data[0] & 2;
	rules.nop_rewritten = data[0] & 4;
	if (data[0] & 8)
		rules.by_kind[SITE_KIND_NOP5] = SITE_OPTIMISED;
	if (data[0] & 16)
		rules.by_kind[SITE_KIND_PUSH] = SITE_SINGLE_STEP;
	if (data[0] & 32)
		rules.by_kind[SITE_KIND_BRANCH] = SITE_REFUSED;
	if (site_choose(arm64 ? EM_AARCH64 : EM_X86_64, data + 1, size - 1, 0x1000, &rules, &site) != 0)
		abort();
	if (!memchr(site.instruction, 0, sizeof(site.instruction)) ||
	    !memchr(site.reason, 0, sizeof(site.reason)) || site.reason[0] == '\0')
		abort();
	if (site.chosen)
		check_chosen(&site, arm64, size - 1, &rules);
	else if (site.offset != 0 || site.may_return || site.class < SITE_SINGLE_STEP)
		abort();
	return 0;
}
