// SPDX-License-Identifier: Apache-2.0
/*
 * Handles of functions, and the modules (or libraries) that they are of. A handle has the name that it was
 * created for, or refers to another handle or a host function. It lives until its module is unloaded, or
 * until another kernel gets the same value: later launches by it are then of that kernel.
 *
 * CUDA does not allow a child after fork without exec to use its parent's handles: the child begins without
 * handles, and its launches are resolved separately.
 */
#include "cuda/private.h"

#include "base/text.h"

static struct handle *handle_at(const struct process *p, uint32_t index)
{
	return pool_at(&p->handles, index);
}

static struct module *module_at(const struct process *p, uint32_t index)
{
	return pool_at(&p->modules, index);
}

/* Copies a text within the limit; NULL: limit reached. */
static char *text_keep(struct cuda *cuda, struct process *p, const char *text, size_t n)
{
	bool room = cuda->names_bytes + n < NAMES_BYTES && p->names_bytes + n < NAMES_BYTES_OF_ONE;
	char *copy = room ? strndup(text, n) : NULL;

	if (!copy) {
		cuda->stats.overflow[CUDA_LIMIT_NAMES]++;
		return NULL;
	}
	utf8_sanitize(copy);
	cuda->names_bytes += strlen(copy) + 1;
	p->names_bytes += strlen(copy) + 1;
	return copy;
}

static void text_free(struct cuda *cuda, struct process *p, char *text)
{
	if (text) {
		cuda->names_bytes -= strlen(text) + 1;
		p->names_bytes -= strlen(text) + 1;
	}
	free(text);
}

static uint32_t handle_find(const struct cuda *cuda, const struct hashmap *map, uint64_t handle)
{
	uint32_t index;

	return hashmap_get(map, salted(cuda, handle), &index) ? index : NONE;
}

static uint32_t handle_take(struct cuda *cuda, struct pool *pool, struct hashmap *map, uint32_t size,
			    uint32_t limit, uint64_t handle)
{
	uint32_t index = pool_take(pool, size, limit);

	if (index != NONE && hashmap_put(map, salted(cuda, handle), index) == 0)
		return index;
	if (index != NONE)
		pool_give(pool, index);
	cuda->stats.overflow[CUDA_LIMIT_NAMES]++;
	return NONE;
}

/* ---- modules ---- */

static void link_module(struct process *p, uint32_t index, uint32_t module)
{
	struct handle *h = handle_at(p, index);
	struct module *m = module_at(p, module);

	h->module = module + 1;
	h->next = m->handles;
	if (m->handles)
		handle_at(p, m->handles - 1)->previous = index + 1;
	m->handles = index + 1;
}

static void unlink_module(struct process *p, const struct handle *h)
{
	if (!h->module)
		return;
	if (h->previous)
		handle_at(p, h->previous - 1)->next = h->next;
	else
		module_at(p, h->module - 1)->handles = h->next;
	if (h->next)
		handle_at(p, h->next - 1)->previous = h->previous;
}

static void handle_drop(struct cuda *cuda, struct process *p, uint32_t index)
{
	struct handle *h = handle_at(p, index);
	uint64_t handle = h->handle;

	unlink_module(p, h);
	text_free(cuda, p, h->symbol);
	hashmap_del(&p->handle_map, salted(cuda, handle));
	pool_give(&p->handles, index);
	function_drop(cuda, p, handle);
}

static void module_drop(struct cuda *cuda, struct process *p, uint64_t handle)
{
	uint32_t index = handle_find(cuda, &p->module_map, handle);
	struct module *m;

	if (index == NONE)
		return;
	m = module_at(p, index);
	while (m->handles)
		handle_drop(cuda, p, m->handles - 1);
	text_free(cuda, p, m->path);
	hashmap_del(&p->module_map, salted(cuda, handle));
	pool_give(&p->modules, index);
}

