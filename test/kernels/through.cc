// SPDX-License-Identifier: Apache-2.0
/*
 * through LIBRARY [--no-throw] FUNCTION...: from within each function, which calls back (through.S), throws exceptions, takes a backtrace, and has a
 * thread cancelled. Prints {"pid":N,"functions":{FUNCTION:{"calls":N,"thrown":N,"caught":N,"cleaned":N,"frames":N,"destroyed":0|1}}}: how many
 * frames' destructors ran, how deep the backtrace was, and whether the destructor of the cancelled thread's frame outside of the function ran.
 */
#include <cstdio>
#include <cstring>

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>

typedef int function(void (*callback)(void *), void *data);

enum { TURNS = 100, FRAMES = 64 };

static int cleaned, frames, destroyed;

struct Cleanup {
	int *count;
	~Cleanup()
	{
		++*count;
	}
};

static void throws(void *data)
{
	Cleanup cleanup{ &cleaned };

	throw *(int *)data;
}

/* A frame between, which the unwinder has to clean up. */
static void call(function *f, int *what)
{
	Cleanup cleanup{ &cleaned };

	f(throws, what);
}

static int catches(function *f)
{
	int caught = 0;

	for (int i = 0; i < TURNS; i++) {
		try {
			call(f, &i);
		} catch (int what) {
			caught += what == i;
		}
	}
	return caught;
}

static void look(void *)
{
	void *addresses[FRAMES];

	frames = backtrace(addresses, FRAMES);
}

static void wait_for_the_end(void *)
{
	for (;;)
		pause();
}

static void *cancelled(void *data)
{
	Cleanup outside{ &destroyed };

	((function *)data)(wait_for_the_end, nullptr);
	return nullptr;
}

static bool cancel(function *f)
{
	pthread_t thread;

	if (pthread_create(&thread, nullptr, cancelled, (void *)f))
		return false;
	usleep(100000); /* it is in there */
	return pthread_cancel(thread) == 0 && pthread_join(thread, nullptr) == 0;
}

int main(int argc, char **argv)
{
	bool no_throw = argc > 2 && std::strcmp(argv[2], "--no-throw") == 0;
	void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW) : nullptr;
	const char *comma = "";

	if (!library) {
		std::fprintf(stderr, "through: %s\n",
			     argc > 2 ? dlerror() : "LIBRARY [--no-throw] FUNCTION...");
		return 2;
	}
	std::printf("{\"pid\":%d,\"functions\":{", getpid());
	for (int i = no_throw ? 3 : 2; i < argc; i++) {
		function *f = (function *)dlsym(library, argv[i]);
		int thrown = no_throw ? 0 : TURNS, caught;

		if (!f)
			return 2;
		cleaned = destroyed = 0;
		caught = no_throw ? 0 : catches(f);
		f(look, nullptr);
		if (!cancel(f))
			return 1;
		std::printf("%s\"%s\":{\"calls\":%d,\"thrown\":%d,\"caught\":%d,\"cleaned\":%d,\"frames\":%d,\"destroyed\":%d}",
			    comma, argv[i], thrown + 2, thrown, caught, cleaned, frames, destroyed);
		comma = ",";
	}
	std::printf("}}\n");
	return 0;
}
