// SPDX-License-Identifier: Apache-2.0
#include "fake.h"

#include "nvml/column.h"

enum {
	MEMORY_TEMP = 82,
	POWER_INSTANT = 186,
	LINK_COUNT = 91,
	THROTTLE_POWER = 74,
	TX_KIB = 138,
	TX_BYTES = 202
};

static void scales_and_types(void **state)
{
	struct fake_gpu *gpu = &fake.gpus[0];

	(void)state;
	fake_field(gpu, POWER_INSTANT, 0, 123456);
	gpu->fields[0].type = NVML_VALUE_TYPE_UNSIGNED_INT;
	fake_field(gpu, THROTTLE_POWER, 0, 2500000000);
	/* Driver 545 calls this one a double; its bits are an integer's all the same. */
	fake_field(gpu, MEMORY_TEMP, 0, 65);
	gpu->fields[2].type = NVML_VALUE_TYPE_DOUBLE;
	pass_after(0);
	assert_near(VALUE(0, POWER_INSTANT), 123.456, 1e-9);
	assert_near(VALUE(0, THROTTLE_POWER), 2.5, 1e-9);
	assert_near(VALUE(0, TEMPERATURE_MEMORY), 65, 0);
}

static void garbage_is_rejected(void **state)
{
	static const uint64_t garbage[] = { UINT64_MAX, UINT32_MAX, UINT64_C(9223372036854775794) };
	struct fake_gpu *gpu = &fake.gpus[0];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(garbage); i++) {
		fake_field(gpu, THROTTLE_POWER, 0, garbage[i]);
		pass_after(1000);
		assert_int_equal(PRESENCE(0, THROTTLE_POWER), PRESENCE_REJECTED);
		assert_int_equal(reader->reading->rejected[GPU_THROTTLE_POWER], 1);
	}
	gpu->fields[0].type = 77; /* no type of NVML's */
	pass_after(1000);
	assert_int_equal(PRESENCE(0, THROTTLE_POWER), PRESENCE_REJECTED);
}

static void one_call_for_all_of_a_device(void **state)
{
	(void)state;
	fake_field(&fake.gpus[0], POWER_INSTANT, 0, 1000);
	fake_field(&fake.gpus[0], THROTTLE_POWER, 0, 1000);
	pass_after(0);
	fake.gpus[0].field_calls = 0;
	pass_after(1000);
	assert_int_equal(fake.gpus[0].field_calls, 1);
}

static void unsupported_ones_are_left_out_for_a_while(void **state)
{
	struct fake_gpu *gpu = &fake.gpus[0];

	(void)state;
	fake_field(gpu, THROTTLE_POWER, 0, 1000);
	pass_after(0);
	assert_int_equal(PRESENCE(0, TEMPERATURE_MEMORY), PRESENCE_UNSUPPORTED);
	for (unsigned i = 0; i < 100; i++)
		pass_after(1000);
	assert_int_equal(gpu->field_asked[THROTTLE_POWER], 101);
	assert_int_equal(gpu->field_asked[MEMORY_TEMP], 1);
	fake_field(gpu, MEMORY_TEMP, 0, 70);
	pass_after(400000);
	assert_near(VALUE(0, TEMPERATURE_MEMORY), 70, 0);
}

static void links_are_asked_as_many_as_there_are(void **state)
{
	struct fake_gpu *gpu = &fake.gpus[0];

	(void)state;
	fake_field(gpu, LINK_COUNT, 0, 3);
	for (uint32_t link = 0; link < 3; link++)
		fake_field(gpu, TX_KIB, link, 10 * (link + 1));
	fake_field(gpu, TX_KIB, UINT32_MAX, 60);
	pass_after(0);
	assert_near(VALUE(0, NVLINK_LINK_TX_BYTES), 10 * 1024, 0);
	assert_near((&VALUE(0, NVLINK_LINK_TX_BYTES))[2], 30 * 1024, 0);
	assert_int_equal((&PRESENCE(0, NVLINK_LINK_TX_BYTES))[3], PRESENCE_ABSENT);
	assert_near(VALUE(0, NVLINK_TX_BYTES), 60 * 1024, 0);
	/* Three links and all together. */
	assert_int_equal(gpu->field_asked[TX_KIB], 4);
}

