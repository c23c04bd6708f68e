// SPDX-License-Identifier: Apache-2.0
/* gpusonde probes FILE: where tracing would place its probes in a file, and what each costs. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/raised.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/output.h"
#include "elf/elf.h"
#include "trace/kernel_sites.h"
#include "trace/list.h"
#include "view/table/table.h"

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#define OWN_LIBRARIES "/usr/lib/x86_64-linux-gnu"
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#define OWN_LIBRARIES "/usr/lib/aarch64-linux-gnu"
#else
#define OWN_MACHINE EM_NONE
#define OWN_LIBRARIES "/usr/lib"
#endif

enum { RING_BYTES = 64 << 10 }; /* no events are sent */

struct probing {
	const struct invocation *inv;
	const char *path;
	struct site_rules rules;
	bool measured; /* the rules are of the running kernel */
	struct attach_error why_not; /* why they are not */
	json_t *sites; /* with --json */
	struct table table; /* without */
	unsigned count[SITE_CLASSES], chosen, all;
	struct site_more more; /* functions that are not listed */
};

static const struct table_column columns[] = {
	{ .title = "SYMBOL" },
	{ .title = "OFFSET", .right = true },
	{ .title = "INSTRUCTION", .flexible = true },
	{ .title = "CLASS" },
	{ .title = "CHOSEN" },
	{ .title = "NS", .right = true },
	{ .title = "WITH RETURN", .right = true, .dispensable = 1 },
	{ .title = "REASON", .flexible = true },
};

/* 0: unknown, or the site is not probed. */
static uint32_t cost(const struct site *site, const uint32_t *by_class)
{
	return site->class == SITE_REFUSED ? 0 : by_class[site->class];
}

static void add_cost(struct table *table, uint32_t ns)
{
	if (ns)
		table_cellf(table, COLOUR_NONE, "%u", ns);
	else
		table_cell(table, COLOUR_NONE, "");
}

static bool returns(const struct probing *p, const struct trace_listing *listing)
{
	bool may_return = listing->pattern ? false :
			  listing->user    ? library_user()->at[listing->user - 1].returns &&
						  !probe_symbol_may_throw(listing->symbol) :
					  listing->probe->may_return;

	return p->rules.returns == SITE_RETURNS_SAFE && may_return && listing->site.may_return;
}

static void add_row(struct probing *p, const struct trace_listing *listing)
{
	const struct site *site = &listing->site;
	enum table_colour colour = site->chosen ? COLOUR_GOOD : COLOUR_BAD;

	table_cell(&p->table, COLOUR_NONE, listing->symbol);
	table_cellf(&p->table, COLOUR_NONE, "%u", site->offset);
	table_cell(&p->table, COLOUR_NONE, site->instruction);
	table_cell(&p->table, colour, site_class_name(site->class));
	table_cell(&p->table, colour, site->chosen ? "yes" : "no");
	add_cost(&p->table, cost(site, p->rules.entry_ns));
	add_cost(&p->table, returns(p, listing) ? cost(site, p->rules.return_ns) : 0);
	table_cell(&p->table, COLOUR_NONE, site->reason);
}

static int add_json(struct probing *p, const struct trace_listing *listing)
{
	const struct site *site = &listing->site;
	uint32_t ns = cost(site, p->rules.entry_ns);

	return json_array_append_new(p->sites,
				     json_pack("{s:s, s:i, s:s, s:s, s:b, s:b, s:s, s:o}", "symbol",
					       listing->symbol, "offset", (int)site->offset, "instruction",
					       site->instruction, "class", site_class_name(site->class),
					       "chosen", site->chosen, "returns",
					       site->chosen && returns(p, listing), "reason", site->reason,
					       "expected_ns", ns ? json_integer(ns) : json_null())) < 0 ?
		       -ENOMEM :
		       0;
}

