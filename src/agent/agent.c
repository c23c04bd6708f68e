// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"
#include "agent/cupti.h"
#include "agent/driver/detach.h"
#include "agent/record/history.h"
#include "agent/inference.h"
#include "agent/jobs.h"
#include "agent/kube.h"
#include "agent/dcgm/dcgm.h"
#include "agent/kubelet.h"
#include "agent/driver/device_access.h"
#include "agent/nccl.h"
#include "agent/outputs/outputs.h"
#include "agent/owner_files.h"
#include "agent/outputs/push.h"
#include "agent/readiness.h"
#include "agent/record/record.h"
#include "agent/record/record_folder.h"
#include "agent/record/recording.h"
#include "agent/record/report.h"
#include "agent/record/timelines.h"
#include "agent/tracer.h"
#include "agent/usage.h"
#include "agent/users.h"
#include "agent/web/web.h"
#include "agent/web/watch.h"
#include "config.h"

enum { HOUSEKEEPING_S = 10, DROP_ROUNDS = 6 };
/* File descriptors other than HTTP connections: atop clients, the child, libraries, /proc. */
#define OTHER_FILES ((rlim_t)128)

static uint64_t generation(void *userdata)
{
	struct agent *agent = userdata;

	return atomic_load(&agent->generation);
}

static void on_published(const struct snapshot *snapshot, void *userdata)
{
	struct agent *agent = userdata;

	atomic_store(&agent->generation, snapshot->seq);
	if (agent->web)
		web_publish(agent->web, snapshot);
	if (agent->owner_files)
		owner_files_tick(agent->owner_files);
	if (agent->nccl)
		nccl_socket_tick(agent->nccl);
	if (agent->cupti)
		cupti_times_tick(agent->cupti);
}

static void on_named(void *userdata)
{
	struct agent *agent = userdata;

	collector_publish(agent->collector);
}

/* What was published before there was a process to tell. */
static void publish_first(struct agent *agent)
{
	struct snapshot *snapshot = collector_snapshot(agent->collector);

	web_publish(agent->web, snapshot);
	snapshot_unref(snapshot);
}

static void count_self(struct agent *agent)
{
	struct model *model = collector_model(agent->collector);
	struct http_stats http;
	struct web_figures web;
	struct nvml_status status;

	http_stats(agent->http, &http);
	web_take_figures(agent->web, &web);
	model_agent_add(model, AGENT_HTTP_REQUESTS,
			(double)(http.requests - agent->http_counted.requests) + web.requests);
	model_agent_add(model, AGENT_HTTP_EVICTED,
			(double)(http.evicted - agent->http_counted.evicted) + web.evicted);
	model_agent_set(model, AGENT_HTTP_CONNECTIONS, http.connections + web.connections);
	model_agent_add(model, AGENT_HTTP_REFUSED_UNKNOWN, web.refused[HTTP_REFUSED_UNKNOWN]);
	model_agent_add(model, AGENT_HTTP_REFUSED_FORBIDDEN, web.refused[HTTP_REFUSED_FORBIDDEN]);
	model_agent_add(model, AGENT_HTTP_REFUSED_TOO_OFTEN, web.refused[HTTP_REFUSED_TOO_OFTEN]);
	model_agent_set(model, AGENT_HTTP_STREAMS, web.streams);
	model_agent_add(model, AGENT_HTTP_STREAMS_DROPPED, web.streams_dropped);
	agent->http_counted = http;
	model_agent_add(model, AGENT_WEB_REPLACED, web.replaced);
	model_agent_set(model, AGENT_ATOP_CLIENTS, web.atop_clients);
	model_agent_add(model, AGENT_ATOP_TRUNCATED, (double)atomic_exchange(&agent->atop.truncated, 0));
	collector_status(agent->collector, &status);
	pthread_mutex_lock(&agent->lock);
	agent->status = status;
	web_describe_access(agent->web, agent->access, sizeof(agent->access));
	outputs_tell(agent);
	pthread_mutex_unlock(&agent->lock);
}

