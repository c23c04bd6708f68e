// SPDX-License-Identifier: Apache-2.0
#include "kube/kinds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/json_reader.h"
#include "kube/url.h"

#define FOUND_NS (600 * NSEC_PER_SEC)
#define MISSING_NS (60 * NSEC_PER_SEC)
#define FAILED_NS (30 * NSEC_PER_SEC)

/* A kind that the API was asked about. */
struct asked {
	char api_version[128], kind[64];
	char plural[64]; /* "": it has none */
	bool namespaced;
	int64_t until_ns; /* monotonic clock */
};

enum { ID_RESOURCE = 1, ID_RESOURCE_NAME, ID_RESOURCE_KIND, ID_RESOURCE_NAMESPACED };

struct kinds {
	struct client *client;
	struct asked list[KINDS_MAX];
	uint32_t n, next; /* which is replaced when all are in use */
	struct request *request;
	struct json_reader *reader;
	void (*done)(void *userdata);
	void *userdata;
	struct asked asking;
	/* the resource at hand */
	char name[64], kind[64];
	bool namespaced;
};

static const struct kind_row rows[] = {
#define KIND(group_, kind_, plural_, ...) { .group = group_, .kind = kind_, .plural = plural_, __VA_ARGS__ },
#include "kube/kinds.def"
};

static bool is_of_group(const char *api_version, const char *group)
{
	const char *slash = strchr(api_version, '/');
	size_t n = slash ? (size_t)(slash - api_version) : 0;

	return strlen(group) == n && memcmp(api_version, group, n) == 0;
}

const struct kind_row *kind_known(const struct owner_ref *ref)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (STRV_EQ(rows[i].kind, ref->kind) && is_of_group(ref->api_version, rows[i].group))
			return &rows[i];
	return NULL;
}

/* ---- paths ---- */

/* "/apis/apps/v1", "/api/v1". */
static int add_version(struct strbuf *path, const char *api_version)
{
	const char *slash = strchr(api_version, '/');
	char group[128] = "";

	if (slash)
		memcpy(group, api_version, MIN((size_t)(slash - api_version), sizeof(group) - 1));
	if ((slash && !url_is_segment(group)) || !url_is_segment(slash ? slash + 1 : api_version))
		return -EINVAL;
	strbuf_adds(path, slash ? "/apis/" : "/api");
	url_add(path, group);
	strbuf_addc(path, '/');
	url_add(path, slash ? slash + 1 : api_version);
	return 0;
}

static int path_of_object(const struct owner_ref *ref, const char *plural, const char *namespace,
			  char *ret_path, size_t size)
{
	struct strbuf path;
	int r;

	strbuf_init(&path, size - 1);
	r = add_version(&path, ref->api_version);
	if (r == 0 && namespace) {
		strbuf_adds(&path, "/namespaces/");
		url_add(&path, namespace);
	}
	strbuf_addc(&path, '/');
	url_add(&path, plural);
	strbuf_addc(&path, '/');
	url_add(&path, ref->name);
	if (r == 0 && (path.failed || !url_is_segment(ref->name)))
		r = -EINVAL;
	if (r == 0)
		memcpy(ret_path, path.data, path.len + 1);
	strbuf_done(&path);
	return r;
}

static struct asked *find_asked(struct kinds *kinds, const struct owner_ref *ref)
{
	for (uint32_t i = 0; i < kinds->n; i++)
		if (STRV_EQ(kinds->list[i].kind, ref->kind) &&
		    STRV_EQ(kinds->list[i].api_version, ref->api_version))
			return &kinds->list[i];
	return NULL;
}

enum kind_place kinds_find(struct kinds *kinds, const struct owner_ref *ref, const char *namespace,
			   int64_t now_ns, char *ret_path, size_t size)
{
	const struct kind_row *row = kind_known(ref);
	const struct asked *asked;

	if (row)
		return path_of_object(ref, row->plural, namespace, ret_path, size) < 0 ? KIND_MISSING :
											 KIND_FOUND;
	asked = find_asked(kinds, ref);
	if (!asked || now_ns >= asked->until_ns)
		return kinds->request ? KIND_PENDING : KIND_WANTED;
	if (!asked->plural[0] ||
	    path_of_object(ref, asked->plural, asked->namespaced ? namespace : NULL, ret_path, size) < 0)
		return KIND_MISSING;
	return KIND_FOUND;
}

/* ---- asking ---- */

static int on_resource_value(int id, const struct json_value *value, void *userdata)
{
	struct kinds *kinds = userdata;

	if (id == ID_RESOURCE_NAME)
		json_copy_text(kinds->name, sizeof(kinds->name), value);
	else if (id == ID_RESOURCE_KIND)
		json_copy_text(kinds->kind, sizeof(kinds->kind), value);
	else if (id == ID_RESOURCE_NAMESPACED)
		kinds->namespaced = value->kind == JSON_VALUE_BOOL && value->yes;
	return 0;
}

