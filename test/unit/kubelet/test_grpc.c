// SPDX-License-Identifier: Apache-2.0
#include "needs.h"

#include <nghttp2/nghttp2.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "kubelet/grpc.h"

/* How the server answers a call. */
static struct {
	const char *status; /* ":status"; NULL: no answer */
	const uint8_t *body;
	size_t n;
	const char *grpc_status, *grpc_message; /* trailers, or headers if @alone; NULL: none */
	bool alone; /* headers alone */
	uint32_t reset; /* the stream, with this code; 0: no */
	bool goaway;
} how;

static nghttp2_session *server;
static struct grpc *grpc;
static uint8_t asked[2048]; /* the body of the request */
static size_t asked_n, body_at;
static char path[128], got[64]; /* of the request; of the reply */
static size_t got_n, piece; /* of what is fed to the client at a time */
static int refuse;

#define ENTRY(name_, value_)                                                                                 \
	{                                                                                                    \
		(uint8_t *)(name_), (uint8_t *)(value_), strlen(name_), strlen(value_), NGHTTP2_NV_FLAG_NONE \
	}

static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *buf, size_t room, uint32_t *flags,
			 nghttp2_data_source *source, void *userdata)
{
	size_t n = how.n - body_at < room ? how.n - body_at : room;

	(void)source;
	(void)userdata;
	memcpy(buf, how.body + body_at, n);
	body_at += n;
	if (body_at < how.n)
		return (ssize_t)n;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (how.grpc_status) {
		const nghttp2_nv trailers[] = {
			ENTRY("grpc-status", how.grpc_status),
			ENTRY("grpc-message", how.grpc_message ? how.grpc_message : ""),
		};

		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		assert_int_equal(nghttp2_submit_trailer(session, stream, trailers, 2), 0);
	}
	return (ssize_t)n;
}

static void answer(int32_t stream)
{
	const nghttp2_nv headers[] = {
		ENTRY(":status", how.status ? how.status : ""),
		ENTRY("content-type", "application/grpc"),
		ENTRY("grpc-status", how.grpc_status ? how.grpc_status : ""),
		ENTRY("grpc-message", how.grpc_message ? how.grpc_message : ""),
	};
	const nghttp2_data_provider provider = { .read_callback = read_body };

	body_at = 0;
	if (how.goaway)
		nghttp2_submit_goaway(server, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
	if (how.reset)
		nghttp2_submit_rst_stream(server, NGHTTP2_FLAG_NONE, stream, how.reset);
	else if (how.status)
		nghttp2_submit_response(server, stream, headers, how.alone ? 4 : 2,
					how.alone ? NULL : &provider);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *userdata)
{
	(void)session;
	(void)userdata;
	if (frame->hd.type == NGHTTP2_DATA && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		answer(frame->hd.stream_id);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
		     const uint8_t *value, size_t n, uint8_t flags, void *userdata)
{
	(void)session;
	(void)frame;
	(void)flags;
	(void)userdata;
	if (name_n == 5 && memcmp(name, ":path", 5) == 0 && n < sizeof(path)) {
		memcpy(path, value, n);
		path[n] = '\0';
	}
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data, size_t n,
		   void *userdata)
{
	(void)session;
	(void)flags;
	(void)stream;
	(void)userdata;
	assert_true(asked_n + n <= sizeof(asked));
	memcpy(asked + asked_n, data, n);
	asked_n += n;
	return 0;
}

static int begin(void **state)
{
	const nghttp2_settings_entry settings = { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100 };
	nghttp2_session_callbacks *callbacks;

	(void)state;
	memset(&how, 0, sizeof(how));
	asked_n = got_n = 0;
	refuse = 0;
	piece = 1 << 20;
	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_server_new(&server, callbacks, NULL);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(server, NGHTTP2_FLAG_NONE, &settings, 1);
	return grpc_new(&grpc);
}

static int end(void **state)
{
	(void)state;
	grpc_free(grpc);
	grpc = NULL;
	nghttp2_session_del(server);
	return 0;
}

static int on_reply(const uint8_t *data, size_t n, void *userdata)
{
	assert_ptr_equal(userdata, got);
	for (size_t i = 0; i < n && got_n + 1 < sizeof(got); i++)
		got[got_n++] = (char)data[i];
	got[got_n] = '\0';
	return refuse;
}

/* What the server has to say, in pieces. */
static int feed(void)
{
	const uint8_t *data;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = nghttp2_session_mem_send(server, &data)) > 0)
		for (size_t at = 0; r == 0 && at < (size_t)n; at += piece)
			r = grpc_feed(grpc, data + at, (size_t)n - at < piece ? (size_t)n - at : piece);
	return r;
}

