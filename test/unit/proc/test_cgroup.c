// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "proc/proc.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEX2 "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define HEX32 "0123456789abcdef0123456789abcdef"
#define UID "12345678-1234-1234-1234-123456789abc"
#define UID_ "12345678_1234_1234_1234_123456789abc"

#define USERS "0::/user.slice/user-1000.slice/user@1000.service/"

static const struct {
	const char *text;
	enum proc_cgroup_kind kind;
	const char *id, *pod;
} cases[] = {
	/* Kubernetes, systemd driver, v2 and each quality of service */
	{ "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
	  ".slice/cri-containerd-" HEX ".scope\n",
	  PROC_CGROUP_CONTAINER, HEX, UID },
	{ "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_ ".slice/crio-" HEX
	  ".scope\n",
	  PROC_CGROUP_CONTAINER, HEX, UID },
	{ "0::/kubepods.slice/kubepods-pod" UID_ ".slice/docker-" HEX ".scope\n", PROC_CGROUP_CONTAINER, HEX,
	  UID },
	{ "0::/kubepods.slice/kubepods-pod" UID_ ".slice/containerd-" HEX ".scope", PROC_CGROUP_CONTAINER,
	  HEX, UID },
	{ "0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" HEX ".scope/container\n",
	  PROC_CGROUP_CONTAINER, HEX, UID },
	/* a static pod's UID is a hash */
	{ "0::/kubepods.slice/kubepods-burstable-pod" HEX32 ".slice/cri-containerd-" HEX ".scope\n",
	  PROC_CGROUP_CONTAINER, HEX, HEX32 },
	/* cgroupfs driver, and v1 with its many lines, the useful one not first */
	{ "0::/kubepods/burstable/pod" UID "/" HEX "\n", PROC_CGROUP_CONTAINER, HEX, UID },
	{ "12:rdma:/\n11:memory:/kubepods/pod" UID "/" HEX "\n1:name=systemd:/init.scope\n0::/\n",
	  PROC_CGROUP_CONTAINER, HEX, UID },
	/* kind, and Docker in Docker: the inner one counts */
	{ "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_ ".slice/cri-containerd-" HEX
	  ".scope\n",
	  PROC_CGROUP_CONTAINER, HEX, UID },
	{ "0::/system.slice/docker-" HEX2 ".scope/kubelet/kubepods/besteffort/pod" UID "/" HEX "\n",
	  PROC_CGROUP_CONTAINER, HEX, UID },
	{ "4:devices:/docker/" HEX2 "/docker/" HEX "\n", PROC_CGROUP_CONTAINER, HEX, "" },
	/* seen from another cgroup namespace */
	{ "0::/../../kubepods-pod" UID_ ".slice/cri-containerd-" HEX ".scope\n", PROC_CGROUP_CONTAINER, HEX,
	  UID },
	{ "0::/../cri-containerd-" HEX ".scope\n", PROC_CGROUP_CONTAINER, HEX, "" },
	{ "0::/\n", PROC_CGROUP_NONE, "", "" },
	/* a pod without a container in it, and the monitor of a container */
	{ "0::/kubepods.slice/kubepods-pod" UID_ ".slice\n", PROC_CGROUP_POD, UID, UID },
	{ "0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-conmon-" HEX ".scope\n", PROC_CGROUP_POD, UID,
	  UID },
	/* a runtime whose driver is set up wrongly */
	{ "0::/system.slice/kubepods-burstable-pod" UID_ ".slice:cri-containerd:" HEX "\n",
	  PROC_CGROUP_CONTAINER, HEX, UID },
	/* without Kubernetes */
	{ "0::/docker/" HEX "\n", PROC_CGROUP_CONTAINER, HEX, "" },
	{ "0::/system.slice/docker-" HEX ".scope\n", PROC_CGROUP_CONTAINER, HEX, "" },
	{ "0::/system.slice/docker-" HEX ".scope/init.scope\n", PROC_CGROUP_CONTAINER, HEX, "" },
	{ "0::/system.slice/docker-" HEX ".scope/system.slice/ssh.service\n", PROC_CGROUP_CONTAINER, HEX,
	  "" },
	{ "0::/machine.slice/libpod-" HEX ".scope/container\n", PROC_CGROUP_CONTAINER, HEX, "" },
	{ "0::/machine.slice/machine-libpod_pod_" HEX2 ".slice/libpod-" HEX ".scope\n", PROC_CGROUP_CONTAINER,
	  HEX, "" },
	{ USERS "user.slice/libpod-" HEX ".scope/container\n", PROC_CGROUP_CONTAINER,
	  "user@1000.service/" HEX, "" },
	{ "0::/machine.slice/libpod-conmon-" HEX ".scope\n", PROC_CGROUP_UNIT, "libpod-conmon-" HEX ".scope",
	  "" },
	{ "0::/system.slice/nerdctl-" HEX ".scope\n", PROC_CGROUP_CONTAINER, HEX, "" },
	{ "0::/default/" HEX "\n", PROC_CGROUP_CONTAINER, HEX, "" },
	{ "0::/ecs/task/" HEX32 "-1234567890\n", PROC_CGROUP_CONTAINER, HEX32 "-1234567890", "" },
	{ "0::/lxc.payload.web1/system.slice/nginx.service\n", PROC_CGROUP_CONTAINER, "web1", "" },
	{ "9:cpu:/lxc/db2/user.slice\n", PROC_CGROUP_CONTAINER, "db2", "" },
	{ "0::/docker/" HEX " (deleted)\n", PROC_CGROUP_CONTAINER, HEX, "" },
	/* Slurm */
	{ "8:memory:/slurm/uid_1000/job_4242/step_0/task_0\n", PROC_CGROUP_JOB, "4242", "" },
	{ "8:memory:/slurm_node7/uid_1000/job_4242/step_batch\n", PROC_CGROUP_JOB, "4242", "" },
	{ "0::/system.slice/slurmstepd.scope/job_17/step_0/user/task_3\n", PROC_CGROUP_JOB, "17", "" },
	{ "0::/system.slice/node7_slurmstepd.scope/job_17/step_extern/user/task_special\n", PROC_CGROUP_JOB,
	  "17", "" },
	{ "0::/kubepods/pod" UID "/" HEX "/system.slice/slurmstepd.scope/job_9/step_0\n", PROC_CGROUP_JOB,
	  "9", UID },
	{ "0::/system.slice/slurmstepd.scope/job_17/step_0/docker/" HEX "\n", PROC_CGROUP_CONTAINER, HEX,
	  "" },
	{ "0::/system.slice/slurmstepd.scope/system\n", PROC_CGROUP_UNIT, "slurmstepd.scope", "" },
	{ "0::/user.slice/job_17/step_0\n", PROC_CGROUP_NONE, "", "" },
	{ "0::/slurm/job_17x\n", PROC_CGROUP_NONE, "", "" },
	{ USERS "app.slice/slurm/uid_0/job_7/step_0\n", PROC_CGROUP_UNIT, "user@1000.service", "" },
	/* as Slurm 22.05 and Podman 4.3 make them on v1, without systemd */
	{ "8:pids:/\n6:freezer:/slurm_vm/uid_0/job_1/step_batch\n4:memory:/process_api/"
	  "b2318b4e062a19776f88b13247e7c4a9\n0::/\n",
	  PROC_CGROUP_JOB, "1", "" },
	{ "9:name=systemd:/libpod_parent/libpod-" HEX "\n8:pids:/libpod_parent/libpod-" HEX
	  "\n0::/libpod_parent/libpod-" HEX "\n",
	  PROC_CGROUP_CONTAINER, HEX, "" },
	/* HTCondor: v1, v2, another execute folder, one of a user's */
	{ "6:memory:/htcondor/condor_var_lib_condor_execute_slot1_2@node7.example.org\n", PROC_CGROUP_JOB,
	  "slot1_2@node7.example.org", "" },
	{ "0::/system.slice/htcondor/condor_var_lib_condor_execute_slot1_23@node7\n", PROC_CGROUP_JOB,
	  "slot1_23@node7", "" },
	{ "0::/system.slice/condor.service/htcondor/condor_scratch_slots_slot3@node7\n", PROC_CGROUP_JOB,
	  "slot3@node7", "" },
	{ "0::/system.slice/condor.service\n", PROC_CGROUP_UNIT, "condor.service", "" },
	{ "0::/system.slice/condor_slotless.service\n", PROC_CGROUP_UNIT, "condor_slotless.service", "" },
	/* LSF */
	{ "10:cpuset:/lsf/cluster1/job.2022.11241.1543343893\n", PROC_CGROUP_JOB, "2022", "" },
	{ "0::/lsf/cluster1/job.42[3].77.1543343893\n", PROC_CGROUP_JOB, "42[3]", "" },
	{ "0::/lsf/cluster1/job.x\n", PROC_CGROUP_NONE, "", "" },
	/* PBS Pro and OpenPBS, v1 and v2, by systemd's slices; Torque */
	{ "9:memory:/pbs_jobs.service/jobid/2404743.opbs\n", PROC_CGROUP_JOB, "2404743.opbs", "" },
	{ "0::/pbs_jobs.service/jobs/12345.gadi-pbs\n", PROC_CGROUP_JOB, "12345.gadi-pbs", "" },
	{ "0::/pbs_jobs.service/jobid/12345[7].pbs.example.org/sub\n", PROC_CGROUP_JOB,
	  "12345[7].pbs.example.org", "" },
	{ "3:cpuset:/pbspro.slice/pbspro-15.my\\x2dserver.slice\n", PROC_CGROUP_JOB, "15.my-server", "" },
	{ "3:cpuset:/pbspro.slice/pbspro-15\\x5b2\\x5d.server.slice\n", PROC_CGROUP_JOB, "15[2].server", "" },
	{ "3:cpuset:/pbspro.slice/pbspro-15\\x2fserver.slice\n", PROC_CGROUP_NONE, "", "" },
	{ "3:cpuset:/pbspro/15.server\n", PROC_CGROUP_JOB, "15.server", "" },
	{ "5:devices:/torque/8.head.cluster\n", PROC_CGROUP_JOB, "8.head.cluster", "" },
	{ "0::/pbs_jobs.service\n", PROC_CGROUP_UNIT, "pbs_jobs.service", "" },
	/* v1: only one controller knows the job, below the container of the whole node */
	{ "5:memory:/docker/" HEX "\n4:devices:/docker/" HEX "/slurm/uid_0/job_2/step_0/task_0\n",
	  PROC_CGROUP_JOB, "2", "" },
	/* systemd */
	{ "0::/user.slice/user-1000.slice\n", PROC_CGROUP_UNIT, "user-1000.slice", "" },
	{ "0::/user.slice/user-x.slice\n", PROC_CGROUP_NONE, "", "" },
	{ "0::/system.slice/ollama.service\n", PROC_CGROUP_UNIT, "ollama.service", "" },
	{ "0::/system.slice/containerd.service/sub/tree\n", PROC_CGROUP_UNIT, "containerd.service", "" },
	{ "0::/user.slice/user-1000.slice/session-3.scope\n", PROC_CGROUP_UNIT, "session-3.scope", "" },
	{ USERS "app.slice/app-org.gnome.Terminal.slice/vte-spawn-1.scope\n", PROC_CGROUP_UNIT,
	  "user@1000.service/vte-spawn-1.scope", "" },
	{ USERS "app.slice/jupyter.service\n", PROC_CGROUP_UNIT, "user@1000.service/jupyter.service", "" },
	{ USERS "init.scope\n", PROC_CGROUP_UNIT, "user@1000.service", "" },
	/* a unit's service names what is in it */
	{ "0::/system.slice/hub.service/ollama.service\n", PROC_CGROUP_UNIT, "hub.service", "" },
	{ "0::/machine.slice/systemd-nspawn@a.service/payload/system.slice/ssh.service\n", PROC_CGROUP_UNIT,
	  "systemd-nspawn@a.service", "" },
	{ USERS "app.slice/a.service/user@0.service/b.service\n", PROC_CGROUP_UNIT,
	  "user@1000.service/a.service", "" },
	/* users that call their cgroups like those of others */
	{ USERS "kubepods.slice/kubepods-pod" UID_ ".slice/crio-" HEX ".scope\n", PROC_CGROUP_UNIT,
	  "user@1000.service/crio-" HEX ".scope", "" },
	{ USERS "kubepods/burstable/pod" UID "/" HEX "\n", PROC_CGROUP_UNIT, "user@1000.service", "" },
	{ USERS "docker/" HEX "\n", PROC_CGROUP_UNIT, "user@1000.service", "" },
	{ USERS "libpod-pod" UID_ ".slice:docker:" HEX "\n", PROC_CGROUP_CONTAINER, "user@1000.service/" HEX,
	  "" },
	{ USERS "user.slice/docker-" HEX ".scope\n", PROC_CGROUP_CONTAINER, "user@1000.service/" HEX, "" },
	{ USERS "user.slice/nerdctl-" HEX ".scope\n", PROC_CGROUP_CONTAINER, "user@1000.service/" HEX, "" },
	{ USERS "app.slice/web.service/libpod-payload-" HEX "\n", PROC_CGROUP_CONTAINER,
	  "user@1000.service/" HEX, "" },
	{ USERS "run-1.scope/lxc.payload.web1\n", PROC_CGROUP_CONTAINER, "user@1000.service/web1", "" },
	{ USERS "ecs/" HEX32 "-1234567890\n", PROC_CGROUP_UNIT, "user@1000.service", "" },
	{ USERS "htcondor/condor_execute_slot1_2@node7\n", PROC_CGROUP_UNIT, "user@1000.service", "" },
	{ USERS "user@0.service/user-0.slice/libpod-" HEX ".scope\n", PROC_CGROUP_CONTAINER,
	  "user@1000.service/" HEX, "" },
	/* v1: what root's hierarchies say comes first, though the user's is deeper */
	{ "4:devices:/docker/" HEX2
	  "\n1:name=systemd:/user.slice/user-1000.slice/user@1000.service/a/b/libpod-" HEX ".scope\n",
	  PROC_CGROUP_CONTAINER, HEX2, "" },
	{ "4:devices:/kubepods/pod" UID
	  "\n1:name=systemd:/user.slice/user-1000.slice/user@1000.service/a/libpod-" HEX ".scope\n",
	  PROC_CGROUP_POD, UID, UID },
	{ "4:devices:/user.slice\n3:memory:/user.slice/user-1000.slice/session-3.scope\n"
	  "1:name=systemd:/user.slice/user-1000.slice/user@1000.service/a/libpod-" HEX ".scope\n",
	  PROC_CGROUP_CONTAINER, "user@1000.service/" HEX, "" },
	/* the users of a container, and of a guest, are its own */
	{ "0::/docker/" HEX "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" HEX2
	  ".scope\n",
	  PROC_CGROUP_CONTAINER, HEX, "" },
	{ "0::/machine.slice/machine-a.scope/payload/user.slice/user-1000.slice/user@1000.service/libpod-" HEX
	  ".scope\n",
	  PROC_CGROUP_UNIT, "machine-a.scope", "" },
	{ "0::/init.scope\n", PROC_CGROUP_NONE, "", "" },
	{ "0::/user.slice\n", PROC_CGROUP_NONE, "", "" },
	{ "4:cpu:/\n1:name=systemd:/system.slice/cron.service\n", PROC_CGROUP_UNIT, "cron.service", "" },
	/* nearly */
	{ "0::/docker/" HEX32 "\n", PROC_CGROUP_NONE, "", "" },
	{ "0::/docker/x" HEX "\n", PROC_CGROUP_NONE, "", "" },
	{ "0::/docker/0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF\n", PROC_CGROUP_NONE,
	  "", "" },
	{ "0::/kubepods/podtooshort\n", PROC_CGROUP_NONE, "", "" },
	{ "0::/.service\n", PROC_CGROUP_NONE, "", "" },
	{ "0::/lxc.payload.\n", PROC_CGROUP_NONE, "", "" },
	{ "no colons at all\n", PROC_CGROUP_NONE, "", "" },
	{ "", PROC_CGROUP_NONE, "", "" },
};

