// SPDX-License-Identifier: Apache-2.0
/* doctor's checks of tracing. Only a function of this process is probed, briefly. */
#include "cmd/doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/raised.h"
#include "agent/tracer.h"
#include "elf/elf.h"
#include "proc/capabilities.h"
#include "trace/engine.h"
#include "trace/kernel_sites.h"
#include "trace/list.h"
#include "trace/target.h"

/* include/uapi/linux/magic.h */
#define TRACEFS_MAGIC_ 0x74726163

enum { RING_BYTES = 1 << 16 };

/* A value of the agent's own metrics. */
static const json_t *agents_figure(const struct doctor *d, const char *family, const char *which)
{
	const json_t *agent = json_object_get(json_object_get(d->document, "node"), "agent");

	return json_object_get(json_object_get(agent, family), which);
}

/* Whether tracing is enabled in the agent; without an agent, in the configuration. */
static bool is_enabled(const struct doctor *d)
{
	if (json_is_object(d->trace) && !d->sampled)
		return json_is_number(agents_figure(d, "source_up", "trace")) ||
		       json_is_true(json_object_get(d->trace, "enabled"));
	return options_number(&d->invocation->options, OPT_trace_enabled) != TRISTATE_NO;
}

static void found_disabled(const struct doctor *d, struct finding *f)
{
	found(f, VERDICT_NOTE,
	      json_is_object(d->trace) ? "disabled in the agent (trace.enabled)" :
					 "disabled (trace.enabled)");
}

/* What tracing lacks is a failure only if it is enabled explicitly. */
static enum verdict missing_verdict(const struct doctor *d)
{
	return options_number(&d->invocation->options, OPT_trace_enabled) == TRISTATE_YES ? VERDICT_FAILED :
											    VERDICT_WARNING;
}

