// SPDX-License-Identifier: Apache-2.0
/* gpusonde-push: numbers to a server that collects them (src/push); the agent starts it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "helper/helper.h"
#include "helper/spawn.h"
#include "push/serve.h"

static int answer_question(struct push_server *server, struct push_question *question, int page)
{
	_cleanup_close_ int fd = page;

	return push_answer(server, HELPER_SOCKET, question, fd);
}

int main(int argc, char **argv)
{
	_cleanup_(push_server_freep) struct push_server *server = NULL;
	static struct push_question question;
	int r, page = -1;

	if (argc != 3) {
		fprintf(stderr, "gpusonde-push is started by gpusonde: run gpusonde agent instead\n");
		return EXIT_FAILURE;
	}
	close(HELPER_PROGRAM);
	/* Files of the queue have the mode that is asked for: the folder above says who may enter. */
	umask(0);
	r = push_receive(HELPER_SOCKET, &question, &page);
	if (r == 0)
		r = push_server_new(&question.settings, &server);
	if (r == 0)
		r = push_server_confine(server, atoi(argv[2]));
	while (r == 0) {
		r = answer_question(server, &question, page);
		if (r == 0)
			r = push_server_wait(server, HELPER_SOCKET);
		if (r == 0)
			r = push_receive(HELPER_SOCKET, &question, &page);
	}
	return r == -EPROTONOSUPPORT ? HELPER_FOREIGN : r == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
