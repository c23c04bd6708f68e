// SPDX-License-Identifier: Apache-2.0
/* Records as CUPTI has them, and as it never would; what is sent comes out of a socket. */
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cupti_plugin/plugin.h"
#include "cupti_socket/receive.h"

enum { ROOM = 64 };

static struct {
	_Alignas(8) uint8_t bytes[4096];
	size_t n;
	size_t at[ROOM]; /* where records begin, as CUPTI is to say */
	unsigned records, next;
	int end; /* what it says at the end */
} said;

static int next_record(uint8_t *buffer, size_t valid, void **record)
{
	(void)valid;
	if (said.next == said.records)
		return said.end;
	*record = buffer + said.at[said.next++];
	return CUPTI_SUCCESS;
}

static struct cupti cupti = { .ActivityGetNextRecord = next_record };
static struct records records;
static int listener, other_end;
static struct cupti_wire got;

static void say(const void *record, size_t n)
{
	memcpy(said.bytes + said.n, record, n);
	said.at[said.records++] = said.n;
	said.n += n;
}

/* The records that are sent for what was said. */
static unsigned take(void)
{
	struct buffer buffer = { said.bytes, said.n };
	ssize_t n;

	records_take(&cupti, &records, &buffer);
	send_rest();
	n = recv(other_end, &got, sizeof(got), MSG_DONTWAIT);
	if (n < 0)
		return 0;
	assert_true(cupti_wire_is_valid(&got, (size_t)n));
	return got.wire.n;
}

static int begin(void **state)
{
	(void)state;
	memset(&said, 0, sizeof(said));
	said.end = CUPTI_ERROR_NO_MORE;
	memset(&records, 0, sizeof(records));
	records_forget();
	launches_begin(0);
	return 0;
}

static struct activity_kernel kernel(uint64_t start, const char *name)
{
	return (struct activity_kernel){ .kind = ACTIVITY_KERNEL,
					 .start_ns = start,
					 .end_ns = start + 500,
					 .device = 1,
					 .context = 2,
					 .stream = 3,
					 .correlation = 4,
					 .name = name,
					 .node = 5,
					 .graph = 6 };
}

static void each_version_of_a_kernel(void **state)
{
	static const size_t sizes[] = { 160, 168, 176, 200, 208, 216 };
	struct callback_data call = { .site = CALLBACK_ENTER, .correlation = 4 };
	uint8_t bytes[216] = { 0 };

	(void)state;
	launches_called(NULL, CALLBACK_DRIVER, 307, &call);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct activity_kernel k = kernel(1000 + i, "work");

		memcpy(bytes, &k, sizeof(k));
		say(bytes, sizes[i]);
	}
	assert_int_equal(take(), 1 + 6);
	assert_int_equal(got.at[0].kind, CUPTI_NAME);
	assert_memory_equal(got.at[0].name.text, "work", 4);
	for (unsigned i = 1; i <= 6; i++) {
		const struct cupti_work *w = &got.at[i].work;

		assert_int_equal(w->kind, CUPTI_KERNEL);
		assert_int_equal(w->start_ns, 1000 + i - 1);
		assert_int_equal(w->end_ns, 1500 + i - 1);
		assert_int_equal(w->device, 1);
		assert_int_equal(w->stream, 3);
		assert_int_equal(w->graph, 6);
		assert_int_equal(w->node, 5);
		assert_int_equal(w->tid, getpid());
		assert_true(w->launch_ns > 0);
		assert_true(w->name == cupti_name_hash("work"));
	}
	assert_int_equal(records.bad, 0);
}

static void other_kinds(void **state)
{
	struct activity_memory m = {
		.kind = ACTIVITY_MEMCPY, .copy = 2, .bytes = 100, .start_ns = 10, .end_ns = 20
	};
	struct activity_graph g = { .kind = ACTIVITY_GRAPH, .start_ns = 30, .end_ns = 40, .graph = 7 };
	struct activity_peer p = { .kind = ACTIVITY_MEMCPY_PEER, .bytes = 9, .start_ns = 50, .end_ns = 60 };
	uint32_t unknown[8] = { 999 };

	(void)state;
	say(&m, sizeof(m));
	say(unknown, sizeof(unknown));
	m.kind = ACTIVITY_MEMSET;
	say(&m, sizeof(m));
	say(&g, sizeof(g));
	say(&p, sizeof(p));
	m.kind = ACTIVITY_MEMCPY;
	m.graph = 8;
	say(&m, 80); /* of CUDA 11.1 */
	assert_int_equal(take(), 5);
	assert_int_equal(got.at[0].kind, CUPTI_COPY);
	assert_int_equal(got.at[0].work.copy, 2);
	assert_int_equal(got.at[0].work.bytes, 100);
	assert_int_equal(got.at[0].work.launch_ns, 0); /* its call is not known */
	assert_int_equal(got.at[1].kind, CUPTI_SET);
	assert_int_equal(got.at[2].kind, CUPTI_GRAPH);
	assert_int_equal(got.at[2].work.graph, 7);
	assert_int_equal(got.at[3].kind, CUPTI_COPY);
	assert_int_equal(got.at[4].work.graph, 8);
	assert_int_equal(records.unknown, 1);
	assert_int_equal(records.bad, 0);
}

