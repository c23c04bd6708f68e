// SPDX-License-Identifier: Apache-2.0
#include "proc/capabilities.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "base/raised.h"
#include "base/text.h"
#include "proc/user.h"

/* Capabilities within a user namespace do not count for what belongs to the kernel itself. */
#define NESTED "gpusonde runs in a user namespace, whose capabilities do not count for this"
#define NESTED_OWN                                                                                    \
	"gpusonde runs in a user namespace, whose capabilities count for programs and files of that " \
	"namespace only"
#define NESTED_REMEDY \
	"run it outside: no rootless container, docker run --userns=host, no PrivateUsers= in the unit"

enum { STATUS_MAX = 8192, NAME_MAX_BYTES = 32, PATH_LONG = 255 };

enum capability_scope { SCOPE_KERNEL, SCOPE_NAMESPACE };

struct capability {
	enum capability_need need;
	unsigned capability, instead;
	enum capability_scope scope;
	const char *name; /* without CAP_ */
	const char *lost;
};

static const struct capability capability_table[] = {
#define CAPABILITY(need_, capability_, instead_, scope_, lost_) \
	{ .need = CAPABILITY_##need_,                           \
	  .capability = CAP_##capability_,                      \
	  .instead = CAP_##instead_,                            \
	  .scope = SCOPE_##scope_,                              \
	  .name = #capability_,                                 \
	  .lost = lost_ },
#include "proc/capabilities.def"
#undef CAPABILITY
};

static const char *const needed_when[CAPABILITY_NEEDS] = {
#define CAPABILITY_NEED(id_, when_) [CAPABILITY_##id_] = when_,
#include "proc/capabilities.def"
#undef CAPABILITY_NEED
};

static unsigned command_needs; /* 0: not a command run by a user */

void capability_of_command(unsigned needs)
{
	command_needs = needs;
}

/* ---- this process ---- */

/* Those that it can use: effective ones, and permitted ones that raised_begin() makes effective. */
static uint64_t usable(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	/* Unknown: assume all, since a refusal will be reported anyway. */
	if (syscall(SYS_capget, &header, data) < 0)
		return UINT64_MAX;
	for (unsigned i = 0; i < 2 && capabilities_lowered(); i++)
		data[i].effective = data[i].permitted;
	return data[0].effective | (uint64_t)data[1].effective << 32;
}

static bool in_user_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) == 0 && st.st_ino != USER_NAMESPACE_INIT;
}

static bool has(uint64_t all, const struct capability *right)
{
	return all >> right->capability & 1 || all >> right->instead & 1;
}

/* tracefs belongs to root, but its group may give others access. */
static bool is_open(const struct capability *right)
{
	return right->need == CAPABILITY_EVENT && right->capability == CAP_DAC_OVERRIDE &&
	       (geteuid() == 0 ||
		faccessat(AT_FDCWD, "/sys/kernel/tracing/uprobe_events", W_OK, AT_EACCESS) == 0);
}

/* ---- sentences ---- */

/* setcap replaces a file's capabilities, so the list must be complete. */
static void add_file_list(struct strbuf *out, uint64_t bits)
{
	const char *before = "";

	for (size_t i = 0; i < ARRAY_SIZE(capability_table); i++) {
		char name[NAME_MAX_BYTES];

		if (!(bits >> capability_table[i].capability & 1))
			continue;
		bits &= ~(UINT64_C(1) << capability_table[i].capability);
		snprintf(name, sizeof(name), "%s", capability_table[i].name);
		for (char *c = name; *c; c++)
			if (*c >= 'A' && *c <= 'Z')
				*c = (char)(*c - 'A' + 'a');
		strbuf_addf(out, "%scap_%s", before, name);
		before = ",";
	}
}

static void add_command_remedy(const struct capability *const *lacks, unsigned n, uint64_t all,
			       struct strbuf *out)
{
	char path[PATH_LONG + 1];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path));

	for (unsigned i = 0; i < n; i++)
		all |= UINT64_C(1) << lacks[i]->capability;
	for (size_t i = 0; i < ARRAY_SIZE(capability_table); i++)
		if (command_needs >> capability_table[i].need & 1 && !has(all, &capability_table[i]) &&
		    !is_open(&capability_table[i]))
			all |= UINT64_C(1) << capability_table[i].capability;
	/* A truncated path could name another file. */
	if (length <= 0 || length > PATH_LONG)
		length = snprintf(path, sizeof(path), "/path/of/gpusonde");
	/* Everybody who may run it then has the capabilities. setcap comes last: chgrp removes them. */
	strbuf_addf(out,
		    "run it as root (sudo), or give the capabilities to a trusted group: sudo chgrp GROUP "
		    "%.*s; sudo chmod 0750 %.*s; sudo setcap ",
		    (int)length, path, (int)length, path);
	add_file_list(out, all);
	strbuf_addf(out, "+ep %.*s", (int)length, path);
}

