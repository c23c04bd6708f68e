// SPDX-License-Identifier: Apache-2.0
#include "cmd/recording/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "model/xid.h"
#include "view/findings.h"
#include "view/names.h"
#include "view/number.h"

enum { TOP = 15, CELL = 64 };
#define JOULES_PER_KWH 3.6e6

/* ---- cells ---- */

/* "-": not known; "~": an estimate. */
static const char *amount_text(const struct amount *amount, double per, const char *fmt,
			       char buf[static CELL])
{
	size_t n;

	if (!amount->known)
		return "-";
	snprintf(buf, CELL, "%s", amount->estimated ? "~" : "");
	n = strlen(buf);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(buf + n, CELL - n, fmt, amount->value / per);
#pragma GCC diagnostic pop
	return buf;
}

static void hours(struct document *d, const struct amount *amount)
{
	char buf[CELL];

	document_cell(d, "%s", amount_text(amount, 3600, "%.3f", buf));
}

static void bytes(struct document *d, const struct amount *amount)
{
	char text[BYTES_TEXT];

	if (!amount->known) {
		document_cell(d, "-");
		return;
	}
	bytes_text(amount->value, text);
	document_cell(d, "%s%s", amount->estimated ? "~" : "", text);
}

static void count(struct document *d, const struct amount *amount)
{
	char buf[CELL];

	document_cell(d, "%s", amount_text(amount, 1, "%.0f", buf));
}

static void energy(struct document *d, const struct amount *amount, const struct report_price *price)
{
	struct amount cost = *amount;
	char buf[CELL];

	document_cell(d, "%s", amount_text(amount, JOULES_PER_KWH, "%.4f", buf));
	if (price->of_kwh <= 0)
		return;
	cost.value *= price->of_kwh / JOULES_PER_KWH;
	document_cell(d, "%s", amount_text(&cost, 1, "%.4f", buf));
}

static void gpu_cells(struct document *d, const struct account_gpu *gpu)
{
	document_cell(d, "%u%s%s", gpu->index, *gpu->instance ? "/" : "", gpu->instance);
}

/* ---- plots ---- */

static double point_of(const struct account_gpu *gpu, unsigned at, unsigned what)
{
	return gpu->points[at].n[what] ? gpu->points[at].sum[what] / gpu->points[at].n[what] : NAN;
}

/* Points that are further apart have a gap between them. There may be fewer snapshots than points. */
static unsigned plot_reach(const struct account *account)
{
	double length = (double)(account->until_ns - account->since_ns) + 1;

	return 1 + (unsigned)(3 * (double)account->period_ns / length * ACCOUNT_POINTS);
}

static unsigned hue_of(uint32_t number)
{
	return number * 137 % 360;
}

/* A line for each run of known values, so that a gap is one. */
static void plot_line(struct strbuf *out, const struct account *account, uint32_t number, unsigned what,
		      double top)
{
	unsigned reach = plot_reach(account), last = 0;
	bool open = false;

	for (unsigned i = 0; i < ACCOUNT_POINTS; i++) {
		double v = point_of(&account->gpus[number], i, what);

		if (isnan(v))
			continue;
		if (open && i - last > reach) {
			strbuf_adds(out, "\"/>");
			open = false;
		}
		if (!open)
			strbuf_addf(out, "<polyline stroke=\"hsl(%u,65%%,50%%)\" points=\"",
				    hue_of(number));
		strbuf_addf(out, "%u,%.1f ", i, 100 - 95 * v / top);
		open = true;
		last = i;
	}
	strbuf_adds(out, open ? "\"/>" : "");
}

static void plot_legend(struct strbuf *out, const struct account *account)
{
	for (uint32_t g = 0; g < account->gpus_n; g++) {
		const struct account_gpu *gpu = &account->gpus[g];

		strbuf_addf(out, "<span><b style=\"color:hsl(%u,65%%,50%%)\">&#9644;</b> GPU %u%s%s</span>",
			    hue_of(g), gpu->index, *gpu->instance ? "/" : "", gpu->instance);
	}
}

