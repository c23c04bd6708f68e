// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>
#include <syslog.h>

#include "base/clock.h"
#include "base/text.h"
#include "config/options.h"
#include "config/places.h"

struct fixture {
	struct options options;
	struct strbuf errors, warnings;
};

static int set_up(void **state)
{
	static struct fixture f;

	assert_int_equal(options_init(&f.options), 0);
	strbuf_init(&f.errors, 0);
	strbuf_init(&f.warnings, 0);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	unsetenv("HTTP_LISTEN_PORT");
	unsetenv("NODE_NAME");
	unsetenv("LOG_LEVEL");
	unsetenv("DCGM_LABELS");
	options_done(&f->options);
	strbuf_done(&f->errors);
	strbuf_done(&f->warnings);
	return 0;
}

static void from_yaml(struct fixture *f, const char *text)
{
	assert_int_equal(options_from_yaml(&f->options, "test.yaml", text, strlen(text), &f->errors), 0);
}

static void assert_contains(const struct strbuf *text, const char *part)
{
	if (!strstr(text->data, part))
		fail_msg("no \"%s\" in: %s", part, text->data);
}

static void table_is_sound(_unused_ void **state)
{
	char name[OPTION_NAME_MAX];

	for (unsigned i = 0; i < OPTIONS; i++) {
		const struct option *o = &option_table[i];

		assert_ptr_equal(option_by_key(o->key), o);
		option_flag(o, name);
		assert_ptr_equal(option_by_flag(name, strlen(name)), o);
		if (o->alias)
			assert_ptr_equal(option_by_flag(o->alias, strlen(o->alias)), o);
		assert_true(utf8_valid(o->help, strlen(o->help)));
		assert_int_equal(o->help[strlen(o->help) - 1], '.');
		assert_true(o->uses != 0);
		assert_true(o->initial[0] || o->empty);
	}
	option_flag(&option_table[OPT_nvml_call_timeout], name);
	assert_string_equal(name, "--nvml-call-timeout");
	option_environment(&option_table[OPT_nvml_call_timeout], name);
	assert_string_equal(name, "GPUSONDE_NVML_CALL_TIMEOUT");
	assert_ptr_equal(option_by_flag("--listen", 8), &option_table[OPT_http_listen]);
	assert_ptr_equal(option_by_flag("--atop-listen", 13), &option_table[OPT_atop_listen]);
	assert_ptr_equal(option_by_flag("--atop-socket", 13), &option_table[OPT_atop_socket]);
	assert_ptr_equal(option_by_flag("--socket", 8), &option_table[OPT_control_socket]);
	assert_null(option_by_flag("--liste", 7));
}

static void defaults(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(options_text(&f->options, OPT_http_listen), "127.0.0.1:9470");
	assert_string_equal(options_text(&f->options, OPT_atop_listen), "127.0.0.1:59123");
	assert_string_equal(options_text(&f->options, OPT_atop_socket), "atopgpud_nvidia");
	assert_null(options_text(&f->options, OPT_control_socket)); /* see test_places.c */
	assert_int_equal(options_number(&f->options, OPT_control_mode), 0660);
	assert_int_equal(options_number(&f->options, OPT_sample_period), NSEC_PER_SEC);
	assert_int_equal(options_number(&f->options, OPT_log_level), LOG_INFO);
	assert_true(options_bool(&f->options, OPT_kmsg_enabled));
	assert_null(options_text(&f->options, OPT_control_group));
}

