// SPDX-License-Identifier: Apache-2.0
#include "kube/client.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/text.h"
#include "config.h"
#include "base/json_reader.h"
#include "net/failure.h"

enum {
	CONNECT_MS = 10000,
	PIECE_BYTES = 16 << 10, /* of an answer at a time */
	CONNECTIONS = 4, /* that are kept */
	REFUSAL_BYTES = 16 << 10, /* of an answer that is none, which are looked at for its words */
	/* A peer that is gone without a word: found out after half a minute and three tries. */
	KEEPALIVE_S = 30,
	KEEPALIVE_TRY_S = 10,
	KEEPALIVE_TRIES = 3,
};
#define RETRY_AFTER_MAX_S 600

struct client {
	CURLM *multi;
	struct access *access;
	struct request *requests; /* a list */
	struct client_figures figures;
};

struct request {
	struct client *client;
	struct request *next;
	CURL *easy;
	struct curl_slist *headers, *connect_to;
	struct request_ops ops;
	void *userdata;
	bool begun; /* the first byte of the answer has come */
	long status;
	int error; /* of data() */
	size_t refusal_bytes;
	struct json_reader *refusal; /* reads a Status for its message */
	char message[200];
	char curl_words[CURL_ERROR_SIZE];
};

/* ---- what comes ---- */

static int take_message(_unused_ int id, const struct json_value *value, void *userdata)
{
	struct request *request = userdata;
	size_t n = MIN(value->n, sizeof(request->message) - 1);

	if (value->kind != JSON_VALUE_TEXT)
		return 0;
	memcpy(request->message, value->text, n);
	request->message[n] = '\0';
	return 0;
}

/* What the server says instead of an answer: words at most. */
static void read_refusal(struct request *request, const char *data, size_t n)
{
	static const struct json_ops ops = { .value = take_message };
	static const struct json_path path = { "message", 1 };

	if (!request->refusal && (json_reader_new(&ops, request, &request->refusal) < 0 ||
				  json_reader_add(request->refusal, "", &path, 1) < 0))
		return;
	request->refusal_bytes += n;
	if (request->refusal_bytes <= REFUSAL_BYTES)
		(void)json_feed(request->refusal, data, n);
}

static size_t on_body(char *data, size_t size, size_t n, void *userdata)
{
	struct request *request = userdata;

	n *= size;
	request->client->figures.bytes += n;
	if (request->status != 200) {
		read_refusal(request, data, n);
		return request->refusal_bytes > REFUSAL_BYTES ? 0 : n;
	}
	if (request->ops.data)
		request->error = request->ops.data(data, n, request->userdata);
	return request->error ? 0 : n;
}

static size_t on_header(_unused_ char *data, size_t size, size_t n, void *userdata)
{
	struct request *request = userdata;

	request->client->figures.bytes += n * size;
	curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &request->status);
	return n * size;
}

bool request_is_answered(const struct request *request)
{
	return request && request->status == 200;
}

/* ---- how it is asked ---- */

static int on_socket(_unused_ void *userdata, curl_socket_t fd, curlsocktype purpose)
{
	const int tries = KEEPALIVE_TRIES;

	if (purpose == CURLSOCKTYPE_IPCXN)
		setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
	return CURL_SOCKOPT_OK;
}

static void set_blob(CURL *easy, CURLoption option, const struct access_file *file)
{
	struct curl_blob blob = { file->data, file->n, CURL_BLOB_COPY };

	if (file->data)
		curl_easy_setopt(easy, option, &blob);
}

static void set_tls(CURL *easy, const struct access *access)
{
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, access->insecure ? 0L : 1L);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, access->insecure ? 0L : 2L);
	if (access->ca.data) {
		/* Of the system's certificates none is trusted then. */
		curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
		set_blob(easy, CURLOPT_CAINFO_BLOB, &access->ca);
	}
	set_blob(easy, CURLOPT_SSLCERT_BLOB, &access->certificate);
	set_blob(easy, CURLOPT_SSLKEY_BLOB, &access->key);
}

static void set_limits(CURL *easy, const struct request_limits *limits)
{
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME,
			 (long)MAX(limits->quiet_ns / NSEC_PER_SEC, INT64_C(1)));
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)MAX(limits->whole_ns / NSEC_PER_MSEC, INT64_C(1)));
	curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)PIECE_BYTES);
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_TRY_S);
	curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
}

