// SPDX-License-Identifier: Apache-2.0
/*
 * render FIXTURE FORMAT: prints a page of a hand-made snapshot, for the golden files and for other programs'
 * parsers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "fixture.h"
#include "view/container/container.h"
#include "view/view.h"

typedef int render_fn(const struct snapshot *snapshot, struct strbuf *out);

static int prometheus(const struct snapshot *s, struct strbuf *out)
{
	return view_prometheus(s, EXPOSITION_PROMETHEUS, NULL, out);
}

static int protobuf_classic(const struct snapshot *s, struct strbuf *out)
{
	return view_metrics_protobuf(s, NULL, false, out);
}

static int openmetrics(const struct snapshot *s, struct strbuf *out)
{
	return view_prometheus(s, EXPOSITION_OPENMETRICS, NULL, out);
}

static int protobuf(const struct snapshot *s, struct strbuf *out)
{
	return view_metrics_protobuf(s, NULL, true, out);
}

static int dcgm(const struct snapshot *s, struct strbuf *out)
{
	return view_dcgm(s, &(struct dcgm_style){ .names = DCGM_NAMES_OLD }, EXPOSITION_PROMETHEUS, out);
}

static int dcgm49(const struct snapshot *s, struct strbuf *out)
{
	return view_dcgm(s, &(struct dcgm_style){ .names = DCGM_NAMES_49 }, EXPOSITION_PROMETHEUS, out);
}

static int dcgm_openmetrics(const struct snapshot *s, struct strbuf *out)
{
	return view_dcgm(s, &(struct dcgm_style){ .names = DCGM_NAMES_OLD }, EXPOSITION_OPENMETRICS, out);
}

static int dcgm49_openmetrics(const struct snapshot *s, struct strbuf *out)
{
	return view_dcgm(s, &(struct dcgm_style){ .names = DCGM_NAMES_49 }, EXPOSITION_OPENMETRICS, out);
}

static int json(const struct snapshot *s, struct strbuf *out)
{
	return view_json_text(s, JSON_GPUS | JSON_PROCESSES | JSON_NODE, out);
}

static int json_parts(const struct snapshot *s, struct strbuf *out)
{
	static const unsigned sections[] = { JSON_GPUS,  JSON_PROCESSES, JSON_NODE,
					     JSON_TRACE, JSON_KERNELS,   JSON_EVENTS };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(sections); i++)
		r = view_json_text(s, sections[i], out);
	return r;
}

static int json_of_trace(const struct snapshot *s, struct strbuf *out)
{
	return view_json_text(s, JSON_PROCESSES | JSON_TRACE, out);
}

static int json_of_kernels(const struct snapshot *s, struct strbuf *out)
{
	return view_json_text(s, JSON_KERNELS, out);
}

static int json_of_events(const struct snapshot *s, struct strbuf *out)
{
	return view_json_text(s, JSON_EVENTS, out);
}

static int container(const struct snapshot *s, struct strbuf *out)
{
	return view_container_metrics(s, 0, s->boot_ns, out);
}

static int container_absent(const struct snapshot *s, struct strbuf *out)
{
	return view_container_metrics(s, CONTAINER_ABSENT_NULL, s->boot_ns, out);
}

static int container_snapshot(const struct snapshot *s, struct strbuf *out)
{
	return view_container_snapshot(s, s->boot_ns, out);
}

static int node_snapshot(const struct snapshot *s, struct strbuf *out)
{
	return view_node_snapshot(s, s->boot_ns, out);
}

static int node_metrics(const struct snapshot *s, struct strbuf *out)
{
	return view_node_metrics(s, s->boot_ns, out);
}

static int kernels_wide(const struct snapshot *s, struct strbuf *out)
{
	return table_kernels(s, &(struct table_options){ .width = 0 }, true, 0, out);
}

static int kernels_narrow(const struct snapshot *s, struct strbuf *out)
{
	return table_kernels(s, &(struct table_options){ .width = 80 }, false, 0, out);
}

static int kernels_brief(const struct snapshot *s, struct strbuf *out)
{
	return table_kernels(s, &(struct table_options){ .width = 160 }, false, 0, out);
}

static int kernels_colour(const struct snapshot *s, struct strbuf *out)
{
	return table_kernels(s, &(struct table_options){ .colour = true, .width = 120 }, false, 5, out);
}

/*
 * What a client of each version gets: types, the first statistics, and the second after it has had the exits.
 */