static int on_site(const struct trace_listing *listing, void *userdata)
{
	struct probing *p = userdata;

	p->all++;
	p->chosen += listing->site.chosen;
	p->count[listing->site.class] += listing->site.chosen;
	if (p->sites)
		return add_json(p, listing);
	add_row(p, listing);
	return 0;
}

/* Measures the running kernel if possible; files of other architectures get the default rules. */
static void find_rules(struct probing *p, uint16_t machine)
{
	_cleanup_(attach_backend_freep) struct attach_backend *backend = NULL;
	struct attach_config config = { .ring_bytes = RING_BYTES, .only_empty = true };
	WITH_CAPABILITIES;

	site_rules_default(machine, &p->rules);
	if (machine != OWN_MACHINE)
		snprintf(p->why_not.text, sizeof(p->why_not.text), "the file is for another architecture");
	else if (attach_backend_new(&config, &backend, &p->why_not) == 0) {
		int r = kernel_sites_probe(backend, &p->rules);

		p->measured = r == 0;
		if (r < 0)
			snprintf(p->why_not.text, sizeof(p->why_not.text), "measuring failed: %s",
				 strerror(-r));
	}
	p->rules.allow_single_step = options_bool(&p->inv->options, OPT_trace_allow_single_step);
}

/* Cleaned: the file name may hold control characters. */
static int print_error(const struct probing *p, const char *why)
{
	struct strbuf path;

	strbuf_init(&path, 0);
	text_clean(&path, p->path);
	fprintf(stderr, "gpusonde probes: %s: %s\n", path.data, why);
	strbuf_done(&path);
	return EXIT_FAILURE;
}

static int print_errno(const struct probing *p, int error)
{
	switch (error) {
	case -ENOEXEC:
		return print_error(
			p, "no 64-bit ELF program or library, or a damaged one: name a libcuda.so.1, a "
			   "libcudart.so or a program that contains the CUDA runtime");
	case -EOPNOTSUPP:
		return print_error(
			p, "for an architecture that cannot be traced: name a file for x86-64 or arm64");
	case -E2BIG:
		return print_error(
			p, "has more CUDA functions than CUDA, or takes too long to read its symbols: "
			   "it is no library of NVIDIA");
	case -ENOENT:
		return print_error(
			p, "no such file: check the path; the driver's library is the libcuda.so.1 that "
			   "\"ldconfig -p\" shows");
	case -EACCES:
	case -EPERM:
		return print_error(p, "not readable by this user: run as root or as the owner of the file");
	default:
		return print_error(p, strerror(-error));
	}
}

/* O_NONBLOCK: opening a FIFO does not wait for a writer. */
static int open_file(struct probing *p, int *ret_fd)
{
	_cleanup_close_ int fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return errno == ENXIO ? print_error(p, "a socket or a device: name a regular file") :
					print_errno(p, -errno);
	if (fstat(fd, &st) < 0)
		return print_errno(p, -errno);
	if (S_ISDIR(st.st_mode))
		return print_error(p, "a directory: name a file in it");
	if (!S_ISREG(st.st_mode))
		return print_error(p, "a FIFO, a socket or a device: name a regular file");
	*ret_fd = TAKE_FD(fd);
	return EXIT_SUCCESS;
}

