// SPDX-License-Identifier: Apache-2.0
#include "kube/walk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/json_reader.h"

#define FOUND_NS (600 * NSEC_PER_SEC)
#define MISSING_NS (60 * NSEC_PER_SEC)
#define FAILED_NS (30 * NSEC_PER_SEC)
#define IN_USE_NS (60 * NSEC_PER_SEC) /* what somebody asked for in this time is not displaced */
#define NEVER INT64_MAX

static const char metadata_only[] =
	"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json";

enum known { NOT_KNOWN, FOUND, MISSING, FAILED };

/* An object, and what controls it. */
struct object {
	struct owner_ref ref;
	char namespace[64];
	enum known known;
	struct owner_ref next; /* FOUND; uid "": nothing */
	int64_t until_ns, used_ns; /* monotonic clock */
};

enum {
	ID_OBJECT_UID = 1,
	ID_REF,
	ID_REF_API,
	ID_REF_KIND,
	ID_REF_NAME,
	ID_REF_UID,
	ID_REF_CONTROLS,
};

struct walk {
	struct client *client;
	struct kinds *kinds;
	struct object *list;
	uint32_t n, room;
	double tokens;
	int64_t filled_ns;
	uint64_t changes;
	uint32_t waiting; /* chains that ended at an object for which there was no room */
	struct walk_figures figures;
	/* what is asked for */
	struct request *request;
	struct json_reader *reader;
	char asking[64]; /* its UID */
	bool from_cache;
	char path[1024];
	char uid[64]; /* as the answer says */
	struct owner_ref next, ref; /* the same; the reference at hand */
	bool controls;
};

/* ---- what is known ---- */

static struct object *find_object(struct walk *walk, const char *uid)
{
	for (uint32_t i = 0; i < walk->n; i++)
		if (STRV_EQ(walk->list[i].ref.uid, uid))
			return &walk->list[i];
	return NULL;
}

/* NULL: all places are in use. */
static struct object *place_for_object(struct walk *walk, int64_t now_ns)
{
	struct object *oldest = NULL;

	if (walk->n < walk->room)
		return &walk->list[walk->n++];
	for (uint32_t i = 0; i < walk->n; i++)
		if (!oldest || walk->list[i].used_ns < oldest->used_ns)
			oldest = &walk->list[i];
	return oldest && now_ns - oldest->used_ns >= IN_USE_NS ? oldest : NULL;
}

static struct object *use_object(struct walk *walk, const struct owner_ref *ref, const char *namespace,
				 int64_t now_ns)
{
	struct object *object = find_object(walk, ref->uid);

	if (!object) {
		object = place_for_object(walk, now_ns);
		if (!object) {
			walk->waiting++;
			return NULL;
		}
		memset(object, 0, sizeof(*object));
		object->ref = *ref;
		snprintf(object->namespace, sizeof(object->namespace), "%s", namespace);
	}
	object->used_ns = now_ns;
	return object;
}

/* Whether an object is among the first @n of the chain. */
static bool was_met(const struct owner_ref *const *chain, unsigned n, const char *uid)
{
	for (unsigned i = 0; i < n; i++)
		if (STRV_EQ(chain[i]->uid, uid))
			return true;
	return false;
}

static bool is_lost(const struct owner_ref *ref)
{
	const struct kind_row *row = kind_known(ref);

	return row && row->lost;
}

static bool is_top(const struct owner_ref *ref)
{
	const struct kind_row *row = kind_known(ref);

	return row && row->top;
}

static bool find_top(struct walk *walk, const struct node_pod *pod, int64_t now_ns,
		     struct workload_owner *ret_owner)
{
	const struct owner_ref *chain[WALK_DEPTH_MAX];
	const struct owner_ref *ref = &pod->owner;

	for (unsigned n = 0; ref->uid[0] && n < WALK_DEPTH_MAX && !was_met(chain, n, ref->uid); n++) {
		const struct object *object;

		*ret_owner = (struct workload_owner){ ref->kind, ref->name, false };
		if (is_top(ref))
			return true;
		object = use_object(walk, ref, pod->namespace, now_ns);
		if (!object || object->known == NOT_KNOWN)
			return false;
		if (object->known != FOUND && n == 0 && is_lost(ref))
			*ret_owner = (struct workload_owner){ "Pod", pod->name, true };
		else if (object->known != FOUND)
			ret_owner->fallback = true;
		if (object->known != FOUND)
			return true;
		chain[n] = ref;
		ref = &object->next;
	}
	return true;
}

