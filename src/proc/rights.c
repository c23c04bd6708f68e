// SPDX-License-Identifier: Apache-2.0
#include "proc/rights.h"

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
#include "base/text.h"

/* Inode of the first user namespace: PROC_USER_INIT_INO of include/linux/proc_ns.h, kernel interface since 3.8. */
#define USER_NAMESPACE_INIT 0xEFFFFFFDu

/* Where capabilities are those of a namespace, none of ours would count for the kernel's own. */
#define NESTED "gpusonde runs in a user namespace, whose capabilities do not count for this"
#define NESTED_OWN \
	"gpusonde runs in a user namespace, whose capabilities count for programs and files of that namespace only"
#define NESTED_REMEDY \
	"run it outside: no rootless container, docker run --userns=host, no PrivateUsers= in the unit"

enum { STATUS_MAX = 8192, NAME_MAX_BYTES = 32, PATH_LONG = 255 };

enum rights_scope { SCOPE_KERNEL, SCOPE_NAMESPACE };

struct right {
	enum rights_need need;
	unsigned capability, instead;
	enum rights_scope scope;
	const char *name; /* without CAP_ */
	const char *lost;
};

static const struct right rights[] = {
#define RIGHT(need_, capability_, instead_, scope_, lost_) \
	{ .need = RIGHTS_##need_,                          \
	  .capability = CAP_##capability_,                 \
	  .instead = CAP_##instead_,                       \
	  .scope = SCOPE_##scope_,                         \
	  .name = #capability_,                            \
	  .lost = lost_ },
#include "proc/rights.def"
#undef RIGHT
};

static const char *const needed_when[RIGHTS_NEEDS] = {
#define RIGHTS_NEED(id_, when_) [RIGHTS_##id_] = when_,
#include "proc/rights.def"
#undef RIGHTS_NEED
};

static unsigned command_needs; /* 0: no user's command */

void rights_of_command(unsigned needs)
{
	command_needs = needs;
}

/* ---- what this process is ---- */

static uint64_t effective(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	/* Who cannot know blames nothing: what is refused will tell. */
	if (syscall(SYS_capget, &header, data) < 0)
		return UINT64_MAX;
	return data[0].effective | (uint64_t)data[1].effective << 32;
}

static bool in_user_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) == 0 && st.st_ino != USER_NAMESPACE_INIT;
}

static bool has(uint64_t all, const struct right *right)
{
	return all >> right->capability & 1 || all >> right->instead & 1;
}

/* Root owns the files of tracefs, others may be let in by its gid. */
static bool is_open(const struct right *right)
{
	return right->need == RIGHTS_EVENT && right->capability == CAP_DAC_OVERRIDE &&
	       (geteuid() == 0 ||
		faccessat(AT_FDCWD, "/sys/kernel/tracing/uprobe_events", W_OK, AT_EACCESS) == 0);
}

/* ---- sentences ---- */

/* setcap replaces what a file had, so it is told the whole list. */
static void add_file_list(struct strbuf *out, uint64_t bits)
{
	const char *before = "";

	for (size_t i = 0; i < ARRAY_SIZE(rights); i++) {
		char name[NAME_MAX_BYTES];

		if (!(bits >> rights[i].capability & 1))
			continue;
		bits &= ~(UINT64_C(1) << rights[i].capability);
		snprintf(name, sizeof(name), "%s", rights[i].name);
		for (char *c = name; *c; c++)
			if (*c >= 'A' && *c <= 'Z')
				*c = (char)(*c - 'A' + 'a');
		strbuf_addf(out, "%scap_%s", before, name);
		before = ",";
	}
}

static void add_command_remedy(const struct right *const *lacks, unsigned n, uint64_t all, struct strbuf *out)
{
	char path[PATH_LONG + 1];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path));

	for (unsigned i = 0; i < n; i++)
		all |= UINT64_C(1) << lacks[i]->capability;
	for (size_t i = 0; i < ARRAY_SIZE(rights); i++)
		if (command_needs >> rights[i].need & 1 && !has(all, &rights[i]) && !is_open(&rights[i]))
			all |= UINT64_C(1) << rights[i].capability;
	strbuf_adds(out, "run it as root (sudo), or give gpusonde the capabilities: sudo setcap ");
	add_file_list(out, all);
	/* Half a path would be another file's. */
	if (length <= 0 || length > PATH_LONG)
		length = snprintf(path, sizeof(path), "/path/of/gpusonde");
	strbuf_addf(out, "+ep %.*s", (int)length, path);
}

