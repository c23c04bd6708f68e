// SPDX-License-Identifier: Apache-2.0
#include "agent/driver/collector.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "agent/driver/pids.h"
#include "agent/journal.h"
#include "config/places.h"
#include "agent/readiness.h"
#include "agent/driver/outage.h"
#include "host/host.h"
#include "kmsg/kmsg.h"
#include "proc/proc.h"
#include "proc/capabilities.h"

enum { SAVE_INTERVAL_S = 10, BUS_INTERVAL_S = 10 };

/* Of the node: those of the configuration, and labels of the cluster's node. */
struct given_tags {
	struct node_tag list[NODE_TAGS_MAX];
	uint32_t n;
};

struct collector {
	struct collector_config config;
	struct given_tags tags, labels;
	struct model *model;
	struct publisher *publisher;
	struct journal *journal; /* NULL: nothing is logged */
	struct nvml_source *source;
	struct driver_pids *pids; /* NULL: /proc lacks the machine's other processes */
	struct kmsg *kmsg; /* NULL: not wanted, or it cannot be read */
	struct host_source *host; /* NULL: not wanted */
	bool kmsg_wanted;
	char *library, *helper, *xid_file;
	char *state_dir;
	atomic_int state_error; /* errno of writing there; 0 */
	struct nvml_config nvml;
	struct nvml_status counted; /* the source's counters that the model already contains */
	struct kmsg_stats kmsg_counted;
	uint64_t readings;
	bool reading_came; /* since the last tick */
	struct driver_outage outage;
	uint32_t state;
	char error[sizeof(((struct reading *)NULL)->error)]; /* error text of the newest reading */
	/* what the driver reports that this version does not know, as last logged */
	char unrecognised[sizeof(((struct reading *)NULL)->unrecognised)];
	/* the driver version that @unrecognised belongs to */
	char unrecognised_driver[sizeof(((struct reading *)NULL)->driver_version)];
	int64_t saved_ns;
	int64_t bus_ns; /* boot clock: when the PCI bus was last scanned */
	int gpus_on_bus;
};

static enum workload_kind workload_of(enum proc_cgroup_kind kind)
{
	static const enum workload_kind kinds[] = {
		[PROC_CGROUP_NONE] = WORKLOAD_NONE, [PROC_CGROUP_CONTAINER] = WORKLOAD_CONTAINER,
		[PROC_CGROUP_POD] = WORKLOAD_POD,   [PROC_CGROUP_JOB] = WORKLOAD_JOB,
		[PROC_CGROUP_UNIT] = WORKLOAD_UNIT,
	};

	return kinds[kind];
}

static int identify(uint32_t pid, bool full, struct process_identity *ret_identity, void *userdata)
{
	struct proc_identity proc;
	int r;

	(void)userdata;
	if (!full)
		return proc_process_id("/proc", pid, &ret_identity->id);
	r = proc_identify("/proc", pid, &proc);
	if (r < 0)
		return r;
	*ret_identity = (struct process_identity){
		.id = proc.id,
		.uid = proc.uid,
		.ns_pid = proc.ns_pid,
		.kind = workload_of(proc.cgroup.kind),
		.user = proc.cgroup.user,
		.job_manager = (enum job_manager)proc.cgroup.job.manager,
	};
	_Static_assert(sizeof(ret_identity->comm) >= sizeof(proc.comm), "a name must fit");
	_Static_assert(sizeof(ret_identity->workload_id) >= sizeof(proc.cgroup.id), "an id must fit");
	_Static_assert(sizeof(ret_identity->pod_uid) >= sizeof(proc.cgroup.pod_uid), "a pod's id must fit");
	_Static_assert(sizeof(ret_identity->job_id) >= sizeof(proc.cgroup.job.id) &&
			       sizeof(ret_identity->job_step) >= sizeof(proc.cgroup.job.step),
		       "a job must fit");
	strcpy(ret_identity->job_id, proc.cgroup.job.id);
	strcpy(ret_identity->job_step, proc.cgroup.job.step);
	strcpy(ret_identity->comm, proc.comm);
	strcpy(ret_identity->workload_id, proc.cgroup.id);
	strcpy(ret_identity->pod_uid, proc.cgroup.pod_uid);
	return 0;
}