static void every_type_takes_and_refuses(void **state)
{
	static const struct {
		enum option_id id;
		const char *text;
		bool good;
		int64_t number;
	} rows[] = {
		{ OPT_sample_period, "100ms", true, 100 * NSEC_PER_MSEC },
		{ OPT_sample_period, "1m", true, 60 * NSEC_PER_SEC },
		{ OPT_sample_period, "99ms", false, 0 },
		{ OPT_sample_period, "61s", false, 0 },
		{ OPT_sample_period, "1", false, 0 },
		{ OPT_sample_period, "-1s", false, 0 },
		{ OPT_sample_period, "", false, 0 },
		{ OPT_process_series, "0", true, 0 },
		{ OPT_process_series, "4096", true, 4096 },
		{ OPT_process_series, "4097", false, 0 },
		{ OPT_process_series, "18446744073709551615", false, 0 },
		{ OPT_process_series, "ten", false, 0 },
		{ OPT_kmsg_enabled, "no", true, 0 },
		{ OPT_kmsg_enabled, "on", true, 1 },
		{ OPT_kmsg_enabled, "maybe", false, 0 },
		{ OPT_control_mode, "0666", true, 0666 },
		{ OPT_control_mode, "1000", false, 0 },
		{ OPT_control_mode, "68", false, 0 },
		{ OPT_log_level, "debug", true, LOG_DEBUG },
		{ OPT_log_level, "loud", false, 0 },
		{ OPT_http_listen, "none", true, 0 },
		{ OPT_http_listen, "[::1]:9470", true, 0 },
		{ OPT_http_listen, ":0", true, 0 },
		{ OPT_http_listen, "9470", false, 0 },
		{ OPT_http_listen, "::1:9470", false, 0 },
		{ OPT_http_listen, "127.0.0.1:65536", false, 0 },
		{ OPT_http_listen, "", false, 0 },
		{ OPT_atop_socket, "", false, 0 },
		{ OPT_control_group, "", true, 0 },
		{ OPT_nvml_library, "", false, 0 },
		{ OPT_nvml_library, "/lib/a\nb", false, 0 },
		{ OPT_nvml_library, "/lib/\xff", false, 0 },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		strbuf_reset(&f->errors);
		assert_int_equal(options_set(&f->options, &option_table[rows[i].id], rows[i].text,
					     ORIGIN_FLAG, "--here", &f->errors),
				 0);
		if (rows[i].good != (f->errors.len == 0))
			fail_msg("%s \"%s\": %s", option_table[rows[i].id].key, rows[i].text, f->errors.data);
		if (rows[i].good)
			assert_int_equal(options_number(&f->options, rows[i].id), rows[i].number);
		else
			assert_contains(&f->errors, "--here: ");
	}
	assert_null(options_text(&f->options, OPT_control_group));
}

static void a_refused_value_changes_nothing(void **state)
{
	struct fixture *f = *state;

	options_set(&f->options, &option_table[OPT_sample_period], "2h", ORIGIN_FLAG, "--sample-period",
		    &f->errors);
	assert_contains(&f->errors,
			"--sample-period: sample.period cannot be \"2h\": it must be a number and a unit, "
			"100ms to 1m\n");
	assert_int_equal(options_number(&f->options, OPT_sample_period), NSEC_PER_SEC);
}

static void precedence_whatever_the_order(void **state)
{
	const struct option *o = &option_table[OPT_sample_period];
	struct fixture *f = *state;

	options_set(&f->options, o, "2s", ORIGIN_FILE, "f:1", &f->errors);
	assert_int_equal(options_number(&f->options, OPT_sample_period), 2 * NSEC_PER_SEC);
	options_set(&f->options, o, "3s", ORIGIN_FLAG, "--sample-period", &f->errors);
	options_set(&f->options, o, "4s", ORIGIN_ENVIRONMENT, "GPUSONDE_SAMPLE_PERIOD", &f->errors);
	options_set(&f->options, o, "5s", ORIGIN_FILE, "f:2", &f->errors);
	assert_int_equal(options_number(&f->options, OPT_sample_period), 3 * NSEC_PER_SEC);
	assert_string_equal(f->options.v[OPT_sample_period].where, "--sample-period");
	assert_int_equal(f->errors.len, 0);
}

