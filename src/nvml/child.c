// SPDX-License-Identifier: Apache-2.0
#include "nvml/child.h"

#include <errno.h>
#include <unistd.h>

#include "base/memory.h"

/* Half a megabyte, of which only the pages for existing devices and processes are touched. */
static struct reader reader;

/* The first pass touches what no other does; later ones what is rarely read. */
enum { DROP_PASSES = 60 };

static ssize_t read_command(int socket, unsigned char *ret_command)
{
	ssize_t n;

	do
		n = read(socket, ret_command, 1);
	while (n < 0 && errno == EINTR);
	return n;
}

static ssize_t answer(int socket)
{
	static const unsigned char ready = NVML_ANSWER_READY;
	ssize_t n;

	do
		n = write(socket, &ready, 1);
	while (n < 0 && errno == EINTR);
	return n;
}

int child_serve(struct nvml_shared *shared, int socket, const char *library)
{
	unsigned char command;
	int status = NVML_CHILD_OK;
	unsigned passes = 0;

	reader_init(&reader, shared, library);
	while (read_command(socket, &command) == 1) {
		if (command != NVML_COMMAND_READ) {
			status = NVML_CHILD_USAGE;
			break;
		}
		reader_pass(&reader);
		if (answer(socket) != 1)
			break;
		if (passes++ % DROP_PASSES == 0)
			memory_give_back();
	}
	reader_done(&reader);
	return status;
}
