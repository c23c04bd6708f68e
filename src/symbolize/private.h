// SPDX-License-Identifier: Apache-2.0
/*
 * How src/symbolize divides the work: naming.c the asker's side (queues, under one lock), worker.c the
 * thread; all others are called by the thread alone and need no lock: answer.c finds out, areas.c reads what
 * lies where in a process, look.c does so before anybody asks (the asker's side reads), process.c knows what
 * lies where in a process, held.c which handles variables have there, file.c which files there are, tables.c
 * what they contain, stubs.c host functions of a file, figures.c resources of its kernels for one
 * architecture, image.c those of images in memory, guess.c handles that point to their names, intern.c
 * kernels that processes share, names.c many texts in little memory.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/hashmap.h"
#include "base/macro.h"
#include "cubin/cubin.h"
#include "elf/elf.h"
#include "symbolize/symbolize.h"

enum {
	/* Of what is read: an image's metadata is a few MiB in the largest libraries there are. */
	IMAGE_BYTES = 4 << 20,
	METADATA_BYTES = 8 << 20,
	QUESTIONS = 4096,
	FILES = 1024,
	PROCESSES = 4096, /* whose mappings are kept */
	FORGETS = 65536, /* that wait; what is beyond goes by age */
	SYMBOL_MAX = (64 << 10) - 1,
	FILE_ARCHS = 4, /* of one file, that are kept at once */
	FILE_IDS = 16, /* by which one file is known: it lies in so many containers */
	FILE_LOADS = 16,
	OPEN_FILES = 128,
	AREAS_MAX = 65536, /* of a process */
	MAPPED_MAX = 4096, /* of its files, about */
	LOOKS = 256, /* that wait, each with a file open */
	LOOKED = 512, /* processes that nobody has asked about yet */
	IMAGE_VERSIONS = 8, /* images that came to lie at one address, one after the other */
};

/* ---- worker.c ---- */

enum work_kind { WORK_QUESTION, WORK_IMAGE, WORK_LOOK, WORK_FORGET };

struct work {
	struct work *next;
	enum work_kind kind;
	uint64_t seq;
	int64_t asked_ns; /* what is read of the process must not be older */
	int64_t due_ns; /* of one that is tried again */
	unsigned tries;
	bool over; /* its process is: now or never; under the lock while it waits */
	struct look *look; /* WORK_LOOK */
	struct symbolizer_question question; /* its texts lie behind it */
};

struct works {
	struct work *first, *last;
	uint32_t n;
};

struct symbolizer {
	struct symbolizer_config config;
	char proc_root[64];
	pthread_t thread;
	clockid_t thread_clock;
	int event_fd;
	atomic_bool stop;

	/* shared, under the lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct works images, queue; /* images and looks first: questions follow from them */
	uint32_t images_n, looks_n, questions_n,
		forgets_n; /* questions: also those being answered, and answers not yet taken */
	uint64_t seq;
	struct symbolizer_answer *answers; /* ring of limits.questions */
	uint32_t answers_head, answers_n;
	struct symbolizer_stats stats;
	pid_t now_pid; /* whom the thread is busy with */
	uint64_t now_incarnation;
	atomic_bool now_over; /* ... and that he is over: nothing is read of him any more */

	/* the thread's own */
	struct works again; /* in the order of due_ns, roughly */
	struct file **files;
	uint32_t files_n, open_files;
	struct process **processes;
	uint32_t processes_n;
	struct image *memory_images;
	struct kernels *kernels;
	uint64_t used; /* clock of the least recently used */
	uint64_t bytes, processes_bytes;
	bool trim; /* something large was freed */
	int64_t trimmed_ns;
	char name[32 << 10], brief[4 << 10]; /* of the kernel being made */
};

void *symbolizer_run(void *userdata);
struct work *work_new(enum work_kind kind, const struct symbolizer_question *question);
void work_free(struct work *work);
/* Takes the work, if there is room beside the @n that wait. */
int symbolizer_enqueue(struct symbolizer *symbolizer, struct work *work, struct works *works, uint32_t *n,
		       uint32_t max);
void works_put(struct works *works, struct work *work);
struct work *works_take(struct works *works);
/* Adds to a row of stats. */
void symbolizer_count(struct symbolizer *symbolizer, uint64_t *row, uint64_t n);
/* Tables grew or shrank. */
void symbolizer_weigh(struct symbolizer *symbolizer, int64_t bytes);
bool symbolizer_stopping(const struct symbolizer *symbolizer);
/*
 * Whether what the thread is busy with is of a process that is over: what has its PID now is another program.
 */