static void environment(void **state)
{
	struct fixture *f = *state;

	setenv("GPUSONDE_PROCESS_SERIES", "7", 1);
	setenv("GPUSONDE_HTTP_LISTEN", "nowhere", 1);
	setenv("GPUSONDE_SAMPLE_PERIDO", "5s", 1);
	setenv("GPUSONDE_SIM_CONTROL", "/file", 1); /* the simulated driver's, and near to web.control's */
	setenv("GPUSONDE_SERVICE_HOST", "10.0.0.1", 1); /* Kubernetes, for a service of our name */
	assert_int_equal(options_from_environment(&f->options, USE_READ, &f->errors, &f->warnings), 0);
	unsetenv("GPUSONDE_PROCESS_SERIES");
	unsetenv("GPUSONDE_HTTP_LISTEN");
	unsetenv("GPUSONDE_SAMPLE_PERIDO");
	unsetenv("GPUSONDE_SIM_CONTROL");
	unsetenv("GPUSONDE_SERVICE_HOST");
	assert_int_equal(options_number(&f->options, OPT_process_series), 7);
	assert_contains(&f->errors, "GPUSONDE_HTTP_LISTEN: http.listen cannot be \"nowhere\"");
	assert_contains(
		&f->warnings,
		"GPUSONDE_SAMPLE_PERIDO is no option and is ignored: did you mean GPUSONDE_SAMPLE_PERIOD?");
	assert_null(strstr(f->warnings.data, "SIM_CONTROL"));
	assert_null(strstr(f->warnings.data, "SERVICE_HOST"));
}

static void second_variables(void **state)
{
	struct fixture *f = *state;

	setenv("HTTP_LISTEN_PORT", "6061", 1);
	setenv("NODE_NAME", "node-1", 1);
	setenv("LOG_LEVEL", "WARN", 1);
	assert_int_equal(options_from_environment(&f->options, USE_AGENT, &f->errors, &f->warnings), 0);
	assert_string_equal(f->errors.data, "");
	assert_string_equal(options_text(&f->options, OPT_http_container_listen), ":6061");
	assert_string_equal(f->options.v[OPT_http_container_listen].where, "HTTP_LISTEN_PORT");
	assert_string_equal(options_text(&f->options, OPT_node_name), "node-1");
	assert_int_equal(options_number(&f->options, OPT_log_level), LOG_WARNING);

	/* our own decides before it, and an empty one is none */
	setenv("GPUSONDE_NODE_NAME", "ours", 1);
	setenv("LOG_LEVEL", "", 1);
	assert_int_equal(options_from_environment(&f->options, USE_AGENT, &f->errors, &f->warnings), 0);
	assert_string_equal(options_text(&f->options, OPT_node_name), "ours");
	assert_int_equal(options_number(&f->options, OPT_log_level), LOG_WARNING);
	unsetenv("GPUSONDE_NODE_NAME");
}

static void bad_second_variables_are_named(void **state)
{
	struct fixture *f = *state;

	setenv("HTTP_LISTEN_PORT", "127.0.0.1", 1);
	setenv("LOG_LEVEL", "loud", 1);
	assert_int_equal(options_from_environment(&f->options, USE_DOCTOR, &f->errors, &f->warnings), 0);
	assert_contains(&f->errors,
			"HTTP_LISTEN_PORT: http.container_listen cannot be \"127.0.0.1\": it must be a "
			"port, 1 to 65535\n");
	assert_contains(&f->errors, "LOG_LEVEL: log.level cannot be \"loud\"");
	setenv("DCGM_LABELS", "app in (a", 1);
	assert_int_equal(options_from_environment(&f->options, USE_AGENT, &f->errors, &f->warnings), 0);
	assert_contains(&f->errors, "DCGM_LABELS: dcgm.labels cannot be \"app in (a\": a ) is missing");
	assert_null(options_text(&f->options, OPT_http_container_listen));

	/* 127.0.0.1:80 is an address, but no port */
	strbuf_reset(&f->errors);
	setenv("HTTP_LISTEN_PORT", "127.0.0.1:80", 1);
	assert_int_equal(options_from_environment(&f->options, USE_AGENT, &f->errors, &f->warnings), 0);
	assert_contains(&f->errors, "HTTP_LISTEN_PORT: ");

	/* other commands do not mind what was meant for another program */
	strbuf_reset(&f->errors);
	assert_int_equal(options_from_environment(&f->options, USE_READ, &f->errors, &f->warnings), 0);
	assert_string_equal(f->errors.data, "");
}