bool walk_find(struct walk *walk, const struct node_pod *pod, int64_t now_ns,
	       struct workload_owner *ret_owner)
{
	*ret_owner = (struct workload_owner){ "Pod", pod->name, false };
	if (!find_top(walk, pod, now_ns, ret_owner))
		return false;
	if (pod->label[0])
		ret_owner->name = pod->label;
	return true;
}

/* ---- answers ---- */

static int on_object_value(int id, const struct json_value *value, void *userdata)
{
	struct walk *walk = userdata;

	if (id == ID_OBJECT_UID)
		json_copy_text(walk->uid, sizeof(walk->uid), value);
	else if (id == ID_REF_API)
		json_copy_text(walk->ref.api_version, sizeof(walk->ref.api_version), value);
	else if (id == ID_REF_KIND)
		json_copy_text(walk->ref.kind, sizeof(walk->ref.kind), value);
	else if (id == ID_REF_NAME)
		json_copy_text(walk->ref.name, sizeof(walk->ref.name), value);
	else if (id == ID_REF_UID)
		json_copy_text(walk->ref.uid, sizeof(walk->ref.uid), value);
	else if (id == ID_REF_CONTROLS)
		walk->controls = value->kind == JSON_VALUE_BOOL && value->yes;
	return 0;
}

static int on_ref_begin(_unused_ int id, void *userdata)
{
	struct walk *walk = userdata;

	walk->ref = (struct owner_ref){ 0 };
	walk->controls = false;
	return 0;
}

static int on_ref_end(_unused_ int id, void *userdata)
{
	struct walk *walk = userdata;

	if (walk->controls && walk->ref.uid[0] && walk->ref.name[0] && walk->ref.kind[0])
		walk->next = walk->ref;
	return 0;
}

static int on_object_data(const char *data, size_t n, void *userdata)
{
	struct walk *walk = userdata;

	return json_feed(walk->reader, data, n);
}

static void settle(struct walk *walk, enum known known, int64_t for_ns)
{
	struct object *object = find_object(walk, walk->asking);

	walk->asking[0] = '\0';
	walk->changes++;
	if (!object)
		return; /* displaced meanwhile */
	object->until_ns = clock_mono_ns() + for_ns;
	/* What was found once stays where the API cannot be asked. */
	if (known == FAILED && object->known == FOUND)
		return;
	object->known = known;
	object->next = walk->next;
}

static void note_failure(struct walk *walk, const struct outcome *outcome)
{
	walk->figures.failed++;
	snprintf(walk->figures.error, sizeof(walk->figures.error), "%.160s: %.90s", walk->path,
		 outcome->words);
	utf8_sanitize(walk->figures.error);
}

static int ask_object(struct walk *walk);

static void on_object_done(const struct outcome *outcome, void *userdata)
{
	struct walk *walk = userdata;
	bool answered = !outcome->error && outcome->status == 200 && json_end(walk->reader) == 0;

	walk->request = NULL;
	/* A server's cache may be behind that of the one which told about the pod. */
	if (outcome->status == 404 && walk->from_cache) {
		walk->from_cache = false;
		walk->tokens--;
		if (ask_object(walk) == 0)
			return;
	}
	if (answered && STRV_EQ(walk->uid, walk->asking)) {
		settle(walk, FOUND, FOUND_NS);
		walk->figures.error[0] = '\0';
	} else if (answered || outcome->status == 404) {
		settle(walk, MISSING, MISSING_NS); /* another one may have the name now */
	} else {
		note_failure(walk, outcome);
		settle(walk, FAILED, MAX(FAILED_NS, outcome->retry_after_ns));
	}
}

/* ---- questions ---- */

static int ask_object(struct walk *walk)
{
	static const struct request_ops ops = { on_object_data, on_object_done };
	char url[sizeof(walk->path) + 32];
	int r = json_reader_reset(walk->reader);

	walk->uid[0] = '\0';
	walk->next = (struct owner_ref){ 0 };
	walk->figures.asked++;
	snprintf(url, sizeof(url), "%s%s", walk->path, walk->from_cache ? "?resourceVersion=0" : "");
	if (r == 0)
		r = client_get(walk->client, url, metadata_only, &REQUEST_LIMITS_SHORT, &ops, walk,
			       &walk->request);
	return r;
}

static void on_kind_known(_unused_ void *userdata)
{
}