bool symbolizer_over(const struct symbolizer *symbolizer);
/*
 * Whether @incarnation of a question or a table is meant by the one that is over. 0: its beginning was not
 * seen.
 */
static inline bool is_of(pid_t pid, uint64_t incarnation, pid_t over_pid, uint64_t over_incarnation)
{
	return pid == over_pid && (incarnation == over_incarnation || incarnation == 0);
}

/* ---- symbols and texts: names.c ---- */

/* 96 bits that stand for a symbol in tables: of 100,000, two are the same once in 10^19 times. */
struct symbol_key {
	uint64_t hash;
	uint32_t check;
};
struct symbol_key symbol_key(const char *symbol, size_t n);
static inline int symbol_key_compare(uint64_t hash, uint32_t check, struct symbol_key key)
{
	return hash != key.hash   ? (hash < key.hash ? -1 : 1) :
	       check != key.check ? (check < key.check ? -1 : 1) :
				    0;
}

/* Texts, packed: mangled names of one file are much alike. Written once, then read. */
struct names;
int names_new(struct names **ret_names);
void names_free(struct names *names);
DEFINE_CLEANUP(struct names *, names_free, names_freep)
/* -E2BIG: longer than SYMBOL_MAX, or too many. *ret_ref is for names_get(). */
int names_add(struct names *names, const char *text, size_t n, uint32_t *ret_ref);
/* No more to come: gives back what only adding needs. */
int names_seal(struct names *names);
/* The caller's to free. -ENOMEM, -EBADMSG. */
int names_get(const struct names *names, uint32_t ref, char **ret_text);
uint64_t names_bytes(const struct names *names);

/* ---- figures.c ---- */

enum { FIGURES_NONE = UINT32_MAX };
struct figures_entry {
	uint64_t hash;
	uint32_t check;
	uint32_t container;
	struct kernel_arch arch;
	bool jit;
	uint32_t figures[KERNEL_FIGURES]; /* FIGURES_NONE: absent */
};

/*
 * The kernels of a file that a device of one architecture takes, or (sm 0) of an image for all. Sorted by
 * key.
 */
struct figures {
	uint16_t sm;
	uint32_t n;
	struct figures_entry *entries;
	struct cubin_image *ptx; /* sm 0: kind, arch and container of each */
	uint32_t ptx_n;
	/* there are containers of which the device takes PTX whose kernels' names are not known */
	bool unnamed_jit;
	bool whole; /* nothing was left out */
	uint64_t used;
};

/* What is known of one kernel, from one or more places; where these differ it is absent. */
struct resources {
	bool any;
	bool jit;
	struct kernel_arch arch;
	int64_t figures[KERNEL_FIGURES];
};

struct figures_limits {
	uint32_t entries;
	size_t image_bytes, metadata_bytes;
};
/* -ENODATA, -ENOEXEC: nothing of CUDA's in it; -ECANCELED: we are to stop. */
int figures_read(const struct symbolizer *symbolizer, const struct cubin_source *source, uint16_t sm,
		 const struct figures_limits *limits, struct figures **ret_figures);
void figures_free(struct figures *figures);
DEFINE_CLEANUP(struct figures *, figures_free, figures_freep)
uint64_t figures_bytes(const struct figures *figures);
/* Adds what is known of the kernel to @resources. False: it is not among them. */
bool figures_find(const struct figures *figures, struct symbol_key key, uint16_t sm,
		  struct resources *resources);
bool figures_has(const struct figures *figures, struct symbol_key key);
void resources_init(struct resources *resources);
/* A kernel of which no more is known than whether it is compiled when it is loaded. */
void resources_add_unknown(struct resources *resources, bool jit);

/* ---- stubs.c ---- */

struct stub_entry {
	uint64_t address;
	uint64_t handle_address; /* 0: none */
	uint64_t hash; /* of the symbol */
	uint32_t check;
	uint32_t name; /* for names_get() */
	uint8_t source; /* enum kernel_source */
	bool ambiguous; /* more than one kernel is said to be here */
};

struct stub_table {
	uint32_t n, handles_n;
	struct stub_entry *entries; /* by address */
	uint32_t *by_handle; /* indexes of those that have one, by handle_address */
	uint32_t *by_key; /* indexes of all, by symbol */
	uint64_t left_out; /* stubs that there was no room for, or that could not be read */
	bool cut; /* there was no room: whose a handle is cannot be told */
	struct names *names;
};
/* @root: of a process that sees the file as @path, where a debug file is looked for. */
int stub_table_read(const struct symbolizer *symbolizer, int fd, const char *root, const char *path,
		    uint32_t max, struct stub_table **ret_table);
