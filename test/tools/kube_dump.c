// SPDX-License-Identifier: Apache-2.0
/*
 * Starts gpusonde-kube as the agent does, and asks it once for each line of its input; each answer is a line
 * of JSON, with all tables as the agent would have them then:
 *
 *     kube_dump PROGRAM [server=URL] [config=PATH] [context=NAME] [account=PATH] [host=ADDRESS] [port=N]
 *               [node=NAME] [labels=KEYS] [pod_run=label:KEY] [pod_group=annotation:KEY] [node_labels=KEYS]
 *               [exporters=SELECTOR] [exporter_namespaces=NAMES] [namespace=NAME] [cache=N]
 *               [watch=SECONDS]
 *
 * A process that ends, or wants to be replaced, is replaced by the next line.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "config.h"
#include "helper/message.h"
#include "helper/spawn.h"
#include "kube/protocol.h"

static struct kube_question question = { .version = GPUSONDE_VERSION };
static struct arriving tables[KUBE_TABLES] = {
	[KUBE_OWNERS] = { .row_bytes = sizeof(struct owner), .max = OWNERS_MAX },
	[KUBE_EXPORTERS] = { .row_bytes = sizeof(struct kube_exporter), .max = KUBE_EXPORTERS_MAX },
	[KUBE_LABELS] = { .row_bytes = sizeof(struct kube_label), .max = KUBE_LABELS_MAX },
	[KUBE_DEVICES] = { .row_bytes = sizeof(struct kube_device), .max = KUBE_DEVICES_MAX },
	[KUBE_HEALTH] = { .row_bytes = sizeof(struct device_health), .max = DEVICE_HEALTH_MAX },
};
static json_t *shown[KUBE_TABLES];
static const char *program;
static int channel = -1;
static pid_t child;

static json_t *owner_row(const struct owner *owner)
{
	return json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "workload", (int)owner->workload,
			 "id", owner->id, "namespace", owner->namespace, "pod", owner->pod, "container",
			 owner->container, "kind", owner->owner_kind, "name", owner->owner_name, "run",
			 owner->run, "group", owner->group);
}

static json_t *exporter_row(const struct kube_exporter *row)
{
	return json_pack("{s:s, s:s, s:s, s:s}", "namespace", row->namespace, "pod", row->pod, "uid",
			 row->uid, "address", row->address);
}

static json_t *label_row(const struct kube_label *row)
{
	return json_pack("{s:s, s:s}", "key", row->key, "value", row->value);
}

static json_t *device_row(const struct kube_device *row)
{
	return json_pack("{s:s, s:s, s:s, s:s}", "driver", row->driver, "pool", row->pool, "device",
			 row->device, "uuid", row->uuid);
}

static json_t *health_row(const struct device_health *row)
{
	return json_pack("{s:s, s:i}", "uuid", row->device.uuid, "health", (int)row->health);
}

static json_t *row_of(uint32_t which, uint32_t i)
{
	const void *list = tables[which].list;

	switch ((enum kube_table)which) {
	case KUBE_OWNERS:
		return owner_row((const struct owner *)list + i);
	case KUBE_EXPORTERS:
		return exporter_row((const struct kube_exporter *)list + i);
	case KUBE_LABELS:
		return label_row((const struct kube_label *)list + i);
	case KUBE_DEVICES:
		return device_row((const struct kube_device *)list + i);
	case KUBE_HEALTH:
		return health_row((const struct device_health *)list + i);
	case KUBE_TABLES:
		break;
	}
	return json_null();
}

static void show_table(uint32_t which)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < tables[which].n; i++)
		json_array_append_new(rows, row_of(which, i));
	json_decref(shown[which]);
	shown[which] = rows;
	question.known[which] = tables[which].digest;
}

/* By reason, those that there were. */
static json_t *failures_of(const struct kube_end *end)
{
	static const char *const names[NET_FAILURES] = {
#define NET_FAILURE(id_, name_, words_, remedy_, place_) [NET_FAILED_##id_] = (name_),
#include "model/net_failures.def"
	};
	json_t *failures = json_object();

	for (unsigned i = NET_OK + 1; i < NET_FAILURES; i++)
		if (end->failures[i])
			json_object_set_new(failures, names[i], json_integer((json_int_t)end->failures[i]));
	return failures;
}