static void count_usage(struct agent *agent)
{
	struct model *model = collector_model(agent->collector);
	const pid_t children[] = {
		agent->status.child,
		web_pid(agent->web),
		agent->owner_files ? owner_files_pid(agent->owner_files) : 0,
		agent->nccl ? nccl_socket_pid(agent->nccl) : 0,
		agent->cupti ? cupti_times_pid(agent->cupti) : 0,
		agent->jobs ? jobs_pid(agent->jobs) : 0,
		agent->kubelet ? kubelet_pid(agent->kubelet) : 0,
		agent->kube ? kube_pid(agent->kube) : 0,
#define PUSH_KIND(id_, name_, ...) push_pid(agent->push[PUSH_##id_]),
		PUSH_KIND_LIST(PUSH_KIND, )
#undef PUSH_KIND
				agent->dcgm ?
			dcgm_pid(agent->dcgm) :
			0,
		agent->inference ? inference_finder_pid(agent->inference) : 0,
		agent->inference ? inference_reader_pid(agent->inference) : 0,
		agent->recording ? recording_pid(agent->recording) : 0,
		agent->history ? history_service_pid(agent->history) : 0,
		agent->report ? report_service_pid(agent->report) : 0,
	};
	struct usage usage;

	usage_read(children, ARRAY_SIZE(children), &usage);
	model_agent_set(model, AGENT_RESIDENT_BYTES, usage.resident_bytes);
	/*
	 * The CPU time of an abandoned, stuck child is missing until that child ends, so the sum can fall
	 * meanwhile.
	 */
	if (usage.cpu_seconds > agent->cpu_counted) {
		model_agent_add(model, AGENT_CPU_SECONDS, usage.cpu_seconds - agent->cpu_counted);
		agent->cpu_counted = usage.cpu_seconds;
	}
}

static void notify_systemd(struct agent *agent)
{
	struct snapshot *snapshot = collector_snapshot(agent->collector);
	char why[sizeof(agent->status_line)];

	readiness(snapshot, clock_boot_ns(), why, sizeof(why));
	snapshot_unref(snapshot);
	if (STRV_EQ(why, agent->status_line))
		return;
	strcpy(agent->status_line, why);
	sd_notifyf(false, "STATUS=%s", why);
}

static void housekeeping(struct agent *agent)
{
	int64_t now = clock_boot_ns();

	if (agent->housekeeping_ns && now - agent->housekeeping_ns < HOUSEKEEPING_S * NSEC_PER_SEC)
		return;
	/* Rendering JSON leaves about 1 MiB of fragmented free heap. */
	malloc_trim(0);
	if (agent->housekeeping_runs++ % DROP_ROUNDS == 0)
		memory_give_back();
	agent->housekeeping_ns = now;
	web_listen_again(agent->web);
	count_usage(agent);
	notify_systemd(agent);
}

/* Puts what was traced up to now into the next snapshot, and gives the tracer the newest snapshot. */
static void exchange_with_tracer(struct agent *agent)
{
	struct trace_view *view;
	struct snapshot *snapshot;

	if (!agent->tracer)
		return;
	view = tracer_take(agent->tracer);
	if (view)
		model_set_trace(collector_model(agent->collector), view);
	trace_view_unref(view);
	snapshot = collector_snapshot(agent->collector);
	tracer_feed(agent->tracer, snapshot);
	snapshot_unref(snapshot);
}

static void record_newest(struct agent *agent)
{
	struct snapshot *snapshot;

	if (!agent->recording)
		return;
	snapshot = collector_snapshot(agent->collector);
	recording_tick(agent->recording, snapshot);
	snapshot_unref(snapshot);
}

static void count_timelines(struct agent *agent)
{
	static const enum agent_metric metrics[RECORD_TOTALS] = {
		[RECORD_BYTES] = AGENT_TIMELINE_BYTES,         [RECORD_EVENTS] = AGENT_TIMELINE_EVENTS,
		[RECORD_FILES] = AGENT_TIMELINE_FILES,         [RECORD_FAILURES] = AGENT_TIMELINE_FAILURES,
		[RECORD_LOST] = AGENT_TIMELINE_LOST,           [RECORD_UNFIT] = AGENT_TIMELINE_UNFIT,
		[RECORD_UNWRITTEN] = AGENT_TIMELINE_UNWRITTEN,
	};
	struct model *model = collector_model(agent->collector);
	struct record *record = atomic_load(&agent->record);
	struct record_status status;

	if (!record || !record_is_possible(record))
		return;
	record_status(record, &status);
	model_agent_set(model, AGENT_TIMELINE_ON, status.on);
	model_agent_set(model, AGENT_TIMELINE_KEPT, (double)status.kept_bytes);
	for (unsigned i = 0; i < RECORD_TOTALS; i++)
		model_agent_set(model, metrics[i], (double)status.totals[i]);
}

