// SPDX-License-Identifier: Apache-2.0
/*
 * Says that it is CPython 3.13, or with FREE_THREADED 3.14 without a lock, and has in its memory what no
 * CPython has: frames that lead nowhere or in a circle, functions that are gone, texts and tables that are
 * not what they say. Calls cudaMalloc in each state, with a size of its own: lines "CASE BYTES" on standard
 * output.
 *
 *   broken_python [SEED]     with SEED, calls with GARBAGE random changes of its memory, too
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ARENA = 64 << 10, PAGE = 4096, THREADS = 300, DEPTH = 5000, GARBAGE = 3000, FIRST = 1000 };

extern int cudaMalloc(void **address, size_t n);

/* The structures are ours, so their members may lie where we like: `_PyRuntime` says where. */
struct text {
	uint64_t object[2];
	uint64_t length;
	uint64_t hash;
	uint32_t state; /* STATE(), COMPACT, ASCII */
	uint32_t pad;
	char data[88];
};

struct bytes {
	uint64_t object[2];
	uint64_t n;
	uint64_t hash;
	uint8_t data[96];
};

/* Copies of a code object's instructions, of which the first one is those in itself. */
struct copies {
	uint64_t n;
	uint16_t *at[3];
};

struct code {
	uint64_t object[2];
	uint64_t units; /* instructions of two bytes */
	uint64_t pad[2];
	struct text *file, *name;
	struct bytes *lines;
	uint32_t first_line;
	uint32_t version; /* no other code object has it */
	struct copies *copies;
	uint16_t instructions[12];
};

struct frame {
	struct code *code;
	struct frame *previous;
	uint16_t *at;
	uint8_t owner; /* 3: of C code */
	uint8_t pad[3];
	uint32_t copy; /* of its instructions */
};

struct state {
	struct state *previous, *next;
	struct interpreter *interpreter;
	struct frame *frame;
	uint64_t thread;
	uint64_t status; /* bit 4: it runs */
};

struct interpreter {
	struct interpreter *next;
	struct state *threads;
};

#define COOKIE 0x7970677562656478ULL /* "xdebugpy" */
#define HEAD 1024 /* offset of interpreters.head in _PyRuntime */

/* _Py_DebugOffsets by index, as far as gpusonde reads them; then what they lead to. */
extern uint64_t _PyRuntime[256];
#ifdef FREE_THREADED
#define KIND_SHIFT 8
#define TAG 1 /* of a reference that is not counted */
uint64_t _PyRuntime[256] = {
	[0] = COOKIE,
	[1] = 0x030e0af0,
	[2] = 1,
	[5] = HEAD,
	[8] = offsetof(struct interpreter, next),
	[9] = offsetof(struct interpreter, threads),
	[23] = offsetof(struct state, previous),
	[24] = offsetof(struct state, next),
	[25] = offsetof(struct state, interpreter),
	[26] = offsetof(struct state, frame),
	[27] = offsetof(struct state, thread),
	[30] = offsetof(struct state, status),
	[32] = offsetof(struct frame, previous),
	[33] = offsetof(struct frame, code),
	[34] = offsetof(struct frame, at),
	[36] = offsetof(struct frame, owner),
	[38] = offsetof(struct frame, copy),
	[40] = offsetof(struct code, file),
	[42] = offsetof(struct code, name),
	[43] = offsetof(struct code, lines),
	[44] = offsetof(struct code, first_line),
	[48] = offsetof(struct code, instructions),
	[49] = offsetof(struct code, copies),
	[75] = offsetof(struct bytes, n),
	[76] = offsetof(struct bytes, data),
	[78] = offsetof(struct text, state),
	[79] = offsetof(struct text, length),
	[80] = offsetof(struct text, data),
};
#else
#define KIND_SHIFT 2
#define TAG 0
uint64_t _PyRuntime[256] = {
	[0] = COOKIE,
	[1] = 0x030d00f0,
	[5] = HEAD,
	[8] = offsetof(struct interpreter, next),
	[9] = offsetof(struct interpreter, threads),
	[20] = offsetof(struct state, previous),
	[21] = offsetof(struct state, next),
	[22] = offsetof(struct state, interpreter),
	[23] = offsetof(struct state, frame),
	[24] = offsetof(struct state, thread),
	[27] = offsetof(struct state, status),
	[29] = offsetof(struct frame, previous),
	[30] = offsetof(struct frame, code),
	[31] = offsetof(struct frame, at),
	[33] = offsetof(struct frame, owner),
	[35] = offsetof(struct code, file),
	[37] = offsetof(struct code, name),
	[38] = offsetof(struct code, lines),
	[39] = offsetof(struct code, first_line),
	[43] = offsetof(struct code, instructions),
	[65] = offsetof(struct bytes, n),
	[66] = offsetof(struct bytes, data),
	[68] = offsetof(struct text, state),
	[69] = offsetof(struct text, length),
	[70] = offsetof(struct text, data),
};
#endif
/* Of a text's state: bytes of a character, and how they are kept. */
#define STATE(width) ((width) << KIND_SHIFT)
#define COMPACT (1 << (KIND_SHIFT + 3))
#define ASCII (1 << (KIND_SHIFT + 4))

