// SPDX-License-Identifier: Apache-2.0
/* gpusonde-kube: what the API server says about the node's pods (src/kube); the agent starts it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "helper/message.h"
#include "helper/spawn.h"
#include "kube/serve.h"

int main(int argc, char **argv)
{
	_cleanup_(kube_server_freep) struct kube_server *server = NULL;
	static struct kube_question question;
	int r;

	if (argc != 3) {
		fprintf(stderr, "gpusonde-kube is started by gpusonde: run gpusonde agent instead\n");
		return EXIT_FAILURE;
	}
	close(HELPER_PROGRAM);
	r = receive_question(HELPER_SOCKET, &question, sizeof(question), NULL);
	if (r == 0)
		r = kube_server_new(&question.settings, &server);
	if (r == 0)
		r = kube_server_confine(server, atoi(argv[2]));
	while (r == 0) {
		r = kube_answer(server, HELPER_SOCKET, &question);
		if (r == 0)
			r = kube_server_wait(server, HELPER_SOCKET);
		if (r == 0)
			r = receive_question(HELPER_SOCKET, &question, sizeof(question), NULL);
	}
	return r == -EPROTONOSUPPORT ? HELPER_FOREIGN : r == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
