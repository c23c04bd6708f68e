// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/moment.h"
#include "cmd/recording/document.h"
#include "cmd/recording/replay_serve.h"
#include "cmd/recording/report.h"
#include "view/fixture.h"
#include "view/json/json.h"

#define SECOND INT64_C(1000000000)

/* ---- times ---- */

static void test_moments(_unused_ void **state)
{
	static const struct {
		const char *text;
		int64_t seconds;
	} good[] = {
		{ "2026-01-31", 1769817600 },
		{ "2026-01-31T23:59", 1769903940 },
		{ "2026-01-31 23:59:07Z", 1769903947 },
		{ "2026-02-01T00:59+01:00", 1769903940 },
		{ "10m", 1769903340 },
	};
	static const char *const bad[] = { "",
					   "now",
					   "2026-13-01",
					   "2026-01-31T24:00",
					   "2026-01-31T1:2:3x",
					   "-10m",
					   "2026-01-31T23:59+1",
					   "99999999999h",
					   "2026-01-31T23:59:" };
	int64_t ns;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(moment_parse(good[i].text, 1769903940 * SECOND, &ns), 0);
		assert_int_equal(ns, good[i].seconds * SECOND);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_true(moment_parse(bad[i], 1769903940 * SECOND, &ns) < 0);
}

/* ---- pages of a replay ---- */

static void check_text(void (*change)(const struct strbuf *page, int64_t real_ns, struct strbuf *out),
		       const char *text, const char *wanted)
{
	struct strbuf page, out;

	strbuf_init(&page, 0);
	strbuf_init(&out, 0);
	strbuf_adds(&page, text);
	change(&page, 1769903940 * SECOND + 5000000, &out);
	assert_string_equal(out.data, wanted);
	strbuf_done(&page);
	strbuf_done(&out);
}

static void test_samples_have_the_time_of_a_replay(_unused_ void **state)
{
	check_text(replay_stamp, "# HELP a A.\n# TYPE a gauge\na{b=\"#\"} 1\n\na 2e9\n",
		   "# HELP a A.\n# TYPE a gauge\na{b=\"#\"} 1 1769903940005\n\na 2e9 1769903940005\n");
	check_text(replay_stamp, "a 1", "a 1 1769903940005\n");
	check_text(replay_stamp, "", "");
}

static void test_documents_say_that_they_are_of_a_replay(_unused_ void **state)
{
	check_text(replay_mark, "{\"a\":{}}\n", "{\"replay\":\"2026-01-31T23:59:00.005Z\",\"a\":{}}\n");
	check_text(replay_mark, "{}\n", "{\"replay\":\"2026-01-31T23:59:00.005Z\"}\n");
	check_text(replay_mark, "", "");
}

/* ---- documents ---- */

static void make_document(enum document_format format, struct strbuf *out)
{
	static const char *const headings[] = { "<NAME", "COUNT" };
	struct document d;

	strbuf_init(out, 0);
	document_begin(&d, format, "A <report>", out);
	document_heading(&d, "Part");
	document_table(&d, 2, headings);
	document_cell(&d, "<script>alert(1)</script>|\x1b[31m\n\xff");
	document_cell(&d, "%d", 12);
	document_table_end(&d, "None.");
	document_table(&d, 2, headings);
	document_table_end(&d, "None.");
	document_raw(&d, "<svg></svg>");
	document_end(&d);
}

static void test_hostile_names(_unused_ void **state)
{
	struct strbuf out;

	make_document(DOCUMENT_HTML, &out);
	assert_null(strstr(out.data, "<script"));
	assert_non_null(strstr(out.data, "&lt;script&gt;alert(1)&lt;/script&gt;|?[31m??"));
	assert_non_null(strstr(out.data, "<svg>"));
	assert_non_null(strstr(out.data, "default-src 'none'"));
	strbuf_done(&out);
	make_document(DOCUMENT_MARKDOWN, &out);
	assert_non_null(strstr(out.data, "\\<script\\>alert(1)\\</script\\>\\|?\\[31m??"));
	assert_null(strstr(out.data, "<svg>"));
	strbuf_done(&out);
	make_document(DOCUMENT_TEXT, &out);
	assert_null(strchr(out.data, '\x1b'));
	assert_non_null(strstr(out.data, "None.\n"));
	strbuf_done(&out);
}

