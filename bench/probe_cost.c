// SPDX-License-Identifier: Apache-2.0
/*
 * Cost of a probe to the thread that hits it: gpusonde's and empty programs at the same sites, and at the
 * function's first byte, measured in turns, so that other load on the machine affects all equally.
 *
 *	probe_cost [--rounds N] [--other COMMAND] (LIBRARY SYMBOL)...
 *
 * The library "own" has the symbol "nop5": a function that begins with a 5-byte nop, which no CUDA
 * library has. COMMAND is another tool: it gets LIBRARY and SYMBOL as arguments, "on" and "off" as lines, and
 * answers each with a line. Prints JSON: for each variant the nanoseconds of a call in each round, null where
 * a variant does not apply.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "trace/attach.h"
#include "trace/engine.h"
#include "trace/kernel_sites.h"
#include "trace/list.h"
#include "trace/ring.h"

enum {
	RING_BYTES = 8 << 20, /* the default */
	ROUNDS_MAX = 99,
	BATCH_NS = 500000, /* duration of calls between two readings of the clock */
	BATCHES = 30, /* the fastest one counts */
	DRAIN_MS = 2, /* short enough that the ring does not fill: a dropped event would cost less */
};

/* Any function, called with zeros. */
typedef int function(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
		     void *);

static char zeros[65536];

#if defined(__x86_64__)
__asm__(".pushsection .text\n.globl nop5\n.type nop5, @function\n.balign 32\n"
	"nop5: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00; xor %eax, %eax; ret\n.size nop5, . - nop5\n.popsection\n");
extern function nop5;
#endif

struct subject {
	const char *library, *symbol;
	int file;
	pid_t pid; /* of the caller */
	int socket;
	pid_t other;
	int other_socket;
	struct trace_listing listing;
	bool found;
};

enum where { AT_SITE, AT_FIRST_BYTE };

static const struct variant {
	const char *name;
	enum who { NOBODY, EMPTY, OURS, OTHER } who;
	enum where where;
	bool returns;
	bool counts; /* sends no events */
} variants[] = {
	{ "none", .who = NOBODY },
	{ "empty_entry", .who = EMPTY },
	{ "our_entry", .who = OURS },
	{ "counting_entry", .who = OURS, .counts = true },
	{ "empty_pair", .who = EMPTY, .returns = true },
	{ "our_pair", .who = OURS, .returns = true },
	{ "counting_pair", .who = OURS, .returns = true, .counts = true },
	{ "first_byte_entry", .who = EMPTY, .where = AT_FIRST_BYTE },
	{ "first_byte_pair", .who = EMPTY, .where = AT_FIRST_BYTE, .returns = true },
	{ "other_pair", .who = OTHER, .where = AT_FIRST_BYTE, .returns = true },
};

struct bench {
	struct attach_backend *backend;
	struct ring ring;
	struct site_rules rules;
	const char *other;
	uint64_t rounds;
	double ns[ROUNDS_MAX][ARRAY_SIZE(variants)];
	uint64_t events, dropped; /* of the subject */
};

static _Noreturn void die(const char *what, int r)
{
	fprintf(stderr, "probe_cost: %s: %s\n", what, strerror(-r));
	exit(EXIT_FAILURE);
}

/* ---- the caller ---- */

static int64_t time_calls(function *f, unsigned n)
{
	void *z = zeros;
	int64_t begin = clock_mono_ns();

	for (unsigned i = 0; i < n; i++)
		f(z, z, z, z, z, z, z, z, z, z, z, z);
	return clock_mono_ns() - begin;
}

static double best_ns(function *f)
{
	unsigned n = 16;
	int64_t ns, best;

	while ((ns = time_calls(f, n)) < BATCH_NS && n < 1U << 28)
		n *= 2;
	best = ns;
	for (int i = 0; i < BATCHES; i++) {
		ns = time_calls(f, n);
		best = MIN(best, ns);
	}
	return (double)best / n;
}

static function *lookup(const struct subject *subject)
{
	function *f = NULL;
	void *library;

#if defined(__x86_64__)
	if (STRV_EQ(subject->library, "own"))
		return nop5;
#endif
	library = dlopen(subject->library, RTLD_NOW);
	if (library)
		*(void **)&f = dlsym(library, subject->symbol);
	return f;
}

static _Noreturn void call(const struct subject *subject, int fd)
{
	function *f;
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	f = lookup(subject);
	while (f && read(fd, &byte, 1) == 1) {
		double ns = best_ns(f);

		if (write(fd, &ns, sizeof(ns)) != sizeof(ns))
			break;
	}
	_exit(f ? 0 : 1);
}

static void spawn(struct subject *subject)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		die("socketpair", -errno);
	subject->pid = fork();
	if (subject->pid < 0)
		die("fork", -errno);
	if (subject->pid == 0) {
		close(pair[0]);
		call(subject, pair[1]);
	}
	close(pair[1]);
	subject->socket = pair[0];
}

