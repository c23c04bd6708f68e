// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/tally.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static struct {
	const char *name;
	uint64_t count, errors[TALLY_CODES];
	int codes[TALLY_CODES];
} calls[TALLY_CALLS];
static uint32_t call_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int tally_load(const char *library)
{
	return dlopen(library, RTLD_NOW | RTLD_GLOBAL) ? 0 : -1;
}

void *tally_symbol(const char *name)
{
	const char *library =
		strncmp(name, "cuda", 4) == 0 || name[0] == '_' ? "libcudart.so.13" : "libcuda.so.1";
	void *symbol = dlsym(RTLD_DEFAULT, name);

	if (!symbol && tally_load(library) == 0)
		symbol = dlsym(RTLD_DEFAULT, name);
	if (!symbol)
		fprintf(stderr, "%s: not found; is %s in LD_LIBRARY_PATH?\n", name, library);
	return symbol;
}

/* The first of the names that are equal; the caller holds the lock. */
static uint32_t find(const char *name)
{
	for (uint32_t i = 0; i < call_count; i++) {
		if (calls[i].name == name || strcmp(calls[i].name, name) == 0)
			return i;
	}
	if (call_count < TALLY_CALLS)
		calls[call_count++].name = name;
	return call_count - 1;
}

int tally_count(const char *name, int result)
{
	tally_add(name, result, 1);
	return result;
}

void tally_add(const char *name, int result, uint64_t count)
{
	uint32_t call;

	pthread_mutex_lock(&lock);
	call = find(name);
	calls[call].count += count;
	for (int i = 0; i < TALLY_CODES && result != 0; i++) {
		if (calls[call].errors[i] == 0)
			calls[call].codes[i] = result;
		if (calls[call].codes[i] == result) {
			calls[call].errors[i] += count;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

void tally_print(FILE *file)
{
	pthread_mutex_lock(&lock);
	fprintf(file, "{\"pid\":%d,\"calls\":{", (int)getpid());
	for (uint32_t i = 0; i < call_count; i++) {
		fprintf(file, "%s\"%s\":{\"count\":%llu,\"errors\":{", i > 0 ? "," : "", calls[i].name,
			(unsigned long long)calls[i].count);
		for (int j = 0; j < TALLY_CODES && calls[i].errors[j] > 0; j++)
			fprintf(file, "%s\"%d\":%llu", j > 0 ? "," : "", calls[i].codes[j],
				(unsigned long long)calls[i].errors[j]);
		fprintf(file, "}}");
	}
	fprintf(file, "}}\n");
	fflush(file);
	pthread_mutex_unlock(&lock);
}

void tally_reset(void)
{
	memset(calls, 0, sizeof(calls));
	call_count = 0;
}
