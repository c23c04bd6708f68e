// SPDX-License-Identifier: Apache-2.0
#include "agent/record/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/text.h"
#include "config.h"
#include "config/places.h"
#include "helper/helper.h"
#include "store/protocol.h"

#define PERIOD_NS NSEC_PER_SEC
#define SLACK_NS (NSEC_PER_SEC / 4)
#define SLOW_NS (10 * NSEC_PER_SEC)
#define ANSWER_NS (60 * NSEC_PER_SEC) /* disks are slow at times */
#define RETRY_NS NSEC_PER_SEC /* after a failure to open or a lost process; then twice as long each time */
#define RETRY_LATEST_NS (60 * NSEC_PER_SEC)
enum { MAX_STUCK = 1, CLOSE_MS = 5000 };

enum recording_state { CLOSED, OPENING, OPEN, ENDED };

struct recording {
	struct model *model;
	struct helper *helper;
	char folder[PATH_MAX];
	struct tiers_settings settings;
	char name[STORE_NAME_MAX];
	enum recording_state state;
	bool asked, want_slow;
	int64_t frame_ns, slow_ns, failed_ns; /* boot time; 0: never */
	unsigned failures; /* in a row */
	struct frame_mark mark;
	struct tiers_figures figures, counted; /* as of the newest answer; what the model was told */
	uint64_t file_bytes, missed;
	char error[700];
};

/* ---- how things stand ---- */

static void set_recording_state(struct recording *r, const char *error)
{
	if (!STRV_EQ(error, r->error)) {
		if (*error)
			log_warning("recording: %s", error);
		else
			log_notice("recording works again");
	}
	snprintf(r->error, sizeof(r->error), "%s", error);
	model_agent_set(r->model, AGENT_RECORDING_UP, !*error);
}

const char *recording_error(const struct recording *r)
{
	return r->error;
}

void recording_figures(const struct recording *r, struct tiers_figures *ret_figures, uint64_t *ret_missed,
		       uint64_t *ret_bytes)
{
	*ret_figures = r->figures;
	*ret_missed = r->missed;
	*ret_bytes = r->file_bytes;
}

/* A snapshot that was due is not recorded. */
static void miss_frame(struct recording *r)
{
	r->missed++;
	r->want_slow = true;
	model_agent_add(r->model, AGENT_RECORDING_MISSED, 1);
}

/* ---- answers ---- */

static void count_figures(struct recording *r, const struct store_answer *answer)
{
	const struct tiers_figures *now = &answer->figures;

	/* A process that was replaced begins anew. */
	if (now->frames < r->counted.frames)
		r->counted = (struct tiers_figures){ 0 };
	model_agent_add(r->model, AGENT_RECORDING_FRAMES, (double)(now->frames - r->counted.frames));
	model_agent_add(r->model, AGENT_RECORDING_LOST,
			(double)(now->lost - MIN(now->lost, r->counted.lost)));
	model_agent_add(r->model, AGENT_RECORDING_DROPPED,
			(double)(now->dropped - MIN(now->dropped, r->counted.dropped)));
	model_agent_add(r->model, AGENT_DROPPED_RECORDING_ROWS,
			(double)(now->exits - MIN(now->exits, r->counted.exits)));
	model_agent_set(r->model, AGENT_RECORDING_BYTES, (double)answer->file.bytes);
	r->figures = r->counted = *now;
	r->file_bytes = answer->file.bytes;
}

static void close_after_failure(struct recording *r)
{
	r->state = CLOSED;
	r->failed_ns = clock_boot_ns();
	r->failures++;
	r->want_slow = true;
	r->counted = (struct tiers_figures){ 0 };
}

static void on_opened(struct recording *r, const struct store_answer *answer)
{
	char text[sizeof(r->error)];

	if (answer->error == 0) {
		r->state = OPEN;
		r->want_slow = true;
		return;
	}
	snprintf(text, sizeof(text), "%s cannot be opened in %.200s: %.150s", r->name, r->folder,
		 answer->text);
	set_recording_state(r, text);
	close_after_failure(r);
	helper_stop(r->helper);
}

