// SPDX-License-Identifier: Apache-2.0
/* There and back: what an agent's document says is what its snapshot said. */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "client.h"
#include "fixture.h"
#include "view/snapshot/read.h"
#include "view/view.h"

enum { SECTIONS = JSON_GPUS | JSON_PROCESSES | JSON_NODE };

static struct snapshot *fixture_with_marks(void)
{
	struct snapshot *s = fixture_small();

	snprintf(s->sources[s->device_source].unrecognised, sizeof(s->sources[0].unrecognised),
		 "architecture 99");
	s->fresh = false;
	snprintf(s->not_fresh_reason, sizeof(s->not_fresh_reason), "the driver hangs");
	s->entities[0].id.process_list = PRESENCE_NO_PERMISSION;
	s->entities[1].sampled_boot_ns = 0;
	return s;
}

static struct snapshot *fixtures(unsigned i)
{
	switch (i) {
	case 0:
		return fixture_small();
	case 1:
		return fixture_full();
	case 2:
		return fixture_traced();
	case 3:
		return fixture_untraced();
	case 4:
		return fixture_empty();
	case 5:
		return fixture_busy(300, 10);
	case 6:
		return fixture_with_marks();
	default:
		return NULL;
	}
}

/* As it is sent: text, not a tree. */
static struct snapshot *decoded(const struct snapshot *s)
{
	struct snapshot *read;
	json_t *document = client_document(s, SECTIONS);

	assert_int_equal(snapshot_read(document, &read), 0);
	json_decref(document);
	return read;
}

static void same_table(const struct snapshot *a, const struct snapshot *b,
		       int (*table)(const struct snapshot *s, const struct table_options *options,
				    struct strbuf *out))
{
	const struct table_options options = { .colour = true };
	struct strbuf x, y;

	strbuf_init(&x, 0);
	strbuf_init(&y, 0);
	assert_int_equal(table(a, &options, &x), 0);
	assert_int_equal(table(b, &options, &y), 0);
	assert_string_equal(x.data, y.data);
	strbuf_done(&x);
	strbuf_done(&y);
}

static void tables_are_those_of_the_snapshot(void **state)
{
	struct snapshot *s, *read;

	(void)state;
	for (unsigned i = 0; (s = fixtures(i)); i++) {
		read = decoded(s);
		same_table(s, read, table_gpus);
		same_table(s, read, table_processes);
		same_table(s, read, table_node);
		snapshot_read_free(read);
		fixture_free(s);
	}
}

/* All of its numbers, presences and texts: the document of what was decoded is the document. */
static void documents_are_those_of_the_snapshot(void **state)
{
	struct snapshot *s, *read;
	json_t *a, *b, *member;
	const char *key;

	(void)state;
	for (unsigned i = 0; (s = fixtures(i)); i++) {
		read = decoded(s);
		a = client_document(s, SECTIONS);
		b = client_document(read, SECTIONS);
		json_object_foreach(a, key, member)
			if (!json_equal(member, json_object_get(b, key)))
				fail_msg("%u: %s differs:\n%s\n%s", i, key,
					 json_dumps(member, JSON_ENCODE_ANY),
					 json_dumps(json_object_get(b, key), JSON_ENCODE_ANY));
		json_decref(a);
		json_decref(b);
		snapshot_read_free(read);
		fixture_free(s);
	}
}

static int read_text(const char *text, struct snapshot **ret_snapshot)
{
	json_t *document = json_loads(text, JSON_DECODE_ANY, NULL);
	int r;

	assert_non_null(document);
	r = snapshot_read(document, ret_snapshot);
	json_decref(document);
	return r;
}

static void what_is_missing_is_absent(void **state)
{
	struct snapshot *s;

	(void)state;
	assert_int_equal(read_text("{\"gpus\":[{\"gpu\":3,\"uuid\":\"u\"}],"
				   "\"processes\":[{\"pid\":7,\"uuid\":\"u\"},{\"pid\":8,\"uuid\":\"v\"}]}",
				   &s),
			 0);
	assert_int_equal(s->entities_n, 1);
	for (unsigned slot = 0; slot < GPU_SLOTS; slot++)
		assert_false(presence_is(s->entities[0].id.p[slot]));
	assert_int_equal(s->entities[0].processes_live, UINT32_MAX);
	assert_int_equal(s->entities[0].sampled_boot_ns, 0);
	/* On a GPU that is not in the document there is nothing. */
	assert_int_equal(s->processes_n, 1);
	assert_int_equal(s->processes[0].uid, UINT32_MAX);
	assert_int_equal(s->processes[0].workload, READING_NONE);
	assert_false(presence_is(s->processes[0].p[PROCESS_MEMORY]));
	assert_null(s->trace);
	snapshot_read_free(s);
}

static void other_things_are_refused(void **state)
{
	struct snapshot *s = NULL;
	struct strbuf text;

	(void)state;
	assert_int_equal(read_text("[]", &s), -EBADMSG);
	assert_int_equal(read_text("7", &s), -EBADMSG);
	strbuf_init(&text, 0);
	strbuf_adds(&text, "{\"gpus\":[{}");
	for (unsigned i = 0; i < READING_ENTITIES_MAX; i++)
		strbuf_adds(&text, ",{}");
	strbuf_adds(&text, "]}");
	assert_int_equal(read_text(text.data, &s), -E2BIG);
	strbuf_reset(&text);
	strbuf_adds(&text, "{\"processes\":[{}");
	for (unsigned i = 0; i < READING_PROCESSES_MAX; i++)
		strbuf_adds(&text, ",{}");
	strbuf_adds(&text, "]}");
	assert_int_equal(read_text(text.data, &s), -E2BIG);
	assert_null(s);
	strbuf_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_those_of_the_snapshot),
		cmocka_unit_test(documents_are_those_of_the_snapshot),
		cmocka_unit_test(what_is_missing_is_absent),
		cmocka_unit_test(other_things_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