/* ---- accounts ---- */

static struct account *new_account(const struct selection *selection)
{
	struct account *account;

	assert_int_equal(account_new(selection, 0, INT64_MAX / 2, &account), 0);
	return account;
}

static void later(struct snapshot *s, double seconds)
{
	s->boot_ns += (int64_t)(seconds * 1e9);
	s->real_ns += (int64_t)(seconds * 1e9);
}

static const struct account_who *find_who(const struct account *account, enum workload_kind kind,
					  const char *id)
{
	for (uint32_t i = 0; i < account->who_n; i++)
		if (account->who[i].kind == kind && STRV_EQ(account->who[i].id, id))
			return &account->who[i];
	return NULL;
}

static void test_differences_are_added_up(_unused_ void **state)
{
	const struct selection everybody = { .uid = UINT32_MAX };
	struct account *account = new_account(&everybody);
	struct snapshot *s = fixture_small();
	const struct account_who *job;

	account_add(account, s, SECOND);
	assert_true(account->gpus[0].busy.known);
	assert_true(account->gpus[0].busy.value == 0); /* what was before is not of this time */
	later(s, 1);
	s->entities[0].id.v[SLOT_BUSY_GPU] += 0.5;
	s->processes[1].v[PROCESS_BUSY] += 0.25; /* of the job 4711 */
	account_add(account, s, SECOND);
	later(s, 1);
	s->entities[0].id.v[SLOT_BUSY_GPU] = 0.125; /* the agent was started again */
	account_add(account, s, SECOND);
	later(s, 3600); /* nothing was recorded */
	account_add(account, s, SECOND);
	account_finish(account);
	assert_true(account->gpus[0].busy.value == 0.625);
	assert_true(account->gpus[0].energy.estimated);
	assert_true(account->covered_seconds == 2 && account->missing_seconds == 3600);
	job = find_who(account, WORKLOAD_JOB, "4711");
	assert_non_null(job);
	assert_true(job->busy.value == 0.25);
	assert_int_equal(job->processes, 1);
	assert_false(job->launches.known);
	account_free(account);
	fixture_free(s);
}

/* A process that comes later is counted from its beginning, also by its exit record alone. */
static void test_who_came_and_went(_unused_ void **state)
{
	const struct selection everybody = { .uid = UINT32_MAX };
	struct account *account = new_account(&everybody);
	struct snapshot *s = fixture_small();
	uint32_t exited = s->exited_n;
	const struct account_who *who;

	s->exited_n = 0;
	account_add(account, s, SECOND);
	later(s, 1);
	s->exited_n = exited;
	s->exited[0].workload = 0;
	account_add(account, s, SECOND);
	s->exited_n = 0;
	later(s, 1);
	account_add(account, s, SECOND);
	account_finish(account);
	who = find_who(account, WORKLOAD_CONTAINER, s->workloads[0].id);
	assert_non_null(who);
	assert_true(who->busy.value == 90);
	assert_int_equal(who->ended, 1);
	assert_int_equal(who->processes, 2);
	account_free(account);
	fixture_free(s);
}

static void test_only_who_is_selected(_unused_ void **state)
{
	const struct selection pod = { .pod = "ml/train-0", .uid = UINT32_MAX };
	struct account *account = new_account(&pod);
	struct snapshot *s = fixture_small();

	account_add(account, s, SECOND);
	account_finish(account);
	for (uint32_t i = 0; i < account->who_n; i++)
		assert_string_equal(account->who[i].pod, "train-0");
	assert_true(account->who_n > 0);
	assert_true(account_selects(account));
	account_free(account);
	fixture_free(s);
}

/* ---- whose it was ---- */

enum { OWN_PODS = 3 };

/* Each has a bit of its own, so a sum says whose it is of; the exited one comes by its exit record alone. */
static const struct {
	enum workload_kind kind;
	const char *id;
	uint32_t pod; /* number of its owner plus 1 */
	const char *job;
	bool claimed, exited;
	uint32_t uid;
} own[] = {
	{ WORKLOAD_CONTAINER, "aaaaaaaaaaaa01", 1, NULL, false, false, 1000 },
	{ WORKLOAD_CONTAINER, "aaaaaaaaaaaa02", 2, NULL, false, false, 1000 },
	{ WORKLOAD_CONTAINER, "bbbbbbbbbbbb03", 3, NULL, false, false, 1000 },
	{ WORKLOAD_JOB, "42", 0, "42", false, false, 1007 },
	{ WORKLOAD_JOB, "42", 0, "42", false, true, 1007 },
	{ WORKLOAD_JOB, "43", 0, "43", false, true, 1007 },
	{ WORKLOAD_NONE, "", 0, "42", true, false, 1000 },
	{ WORKLOAD_NONE, "", 0, NULL, false, true, 1007 },
};