static void layouts(_unused_ void **state)
{
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct proc_cgroup cgroup;

		memset(&cgroup, 0x5a, sizeof(cgroup));
		proc_cgroup_parse(cases[i].text, strlen(cases[i].text), &cgroup);
		if (cgroup.kind != cases[i].kind || !STRV_EQ(cgroup.id, cases[i].id) ||
		    !STRV_EQ(cgroup.pod_uid, cases[i].pod))
			fail_msg("%s: kind %d, id %s, pod %s", cases[i].text, cgroup.kind, cgroup.id,
				 cgroup.pod_uid);
	}
}

static void users_are_told(_unused_ void **state)
{
	static const struct {
		const char *text;
		uint32_t user;
	} users[] = {
		{ USERS "app.slice/jupyter.service\n", 1000 },
		{ USERS "user@1001.service/user-1001.slice/a.scope\n", 1000 },
		{ "0::/../../user-1000.slice/user@1000.service/a.service\n", 1000 },
		{ "0::/user.slice/user-1000.slice/session-3.scope\n", 1000 },
		{ "0::/user.slice/user-1000.slice\n", 1000 },
		{ "0::/user.slice/user-0.slice/user@0.service/a.service\n", 0 },
		{ "0::/user.slice/user-4294967295.slice\n", 0 },
		{ "0::/system.slice/user-1000.service\n", 0 },
		{ "0::/docker/" HEX "/user.slice/user-1000.slice/user@1000.service/a.service\n", 0 },
		{ "0::/docker/" HEX "/user.slice/user-1000.slice/session-3.scope\n", 0 },
		{ "4:devices:/docker/" HEX "\n1:name=systemd:/user.slice/user-1000.slice/session-3.scope\n",
		  0 },
		{ "", 0 },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(users); i++) {
		struct proc_cgroup cgroup;

		memset(&cgroup, 0x5a, sizeof(cgroup));
		proc_cgroup_parse(users[i].text, strlen(users[i].text), &cgroup);
		if (cgroup.user != users[i].user)
			fail_msg("%s: user %u", users[i].text, (unsigned)cgroup.user);
	}
}