void collector_publish(struct collector *c)
{
	static struct log_limit limit = { .burst = 3,
					  .interval_ns = 60 * NSEC_PER_SEC,
					  .what = "failures to publish" };
	int r = model_publish(c->model, c->publisher);

	if (r < 0) {
		if (log_limit_allow(&limit))
			log_error("cannot publish a snapshot, views show the previous one: %s", strerror(-r));
		return;
	}
	struct snapshot *snapshot = publisher_get(c->publisher);

	if (c->journal)
		journal_take(c->journal, snapshot);
	if (c->config.published)
		c->config.published(snapshot, c->config.userdata);
	snapshot_unref(snapshot);
}

static void log_state(struct collector *c, const struct reading *reading)
{
	if (c->config.quiet || (c->readings > 0 && c->state == reading->state))
		return;
	if (reading->state == READING_OK)
		log_at(c->readings > 0 ? LOG_NOTICE : LOG_INFO, "driver %s, NVML %s from %s%s",
		       reading->driver_version, reading->nvml_version, reading->library,
		       reading->simulated ? ": SIMULATED, none of these GPUs exists" : "");
	else
		/*
		 * A warning if a driver disappeared or is missing for an existing GPU, not on a node that
		 * never had one.
		 */
		log_at(c->gpus_on_bus > 0 || reading->state == READING_FAILED ||
				       (c->readings > 0 && c->state == READING_OK &&
					reading->state != READING_RELEASED) ?
			       LOG_WARNING :
			       LOG_INFO,
		       "no data from the driver: %s", reading->error);
}

/* Whether @list, phrases separated by "; ", begins with the phrases of @part. */
static bool begins_with(const char *list, const char *part)
{
	size_t n = strlen(part);

	return strncmp(list, part, n) == 0 && (list[n] == ';' || list[n] == '\0');
}

/* Logged once for each driver version. Later additions come last in the list; only they are logged then. */
static void log_unrecognised(struct collector *c, const struct reading *reading)
{
	const char *new = reading->unrecognised;
	bool same = c->unrecognised[0] && STRV_EQ(c->unrecognised_driver, reading->driver_version), more;

	if (c->config.quiet || reading->state != READING_OK)
		return;
	/* After attaching again the list is built up again, so at first it is a prefix of the logged one. */
	if (same && begins_with(c->unrecognised, new))
		return;
	more = same && begins_with(new, c->unrecognised);
	if (more)
		new += strlen(c->unrecognised) + strlen("; ");
	if (new[0])
		log_warning("this gpusonde does not recognise all of driver %s; what depends on this is left "
			    "out%s: %s; a newer gpusonde may know it",
			    reading->driver_version, more ? ", too" : "", new);
	memcpy(c->unrecognised, reading->unrecognised, sizeof(c->unrecognised));
	memcpy(c->unrecognised_driver, reading->driver_version, sizeof(c->unrecognised_driver));
}

/*
 * A node without a driver is healthy only if it has no GPU either. The driver cannot report this, so the PCI
 * bus is scanned.
 */
static void report_outage(struct collector *c, const struct nvml_status *status)
{
	int64_t now = clock_boot_ns();
	char text[REASON_MAX];

	if (c->bus_ns == 0 || now - c->bus_ns >= BUS_INTERVAL_S * NSEC_PER_SEC) {
		c->bus_ns = now;
		c->gpus_on_bus = pci_gpus(PCI_DEVICES);
	}
	if (status->error[0]) {
		model_set_outage(c->model, SOURCE_NVML, status->error, status->cause);
	} else if (c->gpus_on_bus > 0 && (c->state == READING_NO_LIBRARY || c->state == READING_NO_DRIVER)) {
		snprintf(text, sizeof(text), "%d NVIDIA device%s on the PCI bus, but no driver: %s",
			 c->gpus_on_bus, c->gpus_on_bus == 1 ? "" : "s", c->error);
		model_set_outage(c->model, SOURCE_NVML, text, text);
	} else {
		model_set_outage(c->model, SOURCE_NVML, NULL, NULL);
	}
}

