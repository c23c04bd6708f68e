// SPDX-License-Identifier: Apache-2.0
/*
 * How long it takes to attach probes to many functions of one file, and to detach them, with each method,
 * while a process maps the file.
 *
 *	attach_cost LIBRARY [ROUNDS]
 *
 * Prints JSON: {"uprobe_multi":{"sites":300,"attach_ms":[...],"detach_ms":[...],"pairs_attach_ms":[...],
 * "pairs_detach_ms":[...]},"trace event":{...}}; a method that the kernel lacks is absent.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "elf/elf.h"
#include "trace/attach.h"
#include "trace/probe.h"
#include "trace/site.h"

enum { SITES = 300, ROUNDS_MAX = 99, ROUND_DEFAULT = 5, RING_BYTES = 64 << 10 };

struct bench {
	int file;
	struct elf_file *elf;
	struct site_rules rules;
	struct attach_site sites[SITES];
	size_t n;
	uint64_t rounds;
};

struct times {
	double attach_ms[ROUNDS_MAX], detach_ms[ROUNDS_MAX];
};

static _Noreturn void die(const char *what, int r)
{
	fprintf(stderr, "attach_cost: %s: %s\n", what, strerror(-r));
	exit(EXIT_FAILURE);
}

static bool known(const struct bench *bench, uint64_t offset)
{
	for (size_t i = 0; i < bench->n; i++)
		if (bench->sites[i].offset == offset)
			return true;
	return false;
}

/* All functions that have a site, each address once. */
static int take(const struct elf_symbol *symbol, void *userdata)
{
	struct bench *bench = userdata;
	uint8_t code[SITE_SCAN_MAX];
	struct site site;
	size_t n;

	if (elf_code(bench->elf, symbol->offset, code, MIN((uint64_t)sizeof(code), symbol->size), &n) < 0 ||
	    site_choose(elf_machine(bench->elf), code, n, symbol->address, &bench->rules, &site) < 0 ||
	    !site.chosen || !site.may_return || known(bench, symbol->offset + site.offset))
		return 0;
	bench->sites[bench->n] = (struct attach_site){
		.offset = symbol->offset + site.offset,
		.call = (uint16_t)(bench->n % probes_n),
		.code_n = (uint8_t)MIN(sizeof(bench->sites[0].code), n - site.offset),
	};
	memcpy(bench->sites[bench->n].code, code + site.offset, bench->sites[bench->n].code_n);
	return ++bench->n == SITES;
}

static pid_t map_it(const char *path)
{
	pid_t pid;
	int ready[2];
	char byte;

	if (pipe2(ready, O_CLOEXEC) < 0)
		die("pipe", -errno);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dlopen(path, RTLD_NOW) && write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	if (pid < 0 || read(ready[0], &byte, 1) != 1)
		die(path, -ENOENT);
	close(ready[0]);
	return pid;
}

static double ms_since(int64_t begin_ns)
{
	return (double)(clock_mono_ns() - begin_ns) / NSEC_PER_MSEC;
}

static void round_of(struct bench *bench, struct attach_backend *backend, bool pairs, double *ret_attach_ms,
		     double *ret_detach_ms)
{
	struct attachment *entries = NULL, *returns = NULL;
	int64_t begin_ns = clock_mono_ns();
	int r = 0;

	if (pairs)
		r = attach(backend, bench->file, 0, true, bench->sites, bench->n, &returns);
	if (r == 0)
		r = attach(backend, bench->file, 0, false, bench->sites, bench->n, &entries);
	if (r < 0)
		die("attach", r);
	*ret_attach_ms = ms_since(begin_ns);
	begin_ns = clock_mono_ns();
	attachment_free(entries);
	attachment_free(returns);
	*ret_detach_ms = ms_since(begin_ns);
}

static void print(const char *name, const double *ms, uint64_t n)
{
	printf(",\"%s\":", name);
	for (uint64_t i = 0; i < n; i++)
		printf("%s%.2f", i ? "," : "[", ms[i]);
	printf("]");
}

static void measure(struct bench *bench, bool no_multi, bool *first)
{
	const struct attach_config config = { .ring_bytes = RING_BYTES, .no_multi = no_multi };
	_cleanup_(attach_backend_freep) struct attach_backend *backend = NULL;
	static struct times single, pairs;
	struct attach_error error;

	if (attach_backend_new(&config, &backend, &error) < 0) {
		fprintf(stderr, "attach_cost: %s\n", error.text);
		return;
	}
	if (STRV_EQ(attach_backend_name(backend), "trace event") != no_multi)
		return;
	for (uint64_t i = 0; i < bench->rounds; i++) {
		round_of(bench, backend, false, &single.attach_ms[i], &single.detach_ms[i]);
		round_of(bench, backend, true, &pairs.attach_ms[i], &pairs.detach_ms[i]);
	}
	printf("%s\"%s\":{\"sites\":%zu", *first ? "" : ",\n", attach_backend_name(backend), bench->n);
	print("attach_ms", single.attach_ms, bench->rounds);
	print("detach_ms", single.detach_ms, bench->rounds);
	print("pairs_attach_ms", pairs.attach_ms, bench->rounds);
	print("pairs_detach_ms", pairs.detach_ms, bench->rounds);
	printf("}");
	*first = false;
}

int main(int argc, char **argv)
{
	static struct bench bench = { .rounds = ROUND_DEFAULT };
	bool first = true;
	pid_t pid;
	int r;

	if (argc < 2 || (argc > 2 && (parse_u64(argv[2], &bench.rounds) < 0 || bench.rounds > ROUNDS_MAX)))
		return 2;
	bench.file = open(argv[1], O_RDONLY | O_CLOEXEC);
	r = bench.file < 0 ? -errno : elf_open(bench.file, &bench.elf);
	if (r < 0)
		die(argv[1], r);
	site_rules_default(elf_machine(bench.elf), &bench.rules);
	r = elf_functions(bench.elf, take, &bench);
	if (r < 0 || bench.n < SITES)
		die("the library has too few functions that can be probed", r < 0 ? r : -ENODATA);
	pid = map_it(argv[1]);
	printf("{");
	measure(&bench, false, &first);
	measure(&bench, true, &first);
	printf("}\n");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	elf_close(bench.elf);
	close(bench.file);
	return EXIT_SUCCESS;
}
