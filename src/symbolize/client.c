// SPDX-License-Identifier: Apache-2.0
#include "symbolize/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "proc/account.h"
#include "symbolize/client_private.h"
#include "symbolize/serve.h"

enum {
	QUESTIONS = 4096,
	WINDOW = 64, /* sent ones: a crafted name takes up to 50 ms to demangle, and others wait behind it */
	TRIES = 3,
	STUCK_MAX = 8,
};
#define STALL_NS NSEC_PER_SEC
#define PENALTY_NS (60 * NSEC_PER_SEC)
#define IDLE_NS (60 * NSEC_PER_SEC)
#define LOOK_NS NSEC_PER_SEC
#define BROKEN_NS (10 * NSEC_PER_SEC) /* interval between attempts to start what cannot be started */

/* ---- answers ---- */

static void give_up(struct symbols *s, struct asked *asked)
{
	uint64_t id = asked->question.id;

	asked_remove(&s->asked, asked);
	s->stats.answered++;
	s->stats.named[KERNEL_SOURCE_UNRESOLVED]++;
	s->ops.kernel(id, NULL, s->userdata);
}

/* No helper can be started. */
static void give_all_up(struct symbols *s, int error)
{
	s->broken = error;
	s->broken_until_ns = clock_mono_ns() + BROKEN_NS;
	for (uint32_t n = s->asked.n; n > 0 && s->asked.n > 0; n--)
		give_up(s, s->asked.all[s->asked.n - 1]);
	environments_give_up(s, 0);
}

static void take_kernel(struct symbols *s, char *message, size_t n)
{
	struct kernel kernel, *shared;
	struct asked *asked;
	uint64_t wire_id, id;

	if (wire_take_kernel(message, n, &wire_id, &kernel) < 0)
		return;
	asked = asked_find(&s->asked, wire_id);
	if (!asked)
		return; /* it is of an earlier helper, or made up */
	if (kernels_intern(s->kernels, &kernel, &shared) < 0) {
		give_up(s, asked);
		return;
	}
	id = asked->question.id;
	asked_remove(&s->asked, asked);
	s->stats.answered++;
	s->stats.named[shared->source]++;
	s->ops.kernel(id, shared, s->userdata);
	kernel_unref(shared);
}

static void take_looked(struct symbols *s, const char *message, size_t n)
{
	struct wire_looked looked;

	if (n != sizeof(looked))
		return;
	memcpy(&looked, message, sizeof(looked));
	if (looked.id != s->look_id)
		return;
	s->look_error = looked.error < 0 ? looked.error : 0;
	s->look_id = 0;
}

static void on_answer(const void *message, size_t n, int fd, void *userdata)
{
	struct symbols *s = userdata;
	_unused_ _cleanup_close_ int unwanted = fd;
	uint32_t kind;

	if (n < sizeof(kind))
		return;
	memcpy(&kind, message, sizeof(kind));
	/* The buffer is the helper infrastructure's, and writable; texts are cleaned in place. */
	if (kind == WIRE_KERNEL)
		take_kernel(s, (char *)(uintptr_t)message, n);
	else if (kind == WIRE_LOOKED)
		take_looked(s, message, n);
	else if (kind == WIRE_VARIABLES)
		environments_take(s, message, n);
	symbols_pump(s);
}

/* ---- a helper that is lost ---- */

static bool is_of_process(const struct symbolizer_question *question, struct process_id id)
{
	return process_id_may_equal(question->process, id);
}

static void on_lost(bool hung, void *userdata)
{
	struct symbols *s = userdata;
	struct process_id culprit = watch_blame(s, hung);

	shared_close(s);
	s->look_id = 0;
	s->look_error = -EIO;
	asked_take_back(&s->asked);
	s->pumping = true; /* what callbacks ask is sent at the end */
	/* From the end, since the last one takes the place of one that is removed. */
	for (uint32_t i = s->asked.n; i-- > 0;) {
		struct asked *asked = i < s->asked.n ? s->asked.all[i] : NULL;
		bool its = asked && culprit.pid && is_of_process(&asked->question, culprit);

		if (!asked || (!its && asked->tries < TRIES))
			continue;
		s->withheld += its;
		give_up(s, asked);
	}
	environments_take_back(s, culprit.pid);
	s->pumping = false;
	symbols_pump(s);
}

