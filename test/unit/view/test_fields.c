// SPDX-License-Identifier: Apache-2.0
#include "view/fields/fields.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char text[] =
	"[{\"id\": 1, \"name\": \"a,\\\"x\\\"\", \"bytes\": 1073741824, \"clock\": {\"sm\": 5}, "
	"\"up\": [1, 0], \"on\": true},"
	" {\"id\": 2, \"name\": \"B\", \"bytes\": 10, \"clock\": {\"sm\": 7.5}, \"up\": [], "
	"\"list\": [{\"x\": 1}]},"
	" {\"id\": 3, \"name\": null, \"bytes\": null, \"clock\": null}]";

static json_t *rows_of(const char *json)
{
	json_t *rows = json_loads(json, 0, NULL);

	assert_non_null(rows);
	return rows;
}

static void names_of_members(void **state)
{
	json_t *rows = rows_of(text);
	const json_t *first = json_array_get(rows, 0), *last = json_array_get(rows, 2);

	(void)state;
	assert_int_equal(json_integer_value(field_of(first, "clock.sm")), 5);
	assert_int_equal(json_integer_value(field_of(first, "up.1")), 0);
	assert_null(field_of(first, "up.2"));
	assert_null(field_of(first, "up.x"));
	assert_null(field_of(first, "id.sm"));
	assert_null(field_of(first, ""));
	assert_null(field_of(last, "name"));
	assert_null(field_of(last, "clock.sm"));
	assert_null(field_of(NULL, "id"));
	json_decref(rows);
}

/* The IDs of the rows that a filter takes; "!": it is refused. */
static void expect_taken(const char *filter_text, const char *ids)
{
	json_t *rows = rows_of(text), *row;
	struct field_filter parsed, filter;
	struct strbuf out;
	size_t i;

	strbuf_init(&out, 0);
	strbuf_adds(&out, "");
	if (field_filter_parse(filter_text, &parsed) < 0) {
		strbuf_addc(&out, '!');
	} else {
		/* A copy is one of its own. */
		filter = parsed;
		memset(&parsed, 0, sizeof(parsed));
		json_array_foreach(rows, i, row) {
			if (field_filter_takes(&filter, row))
				field_add_text(field_of(row, "id"), &out);
		}
	}
	assert_string_equal(out.data ? out.data : "", ids);
	strbuf_done(&out);
	json_decref(rows);
}

static void filters(void **state)
{
	(void)state;
	expect_taken("id=2", "2");
	expect_taken("id!=2", "13");
	expect_taken("id>=2,id<3", "2");
	expect_taken("bytes=1GiB", "1");
	expect_taken("bytes<1KiB", "2");
	expect_taken("bytes=1G", "1");
	expect_taken("bytes<1 k", "2");
	expect_taken("clock.sm>750%", "");
	expect_taken("clock.sm<=750%", "12");
	expect_taken("name~b", "2");
	expect_taken("name=B", "2");
	expect_taken("name=b", "");
	expect_taken("on=true", "1");
	/* What is unknown is equal to null, and neither more nor less than anything. */
	expect_taken("bytes=null", "3");
	expect_taken("bytes!=null", "12");
	expect_taken("bytes<0", "");
	expect_taken("bytes!=10", "13");
	expect_taken("no.such<1", "");
	for (size_t i = 0; i < 6; i++)
		expect_taken(((const char *const[]){ "", "id", "=1", ",", "id=1,x", "!" })[i], "!");
}

static bool takes(const char *filter_text, const char *row_text)
{
	json_t *row = rows_of(row_text);
	struct field_filter filter;
	bool taken;

	assert_int_equal(field_filter_parse(filter_text, &filter), 0);
	taken = field_filter_takes(&filter, row);
	json_decref(row);
	return taken;
}

static void null_may_be_in_a_text(void **state)
{
	(void)state;
	assert_true(takes("name~null", "{\"name\": \"a nullity\"}"));
	assert_false(takes("name~null", "{\"name\": null}"));
	assert_false(takes("name=null", "{\"name\": \"a nullity\"}"));
}

static void expect_misfit(const char *filter_text, const char *name)
{
	json_t *rows = rows_of(text);
	struct field_filter filter;
	const char *misfit;

	assert_int_equal(field_filter_parse(filter_text, &filter), 0);
	misfit = field_filter_misfit(&filter, rows);
	assert_string_equal(misfit ? misfit : "", name);
	json_decref(rows);
}

static void figures_are_compared_with_numbers(void **state)
{
	(void)state;
	expect_misfit("id>1,bytes>2 pounds", "bytes");
	expect_misfit("bytes=much", "bytes");
	expect_misfit("bytes>1GiB,bytes!=null,bytes~07,name>b,on=true", "");
}

