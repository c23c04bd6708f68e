// SPDX-License-Identifier: Apache-2.0
#include "cubin/cubin.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/hashmap.h"

enum { THREADS_MAX = 16 };

/* What the threads share. Each walks all of the file; whoever comes to an image first reads its kernels. */
struct team {
	const struct cubin_source *source;
	struct cubin_limits limits; /* of one of them */
	const struct cubin_ops *ops;
	void *userdata;
	pthread_mutex_t lock;
	uint8_t *taken; /* by number */
	size_t taken_n;
	struct hashmap told; /* trouble outside of images, which all of them come to */
	int result; /* the first that is not 0 */
};

/* Under the lock. 1: somebody has it already. */
static int take(struct team *team, uint32_t number)
{
	if (number >= team->taken_n) {
		size_t n = MAX((size_t)number + 1, 2 * team->taken_n);
		uint8_t *more = realloc(team->taken, n);

		if (!more)
			return -ENOMEM;
		memset(more + team->taken_n, 0, n - team->taken_n);
		team->taken = more;
		team->taken_n = n;
	}
	if (team->taken[number])
		return 1;
	team->taken[number] = 1;
	return 0;
}

/* An error stops the others before they call again. */
static int leave(struct team *team, int r)
{
	if (r < 0)
		team->result = r;
	pthread_mutex_unlock(&team->lock);
	return r;
}

static int image(const struct cubin_image *image, void *userdata)
{
	struct team *team = userdata;
	int r;

	pthread_mutex_lock(&team->lock);
	r = team->result < 0 ? team->result : take(team, image->number);
	if (r == 0)
		r = team->ops->image(image, team->userdata);
	return leave(team, r);
}

static int kernel(const struct cubin_image *image, const struct cubin_kernel *kernel, void *userdata)
{
	struct team *team = userdata;
	int r;

	pthread_mutex_lock(&team->lock);
	r = team->result < 0 ? team->result : team->ops->kernel(image, kernel, team->userdata);
	return leave(team, r);
}

static void trouble(uint64_t offset, const char *text, void *userdata)
{
	struct team *team = userdata;
	uint64_t key = hash_bytes(text, strlen(text)) ^ hash_bytes(&offset, sizeof(offset));
	uint32_t value;

	pthread_mutex_lock(&team->lock);
	if (!hashmap_get(&team->told, key, &value)) {
		/* Without memory it is told by each. */
		(void)!hashmap_put(&team->told, key, 1);
		team->ops->trouble(offset, text, team->userdata);
	}
	pthread_mutex_unlock(&team->lock);
}

static void *work(void *userdata)
{
	struct team *team = userdata;
	const struct cubin_ops ops = { image, team->ops->kernel ? kernel : NULL,
				       team->ops->trouble ? trouble : NULL };
	int r = cubin_read(team->source, &team->limits, &ops, team);

	pthread_mutex_lock(&team->lock);
	if (team->result == 0)
		team->result = r;
	pthread_mutex_unlock(&team->lock);
	return NULL;
}

int cubin_read_parallel(const struct cubin_source *source, const struct cubin_limits *limits,
			const struct cubin_ops *ops, void *userdata, unsigned threads)
{
	struct team team = {
		.source = source, .ops = ops, .userdata = userdata, .lock = PTHREAD_MUTEX_INITIALIZER
	};
	pthread_t others[THREADS_MAX];
	unsigned n = 0;

	threads = CLAMP(threads, 1u, (unsigned)THREADS_MAX);
	team.limits.image_bytes =
		(limits && limits->image_bytes ? limits->image_bytes : CUBIN_IMAGE_BYTES) / threads;
	team.limits.metadata_bytes =
		(limits && limits->metadata_bytes ? limits->metadata_bytes : CUBIN_METADATA_BYTES) / threads;
	/* Fewer do as well. */
	while (n + 1 < threads && pthread_create(&others[n], NULL, work, &team) == 0)
		n++;
	work(&team);
	while (n > 0)
		pthread_join(others[--n], NULL);
	free(team.taken);
	hashmap_done(&team.told);
	pthread_mutex_destroy(&team.lock);
	return team.result;
}
