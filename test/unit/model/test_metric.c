// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "model/metric.h"

struct table {
	const char *name;
	const struct metric *rows;
	unsigned n;
};

static const struct table tables[] = {
	{ "gpu", gpu_metrics, GPU_METRICS },
	{ "process", process_metrics, PROCESS_METRICS },
	{ "host", host_metrics, HOST_METRICS },
	{ "disk", disk_metrics, DISK_METRICS },
	{ "interface", interface_metrics, INTERFACE_METRICS },
	{ "server", server_metrics, SERVER_METRICS },
	{ "agent", agent_metrics, AGENT_METRICS },
};

#define FOR_EACH_ROW(table_, m_)                                                                  \
	for (const struct table *table_ = tables; table_ < tables + ARRAY_SIZE(tables); table_++) \
		for (const struct metric *m_ = table_->rows; m_ < table_->rows + table_->n; m_++)

static bool ends_with(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && strcmp(s + n - m, suffix) == 0;
}

static bool is_name(const char *s)
{
	if (!islower((unsigned char)*s))
		return false;
	for (; *s; s++)
		if (!islower((unsigned char)*s) && !isdigit((unsigned char)*s) && *s != '_')
			return false;
	return true;
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && STRV_EQ(a, b));
}

static bool is_of_devices(const struct table *table)
{
	return table->rows != agent_metrics && table->rows != host_metrics && table->rows != disk_metrics &&
	       table->rows != interface_metrics && table->rows != server_metrics;
}

static void every_row_is_whole(_unused_ void **state)
{
	FOR_EACH_ROW(table, m)
	{
		if (!m->id || !m->family || !m->help || !is_name(m->family) || !ends_with(m->help, "."))
			fail_msg("%s row %s: id, family and help (a sentence) are wanted", table->name,
				 m->id);
		if (!!m->label != !!m->value || !!m->label2 != !!m->value2 || (m->label2 && !m->label))
			fail_msg("%s: a label without a value, or a second without a first", m->id);
		if ((m->label && !is_name(m->label)) || (m->label2 && !is_name(m->label2)) ||
		    (m->index && !is_name(m->index)))
			fail_msg("%s: no name for a label", m->id);
		if (m->label &&
		    (STRV_EQ(m->label, "gpu") || STRV_EQ(m->label, "uuid") || STRV_EQ(m->label, "gi") ||
		     STRV_EQ(m->label, "ci") || STRV_EQ(m->label, "pid") || STRV_EQ(m->label, "comm")))
			fail_msg("%s: that label tells devices and processes apart", m->id);
		if (table->rows != agent_metrics && !m->source)
			fail_msg("%s: a source is wanted", m->id);
		if (is_of_devices(table) && (!m->arch || m->levels == 0))
			fail_msg("%s: architectures and level are wanted", m->id);
		if (!!m->index != (m->count > 1))
			fail_msg("%s: several slots want an index label, one wants none", m->id);
	}
}

static void rows_of_a_family_agree_and_stand_together(_unused_ void **state)
{
	FOR_EACH_ROW(table, m)
	{
		for (const struct metric *other = m + 1; other < table->rows + table->n; other++) {
			if (!STRV_EQ(m->family, other->family))
				continue;
			if (!STRV_EQ(other[-1].family, m->family))
				fail_msg("%s stands apart from its family", other->id);
			if (m->unit != other->unit || !same(m->label, other->label) ||
			    !same(m->label2, other->label2) || !same(m->index, other->index) ||
			    !STRV_EQ(m->help, other->help) ||
			    (m->kind == METRIC_COUNTER || m->kind == METRIC_INCREMENT) !=
				    (other->kind == METRIC_COUNTER || other->kind == METRIC_INCREMENT))
				fail_msg("%s and %s: one family, two kinds, units, labels or helps", m->id,
					 other->id);
			if (same(m->value, other->value) && same(m->value2, other->value2))
				fail_msg("%s and %s would be one series", m->id, other->id);
		}
	}
}

static void a_family_belongs_to_one_table(_unused_ void **state)
{
	FOR_EACH_ROW(table, m)
	{
		for (const struct table *other = table + 1; other < tables + ARRAY_SIZE(tables); other++)
			for (unsigned i = 0; i < other->n; i++)
				if (STRV_EQ(m->family, other->rows[i].family))
					fail_msg("%s is in two tables", m->family);
	}
}

static void counters_end_in_total_and_names_in_their_unit(_unused_ void **state)
{
	FOR_EACH_ROW(table, m)
	{
		bool counts = m->kind == METRIC_COUNTER || m->kind == METRIC_INCREMENT;
		char suffix[64];

		if (counts != ends_with(m->family, "_total"))
			fail_msg("%s: \"_total\" is for counters, and for all of them", m->family);
		snprintf(suffix, sizeof(suffix), "_%s%s", unit_name(m->unit), counts ? "_total" : "");
		if (m->unit != UNIT_NONE && !ends_with(m->family, suffix))
			fail_msg("%s should end in %s", m->family, suffix);
	}
}