/* The identities of two users' units of one name, and of the system's, differ, however long the name is. */
static void users_and_system_are_told_apart(_unused_ void **state)
{
	static const char *const managers[] = { "system.slice", "user-1.slice/user@1.service",
						"user-4294967294.slice/user@4294967294.service" };
	struct proc_cgroup found[ARRAY_SIZE(managers)];

	for (unsigned i = 0; i < ARRAY_SIZE(managers); i++) {
		char text[512];

		snprintf(text, sizeof(text), "0::/%s/%0200d.service\n", managers[i], 0);
		proc_cgroup_parse(text, strlen(text), &found[i]);
		assert_int_equal(found[i].kind, PROC_CGROUP_UNIT);
		assert_int_equal(strlen(found[i].id), sizeof(found[i].id) - 1);
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(found[k].id, found[i].id);
	}
}

static void jobs_have_steps(_unused_ void **state)
{
	static const struct {
		const char *text;
		enum proc_job_manager manager;
		const char *id, *step;
	} jobs[] = {
		{ "8:memory:/slurm/uid_1000/job_4242/step_0/task_0\n", PROC_JOB_SLURM, "4242", "0" },
		{ "10:devices:/slurm/uid_2101171/job_280678/step_interactive/task_0\n", PROC_JOB_SLURM,
		  "280678", "interactive" },
		{ "0::/system.slice/node7_slurmstepd.scope/job_17/step_batch/user/task_special\n",
		  PROC_JOB_SLURM, "17", "batch" },
		{ "0::/system.slice/slurmstepd.scope/job_1392969/step_0/user/task_0\n", PROC_JOB_SLURM,
		  "1392969", "0" },
		{ "0::/system.slice/slurmstepd.scope/job_17\n", PROC_JOB_SLURM, "17", "" },
		/* a container in a job, by one controller or by two */
		{ "0::/system.slice/slurmstepd.scope/job_17/step_2/docker/" HEX "\n", PROC_JOB_SLURM, "17",
		  "2" },
		{ "5:memory:/system.slice/docker-" HEX ".scope\n4:devices:/slurm/uid_0/job_2/step_0\n",
		  PROC_JOB_SLURM, "2", "0" },
		{ "6:memory:/htcondor/condor_var_lib_condor_execute_slot1_2@node7\n", PROC_JOB_HTCONDOR,
		  "slot1_2@node7", "" },
		{ "10:cpuset:/lsf/cluster1/job.2022.11241.1543343893\n", PROC_JOB_LSF, "2022", "" },
		{ "9:memory:/pbs_jobs.service/jobid/2404743.opbs\n", PROC_JOB_PBS, "2404743.opbs", "" },
		{ "0::/system.slice/cron.service\n", PROC_JOB_NONE, "", "" },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(jobs); i++) {
		struct proc_cgroup cgroup;

		proc_cgroup_parse(jobs[i].text, strlen(jobs[i].text), &cgroup);
		if (cgroup.job.manager != jobs[i].manager || !STRV_EQ(cgroup.job.id, jobs[i].id) ||
		    !STRV_EQ(cgroup.job.step, jobs[i].step))
			fail_msg("%s: manager %d, job %s, step %s", jobs[i].text, cgroup.job.manager,
				 cgroup.job.id, cgroup.job.step);
	}
}