/* False: nothing was asked. */
static bool ask_for(struct walk *walk, struct object *object, int64_t now_ns)
{
	enum kind_place place = kinds_find(walk->kinds, &object->ref, object->namespace, now_ns, walk->path,
					   sizeof(walk->path));

	if (place == KIND_WANTED) {
		walk->figures.asked++;
		return kinds_ask(walk->kinds, &object->ref, on_kind_known, walk) == 0;
	}
	if (place == KIND_PENDING)
		return false;
	memcpy(walk->asking, object->ref.uid, sizeof(walk->asking));
	walk->next = (struct owner_ref){ 0 };
	if (place == KIND_MISSING) {
		settle(walk, MISSING, MISSING_NS);
		return false;
	}
	walk->from_cache = true;
	if (ask_object(walk) == 0)
		return true;
	settle(walk, FAILED, FAILED_NS);
	return false;
}

/* The one that waits for longest. */
static struct object *next_wanted(struct walk *walk, int64_t now_ns)
{
	struct object *found = NULL;

	for (uint32_t i = 0; i < walk->n; i++) {
		struct object *object = &walk->list[i];

		if (object->until_ns > now_ns || now_ns - object->used_ns >= IN_USE_NS)
			continue;
		if (!found || object->until_ns < found->until_ns)
			found = object;
	}
	return found;
}

static void fill_bucket(struct walk *walk, int64_t now_ns)
{
	walk->tokens += (double)(now_ns - walk->filled_ns) / NSEC_PER_SEC * WALK_RATE;
	walk->tokens = MIN(walk->tokens, (double)WALK_BURST);
	walk->filled_ns = now_ns;
}

/* Walks the chains of all pods, so that what they want is known and what is in use stays. */
static void note_uses(struct walk *walk, const struct node_pods *pods, int64_t now_ns)
{
	struct workload_owner owner;

	walk->waiting = 0;
	for (uint32_t i = 0; i < pods->n; i++)
		walk_find(walk, pods->list[i], now_ns, &owner);
	walk->figures.waiting = walk->waiting;
}

int64_t walk_step(struct walk *walk, const struct node_pods *pods, int64_t now_ns)
{
	struct object *object;

	if (walk->request)
		return NEVER;
	note_uses(walk, pods, now_ns);
	fill_bucket(walk, now_ns);
	while ((object = next_wanted(walk, now_ns))) {
		if (walk->tokens < 1)
			return now_ns + NSEC_PER_SEC / WALK_RATE;
		if (ask_for(walk, object, now_ns)) {
			walk->tokens--;
			return NEVER;
		}
		if (object->until_ns <= now_ns)
			return NEVER; /* its kind is being asked about */
		note_uses(walk, pods, now_ns);
	}
	return now_ns + NSEC_PER_SEC;
}

uint64_t walk_changes(const struct walk *walk)
{
	return walk->changes;
}

void walk_figures(const struct walk *walk, struct walk_figures *ret_figures)
{
	*ret_figures = walk->figures;
	ret_figures->objects = walk->n;
}

/* ---- life ---- */

int walk_new(struct client *client, uint32_t room, struct walk **ret_walk)
{
	static const struct json_ops ops = { on_object_value, on_ref_begin, on_ref_end };
	static const struct json_path paths[] = {
		{ "uid", ID_OBJECT_UID },
		{ "ownerReferences []", ID_REF },
		{ "ownerReferences [] apiVersion", ID_REF_API },
		{ "ownerReferences [] kind", ID_REF_KIND },
		{ "ownerReferences [] name", ID_REF_NAME },
		{ "ownerReferences [] uid", ID_REF_UID },
		{ "ownerReferences [] controller", ID_REF_CONTROLS },
	};
	_cleanup_(walk_freep) struct walk *walk = calloc(1, sizeof(*walk));
	int r;

	if (!walk)
		return -ENOMEM;
	walk->client = client;
	walk->room = room;
	walk->tokens = WALK_BURST;
	walk->filled_ns = clock_mono_ns();
	walk->list = calloc(room, sizeof(*walk->list));
	if (!walk->list)
		return -ENOMEM;
	r = kinds_new(client, &walk->kinds);
	if (r == 0)
		r = json_reader_new(&ops, walk, &walk->reader);
	if (r == 0)
		r = json_reader_add(walk->reader, "metadata", paths, ARRAY_SIZE(paths));
	if (r < 0)
		return r;
	*ret_walk = TAKE_PTR(walk);
	return 0;
}

void walk_free(struct walk *walk)
{
	if (!walk)
		return;
	client_cancel(walk->client, walk->request);
	kinds_free(walk->kinds);
	json_reader_free(walk->reader);
	free(walk->list);
	free(walk);
}