static int on_resource_begin(_unused_ int id, void *userdata)
{
	struct kinds *kinds = userdata;

	kinds->name[0] = kinds->kind[0] = '\0';
	kinds->namespaced = false;
	return 0;
}

/* "jobs/status" is of the kind Job, too. */
static int on_resource_end(_unused_ int id, void *userdata)
{
	struct kinds *kinds = userdata;

	if (!STRV_EQ(kinds->kind, kinds->asking.kind) || strchr(kinds->name, '/') ||
	    !url_is_segment(kinds->name))
		return 0;
	memcpy(kinds->asking.plural, kinds->name, sizeof(kinds->name));
	kinds->asking.namespaced = kinds->namespaced;
	return 0;
}

static int on_kinds_data(const char *data, size_t n, void *userdata)
{
	struct kinds *kinds = userdata;

	return json_feed(kinds->reader, data, n);
}

static struct asked *place_for(struct kinds *kinds, const struct asked *asked)
{
	struct owner_ref ref = { 0 };
	struct asked *at;

	memcpy(ref.api_version, asked->api_version, sizeof(asked->api_version));
	memcpy(ref.kind, asked->kind, sizeof(asked->kind));
	at = find_asked(kinds, &ref);
	if (at)
		return at;
	return kinds->n < KINDS_MAX ? &kinds->list[kinds->n++] : &kinds->list[kinds->next++ % KINDS_MAX];
}

static void on_kinds_done(const struct outcome *outcome, void *userdata)
{
	struct kinds *kinds = userdata;
	struct asked *asked = &kinds->asking;
	bool answered = !outcome->error && outcome->status == 200 && json_end(kinds->reader) == 0;

	kinds->request = NULL;
	if (!answered)
		asked->plural[0] = '\0';
	asked->until_ns = clock_mono_ns() + (answered && asked->plural[0]       ? FOUND_NS :
					     answered || outcome->status == 404 ? MISSING_NS :
										  FAILED_NS);
	*place_for(kinds, asked) = *asked;
	kinds->done(kinds->userdata);
}

int kinds_ask(struct kinds *kinds, const struct owner_ref *ref, void (*done)(void *userdata), void *userdata)
{
	static const struct request_ops ops = { on_kinds_data, on_kinds_done };
	struct strbuf path;
	int r;

	if (kinds->request)
		return -EBUSY;
	kinds->done = done;
	kinds->userdata = userdata;
	kinds->asking = (struct asked){ 0 };
	memcpy(kinds->asking.api_version, ref->api_version, sizeof(ref->api_version));
	memcpy(kinds->asking.kind, ref->kind, sizeof(ref->kind));
	strbuf_init(&path, 512);
	r = add_version(&path, ref->api_version);
	if (r == 0 && path.failed)
		r = -EINVAL;
	if (r == 0)
		r = json_reader_reset(kinds->reader);
	if (r == 0)
		r = client_get(kinds->client, path.data, "application/json", &REQUEST_LIMITS_SHORT, &ops,
			       kinds, &kinds->request);
	strbuf_done(&path);
	if (r < 0) { /* not again for a while */
		kinds->asking.until_ns = clock_mono_ns() + MISSING_NS;
		*place_for(kinds, &kinds->asking) = kinds->asking;
	}
	return r;
}

/* ---- life ---- */

int kinds_new(struct client *client, struct kinds **ret_kinds)
{
	static const struct json_ops ops = { on_resource_value, on_resource_begin, on_resource_end };
	static const struct json_path paths[] = {
		{ "resources []", ID_RESOURCE },
		{ "resources [] name", ID_RESOURCE_NAME },
		{ "resources [] kind", ID_RESOURCE_KIND },
		{ "resources [] namespaced", ID_RESOURCE_NAMESPACED },
	};
	_cleanup_(kinds_freep) struct kinds *kinds = calloc(1, sizeof(*kinds));

	if (!kinds || json_reader_new(&ops, kinds, &kinds->reader) < 0)
		return -ENOMEM;
	kinds->client = client;
	if (json_reader_add(kinds->reader, "", paths, ARRAY_SIZE(paths)) < 0)
		return -ENOMEM;
	*ret_kinds = TAKE_PTR(kinds);
	return 0;
}

void kinds_free(struct kinds *kinds)
{
	if (!kinds)
		return;
	client_cancel(kinds->client, kinds->request);
	json_reader_free(kinds->reader);
	free(kinds);
}
