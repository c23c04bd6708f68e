// SPDX-License-Identifier: Apache-2.0
#include "fake.h"

#include <string.h>

static void reads_what_there_is(void **state)
{
	(void)state;
	fake.count = 2;
	pass_after(0);
	assert_int_equal(reader->reading->state, READING_OK);
	assert_int_equal(reader->reading->entities_n, 2);
	assert_string_equal(reader->reading->entities[1].uuid, "GPU-1");
	assert_string_equal(reader->reading->entities[1].pci_bus_id, "00000000:02:00.0");
	assert_near(VALUE(0, POWER), 100, 0);
	assert_near(VALUE(1, POWER), 200, 0);
	assert_near(VALUE(0, MEMORY_RESERVED), 10, 0);
	/* A function that the library does not have. */
	assert_int_equal(PRESENCE(0, BAR1_TOTAL), PRESENCE_UNSUPPORTED);
	/* What nobody has asked for is not there. */
	assert_int_equal(PRESENCE(0, MEMORY_USED_PEAK), PRESENCE_ABSENT);
}

static void errors_become_presences(void **state)
{
	static const struct {
		enum nvml_return result;
		uint8_t presence;
	} cases[] = {
		{ NVML_ERROR_NO_PERMISSION, PRESENCE_NO_PERMISSION },
		{ NVML_ERROR_UNKNOWN, PRESENCE_FAILED },
		{ NVML_ERROR_TIMEOUT, PRESENCE_FAILED },
		{ NVML_ERROR_NO_DATA, PRESENCE_ABSENT },
		{ NVML_SUCCESS, PRESENCE_PRESENT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		fake.gpus[0].power_result = cases[i].result;
		pass_after(1000);
		assert_int_equal(PRESENCE(0, POWER), cases[i].presence);
	}
}

static void what_is_unsupported_is_asked_again_later(void **state)
{
	(void)state;
	fake.gpus[0].power_result = NVML_ERROR_NOT_SUPPORTED;
	pass_after(0);
	assert_int_equal(PRESENCE(0, POWER), PRESENCE_UNSUPPORTED);
	fake.gpus[0].power_result = NVML_SUCCESS;
	pass_after(1000);
	assert_int_equal(PRESENCE(0, POWER), PRESENCE_UNSUPPORTED);
	pass_after(400000);
	assert_int_equal(PRESENCE(0, POWER), PRESENCE_PRESENT);
}

static void garbage_is_rejected_and_counted(void **state)
{
	static const uint32_t garbage[] = { UINT32_MAX, 0x7ffffff0, 0x7ffffff2, 30000000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(garbage); i++) {
		fake.gpus[0].power_mw = garbage[i];
		pass_after(1000);
		assert_int_equal(PRESENCE(0, POWER), PRESENCE_REJECTED);
		assert_int_equal(reader->reading->rejected[GPU_POWER], 1);
	}
	fake.gpus[0].power_mw = 50000;
	pass_after(1000);
	assert_near(VALUE(0, POWER), 50, 0);
	assert_int_equal(reader->reading->rejected[GPU_POWER], 0);
}

/* Signed numbers: all ones would be a believable -1. */
static void garbage_of_signed_numbers_is_rejected(void **state)
{
	static const int32_t garbage[] = { -1, 0x7ffffff0, INT32_MAX, INT32_MIN, 300, -300 };

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(garbage); i++) {
		fake.gpus[0].celsius = garbage[i / 2];
		fake.gpus[0].temperature_v_result = i % 2 ? NVML_ERROR_FUNCTION_NOT_FOUND : NVML_SUCCESS;
		pass_after(10000); /* the margin is read every ten seconds */
		assert_int_equal(PRESENCE(0, TEMPERATURE), PRESENCE_REJECTED);
		assert_int_equal(PRESENCE(0, TEMPERATURE_MARGIN), PRESENCE_REJECTED);
		assert_int_equal(reader->reading->rejected[GPU_TEMPERATURE], 1);
		assert_int_equal(reader->reading->rejected[GPU_TEMPERATURE_MARGIN], 1);
	}
	fake.gpus[0].celsius = -5;
	pass_after(10000);
	assert_near(VALUE(0, TEMPERATURE), -5, 0);
	assert_near(VALUE(0, TEMPERATURE_MARGIN), -5, 0);
}

