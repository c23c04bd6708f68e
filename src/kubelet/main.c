// SPDX-License-Identifier: Apache-2.0
/* gpusonde-kubelet: what kubelet says about the node's pods (src/kubelet); the agent starts it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "helper/spawn.h"
#include "kubelet/serve.h"

int main(int argc, char **argv)
{
	_cleanup_(kubelet_server_freep) struct kubelet_server *server = NULL;
	static struct kubelet_question question;
	int r;

	if (argc != 3) {
		fprintf(stderr, "gpusonde-kubelet is started by gpusonde: run gpusonde agent instead\n");
		return EXIT_FAILURE;
	}
	close(HELPER_PROGRAM);
	r = kubelet_receive(HELPER_SOCKET, &question);
	if (r == 0)
		r = kubelet_server_new(&question, &server);
	if (r == 0)
		r = confine(&kubelet_confinement, atoi(argv[2]));
	while (r == 0) {
		r = kubelet_answer(server, HELPER_SOCKET, &question);
		if (r == 0)
			r = kubelet_wait(server, HELPER_SOCKET);
		if (r == 0)
			r = kubelet_receive(HELPER_SOCKET, &question);
	}
	return r == -EPROTONOSUPPORT ? HELPER_FOREIGN : r == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