/* A whole call, in memory. -EAGAIN: the server says nothing more. */
static int run_call(const char *message, size_t n, struct grpc_answer *ret_answer)
{
	const struct grpc_call call = {
		.path = "/v1.PodResourcesLister/List",
		.message = message,
		.n = n,
		.data = on_reply,
		.userdata = got,
	};
	int r = grpc_begin(grpc, &call);

	asked_n = got_n = 0;
	got[0] = '\0';
	for (unsigned turns = 0; r == 0 && !grpc_ended(grpc, ret_answer); turns++) {
		const uint8_t *data;
		size_t sent;

		if (turns > 100)
			return -EAGAIN;
		while ((r = grpc_take(grpc, &data, &sent)) == 0 && sent > 0)
			assert_int_equal(nghttp2_session_mem_recv(server, data, sent), sent);
		if (r == 0)
			r = feed();
	}
	return r;
}

static void answers(int status, const char *message, const char *reply)
{
	struct grpc_answer a;

	assert_int_equal(run_call("", 0, &a), 0);
	assert_int_equal(a.status, status);
	assert_string_equal(a.message, message);
	assert_string_equal(got, reply);
}

static void calls_and_takes_the_reply(void **state)
{
	struct grpc_answer a;

	(void)state;
	for (piece = 1; piece < 80; piece++) {
		how.status = "200";
		how.body = (const uint8_t *)"\0\0\0\0\5hello";
		how.n = 10;
		how.grpc_status = "0";
		assert_int_equal(run_call("ask", 3, &a), 0);
		assert_int_equal(a.status, GRPC_OK);
		assert_string_equal(a.message, "");
		assert_string_equal(got, "hello");
		assert_string_equal(path, "/v1.PodResourcesLister/List");
		assert_int_equal(asked_n, 8);
		assert_memory_equal(asked, "\0\0\0\0\3ask", 8);
	}
}

static void takes_an_empty_message(void **state)
{
	(void)state;
	how.status = "200";
	how.body = (const uint8_t *)"\0\0\0\0\0";
	how.n = 5;
	how.grpc_status = "0";
	answers(GRPC_OK, "", "");
}

static void takes_a_status_alone(void **state)
{
	(void)state;
	how.status = "200";
	how.alone = true;
	how.grpc_status = "12";
	how.grpc_message = "unknown service %76%31%0a%01x%4";
	answers(GRPC_UNIMPLEMENTED, "unknown service v1  x%4", "");
}

