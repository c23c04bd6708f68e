// SPDX-License-Identifier: Apache-2.0
#include "inference/serve.h"

#include <errno.h>
#include <stdlib.h>

#include "base/macro.h"
#include "inference/fetch.h"

/* Memory: libcurl with its TLS library, of which nothing is used, and a line of one page. */
const struct confinement inference_confinement = {
	.name = "gpusonde-infer",
	.connects = true,
	.memory_bytes = UINT64_C(256) << 20,
};

static bool is_sane(const struct pages_question *question)
{
	if (question->n > SERVERS_MAX)
		return false;
	for (uint32_t i = 0; i < question->n; i++)
		if (question->asked[i].kind >= SERVER_KINDS || question->asked[i].port > UINT16_MAX)
			return false;
	return true;
}

static int answer_all(CURL *easy, int channel, const struct pages_question *question)
{
	static struct page_answer answer;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < question->n; i++) {
		page_fetch(easy, &question->asked[i], &answer);
		answer.index = i;
		r = send_with_fd(channel, &answer, sizeof(answer), -1);
	}
	return r;
}

int inference_serve(int channel, pid_t owner)
{
	static struct pages_question question;
	CURL *easy = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_easy_init() : NULL;
	int r = easy ? confine(&inference_confinement, owner) : -ENOMEM;

	while (r == 0) {
		r = receive_question(channel, &question, sizeof(question), NULL);
		if (r == 0)
			r = is_sane(&question) ? answer_all(easy, channel, &question) : -EBADMSG;
	}
	curl_easy_cleanup(easy);
	return r == 1 ? EXIT_SUCCESS : r == -EPROTONOSUPPORT ? HELPER_FOREIGN : EXIT_FAILURE;
}
