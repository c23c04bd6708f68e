// SPDX-License-Identifier: Apache-2.0
/* Passwords, without connections: what is asked of libmicrohttpd is counted. */
#include "test.h"

#include <crypt.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "serve/access.h"
#include "serve/verify.h"

enum { PATIENCE_MS = 30000 };

static struct {
	int wake_fd;
	struct verify *verify;
	struct access *access;
	unsigned suspended, resumed;
} t;

void MHD_suspend_connection(_unused_ struct MHD_Connection *connection)
{
	t.suspended++;
}

void MHD_resume_connection(_unused_ struct MHD_Connection *connection)
{
	t.resumed++;
}

/* Locked: no hash is computed. */
static pthread_mutex_t computing = PTHREAD_MUTEX_INITIALIZER;

char *crypt_rn(const char *phrase, const char *setting, _unused_ void *data, _unused_ int size)
{
	static void *own;
	static int own_size;

	pthread_mutex_lock(&computing);
	pthread_mutex_unlock(&computing);
	return crypt_ra(phrase, setting, &own, &own_size);
}

static int start(_unused_ void **state)
{
	/* Of "right". */
	static const char hash[] = "$2y$04$abcdefghijklmnopqrstuuFmEfrkTQnczNzw475xE2VhDrK1uwJiC";
	struct strbuf records;

	memset(&t, 0, sizeof(t));
	strbuf_init(&records, 0);
	access_put(&records, ACCESS_USER, "alice", hash, strlen(hash));
	assert_int_equal(access_new(records.data, records.len, &t.access, NULL), 0);
	access_forget(&records);
	t.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return verify_new(t.wake_fd, &t.verify);
}

static int stop(_unused_ void **state)
{
	verify_free(t.verify);
	access_unref(t.access);
	close(t.wake_fd);
	return 0;
}

static enum verify_answer asked(const char *user, const char *password, uint64_t address)
{
	return verify_ask(t.verify, t.access, user, password, address, NULL);
}

/* Until everybody who waited has been resumed. */
static void all_are_resumed(void)
{
	struct pollfd wake = { .fd = t.wake_fd, .events = POLLIN };
	eventfd_t n;

	while (t.resumed < t.suspended) {
		assert_int_equal(poll(&wake, 1, PATIENCE_MS), 1);
		eventfd_read(t.wake_fd, &n);
		verify_resume(t.verify);
	}
}

static void what_was_right_is_remembered(_unused_ void **state)
{
	assert_int_equal(asked("alice", "right", 1), VERIFY_WAIT);
	all_are_resumed();
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(asked("alice", "right", i), VERIFY_RIGHT);
	assert_int_equal(t.suspended, 1);
}

/* It costs as much, though the password be that of the hash that is computed with. */
static void nobody_else_has_the_password(_unused_ void **state)
{
	assert_int_equal(asked("bob", "right", 1), VERIFY_WAIT);
	assert_int_equal(asked("alice", "wrong", 1), VERIFY_WAIT);
	all_are_resumed();
	assert_int_equal(asked("bob", "right", 1), VERIFY_WRONG);
	assert_int_equal(asked("alice", "wrong", 1), VERIFY_WRONG);
	assert_int_equal(t.suspended, 2);
}

/* Nothing is resumed in between, so their places are taken. */
static void an_address_has_its_share(_unused_ void **state)
{
	char guess[] = "a";

	pthread_mutex_lock(&computing);
	for (uint64_t address = 1; address <= VERIFY_JOBS / VERIFY_JOBS_PER_ADDRESS; address++) {
		for (unsigned i = 0; i < VERIFY_JOBS_PER_ADDRESS; i++, guess[0]++)
			assert_int_equal(asked("alice", guess, address), VERIFY_WAIT);
		assert_int_equal(asked("alice", "one more", address), VERIFY_BUSY);
	}
	assert_int_equal(asked("alice", "one more", UINT64_MAX), VERIFY_BUSY);
	pthread_mutex_unlock(&computing);
	all_are_resumed();
	assert_int_equal(asked("alice", "one more", 1), VERIFY_WAIT);
}

static void the_same_password_is_verified_once(_unused_ void **state)
{
	pthread_mutex_lock(&computing);
	for (unsigned i = 0; i < VERIFY_WAITERS; i++)
		assert_int_equal(asked("alice", "right", 1), VERIFY_WAIT);
	assert_int_equal(asked("alice", "right", 1), VERIFY_BUSY);
	pthread_mutex_unlock(&computing);
	all_are_resumed();
	assert_int_equal(t.resumed, VERIFY_WAITERS);
}

static void who_waits_is_resumed_at_the_end(_unused_ void **state)
{
	assert_int_equal(asked("alice", "right", 1), VERIFY_WAIT);
	verify_free(TAKE_PTR(t.verify));
	assert_int_equal(t.resumed, 1);
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_was_right_is_remembered),    CASE(nobody_else_has_the_password),
		CASE(an_address_has_its_share),        CASE(the_same_password_is_verified_once),
		CASE(who_waits_is_resumed_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
