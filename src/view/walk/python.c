// SPDX-License-Identifier: Apache-2.0
/*
 * Waits for Python's lock, and collections of garbage by generation: of processes with series of their own,
 * and over all processes that ever were, which do not fall when one ends.
 */
#include "model/python.h"
#include "view/walk/private.h"

struct python_walk {
	struct walk *walk;
	const struct python_view *view;
	const struct label_set **processes; /* pid, comm; NULL: no series */
	const struct label_set *generations[PYTHON_COLLECTIONS];
};

static bool python_walk_init(struct python_walk *pw, struct walk *walk)
{
	const struct python_view *view = walk->s->trace->python;

	*pw = (struct python_walk){ .walk = walk, .view = view };
	pw->processes = walk_zeroes(walk, view->processes_n + 1, sizeof(*pw->processes));
	if (!pw->processes)
		return false;
	for (uint32_t i = 0; i < view->processes_n; i++) {
		const struct python_process *p = &view->processes[i];

		/* Of those with one PID, the youngest, which comes last. */
		if (p->has_series && !(i + 1 < view->processes_n && p[1].pid == p->pid))
			pw->processes[i] = WALK_SET(walk, true, { "pid", walk_number(walk, p->pid) },
						    { "comm", walk_text(walk, p->comm, "") });
	}
	for (unsigned i = 0; i < PYTHON_COLLECTIONS; i++)
		pw->generations[i] = WALK_SET(walk, true, { "generation", python_generation_name(i) });
	return true;
}

static void sum_value(struct python_walk *pw, const struct label_set *first, const struct label_set *second,
		      const struct python_sum *sum, bool seconds)
{
	walk_series(pw->walk,
		    &(struct series){ .sets = { first, second },
				      .value = seconds ? (double)sum->total_ns / 1e9 : (double)sum->count,
				      .presence = PRESENCE_PRESENT,
				      .entity = UINT32_MAX });
}

static void walk_waits(struct python_walk *pw, bool seconds)
{
	for (uint32_t i = 0; i < pw->view->processes_n; i++)
		if (pw->processes[i] && pw->view->processes[i].known)
			sum_value(pw, pw->processes[i], NULL, &pw->view->processes[i].waits, seconds);
}

/* @process: NULL: of all. */
static void walk_collections(struct python_walk *pw, const struct label_set *process,
			     const struct python_sum sums[static PYTHON_COLLECTIONS], bool seconds)
{
	for (unsigned i = 0; i < PYTHON_COLLECTIONS; i++)
		if (sums[i].count > 0)
			sum_value(pw, process ? process : pw->generations[i],
				  process ? pw->generations[i] : NULL, &sums[i], seconds);
}

static void walk_process_collections(struct python_walk *pw, bool seconds)
{
	for (uint32_t i = 0; i < pw->view->processes_n; i++)
		if (pw->processes[i])
			walk_collections(pw, pw->processes[i], pw->view->processes[i].collections, seconds);
}

static bool python_family(struct walk *walk, const char *name, enum metric_unit unit, const char *help)
{
	return walk_family_named(walk, name, FAMILY_COUNTER, unit, help);
}

void walk_python(struct walk *walk)
{
	struct python_walk pw;

	if (!walk->s->trace || !walk->s->trace->python || !python_walk_init(&pw, walk))
		return;
	if (python_family(walk, "process_python_gil_waits_total", UNIT_NONE,
			  "Waits of the process's threads for Python's lock (GIL)."))
		walk_waits(&pw, false);
	if (python_family(walk, "process_python_gil_wait_seconds_total", UNIT_SECONDS,
			  "Time of these waits, of all threads together."))
		walk_waits(&pw, true);
	if (python_family(walk, "process_python_collections_total", UNIT_NONE,
			  "Collections of garbage in Python."))
		walk_process_collections(&pw, false);
	if (python_family(walk, "process_python_collection_seconds_total", UNIT_SECONDS,
			  "Time of these collections."))
		walk_process_collections(&pw, true);
	if (python_family(walk, "python_gil_waits_total", UNIT_NONE,
			  "Waits for Python's lock, of all processes, those that have ended included."))
		sum_value(&pw, NULL, NULL, &pw.view->waits, false);
	if (python_family(walk, "python_gil_wait_seconds_total", UNIT_SECONDS, "Time of these waits."))
		sum_value(&pw, NULL, NULL, &pw.view->waits, true);
	if (python_family(walk, "python_collections_total", UNIT_NONE,
			  "Collections of garbage in Python, of all processes, those that have ended "
			  "included."))
		walk_collections(&pw, NULL, pw.view->collections, false);
	if (python_family(walk, "python_collection_seconds_total", UNIT_SECONDS,
			  "Time of these collections."))
		walk_collections(&pw, NULL, pw.view->collections, true);
}