static void newer_links_count_in_bytes_and_are_summed(void **state)
{
	struct fake_gpu *gpu = &fake.gpus[0];

	(void)state;
	fake_field(gpu, LINK_COUNT, 0, 2);
	fake_field(gpu, TX_BYTES, 0, 1000);
	fake_field(gpu, TX_BYTES, 1, 500);
	pass_after(0);
	assert_near(VALUE(0, NVLINK_LINK_TX_BYTES), 1000, 0);
	assert_near(VALUE(0, NVLINK_TX_BYTES), 1500, 0);
	fake_field(gpu, TX_BYTES, 0, 1600);
	pass_after(1000);
	assert_near(VALUE(0, NVLINK_TX_BYTES), 2100, 0);
	assert_near(VALUE(0, NVLINK_TX_RATE), 600, 1e-6);
	/* One link is out for a moment: the sum does not fall. */
	gpu->fields[2].result = NVML_ERROR_UNKNOWN;
	pass_after(1000);
	assert_near(VALUE(0, NVLINK_TX_BYTES), 2100, 0);
	fake_field(gpu, TX_BYTES, 1, 700);
	pass_after(1000);
	assert_near(VALUE(0, NVLINK_TX_BYTES), 2300, 0);
}

static void bit_error_ratios_are_decoded(void **state)
{
	(void)state;
	fake_field(&fake.gpus[0], LINK_COUNT, 0, 1);
	fake_field(&fake.gpus[0], NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER, 0, 3 << 8 | 12); /* 3e-12 */
	pass_after(0);
	assert_near(VALUE(0, NVLINK_LINK_BER_EFFECTIVE), 3e-12, 1e-20);
}

static void corrected_blocks_are_told_apart(void **state)
{
	(void)state;
	fake_field(&fake.gpus[0], LINK_COUNT, 0, 1);
	for (uint32_t bin = 0; bin < 16; bin++)
		fake_field(&fake.gpus[0], NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0 + bin, 0, 100 + bin);
	pass_after(20000);
	for (uint32_t bin = 0; bin < 16; bin++)
		assert_near((&VALUE(0, NVLINK_LINK_FEC_0))[bin * NVLINKS_MAX], 100 + bin, 0);
	fake.gpus[0].fields[6].result = NVML_ERROR_UNKNOWN; /* the first is the number of links */
	pass_after(20000);
	assert_int_equal(PRESENCE(0, NVLINK_LINK_FEC_5), PRESENCE_FAILED);
	assert_int_equal(PRESENCE(0, NVLINK_LINK_FEC_6), PRESENCE_PRESENT);
}

static void retransmission_is_read_from_the_ports(void **state)
{
	struct fake_gpu *gpu = &fake.gpus[0];

	(void)state;
	fake_field(gpu, LINK_COUNT, 0, 2);
	gpu->prm_result = NVML_SUCCESS;
	for (uint32_t first = 0; first < 2; first++) {
		gpu->prm_first_port = first;
		pass_after(20000);
		assert_near(VALUE(0, NVLINK_LINK_PLR_RX_CODES), first * 1000 + 301, 0);
		assert_near((&VALUE(0, NVLINK_LINK_PLR_SYNC_EVENTS))[1], (first + 1) * 1000 + 307, 0);
		assert_int_equal((&PRESENCE(0, NVLINK_LINK_PLR_TX_CODES))[2], PRESENCE_ABSENT);
	}
	gpu->prm_result = NVML_ERROR_NO_PERMISSION;
	pass_after(20000);
	assert_int_equal(PRESENCE(0, NVLINK_LINK_PLR_RX_CODES), PRESENCE_NO_PERMISSION);
}