static void set_callbacks(struct request *request)
{
	CURL *easy = request->easy;

	curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->curl_words);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, request);
}

static int add_line(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (!longer)
		return -ENOMEM;
	*list = longer;
	return 0;
}

static int set_headers(struct request *request, const char *accept)
{
	const struct access *access = request->client->access;
	char line[256], *token;
	int n, r;

	snprintf(line, sizeof(line), "Accept: %s", accept);
	r = add_line(&request->headers, line);
	if (r == 0 && access->token.data && strncmp(access->server, "https://", 8) == 0) {
		n = asprintf(&token, "Authorization: Bearer %s", access->token.data);
		if (n < 0)
			return -ENOMEM;
		r = add_line(&request->headers, token);
		explicit_bzero(token, (size_t)n);
		free(token);
	}
	curl_easy_setopt(request->easy, CURLOPT_USERAGENT, "gpusonde/" GPUSONDE_VERSION);
	curl_easy_setopt(request->easy, CURLOPT_HTTPHEADER, request->headers);
	return r;
}

static bool has_port(const char *host)
{
	const char *bracket = strchr(host, ']');

	return strchr(bracket ? bracket : host, ':') != NULL;
}

/* With another name for the certificate: that is asked for, at the address of the server. */
static int set_address(struct request *request, const char *path)
{
	const struct access *access = request->client->access;
	const char *host = strstr(access->server, "://") + 3;
	_cleanup_free_ char *url = NULL, *connect_to = NULL;
	int n;

	if (access->tls_name)
		n = asprintf(&url, "https://%s%s", access->tls_name, path);
	else
		n = asprintf(&url, "%s%s", access->server, path);
	if (n < 0) {
		url = NULL;
		return -ENOMEM;
	}
	curl_easy_setopt(request->easy, CURLOPT_URL, url);
	curl_easy_setopt(request->easy, CURLOPT_PROXY, access->proxy ? access->proxy : "");
	if (!access->tls_name)
		return 0;
	if (asprintf(&connect_to, "::%.*s%s", (int)strcspn(host, "/"), host, has_port(host) ? "" : ":443") <
	    0) {
		connect_to = NULL;
		return -ENOMEM;
	}
	if (add_line(&request->connect_to, connect_to) < 0)
		return -ENOMEM;
	curl_easy_setopt(request->easy, CURLOPT_CONNECT_TO, request->connect_to);
	return 0;
}

static void request_free(struct request *request)
{
	if (!request)
		return;
	curl_easy_cleanup(request->easy);
	/* One of them has the token. */
	for (struct curl_slist *line = request->headers; line; line = line->next)
		explicit_bzero(line->data, strlen(line->data));
	curl_slist_free_all(request->headers);
	curl_slist_free_all(request->connect_to);
	json_reader_free(request->refusal);
	free(request);
}
DEFINE_CLEANUP(struct request *, request_free, request_freep)

int client_get(struct client *client, const char *path, const char *accept,
	       const struct request_limits *limits, const struct request_ops *ops, void *userdata,
	       struct request **ret_request)
{
	_cleanup_(request_freep) struct request *request = calloc(1, sizeof(*request));
	int r;

	if (!request)
		return -ENOMEM;
	request->client = client;
	request->ops = *ops;
	request->userdata = userdata;
	request->easy = curl_easy_init();
	if (!request->easy)
		return -ENOMEM;
	set_limits(request->easy, limits);
	set_tls(request->easy, client->access);
	set_callbacks(request);
	r = set_headers(request, accept);
	if (r == 0)
		r = set_address(request, path);
	if (r == 0 && curl_multi_add_handle(client->multi, request->easy) != CURLM_OK)
		r = -ENOMEM;
	if (r < 0)
		return r;
	client->figures.requests++;
	request->next = client->requests;
	client->requests = request;
	*ret_request = TAKE_PTR(request);
	return 0;
}

/* ---- how it ends ---- */

static void unlink_request(struct client *client, struct request *request)
{
	struct request **at = &client->requests;

	while (*at && *at != request)
		at = &(*at)->next;
	if (*at)
		*at = request->next;
	curl_multi_remove_handle(client->multi, request->easy);
}

void client_cancel(struct client *client, struct request *request)
{
	if (!request)
		return;
	unlink_request(client, request);
	request_free(request);
}

