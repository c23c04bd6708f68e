// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/log.h"
#include "base/raised.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "config.h"

/* Error messages quote their input, which may hold control characters. */
static void make_printable(struct strbuf *lines)
{
	for (size_t i = 0; i < lines->len; i++)
		if (((unsigned char)lines->data[i] < ' ' && lines->data[i] != '\n') || lines->data[i] == 0x7f)
			lines->data[i] = '?';
	utf8_sanitize(lines->data);
}

static int help_or_version(const struct invocation *inv)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	if (inv->flag[FLAG_HELP])
		help_command(inv->command, &out);
	else
		strbuf_adds(&out, "gpusonde " GPUSONDE_VERSION "\n");
	int status = put_stdout(&out);

	strbuf_done(&out);
	return status;
}

/*
 * The command line alone: --help and --version work even if it or the configuration has errors, and doctor
 * examines a configuration with errors, but does not run with a command line that has any.
 */
static int look_at_command_line(struct invocation *inv, bool *ret_wants_help, bool *ret_bad)
{
	struct options scratch;
	struct strbuf errors;
	int r = options_init(&scratch);

	if (r < 0)
		return r;
	strbuf_init(&errors, 0);
	r = cmdline_parse(inv, &scratch, &errors);
	*ret_wants_help = inv->flag[FLAG_HELP] || inv->flag[FLAG_VERSION];
	*ret_bad = errors.len > 0;
	strbuf_done(&errors);
	options_done(&scratch);
	return r;
}

static int dispatch(struct invocation *inv)
{
	struct strbuf warnings;
	bool wants_help = false, bad = false;
	int r = look_at_command_line(inv, &wants_help, &bad);

	if (r == 0 && wants_help)
		return help_or_version(inv);
	strbuf_init(&warnings, 0);
	if (r == 0)
		r = cmdline_options(inv, &inv->options, &inv->complaints, &warnings);
	make_printable(&warnings);
	make_printable(&inv->complaints);
	put_errors(inv, &warnings);
	strbuf_done(&warnings);
	if (r < 0) {
		fprintf(stderr, "gpusonde: cannot read the configuration: %s\n", strerror(-r));
		return EXIT_FAILURE;
	}
	inv->options_bad = inv->complaints.len > 0;
	if (bad || (inv->options_bad && inv->command->use != USE_DOCTOR)) {
		put_errors(inv, &inv->complaints);
		return inv->command->usage_status ? inv->command->usage_status : EXIT_USAGE;
	}
	log_setup(LOG_TARGET_STDERR, (int)options_number(&inv->options, OPT_log_level), "gpusonde");
	return inv->command->run(inv);
}

static int no_command(void)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	help_overview(&out);
	fputs(out.data, stderr);
	strbuf_done(&out);
	return EXIT_USAGE;
}

/*
 * Opens closed standard descriptors, so that no socket gets their number and receives printed text.
 * Read-only, so that writing to them is an error.
 */
static void open_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/*
 * Before anything is read or opened. A file that belongs to another user than the one who runs it cannot be
 * made harmless like this.
 */
static int give_up_privileges(void)
{
	int r = capabilities_lower();

	if (geteuid() != getuid() || getegid() != getgid()) {
		fputs("gpusonde: its file has the set-user-ID or set-group-ID bit, with which it "
		      "does not run: remove it (chmod ug-s), and use sudo, or file capabilities for a "
		      "trusted group\n",
		      stderr);
		return EXIT_FAILURE;
	}
	if (r < 0) {
		fprintf(stderr, "gpusonde: its capabilities cannot be lowered: %s\n", strerror(-r));
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

/* Links by which gpusonde is the program that others' units start: the command of that name. NULL: none. */
static const char *command_of_link(const char *program)
{
	static const char *const links[] = { "atopgpud", "dcgm-exporter" };
	const char *slash = strrchr(program, '/');

	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (STRV_EQ(slash ? slash + 1 : program, links[i]))
			return links[i];
	return NULL;
}

static bool is_one_of(const char *word, const char *name, const char *letter)
{
	return STRV_EQ(word, name) || STRV_EQ(word, letter);
}

/* Which command is meant, and its arguments. False: none is. */
static bool find_command(struct invocation *inv, int argc, char **argv)
{
	const char *link = command_of_link(argv[0]);

	inv->argc = argc - 2;
	inv->argv = argv + 2;
	if (link) {
		inv->command = command_find(link);
		inv->argc = argc - 1;
		inv->argv = argv + 1;
	} else if (is_one_of(argv[1], "--help", "-h")) {
		inv->command = command_find("help");
		inv->argc = 0;
	} else if (is_one_of(argv[1], "--version", "-V")) {
		inv->command = command_find("help");
		inv->argc = 1;
		inv->argv = argv + 1;
	} else {
		inv->command = command_find(argv[1]);
	}
	return inv->command;
}

int main(int argc, char **argv)
{
	static char screen[] = "top";
	struct invocation inv = { 0 };
	char *alone[] = { argv[0], screen, NULL };

	open_standard_descriptors();
	if (give_up_privileges() != EXIT_SUCCESS)
		return EXIT_FAILURE;
	heap_keep_small();
	signal(SIGPIPE, SIG_IGN);
	if (argc < 1)
		return no_command();
	if (argc < 2 && !command_of_link(argv[0])) {
		if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
			return no_command();
		argv = alone;
		argc = 2;
	}
	if (!find_command(&inv, argc, argv))
		return EXIT_USAGE;
	int status = inv.command->translate ? inv.command->translate(&inv) : EXIT_SUCCESS;

	if (status != EXIT_SUCCESS)
		return status;
	strbuf_init(&inv.complaints, 64 << 10);
	status = dispatch(&inv);

	strbuf_done(&inv.complaints);
	options_done(&inv.options);
	return status;
}