static void variables_without_a_meaning_are_named_once(void **state)
{
	struct fixture *f = *state;

	setenv("CGROUP_METRICS_ENABLED", "true", 1);
	setenv("SCAN_HANDLER_TIMEOUT_MS", "2500", 1);
	assert_int_equal(options_from_environment(&f->options, USE_READ, &f->errors, &f->warnings), 0);
	assert_string_equal(f->warnings.data, "");
	assert_int_equal(options_from_environment(&f->options, USE_AGENT, &f->errors, &f->warnings), 0);
	unsetenv("CGROUP_METRICS_ENABLED");
	unsetenv("SCAN_HANDLER_TIMEOUT_MS");
	assert_string_equal(f->errors.data, "");
	assert_string_equal(f->warnings.data,
			    "settings without a meaning for gpusonde are ignored: "
			    "CGROUP_METRICS_ENABLED, SCAN_HANDLER_TIMEOUT_MS\n");
}

static void file(void **state)
{
	struct fixture *f = *state;

	from_yaml(f, "# the lab's node\nsample: {period: 250ms}\nhttp:\n  listen: none\natop:\ncontrol:\n"
		     "  mode: 0600\n");
	assert_string_equal(f->errors.data, "");
	assert_int_equal(options_number(&f->options, OPT_sample_period), 250 * NSEC_PER_MSEC);
	assert_int_equal(options_number(&f->options, OPT_control_mode), 0600);
	assert_null(options_text(&f->options, OPT_http_listen));
	assert_string_equal(f->options.v[OPT_http_listen].where, "test.yaml:4");
}

static void every_error_of_a_file_is_told(void **state)
{
	struct fixture *f = *state;

	from_yaml(
		f,
		"sampel:\n  period: 1s\nhttp:\n  lisen: none\n  listen: here\natop: 3\nkmsg: {path: [a, b]}\n"
		"sample.period: 1s\nzzzzzzzz: 1\n");
	assert_contains(&f->errors, "test.yaml:1: unknown key \"sampel\": did you mean \"sample\"?\n");
	assert_contains(&f->errors, "test.yaml:4: unknown key \"lisen\" in http: did you mean \"listen\"?\n");
	assert_contains(&f->errors, "test.yaml:5: http.listen cannot be \"here\": it must be ");
	assert_contains(&f->errors, "test.yaml:6: atop needs keys below it, not a single value");
	assert_contains(&f->errors, "test.yaml:7: kmsg.path needs a single value, not a list");
	assert_contains(&f->errors,
			"test.yaml:8: unknown key \"sample.period\": write the key period below sample:");
	assert_contains(&f->errors, "test.yaml:9: unknown key: remove it");
	assert_int_equal(options_number(&f->options, OPT_sample_period), NSEC_PER_SEC);
}

static void what_is_no_configuration_is_refused(void **state)
{
	struct fixture *f = *state;

	from_yaml(f, "- a\n- b\n");
	assert_contains(&f->errors, "test.yaml:1: ");
	strbuf_reset(&f->errors);
	from_yaml(f, "http: [\n");
	assert_contains(&f->errors, "test.yaml:");
	strbuf_reset(&f->errors);
	assert_int_equal(options_from_file(&f->options, "/nonexistent/gpusonde.yaml", &f->errors), 0);
	assert_contains(&f->errors, "/nonexistent/gpusonde.yaml: ");
}

