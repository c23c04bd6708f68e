// SPDX-License-Identifier: Apache-2.0
/* doctor's checks of the kernel and of permissions. */
#include "cmd/doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/kubelet.h"
#include "base/fd.h"
#include "kmsg/kmsg.h"
#include "trace/attach.h"

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
		found(f, VERDICT_OK,
		      "/sys/kernel/btf/vmlinux exists: BPF programs can be adapted to this kernel");
		return;
	}
	if (attach_sys_is_missing()) {
		found(f, VERDICT_NOTE, ATTACH_SYS_MISSING);
		remedy(f, ATTACH_SYS_REMEDY);
		return;
	}
	found(f, VERDICT_NOTE, "no /sys/kernel/btf/vmlinux: %s", strerror(errno));
	remedy(f, "only tracing needs it: use a kernel with CONFIG_DEBUG_INFO_BTF");
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
	if (attach_sys_is_missing()) {
		found(f, VERDICT_NOTE, ATTACH_SYS_MISSING);
		return;
	}
	found(f, VERDICT_NOTE,
	      confidential ? "the kernel is locked down (confidentiality)" :
			     "not available: no /sys/bus/event_source/devices/uprobe");
	remedy(f, "only tracing needs them: use a kernel with CONFIG_UPROBE_EVENTS, outside a restricted "
		  "container");
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* Always ok: the checks that need a capability report it as missing. */
static void check_capabilities(const struct doctor *d, struct finding *f)
{
	const char *held = text_of(d->capabilities, "capabilities");
	char who[SUBJECT_MAX];

	found(f, VERDICT_OK, "%s has%s", doctor_subject(d, who, sizeof(who)),
	      *held ? held : " none that gpusonde uses");
}

/* If the agent does not read the log, it probably lacks a capability. */
static void check_agents_kmsg(const struct doctor *d, struct finding *f)
{
	const json_t *agent = json_object_get(json_object_get(d->document, "node"), "agent");
	const json_t *lack = json_object_get(d->capabilities, "kernel_log");

	if (json_integer_value(json_object_get(json_object_get(agent, "source_up"), "kmsg")) == 1) {
		found(f, VERDICT_OK, "the agent reads XID errors from it, too");
	} else if (d->agents_capabilities && *text_of(lack, "text")) {
		found(f, VERDICT_WARNING, "the agent: %s", text_of(lack, "text"));
		remedy(f, "%s; or sysctl kernel.dmesg_restrict=0", text_of(lack, "remedy"));
	} else {
		found(f, VERDICT_WARNING,
		      "the agent does not read it: XID errors come only from the driver's events");
		remedy(f, "see the agent's log; kmsg.enabled=false turns it off");
	}
}

static void check_kmsg(const struct doctor *d, struct finding *f)
{
	const char *path = options_text(&d->invocation->options, OPT_kmsg_path);
	_cleanup_close_ int fd = kmsg_open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	const json_t *lack = json_object_get(d->capabilities, "kernel_log");
	int error = fd < 0 ? errno : 0;
	char who[SUBJECT_MAX];

	doctor_subject(d, who, sizeof(who));
	if (!options_bool(&d->invocation->options, OPT_kmsg_enabled)) {
		found(f, VERDICT_NOTE, "disabled (kmsg.enabled)");
	} else if (d->status && !d->sampled) {
		check_agents_kmsg(d, f);
	} else if (fd >= 0) {
		found(f, VERDICT_OK, "%s can read XID errors from %s, too", who, path);
	} else if ((error == EPERM || error == EACCES) && *text_of(lack, "text")) {
		found(f, VERDICT_WARNING, "%s (%s): %s", who, path, text_of(lack, "text"));
		remedy(f, "%s; or sysctl kernel.dmesg_restrict=0", text_of(lack, "remedy"));
	} else {
		found(f, VERDICT_WARNING, "%s: %s: XID errors come only from the driver's events", path,
		      strerror(error));
		remedy(f, "give a container access with --device /dev/kmsg:/dev/kmsg:r; set kmsg.path to "
			  "another file; kmsg.enabled=false turns it off");
	}
}