/* What all structures lie in, of one memory file; and pages that cannot be read. */
static char *arena, *gone;
static size_t used;
static size_t bytes = FIRST;
static uint32_t versions;
static struct interpreter *interpreter;
static struct state *self;

static void *make(size_t n)
{
	void *made = arena + used;

	used += (n + 15) & ~(size_t)15;
	if (used > ARENA)
		abort();
	return made;
}

static struct text *make_text(const char *from)
{
	struct text *text = make(sizeof(*text));

	text->length = strlen(from);
	text->state = STATE(1) | COMPACT | ASCII;
	memcpy(text->data, from, strlen(from));
	return text;
}

/* All of its instructions are of the line after the first. */
static struct code *make_code(const char *name, uint32_t first_line)
{
	static const uint8_t lines[] = { 0x80 | 13 << 3 | 7, 2, 0x80 | 13 << 3 | 3, 0 };
	struct code *code = make(sizeof(*code));

	code->units = sizeof(code->instructions) / 2;
	code->file = make_text("made.py");
	code->name = make_text(name);
	code->lines = make(sizeof(*code->lines));
	code->lines->n = sizeof(lines);
	memcpy(code->lines->data, lines, sizeof(lines));
	code->first_line = first_line;
	code->version = ++versions;
	code->copies = make(sizeof(*code->copies));
	code->copies->n = 1;
	code->copies->at[0] = code->instructions;
	return code;
}

static struct frame *make_frame(struct code *code, struct frame *previous)
{
	struct frame *frame = make(sizeof(*frame));

	frame->code = (struct code *)((uintptr_t)code | TAG);
	frame->previous = previous;
	frame->at = code->instructions + 1;
	return frame;
}

static void allocate(size_t n)
{
	void *address;

	if (cudaMalloc(&address, n) != 0)
		abort();
}

static void call(const char *name)
{
	printf("%s %zu\n", name, ++bytes);
	allocate(bytes);
}

/* As where the kernel pages it out: it is in the file, and in memory no more. */
static void page_out(void *from, size_t n)
{
	char *page = (char *)((uintptr_t)from & ~(uintptr_t)(PAGE - 1));

	if (madvise(page, (size_t)((char *)from + n - page), MADV_DONTNEED) != 0)
		abort();
}

/* ---- frames ---- */

static struct frame *outer, *middle, *inner;
static struct code *outer_code, *middle_code, *inner_code;

static void frames_new(void)
{
	outer_code = make_code("outer", 1);
	middle_code = make_code("middle", 11);
	inner_code = make_code("inner", 21);
	outer = make_frame(outer_code, NULL);
	middle = make_frame(middle_code, outer);
	inner = make_frame(inner_code, middle);
	self->frame = inner;
}

/* Three frames with a change in one place, and back. */
#define CALL_WITH(name, place, value)           \
	do {                                    \
		__typeof__(place) was_ = place; \
		place = value;                  \
		call(name);                     \
		place = was_;                   \
	} while (0)