/* Ticks keep their phase: a late tick is not repeated, and the period does not drift. */
static int on_tick(sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct agent *agent = userdata;
	int64_t period = options_number(&agent->invocation->options, OPT_sample_period);
	int64_t now;
	int r;

	count_self(agent);
	exchange_with_tracer(agent);
	if (agent->jobs)
		jobs_tick(agent->jobs);
	if (agent->kubelet)
		kubelet_tick(agent->kubelet);
	if (agent->kube)
		kube_tick(agent->kube);
	if (agent->dcgm)
		dcgm_tick(agent->dcgm);
	if (agent->inference)
		inference_tick(agent->inference);
	if (agent->device_access)
		device_access_tick(agent->device_access);
	web_watch_tick(agent->web_watch);
	outputs_tick(agent);
	record_newest(agent);
	count_timelines(agent);
	collector_tick(agent->collector);
	housekeeping(agent);
	now = clock_boot_ns();
	agent->tick_ns += period;
	if (agent->tick_ns <= now)
		agent->tick_ns = now + period - (now - agent->tick_ns) % period;
	r = sd_event_source_set_time(source, (uint64_t)(agent->tick_ns / NSEC_PER_USEC));
	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_request(_unused_ sd_event_source *source, int fd, _unused_ uint32_t events, void *userdata)
{
	struct agent *agent = userdata;
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0)
		return 0;
	switch ((enum agent_request)atomic_exchange(&agent->request, REQUEST_NONE)) {
	case REQUEST_RELEASE:
		log_notice("releasing the driver on request; gpusonde resume attaches to it again");
		collector_release(agent->collector);
		break;
	case REQUEST_RESUME:
		log_notice("attaching to the driver again on request");
		collector_resume(agent->collector);
		break;
	case REQUEST_NONE:
		break;
	}
	count_self(agent);
	return 0;
}

static int on_hangup(_unused_ sd_event_source *source, _unused_ const struct signalfd_siginfo *si,
		     void *userdata)
{
	agent_reload(userdata);
	return 0;
}

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *si, _unused_ void *userdata)
{
	sd_notify(false, "STOPPING=1");
	log_info("signal %u: exiting", si->ssi_signo);
	return sd_event_exit(sd_event_source_get_event(source), 0);
}

static int add_sources(struct agent *agent)
{
	sigset_t mask;
	int r;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGHUP);
	/* The threads start later and inherit this mask. */
	r = -pthread_sigmask(SIG_BLOCK, &mask, NULL);
	if (r == 0)
		r = sd_event_add_signal(agent->event, NULL, SIGTERM, on_stop, agent);
	if (r >= 0)
		r = sd_event_add_signal(agent->event, NULL, SIGINT, on_stop, agent);
	if (r >= 0)
		r = sd_event_add_signal(agent->event, NULL, SIGHUP, on_hangup, agent);
	agent->request_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r >= 0 && agent->request_fd < 0)
		r = -errno;
	if (r >= 0)
		r = sd_event_add_io(agent->event, &agent->requests, agent->request_fd, EPOLLIN, on_request,
				    agent);
	agent->tick_ns = clock_boot_ns();
	if (r >= 0)
		r = sd_event_add_time(agent->event, &agent->tick, CLOCK_BOOTTIME,
				      (uint64_t)(agent->tick_ns / NSEC_PER_USEC), USEC_PER_SEC / 1000,
				      on_tick, agent);
	if (r >= 0)
		r = sd_event_set_watchdog(agent->event, true);
	return r < 0 ? r : 0;
}

/* @wanted connections, or fewer if the limit on open files does not allow as many. */
static unsigned connections_allowed(unsigned wanted)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return wanted;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max >= wanted + OTHER_FILES)
		return wanted;
	log_warning("http.max_connections is %u, and at most %llu files may be open: no more than %llu "
		    "connections; raise the limit (LimitNOFILE=)",
		    wanted, (unsigned long long)limit.rlim_max,
		    (unsigned long long)MAX(limit.rlim_max, OTHER_FILES + 1) - OTHER_FILES);
	return (unsigned)(MAX(limit.rlim_max, OTHER_FILES + 1) - OTHER_FILES);
}