static bool lacks_needed_capability(const struct doctor *d)
{
	return json_is_true(json_object_get(json_object_get(d->capabilities, "tracing"), "needed"));
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* The reason that the agent gives includes the remedy. */
static void check_agents_tracing(const struct doctor *d, struct finding *f)
{
	const char *backend = text_of(d->trace, "backend"), *why = text_of(d->trace, "why");
	double refused = json_number_value(agents_figure(d, "trace_sites", "refused"));

	if (!*backend)
		found(f, missing_verdict(d), "the agent does not trace CUDA calls: %s",
		      *why ? why : "no reason reported");
	else if (json_is_true(json_object_get(d->trace, "stale")))
		found(f, missing_verdict(d),
		      "the agent traces CUDA calls by %s, but its figures are %.0f s old", backend,
		      json_number_value(json_object_get(d->trace, "age_seconds")));
	else if (refused > 0) {
		found(f, VERDICT_WARNING,
		      "the agent traces CUDA calls, attached by %s, except for %.0f entry points of the "
		      "libraries found, at which no harmless probe is possible",
		      backend, refused);
		remedy(f,
		       "the agent's log names the library, gpusonde probes LIBRARY shows the reason; a newer "
		       "gpusonde may support it");
	} else
		found(f, VERDICT_OK, "the agent traces CUDA calls, attached by %s", backend);
}

void doctor_load_tracing(struct doctor *d)
{
	const struct attach_config config = { .ring_bytes = RING_BYTES };
	WITH_CAPABILITIES;

	if (is_enabled(d))
		d->tracing_error = attach_backend_new(&config, &d->tracing, &d->tracing_why);
}

static void check_tracing(const struct doctor *d, struct finding *f)
{
	struct capability_lack lacks[CAPABILITY_LACKS_MAX];
	char who[SUBJECT_MAX];

	if (!is_enabled(d)) {
		found_disabled(d, f);
		return;
	}
	if (json_is_object(d->trace)) {
		check_agents_tracing(d, f);
		return;
	}
	if (d->status && json_is_null(d->trace)) {
		found(f, VERDICT_NOTE, "the agent has not started tracing yet");
		return;
	}
	doctor_subject(d, who, sizeof(who));
	if (d->tracing) {
		found(f, VERDICT_OK, "%s can trace CUDA calls, attached by %s", who,
		      attach_backend_name(d->tracing));
	} else if (d->tracing_error == -EPERM && capability_lacks(attach_needs(false), lacks)) {
		found(f, missing_verdict(d), "%s cannot trace CUDA calls: %s", who, lacks[0].cause);
		remedy(f, "see trace-capabilities; trace.enabled=no turns tracing off");
	} else { /* the cause includes the remedy */
		found(f, missing_verdict(d), "%s cannot trace CUDA calls: %s", who, d->tracing_why.text);
	}
}

static void check_capabilities(const struct doctor *d, struct finding *f)
{
	const json_t *capabilities = json_object_get(d->capabilities, "tracing");
	const char *text = text_of(capabilities, "text");
	char who[SUBJECT_MAX];

	doctor_subject(d, who, sizeof(who));
	if (!is_enabled(d)) {
		found_disabled(d, f);
	} else if (!capabilities) {
		found(f, VERDICT_NOTE, "not known: out of memory");
	} else if (json_is_false(json_object_get(capabilities, "known"))) {
		found(f, VERDICT_NOTE,
		      "%s: it is not known which capabilities tracing needs, since it is not known what "
		      "the kernel supports%s%s",
		      who, *text ? "; " : "", text);
		remedy(f, "%s", text_of(capabilities, "remedy"));
	} else if (!*text) {
		found(f, VERDICT_OK, "%s has all capabilities that tracing uses", who);
	} else {
		found(f, lacks_needed_capability(d) ? missing_verdict(d) : VERDICT_NOTE, "%s: %s", who, text);
		remedy(f, "%s", text_of(capabilities, "remedy"));
	}
}

/* Traced processes of which the agent has left something out for this reason, since they have begun. */
static unsigned incomplete_by(const struct doctor *d, const char *reason)
{
	json_t *processes = json_object_get(d->trace, "processes"), *process, *bit;
	unsigned n = 0;
	size_t i, k;

	json_array_foreach(processes, i, process)
		json_array_foreach(json_object_get(process, "incomplete"), k, bit)
			n += strcmp(json_string_value(bit) ? json_string_value(bit) : "", reason) == 0;
	return n;
}

/* What trace.max_overhead costs now, and has cost those that run. */
static void check_budget(const struct doctor *d, struct finding *f)
{
	static const struct {
		const char *reason, *what;
	} given_up[] = {
		{ "native_frames", "native frames" }, { "stacks", "stacks" },
		{ "operators", "operators" },         { "events_off", "events" },
		{ "probes_given_up", "probes" },
	};
	double sites = json_number_value(agents_figure(d, "trace_sites", "given_up"));
	struct strbuf text;

	if (!is_enabled(d)) {
		found_disabled(d, f);
		return;
	}
	if (!*text_of(d->trace, "backend")) {
		found(f, VERDICT_NOTE, "no agent that traces answers");
		return;
	}
	strbuf_init(&text, 0);
	if (sites > 0)
		strbuf_addf(&text, "%.0f entry points now", sites);
	for (size_t i = 0; i < ARRAY_SIZE(given_up); i++) {
		unsigned n = incomplete_by(d, given_up[i].reason);

		if (n > 0)
			strbuf_addf(&text, "%s%s of %u process%s", text.len > 0 ? ", " : "", given_up[i].what,
				    n, n == 1 ? "" : "es");
	}
	if (text.len == 0) {
		found(f, VERDICT_OK, "the agent has given up nothing of what it traces");
	} else {
		found(f, VERDICT_WARNING, "the agent has given up, for the budget or for want of room: %s",
		      text.data);
		remedy(f,
		       "trace.max_overhead bounds what tracing costs; gpusonde doctor --pid PID says what of "
		       "a process");
	}
	strbuf_done(&text);
}

/* "files 2, python 1"; "": none. The sum of them. */
static double readers_replaced(const struct doctor *d, const char *reason, char *text, size_t size)
{
	static const char *const roles[] = { "files", "sites", "python", "unwind" };
	const json_t *of = agents_figure(d, "trace_readers_replaced_total", reason);
	double sum = 0;

	*text = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(roles); i++) {
		double n = json_number_value(json_object_get(of, roles[i]));
		size_t at = strlen(text);

		if (n > 0)
			snprintf(text + at, size - at, "%s%s %.0f", at > 0 ? ", " : "", roles[i], n);
		sum += n;
	}
	return sum;
}

