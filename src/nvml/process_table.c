// SPDX-License-Identifier: Apache-2.0
#include "nvml/reader.h"

#include <string.h>

static uint64_t key_of(uint16_t entity, uint32_t pid)
{
	return (uint64_t)entity << 32 | pid;
}

void processes_begin(struct reader *reader)
{
	reader->reading->processes_n = 0;
}

/* Finds an unused state. */
static uint32_t find_free(struct process_table *table)
{
	for (uint32_t i = 0; i < READING_PROCESSES_MAX; i++) {
		uint32_t at = (table->free_hint + i) % READING_PROCESSES_MAX;

		if (table->states[at].used)
			continue;
		table->free_hint = at + 1;
		table->states_n = MAX(table->states_n, at + 1);
		return at;
	}
	return READING_PROCESSES_MAX;
}

static struct process_state *take_state(struct process_table *table, uint16_t entity, uint32_t pid)
{
	uint32_t at;

	if (hashmap_get(&table->map, key_of(entity, pid), &at))
		return &table->states[at];
	if (table->map.count == READING_PROCESSES_MAX)
		return NULL;
	at = find_free(table);
	if (at == READING_PROCESSES_MAX || hashmap_put(&table->map, key_of(entity, pid), at) < 0)
		return NULL;
	memset(&table->states[at], 0, sizeof(table->states[at]));
	table->states[at].used = true;
	table->states[at].entity = entity;
	table->states[at].pid = pid;
	return &table->states[at];
}

struct reading_process *process_take(struct reader *reader, struct device *device, uint32_t pid,
				     struct process_state **ret_state)
{
	struct reading *reading = reader->reading;
	struct process_state *state =
		take_state(&reader->processes, (uint16_t)device_index(reader, device), pid);
	struct reading_process *process;

	if (state && state->pass == reader->pass) {
		*ret_state = state;
		return &reading->processes[state->index];
	}
	if (!state || reading->processes_n == READING_PROCESSES_MAX) {
		reading->processes_dropped++;
		return NULL;
	}
	state->pass = reader->pass;
	state->index = reading->processes_n++;
	reader->processes.of_reading[state->index] = (uint16_t)(state - reader->processes.states);
	process = &reading->processes[state->index];
	memset(process, 0, sizeof(*process));
	process->pid = pid;
	process->entity = state->entity;
	*ret_state = state;
	return process;
}

/* Removes the states of processes that this pass has not seen. */
void processes_end(struct reader *reader)
{
	struct process_table *table = &reader->processes;
	uint32_t last = 0;

	for (uint32_t i = 0; i < table->states_n; i++) {
		struct process_state *state = &table->states[i];

		if (state->used && state->pass != reader->pass) {
			hashmap_del(&table->map, key_of(state->entity, state->pid));
			state->used = false;
			table->free_hint = MIN(table->free_hint, i);
		}
		if (state->used)
			last = i + 1;
	}
	table->states_n = last;
}

void processes_forget(struct reader *reader)
{
	struct process_table *table = &reader->processes;

	hashmap_clear(&table->map);
	for (uint32_t i = 0; i < table->states_n; i++)
		table->states[i].used = false;
	table->states_n = table->free_hint = 0;
}