static int answer_web(struct agent *agent)
{
	const struct web_pages_config config = { agent_routes(), agent, &atop_answers, &agent->atop };

	atop_answers_init(&agent->atop, agent->collector);
	return web_pages_new(&config, &agent->web_pages);
}

static int read_names(struct agent *agent, const struct options *options)
{
	const struct owner_files_config config = { .root = options_text(options, OPT_workload_root),
						   .job_dir = options_text(options, OPT_workload_job_dir),
						   .named = on_named,
						   .userdata = agent };

	if (!options_bool(options, OPT_workload_names))
		return 0;
	return owner_files_new(agent->event, collector_model(agent->collector), &config, &agent->owner_files);
}

static int hear_nccl(struct agent *agent, const struct options *options)
{
	const char *path = options_text(options, OPT_nccl_socket);

	return path && *path ?
		       nccl_socket_new(agent->event, collector_model(agent->collector), path, &agent->nccl) :
		       0;
}

/* Where nothing is traced, nobody wants them. */
static void on_works(struct gpu_works *works, void *userdata)
{
	struct agent *agent = userdata;

	if (agent->tracer && record_is_possible(tracer_record(agent->tracer)))
		tracer_feed_works(agent->tracer, works);
	else
		gpu_works_free(works);
}

static int hear_cupti(struct agent *agent, const struct options *options)
{
	const struct cupti_wanted wanted = {
		.slice_ms = (uint32_t)(options_number(options, OPT_cupti_slice) / NSEC_PER_MSEC),
		.period_ms = (uint32_t)(options_number(options, OPT_cupti_period) / NSEC_PER_MSEC),
		.launches = (uint32_t)options_number(options, OPT_cupti_launches),
	};
	const char *path = options_text(options, OPT_cupti_socket);

	return path && *path ? cupti_times_new(agent->event, collector_model(agent->collector), path, &wanted,
					       on_works, agent, &agent->cupti) :
			       0;
}

static const char *text_or_empty(const char *text)
{
	return text ? text : "";
}

static int read_jobs(struct agent *agent, const struct options *options)
{
	const struct jobs_config config = {
		.run = text_or_empty(options_text(options, OPT_workload_run)),
		.group = text_or_empty(options_text(options, OPT_workload_group)),
	};

	if (!options_bool(options, OPT_workload_jobs))
		return 0;
	return jobs_new(agent->event, collector_model(agent->collector), &config, &agent->jobs);
}

static int ask_kubelet(struct agent *agent, const struct options *options)
{
	const struct kubelet_config config = {
		.root = options_text(options, OPT_workload_root),
		.socket = options_text(options, OPT_workload_kubelet),
		.resources = options_text(options, OPT_workload_resources),
	};

	if (STRV_EQ(config.socket, "none"))
		return 0;
	return kubelet_new(agent->event, collector_model(agent->collector), &config, &agent->kubelet);
}

/* Errors are logged. */
static int choose_dcgm_style(struct agent *agent, const struct options *options)
{
	struct strbuf errors, warnings;
	int r;

	strbuf_init(&errors, 0);
	strbuf_init(&warnings, 0);
	r = dcgm_style_init(options, &errors, &warnings, &agent->dcgm_style);
	log_lines(LOG_WARNING, warnings.data);
	log_lines(LOG_ERR, errors.data);
	strbuf_done(&errors);
	strbuf_done(&warnings);
	return r;
}

static void on_node_labels(const struct kube_label *list, uint32_t n, void *userdata)
{
	struct agent *agent = userdata;

	collector_forget_labels(agent->collector);
	for (uint32_t i = 0; i < n; i++)
		collector_set_label(agent->collector, list[i].key, list[i].value);
}

/* They are all of this node, under which name their pages are told apart. */
static void on_exporters(const struct kube_exporter *list, uint32_t n, void *userdata)
{
	struct dcgm_target targets[KUBE_EXPORTERS_MAX] = { 0 };
	struct agent *agent = userdata;

	n = MIN(n, (uint32_t)KUBE_EXPORTERS_MAX);
	for (uint32_t i = 0; i < n; i++) {
		snprintf(targets[i].address, sizeof(targets[i].address), "%s", list[i].address);
		snprintf(targets[i].node, sizeof(targets[i].node), "%s",
			 text_or_empty(options_text(&agent->invocation->options, OPT_node_name)));
	}
	if (agent->dcgm)
		dcgm_set_targets(agent->dcgm, targets, n);
}