static void ids_are_unique_and_slots_do_not_overlap(_unused_ void **state)
{
	unsigned slot = 0;

	FOR_EACH_ROW(table, m)
	{
		for (const struct metric *other = m + 1; other < table->rows + table->n; other++)
			assert_string_not_equal(m->id, other->id);
	}
	for (unsigned row = 0; row < GPU_METRICS; row++) {
		assert_int_equal(gpu_metrics[row].slot, slot);
		for (unsigned i = 0; i < gpu_metrics[row].count; i++)
			assert_ptr_equal(gpu_slot_metric(slot + i), &gpu_metrics[row]);
		slot += gpu_metrics[row].count;
	}
	assert_int_equal(slot, GPU_SLOTS);
}

static void check_dcgm(const struct metric *m, const struct dcgm_name *name)
{
	bool counts = m->kind == METRIC_COUNTER || m->kind == METRIC_INCREMENT;

	if (!name->name)
		return;
	if (strncmp(name->name, "DCGM_FI_", 8) != 0 || name->scale <= 0 || !name->type)
		fail_msg("%s: half a DCGM name", m->id);
	for (const char *p = name->name; *p; p++)
		assert_true(isupper((unsigned char)*p) || isdigit((unsigned char)*p) || *p == '_');
	/* A gauge of ours may be a counter there (retired pages are counted, and may be repaired). */
	if (counts && !STRV_EQ(name->type, "counter"))
		fail_msg("%s counts, its DCGM name does not", m->id);
}

static void dcgm_names_are_unique(_unused_ void **state)
{
	for (unsigned i = 0; i < GPU_METRICS; i++) {
		const struct metric *m = &gpu_metrics[i];

		check_dcgm(m, &m->dcgm);
		check_dcgm(m, &m->dcgm49);
		for (unsigned j = i + 1; j < GPU_METRICS; j++) {
			if (m->dcgm.name && same(m->dcgm.name, gpu_metrics[j].dcgm.name))
				fail_msg("%s twice", m->dcgm.name);
			if (m->dcgm49.name && same(m->dcgm49.name, gpu_metrics[j].dcgm49.name))
				fail_msg("%s twice", m->dcgm49.name);
		}
	}
}

static bool has_dcgm(const char *name)
{
	for (unsigned i = 0; i < GPU_METRICS; i++)
		if (same(gpu_metrics[i].dcgm.name, name))
			return true;
	return false;
}

/* What container_metrics users and the exporter's default page need; XID_ERRORS comes from the XID counts. */
static void all_28_metrics_of_dcgm_are_there(_unused_ void **state)
{
	static const char *const wanted[] = {
		"DCGM_FI_PROF_SM_ACTIVE",
		"DCGM_FI_PROF_SM_OCCUPANCY",
		"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
		"DCGM_FI_PROF_DRAM_ACTIVE",
		"DCGM_FI_PROF_PCIE_TX_BYTES",
		"DCGM_FI_PROF_PCIE_RX_BYTES",
		"DCGM_FI_PROF_NVLINK_TX_BYTES",
		"DCGM_FI_PROF_NVLINK_RX_BYTES",
		"DCGM_FI_PROF_GR_ENGINE_ACTIVE",
		"DCGM_FI_DEV_FB_TOTAL",
		"DCGM_FI_DEV_FB_USED",
		"DCGM_FI_DEV_FB_FREE",
		"DCGM_FI_DEV_PCIE_LINK_GEN",
		"DCGM_FI_DEV_PCIE_LINK_WIDTH",
		"DCGM_FI_DEV_GPU_TEMP",
		"DCGM_FI_DEV_MEMORY_TEMP",
		"DCGM_FI_DEV_POWER_USAGE",
		"DCGM_FI_DEV_GPU_UTIL",
		"DCGM_FI_PROF_PIPE_INT_ACTIVE",
		"DCGM_FI_PROF_PIPE_FP16_ACTIVE",
		"DCGM_FI_PROF_PIPE_FP32_ACTIVE",
		"DCGM_FI_PROF_PIPE_FP64_ACTIVE",
		"DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
		"DCGM_FI_DEV_POWER_VIOLATION",
		"DCGM_FI_DEV_THERMAL_VIOLATION",
		"DCGM_FI_DEV_SM_CLOCK",
		"DCGM_FI_DEV_MEM_CLOCK",
		"DCGM_FI_DEV_FB_RESERVED",
		"DCGM_FI_DEV_MEM_COPY_UTIL",
		"DCGM_FI_DEV_ENC_UTIL",
		"DCGM_FI_DEV_DEC_UTIL",
		"DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
		"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
		"DCGM_FI_DEV_ROW_REMAP_FAILURE",
		"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
		"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
	};

	for (unsigned i = 0; i < ARRAY_SIZE(wanted); i++)
		if (!has_dcgm(wanted[i]))
			fail_msg("%s is missing", wanted[i]);
}

