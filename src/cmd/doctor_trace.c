// SPDX-License-Identifier: Apache-2.0
/* doctor's checks of what tracing needs. Nothing is probed but a function of our own, for a moment. */
#include "cmd/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "cmd/tracer.h"
#include "elf/elf.h"
#include "proc/rights.h"
#include "trace/engine.h"
#include "trace/kernel_sites.h"
#include "trace/target.h"

/* include/uapi/linux/magic.h */
#define TRACEFS_MAGIC_ 0x74726163

enum { RING_BYTES = 1 << 16 };

static bool wanted(const struct doctor *d)
{
	return options_number(&d->invocation->options, OPT_trace_enabled) != WISH_NO;
}

/* What is missing is a failure only for who has asked for tracing. */
static enum verdict missing(const struct doctor *d)
{
	return options_number(&d->invocation->options, OPT_trace_enabled) == WISH_YES ? VERDICT_FAILED :
											VERDICT_WARNING;
}

static void check_tracing(const struct doctor *d, struct finding *f)
{
	const struct attach_config config = { .ring_bytes = RING_BYTES };
	_cleanup_(attach_backend_freep) struct attach_backend *backend = NULL;
	struct rights_lack lacks[RIGHTS_LACKS_MAX];
	struct attach_trouble trouble = { 0 };
	int r;

	if (!wanted(d)) {
		found(f, VERDICT_NOTE, "not wanted (trace.enabled)");
		return;
	}
	r = attach_backend_new(&config, &backend, &trouble);
	if (r == 0) {
		found(f, VERDICT_OK, "CUDA calls can be traced, attached by %s", attach_backend_name(backend));
		return;
	}
	/* How to give it stands at trace-rights. */
	found(f, missing(d), "CUDA calls cannot be traced from here: %s",
	      r == -EPERM && rights_lacks(attach_needs(false), lacks) ? lacks[0].cause : trouble.text);
	remedy(f, "run doctor as the agent's user; trace.enabled=no if tracing is not wanted");
}

static void check_rights(const struct doctor *d, struct finding *f)
{
	struct rights_lack lacks[RIGHTS_LACKS_MAX];
	struct strbuf text;
	unsigned n;

	if (!wanted(d)) {
		found(f, VERDICT_NOTE, "not wanted (trace.enabled)");
		return;
	}
	n = rights_lacks(attach_needs(false) | RIGHTS_FOR(OTHERS) | RIGHTS_FOR(CLOSED), lacks);
	if (n == 0) {
		found(f, VERDICT_OK, "this process has all capabilities that tracing uses");
		return;
	}
	strbuf_init(&text, sizeof(f->text) - 1);
	for (unsigned i = 0; i < n; i++)
		strbuf_addf(&text, "%s%s: %s", i ? "; " : "", lacks[i].cause, lacks[i].lost);
	rights_remedy(attach_needs(false) | RIGHTS_FOR(OTHERS) | RIGHTS_FOR(CLOSED), f->remedy,
		      sizeof(f->remedy));
	found(f, rights_lacks(attach_needs(false), lacks) ? missing(d) : VERDICT_NOTE, "%s", text.data);
	strbuf_done(&text);
}

static void check_records(const struct doctor *d, struct finding *f)
{
	struct rights_lack lacks[RIGHTS_LACKS_MAX];
	char text[sizeof(f->text)];
	int level = rights_perf_level();

	if (!wanted(d))
		found(f, VERDICT_NOTE, "not wanted (trace.enabled)");
	else if (rights_lacks(attach_needs(false), lacks))
		found(f, VERDICT_NOTE, "not tried, since nothing can be traced");
	else if (targets_records_refused(text, sizeof(text)))
		found(f, VERDICT_NOTE, "%s", text);
	else if (level >= 0)
		found(f, VERDICT_OK, "the kernel tells of new mappings at once (perf_event_paranoid %d)", level);
	else
		found(f, VERDICT_OK, "the kernel tells of new mappings at once");
}

static void check_tracefs(const struct doctor *d, struct finding *f)
{
	const struct attach_config config = { .ring_bytes = RING_BYTES };
	_cleanup_(attach_backend_freep) struct attach_backend *backend = NULL;
	struct attach_trouble trouble;
	struct statfs fs;

	if (!wanted(d)) {
		found(f, VERDICT_NOTE, "not wanted (trace.enabled)");
		return;
	}
	if (attach_backend_new(&config, &backend, &trouble) == 0) {
		found(f, VERDICT_OK, "%s",
		      STRV_EQ(attach_backend_name(backend), "uprobe_multi") ?
			      "not needed: the kernel has uprobe_multi" :
			      "/sys/kernel/tracing can be used");
		return;
	}
	if (attach_kernel_has_multi()) {
		found(f, VERDICT_OK, "not needed: the kernel has uprobe_multi");
		return;
	}
	if (statfs("/sys/kernel/tracing", &fs) < 0 || fs.f_type != TRACEFS_MAGIC_) {
		found(f, VERDICT_NOTE,
		      "/sys/kernel/tracing is not mounted: kernels before 6.6 are probed through it");
		remedy(f, "mount -t tracefs tracefs /sys/kernel/tracing, as root");
		return;
	}
	found(f, access("/sys/kernel/tracing/uprobe_events", W_OK) < 0 ? VERDICT_NOTE : VERDICT_OK,
	      "/sys/kernel/tracing/uprobe_events: %s",
	      access("/sys/kernel/tracing/uprobe_events", W_OK) < 0 ? strerror(errno) : "can be written");
}