static void no_sessions_have_no_averages(void **state)
{
	(void)state;
	pass_after(0);
	assert_near(VALUE(0, ENCODER_SESSIONS), 0, 0);
	assert_int_equal(PRESENCE(0, ENCODER_SESSIONS), PRESENCE_PRESENT);
	assert_int_equal(PRESENCE(0, ENCODER_FPS), PRESENCE_ABSENT);
	assert_int_equal(PRESENCE(0, ENCODER_LATENCY), PRESENCE_ABSENT);
	assert_int_equal(PRESENCE(0, FBC_SESSIONS), PRESENCE_PRESENT);
	assert_int_equal(PRESENCE(0, FBC_FPS), PRESENCE_ABSENT);
	assert_int_equal(PRESENCE(0, FBC_LATENCY), PRESENCE_ABSENT);
	fake.gpus[0].encoder_sessions = 2;
	pass_after(20000);
	assert_near(VALUE(0, ENCODER_FPS), 60, 0);
	assert_near(VALUE(0, ENCODER_LATENCY), 0.004, 1e-9);
	assert_near(VALUE(0, FBC_FPS), 60, 0);
	assert_near(VALUE(0, FBC_LATENCY), 0.004, 1e-9);
}

static void a_vgpu_license_is_what_dcgm_says_of_it(void **state)
{
	struct nvml_licensable_features *licenses = &fake.gpus[0].licenses;

	(void)state;
	pass_after(0);
	assert_near(VALUE(0, VGPU_LICENSE_SUPPORTED), 0, 0);
	assert_near(VALUE(0, VGPU_LICENSED), 0, 0);
	assert_int_equal(PRESENCE(0, VGPU_LICENSED), PRESENCE_PRESENT);

	*licenses = (struct nvml_licensable_features){
		.supported = 1,
		.count = 1000, /* more than there is room for */
		.features = { { .code = NVML_GRID_LICENSE_FEATURE_CODE_NVIDIA_RTX, .state = 1 },
			      { .code = NVML_GRID_LICENSE_FEATURE_CODE_VGPU, .state = 7 } },
	};
	pass_after(20000);
	assert_near(VALUE(0, VGPU_LICENSE_SUPPORTED), 1, 0);
	assert_near(VALUE(0, VGPU_LICENSED), 1, 0);

	licenses->features[1].state = 0;
	pass_after(20000);
	assert_int_equal(PRESENCE(0, VGPU_LICENSED), PRESENCE_PRESENT);
	assert_near(VALUE(0, VGPU_LICENSED), 0, 0);

	licenses->features[1].code = NVML_GRID_LICENSE_FEATURE_CODE_GAMING;
	pass_after(20000);
	assert_near(VALUE(0, VGPU_LICENSE_SUPPORTED), 1, 0);
	assert_int_equal(PRESENCE(0, VGPU_LICENSED), PRESENCE_ABSENT);

	fake.gpus[0].license_result = NVML_ERROR_NOT_SUPPORTED;
	pass_after(20000);
	assert_int_equal(PRESENCE(0, VGPU_LICENSE_SUPPORTED), PRESENCE_UNSUPPORTED);
	assert_int_equal(PRESENCE(0, VGPU_LICENSED), PRESENCE_UNSUPPORTED);
}

static void links_through_switches_are_the_same_both_ways(void **state)
{
	static const uint32_t links[FAKE_GPUS] = { 18, 16, 12 };
	static const int capabilities[FAKE_GPUS] = { 9, 9, 8 };

	(void)state;
	fake.count = FAKE_GPUS;
	for (unsigned i = 0; i < FAKE_GPUS; i++) {
		fake.gpus[i].switched_links = links[i];
		fake.gpus[i].capability = capabilities[i];
	}
	for (unsigned i = 0; i < 130; i++) /* rows are read in turn */
		pass_after(1000);
	for (unsigned i = 0; i < FAKE_GPUS; i++)
		for (unsigned j = 0; j < FAKE_GPUS; j++)
			assert_int_equal(reader->reading->topology_nvlinks[i][j], i + j == 1 ? 16 : 0);
	/* One's links are lost: the other's row tells of it, too. */
	fake.gpus[0].switched_links = 0;
	for (unsigned i = 0; i < 70; i++)
		pass_after(1000);
	assert_int_equal(reader->reading->topology_nvlinks[0][1], 0);
	assert_int_equal(reader->reading->topology_nvlinks[1][0], 0);
}

static void older_calls_stand_in(void **state)
{
	(void)state;
	fake.gpus[0].memory_v2_result = NVML_ERROR_FUNCTION_NOT_FOUND;
	pass_after(0);
	assert_near(VALUE(0, MEMORY_USED), 40, 0);
	assert_int_equal(PRESENCE(0, MEMORY_RESERVED), PRESENCE_UNSUPPORTED);
}

