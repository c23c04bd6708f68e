// SPDX-License-Identifier: Apache-2.0
#include "view/table_json.h"

#include "view/number.h"

bool get_number(const json_t *object, const char *name, const char *label, double *ret_value)
{
	const json_t *value = json_object_get(object, name);

	if (label)
		value = json_object_get(value, label);
	if (!json_is_number(value))
		return false;
	*ret_value = json_number_value(value);
	return true;
}

const char *get_string(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

void table_simulated(const json_t *document, const struct table_options *options, struct strbuf *out)
{
	if (json_is_true(json_object_get(document, "simulated")))
		table_line(options, out, COLOUR_WARN, "SIMULATED DATA: these GPUs do not exist.");
}

void table_nothing(const json_t *document, const char *what, const struct table_options *options,
		   struct strbuf *out)
{
	const char *why = get_string(document, "error");
	struct strbuf line;

	strbuf_init(&line, 0);
	strbuf_addf(&line, "No %s%s%s", what, *why ? ": " : ".", why);
	table_line(options, out, COLOUR_NONE, line.data);
	strbuf_done(&line);
}

void table_trouble(const json_t *document, const struct table_options *options, struct strbuf *out)
{
	const json_t *gpus = json_object_get(document, "gpus");
	const char *why = get_string(document, "error");
	struct strbuf line;

	if (!*why)
		return;
	strbuf_init(&line, 0);
	/* Traced processes are there without any GPU, too. */
	strbuf_addf(&line, "%s: %s", gpus && json_array_size(gpus) == 0 ? "No GPUs" : "No new data", why);
	table_line(options, out, COLOUR_WARN, line.data);
	strbuf_done(&line);
}

/* The end of a long list is cut; who can tell it whole comes first. */
void table_unrecognised(const json_t *document, const struct table_options *options, struct strbuf *out)
{
	const char *what = get_string(json_object_get(document, "node"), "unrecognised");
	struct strbuf line;

	if (!*what)
		return;
	strbuf_init(&line, 0);
	strbuf_addf(&line,
		    "Left out, because it is not recognised in this driver (gpusonde doctor says more): %s",
		    what);
	table_line(options, out, COLOUR_WARN, line.data);
	strbuf_done(&line);
}

void table_bytes(struct table *table, const json_t *object, const char *name)
{
	double v;

	table_bytes_value(table, "", get_number(object, name, NULL, &v) ? &v : NULL);
}

void table_bytes_value(struct table *table, const char *mark, const double *value)
{
	char text[BYTES_TEXT] = "";

	if (value)
		bytes_text(*value, text);
	table_cellf(table, COLOUR_NONE, "%s%s", value ? mark : "", text);
}

void table_duration(struct table *table, const json_t *object, const char *name)
{
	unsigned long long seconds;
	double v;

	if (!get_number(object, name, NULL, &v) || v < 0 || v > 1e12) {
		table_cell(table, COLOUR_NONE, "");
		return;
	}
	seconds = (unsigned long long)v;
	if (seconds < 60)
		table_cellf(table, COLOUR_NONE, "%.1f s", v);
	else
		table_cellf(table, COLOUR_NONE, "%llu:%02llu:%02llu", seconds / 3600, seconds / 60 % 60,
			    seconds % 60);
}

void table_workload(struct table *table, const json_t *object)
{
	static const char *const kinds[][2] = {
		{ "job", "job" },
		{ "pod_uid", "pod" },
		{ "container_id", "container" },
		{ "unit", "unit" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const char *id = get_string(object, kinds[i][0]);

		if (*id) {
			table_cellf(table, COLOUR_NONE, "%s %s", kinds[i][1], id);
			return;
		}
	}
	table_cell(table, COLOUR_NONE, "");
}