static void frames(void)
{
	struct frame *c = make_frame(inner_code, NULL);

	call("known");
	CALL_WITH("innermost gone", self->frame, (void *)gone);
	CALL_WITH("none", self->frame, NULL);
	CALL_WITH("caller gone", inner->previous, (void *)gone);
	CALL_WITH("caller of the kernel's", inner->previous, (void *)-4096L);
	CALL_WITH("caller at an odd place", inner->previous, (void *)1);
	CALL_WITH("caller itself", inner->previous, inner);
	CALL_WITH("circle", outer->previous, inner);
	c->owner = 3;
	c->previous = c;
	CALL_WITH("circle of C", inner->previous, c);
	CALL_WITH("code gone", middle->code, (void *)gone);
	CALL_WITH("code none", middle->code, NULL);
	CALL_WITH("code zeros", middle->code, make(sizeof(struct code)));
	CALL_WITH("code no code", middle->code, (void *)middle_code->name);
	CALL_WITH("before the code", inner->at, inner_code->instructions - 1);
	CALL_WITH("behind the code", inner->at, inner_code->instructions + 12);
	CALL_WITH("of other code", inner->at, outer_code->instructions);
	call("known");
}

static void deep(void)
{
	struct frame *frame = inner, *all = calloc(DEPTH, sizeof(*all));

	for (int i = 0; i < DEPTH; i++) {
		all[i] = *inner;
		all[i].previous = frame;
		frame = &all[i];
	}
	CALL_WITH("deep", self->frame, frame);
	free(all);
}

/* ---- functions ---- */

/* A function of its own for each case: what was sent once is known. */
static struct code *other(const char *name)
{
	self->frame = make_frame(make_code(name, 31), outer);
	return (struct code *)((uintptr_t)self->frame->code & ~(uintptr_t)TAG);
}

/* Of a thread whose instructions are another copy. */
static void copied(void)
{
	static uint16_t own[12];
	struct code *code = other("copied");

	code->copies->n = 2;
	code->copies->at[1] = own;
	self->frame->copy = 1;
	self->frame->at = own + 9;
	call("own copy");
	self->frame->copy = 2;
	call("copy beyond all");
	self->frame->copy = 1;
	code->copies = (void *)gone;
	call("copies gone");
	self->frame = inner;
}

static void functions(void)
{
	struct code *code;

	other("other")->name = (void *)gone;
	call("name gone");
	other("other")->name->length = UINT64_MAX;
	call("name too long");
	other("other")->name->state = STATE(1);
	call("name elsewhere");
	for (unsigned width = 0; width < 8; width++) {
		code = other("other");
		code->name->state = STATE(width) | COMPACT | ASCII;
		if (width != 1 && width != 2 && width != 4)
			call("name of no width");
	}
	other("other")->file = (void *)gone;
	call("file gone");
	memcpy(other("o\033[1m;\nr")->file->data, "\001\002\003", 3);
	call("no text");
	other("other")->lines = (void *)gone;
	call("lines gone");
	other("other")->lines->n = UINT64_MAX;
	call("more lines than memory");
	other("other")->lines->n = 0;
	call("no lines");
	memset(other("other")->lines->data, 0xff, 96);
	call("lines of nonsense");
	other("other")->lines->n = 1;
	call("half a line");
	other("other")->units = 0;
	call("no instructions");
	other("other")->first_line = INT32_MAX;
	call("a line beyond all");
	self->frame = inner;
}

/* The same address, the same members: only the version says that it is another one. */
static void used_again(void)
{
	struct code *code = other("first");

	call("first");
	code->version = ++versions;
	memcpy(code->name->data, "later", 5);
	call("later");
	code->version = ++versions;
	code->lines->data[1] = 4;
	call("a line later");
	self->frame = inner;
}

static void paged_out(void)
{
	struct frame *in_file;
	struct code *code;

	used = (used + PAGE - 1) & ~(size_t)(PAGE - 1);
	in_file = make(sizeof(*in_file));
	*in_file = *outer;
	CALL_WITH("in memory", inner->previous, in_file);
	page_out(in_file, sizeof(*in_file));
	CALL_WITH("frame paged out", inner->previous, in_file);
	used = (used + PAGE - 1) & ~(size_t)(PAGE - 1);
	code = make_code("paged", 31);
	self->frame = make_frame(inner_code, outer);
	self->frame->code = code;
	page_out(code, sizeof(*code));
	/* Its frame is in that page, too. */
	call("all paged out");
	used = (used + PAGE - 1) & ~(size_t)(PAGE - 1);
	code = other("named");
	used = (used + PAGE - 1) & ~(size_t)(PAGE - 1);
	code->name = make_text("named");
	page_out(code->name, sizeof(*code->name));
	call("name paged out");
	self->frame = inner;
}

/* ---- threads and interpreters ---- */

static void *on_thread(void *userdata)
{
	((void (*)(void))userdata)();
	return NULL;
}