static void on_claimed_devices(const struct kube_device *list, uint32_t n, void *userdata)
{
	struct agent *agent = userdata;

	if (agent->kubelet)
		kubelet_set_devices(agent->kubelet, list, n);
}

static bool wants_claimed_devices(void *userdata)
{
	const struct agent *agent = userdata;

	return agent->kubelet && kubelet_has_claims(agent->kubelet);
}

static int ask_kube_api(struct agent *agent, const struct options *options)
{
	_cleanup_free_ struct kube_config *config = malloc(sizeof(*config));

	if (!config)
		return -ENOMEM;
	if (!kube_configure(options, options_text(options, OPT_dcgm_labels), config)) {
		if (config->settings.pod_run[0] || config->settings.pod_group[0])
			log_warning("workload.pod_run and workload.pod_group have no effect: the Kubernetes "
				    "API is not asked (kube.enabled, docs/kubernetes.md)");
		return 0;
	}
	config->exporters = on_exporters;
	config->labels = on_node_labels;
	config->devices = on_claimed_devices;
	config->wants_devices = wants_claimed_devices;
	config->userdata = agent;
	return kube_new(agent->event, collector_model(agent->collector), config, &agent->kube);
}

/* Exporters that discovery finds need the same, so it is there as soon as anything may find some. */
static int read_exporters(struct agent *agent, const struct options *options)
{
	const struct dcgm_config config = {
		.host = options_text(options, OPT_dcgm_host),
		.port = (unsigned)options_number(options, OPT_dcgm_port),
		.path = options_text(options, OPT_dcgm_path),
		.ca_file = options_text(options, OPT_dcgm_ca_file),
		.node = text_or_empty(options_text(options, OPT_node_name)),
		.refresh_ns = options_number(options, OPT_dcgm_refresh),
		.strict = options_bool(options, OPT_dcgm_strict),
		.fields = agent->dcgm_style.fields,
	};

	const char *labels = options_text(options, OPT_dcgm_labels);

	if (!config.host && labels && !agent->kube)
		log_warning("dcgm.labels finds no exporters: the Kubernetes API is not asked (kube.enabled, "
			    "docs/kubernetes.md)");
	if (!config.host && !(agent->kube && labels))
		return 0;
	return dcgm_new(agent->event, collector_model(agent->collector), &config, &agent->dcgm);
}

static int find_servers(struct agent *agent, const struct options *options)
{
	const struct inference_config config = {
		.refresh_ns = options_number(options, OPT_inference_refresh),
	};

	if (!options_bool(options, OPT_inference_servers))
		return 0;
	return inference_new(agent->event, collector_model(agent->collector), &config, &agent->inference);
}

static int begin_recording(struct agent *agent, const struct options *options)
{
	const char *path = options_text(options, OPT_recording_path);
	char why[400] = "";
	int r;

	if (!path)
		return 0;
	r = recording_new(agent->event, collector_model(agent->collector), options, path, &agent->recording,
			  why, sizeof(why));
	if (r < 0 && r != -ENOMEM)
		log_error("nothing is recorded: %s (recording.path)", why);
	if (r == 0)
		r = history_service_new(path, &agent->history);
	if (r == 0)
		r = report_service_new(path, &agent->report);
	return r == -ENOMEM ? r : 0;
}

static unsigned users_of_processes(uint32_t *ret_uids, unsigned max, void *userdata)
{
	struct agent *agent = userdata;
	struct snapshot *snapshot = collector_snapshot(agent->collector);
	unsigned n = 0, known;

	for (uint32_t i = 0; i < snapshot->processes_n && n < max; i++) {
		const uint32_t uid = snapshot->processes[i].uid;

		for (known = 0; known < n && ret_uids[known] != uid;)
			known++;
		if (known == n && uid != UINT32_MAX)
			ret_uids[n++] = uid;
	}
	snapshot_unref(snapshot);
	return n;
}

/* What pages read that may hang. */
static int begin_files(struct agent *agent, const struct options *options)
{
	const struct users_config users = { .list = users_of_processes, .userdata = agent };
	char folder[PATH_MAX];
	int r;

	record_folder(options, folder);
	r = timelines_new(folder, &agent->timelines);
	return r < 0 ? r : users_new(&users, &agent->users);
}

