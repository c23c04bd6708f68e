// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "fixture.h"
#include "view/dcgm/fields.h"
#include "view/view.h"

struct result {
	int r;
	struct dcgm_fields *fields;
	char *errors, *warnings;
};

static struct result parse(const char *text)
{
	struct result result = { 0 };
	struct strbuf errors, warnings;

	strbuf_init(&errors, 0);
	strbuf_init(&warnings, 0);
	result.r = dcgm_fields_parse("counters.csv", text, strlen(text), &errors, &warnings, &result.fields);
	result.errors = strbuf_take(&errors);
	result.warnings = strbuf_take(&warnings);
	return result;
}

static void done(struct result *result)
{
	dcgm_fields_free(result->fields);
	free(result->errors);
	free(result->warnings);
}

static char *page(struct snapshot *s, const struct dcgm_style *style)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	assert_int_equal(view_dcgm(s, style, EXPOSITION_PROMETHEUS, &out), 0);
	return strbuf_take(&out);
}

static unsigned families(const char *text)
{
	unsigned n = 0;

	for (const char *p = text; (p = strstr(p, "# TYPE DCGM_")); p++)
		n++;
	return n;
}

/* One that the exporter called otherwise before, which a file may still have. */
static void a_former_name(_unused_ void **state)
{
	struct result f = parse("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS, gauge, why");
	struct snapshot *s = fixture_small();
	struct dcgm_style style = { .fields = f.fields, .xid_window_ns = NSEC_PER_SEC };
	char *text = page(s, &style);

	assert_int_equal(f.r, 0);
	assert_string_equal(f.warnings, "");
	assert_int_equal(families(text), 1);
	assert_non_null(strstr(text, "# TYPE DCGM_FI_DEV_CLOCK_THROTTLE_REASONS gauge\n"));
	free(text);
	fixture_free(s);
	done(&f);
}

/* As the file has them, in any spelling, and nothing else. */
static void the_file_chooses_names_types_and_texts(_unused_ void **state)
{
	struct result f = parse("# Format\n"
				"# If line starts with a '#' it is considered a comment\n"
				"\n"
				"DCGM_FI_DEV_GPU_TEMP,  counter, \"Temperature, as measured.\"\r\n"
				"  DCGM_FI_DEV_FB_USED_BYTES, gauge, He said \"\" here\n"
				"DCGM_FI_DEV_SERIAL, label, Serial number\n"
				"DCGM_FI_DEV_VBIOS_VERSION, label, VBIOS\n"
				"DCGM_FI_DEV_XID_ERRORS, gauge, Value of the last XID error encountered.");
	struct snapshot *s = fixture_small();
	struct dcgm_style style = { .fields = f.fields, .xid_window_ns = NSEC_PER_SEC };

	assert_int_equal(f.r, 0);
	assert_string_equal(f.errors, "");
	assert_string_equal(f.warnings, "");
	char *text = page(s, &style);

	assert_int_equal(families(text), 3);
	assert_non_null(strstr(text, "# HELP DCGM_FI_DEV_GPU_TEMP Temperature, as measured.\n"
				     "# TYPE DCGM_FI_DEV_GPU_TEMP counter\n"));
	assert_non_null(strstr(text, "# TYPE DCGM_FI_DEV_FB_USED_BYTES gauge\n"));
	assert_non_null(strstr(text, "DCGM_FI_DEV_SERIAL=\""));
	assert_non_null(strstr(text, "DCGM_FI_DEV_VBIOS_VERSION=\""));
	assert_null(strstr(text, "DRIVER_VERSION"));
	free(text);
	/* The names of 4.9 where they are asked for. */
	style.names = DCGM_NAMES_49;
	text = page(s, &style);
	assert_int_equal(families(text), 3);
	assert_non_null(strstr(text, "# TYPE DCGM_FI_DEV_GPU_TEMP_CELSIUS"));
	/* The file's text is of the other name, and maybe of another unit. */
	assert_null(strstr(text, "as measured"));
	assert_non_null(strstr(text, "# HELP DCGM_FI_DEV_FB_USED_BYTES He said"));
	free(text);
	fixture_free(s);
	done(&f);
}

static void what_is_not_there_is_named(_unused_ void **state)
{
	struct result f = parse("DCGM_FI_DEV_GPU_TEMP, gauge, a\n"
				"DCGM_FI_DEV_NO_SUCH, gauge, b\n"
				"DCGM_FI_DEV_BRAND, label, c\n"
				"DCGM_FI_DEV_GPU_TEMP_CELSIUS, gauge, d\n");

	assert_int_equal(f.r, 0);
	assert_string_equal(f.warnings,
			    "counters.csv, line 2: /metrics/dcgm has no DCGM_FI_DEV_NO_SUCH\n"
			    "counters.csv, line 3: /metrics/dcgm has no label DCGM_FI_DEV_BRAND\n"
			    "counters.csv, line 4: DCGM_FI_DEV_GPU_TEMP_CELSIUS is there already as "
			    "DCGM_FI_DEV_GPU_TEMP; this one counts\n");
	done(&f);
}

