// SPDX-License-Identifier: Apache-2.0
#include "view/tags.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "view/names.h"
#include "view/shown.h"

struct tags {
	struct tag *list;
	uint32_t n;
};

static void add_tag(struct tags *tags, const char *key, const char *value)
{
	struct tag *tag = &tags->list[tags->n];

	if (!*value || tags->n == TAGS_MAX)
		return;
	tag->key = key;
	snprintf(tag->value, sizeof(tag->value), "%s", value);
	utf8_sanitize(tag->value);
	for (uint32_t i = 0; i < tags->n; i++)
		if (STRV_EQ(tags->list[i].key, key) && STRV_EQ(tags->list[i].value, tag->value))
			return;
	tags->n++;
}

static void add_mig_mode(struct tags *tags, const struct entity *e)
{
	if (!entity_is_mig(e) && presence_is(e->id.p[SLOT_MIG_MODE_CURRENT]))
		add_tag(tags, "gpu_mig_mode", e->id.v[SLOT_MIG_MODE_CURRENT] > 0 ? "enabled" : "disabled");
}

static void add_gpus(struct tags *tags, const struct snapshot *s)
{
	struct gpu_counts counts;
	char number[16], cuda[16];

	count_gpus(s, &counts);
	if (counts.present + counts.absent + counts.unidentified == 0)
		return;
	add_tag(tags, "gpu_host", "true");
	add_tag(tags, "gpu_vendor", GPU_VENDOR);
	add_tag(tags, "gpu_driver_version", snapshot_driver(s)->driver_version);
	cuda_version_text(snapshot_driver(s)->cuda_version, cuda);
	add_tag(tags, "gpu_cuda_version", cuda);
	snprintf(number, sizeof(number), "%u", counts.present);
	add_tag(tags, "gpu_count", number);
	if (s->simulated)
		add_tag(tags, "gpu_simulated", "true");
	for (uint32_t i = 0; i < s->entities_n; i++) {
		const struct entity *e = &s->entities[i];

		add_tag(tags, "gpu_model", entity_is_mig(e) ? "" : e->id.name);
		add_tag(tags, "gpu_architecture", e->id.architecture);
		add_tag(tags, "gpu_mig_profile", e->present ? e->id.mig_profile : "");
		add_mig_mode(tags, e);
	}
}

uint32_t tags_of(const struct snapshot *s, struct tag *ret_tags)
{
	struct tags tags = { .list = ret_tags };

	add_gpus(&tags, s);
	for (uint32_t i = 0; i < s->tags_n; i++)
		add_tag(&tags, s->tags[i].key, s->tags[i].value);
	return tags.n;
}
