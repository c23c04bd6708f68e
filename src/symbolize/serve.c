// SPDX-License-Identifier: Apache-2.0
/*
 * Two threads: this one takes messages, reads what must be read at once (mappings, environments) and sends
 * answers; the symbolizer's does the rest.
 */
#include "symbolize/serve.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "config.h"
#include "helper/helper.h"
#include "helper/message.h"
#include "proc/device_nodes.h"
#include "proc/environment.h"
#include "proc/job.h"
#include "symbolize/wire.h"

enum { FIGURES_MS = 1000 };

struct serving {
	int channel;
	struct wire_start start;
	struct wire_shared *shared;
	struct symbolizer *symbolizer;
	struct strbuf out;
	char variables[sizeof(struct wire_variables) + WIRE_VARIABLES_MAX];
	char message[HELPER_MESSAGE_MAX];
};

/* ---- answers ---- */

static int send_message(const struct serving *s, const void *message, size_t n)
{
	return send_with_fd(s->channel, message, n, -1);
}

/* A kernel that does not fit into a message has texts that nobody reads. */
static int put_any_kernel(struct strbuf *out, const struct kernel *kernel, uint64_t id)
{
	struct kernel brief = *kernel;
	int r = wire_put_kernel(out, kernel, id);

	if (r != -EMSGSIZE)
		return r;
	strbuf_reset(out);
	brief.symbol = brief.name = kernel->brief;
	brief.file = "";
	return wire_put_kernel(out, &brief, id);
}

static int send_kernels(struct serving *s)
{
	struct symbolizer_answer answer;
	int r = 0;

	while (r == 0 && symbolizer_take(s->symbolizer, &answer)) {
		strbuf_reset(&s->out);
		r = put_any_kernel(&s->out, answer.kernel, answer.id);
		kernel_unref(answer.kernel);
		if (r == 0)
			r = send_message(s, s->out.data, s->out.len);
	}
	return r;
}

static void share_figures(const struct serving *s)
{
	_Atomic uint64_t *figures = s->shared->figures;
	struct symbolizer_stats stats;

	symbolizer_stats(s->symbolizer, &stats);
	atomic_store(&figures[WIRE_FILES], stats.files);
	atomic_store(&figures[WIRE_FILES_READ], stats.files_read);
	atomic_store(&figures[WIRE_FILES_FAILED], stats.files_failed);
	atomic_store(&figures[WIRE_EVICTED], stats.evicted);
	atomic_store(&figures[WIRE_LEFT_OUT], stats.left_out);
	atomic_store(&figures[WIRE_BYTES], stats.bytes);
	for (unsigned i = 0; i < CUBIN_COMPRESSIONS; i++)
		atomic_store(&figures[WIRE_IMAGES + i], stats.images[i]);
	atomic_store(&figures[WIRE_CPU_NS], (uint64_t)(stats.seconds * 1e9));
}

/* ---- messages ---- */

static int look(struct serving *s, const struct wire_request *request, const char *path, int fd)
{
	const struct symbolizer_mapping mapping = {
		.pid = (pid_t)request->pid,
		.fd = fd,
		.path = path,
		.execution = request->execution,
		.address = request->address,
		.length = request->length,
		.offset = request->offset,
	};
	struct wire_looked answer = { .kind = WIRE_LOOKED, .id = request->id };

	progress_memory();
	answer.error = symbolizer_look(s->symbolizer, &mapping);
	return send_message(s, &answer, sizeof(answer));
}

/* Behind the variables the nodes of its /dev, which no variable's name can be. */
static size_t put_nodes(struct serving *s, uint32_t pid, char *to, size_t size)
{
	static const char name[] = PROC_DEVICE_NODES;
	size_t n;

	if (size < sizeof(name) ||
	    proc_device_nodes(s->start.proc_root, pid, to + sizeof(name) - 1, size - sizeof(name), &n) < 0)
		return 0;
	memcpy(to, name, sizeof(name) - 1);
	to[sizeof(name) - 1 + n] = '\0';
	return sizeof(name) + n;
}

/* @names: for WIRE_JOB. */
static int read_variables(struct serving *s, const struct wire_request *request, const char *names)
{
	struct wire_variables answer = { .kind = WIRE_VARIABLES, .id = request->id };
	char *text = s->variables + sizeof(answer);
	size_t n = 0;

	progress_memory();
	answer.state = request->kind == WIRE_JOB ? proc_job_environment(s->start.proc_root, request->pid,
									names, text, WIRE_VARIABLES_MAX, &n) :
						   proc_environment(s->start.proc_root, request->pid, text,
								    WIRE_VARIABLES_MAX, &n);
	if (answer.state >= 0 && request->kind != WIRE_JOB)
		n += put_nodes(s, request->pid, text + n, WIRE_VARIABLES_MAX - n);
	answer.n = answer.state < 0 ? 0 : (uint32_t)n;
	memcpy(s->variables, &answer, sizeof(answer));
	return send_message(s, s->variables, sizeof(answer) + answer.n);
}

