// SPDX-License-Identifier: Apache-2.0
#include "cmd/doctor/doctor.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd/doctor/bundle.h"
#include "cmd/output.h"
#include "cmd/snapshot_client.h"
#include "agent/own_capabilities.h"
#include "agent/readiness.h"
#include "config.h"
#include "view/snapshot/read.h"
#include "view/view.h"

enum { CHECKS_MAX = 64 };

struct report {
	struct named_finding rows[CHECKS_MAX];
	unsigned n;
	unsigned count[VERDICTS];
};

static const struct {
	const char *json, *table, *colour;
} verdicts[VERDICTS] = {
	[VERDICT_OK] = { "ok", "ok", "\033[32m" },
	[VERDICT_NOTE] = { "note", "note", "" },
	[VERDICT_WARNING] = { "warning", "warning", "\033[33m" },
	[VERDICT_FAILED] = { "failed", "FAILED", "\033[31m" },
};

void found(struct finding *finding, enum verdict verdict, const char *fmt, ...)
{
	va_list args;

	finding->verdict = verdict;
	va_start(args, fmt);
	vsnprintf(finding->text, sizeof(finding->text), fmt, args);
	va_end(args);
}

void remedy(struct finding *finding, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(finding->remedy, sizeof(finding->remedy), fmt, args);
	va_end(args);
}

static void run_checks(const struct doctor *doctor, const struct check *checks, struct report *report)
{
	for (const struct check *c = checks; c->name && report->n < CHECKS_MAX; c++) {
		struct finding *finding = &report->rows[report->n].finding;

		report->rows[report->n++].name = c->name;
		c->run(doctor, finding);
		report->count[finding->verdict]++;
	}
}

/* Checks of the machine, or with --pid of a process. */
static void run_all(struct doctor *doctor, pid_t pid, struct report *report)
{
	if (pid) {
		report->n = doctor_process(doctor, pid, report->rows);
		for (unsigned i = 0; i < report->n; i++)
			report->count[report->rows[i].finding.verdict]++;
		return;
	}
	run_checks(doctor, driver_checks, report);
	run_checks(doctor, service_checks, report);
	doctor_load_tracing(doctor);
	run_checks(doctor, trace_checks, report);
	run_checks(doctor, system_checks, report);
	run_checks(doctor, cgroup_checks, report);
}

/* False: there is none of that number; the cause was printed. */
static bool parse_process(const char *text, pid_t *ret_pid)
{
	uint64_t pid = 0;

	*ret_pid = 0;
	if (!text)
		return true;
	if (parse_u64(text, &pid) < 0 || pid == 0 || pid > INT32_MAX ||
	    (kill((pid_t)pid, 0) < 0 && errno == ESRCH)) {
		fprintf(stderr, "gpusonde doctor: there is no process \"%s\": check the process ID\n", text);
		return false;
	}
	*ret_pid = (pid_t)pid;
	return true;
}

static json_t *parse_json(const struct strbuf *text)
{
	json_error_t error;

	return json_loadb(text->data, text->len, 0, &error);
}

const char *doctor_subject(const struct doctor *doctor, char *buf, size_t size)
{
	const char *why = "the agent cannot be reached";

	if (doctor->agents_capabilities)
		why = NULL;
	else if (doctor->status)
		why = "the agent, of another version, does not report its capabilities";
	else if (!options_text(&doctor->invocation->options, OPT_control_socket) &&
		 doctor->invocation->options.v[OPT_control_socket].text[0])
		why = "no agent is queried";
	else if (doctor->agent_error == -ENOENT || doctor->agent_error == -ECONNREFUSED)
		why = "no agent runs";
	if (why)
		snprintf(buf, size, "this process (%s)", why);
	else
		snprintf(buf, size, "the agent");
	return buf;
}

/* One of the agent's pages; NULL on errors. */
static json_t *get_page(const struct doctor *doctor, const char *path)
{
	unsigned status = 0;
	json_t *json = NULL;
	struct strbuf text;

	strbuf_init(&text, 0);
	if (agent_request(&doctor->invocation->options, "GET", path, &status, &text) == 0 && status == 200)
		json = parse_json(&text);
	strbuf_done(&text);
	return json;
}

static void fetch_capabilities(struct doctor *doctor)
{
	json_t *page = doctor->status ? get_page(doctor, "/api/v1/trace") : NULL;

	doctor->trace = json_incref(json_object_get(page, "trace"));
	json_decref(page);
	if (doctor->status)
		doctor->capabilities = get_page(doctor, "/control/capabilities");
	doctor->agents_capabilities = doctor->capabilities;
	if (!doctor->capabilities)
		doctor->capabilities = own_capabilities();
}