static void what_is_printed_loads_again(void **state)
{
	struct fixture *f = *state;
	struct options again;
	struct strbuf out;

	options_set(&f->options, &option_table[OPT_nvml_library], "/opt/a \"b\" \\c # d: e/lib.so",
		    ORIGIN_FLAG, "--nvml-library", &f->errors);
	/* line ends of YAML, and what it takes for no text */
	options_set(&f->options, &option_table[OPT_kmsg_path],
		    "/\u2028 \u2029\xc2\x85 \xc2\x80\ufeff\uffff\u00a0 x", ORIGIN_FLAG, "--kmsg-path",
		    &f->errors);
	options_set(&f->options, &option_table[OPT_atop_listen], "none", ORIGIN_FILE, "x\ny.yaml:3",
		    &f->errors);
	strbuf_init(&out, 0);
	options_print(&f->options, &out);
	assert_contains(&out, "# --nvml-library\n");
	assert_contains(&out, "# x?y.yaml:3\n");
	assert_contains(&out, "period: \"1s\"  # default\n");
	assert_int_equal(options_init(&again), 0);
	assert_int_equal(options_from_yaml(&again, "printed", out.data, out.len, &f->errors), 0);
	assert_string_equal(f->errors.data, "");
	for (unsigned i = 0; i < OPTIONS; i++) {
		struct place place;

		assert_string_equal(again.v[i].text, place_of_option(&f->options, (enum option_id)i, &place));
		assert_int_equal(again.v[i].number, f->options.v[i].number);
		assert_int_equal(again.v[i].origin, ORIGIN_FILE);
	}
	options_done(&again);
	strbuf_done(&out);
}

static void accepted(struct fixture *f, enum option_id id, const char *text, int64_t number)
{
	assert_int_equal(options_set(&f->options, &option_table[id], text, ORIGIN_FLAG, "--x", &f->errors),
			 0);
	assert_int_equal(f->errors.len, 0);
	assert_int_equal(options_number(&f->options, id), number);
}

static void refused(struct fixture *f, enum option_id id, const char *text, const char *what)
{
	strbuf_reset(&f->errors);
	assert_int_equal(options_set(&f->options, &option_table[id], text, ORIGIN_FLAG, "--x", &f->errors),
			 0);
	assert_contains(&f->errors, what);
	strbuf_reset(&f->errors);
}

static void sizes_shares_wishes(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(options_number(&f->options, OPT_trace_buffer), 8 << 20);
	accepted(f, OPT_trace_buffer, "64KiB", 64 << 10);
	accepted(f, OPT_trace_buffer, "1GiB", 1 << 30);
	refused(f, OPT_trace_buffer, "63KiB", "a whole number and KiB, MiB or GiB, 64KiB to 1GiB");
	refused(f, OPT_trace_buffer, "8", "64KiB to 1GiB");
	refused(f, OPT_trace_buffer, "MiB", "64KiB to 1GiB");
	refused(f, OPT_trace_buffer, "-1MiB", "64KiB to 1GiB");
	refused(f, OPT_trace_buffer, "99999999999999999999GiB", "64KiB to 1GiB");
	refused(f, OPT_trace_buffer, "18446744073709551615GiB", "64KiB to 1GiB");
	assert_int_equal(options_number(&f->options, OPT_trace_max_overhead), 20000);
	accepted(f, OPT_trace_max_overhead, "0.5%", 5000);
	accepted(f, OPT_trace_max_overhead, "0%", 0);
	accepted(f, OPT_trace_max_overhead, "100%", 1000000);
	refused(f, OPT_trace_max_overhead, "101%", "a percentage, 0% to 100%");
	refused(f, OPT_trace_max_overhead, "2", "a percentage");
	refused(f, OPT_trace_max_overhead, "0.00001%", "a percentage");
	refused(f, OPT_trace_max_overhead, "nan%", "a percentage");
	assert_int_equal(options_number(&f->options, OPT_trace_enabled), TRISTATE_AUTO);
	accepted(f, OPT_trace_enabled, "yes", TRISTATE_YES);
	accepted(f, OPT_trace_enabled, "false", TRISTATE_NO);
	refused(f, OPT_trace_enabled, "maybe", "auto, yes or no");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_sound),
		cmocka_unit_test_setup_teardown(defaults, set_up, tear_down),
		cmocka_unit_test_setup_teardown(every_type_takes_and_refuses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_refused_value_changes_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(precedence_whatever_the_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(environment, set_up, tear_down),
		cmocka_unit_test_setup_teardown(second_variables, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bad_second_variables_are_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(variables_without_a_meaning_are_named_once, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(every_error_of_a_file_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_configuration_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_printed_loads_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(sizes_shares_wishes, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
