// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "view/fields/select.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char text[] =
	"{\"processes\":["
	"{\"pid\":1,\"uid\":0,\"gpu\":0,\"uuid\":\"GPU-a\",\"namespace\":\"ml\",\"pod\":\"p\","
	"\"pod_uid\":\"u1\",\"container\":\"c\",\"container_id\":\"" ID "\",\"job\":null,\"memory_bytes\":5,"
	"\"busy_seconds_total\":null,\"cuda\":{\"launches_total\":7}},"
	"{\"pid\":2,\"uid\":1000,\"gpu\":1,\"uuid\":\"GPU-b\",\"namespace\":\"other\",\"pod\":\"p\","
	"\"pod_uid\":\"u2\",\"container\":\"c2\",\"container_id\":null,\"job\":\"42\",\"memory_bytes\":9,"
	"\"busy_seconds_total\":1.5,\"cuda\":null},"
	"{\"pid\":3,\"uid\":null,\"gpu\":10,\"uuid\":\"GPU-ab\",\"namespace\":null,\"pod\":null,"
	"\"job\":null,\"batch_job\":{\"id\":\"42\",\"claimed\":true},"
	"\"memory_bytes\":null,\"busy_seconds_total\":2.5,\"cuda\":{\"launches_total\":8}}],"
	"\"allocations\":["
	"{\"pid\":6,\"gpu\":0,\"uuid\":\"GPU-a\",\"namespace\":\"ml\",\"pod\":\"p\",\"pod_uid\":null},"
	"{\"pid\":7,\"gpu\":1,\"uuid\":\"GPU-b\",\"job\":\"42\"}],"
	"\"traced\":[{\"pid\":4,\"gpu\":1,\"uuid\":\"GPU-b\"},{\"pid\":5,\"gpu\":null,\"uuid\":null}]}";

/* The PIDs that are left, in their order: those of `processes`, then of `traced`, then of `allocations`. */
static const char *pids_of(json_t *document)
{
	static char pids[64];
	static const char *const lists[] = { "processes", "traced", "allocations" };
	const json_t *process;
	size_t k;

	pids[0] = '\0';
	for (unsigned i = 0; i < 3; i++)
		json_array_foreach(json_object_get(document, lists[i]), k, process) {
			size_t n = strlen(pids);

			snprintf(pids + n, sizeof(pids) - n, "%d ",
				 (int)json_integer_value(json_object_get(process, "pid")));
		}
	return pids;
}

static void expect(struct selection selection, const char *pids)
{
	json_t *document = json_loads(text, 0, NULL);

	assert_non_null(document);
	document_select(document, &selection);
	assert_string_equal(pids_of(document), pids);
	json_decref(document);
}
#define EXPECT(pids_, ...) expect((struct selection){ .uid = UINT32_MAX, __VA_ARGS__ }, pids_)

static void selects_nothing_unasked(void **state)
{
	(void)state;
	EXPECT("1 2 3 4 5 6 7 ", .pod = NULL);
}

static void selects_by_pod(void **state)
{
	(void)state;
	EXPECT("1 2 6 ", .pod = "p");
	EXPECT("1 6 ", .pod = "ml/p");
	EXPECT("", .pod = "m/p");
	EXPECT("", .pod = "ml/");
	EXPECT("2 ", .pod = "u2");
	EXPECT("", .pod = "u");
}

static void selects_by_container(void **state)
{
	(void)state;
	EXPECT("1 ", .container = "c");
	EXPECT("1 ", .container = ID);
	EXPECT("1 ", .container = "0123456789ab");
	EXPECT("", .container = "0123456789a"); /* too little of an ID */
	EXPECT("", .container = ID "0");
}

static void selects_by_job_and_user(void **state)
{
	(void)state;
	EXPECT("2 7 ", .job = "42");
	EXPECT("", .job = "43");
	EXPECT("", .job = "4");
	/* Who claims to be of it is told apart. */
	EXPECT("3 ", .job = "claimed:42");
	EXPECT("", .job = "claimed:4");
	expect((struct selection){ .uid = 0 }, "1 ");
	expect((struct selection){ .uid = 1000 }, "2 ");
	expect((struct selection){ .uid = 0, .pod = "u2" }, "");
}

static void claimants_are_counted(void **state)
{
	json_t *document = json_loads(text, 0, NULL);

	(void)state;
	assert_non_null(document);
	assert_int_equal(document_claimants(document, "42"), 1);
	assert_int_equal(document_claimants(document, "43"), 0);
	assert_int_equal(document_claimants(NULL, "42"), 0);
	json_decref(document);
}

static void selects_by_gpu(void **state)
{
	(void)state;
	EXPECT("2 4 7 ", .gpu = "1");
	EXPECT("3 ", .gpu = "10");
	EXPECT("1 3 6 ", .gpu = "GPU-a");
	EXPECT("3 ", .gpu = "GPU-ab");
	EXPECT("", .gpu = "99999999999999999999");
}

/* Another version's, or a hostile one: nothing is there that is expected. */
static void survives_any_document(void **state)
{
	static const char *const texts[] = { "{}", "{\"processes\":7,\"traced\":null}",
					     "{\"processes\":[1,null,{\"pod\":1}]}" };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		json_t *document = json_loads(texts[i], 0, NULL);
		const struct selection selection = { .pod = "p", .gpu = "1", .uid = UINT32_MAX };

		document_select(document, &selection);
		assert_string_equal(pids_of(document), "");
		json_decref(document);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(selects_nothing_unasked), cmocka_unit_test(selects_by_pod),
		cmocka_unit_test(selects_by_container),    cmocka_unit_test(selects_by_job_and_user),
		cmocka_unit_test(claimants_are_counted),   cmocka_unit_test(selects_by_gpu),
		cmocka_unit_test(survives_any_document),
	};

	return cmocka_run_group_tests_name("select", tests, NULL, NULL);
}
