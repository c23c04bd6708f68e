// SPDX-License-Identifier: Apache-2.0
/* "gpusonde record": samples the GPUs and records every snapshot, in the foreground. */
#include "cmd/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <systemd/sd-event.h>

#include "agent/driver/collector.h"
#include "agent/record/recording.h"
#include "base/clock.h"
#include "base/log.h"

struct recorder {
	const struct options *options;
	sd_event *event;
	struct collector *collector;
	struct recording *recording;
	int64_t tick_ns;
};

static int on_record_tick(sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct recorder *recorder = userdata;
	struct snapshot *snapshot = collector_snapshot(recorder->collector);
	int r;

	if (collector_readings(recorder->collector) > 0)
		recording_tick(recorder->recording, snapshot);
	snapshot_unref(snapshot);
	collector_tick(recorder->collector);
	recorder->tick_ns = MAX(recorder->tick_ns + options_number(recorder->options, OPT_sample_period),
				clock_boot_ns());
	r = sd_event_source_set_time(source, (uint64_t)(recorder->tick_ns / NSEC_PER_USEC));
	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int add_record_sources(struct recorder *recorder)
{
	sigset_t mask;
	int r;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	r = sd_event_add_signal(recorder->event, NULL, SIGTERM, NULL, NULL);
	if (r >= 0)
		r = sd_event_add_signal(recorder->event, NULL, SIGINT, NULL, NULL);
	recorder->tick_ns = clock_boot_ns();
	if (r >= 0)
		r = sd_event_add_time(recorder->event, NULL, CLOCK_BOOTTIME,
				      (uint64_t)(recorder->tick_ns / NSEC_PER_USEC), 1000, on_record_tick,
				      recorder);
	return r;
}

static int begin_recorder(struct recorder *recorder, const char *path, char *why, size_t size)
{
	struct collector_config config = { .kernel_log = true };
	int r = sd_event_default(&recorder->event);

	if (r >= 0)
		r = collector_new(recorder->event, recorder->options, &config, &recorder->collector);
	if (r >= 0)
		r = add_record_sources(recorder);
	if (r >= 0)
		r = recording_new(recorder->event, collector_model(recorder->collector), recorder->options,
				  path, &recorder->recording, why, size);
	if (r < 0 && !*why)
		snprintf(why, size, "%s", strerror(-r));
	return r;
}

/* What the file has got of this run. */
static int report_recorder(const struct recorder *recorder, const char *path)
{
	const char *error = recording_error(recorder->recording);
	struct tiers_figures figures;
	uint64_t missed, bytes;

	recording_figures(recorder->recording, &figures, &missed, &bytes);
	fprintf(stderr,
		"gpusonde record: %" PRIu64 " snapshots in %s (%" PRIu64 " KiB), %" PRIu64 " missed, %" PRIu64
		" not written\n",
		figures.frames, path, bytes / 1024, missed, figures.lost);
	if (*error)
		fprintf(stderr, "gpusonde record: %s\n", error);
	return *error ? EXIT_FAILURE : EXIT_SUCCESS;
}

int recorder_main(struct invocation *inv)
{
	struct recorder recorder = { .options = &inv->options };
	const char *path = options_text(&inv->options, OPT_recording_path);
	int status = EXIT_FAILURE, r;
	char why[400] = "";

	if (!path) {
		fprintf(stderr, "gpusonde record: name the file: --store FILE (or recording.path)\n");
		return EXIT_USAGE;
	}
	log_setup(LOG_TARGET_STDERR, (int)options_number(&inv->options, OPT_log_level), "gpusonde record");
	r = begin_recorder(&recorder, path, why, sizeof(why));
	if (r >= 0)
		r = sd_event_loop(recorder.event);
	if (r < 0)
		fprintf(stderr, "gpusonde record: %s\n", *why ? why : strerror(-r));
	if (recorder.recording)
		recording_flush(recorder.recording);
	if (r >= 0)
		status = report_recorder(&recorder, path);
	recording_free(recorder.recording);
	collector_free(recorder.collector);
	sd_event_unref(recorder.event);
	return status;
}