static void add_remedy(const struct right *const *lacks, unsigned n, uint64_t all, struct strbuf *out)
{
	/* Root that lacks something is a container's. */
	if (command_needs && geteuid() != 0) {
		add_command_remedy(lacks, n, all, out);
		return;
	}
	strbuf_adds(out, "AmbientCapabilities=");
	for (unsigned i = 0; i < n; i++) {
		strbuf_addf(out, "%sCAP_%s", i ? " " : "", lacks[i]->name);
		all |= UINT64_C(1) << lacks[i]->capability;
	}
	strbuf_adds(out, " in the unit, docker run");
	for (unsigned i = 0; i < n; i++)
		strbuf_addf(out, " --cap-add %s", lacks[i]->name);
	strbuf_adds(out, ", or setcap ");
	add_file_list(out, all);
	strbuf_adds(out, "+ep");
}

static void put(struct strbuf *text, char *buf, size_t size)
{
	snprintf(buf, size, "%s", text->data);
	strbuf_done(text);
}

static void say(const struct right *const *lacks, unsigned n, uint64_t all, struct rights_lack *lack)
{
	struct strbuf text;

	strbuf_init(&text, 0);
	for (unsigned i = 0; i < n; i++)
		strbuf_addf(&text, "%sCAP_%s", i ? " and " : "", lacks[i]->name);
	strbuf_addf(&text, " %s missing", n > 1 ? "are" : "is");
	put(&text, lack->cause, sizeof(lack->cause));
	lack->lost = lacks[0]->lost;
	strbuf_init(&text, 0);
	add_remedy(lacks, n, all, &text);
	put(&text, lack->remedy, sizeof(lack->remedy));
}

/* Rows of @needs that are not met, each capability once for what it is needed for. */
static unsigned find_missing(unsigned needs, uint64_t all,
			     const struct right *ret_missing[static ARRAY_SIZE(rights)])
{
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rights); i++)
		if (needs >> rights[i].need & 1 && !has(all, &rights[i]) && !is_open(&rights[i]))
			ret_missing[n++] = &rights[i];
	return n;
}

unsigned rights_lacks(unsigned needs, struct rights_lack ret_lacks[static RIGHTS_LACKS_MAX])
{
	const struct right *missing[ARRAY_SIZE(rights)];
	bool nested = in_user_namespace();
	uint64_t all = nested ? 0 : effective();
	unsigned n = find_missing(needs, all, missing), lacks = 0;

	if (nested && n > 0) {
		snprintf(ret_lacks[0].cause, sizeof(ret_lacks[0].cause), "%s",
			 missing[0]->scope == SCOPE_KERNEL ? NESTED : NESTED_OWN);
		ret_lacks[0].lost = missing[0]->lost;
		snprintf(ret_lacks[0].remedy, sizeof(ret_lacks[0].remedy), "%s", NESTED_REMEDY);
		return 1;
	}
	for (unsigned i = 0, end; i < n && lacks < RIGHTS_LACKS_MAX; i = end) {
		for (end = i + 1; end < n && missing[end]->need == missing[i]->need; end++)
			;
		say(missing + i, end - i, all, &ret_lacks[lacks++]);
	}
	return lacks;
}

void rights_remedy(unsigned needs, char *buf, size_t size)
{
	const struct right *missing[ARRAY_SIZE(rights)];
	bool nested = in_user_namespace();
	uint64_t all = nested ? 0 : effective();
	unsigned n = find_missing(needs, all, missing);
	struct strbuf text;

	strbuf_init(&text, 0);
	if (nested && n > 0)
		strbuf_adds(&text, NESTED_REMEDY);
	else if (n > 0)
		add_remedy(missing, n, all, &text);
	put(&text, buf, size);
}

void rights_lack_text(const struct rights_lack *lack, char *buf, size_t size)
{
	snprintf(buf, size, "%s: %s; %s", lack->cause, lack->lost, lack->remedy);
}

void rights_text(unsigned needs, char *buf, size_t size)
{
	struct rights_lack lacks[RIGHTS_LACKS_MAX];
	unsigned n = rights_lacks(needs, lacks);
	size_t used = 0;

	if (size > 0)
		buf[0] = '\0';
	for (unsigned i = 0; i < n && used + 2 < size; i++) {
		if (i > 0)
			used += (size_t)snprintf(buf + used, size - used, "; ");
		if (used >= size)
			break;
		rights_lack_text(&lacks[i], buf + used, size - used);
		used += strlen(buf + used);
	}
}

void rights_held(struct strbuf *out)
{
	bool nested = in_user_namespace();
	uint64_t all = effective();

	if (all == UINT64_MAX) {
		strbuf_adds(out, " capabilities that it may not ask for");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(rights); i++) {
		if (!(all >> rights[i].capability & 1) || (nested && rights[i].scope == SCOPE_KERNEL))
			continue;
		all &= ~(UINT64_C(1) << rights[i].capability);
		strbuf_addf(out, " CAP_%s", rights[i].name);
	}
}

