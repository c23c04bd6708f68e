// SPDX-License-Identifier: Apache-2.0
/*
 * Driver features that are not recognised: each is listed once, in the order of detection.
 */
#include "nvml/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MORE "; and more"

/* Whether the text has this phrase between its separators. */
static bool said(const char *text, const char *phrase)
{
	size_t length = strlen(phrase);

	for (const char *at = strstr(text, phrase); at; at = strstr(at + 1, phrase))
		if ((at == text || at[-1] == ' ') && (at[length] == '\0' || at[length] == ';'))
			return true;
	return false;
}

void reader_unrecognised(struct reader *reader, const char *format, ...)
{
	char *text = reader->reading->unrecognised, phrase[160];
	size_t used = strlen(text), room = sizeof(reader->reading->unrecognised) - used;
	va_list args;

	va_start(args, format);
	vsnprintf(phrase, sizeof(phrase), format, args);
	va_end(args);
	if (said(text, phrase) || (used >= strlen(MORE) && strcmp(text + used - strlen(MORE), MORE) == 0))
		return;
	if (strlen(phrase) + strlen("; ") + strlen(MORE) < room)
		snprintf(text + used, room, "%s%s", used ? "; " : "", phrase);
	else
		snprintf(text + used, room, MORE);
}

void unrecognised_begin(struct reader *reader)
{
	reader->reading->unrecognised[0] = '\0';
	if (reader->fake)
		return;
	for (unsigned function = NVML_FUNCTION_NONE + 1; function < NVML_FUNCTIONS; function++)
		if (nvml_function_expected(function) && !nvml_library_has(&reader->api, function))
			reader_unrecognised(reader, "no %s", nvml_function_name(function));
}

void unrecognised_call(struct reader *reader, unsigned function, enum nvml_return result)
{
	if (result == NVML_ERROR_ARGUMENT_VERSION_MISMATCH)
		reader_unrecognised(reader, "%s has another struct", nvml_function_name(function));
	else if (result == NVML_ERROR_FUNCTION_NOT_FOUND && nvml_function_expected(function) &&
		 !nvml_function_renamed(function))
		reader_unrecognised(reader, "no %s", nvml_function_name(function));
}
