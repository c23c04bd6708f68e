// SPDX-License-Identifier: Apache-2.0
#include "web/routes.h"

#include "base/clock.h"
#include "view/container/container.h"
#include "view/container/filter.h"
#include "view/metrics/families.h"

static const struct {
	const char *argument;
	enum dcgm_names names;
} dcgm_profiles[] = {
	{ "old", DCGM_NAMES_OLD },
	{ "4.9", DCGM_NAMES_49 },
};

_Static_assert(ARRAY_SIZE(dcgm_profiles) * EXPOSITIONS <= HTTP_VARIANTS, "a cached page for each");

/* Browsers name it first; programs that take anything (curl, monitoring) do not. */
static bool shows_html(const struct http_request *request)
{
	return request->accept && strstr(request->accept, "text/html");
}

/* A quality of 0, which says that it must not be, is no client's that names gzip at all. */
int asset_variant(const struct http_request *request, _unused_ void *userdata)
{
	return request->accept_encoding && strstr(request->accept_encoding, "gzip") ? INDEX_GZIP :
										      INDEX_PLAIN;
}

int index_variant(const struct http_request *request, void *userdata)
{
	return shows_html(request) && !request->local ? asset_variant(request, userdata) : (int)INDEX_LIST;
}

int plain_variant(const struct http_request *request, _unused_ void *userdata)
{
	return request->argument(request, "reload") ? PLAIN_RELOAD : PLAIN_ONCE;
}