static void bounds_and_mends_words(void **state)
{
	char words[1000];
	struct grpc_answer a;

	(void)state;
	memset(words, 'w', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	memcpy(words, "%ff", 3);
	how.status = "200";
	how.alone = true;
	how.grpc_status = "13";
	how.grpc_message = words;
	assert_int_equal(run_call("", 0, &a), 0);
	assert_int_equal(strlen(a.message), sizeof(a.message) - 1);
	assert_memory_equal(a.message, "?www", 4);
}

static void does_not_take_a_strange_status(void **state)
{
	(void)state;
	how.status = "200";
	how.alone = true;
	how.grpc_status = "1e3";
	answers(-1, "", "");
}

static void fails(int error)
{
	struct grpc_answer a;

	assert_int_equal(run_call("", 0, &a), error);
}

static void refuses_what_is_no_reply(void **state)
{
	static const struct {
		const char *body;
		size_t n;
		int error;
	} bodies[] = {
		{ "\1\0\0\0\5hello", 10, -EPROTO }, /* compressed */
		{ "\0\0\0\0\4hello", 10, -EPROTO }, /* more than one message */
		{ "\0\0\0\0\6hello", 10, -EPROTO }, /* cut */
		{ "\0\0\0", 3, -EPROTO },           { "", 0, -EPROTO }, { "\0\xff\0\0\0x", 6, -EFBIG },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		how.status = "200";
		how.body = (const uint8_t *)bodies[i].body;
		how.n = bodies[i].n;
		how.grpc_status = "0";
		fails(bodies[i].error);
		end(NULL);
		begin(NULL);
	}
}

static void refuses_a_reply_without_status(void **state)
{
	(void)state;
	how.status = "200";
	how.body = (const uint8_t *)"\0\0\0\0\0";
	how.n = 5;
	fails(-EPROTO);
}

static void does_not_read_what_a_web_server_says(void **state)
{
	(void)state;
	how.status = "404";
	how.body = (const uint8_t *)"\0\0\0\0\5hello";
	how.n = 10;
	fails(-EPROTO);
	assert_string_equal(got, "");
}

static void notices_the_end_of_the_connection(void **state)
{
	(void)state;
	how.reset = NGHTTP2_REFUSED_STREAM;
	fails(-ECONNRESET);
	end(NULL);
	begin(NULL);
	how.goaway = true;
	fails(-ECONNRESET);
}

static void passes_refusal_on(void **state)
{
	(void)state;
	how.status = "200";
	how.body = (const uint8_t *)"\0\0\0\0\5hello";
	how.n = 10;
	how.grpc_status = "0";
	refuse = -EBADMSG;
	fails(-EBADMSG);
}

static void refuses_other_protocols(void **state)
{
	static const char http[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
	const uint8_t *data;
	size_t n;

	(void)state;
	/* What libnghttp2 makes of it: it says goodbye, and wants no more. */
	assert_int_equal(grpc_feed(grpc, (const uint8_t *)http, sizeof(http) - 1), 0);
	assert_int_equal(grpc_take(grpc, &data, &n), 0);
	assert_true(n > 0);
}

static void bounds_frames(void **state)
{
	static const uint8_t settings[] = { 0, 0, 0, NGHTTP2_SETTINGS, 0, 0, 0, 0, 0 };
	int r = 0;

	(void)state;
	for (unsigned i = 0; r == 0 && i < 200000; i++) {
		const uint8_t *data;
		size_t n;

		r = grpc_feed(grpc, settings, sizeof(settings));
		while (r == 0 && grpc_take(grpc, &data, &n) == 0 && n > 0)
			;
	}
	assert_int_equal(r, -EFBIG);
}

static void refuses_long_requests(void **state)
{
	char message[2048] = "";
	struct grpc_answer a;

	(void)state;
	assert_int_equal(run_call(message, sizeof(message), &a), -E2BIG);
}

/* ---- over a socket ---- */

static void waits_no_longer_than_it_may(void **state)
{
	const struct grpc_call call = { .path = "/x/y" };
	struct grpc_answer a;
	int64_t begin_ns;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	begin_ns = clock_mono_ns();
	assert_int_equal(grpc_run(grpc, pair[0], &call, begin_ns + 50 * NSEC_PER_MSEC, &a), -ETIMEDOUT);
	assert_true(clock_mono_ns() - begin_ns >= 50 * NSEC_PER_MSEC);
	/* The connection is of no more use: it would get the old reply. */
	assert_int_equal(grpc_run(grpc, pair[0], &call, clock_mono_ns() + NSEC_PER_SEC, &a), -ETIMEDOUT);
	close(pair[0]);
	close(pair[1]);
}

static void notices_a_closed_socket(void **state)
{
	const struct grpc_call call = { .path = "/x/y" };
	struct grpc_answer a;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	close(pair[1]);
	assert_int_equal(grpc_run(grpc, pair[0], &call, clock_mono_ns() + 10 * NSEC_PER_SEC, &a),
			 -ECONNRESET);
	close(pair[0]);
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(calls_and_takes_the_reply),
		CASE(takes_an_empty_message),
		CASE(takes_a_status_alone),
		CASE(bounds_and_mends_words),
		CASE(does_not_take_a_strange_status),
		CASE(refuses_what_is_no_reply),
		CASE(refuses_a_reply_without_status),
		CASE(does_not_read_what_a_web_server_says),
		CASE(notices_the_end_of_the_connection),
		CASE(passes_refusal_on),
		CASE(refuses_other_protocols),
		CASE(bounds_frames),
		CASE(refuses_long_requests),
		CASE(waits_no_longer_than_it_may),
		CASE(notices_a_closed_socket),
	};

	return cmocka_run_group_tests_name("grpc", tests, NULL, NULL);
}