void stub_table_free(struct stub_table *table);
DEFINE_CLEANUP(struct stub_table *, stub_table_free, stub_table_freep)
uint64_t stub_table_bytes(const struct stub_table *table);
const struct stub_entry *stub_table_find(const struct stub_table *table, uint64_t address);
bool stub_table_has(const struct stub_table *table, struct symbol_key key);

/* ---- file.c ---- */

struct file_id {
	uint64_t dev, ino, size;
	struct timespec changed;
};

enum table { TABLE_DEVICE_CODE, TABLE_STUBS, TABLE_FIGURES, TABLES };

struct file {
	struct file_id ids[FILE_IDS];
	uint32_t ids_n;
	uint8_t build_id[ELF_BUILD_ID_MAX];
	size_t build_id_n; /* 0: none */
	uint64_t sample; /* hash of its bytes */
	struct elf_range loads[FILE_LOADS];
	uint32_t loads_n;
	enum { DEVICE_CODE_UNKNOWN, DEVICE_CODE_NONE, DEVICE_CODE } device_code;
	struct {
		int64_t ns;
		uint32_t n; /* one after the other */
	} failed[TABLES];
	struct stub_table *stubs;
	struct figures *figures[FILE_ARCHS];
	uint64_t used;
	uint64_t bytes; /* of its tables */
	uint32_t busy; /* must stay */
	uint32_t users; /* mappings of processes that we know */
	int fd; /* while it has users and may have device code: it can be read when they have ended; or -1 */
};

/* How to open a file again: as mapped, or as named. */
struct place {
	pid_t pid;
	uint64_t start, end, dev, ino; /* end 0: by path alone */
	const char *path;
	const int *fd; /* or it is open already */
};

/* The file at @place, known or new; it stays while it is busy. */
int file_find(struct symbolizer *symbolizer, const struct place *place, struct file **ret_file);
/* It has a mapping more, or one less. */
void file_use(struct file *file);
void file_leave(struct symbolizer *symbolizer, struct file *file);
/* What is held open of it. */
void file_let_go(struct symbolizer *symbolizer, struct file *file);
/* Opens it again; what lies at its place now must be the same file. -ESTALE */
int file_open(struct symbolizer *symbolizer, struct file *file, const struct place *place, int *ret_fd);
/* -ESTALE: written into since; nothing that was read of it can be believed. */
int file_unchanged(struct file *file, int fd);
void files_done(struct symbolizer *symbolizer);
/* Tables of the least used go until the rest fits the limits. */
void make_room(struct symbolizer *symbolizer);

/* ---- tables.c ---- */

/*
 * -ENODATA: it has none; -EAGAIN: it could not be read, and is not tried again yet. Valid until other tables
 * are asked for, unless it is busy.
 */
int file_stubs(struct symbolizer *symbolizer, struct file *file, const struct place *place,
	       const struct stub_table **ret_stubs);
int file_figures(struct symbolizer *symbolizer, struct file *file, const struct place *place, uint16_t sm,
		 const struct figures **ret_figures);
/* Whether it has device code: 1, 0, or -errno where that could not be found out. */
int file_has_device_code(struct symbolizer *symbolizer, struct file *file, const struct place *place);

/* ---- process.c, areas.c ---- */

struct held {
	uint64_t value;
	uint32_t stub;
};

struct mapped {
	uint64_t dev, ino;
	uint64_t start, end; /* of an executable area: to open it */
	char *path;
	bool executable;
	bool looked; /* whether it could be opened is known */
	struct file *file; /* or NULL */
};

struct area {
	uint64_t start, end, offset;
	uint32_t mapped;
	bool executable;
	int64_t held_ns; /* when held was read */
	struct held *held; /* handles that variables of the file have here, by value */
	uint32_t held_n;
};

struct process {
	struct process_id id;
	uint64_t incarnation;
	int64_t read_ns; /* when its maps were read last; 0: never */
	int64_t looked_ns; /* ... unasked */
	bool looked; /* ... at all, or is about to be */
	uint64_t made; /* order */
	bool sealed; /* it has become another program since */
	bool gone;
	struct mapped *mapped;
	uint32_t mapped_n;
	struct area *areas; /* by address */
	uint32_t areas_n;
	uint64_t areas_left_out;
	uint64_t used;
	uint64_t bytes;
};

/* Its mappings, not older than @since_ns unless it is gone. -ESRCH: gone, and nothing was known. */
int process_look(struct symbolizer *symbolizer, const struct symbolizer_question *question, int64_t since_ns,
		 struct process **ret_process);
int process_add(struct symbolizer *symbolizer, struct process_id id, uint64_t incarnation,
		struct process **ret_process);
