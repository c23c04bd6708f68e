// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "nvml/process_list.h"

enum { ENTRIES = 4 };

static unsigned char buffer[ENTRIES * PROCESS_RECORD_ROOM];

static void write_list(unsigned n, unsigned stride)
{
	memset(buffer, PROCESS_LIST_FILL, sizeof(buffer));
	for (unsigned i = 0; i < n; i++) {
		struct {
			struct nvml_process_detail detail;
			uint64_t more[4];
		} record = {
			.detail.pid = 100 + i,
			.detail.used_memory = (i + 1) << 20,
			.detail.gpu_instance = NVML_NONE_U32,
			.detail.compute_instance = NVML_NONE_U32,
		};

		memcpy(buffer + (size_t)i * stride, &record, stride);
	}
}

static void strides(void **state)
{
	static const struct {
		unsigned declared, written;
	} cases[] = { { 24, 24 }, { 24, 32 }, { 16, 16 }, { 32, 32 } };

	(void)state;
	for (unsigned c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		for (unsigned n = 1; n <= ENTRIES; n++) {
			unsigned stride;

			write_list(n, cases[c].written);
			stride = process_list_stride(buffer, n, cases[c].declared);
			assert_int_equal(stride, cases[c].written);
			for (unsigned i = 0; i < n; i++) {
				struct process_record record;

				process_list_get(buffer, i, stride, &record);
				assert_int_equal(record.pid, 100 + i);
				assert_int_equal(record.used_memory, (i + 1) << 20);
			}
		}
	}
}

/* The last bytes of a record may be padding that the driver leaves as it was. */
static void records_of_sizes_that_nobody_knows(void **state)
{
	(void)state;
	for (unsigned size = 40; size <= PROCESS_RECORD_ROOM; size += 8) {
		for (unsigned n = 1; n <= ENTRIES; n++) {
			write_list(n, size);
			assert_int_equal(process_list_stride(buffer, n, 24), size);
			memset(buffer + (size_t)n * size - 4, PROCESS_LIST_FILL, 4);
			assert_int_equal(process_list_stride(buffer, n, 24), size);
		}
	}
}

static void an_empty_list_tells_nothing(void **state)
{
	(void)state;
	write_list(0, 24);
	assert_int_equal(process_list_stride(buffer, 0, 24), 24);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strides),
		cmocka_unit_test(records_of_sizes_that_nobody_knows),
		cmocka_unit_test(an_empty_list_tells_nothing),
	};

	return cmocka_run_group_tests_name("process_list", tests, NULL, NULL);
}
