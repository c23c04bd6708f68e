// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "base/macro.h"
#include "view/view.h"

#define OM EXPOSITION_OPENMETRICS
#define PROM EXPOSITION_PROMETHEUS

static const struct {
	const char *accept;
	enum exposition format;
} cases[] = {
	{ NULL, PROM },
	{ "", PROM },
	{ "*/*", PROM }, /* curl */
	{ "text/plain", PROM },
	{ "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", PROM }, /* a browser */
	/* Prometheus 2.42, and with its order turned round. */
	{ "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
	  "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
	  OM },
	{ "*/*;q=0.1,text/plain;version=0.0.4;q=0.5,application/openmetrics-text;version=1.0.0", OM },
	{ "application/openmetrics-text", OM },
	{ "Application/OpenMetrics-Text ; Version=1.0.0", OM },
	{ "application/openmetrics-text;version=\"1.0.0\";charset=utf-8", OM },
	{ "application/openmetrics-text;version=0.0.1", PROM }, /* which we do not write */
	{ "application/openmetrics-text;version=1.0", PROM },
	{ "application/openmetrics-text;q=0", PROM },
	{ "application/openmetrics-text;q=0.3,text/plain;q=0.4", PROM },
	{ "application/openmetrics-text;q=0.4,text/plain;q=0.3", OM },
	{ "application/openmetrics-text;q=0.5,text/plain;q=0.5", OM },
	/* The most specific range that fits text says how much it is wanted. */
	{ "application/openmetrics-text;q=0.2,text/plain;q=0.1,*/*;q=0.9", OM },
	{ "application/openmetrics-text;q=0.2,text/*;q=0.3,*/*;q=0.1", PROM },
	{ "application/openmetrics-text;q=0.2,text/plain;version=1.2.3,*/*;q=0.1", OM },
	/* Three decimals are the most there may be. */
	{ "application/openmetrics-text;q=0.501,text/plain;q=0.500", OM },
	{ "application/openmetrics-text;q=1.000,text/plain;q=1.0", OM },
	/* Broken ranges are as if they were not there. */
	{ "application/openmetrics-text;q=2", PROM },
	{ "application/openmetrics-text;q=", PROM },
	{ "application/openmetrics-text;q=0.1234", PROM },
	{ "application/openmetrics-text;q=0,5", PROM },
	{ "application/openmetrics-text;q=-1", PROM },
	{ "application/openmetrics-text;q=abc,text/plain;q=0.1", PROM },
	{ ",,,;;;,application/openmetrics-text", OM },
	{ "application/openmetrics-text;version=\"1.0.0", OM }, /* a quote that never ends */
	{ ";q=1", PROM },
	{ "application/openmetrics-textile", PROM },
	{ "application/openmetrics", PROM },
};

#define PROTO "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily"

static void protobuf_is_asked_for_by_name(_unused_ void **state)
{
	static const struct {
		const char *accept;
		unsigned format;
	} wanted[] = {
		/* Prometheus 2.42 and 2.53 that store native histograms. */
		{ PROTO ";encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,"
			"application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,"
			"*/*;q=0.1",
		  METRICS_PROTOBUF },
		{ PROTO
		  ";encoding=delimited;q=0.5,application/openmetrics-text;version=1.0.0;q=0.4,"
		  "application/openmetrics-text;version=0.0.1;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
		  METRICS_PROTOBUF },
		{ "application/openmetrics-text;version=1.0.0;q=0.8," PROTO ";encoding=delimited;q=0.5", OM },
		{ "text/plain;q=0.8," PROTO ";encoding=delimited;q=0.5", PROM },
		{ PROTO ";encoding=text", PROM },
		{ PROTO ";encoding=compact-text,application/openmetrics-text", OM },
		{ PROTO, PROM },
		{ "application/vnd.google.protobuf;proto=other;encoding=delimited", PROM },
		{ PROTO ";encoding=delimited;q=0", PROM },
		{ "*/*", PROM },
		{ NULL, PROM },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (metrics_negotiate(wanted[i].accept) != wanted[i].format)
			fail_msg("Accept: %s", wanted[i].accept);
		/* Other pages do not have it. */
		assert_true(exposition_negotiate(wanted[i].accept) < EXPOSITIONS);
	}
}

static void accept_headers(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (exposition_negotiate(cases[i].accept) != cases[i].format)
			fail_msg("Accept: %s", cases[i].accept);
	}
}

/* What stands behind very many ranges is not looked at; and reading ends. */
static void very_long_header(void **state)
{
	struct strbuf accept;

	(void)state;
	strbuf_init(&accept, 0);
	for (int i = 0; i < 1000; i++)
		strbuf_adds(&accept, "a/b,");
	strbuf_adds(&accept, "application/openmetrics-text");
	assert_int_equal(exposition_negotiate(accept.data), PROM);
	strbuf_done(&accept);
}

static void content_types(void **state)
{
	(void)state;
	assert_string_equal(exposition_content_type(PROM), "text/plain; version=0.0.4; charset=utf-8");
	assert_string_equal(exposition_content_type(OM),
			    "application/openmetrics-text; version=1.0.0; charset=utf-8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accept_headers),
		cmocka_unit_test(protobuf_is_asked_for_by_name),
		cmocka_unit_test(very_long_header),
		cmocka_unit_test(content_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