static void on_reading(struct reading *reading, void *userdata)
{
	static struct log_limit limit = { .burst = 3,
					  .interval_ns = 60 * NSEC_PER_SEC,
					  .what = "unusable readings" };
	struct collector *c = userdata;
	struct nvml_status status;
	int r;

	if (c->pids)
		model_agent_add(c->model, AGENT_DROPPED_PROCESSES, driver_pids_translate(c->pids, reading));
	r = model_apply(c->model, SOURCE_NVML, reading);
	if (r < 0) {
		if (log_limit_allow(&limit))
			log_error("a reading could not be processed: %s", strerror(-r));
		return;
	}
	log_state(c, reading);
	c->state = reading->state;
	memcpy(c->error, reading->error, sizeof(c->error));
	c->readings++;
	c->reading_came = true;
	log_unrecognised(c, reading);
	driver_outage_reading(&c->outage, reading->state, clock_boot_ns());
	collector_status(c, &status);
	/* collector_status() has just dropped "no reading yet"; the reason is now that of this reading. */
	report_outage(c, &status);
	collector_publish(c);
}

static void on_xid(const struct kmsg_xid *xid, void *userdata)
{
	struct collector *c = userdata;

	model_kmsg_xid(c->model, &(struct xid_record){ .pci_bus_id = xid->pci_bus_id,
						       .code = xid->code,
						       .gi = xid->gi,
						       .ci = xid->ci,
						       .boot_ns = xid->boot_ns,
						       .sequence = xid->sequence,
						       .text = xid->text });
}

/* The sources' counters are cumulative; the model's are incremented by differences. */
static void count_source(struct collector *c)
{
	struct nvml_status s;

	nvml_source_status(c->source, &s);
	driver_outage_tick(&c->outage, &s, clock_boot_ns());
	model_agent_add(c->model, AGENT_CHILD_STARTS, (double)(s.starts - c->counted.starts));
	model_agent_add(c->model, AGENT_CHILD_CRASHES, (double)(s.crashes - c->counted.crashes));
	model_agent_add(c->model, AGENT_OVERDUE, (double)(s.overdue - c->counted.overdue));
	model_agent_set(c->model, AGENT_CHILD_STUCK, s.stuck);
	model_agent_set(c->model, AGENT_CALL_AGE, s.call_seconds);
	c->counted = s;
	driver_outage_status(&c->outage, clock_boot_ns(), &s);
	report_outage(c, &s);
}

static void count_kmsg(struct collector *c)
{
	struct kmsg_stats s = { 0 };

	if (!c->kmsg_wanted)
		return;
	if (c->kmsg)
		kmsg_stats(c->kmsg, &s);
	model_set_source(c->model, SOURCE_KMSG, c->kmsg && !s.failed ? READING_OK : READING_FAILED,
			 c->kmsg && !s.failed ? "" : "the kernel log cannot be read");
	if (!c->kmsg)
		return;
	model_agent_add(c->model, AGENT_XID_UNMATCHED, (double)(s.unreadable - c->kmsg_counted.unreadable));
	model_agent_add(c->model, AGENT_KMSG_OVERRUNS, (double)(s.overruns - c->kmsg_counted.overruns));
	if (s.failed && !c->kmsg_counted.failed)
		log_warning("the kernel log cannot be read any more: XID errors come from the driver's "
			    "events alone");
	c->kmsg_counted = s;
}

static void save_xids(struct collector *c)
{
	static struct log_limit limit = { .burst = 1,
					  .interval_ns = 3600 * NSEC_PER_SEC,
					  .what = "failures to save" };

	if (!c->config.keep_state || !c->xid_file || !model_xids_dirty(c->model))
		return;
	c->saved_ns = clock_boot_ns();
	int r = model_xids_save(c->model, c->xid_file);

	c->state_error = -r;
	if (r < 0 && log_limit_allow(&limit))
		log_warning("cannot save the counts of XID errors in %s, a restart will lose them: %s; "
			    "make the folder writable or name another with --state-dir",
			    c->xid_file, strerror(-r));
}

static void read_host(struct collector *c)
{
	struct host reading;

	if (!c->host)
		return;
	host_source_read(c->host, &reading);
	model_set_host(c->model, &reading);
}