static void rare_metrics_are_read_rarely_and_kept(void **state)
{
	(void)state;
	pass_after(0);
	assert_int_equal(fake.limit_calls, 1);
	for (unsigned i = 0; i < 9; i++) {
		pass_after(1000);
		assert_int_equal(fake.limit_calls, 1);
		assert_near(VALUE(0, POWER_LIMIT_ENFORCED), 700, 0);
	}
	pass_after(1000);
	assert_int_equal(fake.limit_calls, 2);
}

static void devices_take_turns_with_rare_work(void **state)
{
	unsigned before;

	(void)state;
	fake.count = 3;
	pass_after(0);
	for (unsigned i = 0; i < 20; i++) {
		before = fake.limit_calls;
		pass_after(1000);
		assert_true(fake.limit_calls - before <= 1);
	}
	assert_in_range(fake.limit_calls, 3 + 5, 3 + 7);
}

static void a_lost_gpu_has_no_values(void **state)
{
	(void)state;
	fake.count = 2;
	pass_after(0);
	fake.gpus[0].lost = true;
	pass_after(1000);
	assert_int_equal(reader->reading->state, READING_OK);
	assert_int_equal(reader->reading->entities[0].lost, 1);
	assert_string_equal(reader->reading->entities[0].uuid, "GPU-0");
	for (unsigned slot = 0; slot < GPU_SLOTS; slot++)
		assert_int_equal(reader->reading->entities[0].p[slot], PRESENCE_ABSENT);
	assert_near(VALUE(1, POWER), 200, 0);
	assert_int_equal(reader->reading->entities[1].lost, 0);
	fake.gpus[0].lost = false;
	pass_after(1000);
	assert_int_equal(reader->reading->entities[0].lost, 0);
	assert_near(VALUE(0, POWER), 100, 0);
	/* Rare ones too, at once. */
	assert_near(VALUE(0, POWER_LIMIT_ENFORCED), 700, 0);
}

static void one_lost_gpu_makes_it_initialise_again_now_and_then(void **state)
{
	unsigned inits;

	(void)state;
	fake.count = 2;
	pass_after(0);
	fake.gpus[0].lost = true;
	inits = fake.inits;
	for (unsigned i = 0; i < 9; i++)
		pass_after(1000);
	assert_int_equal(fake.inits, inits);
	for (unsigned i = 0; i < 600; i++)
		pass_after(1000);
	assert_in_range(fake.inits - inits, 3, 8);
}

static void a_gpu_lost_from_the_start_is_counted(void **state)
{
	(void)state;
	fake.count = 3;
	fake.gpus[1].lost = true;
	fake.gpus[0].switched_links = fake.gpus[2].switched_links = 4;
	fake.gpus[0].capability = fake.gpus[2].capability = 9;
	for (unsigned i = 0; i < 130; i++) /* rows are read in turn */
		pass_after(1000);
	assert_int_equal(reader->reading->entities_n, 2);
	assert_int_equal(reader->reading->gpus_unidentified, 1);
	assert_int_equal(reader->reading->topology_n, 3);
	assert_int_equal(reader->reading->topology_nvlinks[0][2], 4);
	assert_int_equal(reader->reading->topology_nvlinks[2][0], 4);
	assert_int_equal(reader->reading->topology_nvlinks[0][1], 0);
}

static void a_gpu_without_identity_is_asked_for_again(void **state)
{
	(void)state;
	fake.count = 3;
	fake.gpus[1].handle_result = NVML_ERROR_NO_PERMISSION;
	fake.gpus[2].uuid_result = NVML_ERROR_UNKNOWN;
	for (unsigned i = 0; i < 1000; i++)
		pass_after(1000);
	assert_int_equal(reader->reading->entities_n, 1);
	assert_int_equal(reader->reading->gpus_unidentified, 2);
	/* Seldom: opening it may cost the driver seconds. */
	assert_in_range(fake.gpus[1].handle_calls, 6, 10);
	/* The others are not listed anew each time. */
	assert_int_equal(fake.gpus[0].handle_calls, 1);
	fake.gpus[2].uuid_result = NVML_SUCCESS;
	for (unsigned i = 0; i < 310; i++)
		pass_after(1000);
	assert_int_equal(reader->reading->entities_n, 2);
	assert_string_equal(reader->reading->entities[1].uuid, "GPU-2");
	fake.gpus[1].handle_result = NVML_SUCCESS;
	for (unsigned i = 0; i < 310; i++)
		pass_after(1000);
	assert_int_equal(reader->reading->gpus_unidentified, 0);
	assert_int_equal(reader->reading->entities_n, 3);
	assert_near(VALUE(1, POWER), 200, 0);
	assert_int_equal(fake.inits, 1);
}