static void check_pids(const struct doctor *d, struct finding *f)
{
	const char *which = text_of(d->capabilities, "processes");
	char who[SUBJECT_MAX];

	doctor_subject(d, who, sizeof(who));
	if (STRV_EQ(which, "namespace")) {
		found(f, VERDICT_WARNING,
		      "%s is in a PID namespace of its own: the driver reports PIDs of the host, whose "
		      "names are unknown here; only programs in the namespace can be traced",
		      who);
		remedy(f, "hostPID: true (Kubernetes), --pid=host (Docker)");
	} else if (STRV_EQ(which, "hidden")) {
		found(f, VERDICT_WARNING, "/proc hides the processes of other users (hidepid) from %s", who);
		remedy(f, "run as root, or in the group of /proc's mount option gid=");
	} else {
		found(f, VERDICT_OK, "%s sees the processes of all users", who);
	}
}

/* Names of containers and pods, which an agent has read for it. */
static void check_names(const struct doctor *d, struct finding *f)
{
	const json_t *agent = json_object_get(json_object_get(d->document, "node"), "agent");
	const json_t *up = json_object_get(json_object_get(agent, "source_up"), "files");

	if (!d->status || d->sampled) {
		found(f, VERDICT_NOTE, "not read: only a running agent does");
	} else if (!json_is_number(up)) {
		found(f, VERDICT_NOTE, "not read (workload.names)");
	} else if (json_number_value(up) == 1) {
		found(f, VERDICT_OK, "the agent reads names of pods and containers from the node's files");
	} else {
		found(f, VERDICT_WARNING, "the agent cannot read all names of pods and containers");
		remedy(f, "its log says which file and why; workload.root names the folder in which the "
			  "host's files are; workload.names=false turns it off");
	}
}

/* Whether all workloads of GPUs have had a place of their own. */
static void check_workloads(const struct doctor *d, struct finding *f)
{
	const json_t *agent = json_object_get(json_object_get(d->document, "node"), "agent");
	const json_t *dropped = json_object_get(agent, "dropped_total");
	double all = json_number_value(json_object_get(dropped, "workloads"));
	double users = json_number_value(json_object_get(dropped, "user_workloads"));

	if (!d->status || d->sampled) {
		found(f, VERDICT_NOTE, "not added up: only a running agent does");
	} else if (all > 0) {
		found(f, VERDICT_WARNING, "%.0f time%s a workload had to be added to \"other\": too many",
		      all, all == 1 ? "" : "s");
		remedy(f, "raise workload.max");
	} else if (users > 0) {
		found(f, VERDICT_NOTE,
		      "%.0f time%s a workload of a user's own cgroups had to be added to \"other\": the "
		      "user, or all users together, had more than their share of workload.max",
		      users, users == 1 ? "" : "s");
		remedy(f, "raise workload.max if that is no attack; the agent's log says who had most");
	} else {
		found(f, VERDICT_OK, "each has its own sums");
	}
}

/* As the agent has it, which asks kubelet. */
static void check_agents_kubelet(const struct doctor *d, bool up, double unmatched, struct finding *f)
{
	const char *why = text_of(d->status, "kubelet");

	if (!up) {
		found(f, VERDICT_WARNING, "what pods were given is not known: %s",
		      *why ? why : "kubelet has not answered for a while");
		remedy(f,
		       "run the agent as root, or with CAP_SETUID; mount kubelet's folder pod-resources in "
		       "its container; workload.kubelet=none turns this off");
	} else if (unmatched > 0) {
		found(f, VERDICT_WARNING,
		      "of %.0f device%s that pods were given it is not known which GPUs they are", unmatched,
		      unmatched == 1 ? "" : "s");
		remedy(f, "the agent's log names one; in a container mount /etc/cdi and /var/run/cdi below "
			  "workload.root");
	} else {
		found(f, VERDICT_OK, "the agent asks kubelet what pods were given");
	}
}

static void found_no_kubelet(const char *root, const char *socket, struct finding *f)
{
	char paths[sizeof(f->text) - 80];

	kubelet_list_sockets(root, socket, paths, sizeof(paths));
	found(f, VERDICT_NOTE, "no kubelet: this is no node of Kubernetes, as there is no socket at %s",
	      paths);
}

