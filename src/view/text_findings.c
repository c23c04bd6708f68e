// SPDX-License-Identifier: Apache-2.0
#include "view/findings.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "view/number.h"
#include "view/table/table.h"

void finding_value_text(const struct finding_value *value, char text[static FINDING_VALUE_TEXT])
{
	char bytes[BYTES_TEXT];
	double v = value->value;

	switch (value->unit) {
	case UNIT_RATIO:
		snprintf(text, FINDING_VALUE_TEXT, "%.1f %%", v * 100);
		break;
	case UNIT_SECONDS:
		snprintf(text, FINDING_VALUE_TEXT,
			 v < 1e-3 ? "%.1f us" :
			 v < 1    ? "%.1f ms" :
				    "%.2f s",
			 v < 1e-3 ? v * 1e6 :
			 v < 1    ? v * 1e3 :
				    v);
		break;
	case UNIT_BYTES:
	case UNIT_BYTES_PER_SECOND:
		bytes_text(v, bytes);
		snprintf(text, FINDING_VALUE_TEXT, "%s%s", bytes, value->unit == UNIT_BYTES ? "" : "/s");
		break;
	case UNIT_HERTZ:
		snprintf(text, FINDING_VALUE_TEXT, "%.0f MHz", v / 1e6);
		break;
	case UNIT_WATTS:
		snprintf(text, FINDING_VALUE_TEXT, "%.0f W", v);
		break;
	default:
		if (fabs(v) < 1e12)
			snprintf(text, FINDING_VALUE_TEXT, "%.*f", v == floor(v) ? 0 : v < 10 ? 2 : 1, v);
		else
			snprintf(text, FINDING_VALUE_TEXT, "%.6g", v);
	}
}

static void add_words(struct strbuf *line, const struct findings *findings, uint32_t bits)
{
	const char *comma = "";

	for (unsigned i = 0; i < FINDING_EVIDENCE; i++) {
		if (!(bits >> i & 1) || !findings->evidence[i])
			continue;
		strbuf_addf(line, "%s%s", comma, findings->evidence[i]);
		comma = "; ";
	}
}

/* "copy_bound: threads wait for ... (node1, PID 7, GPU 0, confidence 95 %)" */
static void put_head(const struct findings *findings, const struct finding *f, const char *indent,
		     const struct table_options *options, struct strbuf *out)
{
	const struct finding_rule *rule = &findings->rules[f->rule];
	struct strbuf line;

	strbuf_init(&line, 0);
	strbuf_addf(&line, "%s%s: %s%s%s (", indent, rule->name, rule->title, f->subject[0] ? ": " : "",
		    f->subject);
	if (f->node[0])
		strbuf_addf(&line, "%s, ", f->node);
	if (f->pid)
		strbuf_addf(&line, "PID %" PRIu32 ", ", f->pid);
	if (f->device[0])
		strbuf_addf(&line, "%s, ", f->device);
	if (f->communicator)
		strbuf_addf(&line, "communicator 0x%" PRIx64 ", ", f->communicator);
	strbuf_addf(&line, "confidence %.0f %%%s)", f->confidence * 100, f->active ? "" : ", ended");
	table_line(options, out, f->active ? COLOUR_BAD : COLOUR_DIM, line.data);
	strbuf_done(&line);
}

static void put_evidence(const struct finding *f, const char *indent, const struct table_options *options,
			 struct strbuf *out)
{
	char value[FINDING_VALUE_TEXT];
	struct strbuf line;

	strbuf_init(&line, 0);
	strbuf_addf(&line, "%sevidence: ", indent);
	for (uint32_t i = 0; i < f->values_n; i++) {
		finding_value_text(&f->values[i], value);
		strbuf_addf(&line, "%s%s %s", i > 0 ? ", " : "", f->values[i].name, value);
	}
	if (f->values_n > 0)
		table_line(options, out, COLOUR_NONE, line.data);
	strbuf_done(&line);
}

/* Those that follow from it, in a line each: what to do is the cause's. */
static void put_symptoms(const struct findings *findings, const struct finding *cause,
			 const struct table_options *options, struct strbuf *out)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < findings->n; i++) {
		const struct finding *f = &findings->list[i];

		if (!finding_is_symptom(f, cause))
			continue;
		if (n++ == 0)
			table_line(options, out, COLOUR_NONE, "  explains these, its symptoms:");
		put_head(findings, f, "    ", options, out);
		put_evidence(f, "      ", options, out);
	}
}