static void pcie_bytes_come_round(void **state)
{
	struct fake_gpu *gpu = &fake.gpus[0];

	(void)state;
	fake_field(gpu, NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 0, 4000000000);
	pass_after(0);
	fake_field(gpu, NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 0, 1000);
	pass_after(1000);
	assert_near(VALUE(0, PCIE_TX_BYTES), 4294967296.0 + 1000, 0);
	assert_near(VALUE(0, PCIE_TX_RATE), 4294967296.0 + 1000 - 4e9, 1e-3);
	/* How fast the link is, is not known here: it may have come round more than once. */
	assert_true(PRESENCE(0, PCIE_TX_BYTES) & PRESENCE_ESTIMATED);
	/* GPM knows: 100 MiB/s for a minute is one and a half rounds. */
	gpu->gpm = true;
	gpu->gpm_percent = 100;
	pass_after(400000);
	fake_field(gpu, NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 0,
		   UINT64_C(1000) + UINT64_C(6291456000) - UINT64_C(4294967296));
	pass_after(60000);
	assert_near(VALUE(0, PCIE_TX_BYTES), 4294967296.0 + 1000 + 6291456000.0, 0);
	assert_int_equal(PRESENCE(0, PCIE_TX_BYTES), PRESENCE_PRESENT);
	assert_near(VALUE(0, PCIE_TX_RATE), 100.0 * 1048576, 1e-3);
}

/* Where a value belongs is what was asked, whatever the driver leaves in it. */
static void scopes_are_not_believed(void **state)
{
	struct fake_gpu *gpu = &fake.gpus[0];

	(void)state;
	fake_field(gpu, LINK_COUNT, 0, 2);
	for (uint32_t link = 0; link < 2; link++)
		fake_field(gpu, NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, link, 100 * (link + 1));
	gpu->scribbled_scope = 60;
	pass_after(0);
	assert_near(reader->reading->entities[0].v[SLOT_NVLINK_LINK_TX_BYTES + 1], 200, 0);
	assert_int_equal(PRESENCE(0, NVLINK_LINK_TX_BYTES), PRESENCE_PRESENT);
}

/* No row is left out because a table in the reader is too short. */
static void every_field_of_the_table_is_asked(void **state)
{
	struct fake_gpu *gpu = &fake.gpus[0];

	(void)state;
	fake_field(gpu, LINK_COUNT, 0, 1);
	fake_field(gpu, NVML_FI_DEV_C2C_LINK_COUNT, 0, 1);
	pass_after(0);
	for (unsigned row = 0; row < GPU_METRICS; row++)
		if (nvml_columns[row].field)
			assert_true(gpu->field_asked[nvml_columns[row].field] > 0);
	/* The last of what the reader asks beyond the table. */
	assert_true(gpu->field_asked[NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER] > 0);
}

/*
 * NVIDIA has given numbers new meanings: 269 was a profile of power smoothing before driver 590, and is a
 * time now.
 */
static void a_number_that_meant_something_else_is_not_asked(void **state)
{
	struct fake_gpu *gpu = &fake.gpus[0];

	(void)state;
	fake.driver = 589;
	fake_field(gpu, NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, 0, 3000000000);
	pass_after(0);
	assert_int_equal(gpu->field_asked[NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN], 0);
	assert_int_equal(PRESENCE(0, THROTTLE_SW_THERMAL_SLOWDOWN), PRESENCE_UNSUPPORTED);
}

static void a_type_that_nobody_knows_is_said(void **state)
{
	struct fake_gpu *gpu = &fake.gpus[0];

	(void)state;
	fake_field(gpu, NVML_FI_DEV_POWER_INSTANT, 0, 5);
	gpu->fields[gpu->fields_n - 1].type = NVML_VALUE_TYPE_COUNT;
	pass_after(0);
	assert_int_equal(PRESENCE(0, POWER_INSTANT), PRESENCE_REJECTED);
	assert_string_equal(reader->reading->unrecognised, "field 186 with a value of type 7");
}

int main(void)
{
#define TEST(name_) cmocka_unit_test_setup_teardown(name_, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		TEST(every_field_of_the_table_is_asked),
		TEST(scales_and_types),
		TEST(garbage_is_rejected),
		TEST(one_call_for_all_of_a_device),
		TEST(unsupported_ones_are_left_out_for_a_while),
		TEST(links_are_asked_as_many_as_there_are),
		TEST(newer_links_count_in_bytes_and_are_summed),
		TEST(bit_error_ratios_are_decoded),
		TEST(corrected_blocks_are_told_apart),
		TEST(retransmission_is_read_from_the_ports),
		TEST(pcie_bytes_come_round),
		TEST(scopes_are_not_believed),
		TEST(a_number_that_meant_something_else_is_not_asked),
		TEST(a_type_that_nobody_knows_is_said),
	};

	return cmocka_run_group_tests_name("fields", tests, NULL, NULL);
}
