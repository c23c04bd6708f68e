// SPDX-License-Identifier: Apache-2.0
#include "serve/verify.h"

#include <crypt.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/strbuf.h"
#include "base/thread.h"
#include "serve/access.h"
#include "serve/authorization.h"

enum { STACK_BYTES = 256 << 10, HASH_BYTES = 64, KEY_BYTES = 32 };
/* An answer that nobody came for is forgotten. */
#define KEPT_NS (10 * NSEC_PER_SEC)

enum job_state { JOB_FREE, JOB_WAITING, JOB_RUNNING, JOB_DONE };

struct job {
	enum job_state state;
	bool right, known; /* the user is there */
	uint64_t address, number; /* the lowest number is the next one's */
	int64_t done_ns;
	uint8_t digest[ACCESS_DIGEST_BYTES];
	char password[AUTHORIZATION_TEXT_MAX], hash[HASH_BYTES];
	struct MHD_Connection *waiters[VERIFY_WAITERS]; /* suspended */
	unsigned n;
};

struct verify {
	int wake_fd;
	bool running; /* the thread has been started */
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows up to the jobs */
	pthread_cond_t wake;
	bool stop;
	uint64_t number;
	struct job jobs[VERIFY_JOBS];

	struct crypt_data crypt; /* the thread's */

	/* the HTTP thread's */
	uint8_t key[KEY_BYTES];
	uint8_t cache[VERIFY_CACHE][ACCESS_DIGEST_BYTES];
	unsigned cached; /* in all: the oldest is replaced */
};

/* ---- the thread ---- */

static bool is_right(struct crypt_data *data, const char *password, const char *hash)
{
	const char *computed = crypt_rn(password, hash, data, sizeof(*data));
	size_t n = strlen(hash);

	return computed && strlen(computed) == n && gnutls_memcmp(computed, hash, n) == 0;
}

static struct job *next_job(struct verify *v)
{
	struct job *next = NULL;

	for (struct job *job = v->jobs; job < v->jobs + VERIFY_JOBS; job++)
		if (job->state == JOB_WAITING && (!next || job->number < next->number))
			next = job;
	return next;
}

/* Under the lock, which it gives up while it computes; returns the CPU time. */
static int64_t compute(struct verify *v, struct job *job)
{
	char password[AUTHORIZATION_TEXT_MAX], hash[HASH_BYTES];
	int64_t begin_ns = clock_thread_cpu_ns();
	bool right;

	job->state = JOB_RUNNING;
	memcpy(password, job->password, sizeof(password));
	memcpy(hash, job->hash, sizeof(hash));
	pthread_mutex_unlock(&v->lock);
	right = is_right(&v->crypt, password, hash);
	explicit_bzero(password, sizeof(password));
	explicit_bzero(&v->crypt, sizeof(v->crypt));
	pthread_mutex_lock(&v->lock);
	job->right = right && job->known;
	explicit_bzero(job->password, sizeof(job->password));
	job->state = JOB_DONE;
	job->done_ns = clock_mono_ns();
	eventfd_write(v->wake_fd, 1);
	return clock_thread_cpu_ns() - begin_ns;
}

/* Under the lock. */
static void rest(struct verify *v, int64_t ns)
{
	int64_t until_ns = clock_mono_ns() + ns;
	const struct timespec until = { until_ns / NSEC_PER_SEC, until_ns % NSEC_PER_SEC };

	while (!v->stop && clock_mono_ns() < until_ns)
		pthread_cond_timedwait(&v->wake, &v->lock, &until);
}

static void *verify_thread(void *userdata)
{
	struct verify *v = userdata;

	pthread_mutex_lock(&v->lock);
	while (!v->stop) {
		struct job *job = next_job(v);

		if (job)
			rest(v, VERIFY_REST * compute(v, job));
		else
			pthread_cond_wait(&v->wake, &v->lock);
	}
	pthread_mutex_unlock(&v->lock);
	return NULL;
}

/* ---- the HTTP thread ---- */

