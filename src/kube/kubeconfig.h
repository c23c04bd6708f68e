// SPDX-License-Identifier: Apache-2.0
/* A kubeconfig, as kubectl has it: clusters, users, and contexts that join one of each. */
#pragma once

#include "kube/access.h"

/*
 * Fills what the context says into the zeroed @access, without reading the files that it names. -errno, and
 * @error: -EINVAL, it is no kubeconfig, or has no such context; -EOPNOTSUPP: credentials of a kind that would
 * need a program to be run.
 */
int kubeconfig_read(const char *path, const char *context, struct access *access, char *error, size_t size);
/* The same for its text; paths in it are relative to the folder of @path. */
int kubeconfig_parse(const char *path, const char *text, size_t n, const char *context, struct access *access,
		     char *error, size_t size);
/* Decodes base64, with blanks in it; NULL: it is none, or there is no memory. NUL-terminated. */
char *base64_decode(const char *text, size_t *ret_n);