static void print_answer(const struct kube_end *end)
{
	static const char *const names[KUBE_TABLES] = { "owners", "exporters", "labels", "devices",
							"health" };
	static const char *const outcomes[KUBE_OUTCOMES] = { "ok", "begins", "failed", "refused" };
	json_t *line =
		json_pack("{s:i, s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:o, s:i, s:i, s:i}", "pid",
			  (int)child, "outcome", outcomes[end->outcome], "error", end->error, "note",
			  end->note, "replace", (int)end->replace, "dropped", (json_int_t)end->dropped,
			  "bytes", (json_int_t)end->bytes, "requests", (json_int_t)end->requests, "lists",
			  (json_int_t)end->lists, "failures", failures_of(end), "pods", (int)end->pods,
			  "skipped", (int)end->exporters_skipped, "fallbacks", (int)end->fallbacks);

	for (uint32_t i = 0; i < KUBE_TABLES; i++)
		json_object_set(line, names[i], shown[i] ? shown[i] : json_null());
	json_dumpf(line, stdout, JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
	json_decref(line);
}

static void start(void)
{
	char owner[16];
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		exit(2);
	snprintf(owner, sizeof(owner), "%d", (int)getpid());
	child = fork();
	if (child == 0) {
		dup2(pair[1], HELPER_SOCKET);
		execl(program, program, "kube", owner, (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	channel = pair[0];
}

static void stop(void)
{
	if (channel < 0)
		return;
	close(channel);
	waitpid(child, NULL, 0);
	channel = -1;
}

/* False: the process has ended. */
static bool ask(void)
{
	static union {
		uint32_t message;
		struct part part;
		struct kube_end end;
	} answer;
	ssize_t n;
	int fd;

	if (send_with_fd(channel, &question, sizeof(question), -1) < 0)
		return false;
	while ((n = receive_with_fd(channel, &answer, sizeof(answer), &fd)) > 0 &&
	       answer.message == PART_ROWS)
		if (!parts_take(tables, KUBE_TABLES, &answer, (size_t)n))
			abort();
	if (n != sizeof(answer.end) ||
	    !parts_are_whole(tables, KUBE_TABLES, answer.end.digest, question.known))
		return false;
	for (uint32_t i = 0; i < KUBE_TABLES; i++)
		if (tables[i].list)
			show_table(i);
	parts_forget(tables, KUBE_TABLES);
	print_answer(&answer.end);
	if (answer.end.replace)
		stop();
	return true;
}

#define SET(member_) snprintf(s->member_, sizeof(s->member_), "%s", value)

static void set(struct kube_settings *s, const char *name, const char *value)
{
	if (strcmp(name, "server") == 0)
		SET(server);
	else if (strcmp(name, "config") == 0)
		SET(kubeconfig);
	else if (strcmp(name, "context") == 0)
		SET(context);
	else if (strcmp(name, "account") == 0)
		SET(account);
	else if (strcmp(name, "host") == 0)
		SET(host);
	else if (strcmp(name, "port") == 0)
		SET(port);
	else if (strcmp(name, "node") == 0)
		SET(node);
	else if (strcmp(name, "labels") == 0)
		SET(workload_labels);
	else if (strcmp(name, "node_labels") == 0)
		SET(node_labels);
	else if (strcmp(name, "exporters") == 0)
		SET(exporters);
	else if (strcmp(name, "exporter_namespaces") == 0)
		SET(exporter_namespaces);
	else if (strcmp(name, "namespace") == 0)
		SET(namespace);
	else if (strcmp(name, "cache") == 0)
		s->cache = (uint32_t)atoi(value);
	else if (strcmp(name, "watch") == 0)
		s->watch_ns = atoi(value) * NSEC_PER_SEC;
}

int main(int argc, char **argv)
{
	char line[16];

	if (argc < 2)
		return 2;
	program = argv[1];
	question.settings.cache = 256;
	question.settings.watch_ns = 290 * NSEC_PER_SEC;
	for (int i = 2; i < argc; i++) {
		char *equals = strchr(argv[i], '=');

		if (!equals)
			return 2;
		*equals = '\0';
		if (strcmp(argv[i], "devices") == 0)
			question.wants_devices = 1;
		set(&question.settings, argv[i], equals + 1);
	}
	while (fgets(line, sizeof(line), stdin)) {
		if (channel < 0)
			start();
		if (!ask()) {
			printf("{\"outcome\":\"ended\"}\n");
			fflush(stdout);
			stop();
		}
	}
	stop();
	for (uint32_t i = 0; i < KUBE_TABLES; i++)
		json_decref(shown[i]);
	return 0;
}
