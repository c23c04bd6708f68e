// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cupti_socket/receive.h"

#define MS UINT64_C(1000000)

static struct cupti_wire message;

static union cupti_record *add(uint8_t kind)
{
	union cupti_record *r = &message.at[message.wire.n++];

	memset(r, 0, sizeof(*r));
	r->kind = kind;
	return r;
}

static void add_work(uint8_t kind, uint32_t device, uint64_t start_ms, uint64_t end_ms)
{
	union cupti_record *r = add(kind);

	r->work.device = device;
	r->work.start_ns = start_ms * MS;
	r->work.end_ns = end_ms * MS;
	r->work.bytes = kind == CUPTI_COPY ? 100 : 0;
}

static void add_slice(uint8_t state, uint64_t start_ms, uint64_t end_ms)
{
	union cupti_record *r = add(CUPTI_SLICE);

	r->slice.state = state;
	r->slice.start_ns = start_ms * MS;
	r->slice.end_ns = end_ms * MS;
}

static void message_begin(void)
{
	message.wire = (struct plugin_wire){ CUPTI_WIRE_MAGIC, CUPTI_WIRE_VERSION, 0, 0 };
}

static size_t size_of(void)
{
	return sizeof(message.wire) + message.wire.n * sizeof(message.at[0]);
}

static void serve(struct cupti_receiver *receiver)
{
	bool channel;

	while (plugin_clients_wait(cupti_receiver_clients(receiver), 0, &channel) > 0)
		;
}

static void send_all(struct cupti_receiver *receiver, int fd)
{
	assert_int_equal(send(fd, &message, size_of(), 0), size_of());
	serve(receiver);
	message_begin();
}

static int client(struct cupti_receiver *receiver)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	assert_true(plugin_clients_add(cupti_receiver_clients(receiver), fds[1]));
	message_begin();
	return fds[0];
}

static int setup(void **state)
{
	const struct cupti_wanted wanted = { .slice_ms = 10, .period_ms = 600, .launches = 5 };

	*state = cupti_receiver_new(&wanted, NULL, NULL);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	cupti_receiver_free(*state);
	return 0;
}

static uint32_t rows_of(struct cupti_receiver *receiver, struct gpu_time *rows, uint32_t max)
{
	struct row_list list = { .size = sizeof(struct gpu_time), .max = GPU_TIMES_MAX };
	uint32_t n;

	cupti_receiver_rows(receiver, &list);
	n = list.n;
	assert_true(n <= max);
	if (n > 0)
		memcpy(rows, list.list, n * sizeof(*rows));
	row_list_done(&list);
	return n;
}

static void a_client_is_told_what_is_wanted(void **state)
{
	int fd = client(*state);
	struct cupti_wanted wanted;

	assert_int_equal(recv(fd, &wanted, sizeof(wanted), 0), sizeof(wanted));
	assert_int_equal(wanted.magic, CUPTI_WIRE_MAGIC);
	assert_int_equal(wanted.version, CUPTI_WIRE_VERSION);
	assert_int_equal(wanted.slice_ms, 10);
	assert_int_equal(wanted.period_ms, 600);
	assert_int_equal(wanted.launches, 5);
	close(fd);
}

/* Work at once on two streams is busy once; copies are not, as NVML counts. */
static void busy_is_a_union(void **state)
{
	struct gpu_time rows[4];
	int fd = client(*state);

	add_work(CUPTI_KERNEL, 0, 1000, 1200);
	add_work(CUPTI_KERNEL, 0, 1100, 1300);
	add_work(CUPTI_COPY, 0, 1400, 1500);
	add_work(CUPTI_GRAPH, 0, 1600, 1700);
	add_work(CUPTI_KERNEL, 1, 1000, 1010);
	add(CUPTI_DEVICE)->device.uuid[0] = 0xab;
	add_slice(CUPTI_ON, 1000, 2000);
	send_all(*state, fd);
	assert_int_equal(rows_of(*state, rows, 4), 2);
	assert_int_equal(rows[0].pid, getpid());
	assert_int_equal(rows[0].kernels, 2);
	assert_int_equal(rows[0].graphs, 1);
	assert_int_equal(rows[0].copies, 1);
	assert_int_equal(rows[0].bytes, 100);
	assert_float_equal(rows[0].kernel_seconds, 0.5, 1e-9);
	assert_float_equal(rows[0].copy_seconds, 0.1, 1e-9);
	assert_float_equal(rows[0].busy_seconds, 0.4, 1e-9);
	assert_float_equal(rows[0].observed_seconds, 1, 1e-9);
	assert_float_equal(rows[1].observed_seconds, 1, 1e-9);
	assert_float_equal(rows[1].busy_seconds, 0.01, 1e-9);
	assert_string_equal(rows[0].uuid, "GPU-ab000000-0000-0000-0000-000000000000");
	assert_string_equal(gpu_time_state(&rows[0]), "on");
	/* What is on the way goes on; what runs when a slice ends is not observed. */
	add_work(CUPTI_KERNEL, 0, 2500, 3500);
	add_slice(CUPTI_ON, 2000, 3000);
	add_slice(CUPTI_OVER, 3000, 3100);
	add_work(CUPTI_KERNEL, 0, 9000, 9100);
	add_slice(CUPTI_ON, 9000, 9500);
	send_all(*state, fd);
	assert_int_equal(rows_of(*state, rows, 4), 2);
	assert_float_equal(rows[0].busy_seconds, 0.4 + 0.6 + 0.1, 1e-9);
	assert_float_equal(rows[0].observed_seconds, 1 + 1 + 0.1 + 0.5, 1e-9);
	close(fd);
}

