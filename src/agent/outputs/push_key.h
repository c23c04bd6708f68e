// SPDX-License-Identifier: Apache-2.0
/* What a destination is shown for proof of who sends: read anew each time, since files are replaced. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "push/protocol.h"

/* Texts are borrowed; NULL: there is none. */
struct push_key {
	const char *file; /* of the key, of a token, of a password */
	const char *variable; /* of the environment, which has it if there is no file */
	const char *scheme; /* before the key: "Bearer " */
	const char *user; /* then it is a password */
	const char *certificate_file, *certificate_key_file;
	const char *headers_file; /* lines NAME: VALUE */
};

/*
 * NAME: VALUE, in @n bytes of printable ASCII: the name is a token (RFC 9110), and there is a value, since
 * libcurl takes a header without one for the wish to leave out its own of that name.
 */
bool push_header_is_valid(const char *line, size_t n);
/*
 * Sets the question's key, certificate and headers, and that it is to wait where something cannot be read:
 * then @error says what, else it is "".
 */
void push_key_read(const struct push_key *key, struct push_question *question, char *error, size_t size);