static void fetch(struct doctor *doctor)
{
	_cleanup_(snapshot_client_freep) struct snapshot_client *client = NULL;
	const struct options *options = &doctor->invocation->options;
	struct strbuf text;
	unsigned status = 0;

	strbuf_init(&text, 0);
	doctor->gpus_on_bus = pci_gpus(PCI_DEVICES);
	doctor->agent_error = agent_request(options, "GET", "/control/status", &status, &text);
	if (doctor->agent_error == 0)
		doctor->status = parse_json(&text);
	fetch_capabilities(doctor);
	strbuf_reset(&text);
	if (snapshot_client_new(options, &client) == 0 &&
	    snapshot_client_get(client, JSON_GPUS | JSON_PROCESSES | JSON_NODE, &text) == 0) {
		doctor->document = parse_json(&text);
		snapshot_read(doctor->document, &doctor->snapshot);
		doctor->sampled = !snapshot_client_from_agent(client);
	}
	if (client && snapshot_client_failure(client))
		snprintf(doctor->failure, sizeof(doctor->failure), "%s", snapshot_client_failure(client));
	strbuf_done(&text);
}

static void print_verdict(const struct report *report, enum verdict verdict, bool colour, struct strbuf *out)
{
	for (unsigned i = 0; i < report->n; i++) {
		const struct finding *f = &report->rows[i].finding;

		if (f->verdict != verdict)
			continue;
		strbuf_addf(out, "%s%-8s%s %-14s %s\n", colour ? verdicts[verdict].colour : "",
			    verdicts[verdict].table, colour ? "\033[0m" : "", report->rows[i].name, f->text);
		if (f->remedy[0])
			strbuf_addf(out, "%23s -> %s\n", "", f->remedy);
	}
}

/* The worst first; @quiet: nothing else. */
static void print_table(const struct report *report, bool quiet, bool colour, struct strbuf *out)
{
	for (unsigned v = VERDICTS; v-- > (quiet ? VERDICT_WARNING : VERDICT_OK);)
		print_verdict(report, (enum verdict)v, colour, out);
	if (quiet)
		return;
	strbuf_addf(out, "\n%u ok, %u note%s, %u warning%s, %u failed\n", report->count[VERDICT_OK],
		    report->count[VERDICT_NOTE], report->count[VERDICT_NOTE] == 1 ? "" : "s",
		    report->count[VERDICT_WARNING], report->count[VERDICT_WARNING] == 1 ? "" : "s",
		    report->count[VERDICT_FAILED]);
}

static json_t *row_json(const char *name, const struct finding *f)
{
	return json_pack("{s:s, s:s, s:s, s:s*}", "check", name, "verdict", verdicts[f->verdict].json, "text",
			 f->text, "remedy", f->remedy[0] ? f->remedy : NULL);
}

static void print_json(const struct report *report, struct strbuf *out)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < report->n; i++)
		json_array_append_new(rows, row_json(report->rows[i].name, &report->rows[i].finding));
	json_t *json = json_pack("{s:s, s:s, s:b, s:o}", "schema", "gpusonde-doctor/v1", "version",
				 GPUSONDE_VERSION, "ok", report->count[VERDICT_FAILED] == 0, "checks", rows);
	char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_ENSURE_ASCII) : NULL;

	if (text)
		strbuf_addf(out, "%s\n", text);
	else
		out->failed = true;
	free(text);
	json_decref(json);
}

static int write_bundle(const struct doctor *doctor, const struct report *report)
{
	struct strbuf text, json;
	int status = EXIT_FAILURE;

	strbuf_init(&text, 0);
	strbuf_init(&json, 0);
	print_table(report, false, false, &text);
	print_json(report, &json);
	if (!text.failed && !json.failed)
		status = bundle_write(doctor, text.data, json.data);
	strbuf_done(&text);
	strbuf_done(&json);
	return status;
}

int doctor_main(struct invocation *inv)
{
	struct doctor doctor = { .invocation = inv };
	_cleanup_free_ struct report *report = calloc(1, sizeof(*report));
	int status = EXIT_FAILURE;
	struct strbuf out;
	pid_t pid;

	if (!bundle_flags_valid(inv) || !parse_process(inv->flag[FLAG_DOCTOR_PID], &pid))
		return EXIT_USAGE;
	if (!report) {
		fprintf(stderr, "gpusonde doctor: out of memory\n");
		return EXIT_FAILURE;
	}
	if (bundle_check_place(inv) < 0)
		return EXIT_FAILURE;
	fetch(&doctor);
	run_all(&doctor, pid, report);
	strbuf_init(&out, 0);
	if (inv->flag[FLAG_BUNDLE]) {
		status = write_bundle(&doctor, report);
	} else {
		if (inv->flag[FLAG_JSON])
			print_json(report, &out);
		else
			print_table(report, inv->flag[FLAG_QUIET], output_options(inv, STDOUT_FILENO).colour,
				    &out);
		status = put_stdout(&out);
		if (report->count[VERDICT_FAILED] > 0)
			status = EXIT_FAILURE;
	}
	strbuf_done(&out);
	attach_backend_free(doctor.tracing);
	json_decref(doctor.status);
	json_decref(doctor.document);
	snapshot_read_free(doctor.snapshot);
	json_decref(doctor.trace);
	json_decref(doctor.capabilities);
	return status;
}