static double plot_top(const struct account *account, unsigned what)
{
	double top = what == 0 ? 1 : 0;

	for (uint32_t g = 0; g < account->gpus_n; g++)
		for (unsigned i = 0; i < ACCOUNT_POINTS; i++) {
			double v = point_of(&account->gpus[g], i, what);

			top = v > top ? v : top;
		}
	return top;
}

static void plot(struct document *d, const struct account *account, unsigned what, const char *title)
{
	double top = plot_top(account, what);
	char label[BYTES_TEXT] = "100 %";
	struct strbuf svg;

	if (top <= 0)
		return;
	if (what == 1)
		snprintf(label, sizeof(label), "%.0f W", top);
	else if (what == 2)
		bytes_text(top, label);
	strbuf_init(&svg, 0);
	strbuf_addf(&svg,
		    "<figure><figcaption><span>%s, from 0 to %s</span>", title, label);
	plot_legend(&svg, account);
	strbuf_addf(&svg,
		    "</figcaption><svg viewBox=\"0 0 %d 100\" preserveAspectRatio=\"none\" role=\"img\" "
		    "aria-label=\"%s of each GPU over the time\">",
		    ACCOUNT_POINTS - 1, title);
	for (uint32_t g = 0; g < account->gpus_n; g++)
		plot_line(&svg, account, g, what, top);
	strbuf_adds(&svg, "</svg></figure>\n");
	document_raw(d, svg.data);
	strbuf_done(&svg);
}

/* ---- sections ---- */

static void write_period(struct document *d, const struct account *account)
{
	char first[32], last[32];

	format_rfc3339(account->first_real_ns, first);
	format_rfc3339(account->last_real_ns, last);
	if (account->simulated)
		document_say(d, "SIMULATED DATA: these GPUs do not exist.");
	document_say(d, "Node %s, from %s to %s: %llu snapshots, %.3f hours.", account->hostname, first, last,
		     (unsigned long long)account->frames, account->covered_seconds / 3600);
	if (account->missing_seconds > 0)
		document_say(d, "Not recorded meanwhile: %.3f hours. What counters say of them is counted.",
			     account->missing_seconds / 3600);
	if (account->left_out > 0)
		document_say(d, "Beyond limits of this report, and not in it: %llu.",
			     (unsigned long long)account->left_out);
}

static void write_gpus(struct document *d, const struct account *account, const struct report_price *price)
{
	const char *headings[] = { "GPU",    "<NAME",       "OBSERVED h", "BUSY h",
				   "IDLE h", "MEMORY PEAK", "ENERGY kWh", "COST" };

	document_heading(d, "GPUs");
	document_table(d, price->of_kwh > 0 ? 8 : 7, headings);
	for (uint32_t i = 0; i < account->gpus_n; i++) {
		const struct account_gpu *gpu = &account->gpus[i];
		struct amount idle = gpu->busy;

		idle.value = gpu->observed.value - gpu->busy.value;
		idle.known = gpu->busy.known && gpu->observed.known;
		gpu_cells(d, gpu);
		document_cell(d, "%s", gpu->name);
		hours(d, &gpu->observed);
		hours(d, &gpu->busy);
		hours(d, &idle);
		bytes(d, &gpu->memory_peak);
		energy(d, &gpu->energy, price);
	}
	document_table_end(d, "No GPU was recorded.");
	plot(d, account, 0, "Utilisation");
	plot(d, account, 1, "Power");
	plot(d, account, 2, "Memory in use");
}

/* Rows of the table whose family says how long clocks were throttled, and why. */
static bool is_throttling(const struct metric *m)
{
	return strncmp(m->id, "THROTTLE_", 9) == 0 && m->unit == UNIT_SECONDS;
}