static void add_remedy(const struct capability *const *lacks, unsigned n, uint64_t all, struct strbuf *out)
{
	/* Root without a capability is in a container. */
	if (command_needs && geteuid() != 0) {
		add_command_remedy(lacks, n, all, out);
		return;
	}
	strbuf_adds(out, "AmbientCapabilities=");
	for (unsigned i = 0; i < n; i++)
		strbuf_addf(out, "%sCAP_%s", i ? " " : "", lacks[i]->name);
	strbuf_adds(out, " in the unit, or docker run");
	for (unsigned i = 0; i < n; i++)
		strbuf_addf(out, " --cap-add %s", lacks[i]->name);
}

static void put_text(struct strbuf *text, char *buf, size_t size)
{
	snprintf(buf, size, "%s", text->data);
	strbuf_done(text);
}

static void say(const struct capability *const *lacks, unsigned n, uint64_t all, struct capability_lack *lack)
{
	struct strbuf text;

	strbuf_init(&text, 0);
	for (unsigned i = 0; i < n; i++)
		strbuf_addf(&text, "%sCAP_%s", i ? " and " : "", lacks[i]->name);
	strbuf_addf(&text, " %s missing", n > 1 ? "are" : "is");
	put_text(&text, lack->cause, sizeof(lack->cause));
	lack->lost = lacks[0]->lost;
	strbuf_init(&text, 0);
	add_remedy(lacks, n, all, &text);
	put_text(&text, lack->remedy, sizeof(lack->remedy));
}

/* Lists the rows of @needs whose capability is missing, each capability once with all its purposes. */
static unsigned find_missing(unsigned needs, uint64_t all,
			     const struct capability *ret_missing[static ARRAY_SIZE(capability_table)])
{
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(capability_table); i++)
		if (needs >> capability_table[i].need & 1 && !has(all, &capability_table[i]) &&
		    !is_open(&capability_table[i]))
			ret_missing[n++] = &capability_table[i];
	return n;
}

unsigned capability_lacks(unsigned needs, struct capability_lack ret_lacks[static CAPABILITY_LACKS_MAX])
{
	const struct capability *missing[ARRAY_SIZE(capability_table)];
	bool nested = in_user_namespace();
	uint64_t all = nested ? 0 : usable();
	unsigned n = find_missing(needs, all, missing), lacks = 0;

	if (nested && n > 0) {
		snprintf(ret_lacks[0].cause, sizeof(ret_lacks[0].cause), "%s",
			 missing[0]->scope == SCOPE_KERNEL ? NESTED : NESTED_OWN);
		ret_lacks[0].lost = missing[0]->lost;
		snprintf(ret_lacks[0].remedy, sizeof(ret_lacks[0].remedy), "%s", NESTED_REMEDY);
		return 1;
	}
	for (unsigned i = 0, end; i < n && lacks < CAPABILITY_LACKS_MAX; i = end) {
		for (end = i + 1; end < n && missing[end]->need == missing[i]->need; end++)
			;
		say(missing + i, end - i, all, &ret_lacks[lacks++]);
	}
	return lacks;
}

void capability_remedy(unsigned needs, char *buf, size_t size)
{
	const struct capability *missing[ARRAY_SIZE(capability_table)];
	bool nested = in_user_namespace();
	uint64_t all = nested ? 0 : usable();
	unsigned n = find_missing(needs, all, missing);
	struct strbuf text;

	strbuf_init(&text, 0);
	if (nested && n > 0)
		strbuf_adds(&text, NESTED_REMEDY);
	else if (n > 0)
		add_remedy(missing, n, all, &text);
	put_text(&text, buf, size);
}

void capability_lack_text(const struct capability_lack *lack, char *buf, size_t size)
{
	snprintf(buf, size, "%s: %s; %s", lack->cause, lack->lost, lack->remedy);
}

void capability_text(unsigned needs, char *buf, size_t size)
{
	struct capability_lack lacks[CAPABILITY_LACKS_MAX];
	unsigned n = capability_lacks(needs, lacks);
	size_t used = 0;

	if (size > 0)
		buf[0] = '\0';
	for (unsigned i = 0; i < n && used + 2 < size; i++) {
		if (i > 0)
			used += (size_t)snprintf(buf + used, size - used, "; ");
		if (used >= size)
			break;
		capability_lack_text(&lacks[i], buf + used, size - used);
		used += strlen(buf + used);
	}
}

void capability_held(struct strbuf *out)
{
	bool nested = in_user_namespace();
	uint64_t all = usable();

	if (all == UINT64_MAX) {
		strbuf_adds(out, " capabilities that it may not ask for");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(capability_table); i++) {
		if (!(all >> capability_table[i].capability & 1) ||
		    (nested && capability_table[i].scope == SCOPE_KERNEL))
			continue;
		all &= ~(UINT64_C(1) << capability_table[i].capability);
		strbuf_addf(out, " CAP_%s", capability_table[i].name);
	}
}

