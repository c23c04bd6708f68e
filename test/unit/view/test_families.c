// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "base/macro.h"
#include "view/metrics/families.h"

#define A "# HELP a_total The first.\n# TYPE a_total counter\na_total{x=\"1\"} 1\na_total 2\n"
#define B "# HELP b The second.\n# TYPE b gauge\nb 3\n"
#define OPEN_A "# HELP a The first.\n# TYPE a counter\na_total 1\n"
#define OPEN_B "# HELP b The second.\n# TYPE b info\nb_info{c=\"# HELP a\"} 1\n"
#define END "# EOF\n"

static void parts_of_pages(_unused_ void **state)
{
	static const struct {
		const char *page, *list, *part;
	} cases[] = {
		{ A B, "a_total", A },
		{ A B, "b", B },
		{ A B, "*", A B },
		{ A B, "c", "" },
		{ A B, "!b", A },
		{ "", "a", "" },
		{ OPEN_A OPEN_B END, "a_total", OPEN_A END },
		{ OPEN_A OPEN_B END, "b_*", OPEN_B END },
		{ OPEN_A OPEN_B END, "a", END },
		{ A "# HELP", "a_total", A "# HELP" },
		{ "# HELP ", "a", "" },
		{ "text", "a", "text" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strbuf page, part;

		strbuf_init(&page, 0);
		strbuf_init(&part, 0);
		strbuf_adds(&page, cases[i].page);
		families_of_page(&page, cases[i].list, &part);
		if (part.len != strlen(cases[i].part) ||
		    memcmp(part.data ? part.data : "", cases[i].part, part.len))
			fail_msg("%s of %s: %s", cases[i].list, cases[i].page, part.data);
		strbuf_done(&page);
		strbuf_done(&part);
	}
}

/* Families "a" and "b": a length, the name's field, and another. */
#define PROTO_A        \
	"\x05\x0a\x01" \
	"a\x18\x01"
#define PROTO_B        \
	"\x03\x0a\x01" \
	"b"

static void parts_of_protobuf(_unused_ void **state)
{
	static const struct {
		const char *page;
		size_t n;
		const char *list, *part;
	} cases[] = {
		{ PROTO_A PROTO_B, 10, "a", PROTO_A },
		{ PROTO_A PROTO_B, 10, "*", PROTO_A PROTO_B },
		{ PROTO_A PROTO_B, 10, "!a", PROTO_B },
		{ PROTO_A PROTO_B, 10, "c", "" },
		/* Of what is none of ours nothing more is taken. */
		{ PROTO_A PROTO_B, 9, "*", PROTO_A },
		{ PROTO_A "\xff\xff", 8, "*", PROTO_A },
		{ PROTO_A "\x02\x0a\x7f", 9, "*", PROTO_A },
		{ PROTO_A "\x01\x0a", 8, "*", PROTO_A },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11, "*", "" },
		{ "", 0, "*", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strbuf page, part;

		strbuf_init(&page, 0);
		strbuf_init(&part, 0);
		strbuf_add(&page, cases[i].page, cases[i].n);
		families_of_protobuf(&page, cases[i].list, &part);
		if (part.len != strlen(cases[i].part) ||
		    memcmp(part.data ? part.data : "", cases[i].part, part.len))
			fail_msg("case %zu", i);
		strbuf_done(&page);
		strbuf_done(&part);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_pages),
		cmocka_unit_test(parts_of_protobuf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
