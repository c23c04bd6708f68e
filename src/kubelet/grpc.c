// SPDX-License-Identifier: Apache-2.0
#include "kubelet/grpc.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"
#include "config.h"

enum {
	PREFIX = 5, /* of a message: whether it is compressed, and its length */
	REQUEST_MAX = 1024,
	WINDOW = 1 << 20,
	PIECE = 64 << 10,
	/* Frames without data that one call may take: headers, settings, pings. */
	FRAMES_MAX = 65536,
	HTTP_OK = 200,
};

struct grpc {
	nghttp2_session *session;
	struct grpc_call call;
	int32_t stream; /* of the call; -1: none */
	uint8_t request[PREFIX + REQUEST_MAX];
	size_t request_n, sent;
	uint8_t prefix[PREFIX];
	unsigned prefix_n;
	uint64_t left; /* bytes of the message that have not come */
	bool whole; /* there was a message */
	uint64_t bytes; /* of the reply */
	unsigned frames;
	int error; /* why the connection is of no more use; 0: it is */
	bool closed, has_status;
	int http_status;
	struct grpc_answer answer;
};

static int fail(struct grpc *grpc, int error)
{
	if (!grpc->error)
		grpc->error = error;
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* ---- what comes ---- */

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c | 0x20) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* gRPC's message, in which bytes may be written as %XX. */
static void take_message(struct grpc_answer *answer, const char *text, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n && k + 1 < sizeof(answer->message); i++) {
		char c = text[i];

		if (c == '%' && i + 2 < n && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
			c = (char)(hex_digit(text[i + 1]) << 4 | hex_digit(text[i + 2]));
			i += 2;
		}
		answer->message[k++] = (unsigned char)c < ' ' || c == 0x7f ? ' ' : c;
	}
	answer->message[k] = '\0';
	utf8_sanitize(answer->message);
}

static bool is_name(const char *wanted, const uint8_t *name, size_t n)
{
	return strlen(wanted) == n && memcmp(wanted, name, n) == 0;
}

/* A number of at most three digits; -1: none. */
static int small_number(const uint8_t *text, size_t n)
{
	int number = 0;

	if (n == 0 || n > 3)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		number = number * 10 + text[i] - '0';
	}
	return number;
}

static int on_header(_unused_ nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_n, const uint8_t *value, size_t n, _unused_ uint8_t flags, void *userdata)
{
	struct grpc *grpc = userdata;

	if (frame->hd.stream_id != grpc->stream)
		return 0;
	if (is_name(":status", name, name_n)) {
		grpc->http_status = small_number(value, n);
	} else if (is_name("grpc-status", name, name_n)) {
		grpc->answer.status = small_number(value, n);
		grpc->has_status = true;
	} else if (is_name("grpc-message", name, name_n)) {
		take_message(&grpc->answer, (const char *)value, n);
	}
	return 0;
}

static uint32_t big_endian(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The prefix, then the message: a reply to a call of these services is one. */
static int take_data(struct grpc *grpc, const uint8_t *data, size_t n)
{
	while (n > 0 && grpc->prefix_n < PREFIX) {
		grpc->prefix[grpc->prefix_n++] = *data++;
		n--;
		if (grpc->prefix_n == PREFIX) {
			if (grpc->prefix[0] != 0) /* compressed, which nobody asked for */
				return -EPROTO;
			grpc->left = big_endian(grpc->prefix + 1);
			if (grpc->left > GRPC_REPLY_MAX)
				return -EFBIG;
			grpc->whole = grpc->left == 0;
		}
	}
	if (n == 0)
		return 0;
	if (n > grpc->left)
		return -EPROTO;
	grpc->left -= n;
	grpc->whole = grpc->left == 0;
	return grpc->call.data ? grpc->call.data(data, n, grpc->call.userdata) : 0;
}

static int on_data(_unused_ nghttp2_session *session, _unused_ uint8_t flags, int32_t stream,
		   const uint8_t *data, size_t n, void *userdata)
{
	struct grpc *grpc = userdata;
	int r;

	if (stream != grpc->stream)
		return 0;
	/* What a server says that is none of gRPC's is no message of it. */
	if (grpc->http_status != HTTP_OK)
		return 0;
	r = take_data(grpc, data, n);
	return r < 0 ? fail(grpc, r) : 0;
}

static int on_frame(_unused_ nghttp2_session *session, const nghttp2_frame *frame, void *userdata)
{
	struct grpc *grpc = userdata;

	if (++grpc->frames > FRAMES_MAX)
		return fail(grpc, -EFBIG);
	/* The server ends the connection: this call may be answered, if it has it. */
	if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.last_stream_id < grpc->stream)
		return fail(grpc, -ECONNRESET);
	return 0;
}