static void add_own_process(struct snapshot *s, unsigned i)
{
	struct process *p = own[i].exited ? &s->exited[s->exited_n++] : &s->processes[s->processes_n++];
	struct workload *w = &s->workloads[i];

	*p = (struct process){ .id = { .pid = 100 + i, .start_ticks = 7 },
			       .uid = own[i].uid,
			       .workload = own[i].kind == WORKLOAD_NONE ? READING_NONE : (uint16_t)i,
			       .job = own[i].job ? i : JOB_NONE,
			       .exited = own[i].exited };
	p->p[PROCESS_BUSY] = p->p[PROCESS_ENERGY] = p->p[PROCESS_MEMORY] = PRESENCE_PRESENT;
	p->v[PROCESS_MEMORY] = (double)(1u << i);
	*w = (struct workload){ .kind = own[i].kind, .job = JOB_NONE, .uid = UINT32_MAX };
	strcpy(w->id, own[i].id);
	s->jobs[i] = (struct job){ .claimed = own[i].claimed };
	strcpy(s->jobs[i].id, own[i].job ? own[i].job : "");
}

/* Names of containers come later, as those of kubelet do. */
static void name_own(struct snapshot *s, const struct owner owners[static OWN_PODS])
{
	for (unsigned i = 0; i < ARRAY_SIZE(own); i++)
		if (own[i].pod > 0)
			s->workloads[i].owner = &owners[own[i].pod - 1];
}

static struct snapshot *own_snapshot(void)
{
	struct snapshot *s = fixture_small();

	free(s->processes);
	free(s->exited);
	free(s->workloads);
	free(s->jobs);
	s->processes = calloc(ARRAY_SIZE(own), sizeof(*s->processes));
	s->exited = calloc(ARRAY_SIZE(own), sizeof(*s->exited));
	s->workloads = calloc(ARRAY_SIZE(own), sizeof(*s->workloads));
	s->jobs = calloc(ARRAY_SIZE(own), sizeof(*s->jobs));
	s->processes_n = s->exited_n = s->allocated_n = 0;
	s->workloads_n = s->jobs_n = ARRAY_SIZE(own);
	for (unsigned i = 0; i < ARRAY_SIZE(own); i++)
		add_own_process(s, i);
	return s;
}

/* What runs does half of it before its name is known. */
static void do_half(struct snapshot *s)
{
	later(s, 1);
	for (uint32_t i = 0; i < s->processes_n; i++) {
		s->processes[i].v[PROCESS_BUSY] += (1u << (s->processes[i].id.pid - 100)) / 2.0;
		s->processes[i].v[PROCESS_ENERGY] += 1u << (s->processes[i].id.pid - 100);
	}
}

static void end_exited(struct snapshot *s, uint32_t exited)
{
	s->exited_n = exited;
	for (uint32_t i = 0; i < exited; i++) {
		s->exited[i].v[PROCESS_BUSY] = 1u << (s->exited[i].id.pid - 100);
		s->exited[i].v[PROCESS_ENERGY] = 2u << (s->exited[i].id.pid - 100);
	}
}

