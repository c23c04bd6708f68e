// SPDX-License-Identifier: Apache-2.0
#include "web/routes.h"

static const struct {
	const char *argument;
	enum dcgm_names names;
} dcgm_profiles[] = {
	{ "old", DCGM_NAMES_OLD },
	{ "4.9", DCGM_NAMES_49 },
};

_Static_assert(ARRAY_SIZE(dcgm_profiles) * EXPOSITIONS <= HTTP_VARIANTS, "a cached page for each");

int metrics_variant(const struct http_request *request, _unused_ void *userdata)
{
	return (int)exposition_negotiate(request->accept);
}

/* Index in dcgm_profiles; 0 without a query, -1 for an unknown name. */
static int dcgm_profile(const struct http_request *request)
{
	const char *wanted = request->argument(request, "names");

	if (!wanted)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(dcgm_profiles); i++)
		if (STRV_EQ(dcgm_profiles[i].argument, wanted))
			return (int)i;
	return -1;
}

int dcgm_variant(const struct http_request *request, _unused_ void *userdata)
{
	int profile = dcgm_profile(request);

	return profile < 0 ? -1 : profile * EXPOSITIONS + (int)exposition_negotiate(request->accept);
}

int uncached(_unused_ const struct http_request *request, _unused_ void *userdata)
{
	return -1;
}

enum exposition dcgm_format(int variant)
{
	return (enum exposition)(variant % EXPOSITIONS);
}

enum dcgm_names dcgm_names(int variant)
{
	return dcgm_profiles[(size_t)(variant / EXPOSITIONS) % ARRAY_SIZE(dcgm_profiles)].names;
}

int dcgm_refuse(struct http_reply *reply)
{
	reply->status = 400;
	strbuf_adds(&reply->body, "400 bad request: names= must be");
	for (size_t i = 0; i < ARRAY_SIZE(dcgm_profiles); i++)
		strbuf_addf(&reply->body, "%s %s", i ? " or" : "", dcgm_profiles[i].argument);
	strbuf_addc(&reply->body, '\n');
	return 0;
}
