// SPDX-License-Identifier: Apache-2.0
#include "kube/slices.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/json_reader.h"
#include "kube/protocol.h"
#include "kube/url.h"

#define AGAIN_NS (60 * NSEC_PER_SEC)

/* The API's versions, the newest first: that of Kubernetes 1.34, 1.33 and 1.32. */
static const char *const versions[] = { "v1", "v1beta2", "v1beta1" };

struct slices {
	struct client *client;
	struct row_list *table;
	char *paths[ARRAY_SIZE(versions)];
	unsigned version; /* that the server has, as far as is known */
	struct request *request;
	struct json_reader *reader;
	struct row_list coming;
	struct kube_device slice, device; /* what is read: the names of all of its devices; one of them */
	uint32_t first; /* row of the slice's first device */
	bool wanted;
	int64_t due_ns; /* monotonic clock */
	uint64_t digest;
	char error[200];
};

enum { SLICE = 1, DEVICE, DRIVER, POOL, NAME, UUID };

/* Up to v1beta1 a device's attributes are in a member "basic". */
static const struct json_path paths[] = {
	{ "items []", SLICE },
	{ "items [] spec driver", DRIVER },
	{ "items [] spec pool name", POOL },
	{ "items [] spec devices []", DEVICE },
	{ "items [] spec devices [] name", NAME },
	{ "items [] spec devices [] attributes uuid string", UUID },
	{ "items [] spec devices [] basic attributes uuid string", UUID },
};

static int on_slice_value(int id, const struct json_value *value, void *userdata)
{
	struct slices *s = userdata;

	switch (id) {
	case DRIVER:
		json_copy_text(s->slice.driver, sizeof(s->slice.driver), value);
		break;
	case POOL:
		json_copy_text(s->slice.pool, sizeof(s->slice.pool), value);
		break;
	case NAME:
		json_copy_text(s->device.device, sizeof(s->device.device), value);
		break;
	case UUID:
		json_copy_text(s->device.uuid, sizeof(s->device.uuid), value);
		break;
	}
	return 0;
}

static int on_slice_begin(int id, void *userdata)
{
	struct slices *s = userdata;

	if (id == DEVICE)
		memset(&s->device, 0, sizeof(s->device));
	if (id == SLICE) {
		memset(&s->slice, 0, sizeof(s->slice));
		s->first = s->coming.n;
	}
	return 0;
}

/* A slice's names may stand behind its devices. */
static void end_slice(struct slices *s)
{
	struct kube_device *list = s->coming.list;

	for (uint32_t i = s->first; i < s->coming.n; i++) {
		memcpy(list[i].driver, s->slice.driver, sizeof(list[i].driver));
		memcpy(list[i].pool, s->slice.pool, sizeof(list[i].pool));
	}
}

static int on_slice_end(int id, void *userdata)
{
	struct slices *s = userdata;
	struct kube_device *row;

	if (id == SLICE)
		end_slice(s);
	if (id != DEVICE || !s->device.device[0] || !s->device.uuid[0])
		return 0;
	row = row_list_add(&s->coming);
	if (row)
		memcpy(row, &s->device, sizeof(*row));
	return 0;
}

static int on_slices_data(const char *data, size_t n, void *userdata)
{
	struct slices *s = userdata;

	return json_feed(s->reader, data, n);
}

static void fail_slices(struct slices *s, const char *why)
{
	snprintf(s->error, sizeof(s->error), "devices of DRA (resourceslices): %.150s", why);
}

static void on_slices_done(const struct outcome *outcome, void *userdata)
{
	struct slices *s = userdata;
	struct row_list swapped = *s->table;

	s->request = NULL;
	s->due_ns = clock_mono_ns() + MAX(AGAIN_NS, outcome->retry_after_ns);
	if (outcome->status == 404 && s->version + 1 < ARRAY_SIZE(versions)) {
		s->version++;
		s->due_ns = 0;
		return;
	}
	if (outcome->error || outcome->status != 200 || json_end(s->reader) < 0) {
		if (outcome->status == 404)
			s->version = 0; /* an upgrade of the cluster may bring them */
		fail_slices(s, outcome->words[0] ? outcome->words : "the answer ended too early");
		return;
	}
	s->error[0] = '\0';
	*s->table = s->coming;
	s->coming = swapped;
	s->digest = row_list_digest(s->table);
}

void slices_want(struct slices *s, bool wanted)
{
	if (s)
		s->wanted = wanted;
}

int64_t slices_step(struct slices *s, int64_t now_ns)
{
	static const struct request_ops ops = { on_slices_data, on_slices_done };

	if (!s || s->request || !s->wanted)
		return INT64_MAX;
	if (now_ns < s->due_ns)
		return s->due_ns;
	row_list_clear(&s->coming);
	s->due_ns = now_ns + AGAIN_NS;
	if (json_reader_reset(s->reader) == 0)
		(void)client_get(s->client, s->paths[s->version], "application/json", &REQUEST_LIMITS_SHORT,
				 &ops, s, &s->request);
	return s->due_ns;
}

uint64_t slices_digest(const struct slices *s)
{
	return s ? s->digest : 0;
}

const char *slices_error(const struct slices *s)
{
	return s && s->wanted ? s->error : "";
}

static char *slices_path(const char *version, const char *node)
{
	struct strbuf url;

	strbuf_init(&url, 0);
	strbuf_addf(&url, "/apis/resource.k8s.io/%s/resourceslices?fieldSelector=spec.nodeName%%3D", version);
	url_add(&url, node);
	return strbuf_take(&url);
}

int slices_new(struct client *client, const char *node, struct row_list *table, struct slices **ret_slices)
{
	static const struct json_ops ops = { .value = on_slice_value,
					     .begin = on_slice_begin,
					     .end = on_slice_end };
	_cleanup_(slices_freep) struct slices *s = NULL;

	if (!url_is_segment(node))
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->client = client;
	s->table = table;
	s->coming = (struct row_list){ .size = table->size, .max = table->max };
	for (unsigned i = 0; i < ARRAY_SIZE(versions); i++) {
		s->paths[i] = slices_path(versions[i], node);
		if (!s->paths[i])
			return -ENOMEM;
	}
	if (json_reader_new(&ops, s, &s->reader) < 0 ||
	    json_reader_add(s->reader, "", paths, ARRAY_SIZE(paths)) < 0)
		return -ENOMEM;
	*ret_slices = TAKE_PTR(s);
	return 0;
}

void slices_free(struct slices *s)
{
	if (!s)
		return;
	client_cancel(s->client, s->request);
	json_reader_free(s->reader);
	row_list_done(&s->coming);
	for (unsigned i = 0; i < ARRAY_SIZE(versions); i++)
		free(s->paths[i]);
	free(s);
}