/* A long kernel is told when it has ended, beside short ones that were told before. */
static void work_that_comes_late_is_counted_once(void **state)
{
	struct gpu_time rows[1];
	int fd = client(*state);

	add_work(CUPTI_KERNEL, 0, 1100, 1400);
	add_slice(CUPTI_ON, 1000, 1500);
	add_work(CUPTI_KERNEL, 0, 1000, 2000);
	add_slice(CUPTI_ON, 1500, 2000);
	send_all(*state, fd);
	assert_int_equal(rows_of(*state, rows, 1), 1);
	assert_float_equal(rows[0].busy_seconds, 1, 1e-9);
	assert_float_equal(rows[0].observed_seconds, 1, 1e-9);
	add_slice(CUPTI_OVER, 2000, 2100);
	send_all(*state, fd);
	assert_int_equal(rows_of(*state, rows, 1), 1);
	assert_float_equal(rows[0].busy_seconds, 1, 1e-9);
	close(fd);
}

static void why_there_is_nothing(void **state)
{
	struct gpu_time rows[4];
	int fd = client(*state);

	assert_int_equal(rows_of(*state, rows, 4), 1);
	assert_string_equal(gpu_time_state(&rows[0]), "");
	add_slice(CUPTI_REFUSED, 5, 5);
	message.at[0].slice.error = 35;
	message.at[0].slice.api = 18;
	message.at[0].slice.dropped = 3;
	message.wire.lost = 2;
	send_all(*state, fd);
	assert_int_equal(rows_of(*state, rows, 4), 1);
	assert_int_equal(rows[0].device, GPU_TIME_NO_DEVICE);
	assert_string_equal(gpu_time_state(&rows[0]), "refused");
	assert_int_equal(rows[0].error, 35);
	assert_int_equal(rows[0].api, 18);
	assert_int_equal(rows[0].dropped, 3);
	assert_int_equal(rows[0].lost, 2);
	close(fd);
	serve(*state);
	assert_int_equal(rows_of(*state, rows, 4), 1);
	assert_true(rows[0].gone);
	assert_int_equal(rows_of(*state, rows, 4), 0);
}

static void devices_are_bounded(void **state)
{
	struct gpu_time rows[CUPTI_DEVICES];
	int fd = client(*state);

	for (uint32_t i = 0; i < CUPTI_WIRE_RECORDS; i++)
		add_work(CUPTI_KERNEL, i, 1, 2);
	send_all(*state, fd);
	assert_int_equal(rows_of(*state, rows, CUPTI_DEVICES), CUPTI_DEVICES);
	assert_int_equal(rows[0].lost, CUPTI_WIRE_RECORDS - CUPTI_DEVICES);
	close(fd);
}

static const struct gpu_work *kept_at(struct cupti_receiver *receiver, uint32_t i)
{
	assert_true(i < cupti_receiver_kept(receiver)->n);
	return &((const struct gpu_work *)cupti_receiver_kept(receiver)->list)[i];
}

/* In order, each once, with its connection and its device. */
static void what_is_kept(void **state)
{
	int fd = client(*state);

	add_work(CUPTI_KERNEL, 0, 1000, 1200);
	send_all(*state, fd);
	assert_int_equal(cupti_receiver_kept(*state)->n, 0); /* nobody wants it */
	cupti_receiver_keep(*state);
	add(CUPTI_DEVICE)->device.uuid[0] = 0xab;
	add_work(CUPTI_COPY, 0, 1250, 1300);
	add_work(CUPTI_KERNEL, 0, 1200, 1400);
	add_slice(CUPTI_ON, 1000, 1500);
	message.wire.lost = 3;
	send_all(*state, fd);
	assert_int_equal(cupti_receiver_kept(*state)->n, 3);
	assert_int_equal(kept_at(*state, 0)->record.kind, CUPTI_COPY);
	assert_int_equal(kept_at(*state, 0)->pid, getpid());
	assert_int_equal(kept_at(*state, 0)->uuid[0], 0xab);
	assert_int_equal(kept_at(*state, 2)->record.kind, CUPTI_SLICE);
	assert_int_equal(kept_at(*state, 2)->busy_ns / MS, 400);
	assert_int_equal(kept_at(*state, 2)->missing, 3);
	cupti_receiver_forget_kept(*state);
	add_slice(CUPTI_ON, 1500, 1600);
	message.wire.lost = 3;
	send_all(*state, fd);
	assert_int_equal(cupti_receiver_kept(*state)->n, 1);
	assert_int_equal(kept_at(*state, 0)->missing, 0);
	assert_int_equal(kept_at(*state, 0)->busy_ns, 0);
	close(fd);
}

