// SPDX-License-Identifier: Apache-2.0
#include "agent/driver/outage.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

/* Healthy calls take milliseconds; one that has run this long is blocking the reading. */
#define HANGING_S 0.5
/* An outage is logged once it has lasted this long. */
#define LOG_AFTER_NS (2 * NSEC_PER_SEC)
/*
 * A hang may last for days. Only this many of the child processes killed and replaced in that time are
 * logged.
 */
#define LOG_BURST 3
#define LOG_INTERVAL_NS (600 * NSEC_PER_SEC)

static const char *plural(unsigned n, const char *one, const char *more)
{
	return n == 1 ? one : more;
}

void driver_outage_reading(struct driver_outage *s, uint32_t state, int64_t now_ns)
{
	if (state == READING_OK && s->logged) {
		if (!s->quiet)
			log_notice("the driver answers again, after %.0f s",
				   (double)(now_ns - s->outage_ns) / NSEC_PER_SEC);
		s->logged = s->logged_call = false;
	}
	s->since_ns = now_ns;
	s->reading_arrived = true;
	s->silent = false;
	s->call[0] = '\0';
}

static void log_children(struct driver_outage *s, const struct nvml_status *now)
{
	static struct log_limit limit = { .burst = LOG_BURST,
					  .interval_ns = LOG_INTERVAL_NS,
					  .what = "processes killed that hung in the driver" };

	if (now->given_up > s->last.given_up && log_limit_allow(&limit))
		log_warning("killed process %d, which hung in %s; starting another", (int)s->last.child,
			    s->call[0] ? s->call : "the driver");
	/*
	 * SIGKILL does not end a process that is stuck in the kernel: one that still exists a tick later is
	 * stuck.
	 */
	if (now->stuck > s->left_behind && s->last.stuck >= now->stuck) {
		log_warning("%u %s in the driver and cannot be killed: left behind, to end when the driver "
			    "lets go",
			    now->stuck, plural(now->stuck, "process is stuck", "processes are stuck"));
		s->left_behind = now->stuck;
	}
	if (now->stuck < s->left_behind) {
		log_notice("a process that was stuck in the driver has ended; %u %s left", now->stuck,
			   plural(now->stuck, "is", "are"));
		s->left_behind = now->stuck;
	}
}

static void log_outage(struct driver_outage *s, int64_t now_ns)
{
	struct nvml_status status = s->last;
	bool hangs = s->silent && s->call[0] && (now_ns - s->since_ns >= LOG_AFTER_NS || s->last.error[0]);

	if (s->last.released || (!hangs && !s->last.error[0]) || (s->logged && (s->logged_call || !hangs)))
		return;
	if (!s->logged)
		s->outage_ns = s->since_ns;
	s->logged = true;
	s->logged_call = hangs;
	driver_outage_status(s, now_ns, &status);
	if (!s->quiet)
		log_warning("%s", status.error);
}

void driver_outage_tick(struct driver_outage *s, const struct nvml_status *status, int64_t now_ns)
{
	if (s->since_ns == 0 || status->released)
		s->since_ns = now_ns;
	else
		s->silent = !s->reading_arrived;
	if (status->released)
		s->silent = false;
	s->reading_arrived = false;
	if (status->crashes > s->last.crashes)
		s->call[0] = '\0'; /* the call returned, so it was no hang */
	if (s->silent && status->busy && status->call_seconds >= HANGING_S)
		memcpy(s->call, status->call, sizeof(s->call));
	if (!s->quiet)
		log_children(s, status);
	s->last = *status;
	log_outage(s, now_ns);
}

void driver_outage_status(const struct driver_outage *s, int64_t now_ns, struct nvml_status *status)
{
	static const char hanging[] = "%s does not return%s; see the kernel log, reset the GPU or reboot";
	static const char unanswered[] = "the driver has not answered yet";
	double seconds = (double)(now_ns - s->since_ns) / NSEC_PER_SEC;
	char left[80] = "", text[sizeof(status->error)];

	if (!s->silent || status->released)
		return;
	if (status->stuck > 0)
		snprintf(left, sizeof(left), "; %u %s in the driver and cannot be ended", status->stuck,
			 plural(status->stuck, "process is stuck", "processes are stuck"));
	if (s->call[0]) {
		snprintf(text, sizeof(text), hanging, s->call, left);
		snprintf(status->cause, sizeof(status->cause), hanging, s->call, "");
	} else {
		snprintf(text, sizeof(text), "%.200s", s->last.error[0] ? s->last.error : unanswered);
		snprintf(status->cause, sizeof(status->cause), "%s",
			 s->last.cause[0] ? s->last.cause : unanswered);
	}
	snprintf(status->error, sizeof(status->error), "no reading for %.0f s: %.220s", seconds, text);
	if (s->call[0]) {
		memcpy(status->call, s->call, sizeof(status->call));
		status->call_seconds = seconds;
	}
}
