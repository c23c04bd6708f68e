// SPDX-License-Identifier: Apache-2.0
/* What the helper that names kernels is asked, and what one that was taken over answers. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "symbolize/wire.h"

static void check_text(const char *text, const char *message, size_t n)
{
	if (text < message || text + strlen(text) >= message + n || !utf8_valid(text, strlen(text)))
		abort();
}

static void check_question(const char *message, size_t n)
{
	struct symbolizer_question question;

	if (wire_take_question(message, n, &question) < 0)
		return;
	if ((question.symbol && question.symbol + strlen(question.symbol) >= message + n) ||
	    (question.path && question.path + strlen(question.path) >= message + n))
		abort();
}

int fuzz_one(const uint8_t *data, size_t size)
{
	char *message = malloc(size + 1);
	struct kernel kernel;
	uint64_t id;

	if (!message)
		abort();
	memcpy(message, data, size);
	check_question(message, size);
	if (wire_take_kernel(message, size, &id, &kernel) == 0) {
		check_text(kernel.symbol, message, size);
		check_text(kernel.name, message, size);
		check_text(kernel.brief, message, size);
		check_text(kernel.file, message, size);
		if (kernel.source >= KERNEL_SOURCES)
			abort();
	}
	free(message);
	return 0;
}