void collector_tick(struct collector *c)
{
	read_host(c);
	nvml_source_tick(c->source);
	count_source(c);
	count_kmsg(c);
	if (clock_boot_ns() - c->saved_ns >= SAVE_INTERVAL_S * NSEC_PER_SEC)
		save_xids(c);
	if (!c->reading_came)
		collector_publish(c);
	c->reading_came = false;
}

static struct model_limits limits_of(const struct options *options)
{
	return (struct model_limits){
		.processes = (uint32_t)options_number(options, OPT_process_max),
		.series = (uint32_t)options_number(options, OPT_process_series),
		.exited = (uint32_t)options_number(options, OPT_process_exited),
		.workloads = (uint32_t)options_number(options, OPT_workload_max),
	};
}

static bool has_key(const struct node_tag *tags, uint32_t n, const char *key)
{
	for (uint32_t i = 0; i < n; i++)
		if (STRV_EQ(tags[i].key, key))
			return true;
	return false;
}

/* The configuration decides where both have a key. */
static void put_tags(struct collector *c)
{
	struct given_tags all = c->tags;

	for (uint32_t i = 0; i < c->labels.n && all.n < NODE_TAGS_MAX; i++)
		if (!has_key(all.list, c->tags.n, c->labels.list[i].key))
			all.list[all.n++] = c->labels.list[i];
	model_set_tags(c->model, all.n ? all.list : NULL, all.n);
}

/* Options have been checked: these are tags. */
static void set_tags(struct collector *c, const struct options *options)
{
	const char *text = options_text(options, OPT_node_tags);

	if (!text || node_tags_parse(text, c->tags.list, &c->tags.n) < 0)
		c->tags.n = 0;
	put_tags(c);
}

void collector_set_label(struct collector *c, const char *key, const char *value)
{
	char text[sizeof(struct node_tag) + 2];
	uint32_t n;

	if (c->labels.n == NODE_TAGS_MAX)
		return;
	/* What is no tag is left out: a value of no bytes, a key that is reserved. */
	snprintf(text, sizeof(text), "%s:%s", key, value);
	if (strchr(key, ':') || strchr(text, ',') ||
	    node_tags_parse(text, &c->labels.list[c->labels.n], &n) < 0 || n != 1)
		return;
	c->labels.n++;
	put_tags(c);
}

void collector_forget_labels(struct collector *c)
{
	c->labels.n = 0;
	put_tags(c);
}

void collector_configure(struct collector *c, const struct options *options)
{
	struct model_limits limits = limits_of(options);

	model_set_period(c->model, options_number(options, OPT_sample_period));
	model_set_limits(c->model, &limits);
	model_set_clock_window(c->model, options_number(options, OPT_exporter_clock_window));
	set_tags(c, options);
	model_set_node_name(c->model, options_text(options, OPT_node_name));
}

static void log_no_kernel_log(const char *path, int error)
{
	struct capability_lack lacks[CAPABILITY_LACKS_MAX];

	if ((error == -EPERM || error == -EACCES) && capability_lacks(CAPABILITY_FOR(KERNEL_LOG), lacks) > 0)
		log_warning("%s (%s): %s; %s", lacks[0].cause, path, lacks[0].lost, lacks[0].remedy);
	else
		log_warning("cannot read the kernel log %s, XID errors come from the driver's events alone: "
			    "%s; give a container access with "
			    "--device /dev/kmsg:/dev/kmsg:r; --kmsg-enabled false silences this",
			    path, strerror(-error));
}

static void open_kmsg(struct collector *c, sd_event *event, const struct options *options)
{
	const char *path = options_text(options, OPT_kmsg_path);
	int r;

	c->kmsg_wanted = c->config.kernel_log && options_bool(options, OPT_kmsg_enabled);
	if (!c->kmsg_wanted)
		return;
	r = kmsg_new(event, path, on_xid, c, &c->kmsg);
	if (r < 0 && !c->config.quiet)
		log_no_kernel_log(path, r);
}