/* ---- refused all the same ---- */

static bool has_filter(void)
{
	char text[STATUS_MAX];

	/* 2: SECCOMP_MODE_FILTER */
	return read_file("/proc/self/status", text, sizeof(text), NULL) == 0 && strstr(text, "\nSeccomp:\t2");
}

bool rights_locked_down(void)
{
	char text[128];

	return read_file("/sys/kernel/security/lockdown", text, sizeof(text), NULL) == 0 &&
	       strstr(text, "[confidentiality]");
}

/* Security modules name the profile that holds us; where none does, "unconfined" or nothing. */
static void blame_modules(const char *remedy, char *buf, size_t size)
{
	char profile[128];

	if (read_file("/proc/self/attr/current", profile, sizeof(profile), NULL) < 0)
		profile[0] = '\0';
	profile[strcspn(profile, "\n")] = '\0';
	if (profile[0] && strncmp(profile, "unconfined", strlen("unconfined")) != 0)
		snprintf(buf, size, "the security profile %s, which holds gpusonde, may forbid it; %s",
			 profile, remedy);
	else
		snprintf(buf, size, "a security module may forbid it; look for denials in the kernel log");
}

void rights_refused_process(char *buf, size_t size)
{
	blame_modules("in a container AppArmor's is lifted by docker run --security-opt apparmor=unconfined, or appArmorProfile: "
		      "{type: Unconfined} in Kubernetes",
		      buf, size);
}

/* Until Linux 5.11 memory of BPF counted against RLIMIT_MEMLOCK, and what is too much of it is -EPERM. */
static bool counts_locked_memory(void)
{
	struct utsname name;
	int major, minor;

	return uname(&name) == 0 && sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
	       (major < 5 || (major == 5 && minor < 11));
}

void rights_refused(int error, char *buf, size_t size)
{
	struct rlimit limit;

	if (rights_locked_down())
		snprintf(buf, size,
			 "the kernel is locked down (confidentiality); boot it without lockdown=confidentiality");
	else if (has_filter())
		snprintf(buf, size,
			 "a seccomp filter is in force that may forbid it; allow bpf and perf_event_open in the unit's SystemCallFilter= "
			 "or the container's seccomp profile");
	else if (error == -ENOSYS)
		snprintf(buf, size,
			 "this kernel was built without it; tracing needs CONFIG_BPF_SYSCALL and CONFIG_PERF_EVENTS");
	else if (counts_locked_memory() && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
		 limit.rlim_cur != RLIM_INFINITY)
		snprintf(buf, size,
			 "before Linux 5.11 tracing's memory counts against RLIMIT_MEMLOCK, here %llu KiB; LimitMEMLOCK=infinity in the unit, or "
			 "docker run --ulimit memlock=-1",
			 (unsigned long long)limit.rlim_cur / 1024);
	else
		blame_modules("look for denials in the kernel log", buf, size);
}

int rights_perf_level(void)
{
	char text[32];
	int64_t level;

	if (read_file("/proc/sys/kernel/perf_event_paranoid", text, sizeof(text), NULL) < 0)
		return -ENOENT;
	text[strcspn(text, "\n")] = '\0';
	return parse_i64(text, &level) == 0 && level > 0 ? (int)MIN(level, (int64_t)INT_MAX) : 0;
}

/* ---- the document ---- */

void rights_document(struct strbuf *out)
{
	strbuf_adds(out,
		    "# Capabilities\n\nDevice metrics need none. Written from `src/proc/rights.def` by `ninja -C build docs`; `gpusonde doctor` says "
		    "which ones are missing.\n\n| capability | needed for | without it | also enough | "
		    "given in a user namespace, it counts for |\n| --- | --- | --- | --- | --- |\n");
	for (size_t i = 0; i < ARRAY_SIZE(rights); i++) {
		const char *instead = "";

		for (size_t j = 0; j < ARRAY_SIZE(rights) && !instead[0]; j++)
			if (rights[i].instead != rights[i].capability &&
			    rights[j].capability == rights[i].instead)
				instead = rights[j].name;
		strbuf_addf(out, "| `CAP_%s` | %s | %s | %s%s%s | %s |\n", rights[i].name,
			    needed_when[rights[i].need], rights[i].lost, instead[0] ? "`CAP_" : "", instead,
			    instead[0] ? "`" : "",
			    rights[i].scope == SCOPE_KERNEL ? "nothing" :
							      "programs and files of that namespace");
	}
}