static void spawn_other(struct bench *bench, struct subject *subject)
{
	int pair[2];

	subject->other = -1;
	if (!bench->other || STRV_EQ(subject->library, "own"))
		return;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		die("socketpair", -errno);
	subject->other = fork();
	if (subject->other < 0)
		die("fork", -errno);
	if (subject->other == 0) {
		dup2(pair[1], STDIN_FILENO);
		dup2(pair[1], STDOUT_FILENO);
		execlp("sh", "sh", "-c", "exec $0 \"$@\"", bench->other, subject->library, subject->symbol,
		       NULL);
		_exit(127);
	}
	close(pair[1]);
	subject->other_socket = pair[0];
}

static void tell_other(const struct subject *subject, const char *line)
{
	char answer[16];

	if (write_all(subject->other_socket, line, strlen(line)) < 0 ||
	    read(subject->other_socket, answer, sizeof(answer)) <= 0)
		die("the other tool does not answer", -EIO);
}

static void finish(struct subject *subject)
{
	close(subject->socket);
	waitpid(subject->pid, NULL, 0);
	if (subject->other >= 0) {
		close(subject->other_socket);
		waitpid(subject->other, NULL, 0);
	}
	close(subject->file);
}

/* ---- sites ---- */

static int match(const struct trace_listing *listing, void *userdata)
{
	struct subject *subject = userdata;

	if (!STRV_EQ(listing->probe->symbol, subject->symbol))
		return 0;
	subject->listing = *listing;
	subject->found = true;
	return 1;
}

/* The function "nop5" is not in the table; it uses the row of one that waits and sends an event. */
static int find_own(struct bench *bench, struct subject *subject)
{
#if defined(__x86_64__)
	uint64_t address = (uint64_t)(uintptr_t)nop5, start, end, offset;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && address >= start &&
		    address < end)
			subject->listing.file_offset = address - start + offset;
	if (maps)
		fclose(maps);
	subject->listing.probe = probe_find(PROBE_CUDA, "cuCtxSynchronize");
	subject->found = true;
	return site_choose(EM_X86_64, (const uint8_t *)(uintptr_t)nop5, 8, address, &bench->rules,
			   &subject->listing.site);
#else
	(void)bench;
	(void)subject;
	return -ENOENT;
#endif
}

static int find(struct bench *bench, struct subject *subject)
{
	const struct site_query query = { .libraries = { [PROBE_CUDA] = true, [PROBE_CUDART] = true },
					  .rules = bench->rules };
	bool own = STRV_EQ(subject->library, "own");
	int r;

	subject->file = open(own ? "/proc/self/exe" : subject->library, O_RDONLY | O_CLOEXEC);
	if (subject->file < 0)
		return -errno;
	r = own ? find_own(bench, subject) : trace_list_sites(subject->file, &query, match, subject, NULL);
	return r < 0 ? r : subject->found ? 0 : -ENOENT;
}

static struct attach_site site_of(const struct subject *subject, const struct variant *variant)
{
	const struct site *site = &subject->listing.site;
	struct attach_site wanted = {
		.offset = subject->listing.file_offset - (variant->where == AT_FIRST_BYTE ? site->offset : 0),
		.call = probe_call(subject->listing.probe),
		.no_return = !variant->returns,
		.stack = variant->where == AT_FIRST_BYTE ? 0 : (uint32_t)site->stack,
	};
	ssize_t n = pread(subject->file, wanted.code, sizeof(wanted.code), (off_t)wanted.offset);

	wanted.code_n = n > 0 ? (uint8_t)n : 0;
	return wanted;
}

/* ---- a round ---- */

static void on_record(const void *data, uint32_t size, void *userdata)
{
	struct bench *bench = userdata;

	bench->events += data && size > 0;
}

/* Reads the events meanwhile, as the agent does. */
static double ask(struct bench *bench, const struct subject *subject)
{
	struct pollfd answer = { .fd = subject->socket, .events = POLLIN };
	double ns;

	if (write(subject->socket, "?", 1) != 1)
		die("who calls is gone; has the library the symbol?", -EPIPE);
	do
		ring_drain(&bench->ring, on_record, bench);
	while (poll(&answer, 1, DRAIN_MS) == 0);
	if (read(subject->socket, &ns, sizeof(ns)) != sizeof(ns))
		die("who calls is gone; has the library the symbol?", -EPIPE);
	ring_drain(&bench->ring, on_record, bench);
	return ns;
}

static bool applies(const struct subject *subject, const struct variant *variant)
{
	const struct site *site = &subject->listing.site;

	if (variant->who == OTHER)
		return subject->other >= 0;
	return (variant->where != AT_FIRST_BYTE || site->offset > 0) &&
	       (!variant->returns || site->may_return);
}