static void print_table(struct probing *p, struct strbuf *out)
{
	const struct table_options options = output_options(p->inv, STDOUT_FILENO);
	char line[sizeof(p->why_not.text) + 80];

	if (table_write(&p->table, &options, out) < 0)
		out->failed = true;
	snprintf(line, sizeof(line), "%u of %u can be probed: %u emulated, %u optimised, %u single-stepped",
		 p->chosen, p->all, p->count[SITE_EMULATED], p->count[SITE_OPTIMISED],
		 p->count[SITE_SINGLE_STEP]);
	strbuf_addc(out, '\n');
	table_line(&options, out, COLOUR_NONE, line);
	if (p->chosen < p->all) {
		snprintf(line, sizeof(line),
			 "%u cannot be probed, their calls are not traced; a newer gpusonde may support them",
			 p->all - p->chosen);
		table_line(&options, out, COLOUR_BAD, line);
	}
	if (p->more.user + p->more.patterns > 0) {
		snprintf(line, sizeof(line),
			 "%u more functions match and are not probed: there is no room for them; narrow the "
			 "patterns",
			 p->more.user + p->more.patterns);
		table_line(&options, out, COLOUR_BAD, line);
	}
	if (kernel_sites_no_returns(&p->rules))
		table_line(&options, out, COLOUR_BAD, kernel_sites_no_returns(&p->rules));
	if (p->measured)
		snprintf(line, sizeof(line), "Classes and costs: measured on the running kernel");
	else
		snprintf(line, sizeof(line),
			 "Classes and costs: not measured, typical of kernels in general (%s)",
			 p->why_not.text);
	table_line(&options, out, COLOUR_NONE, line);
}

static void print_json(const struct probing *p, struct strbuf *out)
{
	_cleanup_free_ char *path = strdup(p->path), *text = NULL;
	json_t *json;

	if (path)
		utf8_sanitize(path);
	json = path ? json_pack("{s:s, s:b, s:O}", "file", path, "measured", p->measured, "sites", p->sites) :
		      NULL;
	if (json)
		text = json_dumps(json, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	if (text)
		strbuf_addf(out, "%s\n", text);
	else
		out->failed = true;
	json_decref(json);
}

static int print_no_functions(const struct probing *p, bool cut)
{
	const char *name = strrchr(p->path, '/');

	if (cut)
		return print_error(
			p, "the file is damaged: it is truncated, perhaps by an incomplete copy; copy or "
			   "install it again");
	if (strncmp(name ? name + 1 : p->path, "libcuda.so", strlen("libcuda.so")) == 0)
		return print_error(
			p,
			"no function of the CUDA driver is in it: a stub, or no libcuda of NVIDIA; name the "
			"libcuda.so.1 that \"ldconfig -p\" shows");
	return print_error(
		p, "no function of the CUDA driver or runtime is in it, or its symbols have been stripped: "
		   "its calls are traced in the driver's library, libcuda.so.1");
}

static int list(struct probing *p, int fd)
{
	struct site_query query = { .users =
					    library_of_path(p->path, strlen(p->path)) & library_user_bits() };
	_cleanup_(elf_closep) struct elf_file *file = NULL;
	struct strbuf out;
	int r = elf_open(fd, &file), status;

	for (unsigned i = 0; i < PROBE_LIBRARIES; i++)
		query.libraries[i] = true;
	if (r == 0) {
		find_rules(p, elf_machine(file));
		query.rules = p->rules;
		r = trace_list_sites(fd, &query, on_site, p, &p->more);
	}
	if (r < 0)
		return print_errno(p, r);
	if (p->all == 0)
		return print_no_functions(p, elf_is_cut(file));
	strbuf_init(&out, 0);
	if (p->sites)
		print_json(p, &out);
	else
		print_table(p, &out);
	status = put_stdout(&out);
	strbuf_done(&out);
	return status;
}

int probes_main(struct invocation *inv)
{
	_cleanup_close_ int fd = -1;
	struct probing p = { .inv = inv };
	int status;

	if (inv->operands_n == 0) {
		fprintf(stderr,
			"gpusonde probes: no file given: name one, for example gpusonde probes " OWN_LIBRARIES
			"/libcuda.so.1\n");
		return EXIT_USAGE;
	}
	p.path = inv->operands[0];
	library_set_user_text(options_text(&inv->options, OPT_trace_probes));
	status = open_file(&p, &fd);
	if (status != EXIT_SUCCESS)
		return status;
	table_init(&p.table, columns, ARRAY_SIZE(columns));
	p.sites = inv->flag[FLAG_JSON] ? json_array() : NULL;
	status = list(&p, fd);
	json_decref(p.sites);
	table_done(&p.table);
	return status;
}