static void explain_error(const struct request *request, CURLcode code, struct outcome *outcome)
{
	static const struct net_places places = { {
		[NET_PLACE_NAME] = "kube.server, or tls-server-name of the kubeconfig",
		[NET_PLACE_CA] = "ca.crt of the service account, or certificate-authority of the kubeconfig",
		[NET_PLACE_CERTIFICATE] = "client-certificate of the kubeconfig",
	} };
	const char *words = *request->curl_words ? request->curl_words : curl_easy_strerror(code);

	outcome->error = -EIO;
	outcome->failure = net_failure_of(request->easy, code, words);
	net_explain(outcome->failure, &places, words, outcome->words, sizeof(outcome->words));
}

static const char *words_of_data(int error)
{
	switch (error) {
	case -EBADMSG:
		return "what it sends is not what the API sends";
	case -EFBIG:
		return "it sends a text of more than 2 MiB";
	case -E2BIG:
		return "it sends maps and lists in each other, more than 64 deep";
	default:
		return strerror(-error);
	}
}

static void explain_status(const struct request *request, struct outcome *outcome)
{
	static const struct {
		long status;
		const char *words;
	} known[] = {
		{ 401, "it does not know who asks (401)" }, { 403, "not permitted (403)" },
		{ 404, "there is no such thing (404)" },    { 410, "what was asked for is too old (410)" },
		{ 429, "it has too much to do (429)" },
	};
	char other[48];
	const char *words = other;

	snprintf(other, sizeof(other), "it answers with status %ld", request->status);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].status == request->status)
			words = known[i].words;
	snprintf(outcome->words, sizeof(outcome->words), "%s%s%s", words, *request->message ? ": " : "",
		 request->message);
}

static void end_request(struct client *client, struct request *request, CURLcode code)
{
	struct outcome outcome = { .status = request->status };
	curl_off_t seconds = 0;

	curl_easy_getinfo(request->easy, CURLINFO_RETRY_AFTER, &seconds);
	outcome.retry_after_ns =
		(int64_t)CLAMP(seconds, (curl_off_t)0, (curl_off_t)RETRY_AFTER_MAX_S) * NSEC_PER_SEC;
	if (request->error) {
		outcome.error = request->error;
		outcome.failure = request->error == -ENOMEM ? NET_FAILED_LOCAL : NET_FAILED_BODY;
		snprintf(outcome.words, sizeof(outcome.words), "%s", words_of_data(request->error));
	} else if (request->status && request->status != 200) {
		outcome.failure = NET_FAILED_STATUS;
		explain_status(request, &outcome);
	} else if (code != CURLE_OK) {
		explain_error(request, code, &outcome);
	}
	utf8_sanitize(outcome.words);
	unlink_request(client, request);
	request->ops.done(&outcome, request->userdata);
	request_free(request);
}

void client_step(struct client *client)
{
	CURLMsg *message;
	int running, left;

	curl_multi_perform(client->multi, &running);
	while ((message = curl_multi_info_read(client->multi, &left))) {
		CURLcode code = message->data.result;
		struct request *request = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
		end_request(client, request, code);
	}
}

bool client_wait(struct client *client, int fd, int timeout_ms)
{
	struct curl_waitfd wait = { .fd = fd, .events = CURL_WAIT_POLLIN };
	int n;

	curl_multi_poll(client->multi, &wait, 1, timeout_ms, &n);
	return wait.revents != 0;
}

/* ---- life ---- */

static CURLM *new_multi(void)
{
	CURLM *multi = curl_multi_init();

	if (multi)
		curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS);
	return multi;
}

/* libcurl looks at what a connection was made with, certificates' bytes included, before it uses it again. */
void client_close_idle(struct client *client)
{
	CURLM *fresh;

	if (client->requests)
		return;
	fresh = new_multi();
	if (!fresh)
		return;
	curl_multi_cleanup(client->multi);
	client->multi = fresh;
}

void client_take_figures(struct client *client, struct client_figures *ret_figures)
{
	*ret_figures = client->figures;
	client->figures = (struct client_figures){ 0 };
}

int client_new(struct access *access, struct client **ret_client)
{
	_cleanup_(client_freep) struct client *client = calloc(1, sizeof(*client));

	if (!client || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	client->access = access;
	client->multi = new_multi();
	if (!client->multi)
		return -ENOMEM;
	*ret_client = TAKE_PTR(client);
	return 0;
}

void client_free(struct client *client)
{
	if (!client)
		return;
	while (client->requests)
		client_cancel(client, client->requests);
	curl_multi_cleanup(client->multi);
	free(client);
}