static void write_throttling(struct document *d, const struct account *account)
{
	static const char *const headings[] = { "GPU", "<REASON", "SECONDS" };
	bool known = false;
	char buf[CELL];

	document_heading(d, "Throttling");
	document_table(d, 3, headings);
	for (uint32_t g = 0; g < account->gpus_n; g++)
		for (unsigned i = 0; i < GPU_METRICS; i++) {
			const struct amount *amount = &account->gpus[g].slots[gpu_metrics[i].slot];

			if (!is_throttling(&gpu_metrics[i]) || !amount->known)
				continue;
			known = true;
			if (amount->value <= 0)
				continue;
			gpu_cells(d, &account->gpus[g]);
			document_cell(d, "%s",
				      gpu_metrics[i].value ? gpu_metrics[i].value : gpu_metrics[i].family);
			document_cell(d, "%s", amount_text(amount, 1, "%.3f", buf));
		}
	document_table_end(d, known ? "No clock was throttled." : "Not known: the driver does not tell.");
}

static void write_xids(struct document *d, const struct account *account)
{
	static const char *const headings[] = { "<GPU", "XID", "COUNT", "<LAST", "<MEANING", "<ACTION" };

	document_heading(d, "XIDs");
	document_table(d, 6, headings);
	for (uint32_t i = 0; i < account->xids_n; i++) {
		const struct account_xid *xid = &account->xids[i];
		const struct xid_description *what = xid_describe(xid->code);
		char last[32];

		format_rfc3339(xid->last_real_ns, last);
		document_cell(d, "%s", xid->pci_bus_id);
		document_cell(d, "%u", xid->code);
		document_cell(d, "%.0f", xid->count);
		document_cell(d, "%s", last);
		document_cell(d, "%s", what->name);
		document_cell(d, "%s", xid_action_text(what->action));
	}
	document_table_end(d, "None.");
}

static void who_cell(struct document *d, const struct account_who *who)
{
	if (who->kind == WORKLOAD_NONE)
		document_cell(d, "user %s", *who->id ? who->id : "not known");
	else if (*who->pod)
		document_cell(d, "pod %s/%s%s%s", who->namespace, who->pod, *who->container ? "/" : "",
			      who->container);
	else
		document_cell(d, "%s %s%s%s%s", workload_kind_name(who->kind),
			      *who->id ? who->id : who->container, *who->job_name ? " (claimed: " : "",
			      who->job_name, *who->job_name ? ")" : "");
}

static void write_who(struct document *d, const struct account *account, const struct report_price *price)
{
	const char *headings[] = { "<WHO",      "ALLOCATED h", "OF THESE IDLE h", "BUSY h", "MEMORY PEAK",
				   "PROCESSES", "ENDED",       "LAUNCHES",        "ERRORS", "ENERGY kWh",
				   "COST" };

	document_heading(d, "For whom");
	document_table(d, price->of_kwh > 0 ? 11 : 10, headings);
	for (uint32_t i = 0; i < account->who_n; i++) {
		const struct account_who *who = &account->who[i];

		who_cell(d, who);
		hours(d, &who->allocated);
		hours(d, &who->idle);
		hours(d, &who->busy);
		bytes(d, &who->memory_peak);
		document_cell(d, "%u", who->processes);
		document_cell(d, "%u", who->ended);
		count(d, &who->launches);
		count(d, &who->errors);
		energy(d, &who->energy, price);
	}
	document_table_end(d, account_selects(account) ? "Nobody of that name was recorded." :
							 "No process was recorded.");
	if (account->who_n > 0)
		document_say(d,
			     "Energy is an estimate of the share of the board's. Memory is the most of one "
			     "process.");
}