/* Helpers that read users' libraries, interpreters, and what native frames are unwound by. */
static void check_readers(const struct doctor *d, struct finding *f)
{
	const json_t *agent = json_object_get(json_object_get(d->document, "node"), "agent");
	double stuck = json_number_value(json_object_get(agent, "trace_readers_stuck"));
	char hung[128], crashed[128];
	double n = readers_replaced(d, "hung", hung, sizeof(hung)) +
		   readers_replaced(d, "crashed", crashed, sizeof(crashed));

	if (!is_enabled(d)) {
		found_disabled(d, f);
	} else if (!*text_of(d->trace, "backend")) {
		found(f, VERDICT_NOTE, "no agent that traces answers");
	} else if (n + stuck > 0) {
		found(f, stuck > 0 ? VERDICT_WARNING : VERDICT_NOTE,
		      "of the helpers that read users' files so many hung: %s; crashed: %s; the kernel does "
		      "not let %.0f end",
		      *hung ? hung : "none", *crashed ? crashed : "none", stuck);
		remedy(f, "who caused it is not read from for a while; stacks and names of his are missing");
	} else {
		found(f, VERDICT_OK, "no helper that reads users' files has hung or crashed");
	}
}

static void check_agents_records(const struct doctor *d, struct finding *f)
{
	const char *why = text_of(d->trace, "why");

	if (!*text_of(d->trace, "backend")) {
		found(f, VERDICT_NOTE, "not tried, since the agent does not trace");
		return;
	}
	/* Reported by the check "processes". */
	if (strncmp(why, TRACE_SEES_OWN_ONLY, strlen(TRACE_SEES_OWN_ONLY)) == 0)
		why += strlen(TRACE_SEES_OWN_ONLY);
	why += strspn(why, "; ");
	if (*why)
		found(f, VERDICT_NOTE, "the agent: %s", why);
	else
		found(f, VERDICT_OK, "the kernel reports new mappings to the agent at once");
}

static void check_records(const struct doctor *d, struct finding *f)
{
	char text[sizeof(f->text)];
	int level = capability_perf_level();
	WITH_CAPABILITIES;

	if (!is_enabled(d))
		found_disabled(d, f);
	else if (json_is_object(d->trace))
		check_agents_records(d, f);
	else if (lacks_needed_capability(d))
		found(f, VERDICT_NOTE, "not tried, since nothing can be traced");
	else if (targets_records_refused(text, sizeof(text)))
		found(f, VERDICT_NOTE, "%s", text);
	else if (level >= 0)
		found(f, VERDICT_OK, "the kernel reports new mappings at once (perf_event_paranoid %d)",
		      level);
	else
		found(f, VERDICT_OK, "the kernel reports new mappings at once");
}

static void check_tracefs(const struct doctor *d, struct finding *f)
{
	struct statfs fs;
	WITH_CAPABILITIES;

	if (!is_enabled(d)) {
		found_disabled(d, f);
		return;
	}
	if (d->tracing) {
		found(f, VERDICT_OK, "%s",
		      STRV_EQ(attach_backend_name(d->tracing), "uprobe_multi") ?
			      "not needed: the kernel has uprobe_multi" :
			      "/sys/kernel/tracing is usable");
		return;
	}
	if (attach_sys_is_missing()) {
		found(f, VERDICT_NOTE, ATTACH_SYS_MISSING);
		return;
	}
	if (attach_kernel_has_multi()) {
		found(f, VERDICT_OK, "not needed: the kernel has uprobe_multi");
		return;
	}
	if (statfs("/sys/kernel/tracing", &fs) < 0 || fs.f_type != TRACEFS_MAGIC_) {
		found(f, VERDICT_NOTE,
		      "/sys/kernel/tracing is not mounted: kernels before 6.6 need it for probes");
		remedy(f, "mount -t tracefs tracefs /sys/kernel/tracing, as root");
		return;
	}
	found(f, access("/sys/kernel/tracing/uprobe_events", W_OK) < 0 ? VERDICT_NOTE : VERDICT_OK,
	      "/sys/kernel/tracing/uprobe_events: %s",
	      access("/sys/kernel/tracing/uprobe_events", W_OK) < 0 ? strerror(errno) : "is writable");
}