static void check_kubelet(const struct doctor *d, struct finding *f)
{
	const json_t *agent = json_object_get(json_object_get(d->document, "node"), "agent");
	const json_t *up = json_object_get(json_object_get(agent, "source_up"), "kubelet");
	const struct options *options = &d->invocation->options;
	const char *socket = options_text(options, OPT_workload_kubelet);
	const char *root = options_text(options, OPT_workload_root);
	char path[PATH_MAX];
	size_t below;

	if (d->status && !d->sampled && json_is_number(up))
		check_agents_kubelet(d, json_number_value(up) == 1,
				     json_number_value(json_object_get(agent, "kubelet_unmatched_devices")),
				     f);
	else if (STRV_EQ(socket, "none"))
		found(f, VERDICT_NOTE, "not asked (workload.kubelet)");
	else if (kubelet_find_socket(root, socket, path, &below) < 0)
		found_no_kubelet(root, socket, f);
	else
		found(f, VERDICT_NOTE, "%s is there: a running agent asks it what pods were given", path);
}

static void check_kube_api(const struct doctor *d, struct finding *f)
{
	const json_t *agent = json_object_get(json_object_get(d->document, "node"), "agent");
	const json_t *up = json_object_get(json_object_get(agent, "source_up"), "kube");
	double lost = json_number_value(json_object_get(agent, "kube_owner_fallbacks"));

	if (!d->status || d->sampled) {
		found(f, VERDICT_NOTE, "not asked: only a running agent does");
	} else if (!json_is_number(up)) {
		found(f, VERDICT_NOTE, "not asked (kube.enabled); the agent's log says so where it may not");
	} else if (json_number_value(up) != 1) {
		const char *why = text_of(d->status, "kube");

		found(f, VERDICT_WARNING, "what controls pods is not known: %s",
		      *why ? why : "the API server has not answered for a while");
		remedy(f, "docs/kubernetes.md has the rights that it needs; kube.enabled=no turns this off");
	} else if (lost > 0) {
		found(f, VERDICT_WARNING, "of %.0f pod%s not all owners can be read", lost,
		      lost == 1 ? "" : "s");
		remedy(f, "docs/kubernetes.md has the rights that it needs; the agent's log names one");
	} else {
		found(f, VERDICT_OK, "the agent asks the API server what controls pods");
	}
}

static void check_exporters(const struct doctor *d, struct finding *f)
{
	const json_t *agent = json_object_get(json_object_get(d->document, "node"), "agent");
	const json_t *up = json_object_get(json_object_get(agent, "source_up"), "dcgm");
	double exporters = json_number_value(json_object_get(agent, "dcgm_exporters"));

	if (!d->status || d->sampled) {
		found(f, VERDICT_NOTE, "not read: only a running agent does");
	} else if (!json_is_number(up)) {
		found(f, VERDICT_NOTE, "none is read (dcgm.host, dcgm.labels)");
	} else if (json_number_value(up) == 1) {
		found(f, VERDICT_OK, "the agent reads %.0f DCGM exporter%s", exporters,
		      exporters == 1 ? "" : "s");
	} else {
		const char *why = text_of(d->status, "dcgm");

		found(f, VERDICT_WARNING, "the agent cannot read its DCGM exporters: %s",
		      *why ? why : "their pages are too old");
		remedy(f, "dcgm.host, dcgm.port and dcgm.path say where they are; "
			  "gpusonde_dcgm_scrape_failures_total "
			  "counts why they could not be read");
	}
}

const struct check system_checks[] = {
	{ "kernel-log", check_kmsg },       { "processes", check_pids },
	{ "container-names", check_names }, { "workloads", check_workloads },
	{ "kubelet", check_kubelet },       { "kube", check_kube_api },
	{ "dcgm", check_exporters },        { "capabilities", check_capabilities },
	{ "kernel", check_kernel },         { "btf", check_btf },
	{ "uprobes", check_uprobes },       { 0 },
};
