// SPDX-License-Identifier: Apache-2.0
#include "view/nccl.h"

#include <errno.h>

#include "view/json/json.h"

/* What rows of a process and totals have. */
static void measured_numbers(struct json_maker *j, json_t *object, const struct nccl_measured *row)
{
	bool known = row->ranks != NCCL_RANKS_UNKNOWN && row->ranks != NCCL_RANKS_OTHER;

	json_put(j, object, "operation", json_string(nccl_measured_operation(row)));
	json_put(j, object, "ranks", known ? json_integer(row->ranks) : json_null());
	json_put(j, object, "channels", json_integer(row->channels));
	json_put(j, object, "calls", json_count(row->calls));
	json_put(j, object, "argument_bytes", json_count(row->bytes));
	json_put(j, object, "timed", json_count(row->timed));
	json_put(j, object, "seconds", json_number(row->seconds));
	json_put(j, object, "traffic_bytes",
		 row->ranks == NCCL_RANKS_UNKNOWN ? json_null() : json_count(row->traffic));
	json_put(j, object, "algbw", json_number(nccl_algorithm_bandwidth(row)));
	json_put(j, object, "busbw", json_number(nccl_bus_bandwidth(row)));
	json_put(j, object, "clock", json_string(row->host_timed ? "host" : "gpu"));
	json_put(j, object, "proxy_operations", json_count(row->proxy_operations));
}

static json_t *json_measured_row(struct json_maker *j, const struct nccl_measured *row)
{
	json_t *object = json_object();

	json_put(j, object, "pid", json_integer(row->pid));
	json_put(j, object, "comm", json_text_or_null(row->comm));
	json_put(j, object, "uid", json_integer(row->uid));
	json_put(j, object, "algorithm", json_text_or_null(row->algorithm));
	json_put(j, object, "protocol", json_text_or_null(row->protocol));
	measured_numbers(j, object, row);
	json_put(j, object, "lost", json_count(row->lost));
	json_put(j, object, "ended", json_boolean(row->gone));
	return object;
}

static int write_list(struct json_maker *j, json_t *list, struct strbuf *out)
{
	if (j->failed) {
		json_decref(list);
		return -ENOMEM;
	}
	return json_write(list, 0, out);
}

int json_measured(const struct nccl_measurements *measured, struct strbuf *out)
{
	struct json_maker j = { 0 };
	json_t *list = json_array();

	for (uint32_t i = 0; i < measured->n; i++)
		json_push(&j, list, json_measured_row(&j, &measured->rows[i]));
	return write_list(&j, list, out);
}

int json_measured_totals(const struct nccl_measurements *measured, struct strbuf *out)
{
	struct json_maker j = { 0 };
	json_t *list = json_array();

	for (uint32_t i = 0; i < measured->totals.n; i++) {
		json_t *object = json_object();

		measured_numbers(&j, object, &measured->totals.rows[i]);
		json_push(&j, list, object);
	}
	return write_list(&j, list, out);
}