static void check_own(const struct selection *selection, unsigned wanted)
{
	static const struct owner owners[OWN_PODS] = {
		{ .namespace = "ml", .pod = "train-0", .container = "main" },
		{ .namespace = "ml", .pod = "train-1", .container = "side" },
		{ .namespace = "dev", .pod = "train-0", .container = "main" },
	};
	struct account *account = new_account(selection);
	struct snapshot *s = own_snapshot();
	uint32_t exited = s->exited_n;
	double busy = 0, energy = 0, peak = 0;
	unsigned processes = 0, ended = 0, ends = 0;

	s->exited_n = 0;
	account_add(account, s, SECOND);
	do_half(s);
	account_add(account, s, SECOND);
	name_own(s, owners);
	do_half(s);
	end_exited(s, exited);
	account_add(account, s, SECOND);
	account_finish(account);
	for (uint32_t i = 0; i < account->who_n; i++) {
		busy += account->who[i].busy.value;
		energy += account->who[i].energy.value;
		peak = MAX(peak, account->who[i].memory_peak.value);
		processes += account->who[i].processes;
		ended += account->who[i].ended;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(own); i++)
		ends += own[i].exited && (wanted & 1u << i);
	assert_int_equal((unsigned)busy, wanted);
	assert_int_equal((unsigned)energy, 2 * wanted);
	assert_int_equal(processes, __builtin_popcount(wanted));
	assert_int_equal(ended, ends);
	assert_true(wanted == 0 ? peak == 0 : peak <= wanted && 2 * peak > wanted);
	account_free(account);
	fixture_free(s);
}