static void a_clock_that_is_not_ours(void **state)
{
	struct activity_kernel k = kernel(1000, "work");

	(void)state;
	records.offset_ns = -400;
	say(&k, sizeof(k));
	assert_int_equal(take(), 2);
	assert_int_equal(got.at[1].work.start_ns, 600);
	assert_int_equal(got.at[1].work.end_ns, 1100);
}

static void times_that_cannot_be(void **state)
{
	struct activity_kernel k = kernel(0, "work");

	(void)state;
	say(&k, sizeof(k)); /* not taken by CUPTI */
	k = kernel(1000, "work");
	k.end_ns = 999;
	say(&k, sizeof(k));
	k.end_ns = 1000 + CUPTI_DURATION_MAX_NS + 1;
	say(&k, sizeof(k));
	assert_int_equal(take(), 0);
	assert_int_equal(records.bad, 3);
}

/* Nothing is read outside of what is valid, and nothing twice. */
static void records_that_cupti_would_not_make(void **state)
{
	struct activity_kernel k = kernel(1000, "work");

	for (unsigned i = 0; i < 5; i++) {
		begin(state);
		say(&k, sizeof(k));
		say(&k, sizeof(k));
		switch (i) {
		case 0: /* the second is cut */
			said.n -= 8;
			break;
		case 1:
			said.at[1] = 0;
			break;
		case 2:
			said.at[1] = 8; /* within the first */
			break;
		case 3:
			said.at[1] = sizeof(said.bytes) + 4096;
			break;
		default:
			said.at[1] += 4;
		}
		assert_int_equal(take(), 2);
		assert_int_equal(records.bad, 1);
	}
	begin(state);
	say(&k, 2);
	assert_int_equal(take(), 0);
	assert_int_equal(records.bad, 1);
	begin(state);
	said.end = CUPTI_ERROR_INVALID_PARAMETER;
	assert_int_equal(take(), 0);
	assert_int_equal(records.bad, 1);
}

static void names(void **state)
{
	char name[CUPTI_NAME_MAX + 101];
	struct activity_kernel k = kernel(1000, name);

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	name[100] = '\0';
	say(&k, sizeof(k));
	say(&k, sizeof(k));
	assert_int_equal(take(), 2 + 2); /* told once */
	assert_int_equal(got.at[0].name.n + got.at[1].name.n, 100);
	assert_int_equal(got.at[1].name.at, CUPTI_NAME_PART);
	begin(state);
	k.name = NULL;
	say(&k, sizeof(k));
	assert_int_equal(take(), 1);
	assert_int_equal(got.at[0].work.name, 0);
	/* Cut, but its hash is that of the whole. */
	begin(state);
	name[100] = 'x';
	k.name = name;
	say(&k, sizeof(k));
	assert_int_equal(take(), CUPTI_WIRE_RECORDS);
	assert_int_equal(recv(other_end, &got, sizeof(got), MSG_DONTWAIT), sizeof(struct plugin_wire) + 80);
	assert_true(got.at[0].work.name == cupti_name_hash(name));
}

/* A call is forgotten once so many others have come. */
static void calls_are_found_by_their_number(void **state)
{
	struct callback_data call = { .site = CALLBACK_ENTER };
	struct launch launch;

	(void)state;
	for (call.correlation = 1; call.correlation <= 20000; call.correlation++)
		launches_called(NULL, CALLBACK_DRIVER, 307, &call);
	assert_true(launches_find(20000, &launch));
	assert_false(launches_find(1, &launch));
	assert_false(launches_find(0, &launch));
	call.site = 1; /* its end */
	call.correlation = 30000;
	launches_called(NULL, CALLBACK_DRIVER, 307, &call);
	assert_false(launches_find(30000, &launch));
	launches_begin(3);
	call.site = CALLBACK_ENTER;
	for (call.correlation = 1; call.correlation <= 3; call.correlation++) {
		assert_false(launches_spent());
		launches_called(NULL, CALLBACK_DRIVER, 307, &call);
	}
	assert_true(launches_spent());
}

static void *greet(void *userdata)
{
	const struct cupti_wanted wanted = { .magic = CUPTI_WIRE_MAGIC,
					     .version = CUPTI_WIRE_VERSION,
					     .launches = 7 };

	other_end = accept(listener, NULL, NULL);
	send(other_end, &wanted, sizeof(wanted), MSG_NOSIGNAL);
	return userdata;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_version_of_a_kernel, begin),
		cmocka_unit_test_setup(other_kinds, begin),
		cmocka_unit_test_setup(a_clock_that_is_not_ours, begin),
		cmocka_unit_test_setup(times_that_cannot_be, begin),
		cmocka_unit_test(records_that_cupti_would_not_make),
		cmocka_unit_test_setup(names, begin),
		cmocka_unit_test_setup(calls_are_found_by_their_number, begin),
	};
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char folder[] = "/tmp/gpusonde-cupti.XXXXXX";
	struct cupti_wanted wanted;
	pthread_t thread;
	bool connected;

	if (!mkdtemp(folder))
		return 1;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
	setenv(CUPTI_SOCKET_VARIABLE, address.sun_path, 1);
	listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (bind(listener, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 1) < 0 || pthread_create(&thread, NULL, greet, NULL) != 0)
		return 1;
	send_init();
	connected = send_connect(&wanted, 60000) && wanted.launches == 7;
	pthread_join(thread, NULL);
	unlink(address.sun_path);
	rmdir(folder);
	return connected ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