static void names_that_dashboards_rely_on(_unused_ void **state)
{
	static const char *const wanted[] = {
		"gpu_busy_seconds_total",   "gpu_observed_seconds_total", "gpu_utilization_ratio",
		"gpu_memory_used_bytes",    "gpu_memory_total_bytes",     "gpu_power_watts",
		"gpu_energy_joules_total",  "gpu_temperature_celsius",    "process_gpu_busy_seconds_total",
		"process_gpu_memory_bytes",
	};

	for (unsigned i = 0; i < ARRAY_SIZE(wanted); i++) {
		bool found = false;

		FOR_EACH_ROW(table, m)
		{
			found |= STRV_EQ(m->family, wanted[i]);
		}
		if (!found)
			fail_msg("%s is gone", wanted[i]);
	}
}

static void engines_are_rows_in_order(_unused_ void **state)
{
	for (unsigned i = 0; i < ENGINES; i++) {
		assert_string_equal(gpu_metrics[GPU_BUSY_GPU + i].value, engine_names[i]);
		assert_string_equal(gpu_metrics[GPU_UTILIZATION_GPU + i].value, engine_names[i]);
	}
}

static void garbage_is_not_plausible(_unused_ void **state)
{
	static const double garbage[] = { NAN,
					  INFINITY,
					  -INFINITY,
					  -1,
					  4294967295.0,
					  4294967294.0,
					  2147483632.0,
					  2147483635.0,
					  140737488355328.0,
					  140737488355331.0,
					  9223372036854775794.0,
					  18446744073709551615.0,
					  1e300 };

	for (unsigned row = 0; row < GPU_METRICS; row++) {
		const struct metric *m = &gpu_metrics[row];
		double scale = m->scale != 0 ? m->scale : 1;

		for (unsigned i = 0; i < ARRAY_SIZE(garbage); i++) {
			if (garbage[i] == -1 && m->is_signed)
				continue;
			if (metric_plausible(m, garbage[i]) || metric_plausible(m, garbage[i] * scale))
				fail_msg("%s takes %g for true", m->id, garbage[i]);
		}
		assert_true(metric_plausible(m, 0));
		assert_true(metric_plausible(m, 1));
	}
}

static void true_values_are_plausible(_unused_ void **state)
{
	assert_true(metric_plausible(&gpu_metrics[GPU_TEMPERATURE], -20));
	assert_false(metric_plausible(&gpu_metrics[GPU_TEMPERATURE], -300));
	assert_true(metric_plausible(&gpu_metrics[GPU_TEMPERATURE_MARGIN], -3));
	assert_true(metric_plausible(&gpu_metrics[GPU_UTILIZATION_GPU], 100 * 1e-2));
	assert_false(metric_plausible(&gpu_metrics[GPU_UTILIZATION_GPU], 1.01));
	assert_true(metric_plausible(&gpu_metrics[GPU_MEMORY_USED], 288.0 * 1024 * 1024 * 1024));
	assert_false(metric_plausible(&gpu_metrics[GPU_MEMORY_USED], 2e15));
	assert_true(metric_plausible(&gpu_metrics[GPU_NVLINK_TX_BYTES], 5e17)); /* months at 900 GB/s */
	assert_true(metric_plausible(&gpu_metrics[GPU_POWER], 1400));
	assert_false(metric_plausible(&gpu_metrics[GPU_POWER], 644245.923));
	assert_true(metric_plausible(&gpu_metrics[GPU_CLOCK_SM], 2.6e9));
	assert_true(metric_plausible(&gpu_metrics[GPU_ENERGY], 3e10));
	assert_true(metric_plausible(&gpu_metrics[GPU_PCIE_REPLAY], 4294967293.0));
	assert_false(metric_plausible(&gpu_metrics[GPU_PCIE_REPLAY], 4294967296.0));
	assert_true(metric_plausible(&gpu_metrics[GPU_THROTTLE_POWER], 86400));
}

static void names_of_units_and_presences(_unused_ void **state)
{
	for (unsigned unit = 0; unit < UNIT_MAX; unit++)
		assert_non_null(unit_name(unit));
	for (unsigned p = 0; p < PRESENCE_MAX; p++)
		assert_true(is_name(presence_name((uint8_t)p)));
	assert_string_equal(presence_name(PRESENCE_PRESENT | PRESENCE_ESTIMATED), "present");
	assert_string_equal(presence_name(PRESENCE_MAX), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_whole),
		cmocka_unit_test(rows_of_a_family_agree_and_stand_together),
		cmocka_unit_test(a_family_belongs_to_one_table),
		cmocka_unit_test(counters_end_in_total_and_names_in_their_unit),
		cmocka_unit_test(ids_are_unique_and_slots_do_not_overlap),
		cmocka_unit_test(dcgm_names_are_unique),
		cmocka_unit_test(all_28_metrics_of_dcgm_are_there),
		cmocka_unit_test(names_that_dashboards_rely_on),
		cmocka_unit_test(engines_are_rows_in_order),
		cmocka_unit_test(garbage_is_not_plausible),
		cmocka_unit_test(true_values_are_plausible),
		cmocka_unit_test(names_of_units_and_presences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