static void on_recording_answer(const void *message, size_t n, int fd, void *userdata)
{
	struct recording *r = userdata;
	struct store_answer answer;

	closep(&fd);
	if (!r->asked || n != sizeof(answer)) {
		helper_reject(r->helper);
		return;
	}
	memcpy(&answer, message, sizeof(answer));
	answer.text[sizeof(answer.text) - 1] = '\0';
	utf8_sanitize(answer.text);
	r->asked = false;
	helper_deadline(r->helper, 0);
	if (r->state == OPENING) {
		on_opened(r, &answer);
		return;
	}
	if (answer.want_slow)
		r->want_slow = true;
	count_figures(r, &answer);
	r->failures = 0;
	set_recording_state(r, answer.error < 0 ? answer.text : "");
}

static void on_recording_lost(bool hung, void *userdata)
{
	struct recording *r = userdata;

	r->asked = false;
	close_after_failure(r);
	set_recording_state(
		r, hung ? "the process that records, gpusonde-store, does not answer: does the disk hang?" :
			  "the process that records, gpusonde-store, ended");
}

/* ---- questions ---- */

static void send_question(struct recording *r, struct store_question *question, int fd)
{
	int result;

	snprintf(question->version, sizeof(question->version), "%s", GPUSONDE_VERSION);
	result = helper_send(r->helper, question, sizeof(*question), fd);
	if (result == 0) {
		r->asked = true;
		helper_deadline(r->helper, ANSWER_NS);
		return;
	}
	if (result == -EBUSY)
		set_recording_state(r, "gpusonde-store hangs and cannot be ended: does the disk hang?");
	else if (result != -EAGAIN)
		set_recording_state(r, strerror(-result));
	close_after_failure(r);
}

static void open_store(struct recording *r)
{
	_cleanup_close_ int folder = open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct store_question question = { .ask = STORE_OPEN, .writes = 1, .settings = r->settings };
	char text[sizeof(r->error)];

	if (folder < 0) {
		snprintf(text, sizeof(text), "%.200s cannot be opened: %s", r->folder, strerror(errno));
		set_recording_state(r, text);
		close_after_failure(r);
		return;
	}
	strcpy(question.name, r->name);
	r->state = OPENING;
	send_question(r, &question, folder);
}

/* A file in memory with the frame: a descriptor, the caller's, or -errno. */
static int make_frame(struct recording *r, const struct snapshot *snapshot, bool slow, uint64_t *ret_bytes)
{
	_cleanup_close_ int fd = memfd_create("gpusonde-recording", MFD_CLOEXEC);
	struct frame_mark mark = r->mark;
	struct strbuf bytes;
	uint64_t left_out = 0;
	ssize_t result = fd < 0 ? -errno : 0;

	strbuf_init(&bytes, FRAME_BYTES_MAX);
	if (result == 0)
		result = frame_write(snapshot, slow, &mark, &bytes, &left_out);
	if (result == 0)
		result = write_all(fd, bytes.data, bytes.len);
	if (result >= 0)
		r->mark = mark;
	*ret_bytes = bytes.len;
	strbuf_done(&bytes);
	model_agent_add(r->model, AGENT_DROPPED_RECORDING_ROWS, (double)left_out);
	return result < 0 ? (int)result : TAKE_FD(fd);
}

static void send_frame(struct recording *r, const struct snapshot *snapshot, int64_t now_ns)
{
	bool slow = r->want_slow || r->slow_ns == 0 || now_ns - r->slow_ns >= SLOW_NS - SLACK_NS;
	struct store_question question = { .ask = STORE_FRAME };
	_cleanup_close_ int fd = make_frame(r, snapshot, slow, &question.bytes);

	if (fd < 0) {
		set_recording_state(r, strerror(-fd));
		miss_frame(r);
		return;
	}
	if (slow)
		r->slow_ns = now_ns;
	r->want_slow = false;
	send_question(r, &question, fd);
}