/* ---- sending ---- */

static int send_question(struct symbols *s, const struct asked *asked)
{
	int r;

	strbuf_reset(&s->out);
	r = wire_put_question(&s->out, &asked->question, asked->id);
	return r < 0 ? r : symbols_send(s, s->out.data, s->out.len, -1);
}

static int send_asked(struct symbols *s, struct asked *asked)
{
	int r = send_question(s, asked);

	if (r == -EMSGSIZE) {
		give_up(s, asked);
		return 0;
	}
	return r < 0 ? r : asked_mark_sent(&s->asked, asked);
}

void symbols_pump(struct symbols *s)
{
	struct asked *asked;
	int r;

	if (s->pumping)
		return; /* an answer's callback has asked */
	s->pumping = true;
	r = pending_send(s);
	if (r == 0)
		r = environments_send(s);
	while (r == 0 && (asked = asked_next(&s->asked)))
		r = send_asked(s, asked);
	s->pumping = false;
	if (r < 0 && r != -EAGAIN && r != -EBUSY)
		give_all_up(s, r);
	watch_arm(s);
}

/* ---- questions ---- */

static uint64_t account_of(struct symbols *s, const struct symbolizer_question *question)
{
	struct known_account *known = &s->known[question->process.pid % ARRAY_SIZE(s->known)];

	if (known->incarnation != question->incarnation || !process_id_equal(known->id, question->process))
		*known = (struct known_account){
			.id = question->process,
			.incarnation = question->incarnation,
			.account = proc_account(s->config.symbolizer.proc_root, question->process.pid),
		};
	return known->account;
}

int symbols_ask(struct symbols *s, const struct symbolizer_question *question)
{
	struct symbolizer_question own = *question;
	int64_t now = clock_mono_ns();
	uint64_t account;
	int r = 0;

	if (suspects_has_process(&s->suspects, question->process)) {
		s->withheld++;
		return -EPERM;
	}
	if (s->broken && now < s->broken_until_ns)
		return s->broken;
	s->broken = 0;
	account = account_of(s, question);
	if (suspects_has_account(&s->suspects, account, now)) {
		s->withheld++;
		return -EAGAIN;
	}
	own.seq = ++s->seq;
	r = asked_add(&s->asked, &own, account);
	if (r < 0) {
		s->stats.refused += r == -EAGAIN;
		return r;
	}
	s->stats.asked++;
	symbols_pump(s);
	return 0;
}

int symbols_image(struct symbols *s, pid_t pid, uint64_t incarnation, uint64_t address)
{
	const struct wire_request request = {
		.kind = WIRE_IMAGE,
		.pid = (uint32_t)pid,
		.incarnation = incarnation,
		.image = address,
		.seq = ++s->seq,
	};
	const struct symbolizer_question about = { .process.pid = (uint32_t)pid, .incarnation = incarnation };
	int r;

	if (suspects_has_process(&s->suspects, about.process) ||
	    suspects_has_account(&s->suspects, account_of(s, &about), clock_mono_ns())) {
		s->withheld++;
		return -EAGAIN;
	}
	r = pending_add(s, &request);
	s->stats.refused += r == -EAGAIN;
	if (r == 0)
		kept_add(s, pid, incarnation);
	symbols_pump(s);
	return r;
}

int symbols_look(struct symbols *s, const struct symbolizer_mapping *mapping)
{
	const struct wire_request request = {
		.kind = WIRE_LOOK,
		.pid = (uint32_t)mapping->pid,
		.id = ++s->seq,
		.address = mapping->address,
		.length = mapping->length,
		.offset = mapping->offset,
		.execution = mapping->execution,
	};
	int64_t until = clock_mono_ns() + LOOK_NS;
	int r;

	strbuf_reset(&s->out);
	r = wire_put_request(&s->out, &request, mapping->path);
	if (r == 0)
		r = symbols_send(s, s->out.data, s->out.len, mapping->fd);
	if (r < 0) {
		s->stats.refused += r == -EAGAIN;
		return r;
	}
	s->looks = true;
	s->look_id = request.id;
	s->look_error = -ETIMEDOUT;
	while (s->look_id == request.id && clock_mono_ns() < until)
		symbols_wait(s, WAIT_STEP_MS);
	s->look_id = 0;
	return s->look_error;
}