static void parts_of_an_identity_that_failed_are_asked_for_again(void **state)
{
	(void)state;
	fake.count = 2;
	fake.gpus[0].capability = fake.gpus[1].capability = 9;
	fake.gpus[1].capability_result = NVML_ERROR_TIMEOUT;
	fake.gpus[1].serial_result = NVML_ERROR_NO_PERMISSION;
	fake.version_result = NVML_ERROR_UNKNOWN;
	for (unsigned i = 0; i < 1000; i++)
		pass_after(1000);
	assert_string_equal(reader->reading->entities[0].compute_capability, "9.0");
	assert_string_equal(reader->reading->entities[1].compute_capability, "");
	assert_string_equal(reader->reading->driver_version, "");
	assert_int_equal(fake.gpus[0].handle_calls, 1);
	assert_in_range(fake.gpus[1].handle_calls, 6, 10);
	fake.gpus[1].capability_result = fake.version_result = NVML_SUCCESS;
	for (unsigned i = 0; i < 310; i++)
		pass_after(1000);
	assert_string_equal(reader->reading->entities[1].compute_capability, "9.0");
	assert_string_equal(reader->reading->driver_version, "1000.01");
	/* Listed once more, though a part is still missing. */
	assert_int_equal(fake.gpus[0].handle_calls, 2);
	assert_string_equal(reader->reading->entities[1].serial, "");
	fake.gpus[1].serial_result = NVML_SUCCESS;
	for (unsigned i = 0; i < 310; i++)
		pass_after(1000);
	assert_string_equal(reader->reading->entities[1].serial, "serial of GPU-1");
	assert_int_equal(fake.gpus[0].handle_calls, 3);
	assert_int_equal(fake.inits, 1);
}

static void all_gpus_lost_means_the_driver_restarted(void **state)
{
	(void)state;
	fake.count = 2;
	pass_after(0);
	fake.gpus[0].lost = fake.gpus[1].lost = true;
	pass_after(1000);
	assert_int_equal(reader->reading->entities[0].lost, 1);
	fake.gpus[0].lost = fake.gpus[1].lost = false;
	pass_after(1000);
	pass_after(1000);
	pass_after(1000);
	assert_int_equal(reader->reading->entities[1].lost, 0);
	assert_near(VALUE(1, POWER), 200, 0);
}

static void attaches_again_when_the_driver_comes_back(void **state)
{
	(void)state;
	pass_after(0);
	assert_int_equal(reader->reading->attach, 1);
	fake.gone = true;
	fake.init_result = NVML_ERROR_DRIVER_NOT_LOADED;
	pass_after(1000);
	assert_int_equal(reader->reading->state, READING_NO_DRIVER);
	assert_int_equal(reader->reading->entities_n, 0);
	assert_int_equal(fake.shutdowns, 1);
	for (unsigned i = 0; i < 30; i++) {
		pass_after(1000);
		assert_int_equal(reader->reading->state, READING_NO_DRIVER);
		assert_non_null(strstr(reader->reading->error, "modprobe nvidia"));
	}
	/* Tried at growing intervals, of ten seconds at most. */
	assert_in_range(fake.inits, 4, 8);
	fake.init_result = NVML_SUCCESS;
	for (unsigned i = 0; i < 10 && reader->reading->state != READING_OK; i++)
		pass_after(1000);
	assert_int_equal(reader->reading->state, READING_OK);
	assert_int_equal(reader->reading->attach, 2);
	assert_near(VALUE(0, POWER), 100, 0);
	assert_string_equal(reader->reading->error, "");
}