static int atop(const struct snapshot *s, struct strbuf *out)
{
	int r = 0;

	for (unsigned version = 1; r >= 0 && version <= 2; version++) {
		uint64_t seq = 0;
		unsigned truncated = 0;

		strbuf_addf(out, "version %u\n", version);
		r = view_atop_types(s, version, out);
		for (int i = 0; r >= 0 && i < 2; i++) {
			strbuf_addc(out, '\n');
			r = view_atop_stats(s, version, seq, out, &seq, &truncated);
		}
		strbuf_addc(out, '\n');
	}
	return r;
}

static int tables(const struct snapshot *s, const struct table_options *options, struct strbuf *out)
{
	typedef int table_fn(const struct snapshot *s, const struct table_options *options,
			     struct strbuf *out);
	static table_fn *const all[] = { table_gpus, table_processes, table_node };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(all); i++) {
		r = all[i](s, options, out);
		strbuf_addc(out, '\n');
	}
	return r;
}

static int table_wide(const struct snapshot *s, struct strbuf *out)
{
	return tables(s, &(struct table_options){ .width = 0 }, out);
}

static int table_by(const struct snapshot *s, struct strbuf *out)
{
	const struct table_options options = { .width = 0 };
	int r = 0;

	for (unsigned by = GROUP_NONE + 1; r == 0 && group_by_name(by); by++)
		r = table_groups(s, by, &options, out);
	return r;
}

static int json_by(const struct snapshot *s, struct strbuf *out)
{
	int r = 0;

	for (unsigned by = GROUP_NONE + 1; r == 0 && group_by_name(by); by++) {
		json_t *document = view_json(s, JSON_PROCESSES);

		r = document ? json_groups(s, by, document, out) : -ENOMEM;
		json_decref(document);
		strbuf_addc(out, '\n');
	}
	return r;
}

static int table_narrow(const struct snapshot *s, struct strbuf *out)
{
	return tables(s, &(struct table_options){ .width = 80 }, out);
}

static int table_colour(const struct snapshot *s, struct strbuf *out)
{
	return tables(s, &(struct table_options){ .colour = true, .width = 0 }, out);
}

static struct snapshot *fixture_named(const char *name)
{
	if (STRV_EQ(name, "small"))
		return fixture_small();
	if (STRV_EQ(name, "full"))
		return fixture_full();
	if (STRV_EQ(name, "traced"))
		return fixture_traced();
	if (STRV_EQ(name, "untraced"))
		return fixture_untraced();
	return STRV_EQ(name, "empty") ? fixture_empty() : NULL;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		render_fn *render;
	} formats[] = {
		{ "prometheus", prometheus },
		{ "protobuf", protobuf },
		{ "protobuf-classic", protobuf_classic },
		{ "openmetrics", openmetrics },
		{ "dcgm", dcgm },
		{ "dcgm49", dcgm49 },
		{ "dcgm-openmetrics", dcgm_openmetrics },
		{ "dcgm49-openmetrics", dcgm49_openmetrics },
		{ "json", json },
		{ "json-parts", json_parts },
		{ "json-trace", json_of_trace },
		{ "json-kernels", json_of_kernels },
		{ "json-events", json_of_events },
		{ "container", container },
		{ "container-absent", container_absent },
		{ "container-snapshot", container_snapshot },
		{ "node-snapshot", node_snapshot },
		{ "node-metrics", node_metrics },
		{ "kernels", kernels_brief },
		{ "kernels-full", kernels_wide },
		{ "kernels-narrow", kernels_narrow },
		{ "kernels-colour", kernels_colour },
		{ "atop", atop },
		{ "table", table_wide },
		{ "table-by", table_by },
		{ "json-by", json_by },
		{ "table-narrow", table_narrow },
		{ "table-colour", table_colour },
	};
	struct snapshot *s = argc == 3 ? fixture_named(argv[1]) : NULL;
	struct strbuf out;
	int r = -1;

	strbuf_init(&out, 0);
	for (size_t i = 0; s && i < ARRAY_SIZE(formats); i++)
		if (STRV_EQ(formats[i].name, argv[2]))
			r = formats[i].render(s, &out);
	if (r < 0)
		fprintf(stderr, "render: no such fixture or format, or rendering failed (%d)\n", r);
	else
		fwrite(out.data, 1, out.len, stdout);
	strbuf_done(&out);
	fixture_free(s);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