static uint32_t module_get(struct cuda *cuda, struct process *p, uint64_t handle)
{
	uint32_t index;

	if (handle == 0)
		return NONE;
	index = handle_find(cuda, &p->module_map, handle);
	if (index != NONE)
		return index;
	index = handle_take(cuda, &p->modules, &p->module_map, sizeof(struct module), MODULES_MAX, handle);
	if (index != NONE)
		module_at(p, index)->handle = handle;
	return index;
}

/* Replaces one with the same handle, whose end was not seen. */
static struct module *module_new(struct cuda *cuda, struct process *p, uint64_t handle)
{
	uint32_t index;

	module_drop(cuda, p, handle);
	index = module_get(cuda, p, handle);
	return index == NONE ? NULL : module_at(p, index);
}

/* ---- handles ---- */

/* Whether @kept is the stored copy of @symbol, in which invalid bytes were replaced. */
static bool is_text(const char *kept, const char *symbol, size_t n)
{
	if (!kept)
		return false;
	for (size_t i = 0; i < n; i++)
		if (kept[i] != symbol[i] && !(kept[i] == '?' && (symbol[i] & 0x80)))
			return false;
	return kept[n] == 0;
}

/* Adds a handle, replacing one with the same value. NULL: limit reached. @module: index or NONE. */
static struct handle *handle_new(struct cuda *cuda, struct process *p, uint64_t handle, uint32_t module)
{
	uint32_t index = handle_find(cuda, &p->handle_map, handle);

	if (index != NONE)
		handle_drop(cuda, p, index);
	index = handle_take(cuda, &p->handles, &p->handle_map, sizeof(struct handle), HANDLES_MAX, handle);
	if (index == NONE)
		return NULL;
	handle_at(p, index)->handle = handle;
	if (module != NONE)
		link_module(p, index, module);
	return handle_at(p, index);
}

/*
 * The program queried the handle's name, which does not tell the module: the handle may be known, or refer to
 * another one.
 */
static void learn_name(struct cuda *cuda, struct process *p, uint64_t handle, const char *symbol, size_t n)
{
	uint32_t index = handle_find(cuda, &p->handle_map, handle);
	struct handle *h = index == NONE ? NULL : handle_at(p, index);

	if (h && h->symbol && is_text(h->symbol, symbol, n))
		return;
	if (!h || h->symbol)
		h = handle_new(cuda, p, handle, NONE);
	if (!h)
		return;
	h->symbol = text_keep(cuda, p, symbol, n);
	function_renew(cuda, p, handle);
}

/*
 * Earlier launches by that value used another handle, unless it was created in this module, too. @n 0: the
 * name is unknown; within one module it is the previous one.
 */
static void handle_made(struct cuda *cuda, struct process *p, uint64_t handle, uint64_t of,
			const char *symbol, size_t n)
{
	uint32_t module = module_get(cuda, p, of), index = handle_find(cuda, &p->handle_map, handle);
	struct handle *h = index == NONE ? NULL : handle_at(p, index);

	if (h && h->module == module + 1 && h->target == 0 && (n == 0 || is_text(h->symbol, symbol, n)))
		return;
	h = handle_new(cuda, p, handle, module);
	function_drop(cuda, p, handle);
	if (h && n > 0)
		h->symbol = text_keep(cuda, p, symbol, n);
}

static void note_made(struct process *p, const struct trace_name *event)
{
	bool same = p->made.tid == event->header.tid;

	p->made = (struct made){ .handle = event->handle,
				 .time_ns = event->header.time_ns,
				 .before_ns = same ? p->made.time_ns : 0,
				 .tid = event->header.tid };
}

/*
 * The runtime makes the handle of a kernel within the first launch of its host function: a handle that was
 * the only one made by the thread during this launch is of the kernel that is launched.
 */
uint64_t handle_made_within(const struct process *p, const struct trace_launch *launch)
{
	const struct made *made = &p->made;
	uint64_t begin = launch->header.time_ns;

	if (made->tid != launch->header.tid || made->time_ns < begin || made->before_ns >= begin ||
	    made->time_ns > add_saturated(begin, launch->duration_ns))
		return 0;
	return made->handle;
}