static void expect_order(const char *names, const char *ids)
{
	json_t *rows = rows_of(text);
	struct field_list list;
	struct strbuf out;

	strbuf_init(&out, 0);
	assert_int_equal(field_list_parse(names, &list), 0);
	assert_int_equal(fields_sort(rows, &list), 0);
	for (size_t i = 0; i < json_array_size(rows); i++)
		field_add_text(field_of(json_array_get(rows, i), "id"), &out);
	assert_string_equal(out.data, ids);
	strbuf_done(&out);
	json_decref(rows);
}

static void sorts(void **state)
{
	(void)state;
	expect_order("bytes", "123");
	expect_order("+bytes", "213");
	expect_order("id", "321");
	expect_order("+id", "123");
	expect_order("name", "213"); /* by bytes: B before a */
	expect_order("-name", "123");
	expect_order("no_such,+id", "123");
}

static void lists_are_checked(void **state)
{
	char longest[2 * FIELD_NAME_MAX], many[4 * FIELDS_MAX] = "a";
	struct field_list list;

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[FIELD_NAME_MAX - 1] = '\0';
	assert_int_equal(field_list_parse(longest, &list), 0);
	longest[FIELD_NAME_MAX - 1] = 'x';
	longest[FIELD_NAME_MAX] = '\0';
	assert_int_equal(field_list_parse(longest, &list), -EINVAL);
	for (unsigned i = 1; i < FIELDS_MAX; i++)
		strcat(many, ",a");
	assert_int_equal(field_list_parse(many, &list), 0);
	assert_int_equal(list.n, FIELDS_MAX);
	strcat(many, ",a");
	assert_int_equal(field_list_parse(many, &list), -EINVAL);
	assert_int_equal(field_list_parse("", &list), -EINVAL);
	assert_int_equal(field_list_parse("a,,b", &list), -EINVAL);
}

static void writes_csv(void **state)
{
	json_t *rows = rows_of(text);
	struct field_list list;
	struct strbuf out;

	(void)state;
	strbuf_init(&out, 0);
	assert_int_equal(fields_csv(rows, NULL, &out), 0);
	assert_string_equal(out.data, "id,name,bytes,clock.sm,up,on\n"
				      "1,\"a,\"\"x\"\"\",1073741824,5,1 0,true\n"
				      "2,B,10,7.5,,\n"
				      "3,,,,,\n");
	strbuf_reset(&out);
	assert_int_equal(field_list_parse("up.0,id", &list), 0);
	assert_int_equal(fields_csv(rows, &list, &out), 0);
	assert_string_equal(out.data, "up.0,id\n1,1\n,2\n,3\n");
	strbuf_done(&out);
	json_decref(rows);
}

/* Users choose names. */
static void csv_has_no_control_characters(void **state)
{
	json_t *rows = rows_of("[{\"name\": \"\\u001b[31m,\\n\"}]");
	struct strbuf out;

	(void)state;
	strbuf_init(&out, 0);
	assert_int_equal(fields_csv(rows, NULL, &out), 0);
	assert_string_equal(out.data, "name\n\"?[31m,?\"\n");
	strbuf_done(&out);
	json_decref(rows);
}

/* No field is left out in silence. */
static void long_names_are_refused(void **state)
{
	char name[FIELD_NAME_MAX + 1];
	json_t *rows;
	struct strbuf out;

	(void)state;
	strbuf_init(&out, 0);
	memset(name, 'x', sizeof(name));
	for (size_t n = FIELD_NAME_MAX - 1; n <= FIELD_NAME_MAX; n++) {
		name[n] = '\0';
		rows = json_pack("[{s:i}]", name, 1);
		assert_int_equal(fields_csv(rows, NULL, &out), n < FIELD_NAME_MAX ? 0 : -EBADMSG);
		json_decref(rows);
		name[n] = 'x';
	}
	strbuf_done(&out);
}

static void writes_tables(void **state)
{
	json_t *rows = rows_of(
		"[{\"used_bytes\": 1536, \"load_ratio\": {\"gpu\": 0.5}, \"name\": \"\\u001b[31mred\"}]");
	const struct table_options options = { 0 };
	struct field_list list;
	struct strbuf out;

	(void)state;
	strbuf_init(&out, 0);
	assert_int_equal(field_list_parse("name,used_bytes,load_ratio.gpu,x", &list), 0);
	assert_int_equal(table_fields(rows, &list, &options, &out), 0);
	assert_string_equal(out.data, "name      used_bytes  load_ratio.gpu  x\n"
				      "?[31mred     1.5 KiB          50.0 %  -\n");
	strbuf_done(&out);
	json_decref(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_members),
		cmocka_unit_test(filters),
		cmocka_unit_test(null_may_be_in_a_text),
		cmocka_unit_test(figures_are_compared_with_numbers),
		cmocka_unit_test(sorts),
		cmocka_unit_test(lists_are_checked),
		cmocka_unit_test(writes_csv),
		cmocka_unit_test(csv_has_no_control_characters),
		cmocka_unit_test(long_names_are_refused),
		cmocka_unit_test(writes_tables),
	};

	return cmocka_run_group_tests_name("fields", tests, NULL, NULL);
}