static void test_whose_it_was(_unused_ void **state)
{
	static const struct {
		struct selection selection;
		unsigned wanted;
	} cases[] = {
		{ { .uid = UINT32_MAX }, 0xff },
		{ { .container = "aaaaaaaaaaaa01", .uid = UINT32_MAX }, 0x01 },
		{ { .container = "aaaaaaaaaaaa", .uid = UINT32_MAX }, 0x03 },
		{ { .container = "aaaaaaaaaaa", .uid = UINT32_MAX }, 0 }, /* too few digits */
		{ { .container = "main", .uid = UINT32_MAX }, 0x05 },
		{ { .pod = "ml/train-0", .uid = UINT32_MAX }, 0x01 },
		{ { .pod = "train-0", .uid = UINT32_MAX }, 0x05 },
		{ { .pod = "m/train-0", .uid = UINT32_MAX }, 0 },
		{ { .job = "42", .uid = UINT32_MAX }, 0x18 },
		{ { .job = JOB_CLAIMED "42", .uid = UINT32_MAX }, 0x40 },
		{ { .job = "4", .uid = UINT32_MAX }, 0 },
		{ { .uid = 1007 }, 0xb8 },
		{ { .uid = 1000 }, 0x47 },
		{ { .job = "42", .uid = 1000 }, 0 },
		{ { .pod = "train-0", .container = "main", .uid = 1000 }, 0x05 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_own(&cases[i].selection, cases[i].wanted);
}

/* A process on two GPUs is one; a number that is absent for a while is not counted twice. */
static void test_each_is_counted_once(_unused_ void **state)
{
	const struct selection everybody = { .uid = UINT32_MAX };
	struct account *account = new_account(&everybody);
	struct snapshot *s = fixture_small();
	struct process *p = &s->processes[0];
	const struct account_who *who;

	s->exited_n = 0;
	s->processes_n = 2;
	s->processes[1] = *p;
	s->processes[1].entity = 1;
	p->v[PROCESS_BUSY] = s->processes[1].v[PROCESS_BUSY] = 100;
	p->v[PROCESS_MEMORY] = 10;
	p->v[PROCESS_MEMORY_PEAK] = 1000; /* before */
	s->processes[1].p[PROCESS_MEMORY] = s->processes[1].p[PROCESS_MEMORY_PEAK] = PRESENCE_ABSENT;
	account_add(account, s, SECOND);
	later(s, 1);
	p->v[PROCESS_BUSY] = 0;
	p->p[PROCESS_BUSY] = PRESENCE_ABSENT;
	account_add(account, s, SECOND);
	later(s, 1);
	p->v[PROCESS_BUSY] = 101;
	p->p[PROCESS_BUSY] = PRESENCE_PRESENT;
	account_add(account, s, SECOND);
	account_finish(account);
	who = find_who(account, WORKLOAD_CONTAINER, s->workloads[p->workload].id);
	assert_non_null(who);
	assert_int_equal(who->processes, 1);
	assert_true(who->busy.value == 1);
	assert_true(who->memory_peak.value == 10);
	account_free(account);
	fixture_free(s);
}

/* Names that are long, and names that two rows have. */
static void test_names_of_items(_unused_ void **state)
{
	const struct selection everybody = { .uid = UINT32_MAX };
	struct account *account = new_account(&everybody);
	struct snapshot *s = fixture_traced();
	char name[2 * ACCOUNT_NAME];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	s->trace->all_calls_n = 2;
	s->trace->all_calls[0].api = s->trace->all_calls[1].api = name;
	s->trace->all_calls[0].count = 1000;
	s->trace->all_calls[1].count = 10;
	for (unsigned i = 0; i < 5; i++) {
		account_add(account, s, SECOND);
		later(s, 1);
		s->trace->all_calls[0].count += 3;
		s->trace->all_calls[1].count += 1;
	}
	account_finish(account);
	assert_int_equal(account->calls.n, 1);
	assert_true(account->calls.list[0].count == 4 * (3 + 1));
	account_free(account);
	fixture_free(s);
}

/* Of a job: what the processes that the driver lists as its own called, and what was found out of them. */
static void test_calls_of_a_job(_unused_ void **state)
{
	const struct selection job = { .job = "4711", .uid = UINT32_MAX };
	struct account *account = new_account(&job);
	struct snapshot *s = fixture_traced();
	struct traced_process *process = &s->trace->processes[0];
	struct finding *finding = &s->trace->findings->list[0];
	struct process_operator operators[] = { { .process = 0, .op.name = "mm" },
						{ .process = 1, .op.name = "mm" } };

	s->trace->process_operators = operators;
	s->trace->process_operators_n = s->trace->processes_n > 1 ? 2 : 1;
	assert_true(process->calls_n > 0 && process->kernels_n > 0);
	process->id = s->processes[1].id;
	finding->pid = process->id.pid;
	account_add(account, s, SECOND);
	later(s, 1);
	s->trace->calls[process->calls_first].count += 7;
	s->trace->all_calls[0].count += 100;
	s->trace->kernels[process->kernels_first].all.launches += 5;
	operators[0].op.v[OPERATOR_METRIC_CALLS] += 3;
	operators[1].op.v[OPERATOR_METRIC_CALLS] += 40;
	account_add(account, s, SECOND);
	account_finish(account);
	assert_int_equal(account->calls.n, 1);
	assert_true(account->calls.list[0].count == 7);
	assert_int_equal(account->kernels.n, 1);
	assert_true(account->kernels.list[0].count == 5);
	assert_int_equal(account->operators.n, 1);
	assert_true(account->operators.list[0].count == 3);
	assert_int_equal(account->findings_n, 1);
	account_free(account);
	/* And of nobody. */
	assert_int_equal(account_new(&(struct selection){ .job = "1", .uid = UINT32_MAX }, 0, INT64_MAX / 2,
				     &account),
			 0);
	account_add(account, s, SECOND);
	later(s, 1);
	s->trace->calls[process->calls_first].count += 7;
	account_add(account, s, SECOND);
	assert_int_equal(account->calls.n + account->kernels.n + account->operators.n + account->findings_n,
			 0);
	account_free(account);
	s->trace->process_operators = NULL;
	fixture_free(s);
}

/* The file has this text; with GPUSONDE_TEST_UPDATE it gets it. */
static void check_golden(const char *name, const struct strbuf *text)
{
	char path[512], *wanted;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/test/golden/report-%s.golden", test_source_root(), name);
	if (getenv("GPUSONDE_TEST_UPDATE")) {
		f = fopen(path, "we");
		assert_non_null(f);
		assert_int_equal(fwrite(text->data, 1, text->len, f), text->len);
		fclose(f);
		return;
	}
	f = fopen(path, "re");
	assert_non_null(f);
	wanted = test_calloc(1, text->len + 4096);
	n = fread(wanted, 1, text->len + 4095, f);
	fclose(f);
	if (n != text->len || memcmp(wanted, text->data, n) != 0)
		fail_msg("%s is not what is written:\n%s", path, text->data);
	test_free(wanted);
}

/* A second of the node of the other golden files, in every format. */
static void test_golden_reports(_unused_ void **state)
{
	static const char *const names[DOCUMENT_FORMATS] = { "text", "markdown", "html" };
	const struct selection everybody = { .uid = UINT32_MAX };
	const struct report_price price = { .of_kwh = 0.3, .currency = "EUR" };
	struct account *account = new_account(&everybody);
	struct snapshot *s = fixture_traced();
	struct strbuf out;

	account_add(account, s, SECOND);
	later(s, 1);
	s->trace->all_calls[0].count += 7;
	s->trace->all_calls[0].seconds += 0.5;
	s->trace->kernels[0].all.launches += 5;
	s->xids[0].count++;
	account_add(account, s, SECOND);
	account_finish(account);
	for (unsigned format = 0; format < DOCUMENT_FORMATS; format++) {
		struct document d;

		strbuf_init(&out, 0);
		document_begin(&d, (enum document_format)format, "GPU report", &out);
		report_write(account, &price, &d);
		document_end(&d);
		check_golden(names[format], &out);
		strbuf_done(&out);
	}
	strbuf_init(&out, 0);
	json_write(report_json(account, &price), 0, &out);
	strbuf_addc(&out, '\n');
	check_golden("json", &out);
	strbuf_done(&out);
	account_free(account);
	fixture_free(s);
}

static unsigned count_of(const char *text, const char *end, const char *what)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, what)) && at < end; at++)
		n++;
	return n;
}