static int64_t retry_after_ns(const struct recording *r)
{
	return MIN(RETRY_NS << MIN(r->failures - 1, 6u), RETRY_LATEST_NS);
}

void recording_tick(struct recording *r, const struct snapshot *snapshot)
{
	int64_t now_ns = clock_boot_ns();
	bool due = r->frame_ns == 0 || now_ns - r->frame_ns >= PERIOD_NS - SLACK_NS;

	if (r->state == CLOSED && (r->failures == 0 || now_ns - r->failed_ns >= retry_after_ns(r)))
		open_store(r);
	if (!due)
		return;
	r->frame_ns = now_ns;
	if (r->state != OPEN || r->asked) {
		if (r->failures > 0 || r->state == OPEN)
			miss_frame(r);
		return;
	}
	send_frame(r, snapshot, now_ns);
}

/* ---- life ---- */

static uint64_t frames_of(const struct options *options, enum option_id id, int64_t period_ns)
{
	return (uint64_t)(options_number(options, id) / period_ns);
}

static int find_file(struct recording *r, const char *path, char *why, size_t size)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	int result;

	if (strlen(path) >= sizeof(r->folder) || !*(slash ? slash + 1 : path)) {
		snprintf(why, size, "%.200s is no path of a file", path);
		return -EINVAL;
	}
	if (slash)
		snprintf(r->folder, sizeof(r->folder), "%.*s", (int)MAX(n, (size_t)1), path);
	else
		strcpy(r->folder, ".");
	snprintf(r->name, sizeof(r->name), "%s", slash ? slash + 1 : path);
	result = STRV_EQ(r->folder, ".") ? 0 : place_make_folder(r->folder, 0750);
	if (result < 0)
		snprintf(why, size, "the folder %.200s cannot be made: %s", r->folder, strerror(-result));
	return result;
}

int recording_new(sd_event *event, struct model *model, const struct options *options, const char *path,
		  struct recording **ret_recording, char *why, size_t size)
{
	static const struct helper_ops ops = { on_recording_answer, on_recording_lost };
	const struct helper_config helper = { .program = "gpusonde-store",
					      .role = "record",
					      .max_stuck = MAX_STUCK };
	_cleanup_(freep) struct recording *r = calloc(1, sizeof(*r));
	int result;

	if (!r)
		return -ENOMEM;
	r->model = model;
	r->settings = (struct tiers_settings){
		.max_bytes = (uint64_t)options_number(options, OPT_recording_size),
		.frames = { frames_of(options, OPT_recording_seconds, store_tiers[0].period_ns),
			    frames_of(options, OPT_recording_ten_seconds, store_tiers[1].period_ns),
			    frames_of(options, OPT_recording_minutes, store_tiers[2].period_ns) },
	};
	result = find_file(r, path, why, size);
	if (result < 0)
		return result;
	result = helper_new(event, &helper, &ops, r, &r->helper);
	if (result < 0) {
		snprintf(why, size, "%s", strerror(-result));
		return result;
	}
	*ret_recording = TAKE_PTR(r);
	return 0;
}

void recording_flush(struct recording *r)
{
	struct store_question question = { .ask = STORE_CLOSE };
	int64_t end_ns = clock_mono_ns() + CLOSE_MS * NSEC_PER_MSEC;

	while (r->asked && clock_mono_ns() < end_ns)
		helper_wait(r->helper, CLOSE_MS);
	if (r->state == OPEN && !r->asked)
		send_question(r, &question, -1);
	while (r->asked && clock_mono_ns() < end_ns)
		helper_wait(r->helper, CLOSE_MS);
	r->state = r->state == OPEN ? ENDED : r->state;
}

void recording_free(struct recording *r)
{
	if (!r)
		return;
	if (r->state == OPEN)
		recording_flush(r);
	helper_free(r->helper);
	free(r);
}

pid_t recording_pid(const struct recording *r)
{
	struct helper_stats stats;

	helper_stats(r->helper, &stats);
	return stats.pid;
}