/* A connection does not take all, and what it took is free again once it was handed on. */
static void what_is_kept_is_bounded(void **state)
{
	uint32_t sent = 0;
	int fd = client(*state), other;

	cupti_receiver_keep(*state);
	for (; sent < GPU_WORKS_PROCESS + CUPTI_WIRE_RECORDS; sent += CUPTI_WIRE_RECORDS) {
		for (uint32_t k = 0; k < CUPTI_WIRE_RECORDS; k++)
			add_work(CUPTI_KERNEL, 0, 1000, 1001);
		send_all(*state, fd);
	}
	assert_int_equal(cupti_receiver_kept(*state)->n, GPU_WORKS_PROCESS);
	assert_int_equal(cupti_receiver_not_kept(*state), sent - GPU_WORKS_PROCESS);
	other = client(*state);
	add_work(CUPTI_KERNEL, 0, 1000, 1001);
	send_all(*state, other);
	assert_int_equal(cupti_receiver_kept(*state)->n, GPU_WORKS_PROCESS + 1);
	cupti_receiver_forget_kept(*state);
	add_slice(CUPTI_ON, 1000, 1002);
	send_all(*state, fd);
	assert_int_equal(cupti_receiver_kept(*state)->n, 1);
	assert_int_equal(kept_at(*state, 0)->missing, sent - GPU_WORKS_PROCESS);
	close(fd);
	close(other);
}

/* No time is observed twice, none that has not been yet, and no device is busy for longer. */
static void times_that_cannot_be(void **state)
{
	struct gpu_time rows[1];
	int fd = client(*state);

	add_work(CUPTI_KERNEL, 0, 1000, 9000);
	add_slice(CUPTI_ON, 8000, 9000);
	add_slice(CUPTI_ON, 8000, 9000);
	add_slice(CUPTI_ON, 8500, 9500);
	add_slice(CUPTI_ON, UINT64_C(1) << 40, (UINT64_C(1) << 40) + 1);
	add_work(CUPTI_KERNEL, 0, UINT64_C(1) << 40, UINT64_C(1) << 40);
	send_all(*state, fd);
	assert_int_equal(rows_of(*state, rows, 1), 1);
	assert_float_equal(rows[0].observed_seconds, 1.5, 1e-9);
	assert_float_equal(rows[0].busy_seconds, 1.5, 1e-9);
	assert_int_equal(rows[0].kernels, 1);
	assert_int_equal(rows[0].bad, 2);
	close(fd);
}

static void what_is_valid(void **state)
{
	struct cupti_name *name = &message.at[0].name;

	(void)state;
#define WRONG(member_, value_)                                          \
	do {                                                            \
		union cupti_record was = message.at[0];                 \
		message.at[0].member_ = value_;                         \
		assert_false(cupti_wire_is_valid(&message, size_of())); \
		message.at[0] = was;                                    \
	} while (0)
	message_begin();
	add_work(CUPTI_KERNEL, 0, 10, 20);
	assert_true(cupti_wire_is_valid(&message, size_of()));
	WRONG(kind, CUPTI_KINDS);
	WRONG(work.start_ns, 0);
	WRONG(work.end_ns, 9 * MS);
	WRONG(work.end_ns, 10 * MS + CUPTI_DURATION_MAX_NS + 1);
	WRONG(work.device, GPU_TIME_NO_DEVICE);
	message_begin();
	add_slice(CUPTI_ON, 1, 2);
	assert_true(cupti_wire_is_valid(&message, size_of()));
	WRONG(slice.state, CUPTI_STATES);
	WRONG(slice.clock, CUPTI_CLOCKS);
	WRONG(slice.end_ns, 0);
	message_begin();
	add(CUPTI_NAME);
	name->n = CUPTI_NAME_PART;
	name->size = CUPTI_NAME_PART;
	memset(name->text, 'x', CUPTI_NAME_PART);
	assert_true(cupti_wire_is_valid(&message, size_of()));
	WRONG(name.n, CUPTI_NAME_PART + 1);
	WRONG(name.n, 0);
	WRONG(name.at, 1);
	WRONG(name.size, CUPTI_NAME_MAX + 1);
	WRONG(name.text[5], '\0');
	message_begin();
	add(CUPTI_DEVICE);
	assert_false(cupti_wire_is_valid(&message, size_of())); /* no UUID */
	message.at[0].device.uuid[15] = 1;
	assert_true(cupti_wire_is_valid(&message, size_of()));
	WRONG(device.device, GPU_TIME_NO_DEVICE);
#undef WRONG
	message.wire.n = CUPTI_WIRE_RECORDS + 1;
	assert_false(cupti_wire_is_valid(&message, size_of()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_client_is_told_what_is_wanted, setup, teardown),
		cmocka_unit_test_setup_teardown(busy_is_a_union, setup, teardown),
		cmocka_unit_test_setup_teardown(work_that_comes_late_is_counted_once, setup, teardown),
		cmocka_unit_test_setup_teardown(why_there_is_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(devices_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_kept_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(times_that_cannot_be, setup, teardown),
		cmocka_unit_test(what_is_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