int metrics_variant(const struct http_request *request, _unused_ void *userdata)
{
	_Static_assert((int)METRICS_FORMATS <= (int)HTTP_VARIANTS, "a cached page for each");

	return (int)metrics_negotiate(request->accept);
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

int snapshot_variant(const struct http_request *request, _unused_ void *userdata)
{
	const char *brief = request->argument(request, "brief");

	if (!brief || STRV_EQ(brief, "no"))
		return 0;
	return STRV_EQ(brief, "yes") ? 1 : -1;
}

int snapshot_refuse(struct http_reply *reply)
{
	reply->status = 400;
	strbuf_adds(&reply->body, "400 bad request: brief= must be yes or no\n");
	return 0;
}

int stacks_variant(const struct http_request *request, _unused_ void *userdata)
{
	static const char *const formats[STACKS_FORMATS] = {
		[STACKS_JSON] = "json",
		[STACKS_FOLDED] = "folded",
		[STACKS_PPROF] = "pprof",
		[STACKS_HTML] = "html",
	};
	const char *wanted = request->argument(request, "format");

	_Static_assert((int)STACKS_FORMATS <= (int)HTTP_VARIANTS, "a cached page for each");
	for (int i = 0; wanted && i < STACKS_FORMATS; i++)
		if (STRV_EQ(formats[i], wanted))
			return i;
	return wanted ? -1 : STACKS_JSON;
}

int stacks_refuse(struct http_reply *reply)
{
	reply->status = 400;
	strbuf_adds(&reply->body, "400 bad request: format= must be json, folded, pprof or html\n");
	return 0;
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

/* ---- pages for collectors of containers' GPUs ---- */

/* Arguments that choose a variant: nothing or an empty value is the usual one. */
static const struct {
	const char *argument, *value;
	unsigned flag;
} container_arguments[] = {
	{ "absent", "null", CONTAINER_ABSENT_NULL },
	{ "compat", "zxporter", CONTAINER_ZXPORTER },
};

_Static_assert((CONTAINER_ABSENT_NULL | CONTAINER_ZXPORTER) < HTTP_VARIANTS, "a cached page for each");

int container_variant(const struct http_request *request, _unused_ void *userdata)
{
	int variant = 0;

	for (size_t i = 0; i < ARRAY_SIZE(container_arguments); i++) {
		const char *value = request->argument(request, container_arguments[i].argument);

		if (!value || !*value)
			continue;
		if (!STRV_EQ(value, container_arguments[i].value))
			return -1;
		variant |= (int)container_arguments[i].flag;
	}
	return variant;
}

static int container_refuse(_unused_ const struct http_request *request, struct http_reply *reply,
			    _unused_ void *userdata)
{
	reply->status = 400;
	strbuf_adds(&reply->body, "400 bad request:");
	for (size_t i = 0; i < ARRAY_SIZE(container_arguments); i++)
		strbuf_addf(&reply->body, "%s %s= must be %s", i ? ", and" : "",
			    container_arguments[i].argument, container_arguments[i].value);
	strbuf_adds(&reply->body, ", or be left out\n");
	return 0;
}

static int container_part(const struct http_request *request, const struct strbuf *page, struct strbuf *out)
{
	const char *values[CONTAINER_FILTERS];
	bool any = false;
	int r;

	for (unsigned i = 0; i < CONTAINER_FILTERS; i++) {
		values[i] = request->argument(request, container_filters[i].argument);
		any |= values[i] && *values[i];
	}
	if (!any)
		return 0;
	r = container_filter(page->data, page->len, values, out);
	return r < 0 ? r : 1;
}

/* ---- pages of metrics ---- */

static int some_families(const struct http_request *request, const struct strbuf *page, bool is_protobuf,
			 struct strbuf *out)
{
	const char *families = request->argument(request, "family");

	if (!families || !*families)
		return 0;
	if (is_protobuf)
		families_of_protobuf(page, families, out);
	else
		families_of_page(page, families, out);
	return 1;
}

static int metrics_part(const struct http_request *request, const struct strbuf *page, struct strbuf *out)
{
	return some_families(request, page, metrics_negotiate(request->accept) == METRICS_PROTOBUF, out);
}

static int dcgm_part(const struct http_request *request, const struct strbuf *page, struct strbuf *out)
{
	return some_families(request, page, false, out);
}

static const struct http_header metrics_headers[] = { { "Vary", "Accept, Accept-Encoding" }, { 0 } };

const struct http_manner metrics_manner = {
	.encodes = true,
	.headers = metrics_headers,
	.filter = metrics_part,
};

const struct http_manner dcgm_manner = {
	.encodes = true,
	.headers = metrics_headers,
	.filter = dcgm_part,
};

#define GO_METHOD_REFUSED "method not allowed"
#define GO_FAILED "internal server error"
/* Their headers say how old the data are. */
#define AGED_NS NSEC_PER_SEC

/* Nothing but these files is ever loaded, and no script stands in a page. */
#define PAGE_HEADERS                                                                  \
	{ "Content-Security-Policy",                                                  \
	  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " \
	  "connect-src 'self'; base-uri 'none'; form-action 'none'; "                 \
	  "frame-ancestors 'self'" },                                                 \
	{                                                                             \
		"Referrer-Policy", "no-referrer"                                      \
	}

static const struct http_header index_headers[] = { PAGE_HEADERS,
						    { "Vary", "Accept, Accept-Encoding" },
						    { 0 } };
static const struct http_header asset_headers[] = { PAGE_HEADERS, { "Vary", "Accept-Encoding" }, { 0 } };

const struct http_manner index_manner = { .headers = index_headers };
const struct http_manner asset_manner = { .headers = asset_headers };

const struct http_manner stream_manner = { .stream = true };

const struct http_manner container_manner = {
	.method_refused = GO_METHOD_REFUSED,
	.failed = GO_FAILED,
	.ignores_body = true,
	.max_age_ns = AGED_NS,
	.refuse = container_refuse,
	.filter = container_part,
};

const struct http_manner summary_manner = {
	.method_refused = GO_METHOD_REFUSED,
	.failed = GO_FAILED,
	.ignores_body = true,
	.max_age_ns = AGED_NS,
};

/* Nothing is refused, whatever is sent with it. */
const struct http_manner any_manner = { .ignores_body = true };
