// SPDX-License-Identifier: Apache-2.0
/* What an analysis has found: a series for each rule that could be judged. */
#include "model/finding.h"
#include "view/walk/private.h"

void walk_findings(struct walk *walk)
{
	const struct findings *findings = walk->s->trace ? walk->s->trace->findings : NULL;

	if (!findings ||
	    !walk_family_named(walk, "finding_active", FAMILY_GAUGE, UNIT_NONE,
			       "Findings of the analysis that are active, by rule. Rules that could "
			       "not be judged have no series."))
		return;
	for (uint32_t i = 0; i < findings->rules_n; i++) {
		const struct finding_rule *rule = &findings->rules[i];

		if (rule->missing)
			continue;
		walk_series(walk, &(struct series){
					  .sets = { WALK_SET(walk, true, { "finding", rule->name }), NULL },
					  .value = rule->active,
					  .presence = PRESENCE_PRESENT,
					  .entity = UINT32_MAX });
	}
}