/* ---- refusals with all capabilities ---- */

static bool has_filter(void)
{
	char text[STATUS_MAX];

	/* 2: SECCOMP_MODE_FILTER */
	return read_file("/proc/self/status", text, sizeof(text), NULL) == 0 && strstr(text, "\nSeccomp:\t2");
}

bool capability_locked_down(void)
{
	char text[128];

	return read_file("/sys/kernel/security/lockdown", text, sizeof(text), NULL) == 0 &&
	       strstr(text, "[confidentiality]");
}

/*
 * Names the profile of the security module that confines gpusonde; unconfined processes have "unconfined" or
 * nothing.
 */
static void blame_modules(const char *remedy, char *buf, size_t size)
{
	char profile[128];

	if (read_file("/proc/self/attr/current", profile, sizeof(profile), NULL) < 0)
		profile[0] = '\0';
	profile[strcspn(profile, "\n")] = '\0';
	if (profile[0] && strncmp(profile, "unconfined", strlen("unconfined")) != 0)
		snprintf(buf, size, "the security profile %s, which confines gpusonde, may forbid it; %s",
			 profile, remedy);
	else
		snprintf(buf, size, "a security module may forbid it; look for denials in the kernel log");
}

void capability_refused_process(char *buf, size_t size)
{
	blame_modules(
		"in a container AppArmor's is lifted by docker run --security-opt apparmor=unconfined, or "
		"appArmorProfile: "
		"{type: Unconfined} in Kubernetes",
		buf, size);
}

/* Until Linux 5.11 BPF memory counted against RLIMIT_MEMLOCK, and exceeding it returned -EPERM. */
static bool counts_locked_memory(void)
{
	struct utsname name;
	int major, minor;

	return uname(&name) == 0 && sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
	       (major < 5 || (major == 5 && minor < 11));
}

void capability_refused(int error, char *buf, size_t size)
{
	struct rlimit limit;

	if (capability_locked_down())
		snprintf(buf, size,
			 "the kernel is locked down (confidentiality); boot it without "
			 "lockdown=confidentiality");
	else if (has_filter())
		snprintf(buf, size,
			 "a seccomp filter is in force that may forbid it; allow bpf and perf_event_open in "
			 "the unit's SystemCallFilter= "
			 "or the container's seccomp profile");
	else if (error == -ENOSYS)
		snprintf(buf, size,
			 "this kernel was built without it; tracing needs CONFIG_BPF_SYSCALL and "
			 "CONFIG_PERF_EVENTS");
	else if (counts_locked_memory() && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
		 limit.rlim_cur != RLIM_INFINITY)
		snprintf(buf, size,
			 "before Linux 5.11 tracing's memory counts against RLIMIT_MEMLOCK, here %llu KiB; "
			 "LimitMEMLOCK=infinity in the unit, or "
			 "docker run --ulimit memlock=-1",
			 (unsigned long long)limit.rlim_cur / 1024);
	else
		blame_modules("look for denials in the kernel log", buf, size);
}

int capability_perf_level(void)
{
	char text[32];
	int64_t level;

	if (read_file("/proc/sys/kernel/perf_event_paranoid", text, sizeof(text), NULL) < 0)
		return -ENOENT;
	text[strcspn(text, "\n")] = '\0';
	return parse_i64(text, &level) == 0 && level > 0 ? (int)MIN(level, (int64_t)INT_MAX) : 0;
}

/* ---- the document ---- */

void capability_document(struct strbuf *out)
{
	strbuf_adds(out,
		    "# Capabilities\n\nDevice metrics need none. Written from `src/proc/capabilities.def` by "
		    "`ninja -C build docs`; `gpusonde doctor` says "
		    "which ones are missing.\n\n| capability | needed for | without it | also enough | "
		    "given in a user namespace, it counts for |\n| --- | --- | --- | --- | --- |\n");
	for (size_t i = 0; i < ARRAY_SIZE(capability_table); i++) {
		const char *instead = "";

		for (size_t j = 0; j < ARRAY_SIZE(capability_table) && !instead[0]; j++)
			if (capability_table[i].instead != capability_table[i].capability &&
			    capability_table[j].capability == capability_table[i].instead)
				instead = capability_table[j].name;
		strbuf_addf(out, "| `CAP_%s` | %s | %s | %s%s%s | %s |\n", capability_table[i].name,
			    needed_when[capability_table[i].need], capability_table[i].lost,
			    instead[0] ? "`CAP_" : "", instead, instead[0] ? "`" : "",
			    capability_table[i].scope == SCOPE_KERNEL ?
				    "nothing" :
				    "programs and files of that namespace");
	}
}