void symbols_forget(struct symbols *s, pid_t pid, uint64_t incarnation)
{
	const struct wire_request request = { .kind = WIRE_FORGET,
					      .pid = (uint32_t)pid,
					      .incarnation = incarnation };

	kept_remove(s, pid, incarnation);
	/* What waits goes first: the helper answers it with what it knows of the process. */
	for (uint32_t i = 0; i < s->asked.n; i++) {
		struct asked *asked = s->asked.all[i];

		if (asked->sent || asked->question.process.pid != (uint32_t)pid ||
		    asked->question.incarnation != incarnation)
			continue;
		asked->id = ++s->asked.ids;
		if (send_question(s, asked) < 0 || asked_mark_sent(&s->asked, asked) < 0)
			break;
	}
	/* Without a helper there is nothing to forget. Beyond the limit it goes by age. */
	if (shared_is_open(s))
		(void)pending_add(s, &request);
	symbols_pump(s);
}

void symbols_wait(struct symbols *s, int timeout_ms)
{
	helper_wait(s->helper, timeout_ms);
	watch_check(s);
	symbols_pump(s);
}

/* ---- begin, end and statistics ---- */

static void set_defaults(struct symbols_config *config)
{
	if (!config->symbolizer.proc_root)
		config->symbolizer.proc_root = "/proc";
	if (!config->symbolizer.limits.questions)
		config->symbolizer.limits.questions = QUESTIONS;
	if (!config->stall_ns)
		config->stall_ns = STALL_NS;
	if (!config->penalty_ns)
		config->penalty_ns = PENALTY_NS;
	if (!config->idle_ns)
		config->idle_ns = IDLE_NS;
}

int symbols_new(sd_event *event, const struct symbols_config *config, const struct symbols_ops *ops,
		void *userdata, struct symbols **ret_symbols)
{
	static const struct helper_ops helper_ops = { on_answer, on_lost };
	struct helper_config helper = {
		.program = config->program,
		.role = "symbols",
		.capabilities = SYMBOLS_CAPABILITIES,
		.max_stuck = STUCK_MAX,
	};
	_cleanup_(symbols_freep) struct symbols *s = event ? calloc(1, sizeof(*s)) : NULL;
	int r;

	if (!s)
		return event ? -ENOMEM : -EINVAL;
	s->config = *config;
	set_defaults(&s->config);
	s->ops = *ops;
	s->userdata = userdata;
	s->suspects.penalty_ns = s->config.penalty_ns;
	strbuf_init(&s->out, 0);
	asked_init(&s->asked, s->config.symbolizer.limits.questions,
		   MIN(s->config.symbolizer.limits.questions, (uint32_t)WINDOW));
	r = kernels_new(&s->kernels);
	if (r == 0)
		r = helper_new(event, &helper, &helper_ops, s, &s->helper);
	if (r == 0)
		r = watch_new(s, event);
	if (r < 0)
		return r;
	*ret_symbols = TAKE_PTR(s);
	return 0;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	helper_free(s->helper);
	watch_done(s);
	shared_close(s);
	asked_done(&s->asked);
	hashmap_done(&s->kept);
	pending_done(s);
	kernels_free(s->kernels);
	strbuf_done(&s->out);
	free(s);
}

void symbols_stats(struct symbols *s, struct symbols_stats *ret_stats)
{
	struct helper_stats helper;
	struct symbols_stats stats = { .symbolizer = s->stats };

	helper_stats(s->helper, &helper);
	shared_add_figures(s, &stats.symbolizer);
	stats.symbolizer.kernels = kernels_count(s->kernels);
	stats.withheld = s->withheld;
	stats.starts = helper.starts;
	stats.crashes = helper.crashes;
	stats.hung = helper.hung;
	stats.stuck = helper.stuck;
	stats.users = suspects_count_accounts(&s->suspects, clock_mono_ns());
	stats.waiting = s->asked.n;
	stats.pid = helper.pid;
	*ret_stats = stats;
}