/* On a thread that has no state yet, so that it is searched for. */
static void by_thread(void (*work)(void))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, on_thread, (void *)work) != 0 || pthread_join(thread, NULL) != 0)
		abort();
}

static void without_state(void)
{
	call("thread without a state");
}

static void behind(void)
{
	static struct state others[THREADS], own;

	own = *self;
	own.thread = pthread_self();
	own.next = NULL;
	for (int i = 0; i < THREADS; i++)
		others[i] = (struct state){ .next = i + 1 < THREADS ? &others[i + 1] : &own,
					    .interpreter = interpreter };
	CALL_WITH("behind too many threads", interpreter->threads, others);
	others[199].next = &own;
	own.previous = &others[199];
	CALL_WITH("behind 200 threads", interpreter->threads, others);
}

static void circle_of_threads(void)
{
	struct state one = { .interpreter = interpreter };

	one.next = one.previous = &one;
	CALL_WITH("circle of threads", interpreter->threads, &one);
}

static void circle_of_interpreters(void)
{
	struct interpreter one = { .next = &one };

	CALL_WITH("circle of interpreters", *(struct interpreter **)((char *)_PyRuntime + HEAD), &one);
}

static void torn_down(void)
{
	struct interpreter **head = (struct interpreter **)((char *)_PyRuntime + HEAD);

	CALL_WITH("threads gone", interpreter->threads, (void *)gone);
	CALL_WITH("interpreter gone", *head, (void *)gone);
	CALL_WITH("no interpreter", *head, NULL);
}

static void two_states(void)
{
	struct state one = *self, two;

	one.thread = pthread_self();
	one.next = &two;
	one.previous = NULL;
	two = one;
	two.next = NULL;
	two.previous = &one;
	CALL_WITH("two interpreters", interpreter->threads, &one);
	two.status = 1 << 4;
	two.frame = outer;
	CALL_WITH("the one that runs", interpreter->threads, &one);
}

/* Its own state is gone, and the memory is another thread's. */
static void state_used_again(void)
{
	struct state was = *self;

	self->thread = 1;
	call("state of another thread");
	*self = was;
	call("known");
}

/* ---- garbage ---- */

static uint64_t seed;

static uint64_t random_next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static uint64_t random_word(void)
{
	switch (random_next() % 6) {
	case 0:
		return random_next();
	case 1:
		return random_next() % 256;
	case 2:
		return (uint64_t)(gone + random_next() % PAGE);
	case 3:
		return 0;
	}
	return (uint64_t)(arena + random_next() % used / 8 * 8);
}

/* Words of all structures are changed, a few more each time, and all is as before now and then. */
static void garbage(void)
{
	char *good = malloc(ARENA);
	struct state state = *self;

	memcpy(good, arena, ARENA);
	for (int i = 0; i < GARBAGE; i++) {
		if (i % 16 == 0)
			memcpy(arena, good, ARENA);
		*(uint64_t *)(arena + random_next() % used / 8 * 8) = random_word();
		if (i % 4 == 0)
			*(uint64_t *)((char *)self + random_next() % 6 * 8) = random_word();
		allocate(1);
		*self = state;
	}
	memcpy(arena, good, ARENA);
	printf("garbage %d\n", GARBAGE);
	free(good);
}

int main(int argc, char **argv)
{
	int fd = memfd_create("arena", 0);

	if (fd < 0 || ftruncate(fd, ARENA) != 0)
		abort();
	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	gone = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena == MAP_FAILED || gone == MAP_FAILED)
		abort();
	interpreter = calloc(1, sizeof(*interpreter));
	self = calloc(1, sizeof(*self));
	*(struct interpreter **)((char *)_PyRuntime + HEAD) = interpreter;
	interpreter->threads = self;
	self->interpreter = interpreter;
	self->thread = pthread_self();
	frames_new();
	frames();
	deep();
	functions();
	if (TAG)
		copied();
	used_again();
	paged_out();
	by_thread(without_state);
	by_thread(behind);
	by_thread(circle_of_threads);
	by_thread(circle_of_interpreters);
	by_thread(torn_down);
	by_thread(two_states);
	torn_down();
	state_used_again();
	if (argc > 1) {
		seed = strtoul(argv[1], NULL, 10) * 2 + 1;
		garbage();
	}
	call("known");
	return fflush(stdout) != 0;
}