int verify_new(int wake_fd, struct verify **ret_verify)
{
	struct verify *v = calloc(1, sizeof(*v));
	pthread_condattr_t attributes;

	if (!v)
		return -ENOMEM;
	if (gnutls_rnd(GNUTLS_RND_KEY, v->key, sizeof(v->key)) < 0) {
		free(v);
		return -EIO;
	}
	v->wake_fd = wake_fd;
	pthread_mutex_init(&v->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&v->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	*ret_verify = v;
	return 0;
}

static void resume(struct job *job)
{
	for (unsigned i = 0; i < job->n; i++)
		MHD_resume_connection(job->waiters[i]);
	job->n = 0;
}

void verify_free(struct verify *verify)
{
	if (!verify)
		return;
	pthread_mutex_lock(&verify->lock);
	verify->stop = true;
	pthread_cond_signal(&verify->wake);
	pthread_mutex_unlock(&verify->lock);
	if (verify->running)
		pthread_join(verify->thread, NULL);
	for (struct job *job = verify->jobs; job < verify->jobs + VERIFY_JOBS; job++)
		resume(job);
	pthread_cond_destroy(&verify->wake);
	pthread_mutex_destroy(&verify->lock);
	explicit_bzero(verify, sizeof(*verify));
	free(verify);
}

static int digest_of(const struct verify *v, const char *user, const char *password, const char *hash,
		     uint8_t ret_digest[static ACCESS_DIGEST_BYTES])
{
	char text[2 * AUTHORIZATION_TEXT_MAX + HASH_BYTES] = "";
	size_t at = 0;
	int r;

	for (unsigned i = 0; i < 3; i++) {
		const char *part = (const char *[]){ user, password, hash }[i];

		memcpy(text + at, part, strlen(part) + 1);
		at += strlen(part) + 1;
	}
	r = gnutls_hmac_fast(GNUTLS_MAC_SHA256, v->key, sizeof(v->key), text, at, ret_digest);
	explicit_bzero(text, sizeof(text));
	return r < 0 ? -EIO : 0;
}

static bool is_cached(const struct verify *v, const uint8_t digest[static ACCESS_DIGEST_BYTES])
{
	for (unsigned i = 0; i < MIN(v->cached, (unsigned)VERIFY_CACHE); i++)
		if (gnutls_memcmp(v->cache[i], digest, ACCESS_DIGEST_BYTES) == 0)
			return true;
	return false;
}

static void remember(struct verify *v, const uint8_t digest[static ACCESS_DIGEST_BYTES])
{
	memcpy(v->cache[v->cached++ % VERIFY_CACHE], digest, ACCESS_DIGEST_BYTES);
}

/* Under the lock. Answers that nobody came for leave their places. */
static struct job *find_job(struct verify *v, const uint8_t digest[static ACCESS_DIGEST_BYTES])
{
	int64_t now_ns = clock_mono_ns();
	struct job *found = NULL;

	for (struct job *job = v->jobs; job < v->jobs + VERIFY_JOBS; job++) {
		if (job->state == JOB_FREE)
			continue;
		if (gnutls_memcmp(job->digest, digest, sizeof(job->digest)) == 0)
			found = job;
		else if (job->state == JOB_DONE && job->n == 0 && now_ns - job->done_ns > KEPT_NS)
			job->state = JOB_FREE;
	}
	return found;
}

/* Under the lock. A place for one more of this address; NULL: it has its share, or there is none. */
static struct job *place_for(struct verify *v, uint64_t address)
{
	struct job *place = NULL, *oldest = NULL;
	unsigned n = 0;

	for (struct job *job = v->jobs; job < v->jobs + VERIFY_JOBS; job++) {
		bool over = job->state == JOB_DONE && job->n == 0;

		if (job->state == JOB_FREE)
			place = job;
		else if (over && (!oldest || job->number < oldest->number))
			oldest = job;
		n += job->state != JOB_FREE && !over && job->address == address;
	}
	return n >= VERIFY_JOBS_PER_ADDRESS ? NULL : place ? place : oldest;
}

static bool start_thread(struct verify *v)
{
	if (!v->running)
		v->running = thread_start(STACK_BYTES, verify_thread, v, &v->thread) == 0;
	return v->running;
}

static enum verify_answer suspend_for(struct job *job, struct MHD_Connection *connection)
{
	if (job->n == VERIFY_WAITERS)
		return VERIFY_BUSY;
	job->waiters[job->n++] = connection;
	MHD_suspend_connection(connection);
	return VERIFY_WAIT;
}

/* Under the lock. */
static enum verify_answer ask_job(struct verify *v, const struct job *wanted,
				  struct MHD_Connection *connection)
{
	struct job *job = find_job(v, wanted->digest);

	if (job && job->state == JOB_DONE)
		return job->right ? VERIFY_RIGHT : VERIFY_WRONG;
	if (!job) {
		job = place_for(v, wanted->address);
		if (!job || !start_thread(v))
			return VERIFY_BUSY;
		*job = *wanted;
		job->number = ++v->number;
		pthread_cond_signal(&v->wake);
	}
	return suspend_for(job, connection);
}

enum verify_answer verify_ask(struct verify *verify, const struct access *access, const char *user,
			      const char *password, uint64_t address, struct MHD_Connection *connection)
{
	const char *hash = access_hash(access, user);
	struct job wanted = { .state = JOB_WAITING, .known = hash, .address = address };
	enum verify_answer answer;

	if (!hash)
		hash = access_first_hash(access);
	if (!hash || strlen(hash) >= sizeof(wanted.hash) || strlen(password) >= sizeof(wanted.password) ||
	    strlen(user) >= AUTHORIZATION_TEXT_MAX)
		return VERIFY_WRONG;
	if (digest_of(verify, user, password, hash, wanted.digest) < 0)
		return VERIFY_BUSY;
	if (is_cached(verify, wanted.digest))
		return VERIFY_RIGHT;
	strcpy(wanted.hash, hash);
	strcpy(wanted.password, password);
	pthread_mutex_lock(&verify->lock);
	answer = ask_job(verify, &wanted, connection);
	pthread_mutex_unlock(&verify->lock);
	explicit_bzero(&wanted, sizeof(wanted));
	return answer;
}

void verify_resume(struct verify *verify)
{
	pthread_mutex_lock(&verify->lock);
	for (struct job *job = verify->jobs; job < verify->jobs + VERIFY_JOBS; job++) {
		if (job->state != JOB_DONE || job->n == 0)
			continue;
		/* Its place may be another one's before all who waited have asked again. */
		if (job->right)
			remember(verify, job->digest);
		resume(job);
	}
	pthread_mutex_unlock(&verify->lock);
}