static void write_items(struct document *d, const struct account *account, const char *title,
			const struct account_items *items, bool calls)
{
	const char *headings[] = { "<NAME", "COUNT", "SECONDS", "BYTES", "ERRORS" };
	char size[BYTES_TEXT];

	document_heading(d, title);
	document_table(d, calls ? 5 : 3, headings);
	for (uint32_t i = 0; i < MIN(items->n, (uint32_t)TOP); i++) {
		const struct account_item *item = &items->list[i];

		document_cell(d, "%s", item->name);
		document_cell(d, "%.0f", item->count);
		document_cell(d, "%s%.3f", calls ? "" : "~", item->seconds);
		if (!calls)
			continue;
		bytes_text(item->bytes, size);
		document_cell(d, "%s", size);
		document_cell(d, "%.0f", item->errors);
	}
	document_table_end(d, account->traced ? "None." : "Not known: nothing was traced.");
	if (items->n > TOP)
		document_say(d, "And %u more.", items->n - TOP);
}

static void write_traced(struct document *d, const struct account *account)
{
	write_items(d, account, "Calls", &account->calls, true);
	write_items(d, account, "Collectives", &account->collectives, true);
	write_items(d, account, "Kernels, by estimated time", &account->kernels, false);
	write_items(d, account, "Operators, by estimated time", &account->operators, false);
	if (account_selects(account) && account->traced)
		document_say(d, "What processes do is recorded every ten seconds: what one did in its last "
				"seconds may be missing.");
}

/* "PID 7, GPU-1, step"; "": of nothing single */
static void finding_place(const struct finding *f, char *text, size_t size)
{
	char pid[24] = "";

	if (f->pid)
		snprintf(pid, sizeof(pid), "PID %u", f->pid);
	snprintf(text, size, "%s%s%s%s%s", pid, *pid && *f->device ? ", " : "", f->device,
		 (*pid || *f->device) && *f->subject ? ", " : "", f->subject);
}

static void write_evidence(struct document *d, const struct finding *f)
{
	char value[FINDING_VALUE_TEXT];
	struct strbuf text;

	strbuf_init(&text, 0);
	for (uint32_t i = 0; i < f->values_n; i++) {
		finding_value_text(&f->values[i], value);
		strbuf_addf(&text, "%s%s %s", i > 0 ? ", " : "", f->values[i].name, value);
	}
	document_cell(d, "%s", f->values_n > 0 ? text.data : "-");
	strbuf_done(&text);
}

static void write_finding(struct document *d, const struct account_finding *finding)
{
	char text[32], place[400];

	finding_place(&finding->f, place, sizeof(place));
	document_cell(d, "%s: %s%s%s%s", finding->name, finding->title,
		      finding->cause ? " (a symptom of " : "", finding->cause ? finding->cause : "",
		      finding->cause ? ")" : "");
	document_cell(d, "%s", *place ? place : "the node");
	format_rfc3339(finding->begin_real_ns, text);
	document_cell(d, "%s", finding->begin_real_ns ? text : "-");
	format_rfc3339(finding->end_real_ns, text);
	document_cell(d, "%s", finding->end_real_ns ? text : "-");
	document_cell(d, "%.0f %%", 100 * finding->f.confidence);
	write_evidence(d, &finding->f);
	document_cell(d, "%s", finding->remedy);
}

static void write_findings(struct document *d, const struct account *account)
{
	static const char *const headings[] = { "<FINDING",   "<OF",       "<FROM",  "<TO",
						"CONFIDENCE", "<EVIDENCE", "<REMEDY" };

	document_heading(d, "Findings");
	document_table(d, ARRAY_SIZE(headings), headings);
	for (uint32_t i = 0; i < account->findings_n; i++)
		write_finding(d, &account->findings[i]);
	document_table_end(d, account->analysed ?
				      "None." :
				      "Not known: nothing was analysed (trace.analysis); gpusonde "
				      "analyze looks for them in timelines.");
}

void report_write(const struct account *account, const struct report_price *price, struct document *d)
{
	write_period(d, account);
	if (!account_selects(account)) {
		write_gpus(d, account, price);
		write_throttling(d, account);
		write_xids(d, account);
	}
	write_who(d, account, price);
	write_traced(d, account);
	write_findings(d, account);
}

/* ---- sums ---- */