static int attach_variant(struct bench *bench, const struct subject *subject, const struct variant *variant,
			  bool returns, struct attachment **ret_attachment)
{
	struct attach_site site = site_of(subject, variant);

	return (variant->who == OURS ? attach : attach_empty)(bench->backend, subject->file, 0, returns,
							      &site, 1, ret_attachment);
}

static double measure(struct bench *bench, const struct subject *subject, const struct variant *variant)
{
	_cleanup_(attachment_freep) struct attachment *returns = NULL;
	_cleanup_(attachment_freep) struct attachment *entries = NULL;
	struct trace_spec spec = subject->listing.probe->spec;
	double ns;
	int r = 0;

	if (!applies(subject, variant))
		return -1;
	spec.flags |= variant->returns ? TRACE_SPEC_RETURNS : 0;
	if (variant->counts)
		spec.flags &= (uint8_t)~TRACE_SPEC_EVENT;
	attach_set_spec(bench->backend, probe_call(subject->listing.probe), &spec);
	if (variant->who == OTHER)
		tell_other(subject, "on\n");
	if ((variant->who == OURS || variant->who == EMPTY) && variant->returns)
		r = attach_variant(bench, subject, variant, true, &returns);
	if (r == 0 && (variant->who == OURS || variant->who == EMPTY))
		r = attach_variant(bench, subject, variant, false, &entries);
	if (r < 0)
		die(variant->name, r);
	ns = ask(bench, subject);
	if (variant->who == OTHER)
		tell_other(subject, "off\n");
	return ns;
}

static void print(const struct bench *bench, const struct subject *subject, bool first)
{
	const struct site *site = &subject->listing.site;

	printf("%s\n"
	       "{\"library\":\"%s\",\"symbol\":\"%s\",\"class\":\"%s\",\"offset\":%u,\"instruction\":\"%s\","
	       "\"ns\":{",
	       first ? "" : ",", subject->library, subject->symbol, site_class_name(site->class),
	       site->offset, site->instruction);
	for (size_t v = 0; v < ARRAY_SIZE(variants); v++) {
		printf("%s\"%s\":", v ? "," : "", variants[v].name);
		if (bench->ns[0][v] < 0) {
			printf("null");
			continue;
		}
		for (uint64_t i = 0; i < bench->rounds; i++)
			printf("%s%.1f", i ? "," : "[", bench->ns[i][v]);
		printf("]");
	}
	printf("},\"events\":%llu,\"dropped\":%llu}", (unsigned long long)bench->events,
	       (unsigned long long)bench->dropped);
	fflush(stdout);
}

static uint64_t dropped(struct bench *bench)
{
	struct trace_counters counters;
	int r = attach_counters(bench->backend, &counters, NULL, 0);

	if (r < 0)
		die("counters", r);
	return counters.dropped;
}

static void run(struct bench *bench, struct subject *subject, bool first)
{
	int r = find(bench, subject);

	if (r < 0)
		die(subject->library, r);
	spawn(subject);
	spawn_other(bench, subject);
	bench->events = 0;
	bench->dropped = dropped(bench);
	for (uint64_t i = 0; i < bench->rounds; i++)
		for (size_t v = 0; v < ARRAY_SIZE(variants); v++)
			bench->ns[i][v] = measure(bench, subject, &variants[v]);
	bench->dropped = dropped(bench) - bench->dropped;
	print(bench, subject, first);
	finish(subject);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "other", required_argument, NULL, 'o' },
		{ 0 },
	};
	static struct bench bench = { .rounds = 5 };
	const struct attach_config config = { .ring_bytes = RING_BYTES };
	struct attach_error error;
	int option, r;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (option == 'o')
			bench.other = optarg;
		else if (option != 'r' || parse_u64(optarg, &bench.rounds) < 0 || bench.rounds == 0 ||
			 bench.rounds > ROUNDS_MAX)
			return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	r = attach_backend_new(&config, &bench.backend, &error);
	if (r < 0) {
		fprintf(stderr, "probe_cost: %s\n", error.text);
		return EXIT_FAILURE;
	}
	attach_control(bench.backend)->wake_bytes = RING_BYTES / 8;
	r = ring_map(attach_map_fd(bench.backend, "events"), RING_BYTES, &bench.ring);
	if (r == 0)
		r = kernel_sites_probe(bench.backend, &bench.rules);
	if (r < 0)
		die("the ring, or the kinds of sites", r);
	printf("{\"backend\":\"%s\",\"subjects\":[", attach_backend_name(bench.backend));
	for (int i = optind; i + 1 < argc; i += 2)
		run(&bench, &(struct subject){ .library = argv[i], .symbol = argv[i + 1] }, i == optind);
	printf("]}\n");
	ring_unmap(&bench.ring);
	attach_backend_free(bench.backend);
	return EXIT_SUCCESS;
}