void handle_name(struct cuda *cuda, struct process *p, const struct trace_name *event, uint32_t size)
{
	size_t n = strnlen(event->name, MIN(size - sizeof(*event), (size_t)event->name_n));
	struct module *m;

	/* A cut name is ambiguous. */
	if (event->cut || (event->header.flags & TRACE_FLAG_UNREAD))
		n = 0;
	if (event->handle == 0)
		return;
	if (event->header.op == TRACE_OP_FUNCTION_NAME && event->of == 0) {
		if (n > 0)
			learn_name(cuda, p, event->handle, event->name, n);
	} else if (event->header.op == TRACE_OP_FUNCTION_NAME) {
		handle_made(cuda, p, event->handle, event->of, event->name, n);
		note_made(p, event);
	} else if (event->header.op == TRACE_OP_MODULE_FILE) {
		m = module_new(cuda, p, event->handle);
		if (m && n > 0)
			m->path = text_keep(cuda, p, event->name, n);
	}
}

static void handle_alias(struct cuda *cuda, struct process *p, uint64_t handle, uint64_t target)
{
	uint32_t of = handle_find(cuda, &p->handle_map, target),
		 index = handle_find(cuda, &p->handle_map, handle);
	struct handle *h;

	if (handle == 0 || target == 0 || handle == target ||
	    (index != NONE && handle_at(p, index)->target == target))
		return;
	h = handle_new(cuda, p, handle, of == NONE ? NONE : handle_at(p, of)->module - 1);
	if (!h)
		return;
	h->target = target;
	function_renew(cuda, p, handle);
}

/*
 * A host function is registered when its file is loaded: an earlier launch at that address used another file.
 */
static void host_function_registered(struct cuda *cuda, struct process *p, uint64_t host)
{
	if (!function_drop(cuda, p, host))
		return;
	for (uint32_t i = 0; i < p->handles.n; i++)
		if (handle_at(p, i)->handle && handle_at(p, i)->target == host)
			handle_drop(cuda, p, i);
}

void handle_call(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	struct module *m;

	switch (call->header.op) {
	case TRACE_OP_MODULE_LOAD:
		m = call->handle ? module_new(cuda, p, call->handle) : NULL;
		if (m)
			m->image = call->addr;
		if (call->addr != 0 && cuda->ops.image)
			cuda->ops.image(p->tgid, p->incarnation, call->addr, cuda->userdata);
		break;
	case TRACE_OP_MODULE_UNLOAD:
		module_drop(cuda, p, call->handle);
		break;
	case TRACE_OP_FUNCTION_REGISTER:
		host_function_registered(cuda, p, call->handle);
		break;
	default:
		handle_alias(cuda, p, call->handle, call->addr);
		break;
	}
}

void handle_origin(struct cuda *cuda, const struct process *p, uint64_t function, struct origin *ret_origin)
{
	struct origin origin = { .function = function };

	for (unsigned hops = 0; hops <= ALIASES_MAX; hops++) {
		uint32_t index = handle_find(cuda, &p->handle_map, origin.function);
		const struct handle *h = index == NONE ? NULL : handle_at(p, index);
		const struct module *m = h && h->module ? module_at(p, h->module - 1) : NULL;

		if (!h)
			break;
		if (h->symbol)
			origin.symbol = h->symbol;
		if (m) {
			origin.path = m->path;
			origin.image = m->image;
		}
		if (h->target == 0)
			break;
		origin.function = h->target;
	}
	*ret_origin = origin;
}

void handles_done(struct cuda *cuda, struct process *p)
{
	for (uint32_t i = 0; i < p->handles.n; i++)
		if (handle_at(p, i)->handle)
			text_free(cuda, p, handle_at(p, i)->symbol);
	for (uint32_t i = 0; i < p->modules.n; i++)
		if (module_at(p, i)->handle)
			text_free(cuda, p, module_at(p, i)->path);
	pool_done(&p->handles);
	pool_done(&p->modules);
	hashmap_done(&p->handle_map);
	hashmap_done(&p->module_map);
}