static void add_to(struct amount *to, const struct amount *from)
{
	to->value += from->value;
	to->known |= from->known;
	to->estimated |= from->estimated;
}

static struct amount total_items(const struct account_items *items, bool known)
{
	struct amount sum = { .known = known };

	for (uint32_t i = 0; i < items->n; i++)
		sum.value += items->list[i].count;
	return sum;
}

static void sum_who(const struct account *account, struct account_who *ret_sum)
{
	*ret_sum = (struct account_who){ 0 };
	for (uint32_t i = 0; i < account->who_n; i++) {
		const struct account_who *who = &account->who[i];

		add_to(&ret_sum->allocated, &who->allocated);
		add_to(&ret_sum->idle, &who->idle);
		add_to(&ret_sum->busy, &who->busy);
		add_to(&ret_sum->energy, &who->energy);
		add_to(&ret_sum->launches, &who->launches);
		add_to(&ret_sum->errors, &who->errors);
		ret_sum->processes += who->processes;
		if (who->memory_peak.known && who->memory_peak.value >= ret_sum->memory_peak.value)
			ret_sum->memory_peak = who->memory_peak;
	}
}

static void sum_gpus(const struct account *account, struct account_gpu *ret_sum)
{
	memset(ret_sum, 0, sizeof(*ret_sum));
	for (uint32_t i = 0; i < account->gpus_n; i++) {
		const struct account_gpu *gpu = &account->gpus[i];

		if (*gpu->instance)
			continue;
		add_to(&ret_sum->observed, &gpu->observed);
		add_to(&ret_sum->busy, &gpu->busy);
		add_to(&ret_sum->energy, &gpu->energy);
		for (unsigned k = 0; k < GPU_METRICS; k++)
			if (is_throttling(&gpu_metrics[k]))
				add_to(&ret_sum->slots[0], &gpu->slots[gpu_metrics[k].slot]);
		if (gpu->memory_peak.known && gpu->memory_peak.value >= ret_sum->memory_peak.value)
			ret_sum->memory_peak = gpu->memory_peak;
	}
}

unsigned report_sums(const struct account *account, struct report_sum sums[static REPORT_SUMS])
{
	bool all = !account_selects(account);
	static struct account_gpu gpus;
	struct account_who who;
	double xids = 0;
	unsigned n = 0;

	sum_gpus(account, &gpus);
	sum_who(account, &who);
	for (uint32_t i = 0; i < account->xids_n; i++)
		xids += account->xids[i].count;
	sums[n++] = (struct report_sum){ "recorded", "s", { account->covered_seconds, true, false } };
	if (all) {
		sums[n++] = (struct report_sum){ "gpu observed", "s", gpus.observed };
		sums[n++] = (struct report_sum){ "gpu busy", "s", gpus.busy };
		sums[n++] = (struct report_sum){ "gpu energy", "J", gpus.energy };
		sums[n++] = (struct report_sum){ "gpu memory peak", "B", gpus.memory_peak };
		sums[n++] = (struct report_sum){ "throttled, of all reasons", "s", gpus.slots[0] };
		sums[n++] = (struct report_sum){ "xids", "", { xids, true, false } };
	}
	sums[n++] = (struct report_sum){ "allocated", "s", who.allocated };
	sums[n++] = (struct report_sum){ "allocated idle", "s", who.idle };
	sums[n++] = (struct report_sum){ "processes busy", "s", who.busy };
	sums[n++] = (struct report_sum){ "processes energy", "J", who.energy };
	sums[n++] = (struct report_sum){ "processes memory peak", "B", who.memory_peak };
	sums[n++] = (struct report_sum){ "processes", "", { who.processes, true, false } };
	sums[n++] = (struct report_sum){ "launches", "", who.launches };
	sums[n++] = (struct report_sum){ "errors", "", who.errors };
	if (all)
		sums[n++] = (struct report_sum){ "calls", "", total_items(&account->calls, account->traced) };
	return n;
}
