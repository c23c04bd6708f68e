// SPDX-License-Identifier: Apache-2.0
#include "unwind/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

int rules_init(struct rules *rules, struct unwind_rule *map)
{
	*rules = (struct rules){ .rules = map, .n = 1 };
	rules->uses = calloc(UNWIND_RULES, sizeof(*rules->uses));
	if (!rules->uses)
		return -ENOMEM;
	rules->rules[0] = (struct unwind_rule){ .kind = UNWIND_NONE };
	return 0;
}

void rules_done(struct rules *rules)
{
	hashmap_done(&rules->by);
	free(rules->uses);
}

static uint64_t rule_key(const struct unwind_rule *rule)
{
	return hash_bytes_secret(rule, sizeof(*rule));
}

int rules_take(struct rules *rules, struct user_shares *shares, uint32_t user, bool limit,
	       const struct unwind_rule *rule, uint32_t *ret_index)
{
	uint32_t at = rules->free ? rules->free : rules->n;
	uint64_t key = rule_key(rule);
	int r;

	*ret_index = 0;
	if (rule->kind == UNWIND_NONE)
		return 0;
	if (hashmap_get(&rules->by, key, ret_index) &&
	    memcmp(&rules->rules[*ret_index], rule, sizeof(*rule)) == 0) {
		rules->uses[*ret_index].files++;
		return 0;
	}
	*ret_index = 0;
	if (at == UNWIND_RULES || (limit && !user_shares_have(shares, user, UNWIND_SHARE_RULES, 1)))
		return -ENOBUFS;
	r = hashmap_put(&rules->by, key, at);
	if (r < 0)
		return r;
	if (rules->free)
		rules->free = rules->uses[at].user;
	else
		rules->n++;
	rules->rules[at] = *rule;
	rules->uses[at] = (struct rule_use){ 1, user };
	user_shares_take(shares, user, UNWIND_SHARE_RULES, 1);
	*ret_index = at;
	return 0;
}

void rules_give(struct rules *rules, struct user_shares *shares, uint32_t index)
{
	struct rule_use *use = &rules->uses[index];
	uint64_t key = rule_key(&rules->rules[index]);
	uint32_t known;

	if (index == 0 || --use->files > 0)
		return;
	user_shares_give(shares, use->user, UNWIND_SHARE_RULES, 1);
	/* One whose key is another's as well has lost it to that one. */
	if (hashmap_get(&rules->by, key, &known) && known == index)
		hashmap_del(&rules->by, key);
	use->user = rules->free;
	rules->free = index;
}
