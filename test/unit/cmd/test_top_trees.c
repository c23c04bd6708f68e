// SPDX-License-Identifier: Apache-2.0
/* Processes of "gpusonde top" in groups: what their headings say, and which are closed. */
#include "test.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "cmd/top_screen.h"

static void begin_tree(const char *fixture, enum group_by by)
{
	begin(fixture);
	if (!STRV_EQ(fixture, "small"))
		add_host(top.sample);
	press('2');
	while (top.by != by)
		press('g');
	top.message[0] = '\0';
}

static void trees(_unused_ void **state)
{
	static const struct {
		const char *fixture;
		enum group_by by;
		int columns, rows;
	} kept[] = {
		{ "small", GROUP_CONTAINER, 60, 16 }, { "small", GROUP_CONTAINER, 120, 24 },
		{ "small", GROUP_USER, 80, 24 },      { "full", GROUP_JOB, 120, 40 },
		{ "traced", GROUP_POD, 200, 24 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		char name[80];

		begin_tree(kept[i].fixture, kept[i].by);
		snprintf(name, sizeof(name), "%s-tree-%s-%dx%d.txt", kept[i].fixture,
			 group_by_name(kept[i].by), kept[i].columns, kept[i].rows);
		is_as_kept("test/unit/cmd/screens", name, draw(kept[i].columns, kept[i].rows));
		end();
	}
}

static const struct row *heading_at(uint32_t row)
{
	assert_true(row < top.rows.n);
	assert_non_null(top.rows.list[row].heading);
	return &top.rows.list[row];
}

/* What `ps --by` says of the same node. */
static void headings_are_the_sums_of_json(_unused_ void **state)
{
	_cleanup_free_ struct group *groups = NULL;
	unsigned columns_n, memory = 0;
	const struct column *columns = tab_columns(TAB_PROCESSES, &columns_n);
	uint32_t n = 0, headings = 0, of[16];
	struct value value;

	while (!STRV_EQ(columns[memory].title, "GPU MEM"))
		memory++;
	begin_tree("small", GROUP_CONTAINER);
	assert_int_equal(groups_make(top.sample->snapshot, GROUP_CONTAINER, &groups, &n), 0);
	assert_int_equal(groups_of_processes(top.sample->snapshot, GROUP_CONTAINER, groups, n, of), 0);
	top_make_rows(&top);
	for (uint32_t i = 0; i < top.rows.n; i++) {
		const struct row *row = &top.rows.list[i];
		const struct group *group;

		if (!row->heading)
			continue;
		group = &groups[of[row[1].process - top.sample->snapshot->processes]];
		column_value(top.sample, row, &columns[memory], &value);
		assert_int_equal(value.known, group->known[GROUP_MEMORY]);
		assert_true(!value.known || value.number == group->v[GROUP_MEMORY]);
		headings++;
	}
	assert_int_equal(headings, 2);
	end();
}

/* Of what one process lacks there is no sum; a process of two GPUs is added once. */
static void the_host_counts_a_process_once(_unused_ void **state)
{
	struct snapshot *s;

	begin("small");
	s = top.sample->snapshot;
	for (uint32_t i = 0; i < s->processes_n; i++)
		s->processes[i].uid = 7;
	s->processes[1].id.pid = s->processes[0].id.pid;
	add_host(top.sample);
	for (uint32_t i = 0; i < s->processes_n; i++)
		top.sample->processes[i].threads = 10;
	/* By PID, each once. */
	memmove(&top.sample->processes[1], &top.sample->processes[2],
		(s->processes_n - 2) * sizeof(*top.sample->processes));
	top.sample->processes_n--;
	press('2');
	top.by = GROUP_USER;
	top_make_rows(&top);
	assert_true(heading_at(0)->heading->host.threads == 10.0 * (s->processes_n - 1));
	assert_true(heading_at(0)->heading->host.cores_known);
	top.sample->processes[0].cores = -1;
	top_make_rows(&top);
	assert_false(heading_at(0)->heading->host.cores_known);
	assert_true(heading_at(0)->heading->host.known);
	top.sample->processes_n = 1;
	top_make_rows(&top);
	assert_false(heading_at(0)->heading->host.known);
	end();
}

static void groups_are_closed_and_opened(_unused_ void **state)
{
	struct event click = { .type = EVENT_CLICK, .column = 3 };
	uint32_t open, headings;

	begin_tree("small", GROUP_CONTAINER);
	press('o');
	assert_non_null(strstr(top.message, "select a group"));
	draw(120, 24);
	open = top.rows.n;
	press(KEY_CODE_HOME);
	press(KEY_CODE_DOWN);
	assert_null(top_selected(&top)->heading);
	press('o');
	assert_non_null(strstr(draw(120, 24), "\u25b8 "));
	assert_true(heading_at(0)->heading->closed);
	assert_int_equal(top.rows.n, open - heading_at(0)->heading->shown);
	assert_int_equal(top.views[TAB_PROCESSES].selected, 0);
	/* Remembered, whatever else is looked at. */
	press('1');
	draw(120, 24);
	press('2');
	draw(120, 24);
	assert_true(heading_at(0)->heading->closed);
	press(KEY_CODE_ENTER);
	draw(120, 24);
	assert_int_equal(top.mode, MODE_TABLE);
	assert_int_equal(top.rows.n, open);
	click.row = top.table_row;
	keys_take(&top, &click, 120);
	draw(120, 24);
	assert_true(heading_at(0)->heading->closed);
	/* A signal is for a process. */
	press('k');
	assert_int_equal(top.mode, MODE_TABLE);
	press('O');
	draw(120, 24);
	headings = top.rows.n;
	for (uint32_t i = 0; i < headings; i++)
		assert_true(heading_at(i)->heading->closed);
	press('O');
	draw(120, 24);
	assert_int_equal(top.rows.n, open);
	press('g');
	while (top.by != GROUP_NONE)
		press('g');
	press('o');
	assert_non_null(strstr(top.message, "not in groups"));
	end();
}

static uint64_t search(const char *text)
{
	press('/');
	type(text);
	press(KEY_CODE_ENTER);
	draw(120, 24);
	return top.views[TAB_PROCESSES].selected_id;
}

/* What is in a closed group is found, and its group, not the others, is open then. */
static void a_search_opens_groups(_unused_ void **state)
{
	uint32_t all, last, closed = 0;
	char pid[16];

	begin_tree("small", GROUP_CONTAINER);
	draw(120, 24);
	all = top.rows.n;
	last = top.rows.list[all - 1].process->id.pid;
	snprintf(pid, sizeof(pid), "%" PRIu32, last);
	press('O');
	draw(120, 24);
	assert_true(top.rows.n < all);
	assert_int_not_equal(search(pid), 0);
	assert_int_equal(top_selected(&top)->process->id.pid, last);
	assert_non_null(strstr(top.message, "its group was closed"));
	for (uint32_t i = 0; i < top.rows.n; i++)
		closed += top.rows.list[i].heading && top.rows.list[i].heading->closed;
	assert_true(closed > 0);
	assert_true(top.rows.n < all);
	/* The next one is before it, and so is the group's name. */
	press('n');
	assert_int_equal(top_selected(&top)->process->id.pid, last);
	search("zzz");
	assert_non_null(strstr(top.message, "no row has"));
	end();
}

/* By their sums; what a filter hides is still in the sums, and it is said. */
static void groups_are_sorted_and_filtered(_unused_ void **state)
{
	double before = INFINITY;

	begin_tree("full", GROUP_JOB);
	draw(160, 60);
	for (uint32_t i = 0; i < top.rows.n; i++) {
		const struct heading *heading = top.rows.list[i].heading;

		if (!heading || !heading->keys[0].known)
			continue;
		assert_true(heading->keys[0].number <= before);
		before = heading->keys[0].number;
	}
	end();
	begin_tree("small", GROUP_USER);
	press('f');
	type("pid=1001");
	press(KEY_CODE_ENTER);
	assert_non_null(strstr(draw(120, 24), " rows)"));
	assert_int_equal(heading_at(0)->heading->shown, 1);
	assert_int_equal(top.rows.n, 2);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trees),
		cmocka_unit_test(headings_are_the_sums_of_json),
		cmocka_unit_test(the_host_counts_a_process_once),
		cmocka_unit_test(groups_are_closed_and_opened),
		cmocka_unit_test(a_search_opens_groups),
		cmocka_unit_test(groups_are_sorted_and_filtered),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests_name("top_trees", tests, NULL, NULL);
}