static void load_xids(struct collector *c, const struct options *options)
{
	struct place place;
	const char *dir = place_state(options, &place);
	int r = c->config.keep_state ? place_make_folder(dir, 0755) : 0;

	c->state_error = r < 0 ? -r : c->config.keep_state && access(dir, W_OK | X_OK) < 0 ? errno : 0;
	if (c->state_error)
		log_warning(PLACE_STATE_LOST "; name another folder with --state-dir", dir,
			    r < 0 ? "created" : "written", strerror(c->state_error));
	c->state_dir = strdup(dir);
	if (asprintf(&c->xid_file, "%s/xids", dir) < 0) {
		c->xid_file = NULL;
		return;
	}
	r = model_xids_load(c->model, c->xid_file);
	if (r < 0 && !c->config.quiet)
		log_warning("cannot load the counts of XID errors from %s, counting starts at 0: %s",
			    c->xid_file, strerror(-r));
}

static int collector_start(struct collector *c, sd_event *event, const struct options *options)
{
	const char *helper = options_text(options, OPT_nvml_helper);
	struct model_limits limits = limits_of(options);
	int r;

	c->library = strdup(options_text(options, OPT_nvml_library));
	c->helper = helper ? strdup(helper) : NULL;
	if (!c->library || (helper && !c->helper))
		return -ENOMEM;
	c->nvml = (struct nvml_config){
		.library = c->library,
		.helper = c->helper,
		.call_timeout_ns = options_number(options, OPT_nvml_call_timeout),
		.left_out = (uint32_t)options_number(options, OPT_sample_disable),
		.max_stuck = (unsigned)options_number(options, OPT_nvml_max_stuck),
	};
	r = model_new(&limits, &c->model);
	if (r == 0)
		r = publisher_new(&c->publisher);
	if (r < 0)
		return r;
	model_set_identify(c->model, identify, NULL);
	model_set_period(c->model, options_number(options, OPT_sample_period));
	set_tags(c, options);
	model_set_node_name(c->model, options_text(options, OPT_node_name));
	load_xids(c, options);
	open_kmsg(c, event, options);
	if (c->config.host_figures && options_bool(options, OPT_host_figures))
		r = host_source_new(&(struct host_config){ .root = options_text(options, OPT_workload_root),
							   .sees_all = proc_sees_all() },
				    &c->host);
	if (r == 0 && proc_sees_all())
		r = driver_pids_new("/proc", &c->pids);
	if (r == 0)
		r = nvml_source_new(event, &c->nvml, on_reading, c, &c->source);
	if (r < 0)
		return r;
	if (!c->config.quiet)
		r = journal_new(&c->journal);
	if (r < 0)
		return r;
	r = model_publish(c->model, c->publisher);
	if (r == 0 && c->journal) {
		struct snapshot *snapshot = publisher_get(c->publisher);

		r = journal_take(c->journal, snapshot);
		snapshot_unref(snapshot);
	}
	return r;
}

int collector_new(sd_event *event, const struct options *options, const struct collector_config *config,
		  struct collector **ret_collector)
{
	_cleanup_(collector_freep) struct collector *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->config = *config;
	c->outage.quiet = config->quiet;
	r = collector_start(c, event, options);
	if (r < 0)
		return r;
	*ret_collector = TAKE_PTR(c);
	return 0;
}

void collector_free(struct collector *c)
{
	if (!c)
		return;
	nvml_source_free(c->source);
	kmsg_free(c->kmsg);
	if (c->model)
		save_xids(c);
	model_free(c->model);
	publisher_free(c->publisher);
	journal_free(c->journal);
	driver_pids_free(c->pids);
	host_source_free(c->host);
	free(c->library);
	free(c->helper);
	free(c->xid_file);
	free(c->state_dir);
	free(c);
}

void collector_release(struct collector *c)
{
	nvml_source_release(c->source);
}

void collector_resume(struct collector *c)
{
	nvml_source_resume(c->source);
}

struct snapshot *collector_snapshot(struct collector *c)
{
	return publisher_get(c->publisher);
}

uint64_t collector_readings(const struct collector *c)
{
	return c->readings;
}

void collector_status(const struct collector *c, struct nvml_status *ret_status)
{
	nvml_source_status(c->source, ret_status);
	driver_outage_status(&c->outage, clock_boot_ns(), ret_status);
}

const char *collector_state_dir(const struct collector *c, int *ret_error)
{
	*ret_error = c->state_error;
	return c->state_dir ? c->state_dir : "";
}

struct model *collector_model(struct collector *c)
{
	return c->model;
}