static void check_sites(const struct doctor *d, struct finding *f)
{
	/* The kinds of this architecture. */
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
	struct site_rules rules;
	const char *no_returns;
	struct strbuf text;
	WITH_CAPABILITIES;

	if (!is_enabled(d)) {
		found_disabled(d, f);
		return;
	}
	if (!d->tracing || kernel_sites_probe(d->tracing, &rules) < 0) {
		found(f, VERDICT_NOTE, "the cost of a probe could not be measured");
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
	no_returns = kernel_sites_no_returns(&rules);
	if (no_returns) {
		found(f, VERDICT_WARNING, "%s", no_returns);
		if (rules.returns == SITE_RETURNS_KILL)
			remedy(f, "update the kernel");
	}
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

/* Uses the default rules: the behaviour of the running kernel is another check. */
static int tally_file(const char *path, bool allow_single_step, struct tally *ret_tally)
{
	struct site_query query = { .libraries = { [PROBE_CUDA] = true } };
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_(elf_closep) struct elf_file *file = NULL;
	struct tally tally = { 0 };
	int r = fd < 0 ? -errno : elf_open(fd, &file);

	if (r < 0)
		return r;
	site_rules_default(elf_machine(file), &query.rules);
	query.rules.allow_single_step = allow_single_step;
	r = trace_list_sites(fd, &query, tally_site, &tally, NULL);
	if (r == 0)
		*ret_tally = tally;
	return r;
}

static void found_no_library(struct finding *f)
{
	struct strbuf places;

	strbuf_init(&places, 0);
	for (const char *const *path = tracer_drivers; *path; path++)
		strbuf_addf(&places, "%s%s", places.len > 0 ? ", " : "", *path);
	found(f, VERDICT_NOTE,
	      "no libcuda.so.1 in the usual places: it is probed when a program maps one; searched for "
	      "%s",
	      places.data);
	strbuf_done(&places);
}

static void check_driver(const struct doctor *d, struct finding *f)
{
	bool single_step = options_bool(&d->invocation->options, OPT_trace_allow_single_step);

	if (!is_enabled(d)) {
		found_disabled(d, f);
		return;
	}
	found_no_library(f);
	for (const char *const *path = tracer_drivers; *path; path++) {
		struct tally tally = { 0 };
		int r = tally_file(*path, single_step, &tally);

		if (r == -ENOENT || r == -ENOTDIR)
			continue;
		if (r < 0) {
			found(f, missing_verdict(d), "%s cannot be read: %s", *path, strerror(-r));
			remedy(f, "check that it is the driver's library, and readable");
		} else if (tally.probed == tally.all && tally.all > 0) {
			found(f, VERDICT_OK, "%s: all %u known entry points can be probed", *path, tally.all);
		} else {
			found(f, tally.probed == 0 ? missing_verdict(d) : VERDICT_WARNING,
			      "%s: %u of %u entry points can be probed, calls of the others are not traced",
			      *path, tally.probed, tally.all);
			remedy(f, "gpusonde probes shows why; a newer gpusonde may support this library");
		}
		return;
	}
}

const struct check trace_checks[] = {
	{ "tracing", check_tracing },
	{ "trace-capabilities", check_capabilities },
	{ "trace-records", check_records },
	{ "trace-budget", check_budget },
	{ "trace-readers", check_readers },
	{ "tracefs", check_tracefs },
	{ "trace-sites", check_sites },
	{ "trace-driver", check_driver },
	{ 0 },
};