static void wrong_lines_are_named(_unused_ void **state)
{
	struct result f = parse("DCGM_FI_DEV_GPU_TEMP, gauge, a, b\n"
				"#\n"
				"DCGM_FI_DEV_GPU_TEMP\n"
				"DCGM_FI_DEV_GPU_TEMP, gage, \x1b[31mred\n");

	assert_int_equal(f.r, -EINVAL);
	assert_null(f.fields);
	assert_non_null(strstr(f.errors, "counters.csv, line 1: it has 4 columns"));
	assert_non_null(strstr(f.errors, "counters.csv, line 3: it has 1 columns"));
	assert_non_null(strstr(f.errors, "line 4: the type of DCGM_FI_DEV_GPU_TEMP is \"gage\""));
	done(&f);
}

static void an_empty_file_is_an_empty_page(_unused_ void **state)
{
	struct result f = parse("# nothing\n");
	struct snapshot *s = fixture_small();
	const struct dcgm_style style = { .fields = f.fields };
	char *text = page(s, &style);

	assert_int_equal(families(text), 0);
	free(text);
	fixture_free(s);
	done(&f);
}

static void labels_as_the_options_say(_unused_ void **state)
{
	const struct dcgm_style style = { .no_hostname = true, .model_dashes = true };
	struct snapshot *s = fixture_small();
	char *text = page(s, &style);

	assert_null(strstr(text, "Hostname="));
	assert_non_null(strstr(text, "modelName=\"NVIDIA-H100-80GB-HBM3\""));
	assert_null(strstr(text, "modelName=\"NVIDIA H100"));
	free(text);
	fixture_free(s);
}

static void counts_of_windows(_unused_ void **state)
{
	struct dcgm_style style = { .xid_window_ns = 300 * NSEC_PER_SEC };
	struct snapshot *s = fixture_small();

	assert_true(s->xids_n > 0 && s->xids[0].entity < s->entities_n);
	const struct xid *xid = &s->xids[0];
	struct xid_event events[3] = {
		{ .entity = xid->entity, .code = xid->code, .real_ns = s->real_ns - 400 * NSEC_PER_SEC },
		{ .entity = xid->entity, .code = xid->code, .real_ns = s->real_ns - 200 * NSEC_PER_SEC },
		{ .entity = xid->entity, .code = xid->code, .real_ns = s->real_ns - 100 * NSEC_PER_SEC },
	};
	struct xid_event *former = s->xid_events;
	uint32_t former_n = s->xid_events_n;
	char wanted[96];

	s->xid_events = events;
	s->xid_events_n = 3;
	s->clock_window_ns = 300 * NSEC_PER_SEC;
	s->entities[0].clock_events[2] = 17;
	char *text = page(s, &style);

	snprintf(wanted, sizeof(wanted), "window_size_in_ms=\"300000\",xid=\"%u\"} 2\n", xid->code);
	assert_non_null(strstr(text, wanted));
	assert_non_null(strstr(text, "clock_event=\"power_cap\",window_size_in_ms=\"300000\"} 17\n"));
	free(text);
	s->xid_events = former;
	s->xid_events_n = former_n;
	fixture_free(s);
}

static void links_and_health(_unused_ void **state)
{
	const struct dcgm_style style = { 0 };
	struct snapshot *s = fixture_small();
	struct reading_entity *gpu = &s->entities[0].id;

	gpu->v[SLOT_NVLINK_LINK_RATE + 3] = 7 * 1024000;
	gpu->p[SLOT_NVLINK_LINK_RATE + 3] = PRESENCE_PRESENT;
	gpu->p[SLOT_NVLINK_LINK_RATE + 4] = PRESENCE_ABSENT;
	gpu->v[SLOT_REMAPPED_ROWS_PENDING] = gpu->v[SLOT_REMAPPED_ROWS_FAILED] = 1;
	gpu->p[SLOT_REMAPPED_ROWS_PENDING] = gpu->p[SLOT_REMAPPED_ROWS_FAILED] = PRESENCE_PRESENT;
	gpu->p[SLOT_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN] = PRESENCE_UNSUPPORTED;
	char *text = page(s, &style);

	assert_non_null(strstr(text, "# TYPE DCGM_FI_DEV_NVLINK_BANDWIDTH_L3 counter\n"));
	assert_non_null(strstr(text, "DCGM_FI_DEV_NVLINK_BANDWIDTH_L3{gpu=\"0\""));
	assert_null(strstr(text, "DCGM_FI_DEV_NVLINK_BANDWIDTH_L4"));
	/* The worst of a watch; what is not known is not passed. */
	assert_non_null(
		strstr(text, "health_error_code=\"DCGM_FR_ROW_REMAP_FAILURE\",health_watch=\"MEM\"} 20\n"));
	assert_null(strstr(text, "health_watch=\"POWER\""));
	free(text);
	fixture_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_former_name),
		cmocka_unit_test(the_file_chooses_names_types_and_texts),
		cmocka_unit_test(what_is_not_there_is_named),
		cmocka_unit_test(wrong_lines_are_named),
		cmocka_unit_test(an_empty_file_is_an_empty_page),
		cmocka_unit_test(labels_as_the_options_say),
		cmocka_unit_test(counts_of_windows),
		cmocka_unit_test(links_and_health),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