static int agent_start(struct agent *agent)
{
	const struct options *options = &agent->invocation->options;
	struct collector_config collecting = {
		.kernel_log = true,
		.host_figures = true,
		.keep_state = true,
		.published = on_published,
		.userdata = agent,
	};
	struct http_config serving = {
		.routes = agent_routes(),
		.userdata = agent,
		.generation = generation,
		.max_connections =
			connections_allowed((unsigned)options_number(options, OPT_http_max_connections)),
	};
	struct web_config listening = {
		.max_connections = serving.max_connections,
		.hosts = options_text(options, OPT_http_hosts),
		.socket = options_text(options, OPT_web_socket),
	};
	int r = sd_event_default(&agent->event);

	agent->families = options_text(options, OPT_http_families);
	agent->native_histograms = options_bool(options, OPT_http_native_histograms);
	if (r >= 0)
		r = add_sources(agent);
	if (r >= 0)
		r = choose_dcgm_style(agent, options);
	if (r >= 0)
		r = collector_new(agent->event, options, &collecting, &agent->collector);
	if (r >= 0)
		r = read_names(agent, options);
	if (r >= 0)
		r = hear_nccl(agent, options);
	if (r >= 0)
		r = hear_cupti(agent, options);
	if (r >= 0)
		r = read_jobs(agent, options);
	if (r >= 0)
		r = ask_kubelet(agent, options);
	if (r >= 0)
		r = ask_kube_api(agent, options);
	if (r >= 0)
		r = read_exporters(agent, options);
	if (r >= 0)
		r = find_servers(agent, options);
	if (r >= 0)
		r = begin_recording(agent, options);
	if (r >= 0)
		r = begin_files(agent, options);
	if (r >= 0)
		r = device_access_new(options, collector_model(agent->collector), &agent->device_access);
	if (r >= 0)
		r = http_new(agent->event, &serving, &agent->http);
	if (r >= 0)
		r = answer_web(agent);
	listening.pages = agent->web_pages;
	if (r >= 0)
		r = web_new(agent->event, &listening, &agent->web);
	if (r < 0) {
		log_error("cannot start: %s", strerror(-r));
		return r;
	}
	publish_first(agent);
	r = outputs_begin(agent, options);
	if (r < 0)
		return r;
	agent_copy_places(agent);
	r = agent_listen(agent, options);
	if (r < 0)
		return r;
	r = tracer_new(options, &agent->tracer);
	if (r < 0)
		log_error("CUDA calls are not traced, the tracing thread cannot be started: %s",
			  strerror(-r));
	else
		atomic_store(&agent->record, tracer_record(agent->tracer));
	return 0;
}

static void agent_stop(struct agent *agent)
{
	web_watch_free(agent->web_watch);
	web_free(agent->web);
	detach_after_end();
	/* These threads read the collector's snapshots, so they must end before the collector. */
	web_pages_free(agent->web_pages);
	outputs_end(agent);
	atop_answers_done(&agent->atop);
	http_free(agent->http);
	history_service_free(agent->history);
	report_service_free(agent->report);
	timelines_free(agent->timelines);
	users_free(agent->users);
	tracer_free(agent->tracer);
	owner_files_free(agent->owner_files);
	nccl_socket_free(agent->nccl);
	cupti_times_free(agent->cupti);
	jobs_free(agent->jobs);
	kubelet_free(agent->kubelet);
	kube_free(agent->kube);
	recording_free(agent->recording);
	dcgm_free(agent->dcgm);
	inference_free(agent->inference);
	device_access_free(agent->device_access);
	collector_free(agent->collector);
	dcgm_style_done(&agent->dcgm_style);
	sd_event_source_disable_unref(agent->tick);
	sd_event_source_disable_unref(agent->requests);
	closep(&agent->request_fd);
	sd_event_unref(agent->event);
	pthread_mutex_destroy(&agent->lock);
}

int agent_run(struct invocation *invocation)
{
	struct agent agent = {
		.invocation = invocation,
		.request_fd = -1,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	int r;

	r = agent_start(&agent);
	if (r == 0) {
		sd_notify(false, "READY=1\nSTATUS=waiting for the driver's first answer");
		r = sd_event_loop(agent.event);
		if (r < 0)
			log_error("the main loop failed: %s; this is a defect, please report it",
				  strerror(-r));
	}
	agent_stop(&agent);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
