// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "cmd/cmd.h"

struct outcome {
	struct invocation invocation;
	struct options options;
	struct strbuf errors;
};

static void parse(struct outcome *o, const char *command, char **argv)
{
	*o = (struct outcome){ .invocation = { .command = command_find(command), .argv = argv } };
	assert_non_null(o->invocation.command);
	for (o->invocation.argc = 0; argv[o->invocation.argc]; o->invocation.argc++)
		;
	assert_int_equal(options_init(&o->options), 0);
	strbuf_init(&o->errors, 0);
	assert_int_equal(cmdline_parse(&o->invocation, &o->options, &o->errors), 0);
}

static void done(struct outcome *o)
{
	options_done(&o->options);
	strbuf_done(&o->errors);
}

#define PARSE(outcome_, command_, ...) parse(&(outcome_), command_, (char *[]){ __VA_ARGS__, NULL })

static void both_spellings(_unused_ void **state)
{
	struct outcome o;

	PARSE(o, "agent", "--listen", "127.0.0.1:1", "--atop-socket=none", "--sample-period", "2s",
	      "--check-config");
	assert_string_equal(o.errors.data, "");
	assert_string_equal(options_text(&o.options, OPT_http_listen), "127.0.0.1:1");
	assert_string_equal(o.options.v[OPT_http_listen].where, "--listen");
	assert_null(options_text(&o.options, OPT_atop_socket));
	assert_int_equal(options_number(&o.options, OPT_sample_period), 2 * NSEC_PER_SEC);
	assert_non_null(o.invocation.flag[FLAG_CHECK_CONFIG]);
	assert_null(o.invocation.flag[FLAG_PRINT_CONFIG]);
	done(&o);
	PARSE(o, "gpus", "--watch=0.5", "--json");
	assert_string_equal(o.errors.data, "");
	assert_string_equal(o.invocation.flag[FLAG_WATCH], "0.5");
	assert_non_null(o.invocation.flag[FLAG_JSON]);
	done(&o);
	PARSE(o, "atopgpud", "-v");
	assert_string_equal(o.errors.data, "");
	assert_non_null(o.invocation.flag[FLAG_VERBOSE]);
	done(&o);
}

static void every_mistake_is_told(_unused_ void **state)
{
	struct outcome o;

	PARSE(o, "agent", "--lisen", "x", "--json", "--check-config=yes", "--listen=here", "-x", "--socket");
	assert_non_null(strstr(o.errors.data, "unknown option --lisen: did you mean --listen?\n"));
	assert_non_null(strstr(o.errors.data, "unexpected argument \"x\""));
	assert_non_null(strstr(o.errors.data, "does not take the option --json"));
	assert_non_null(strstr(o.errors.data, "--check-config takes no value"));
	assert_non_null(strstr(o.errors.data, "--listen: http.listen cannot be \"here\""));
	assert_non_null(strstr(o.errors.data, "unknown option -x"));
	assert_non_null(strstr(o.errors.data, "--socket needs a value: --socket PATH|none\n"));
	done(&o);
}

static void options_of_others_are_unknown(_unused_ void **state)
{
	struct outcome o;

	PARSE(o, "gpus", "--listen", ":1");
	assert_non_null(strstr(o.errors.data, "does not take the option --listen"));
	done(&o);
	PARSE(o, "release", "--socket", "/tmp/x.sock");
	assert_string_equal(o.errors.data, "");
	done(&o);
}

static void file_named_by_flag_then_environment(_unused_ void **state)
{
	struct invocation inv = { .command = command_find("agent"),
				  .argc = 1,
				  .argv = (char *[]){ "--config=/nonexistent/flag" } };
	struct strbuf errors, warnings;
	struct options options;

	strbuf_init(&errors, 0);
	strbuf_init(&warnings, 0);
	setenv("GPUSONDE_CONFIG", "/nonexistent/variable", 1);
	assert_int_equal(cmdline_options(&inv, &options, &errors, &warnings), 0);
	assert_non_null(strstr(errors.data, "/nonexistent/flag: "));
	options_done(&options);
	strbuf_reset(&errors);
	inv = (struct invocation){ .command = command_find("agent") };
	assert_int_equal(cmdline_options(&inv, &options, &errors, &warnings), 0);
	assert_non_null(strstr(errors.data, "/nonexistent/variable: "));
	options_done(&options);
	unsetenv("GPUSONDE_CONFIG");
	strbuf_done(&errors);
	strbuf_done(&warnings);
}

static void help_names_every_command_and_option(_unused_ void **state)
{
	char flag[OPTION_NAME_MAX];
	struct strbuf out;

	strbuf_init(&out, 0);
	help_overview(&out);
	for (const struct command *c = commands; c->name; c++)
		assert_non_null(strstr(out.data, c->name));
	strbuf_reset(&out);
	help_command(command_find("agent"), &out);
	for (unsigned i = 0; i < OPTIONS; i++) {
		option_flag(&option_table[i], flag);
		assert_true(!(option_table[i].uses & USE_AGENT) == !strstr(out.data, flag));
	}
	strbuf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_spellings),
		cmocka_unit_test(every_mistake_is_told),
		cmocka_unit_test(options_of_others_are_unknown),
		cmocka_unit_test(file_named_by_flag_then_environment),
		cmocka_unit_test(help_names_every_command_and_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
