// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include <zlib.h>

#include "base/macro.h"
#include "push/rows.h"
#include "push/metrics.pb-c.h"

static Push__MetricsBatch *unpack(const struct batch *batch)
{
	static uint8_t text[1 << 20];
	z_stream zip = { .next_in = batch->data,
			 .avail_in = (uInt)batch->n,
			 .next_out = text,
			 .avail_out = sizeof(text) };
	Push__MetricsBatch *message;

	assert_int_equal(inflateInit2(&zip, 15 + 16), Z_OK);
	assert_int_equal(inflate(&zip, Z_FINISH), Z_STREAM_END);
	message = push__metrics_batch__unpack(NULL, zip.total_out, text);
	inflateEnd(&zip);
	assert_non_null(message);
	return message;
}

static void has_label(const Push__Measurement *m, size_t at, const char *name, const char *value)
{
	assert_true(at < m->n_labels);
	assert_string_equal(m->labels[at]->name, name);
	assert_string_equal(m->labels[at]->value, value);
}

static struct push_row gpu_row(void)
{
	struct push_row row = { .gpu = "0",
				.uuid = "GPU-1",
				.device = "nvidia0",
				.model = "NVIDIA H100",
				.node = "n1",
				.container = "main",
				.namespace = "ml",
				.pod = "train-0" };

	row.present = 1u << CONTRACT_power_usage | 1u << CONTRACT_gpu_utilization;
	row.v[CONTRACT_power_usage] = 412.5;
	row.v[CONTRACT_gpu_utilization] = 0;
	return row;
}

static void what_is_there_is_in_it(void **state)
{
	struct push_row rows[2] = { gpu_row(), gpu_row() };
	Push__MetricsBatch *message;
	struct batch batch;

	(void)state;
	strcpy(rows[1].mig_profile, "1g.10gb");
	strcpy(rows[1].mig_instance, "7");
	rows[1].pod[0] = '\0';
	rows[1].present = 1u << CONTRACT_power_usage;
	rows[1].v[CONTRACT_power_usage] = 1;
	rows[1].v[CONTRACT_temperature] = 99; /* not known */
	assert_int_equal(rows_make(rows, 2, &batch), 0);
	message = unpack(&batch);
	assert_int_equal(message->n_metrics, 2);
	assert_string_equal(message->metrics[0]->name, "DCGM_FI_DEV_POWER_USAGE");
	assert_int_equal(message->metrics[0]->n_measurements, 2);
	assert_true(message->metrics[0]->measurements[0]->value == 412.5);
	assert_int_equal(message->metrics[0]->measurements[0]->n_labels, 8);
	has_label(message->metrics[0]->measurements[0], 1, "UUID", "GPU-1");
	has_label(message->metrics[0]->measurements[0], 3, "modelName", "NVIDIA H100");
	has_label(message->metrics[0]->measurements[0], 4, "Hostname", "n1");
	has_label(message->metrics[0]->measurements[0], 7, "pod", "train-0");
	has_label(message->metrics[0]->measurements[1], 4, "GPU_I_PROFILE", "1g.10gb");
	has_label(message->metrics[0]->measurements[1], 5, "GPU_I_ID", "7");
	assert_int_equal(message->metrics[0]->measurements[1]->n_labels, 9);
	/* A zero that was measured is there; what the second row does not know is not. */
	assert_string_equal(message->metrics[1]->name, "DCGM_FI_DEV_GPU_UTIL");
	assert_int_equal(message->metrics[1]->n_measurements, 1);
	assert_true(message->metrics[1]->measurements[0]->value == 0);
	push__metrics_batch__free_unpacked(message, NULL);
	batch_done(&batch);
}

static void nothing_known_is_no_batch(void **state)
{
	struct push_row row = gpu_row();
	struct batch batch = { .n = 1 };

	(void)state;
	row.present = 0;
	assert_int_equal(rows_make(&row, 1, &batch), 0);
	assert_int_equal(batch.n, 0);
	assert_null(batch.data);
}

/* As many rows as there may be, with all numbers, all different. */
static void the_largest_fits(void **state)
{
	struct push_row *rows = calloc(PUSH_ROWS_MAX, sizeof(*rows));
	struct batch batch;

	(void)state;
	assert_non_null(rows);
	for (unsigned i = 0; i < PUSH_ROWS_MAX; i++) {
		rows[i] = gpu_row();
		snprintf(rows[i].uuid, sizeof(rows[i].uuid), "GPU-%08x", i * 2654435761u);
		rows[i].present = (1u << CONTRACT_METRICS) - 1;
		for (unsigned m = 0; m < CONTRACT_METRICS; m++)
			rows[i].v[m] = i * 1.1 + m;
	}
	assert_int_equal(rows_make(rows, PUSH_ROWS_MAX, &batch), 0);
	assert_true(batch.n > 1000 && batch.n <= BATCH_BYTES_MAX);
	batch_done(&batch);
	free(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_there_is_in_it),
		cmocka_unit_test(nothing_known_is_no_batch),
		cmocka_unit_test(the_largest_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