static int on_close(_unused_ nghttp2_session *session, int32_t stream, uint32_t error_code, void *userdata)
{
	struct grpc *grpc = userdata;

	if (stream != grpc->stream)
		return 0;
	grpc->closed = true;
	if (!grpc->has_status)
		return fail(grpc,
			    error_code == NGHTTP2_NO_ERROR && grpc->http_status >= 0 ? -EPROTO : -ECONNRESET);
	if (grpc->answer.status == GRPC_OK && !grpc->whole)
		return fail(grpc, -EPROTO);
	return 0;
}

/* ---- what goes ---- */

static ssize_t read_request(_unused_ nghttp2_session *session, _unused_ int32_t stream, uint8_t *buf,
			    size_t room, uint32_t *flags, _unused_ nghttp2_data_source *source,
			    void *userdata)
{
	struct grpc *grpc = userdata;
	size_t n = MIN(room, grpc->request_n - grpc->sent);

	memcpy(buf, grpc->request + grpc->sent, n);
	grpc->sent += n;
	if (grpc->sent == grpc->request_n)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static int write_request(struct grpc *grpc, const struct grpc_call *call)
{
	if (call->n > REQUEST_MAX)
		return -E2BIG;
	grpc->request[0] = 0;
	grpc->request[1] = grpc->request[2] = 0;
	grpc->request[3] = (uint8_t)(call->n >> 8);
	grpc->request[4] = (uint8_t)call->n;
	if (call->n)
		memcpy(grpc->request + PREFIX, call->message, call->n);
	grpc->request_n = PREFIX + call->n;
	grpc->sent = 0;
	return 0;
}

#define FIELD(name_, value_)                                                                \
	{                                                                                   \
		(uint8_t *)(name_), (uint8_t *)(value_), sizeof(name_) - 1, strlen(value_), \
			NGHTTP2_NV_FLAG_NO_COPY_NAME                                        \
	}

int grpc_begin(struct grpc *grpc, const struct grpc_call *call)
{
	const nghttp2_nv fields[] = {
		FIELD(":method", "POST"),
		FIELD(":scheme", "http"),
		FIELD(":path", call->path),
		FIELD(":authority", "localhost"),
		FIELD("content-type", "application/grpc"),
		FIELD("user-agent", "gpusonde/" GPUSONDE_VERSION),
		FIELD("te", "trailers"),
	};
	const nghttp2_data_provider provider = { .read_callback = read_request };
	int r = write_request(grpc, call);

	if (r < 0)
		return r;
	grpc->call = *call;
	grpc->prefix_n = grpc->frames = 0;
	grpc->left = grpc->bytes = 0;
	grpc->whole = grpc->closed = grpc->has_status = false;
	grpc->http_status = -1;
	grpc->answer = (struct grpc_answer){ .status = -1 };
	grpc->stream =
		nghttp2_submit_request(grpc->session, NULL, fields, ARRAY_SIZE(fields), &provider, NULL);
	return grpc->stream < 0 ? -ECONNRESET : 0;
}

int grpc_feed(struct grpc *grpc, const uint8_t *data, size_t n)
{
	ssize_t used;

	grpc->bytes += n;
	if (grpc->bytes > GRPC_REPLY_MAX + GRPC_REPLY_MAX / 16)
		return -EFBIG;
	used = nghttp2_session_mem_recv(grpc->session, data, n);
	if (grpc->error)
		return grpc->error;
	if (used == NGHTTP2_ERR_NOMEM)
		return -ENOMEM;
	return used != (ssize_t)n ? -EPROTO : 0;
}

int grpc_take(struct grpc *grpc, const uint8_t **ret_data, size_t *ret_n)
{
	const uint8_t *data = NULL;
	ssize_t n = nghttp2_session_mem_send(grpc->session, &data);

	if (n < 0)
		return n == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO;
	*ret_data = data;
	*ret_n = (size_t)n;
	return 0;
}

bool grpc_ended(const struct grpc *grpc, struct grpc_answer *ret_answer)
{
	if (grpc->closed)
		*ret_answer = grpc->answer;
	return grpc->closed;
}

/* ---- the socket ---- */

static int wait_for(int fd, short events, int64_t deadline_ns)
{
	int64_t left_ns = deadline_ns - clock_mono_ns();
	struct pollfd poll_fd = { .fd = fd, .events = events };
	int r;

	if (left_ns <= 0)
		return -ETIMEDOUT;
	r = poll(&poll_fd, 1, (int)MIN(left_ns / NSEC_PER_MSEC + 1, INT64_C(60000)));
	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	return r == 0 ? -ETIMEDOUT : 0;
}

static int send_all(int fd, const uint8_t *data, size_t n, int64_t deadline_ns)
{
	while (n > 0) {
		ssize_t sent = send(fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		int r = 0;

		if (sent >= 0) {
			data += sent;
			n -= (size_t)sent;
		} else if (errno == EAGAIN) {
			r = wait_for(fd, POLLOUT, deadline_ns);
		} else if (errno != EINTR) {
			r = errno == EPIPE ? -ECONNRESET : -errno;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int send_pending(struct grpc *grpc, int fd, int64_t deadline_ns)
{
	const uint8_t *data;
	size_t n;
	int r = grpc_take(grpc, &data, &n);

	while (r == 0 && n > 0) {
		r = send_all(fd, data, n, deadline_ns);
		if (r == 0)
			r = grpc_take(grpc, &data, &n);
	}
	return r;
}

static int receive_some(struct grpc *grpc, int fd, int64_t deadline_ns)
{
	static uint8_t piece[PIECE];
	ssize_t n;
	/* Libnghttp2 has given up on what came. */
	int r = nghttp2_session_want_read(grpc->session) ? wait_for(fd, POLLIN, deadline_ns) : -EPROTO;

	if (r < 0)
		return r;
	n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return n == 0 ? -ECONNRESET : grpc_feed(grpc, piece, (size_t)n);
}

int grpc_run(struct grpc *grpc, int fd, const struct grpc_call *call, int64_t deadline_ns,
	     struct grpc_answer *ret_answer)
{
	int r = grpc->error ? grpc->error : grpc_begin(grpc, call);

	while (r == 0 && !grpc_ended(grpc, ret_answer)) {
		r = send_pending(grpc, fd, deadline_ns);
		if (r == 0)
			r = receive_some(grpc, fd, deadline_ns);
	}
	grpc->call = (struct grpc_call){ 0 };
	if (r < 0 && !grpc->error)
		grpc->error = r;
	return r;
}

int grpc_idle(struct grpc *grpc, int fd)
{
	int64_t now_ns = clock_mono_ns();
	int r;

	grpc->stream = -1;
	grpc->bytes = grpc->frames = 0;
	r = grpc->error ? grpc->error : receive_some(grpc, fd, now_ns + NSEC_PER_MSEC);
	if (r == 0)
		r = send_pending(grpc, fd, now_ns + NSEC_PER_SEC);
	return r;
}

/* ---- life ---- */

static int start_session(struct grpc *grpc)
{
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, 16384 },
	};
	nghttp2_session_callbacks *callbacks;
	int r = nghttp2_session_callbacks_new(&callbacks);

	if (r != 0)
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	r = nghttp2_session_client_new(&grpc->session, callbacks, grpc);
	nghttp2_session_callbacks_del(callbacks);
	if (r == 0)
		r = nghttp2_submit_settings(grpc->session, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings));
	if (r == 0)
		r = nghttp2_session_set_local_window_size(grpc->session, NGHTTP2_FLAG_NONE, 0, WINDOW);
	return r == 0 ? 0 : -ENOMEM;
}

int grpc_new(struct grpc **ret_grpc)
{
	_cleanup_(grpc_freep) struct grpc *grpc = calloc(1, sizeof(*grpc));
	int r = grpc ? start_session(grpc) : -ENOMEM;

	if (r < 0)
		return r;
	grpc->stream = -1;
	*ret_grpc = TAKE_PTR(grpc);
	return 0;
}

void grpc_free(struct grpc *grpc)
{
	if (!grpc)
		return;
	nghttp2_session_del(grpc->session);
	free(grpc);
}
