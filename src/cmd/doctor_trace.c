// SPDX-License-Identifier: Apache-2.0
/* doctor's checks of what tracing needs. Nothing is probed but a function of our own, for a moment. */
#include "cmd/doctor.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "trace/kernel_sites.h"

/* include/uapi/linux/magic.h */
#define TRACEFS_MAGIC_ 0x74726163

enum { PARANOID_TEXT_MAX = 64, RING_BYTES = 1 << 16 };

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
	struct attach_trouble trouble = { 0 };

	if (!wanted(d)) {
		found(f, VERDICT_NOTE, "not wanted (trace.enabled)");
	} else if (attach_backend_new(&config, &backend, &trouble) == 0) {
		found(f, VERDICT_OK, "CUDA calls can be traced, attached by %s", attach_backend_name(backend));
	} else {
		found(f, missing(d), "CUDA calls cannot be traced from here: %s", trouble.text);
		remedy(f, "run doctor as the agent's user; trace.enabled=no if tracing is not wanted");
	}
}

static bool effective(uint64_t *ret_bits)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	*ret_bits = data[0].effective | (uint64_t)data[1].effective << 32;
	return true;
}

static const struct {
	unsigned bit;
	const char *name, *for_what;
	bool needed; /* for tracing at all, unless there is CAP_SYS_ADMIN */
} rights[] = {
	{ CAP_BPF, "CAP_BPF", "programs in the kernel", true },
	{ CAP_PERFMON, "CAP_PERFMON", "their probes", true },
	{ CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "with CAP_DAC_OVERRIDE: kernels before 6.6; records where perf_event_paranoid is 3",
	  false },
	{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "libraries of other users' processes and the kernels in them, their environment", false },
	{ CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "libraries in folders that are closed to others", false },
};

static void check_rights(const struct doctor *d, struct finding *f)
{
	struct strbuf lacks;
	uint64_t bits = 0;
	bool enough = true;

	if (!wanted(d)) {
		found(f, VERDICT_NOTE, "not wanted (trace.enabled)");
		return;
	}
	strbuf_init(&lacks, sizeof(f->text) / 2);
	if (!effective(&bits))
		strbuf_addf(&lacks, " (capget: %s)", strerror(errno));
	for (size_t i = 0; i < ARRAY_SIZE(rights); i++) {
		if (bits >> rights[i].bit & 1)
			continue;
		enough &= !rights[i].needed || (bits >> CAP_SYS_ADMIN & 1);
		strbuf_addf(&lacks, "%s %s (%s)", lacks.len ? "," : "", rights[i].name, rights[i].for_what);
	}
	found(f,
	      !lacks.len ? VERDICT_OK :
	      enough     ? VERDICT_NOTE :
			   missing(d),
	      "%s%s", lacks.len ? "this process lacks" : "this process has all capabilities that tracing uses",
	      lacks.data);
	if (lacks.len)
		remedy(f, "run as root, or AmbientCapabilities= of the unit");
	strbuf_done(&lacks);
}

static void check_records(const struct doctor *d, struct finding *f)
{
	char text[PARANOID_TEXT_MAX];
	uint64_t bits = 0;
	int64_t level = 0;

	if (!wanted(d)) {
		found(f, VERDICT_NOTE, "not wanted (trace.enabled)");
		return;
	}
	if (read_file("/proc/sys/kernel/perf_event_paranoid", text, sizeof(text), NULL) < 0) {
		found(f, VERDICT_WARNING,
		      "no perf events in this kernel: processes are found by scanning /proc only");
		remedy(f, "a kernel with CONFIG_PERF_EVENTS");
		return;
	}
	text[strcspn(text, "\n")] = 0;
	effective(&bits);
	if (parse_i64(text, &level) < 0)
		level = 0;
	/* Level 3 is Debian's own: there CAP_PERFMON does not help. */
	if (bits >> CAP_SYS_ADMIN & 1 || (level < 3 && bits >> CAP_PERFMON & 1)) {
		found(f, VERDICT_OK, "the kernel tells of new mappings at once (perf_event_paranoid %lld)",
		      (long long)level);
		return;
	}
	found(f, VERDICT_NOTE,
	      "perf_event_paranoid is %lld: processes are found by scanning /proc only, up to a second late",
	      (long long)level);
	remedy(f, level < 3 ? "CAP_PERFMON" :
			      "CAP_SYS_ADMIN, or sysctl kernel.perf_event_paranoid=2 with CAP_PERFMON");
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

const struct check trace_checks[] = {
	{ "tracing", check_tracing }, { "trace-rights", check_rights }, { "trace-records", check_records },
	{ "tracefs", check_tracefs }, { "trace-sites", check_sites },   { 0 },
};