static void failures_to_attach_are_explained(void **state)
{
	static const struct {
		enum nvml_return result;
		enum reading_state state;
		const char *remedy;
		bool simulated;
	} cases[] = {
		{ NVML_ERROR_DRIVER_NOT_LOADED, READING_NO_DRIVER, "modprobe nvidia", false },
		{ NVML_ERROR_LIB_RM_VERSION_MISMATCH, READING_FAILED, "reboot", false },
		{ NVML_ERROR_NO_PERMISSION, READING_FAILED, "/dev/nvidia", false },
		{ NVML_ERROR_UNKNOWN, READING_FAILED, "NVRM", false },
		{ NVML_ERROR_UNKNOWN, READING_FAILED, "what is wrong with it", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		fake.init_result = cases[i].result;
		reader->library.simulated = cases[i].simulated;
		pass_after(20000);
		assert_int_equal(reader->reading->state, cases[i].state);
		assert_int_equal(reader->reading->nvml_error, cases[i].result);
		assert_non_null(strstr(reader->reading->error, cases[i].remedy));
	}
}

static void a_library_that_is_missing_is_explained(void **state)
{
	(void)state;
	reader->fake = false;
	reader->library_name = "/nonexistent/libnvidia-ml.so.1";
	pass_after(0);
	assert_int_equal(reader->reading->state, READING_NO_LIBRARY);
	assert_non_null(strstr(reader->reading->error, "nvml.library"));
}

static void a_library_that_is_something_else_is_explained(void **state)
{
	(void)state;
	reader->fake = false;
	reader->library_name = "libc.so.6";
	pass_after(0);
	assert_int_equal(reader->reading->state, READING_NO_LIBRARY);
	assert_non_null(strstr(reader->reading->error, "not NVIDIA's management library"));
}

static void gpus_come_and_go(void **state)
{
	(void)state;
	fake.count = 2;
	pass_after(0);
	fake.count = 1;
	pass_after(11000);
	assert_int_equal(reader->reading->entities_n, 1);
	assert_near(VALUE(0, POWER), 100, 0);
	fake.count = 3;
	pass_after(11000);
	assert_int_equal(reader->reading->entities_n, 3);
	assert_near(VALUE(2, POWER), 300, 0);
	assert_near(VALUE(2, POWER_LIMIT_ENFORCED), 700, 0);
}

static void xids_are_told_once(void **state)
{
	(void)state;
	fake.count = 2;
	pass_after(0);
	assert_int_equal(fake.registered, 2);
	fake.events[0] = (struct nvml_event_data){ .device = (struct nvml_device *)&fake.gpus[1],
						   .type = NVML_EVENT_XID_CRITICAL_ERROR,
						   .data = 79,
						   .gpu_instance = NVML_NONE_U32,
						   .compute_instance = NVML_NONE_U32 };
	fake.events[1] = fake.events[0];
	fake.events[1].data = 94;
	fake.events[1].gpu_instance = 3;
	fake.events_n = 2;
	pass_after(1000);
	assert_int_equal(reader->reading->events_n, 2);
	assert_int_equal(reader->reading->events[0].entity, 1);
	assert_int_equal(reader->reading->events[0].xid, 79);
	assert_int_equal(reader->reading->events[1].gi, 3);
	pass_after(1000);
	assert_int_equal(reader->reading->events_n, 0);
}

static void events_that_were_refused_are_asked_for_again(void **state)
{
	(void)state;
	fake.gpus[0].register_result = NVML_ERROR_NO_PERMISSION;
	pass_after(0);
	assert_int_equal(fake.registered, 0);
	fake.gpus[0].register_result = NVML_SUCCESS;
	pass_after(61000);
	assert_int_equal(fake.registered, 1);
	pass_after(61000);
	assert_int_equal(fake.registered, 1);
}

int main(void)
{
#define TEST(name_) cmocka_unit_test_setup_teardown(name_, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		TEST(reads_what_there_is),
		TEST(errors_become_presences),
		TEST(what_is_unsupported_is_asked_again_later),
		TEST(garbage_is_rejected_and_counted),
		TEST(garbage_of_signed_numbers_is_rejected),
		TEST(no_sessions_have_no_averages),
		TEST(a_vgpu_license_is_what_dcgm_says_of_it),
		TEST(links_through_switches_are_the_same_both_ways),
		TEST(older_calls_stand_in),
		TEST(rare_metrics_are_read_rarely_and_kept),
		TEST(devices_take_turns_with_rare_work),
		TEST(a_lost_gpu_has_no_values),
		TEST(one_lost_gpu_makes_it_initialise_again_now_and_then),
		TEST(a_gpu_lost_from_the_start_is_counted),
		TEST(a_gpu_without_identity_is_asked_for_again),
		TEST(parts_of_an_identity_that_failed_are_asked_for_again),
		TEST(all_gpus_lost_means_the_driver_restarted),
		TEST(attaches_again_when_the_driver_comes_back),
		TEST(failures_to_attach_are_explained),
		TEST(a_library_that_is_missing_is_explained),
		TEST(a_library_that_is_something_else_is_explained),
		TEST(gpus_come_and_go),
		TEST(xids_are_told_once),
		TEST(events_that_were_refused_are_asked_for_again),
	};

	return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