static int handle_message(struct serving *s, size_t n, int fd)
{
	const struct wire_request *request = (const void *)s->message;
	struct symbolizer_question question;
	int r = wire_take_question(s->message, n, &question);

	if (r < 0)
		return r;
	switch (request->kind) {
	case WIRE_QUESTION:
		/* The owner asks no more than fit. */
		return symbolizer_ask(s->symbolizer, &question);
	case WIRE_IMAGE:
		r = symbolizer_image(s->symbolizer, (pid_t)request->pid, request->incarnation, request->image,
				     request->seq);
		return r == -EAGAIN ? 0 : r;
	case WIRE_LOOK:
		return question.path ? look(s, request, question.path, fd) : -EBADMSG;
	case WIRE_FORGET:
		symbolizer_forget(s->symbolizer, (pid_t)request->pid, request->incarnation);
		return 0;
	case WIRE_ENVIRONMENT:
	case WIRE_JOB:
		return read_variables(s, request, question.path ? question.path : "");
	default:
		return -EBADMSG;
	}
}

static int take_message(struct serving *s)
{
	_cleanup_close_ int fd = -1;
	const struct wire_request *request = (const void *)s->message;
	ssize_t n = receive_with_fd(s->channel, s->message, sizeof(s->message), &fd);
	int r;

	if (n <= 0)
		return n < 0 ? (int)n : -EPIPE;
	progress_process((size_t)n >= sizeof(*request) ? (pid_t)request->pid : 0);
	r = handle_message(s, (size_t)n, fd);
	progress_process(0);
	atomic_fetch_add(&s->shared->handled, 1);
	return r;
}

/* ---- begin and end ---- */

static int map_shared(int fd, struct wire_shared **ret_shared)
{
	void *at = fd < 0 ? MAP_FAILED :
			    mmap(NULL, sizeof(**ret_shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -EBADMSG;
	*ret_shared = at;
	return 0;
}

static int receive_start(struct serving *s)
{
	_cleanup_close_ int fd = -1;
	struct wire_start *start = &s->start;
	ssize_t n = receive_with_fd(s->channel, start, sizeof(*start), &fd);

	if (n <= 0)
		return n < 0 ? (int)n : -EPIPE;
	if (n != sizeof(*start) || start->kind != WIRE_START ||
	    strncmp(start->version, GPUSONDE_VERSION, sizeof(start->version)) != 0)
		return -ENOTSUP;
	start->proc_root[sizeof(start->proc_root) - 1] = '\0';
	start->avoided_n = MIN(start->avoided_n, (uint32_t)WIRE_AVOIDED);
	return map_shared(fd, &s->shared);
}

static int begin(struct serving *s)
{
	int r = receive_start(s);
	struct symbolizer_config config;

	if (r < 0)
		return r;
	config = (struct symbolizer_config){
		.limits = s->start.limits,
		.read_memory = s->start.read_memory,
		.proc_root = s->start.proc_root,
		.again_ns = s->start.again_ns,
		.avoided = s->start.avoided,
		.avoided_n = s->start.avoided_n,
		.lane = &s->shared->lanes[WIRE_LANE_WORK],
	};
	/* Each further arena reserves 64 MiB of the address space, which is limited. */
	mallopt(M_ARENA_MAX, 1);
	progress_use(&s->shared->lanes[WIRE_LANE_MESSAGES]);
	return symbolizer_new(&config, &s->symbolizer);
}

/* Wakes up only while there is work. */
static int wait_ms(const struct serving *s, int events)
{
	return events > 0 || atomic_load(&s->shared->lanes[WIRE_LANE_WORK].kind) != PROGRESS_IDLE ?
		       FIGURES_MS :
		       -1;
}

static int serve(struct serving *s)
{
	int r = begin(s), n = 1;

	while (r >= 0) {
		struct pollfd both[] = {
			{ .fd = s->channel, .events = POLLIN },
			{ .fd = symbolizer_fd(s->symbolizer), .events = POLLIN },
		};

		n = poll(both, ARRAY_SIZE(both), wait_ms(s, n));
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && both[0].revents)
			r = take_message(s);
		if (r >= 0 && n > 0 && both[1].revents)
			r = send_kernels(s);
		share_figures(s);
	}
	return r;
}

int symbols_serve(int channel)
{
	struct serving *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return EXIT_FAILURE;
	s->channel = channel;
	strbuf_init(&s->out, 0);
	r = serve(s);
	/* The process ends with all that it has: its thread may hang. */
	_exit(r == -EPIPE ? EXIT_SUCCESS : r == -ENOTSUP ? HELPER_FOREIGN : EXIT_FAILURE);
}