/* A short recording has fewer snapshots than a plot has points: they are joined, but not over a gap. */
static void test_plots(_unused_ void **state)
{
	static const double steps[] = { 1, 1, 8, 1, 1 };
	const struct selection everybody = { .uid = UINT32_MAX };
	const struct report_price price = { 0 };
	struct snapshot *s = fixture_small();
	struct account *account;
	struct document d;
	struct strbuf out;
	const char *svg, *end;

	assert_int_equal(account_new(&everybody, s->real_ns, s->real_ns + 12 * SECOND, &account), 0);
	account_add(account, s, SECOND);
	for (unsigned i = 0; i < ARRAY_SIZE(steps); i++) {
		later(s, steps[i]);
		account_add(account, s, SECOND);
	}
	account_finish(account);
	strbuf_init(&out, 0);
	document_begin(&d, DOCUMENT_HTML, "Report", &out);
	report_write(account, &price, &d);
	document_end(&d);
	svg = strstr(out.data, "aria-label=\"Power of each GPU over the time\"");
	assert_non_null(svg);
	end = strstr(svg, "</svg>");
	assert_non_null(end);
	/* Of the first GPU, before and behind the gap. */
	assert_int_equal(count_of(svg, end, "stroke=\"hsl(0,"), 2);
	assert_int_equal(count_of(svg, strstr(svg, "/>"), ",5.0 "), 3);
	strbuf_done(&out);
	account_free(account);
	fixture_free(s);
}

static void test_reports(_unused_ void **state)
{
	const struct selection everybody = { .uid = UINT32_MAX };
	const struct report_price price = { .of_kwh = 0.5, .currency = "EUR" };
	struct account *account = new_account(&everybody);
	struct snapshot *s = fixture_traced();
	struct report_sum sums[REPORT_SUMS];
	struct document d;
	struct strbuf out;
	json_t *json;

	account_add(account, s, SECOND);
	later(s, 1);
	s->trace->all_calls[0].count += 7;
	account_add(account, s, SECOND);
	account_finish(account);
	assert_int_equal(account->calls.n, 1);
	assert_true(account->calls.list[0].count == 7);
	assert_true(report_sums(account, sums) <= REPORT_SUMS);
	json = report_json(account, &price);
	assert_int_equal(json_array_size(json_object_get(json, "calls")), 1);
	assert_int_equal(json_array_size(json_object_get(json, "findings")), 1);
	json_decref(json);
	strbuf_init(&out, 0);
	document_begin(&d, DOCUMENT_HTML, "Report", &out);
	report_write(account, &price, &d);
	document_end(&d);
	assert_non_null(strstr(out.data, "copy_bound: threads wait for copies"));
	assert_non_null(strstr(out.data, "<td class=\"l\">copies 25.0 %"));
	assert_null(strstr(out.data, "<script"));
	assert_null(strstr(out.data, "http://"));
	assert_null(strstr(out.data, "https://"));
	strbuf_done(&out);
	account_free(account);
	fixture_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_samples_have_the_time_of_a_replay),
		cmocka_unit_test(test_documents_say_that_they_are_of_a_replay),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_differences_are_added_up),
		cmocka_unit_test(test_who_came_and_went),
		cmocka_unit_test(test_only_who_is_selected),
		cmocka_unit_test(test_whose_it_was),
		cmocka_unit_test(test_each_is_counted_once),
		cmocka_unit_test(test_names_of_items),
		cmocka_unit_test(test_calls_of_a_job),
		cmocka_unit_test(test_plots),
		cmocka_unit_test(test_reports),
		cmocka_unit_test(test_golden_reports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