static void check_sites(const struct doctor *d, struct finding *f)
{
	/* Those that this machine has. */
	static const char *const kinds[SITE_KINDS] = {
#if defined(__aarch64__)
		[SITE_KIND_ADDRESS] = "adr, adrp",
#else
		[SITE_KIND_PUSH] = "push",
		[SITE_KIND_PUSH_EXTENDED] = "push r8..r15",
		[SITE_KIND_NOP5] = "5-byte nop",
		[SITE_KIND_NOP10] = "10-byte nop",
#endif
		[SITE_KIND_JUMP] = "jump",
		[SITE_KIND_BRANCH] = "conditional jump",
		[SITE_KIND_CALL] = "call",
		[SITE_KIND_NOP1] = "nop",
		[SITE_KIND_OTHER] = "others",
	};
	const struct attach_config config = { .ring_bytes = RING_BYTES };
	_cleanup_(attach_backend_freep) struct attach_backend *backend = NULL;
	struct attach_trouble trouble;
	struct site_rules rules;
	struct strbuf text;

	if (!wanted(d)) {
		found(f, VERDICT_NOTE, "not wanted (trace.enabled)");
		return;
	}
	if (attach_backend_new(&config, &backend, &trouble) < 0 || kernel_sites_probe(backend, &rules) < 0) {
		found(f, VERDICT_NOTE, "what a probe costs here could not be tried");
		return;
	}
	strbuf_init(&text, sizeof(f->text) - 1);
	for (int class = 0; class < SITE_CLASSES; class ++) {
		unsigned n = 0;

		for (int kind = 0; kind < SITE_KINDS; kind++)
			if (kinds[kind] && rules.by_kind[kind] == (enum site_class) class)
				strbuf_addf(&text, "%s%s", n++ ? ", " : text.len ? "; " : "", kinds[kind]);
		if (n == 0)
			continue;
		strbuf_addf(&text, ": %s", site_class_name((enum site_class) class));
		if (rules.entry_ns[class])
			strbuf_addf(&text, ", %u ns (%u with return)", rules.entry_ns[class],
				    rules.return_ns[class]);
	}
	found(f, VERDICT_OK, "%s", text.data);
	strbuf_done(&text);
}

struct tally {
	unsigned all, probed;
};

static int tally_site(const struct trace_listing *listing, void *userdata)
{
	struct tally *tally = userdata;

	tally->all++;
	tally->probed += listing->site.chosen;
	return 0;
}

/* By what is known of kernels in general: what this one does with each kind is another check. */
static int tally_file(const char *path, bool allow_single_step, struct tally *ret_tally)
{
	static const bool libraries[PROBE_LIBRARIES] = { [PROBE_CUDA] = true };
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_(elf_closep) struct elf_file *file = NULL;
	struct tally tally = { 0 };
	struct site_rules rules;
	int r = fd < 0 ? -errno : elf_open(fd, &file);

	if (r < 0)
		return r;
	site_rules_default(elf_machine(file), &rules);
	rules.allow_single_step = allow_single_step;
	r = trace_list_sites(fd, libraries, &rules, tally_site, &tally);
	if (r == 0)
		*ret_tally = tally;
	return r;
}

static void check_driver(const struct doctor *d, struct finding *f)
{
	bool single_step = options_bool(&d->invocation->options, OPT_trace_allow_single_step);

	if (!wanted(d)) {
		found(f, VERDICT_NOTE, "not wanted (trace.enabled)");
		return;
	}
	found(f, VERDICT_NOTE,
	      "no libcuda.so.1 where it is expected: programs' own are probed when they map them");
	for (const char *const *path = tracer_drivers; *path; path++) {
		struct tally tally = { 0 };
		int r = tally_file(*path, single_step, &tally);

		if (r == -ENOENT || r == -ENOTDIR)
			continue;
		if (r < 0) {
			found(f, missing(d), "%s cannot be read: %s", *path, strerror(-r));
			remedy(f, "see that it is the driver's own, and readable");
		} else if (tally.probed == tally.all && tally.all > 0) {
			found(f, VERDICT_OK, "%s: all %u entry points that are known can be probed", *path,
			      tally.all);
		} else {
			found(f, tally.probed == 0 ? missing(d) : VERDICT_WARNING,
			      "%s: %u of %u entry points can be probed, calls of the others are not traced",
			      *path, tally.probed, tally.all);
			remedy(f, "gpusonde probes tells why; a newer gpusonde may know this library");
		}
		return;
	}
}

const struct check trace_checks[] = {
	{ "tracing", check_tracing },
	{ "trace-rights", check_rights },
	{ "trace-records", check_records },
	{ "tracefs", check_tracefs },
	{ "trace-sites", check_sites },
	{ "trace-driver", check_driver },
	{ 0 },
};
