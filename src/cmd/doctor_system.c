// SPDX-License-Identifier: Apache-2.0
/* doctor's checks of the kernel and of what this process may do. */
#include "cmd/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "proc/proc.h"
#include "proc/rights.h"

static void check_kernel(_unused_ const struct doctor *d, struct finding *f)
{
	struct utsname name;

	if (uname(&name) < 0)
		found(f, VERDICT_WARNING, "uname: %s", strerror(errno));
	else
		found(f, VERDICT_OK, "Linux %s, %s", name.release, name.machine);
}

static void check_btf(_unused_ const struct doctor *d, struct finding *f)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0) {
		found(f, VERDICT_OK, "/sys/kernel/btf/vmlinux: programs in the kernel can be fitted to it");
		return;
	}
	found(f, VERDICT_NOTE, "no /sys/kernel/btf/vmlinux: %s", strerror(errno));
	remedy(f, "only tracing wants it: a kernel with CONFIG_DEBUG_INFO_BTF");
}

static void check_uprobes(_unused_ const struct doctor *d, struct finding *f)
{
	char lockdown[128] = "";
	bool confidential;

	read_file("/sys/kernel/security/lockdown", lockdown, sizeof(lockdown), NULL);
	confidential = strstr(lockdown, "[confidentiality]");
	if (access("/sys/bus/event_source/devices/uprobe/type", R_OK) == 0 && !confidential) {
		found(f, VERDICT_OK, "available");
		return;
	}
	found(f, VERDICT_NOTE,
	      confidential ? "the kernel is locked down (confidentiality)" :
			     "not available: no /sys/bus/event_source/devices/uprobe");
	remedy(f, "only tracing wants them: a kernel with CONFIG_UPROBE_EVENTS, not in a restricted container");
}

/* What is missing is said by whoever needs it. */
static void check_capabilities(_unused_ const struct doctor *d, struct finding *f)
{
	struct strbuf has;

	strbuf_init(&has, sizeof(f->text) / 2);
	rights_held(&has);
	found(f, VERDICT_OK, "this process has%s", has.len ? has.data : " none of note");
	strbuf_done(&has);
}

static void check_kmsg(const struct doctor *d, struct finding *f)
{
	const char *path = options_text(&d->invocation->options, OPT_kmsg_path);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct rights_lack lacks[RIGHTS_LACKS_MAX];
	int error = fd < 0 ? errno : 0;

	if (!options_bool(&d->invocation->options, OPT_kmsg_enabled)) {
		found(f, VERDICT_NOTE, "not wanted (kmsg.enabled)");
		return;
	}
	if (fd >= 0) {
		found(f, VERDICT_OK, "%s can be read: XID errors come from there, too", path);
		return;
	}
	if ((error == EPERM || error == EACCES) && rights_lacks(RIGHTS_FOR(KERNEL_LOG), lacks) > 0) {
		found(f, VERDICT_WARNING, "%s (%s): %s", lacks[0].cause, path, lacks[0].lost);
		remedy(f, "%s; or sysctl kernel.dmesg_restrict=0", lacks[0].remedy);
		return;
	}
	found(f, VERDICT_WARNING, "%s: %s: XID errors come from the driver's events alone", path,
	      strerror(error));
	remedy(f,
	       "a container is given it by --device /dev/kmsg; kmsg.path names another; kmsg.enabled=false if it is not wanted");
}

static void check_pids(_unused_ const struct doctor *d, struct finding *f)
{
	if (!proc_sees_all()) {
		found(f, VERDICT_WARNING,
		      "in a PID namespace of its own: the driver's PIDs are of the host, and have no names here; only programs in it can be traced");
		remedy(f, "hostPID: true (Kubernetes), --pid=host (Docker)");
	} else if (access("/proc/1/stat", R_OK) < 0) {
		found(f, VERDICT_WARNING, "/proc hides the processes of others (hidepid)");
		remedy(f, "run as root, or in the group that /proc's mount option gid= names");
	} else {
		found(f, VERDICT_OK, "the processes of all users can be seen");
	}
}

const struct check system_checks[] = {
	{ "kernel-log", check_kmsg },
	{ "processes", check_pids },
	{ "capabilities", check_capabilities },
	{ "kernel", check_kernel },
	{ "btf", check_btf },
	{ "uprobes", check_uprobes },
	{ 0 },
};
