// SPDX-License-Identifier: Apache-2.0
#include "cmd/recording/account.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

enum { FINDINGS_MAX = 1024, TEXTS_MAX = 4096 };

/* A copy that lives as long as the account; NULL: there is no room. */
static const char *keep_text(struct account *account, const char *text)
{
	char **texts;

	for (uint32_t i = 0; i < account->texts_n; i++)
		if (STRV_EQ(account->texts[i], text))
			return account->texts[i];
	texts = account_room(account->texts, account->texts_n, &account->texts_room, TEXTS_MAX,
			     sizeof(*texts));
	if (!texts)
		return NULL;
	account->texts = texts;
	texts[account->texts_n] = strdup(text);
	return texts[account->texts_n] ? texts[account->texts_n++] : NULL;
}

/* It is the same one while it goes on. */
static bool same_finding(const struct account_finding *known, const char *name, const struct finding *f)
{
	return STRV_EQ(known->name, name) && known->f.pid == f->pid && known->f.begin_ns == f->begin_ns &&
	       known->f.communicator == f->communicator && STRV_EQ(known->f.device, f->device) &&
	       STRV_EQ(known->f.subject, f->subject);
}

static struct account_finding *finding_of(struct account *account, const struct finding_rule *rule,
					  const struct finding *f)
{
	struct account_finding *list;

	for (uint32_t i = account->findings_n; i > 0; i--)
		if (same_finding(&account->findings[i - 1], rule->name, f))
			return &account->findings[i - 1];
	list = account_room(account->findings, account->findings_n, &account->findings_room, FINDINGS_MAX,
			    sizeof(*list));
	if (!list)
		return NULL;
	account->findings = list;
	list = &list[account->findings_n];
	*list = (struct account_finding){ .name = keep_text(account, rule->name),
					  .title = keep_text(account, rule->title),
					  .remedy = keep_text(account, rule->remedy) };
	if (!list->name || !list->title || !list->remedy)
		return NULL;
	account->findings_n++;
	return list;
}

static void account_finding(struct account *account, const struct findings *findings, const struct finding *f)
{
	struct account_finding *known = finding_of(account, &findings->rules[f->rule], f);
	const struct finding *cause = finding_cause(findings, f);
	int64_t offset_ns = findings->real_offset_ns;

	if (!known) {
		account->left_out++;
		return;
	}
	if (cause && !known->cause)
		known->cause = keep_text(account, findings->rules[cause->rule].name);
	known->f = *f;
	known->f.values_n = 0;
	for (uint32_t i = 0; i < f->values_n; i++) {
		struct finding_value value = f->values[i];

		value.name = keep_text(account, value.name);
		if (value.name)
			known->f.values[known->f.values_n++] = value;
	}
	known->begin_real_ns = offset_ns ? (int64_t)f->begin_ns + offset_ns : 0;
	known->end_real_ns = offset_ns ? (int64_t)f->end_ns + offset_ns : 0;
}

void account_add_findings(struct account *account, const struct snapshot *s)
{
	const struct findings *findings = s->trace->findings;

	if (!findings)
		return;
	account->analysed = true;
	for (uint32_t i = 0; i < findings->n; i++) {
		const struct finding *f = &findings->list[i];

		if (!account_selects(account) || (f->pid && account_has_process(account, s, f->pid)))
			account_finding(account, findings, f);
	}
}