static void put_place(const struct findings *findings, const struct finding *f,
		      const struct table_options *options, struct strbuf *out)
{
	bool known = findings->real_offset_ns != 0;
	char text[200], date[32] = "";

	if (known)
		format_rfc3339((int64_t)f->begin_ns + findings->real_offset_ns, date);

	snprintf(text, sizeof(text), "  timeline: %.6f s to %.6f s%s%s%s", (double)f->begin_ns / NSEC_PER_SEC,
		 (double)f->end_ns / NSEC_PER_SEC, known ? ", from " : "", date,
		 f->pid       ? ", at the process" :
		 f->device[0] ? ", at the GPU" :
				"");
	table_line(options, out, COLOUR_NONE, text);
}

/* Ranks are said where they are others than those of the line before. */
static void put_stacks(const struct findings *findings, const struct finding *f,
		       const struct table_options *options, struct strbuf *out)
{
	const struct finding_frame *frames = &findings->frames[f->frames_at];
	struct strbuf line;

	strbuf_init(&line, 0);
	if (f->frames_n > 0)
		table_line(options, out, COLOUR_NONE,
			   frames[0].ranks[0] ? "  stacks by frame, the outermost first, with their ranks:" :
						"  stack, the outermost first:");
	for (uint32_t i = 0; i < f->frames_n; i++) {
		bool said = i > 0 && frames[i].depth > frames[i - 1].depth &&
			    STRV_EQ(frames[i].ranks, frames[i - 1].ranks);

		strbuf_reset(&line);
		strbuf_addf(&line, "    %*s%s", (int)frames[i].depth, "", frames[i].frame);
		if (frames[i].ranks[0] && !said)
			strbuf_addf(&line, "  [%s]", frames[i].ranks);
		table_line(options, out, COLOUR_NONE, line.data);
	}
	strbuf_done(&line);
}

static void put_finding(const struct findings *findings, const struct finding *f,
			const struct table_options *options, struct strbuf *out)
{
	struct strbuf line;

	put_head(findings, f, "", options, out);
	put_evidence(f, "  ", options, out);
	put_place(findings, f, options, out);
	put_stacks(findings, f, options, out);
	strbuf_init(&line, 0);
	if (f->without) {
		strbuf_adds(&line, "  surer with: ");
		add_words(&line, findings, f->without);
		table_line(options, out, COLOUR_NONE, line.data);
		strbuf_reset(&line);
	}
	strbuf_addf(&line, "  remedy: %s", findings->rules[f->rule].remedy);
	table_line(options, out, COLOUR_NONE, line.data);
	put_symptoms(findings, f, options, out);
	strbuf_addc(out, '\n');
	strbuf_done(&line);
}

/* What was not judged says nothing: each missing evidence once, with the rules that want it. */
static void put_missing(const struct findings *findings, const struct table_options *options,
			struct strbuf *out)
{
	struct strbuf line;

	strbuf_init(&line, 0);
	for (unsigned bit = 0; bit < FINDING_EVIDENCE && findings->evidence[bit]; bit++) {
		unsigned n = 0;

		strbuf_reset(&line);
		strbuf_addf(&line, "not judged for want of %s: ", findings->evidence[bit]);
		for (uint32_t i = 0; i < findings->rules_n; i++)
			if (findings->rules[i].missing >> bit & 1)
				strbuf_addf(&line, "%s%s", n++ > 0 ? ", " : "", findings->rules[i].name);
		if (n > 0)
			table_line(options, out, COLOUR_DIM, line.data);
	}
	strbuf_done(&line);
}

int text_findings(const struct findings *findings, const struct table_options *options, struct strbuf *out)
{
	char text[160];

	for (uint32_t i = 0; i < findings->n; i++)
		if (!finding_cause(findings, &findings->list[i]))
			put_finding(findings, &findings->list[i], options, out);
	if (findings->n == 0)
		table_line(options, out, COLOUR_GOOD,
			   findings->events > 0 ? "Nothing was found by the rules that could be judged." :
						  "There was nothing to analyse.");
	put_missing(findings, options, out);
	if (findings->beyond > 0) {
		snprintf(text, sizeof(text),
			 "INCOMPLETE: %" PRIu64 " events or findings were beyond a limit, and may be missing",
			 findings->beyond);
		table_line(options, out, COLOUR_WARN, text);
	}
	return out->failed ? -ENOMEM : 0;
}