void process_remove(struct symbolizer *symbolizer, struct process *process);
/* Its areas are those of @fresh from now on. */
void process_take(struct symbolizer *symbolizer, struct process *process, struct process *fresh);
/* While it lives: which of its files have device code. */
void process_look_at_files(struct symbolizer *symbolizer, struct process *process);
/*
 * Areas and files, no more, of a process as it is now; @pending: and as it will be then, or NULL. Takes no
 * lock, changes nothing.
 */
int areas_read(const char *root, pid_t pid, const struct symbolizer_mapping *pending,
	       struct process *ret_process);
void areas_done(struct process *process);
/* Of its files by mapped_key(). UINT32_MAX: none */
uint32_t mapped_at(const struct process *process, const struct hashmap *index, uint64_t dev, uint64_t ino);
/* all of them are looked at */
uint32_t mapped_find(const struct process *process, uint64_t dev, uint64_t ino);
uint64_t mapped_key(uint64_t dev, uint64_t ino);
void process_drop(struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation);
void processes_done(struct symbolizer *symbolizer);
/* No mapping refers to @file any more. */
void processes_drop_file(struct symbolizer *symbolizer, const struct file *file);
struct area *process_area(struct process *process, uint64_t address);
/* The file of a mapping, or NULL where it cannot be read. */
struct file *mapped_file(struct symbolizer *symbolizer, struct process *process, struct mapped *mapped);
struct place mapped_place(const struct process *process, const struct mapped *mapped);
/* From file offset to address as linked, by what is mapped there executable. -ENOENT. */
int file_linked(const struct file *file, uint64_t offset, uint64_t *ret_address);
/* What must be added to addresses of the file as linked, in this area. -ENOENT. */
int area_bias(const struct area *area, const struct file *file, uint64_t *ret_bias);
/* What it takes has changed. */
void process_weigh(struct symbolizer *symbolizer, struct process *process);
/* Up to @n bytes of a process; short where it has no more. -errno */
ssize_t process_peek(pid_t pid, uint64_t address, void *buf, size_t n);

/* ---- held.c ---- */

/* The stub whose variable has @handle in this area. -ENOENT: none; -ENOTUNIQ: more than one kernel's. */
int area_handle(struct symbolizer *symbolizer, struct process *process, struct area *area,
		const struct stub_table *stubs, int64_t since_ns, uint64_t handle,
		const struct stub_entry **ret_entry);

/* ---- look.c ---- */

struct look;
void look_free(struct look *look);
void look_take(struct symbolizer *symbolizer, struct look *look);
/* The file of @mapped, if it was about to be mapped by @before. UINT32_MAX */
uint32_t look_pending(const struct process *before, const struct mapped *mapped);
/* A process that was looked at, which is the question's; NULL. */
struct process *look_find(struct symbolizer *symbolizer, const struct symbolizer_question *question);

/* ---- image.c ---- */

void image_read(struct symbolizer *symbolizer, const struct work *work);
/* What images that lay at this address before @seq say of a kernel. False: none does. */
bool image_find(struct symbolizer *symbolizer, const struct symbolizer_question *question, uint64_t seq,
		struct symbol_key key, struct resources *resources);
bool image_has(const struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation, struct symbol_key key);
void images_forget(struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation);
void images_done(struct symbolizer *symbolizer);
/* The least used one goes. False: there is none older than @used. */
bool images_evict(struct symbolizer *symbolizer, uint64_t used);
uint64_t images_oldest(const struct symbolizer *symbolizer); /* UINT64_MAX: none */
/* Where the fatbin lies that @address points to: itself, or what a wrapper says. */
uint64_t image_address(pid_t pid, uint64_t address);

/* ---- guess.c ---- */

/*
 * The only kernel of the process whose name is reached from what a handle points to. The text is the caller's
 * to free. -ENOENT.
 */
int memory_symbol(struct symbolizer *symbolizer, struct process *process, uint64_t handle, char **ret_symbol);

/* ---- intern.c ---- */

struct kernels;
int kernels_new(struct kernels **ret_kernels);
void kernels_free(struct kernels *kernels);
/* One like @from, shared with all who asked for it; the caller's reference. */
int kernels_intern(struct symbolizer *symbolizer, const struct kernel *from, struct kernel **ret_kernel);

/* ---- answer.c ---- */

/* 0: *ret_kernel; -EAGAIN: try again later, *ret_kernel is what is known now. -ENOMEM, -ECANCELED. */
int answer_find(struct symbolizer *symbolizer, const struct work *work, struct kernel **ret_kernel);
