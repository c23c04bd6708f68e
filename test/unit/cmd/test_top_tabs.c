// SPDX-License-Identifier: Apache-2.0
/* What the tabs of "gpusonde top" show of a document. */
#include "test.h"

#include <time.h>

#include "cmd/top/growth.h"
#include "cmd/top/prune.h"
#include "cmd/top_screen.h"
#include "view/snapshot/read.h"

/* The sample's document is this node's: as it is kept, or as it would be, had nothing been left out. */
static void read_node(struct sample *sample, struct snapshot *s, bool whole)
{
	struct strbuf text, kept;

	strbuf_init(&text, 0);
	strbuf_init(&kept, 0);
	assert_int_equal(view_json_text(s, JSON_GPUS | JSON_PROCESSES | JSON_NODE, &text), 0);
	if (whole)
		strbuf_add(&kept, text.data, text.len);
	else
		prune(text.data, text.len, &kept);
	json_decref(sample->pages[PAGE_NODE]);
	snapshot_read_free(sample->snapshot);
	sample->pages[PAGE_NODE] = json_loadb(kept.data, kept.len, 0, NULL);
	assert_int_equal(snapshot_read(sample->pages[PAGE_NODE], &sample->snapshot), 0);
	strbuf_done(&text);
	strbuf_done(&kept);
}

/* An agent that is asked for less leaves out what would be left out of its whole answer. */
static void less_is_what_pruning_leaves(_unused_ void **state)
{
	static const char *const fixtures[] = { "small", "traced", "full", "empty" };
	const unsigned sections = JSON_GPUS | JSON_PROCESSES | JSON_NODE;

	for (size_t i = 0; i < ARRAY_SIZE(fixtures); i++) {
		struct snapshot *s = node_of(fixtures[i]);
		struct strbuf whole, brief, pruned;
		json_t *a, *b;

		strbuf_init(&whole, 0);
		strbuf_init(&brief, 0);
		strbuf_init(&pruned, 0);
		assert_int_equal(view_json_text(s, sections, &whole), 0);
		assert_int_equal(view_json_text(s, sections | JSON_BRIEF, &brief), 0);
		prune(whole.data, whole.len, &pruned);
		a = json_loadb(brief.data, brief.len, 0, NULL);
		b = json_loadb(pruned.data, pruned.len, 0, NULL);
		assert_non_null(a);
		assert_true(json_equal(a, b));
		json_decref(a);
		json_decref(b);
		strbuf_done(&whole);
		strbuf_done(&brief);
		strbuf_done(&pruned);
		fixture_free(s);
	}
}

/* All columns of all rows, spare ones too. */
static void add_cells(struct strbuf *out)
{
	unsigned n;
	const struct column *columns = tab_columns(top.rows_tab, &n);

	for (uint32_t i = 0; i < top.rows.n; i++)
		for (unsigned k = 0; k < n; k++) {
			struct value value;

			column_text(top.rows.list[i].sample, &top.rows.list[i], &columns[k], &value);
			strbuf_addf(out, "%s %d\n", value.text, value.role);
		}
}

static char *all_that_is_shown(void)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	for (unsigned bars = 0; bars < 2; bars++)
		for (unsigned i = 0; i < top_tabs(&top); i++) {
			top.bars = bars;
			top.tab = (enum tab)i;
			strbuf_adds(&out, draw(200, 60));
			add_cells(&out);
		}
	return strbuf_take(&out);
}

static void nothing_that_is_shown_is_left_out(_unused_ void **state)
{
	static const char *const fixtures[] = { "small", "traced", "full" };

	for (size_t i = 0; i < ARRAY_SIZE(fixtures); i++) {
		struct snapshot *s = node_of(fixtures[i]);
		char *pruned, *whole;

		begin(fixtures[i]);
		read_node(top.sample, s, false);
		pruned = all_that_is_shown();
		read_node(top.sample, s, true);
		whole = all_that_is_shown();
		assert_string_equal(pruned, whole);
		free(pruned);
		free(whole);
		end();
		fixture_free(s);
	}
}

/* A moment of the node: what its sums are, and when. */
static struct sample *sample_with(double sum, int at_s)
{
	struct snapshot *s = fixture_small();
	struct inference_server *server = &s->servers.list[0];
	struct host_device *disk = &s->host.devices[HOST_DISKS].list[0];
	struct host_device *interface = &s->host.devices[HOST_INTERFACES].list[0];
	struct sample *sample;

	s->real_ns += at_s * NSEC_PER_SEC;
	s->boot_ns += at_s * NSEC_PER_SEC;
	server->read_boot_ns = s->boot_ns;
	server->v[SERVER_TOKENS_PROMPT] = 50 * sum;
	server->v[SERVER_TOKENS_GENERATED] = 20 * sum;
	for (unsigned row = HOST_CPU_USER; row <= HOST_CPU_STEAL; row++) {
		s->host.p[row] = PRESENCE_PRESENT;
		s->host.v[row] = 0;
	}
	s->host.v[HOST_CPU_USER] = sum;
	s->host.v[HOST_CPU_IDLE] = 3 * sum;
	disk->v[DISK_READ_BYTES] = 2097152 * sum;
	interface->v[INTERFACE_RECEIVE_ERRORS] = 7 * sum;
	/* Begun anew: the sum of both is not known. */
	interface->v[INTERFACE_SEND_ERRORS] = sum > 10 ? 0 : 5;
	sample = sample_of(s, false);
	fixture_free(s);
	return sample;
}

static void has_row(const char *screen, const char *first, const char *second, const char *third)
{
	const char *at = strstr(screen, first);
	size_t n = at ? strcspn(at, "\n") : 0;
	char *line = strndup(at ? at : "", n);

	assert_true(*line && strstr(line, second) && strstr(line, third));
	free(line);
}

static void rates_are_shown(_unused_ void **state)
{
	struct sample *before = sample_with(10, 0);
	const char *screen;

	begin("small");
	sample_free(top.sample);
	top.sample = sample_with(14, 2);
	growth_follow(top.sample, before);
	top.tab = TAB_SERVERS;
	screen = draw(160, 30);
	has_row(screen, "vllm", "100.0/s", "40.0/s");
	has_row(screen, "llama.cpp", "elsewhere", "a \"reason\"");
	assert_null(strstr(strstr(screen, "llama.cpp"), "/s"));
	top.tab = TAB_MACHINE;
	screen = draw(160, 30);
	has_row(screen, "CPU", "25 %", "");
	has_row(screen, "user", "25 %", "system");
	has_row(screen, "nvme0n1", "4.0 MiB/s", "0 %");
	has_row(screen, "ib\"0", "0 B/s", "-");
	assert_null(strstr(strstr(screen, "ib\"0"), "14.0/s"));
	end();
	sample_free(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(less_is_what_pruning_leaves),
		cmocka_unit_test(nothing_that_is_shown_is_left_out),
		cmocka_unit_test(rates_are_shown),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests_name("top_tabs", tests, NULL, NULL);
}