/* Cut anywhere, on the heap without a NUL, so that a sanitizer sees a read beyond the end. */
static void cut_anywhere(_unused_ void **state)
{
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t whole = strlen(cases[i].text);

		for (size_t length = 1; length <= whole; length++) {
			char *text = malloc(length);
			struct proc_cgroup cgroup;

			memcpy(text, cases[i].text, length);
			proc_cgroup_parse(text, length, &cgroup);
			assert_int_equal(cgroup.kind == PROC_CGROUP_NONE, cgroup.id[0] == '\0');
			free(text);
		}
	}
}

static void names_are_cut_and_made_utf8(_unused_ void **state)
{
	struct proc_cgroup cgroup;
	char text[400] = "0::/system.slice/";
	size_t length = strlen(text);

	memset(text + length, 'a', 200);
	strcpy(text + length + 200, ".service\n");
	proc_cgroup_parse(text, strlen(text), &cgroup);
	assert_int_equal(cgroup.kind, PROC_CGROUP_UNIT);
	assert_int_equal(strlen(cgroup.id), sizeof(cgroup.id) - 1);
	proc_cgroup_parse("0::/\xff\xfe.service", 14, &cgroup);
	assert_true(utf8_valid(cgroup.id, strlen(cgroup.id)));
	assert_string_equal(cgroup.id, "?\?.service");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layouts),
		cmocka_unit_test(users_are_told),
		cmocka_unit_test(users_and_system_are_told_apart),
		cmocka_unit_test(jobs_have_steps),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(names_are_cut_and_made_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
