// SPDX-License-Identifier: Apache-2.0
#include "view/dcgm/shown.h"

#include <math.h>
#include <string.h>

#include "view/shown.h"

bool dcgm_is_entity(const struct snapshot *s, uint32_t entity)
{
	const struct entity *e = &s->entities[entity];

	for (uint32_t k = 0; entity_is_mig(e) && k < entity; k++)
		if (s->entities[k].id.parent == e->id.parent && s->entities[k].id.gi == e->id.gi &&
		    s->entities[k].present)
			return false;
	return true;
}

const char *dcgm_profile(const char *profile)
{
	const char *c = profile + strspn(profile, "0123456789");

	return c > profile && strncmp(c, "c.", 2) == 0 ? c + 2 : profile;
}

bool dcgm_has(const struct snapshot *s, uint32_t entity, const struct metric *row)
{
	const struct entity *e = &s->entities[entity];

	return e->present && entity_shows(e, row) && presence_is(e->id.p[row->slot]);
}

static bool measured_on_instances(const struct snapshot *s, uint32_t gpu, const struct metric *row)
{
	for (uint32_t k = gpu + 1; k < s->entities_n; k++)
		if (s->entities[k].id.parent == gpu && dcgm_has(s, k, row))
			return true;
	return false;
}

bool dcgm_stands(const struct snapshot *s, uint32_t entity, const struct metric *row)
{
	if (!dcgm_has(s, entity, row))
		return false;
	return entity_is_mig(&s->entities[entity]) ? dcgm_is_entity(s, entity) :
						     !measured_on_instances(s, entity, row);
}

double dcgm_whole(double scaled)
{
	return trunc(scaled + copysign(1e-6, scaled));
}

double dcgm_number(const struct dcgm_name *name, double value)
{
	double scaled = value * name->scale;

	return name->integer ? dcgm_whole(scaled) : scaled;
}
