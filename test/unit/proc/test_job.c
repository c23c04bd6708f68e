// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/text.h"
#include "needs.h"
#include "proc/job.h"
#include "proc/job_ad.h"

/* A text with a NUL behind each variable. */
#define VARIABLES(text_) (text_), sizeof(text_) - 1

static struct proc_job_claim claim_of(const char *text, size_t n, enum proc_job_manager of)
{
	struct proc_job_claim claim;

	memset(&claim, 0x5a, sizeof(claim));
	proc_job_claim(text, n, of, "RUN_ID", "GROUP", &claim);
	return claim;
}

static void slurm(_unused_ void **state)
{
	struct proc_job_claim claim = claim_of(
		VARIABLES("SLURM_JOB_ID=42\0SLURM_JOB_NAME=train llm\0SLURM_JOB_USER=alice\0SLURM_STEP_ID=0\0"
			  "SLURM_PROCID=3\0SLURM_LOCALID=1\0SLURM_NTASKS=8\0SLURM_JOB_GPUS=0,2\0RUN_ID=r-7\0"
			  "GROUP=\0"),
		PROC_JOB_NONE);

	assert_int_equal(claim.job.manager, PROC_JOB_SLURM);
	assert_string_equal(claim.job.id, "42");
	assert_string_equal(claim.job.step, "0");
	assert_string_equal(claim.name, "train llm");
	assert_string_equal(claim.user, "alice");
	assert_string_equal(claim.gpus, "0,2");
	assert_string_equal(claim.run, "r-7");
	assert_string_equal(claim.group, "");
	assert_int_equal(claim.rank, 3);
	assert_int_equal(claim.local_rank, 1);
	assert_int_equal(claim.world, 8);
}

static void pbs_and_lsf(_unused_ void **state)
{
	struct proc_job_claim claim = claim_of(
		VARIABLES("PBS_JOBID=2404743.opbs\0PBS_JOBNAME=fft\0PBS_O_LOGNAME=bob\0"), PROC_JOB_PBS);

	assert_string_equal(claim.job.id, "2404743.opbs");
	assert_string_equal(claim.name, "fft");
	assert_string_equal(claim.user, "bob");
	assert_int_equal(claim.rank, PROC_RANK_UNKNOWN);
	claim = claim_of(VARIABLES("LSB_JOBID=2022\0LSB_JOBINDEX=3\0LSB_JOBNAME=sweep[1-9]\0LSFUSER=eve\0"),
			 PROC_JOB_NONE);
	assert_int_equal(claim.job.manager, PROC_JOB_LSF);
	assert_string_equal(claim.job.id, "2022[3]");
	assert_string_equal(claim.name, "sweep[1-9]");
	/* of the batch system that the cgroup is of, even if the environment tells of another */
	claim = claim_of(VARIABLES("SLURM_JOB_ID=1\0PBS_JOBID=9.s\0"), PROC_JOB_PBS);
	assert_string_equal(claim.job.id, "9.s");
	claim = claim_of(VARIABLES("SLURM_JOB_ID=1\0"), PROC_JOB_PBS);
	assert_int_equal(claim.job.manager, PROC_JOB_NONE);
}

static void ranks_are_those_of_the_innermost_launcher(_unused_ void **state)
{
	static const struct {
		const char *text;
		size_t n;
		uint32_t rank, local, world;
	} cases[] = {
		{ VARIABLES("SLURM_PROCID=1\0SLURM_NTASKS=2\0RANK=9\0LOCAL_RANK=1\0WORLD_SIZE=16\0"), 9, 1,
		  16 },
		{ VARIABLES("OMPI_COMM_WORLD_RANK=5\0OMPI_COMM_WORLD_LOCAL_RANK=2\0OMPI_COMM_WORLD_SIZE=6\0"
			    "PMIX_RANK=7\0"),
		  5, 2, 6 },
		{ VARIABLES("PMIX_RANK=7\0"), 7, PROC_RANK_UNKNOWN, PROC_RANK_UNKNOWN },
		{ VARIABLES("PMI_RANK=1\0PMI_SIZE=4\0MPI_LOCALRANKID=1\0"), 1, 1, 4 },
		/* somebody's own variable; more than there are; no numbers */
		{ VARIABLES("RANK=4\0"), PROC_RANK_UNKNOWN, PROC_RANK_UNKNOWN, PROC_RANK_UNKNOWN },
		{ VARIABLES("RANK=16\0WORLD_SIZE=16\0"), PROC_RANK_UNKNOWN, PROC_RANK_UNKNOWN,
		  PROC_RANK_UNKNOWN },
		{ VARIABLES("PMI_RANK=x\0"), PROC_RANK_UNKNOWN, PROC_RANK_UNKNOWN, PROC_RANK_UNKNOWN },
		{ VARIABLES("PMI_RANK=4294967295\0"), PROC_RANK_UNKNOWN, PROC_RANK_UNKNOWN,
		  PROC_RANK_UNKNOWN },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct proc_job_claim claim = claim_of(cases[i].text, cases[i].n, PROC_JOB_NONE);

		if (claim.rank != cases[i].rank || claim.local_rank != cases[i].local ||
		    claim.world != cases[i].world)
			fail_msg("%s: %u, %u of %u", cases[i].text, claim.rank, claim.local_rank,
				 claim.world);
	}
}

static void hostile_values(_unused_ void **state)
{
	char text[1200] = "SLURM_JOB_ID=1\0SLURM_JOB_NAME=";
	size_t n = sizeof("SLURM_JOB_ID=1\0SLURM_JOB_NAME=") - 1;
	struct proc_job_claim claim;

	memset(text + n, 0xff, 1000);
	claim = claim_of(text, n + 1001, PROC_JOB_NONE);
	assert_int_equal(strlen(claim.name), sizeof(claim.name) - 1);
	assert_true(utf8_valid(claim.name, strlen(claim.name)));
	/* without a NUL at its end it is no variable; an ID is one */
	assert_int_equal(claim_of("SLURM_JOB_ID=1", 14, PROC_JOB_NONE).job.manager, PROC_JOB_NONE);
	assert_int_equal(claim_of(VARIABLES("SLURM_JOB_ID=1\n\0"), PROC_JOB_NONE).job.manager, PROC_JOB_NONE);
	assert_int_equal(claim_of(VARIABLES("PBS_JOBID=x\0"), PROC_JOB_NONE).job.manager, PROC_JOB_NONE);
}

/* ---- HTCondor's file ---- */

static const char ad[] = "MyType = \"Job\"\n"
			 "clusterid = 17\n"
			 "ProcId = 2\n"
			 "Owner = \"alice\"\n"
			 "JobBatchName = \"a \\\"b\\\" c\"\n"
			 "Cmd = \"/home/alice/train.sh\"\n"
			 "ClusterIdentity = 99\n"
			 "Requirements = (TARGET.Arch == \"X86_64\") && ProcId = 5\n";

static void collect(struct cursor name, const char *value, void *userdata)
{
	char *to = userdata;

	sprintf(to + strlen(to), "%.*s=%s;", (int)cursor_left(&name), name.p, value);
}

static void attributes_of_a_job_ad(_unused_ void **state)
{
	char text[2000] = "";

	job_ad_read(ad, sizeof(ad) - 1, collect, text);
	assert_string_equal(text, "ClusterId=17;ProcId=2;Owner=alice;JobBatchName=a \"b\" c;"
				  "Cmd=/home/alice/train.sh;");
	text[0] = '\0';
	job_ad_read("Owner = \"open\nProcId = 1 + 1\nCmd = \"x\" y\n=\n", 42, collect, text);
	assert_string_equal(text, "");
	assert_string_equal(claim_of(VARIABLES("condor:ClusterId=17\0condor:ProcId=2\0condor:Owner=alice\0"
					       "condor:Cmd=/home/alice/train.sh\0"),
				     PROC_JOB_NONE)
				    .name,
			    "train.sh");
}

/* ---- a process ---- */

/* What is found of a process with this environment, with a blank after each variable. */
static void found_of(const char *const *environment, const char *more, char text[static 4096])
{
	const char *argv[] = { "/bin/cat", NULL };
	int told[2], said[2], status;
	size_t n = 0;
	char c;
	pid_t pid;

	assert_int_equal(pipe(told) | pipe(said), 0);
	assert_int_equal(write(told[1], "x", 1), 1);
	pid = fork();
	if (pid == 0) {
		close(told[1]);
		dup2(told[0], STDIN_FILENO);
		dup2(said[1], STDOUT_FILENO);
		execve(argv[0], (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)environment);
		_exit(EXIT_FAILURE);
	}
	close(told[0]);
	assert_int_equal(read(said[0], &c, 1), 1);
	assert_int_equal(proc_job_environment("/proc", (uint32_t)pid, more, text, 4095, &n), 0);
	for (size_t i = 0; i < n; i++)
		text[i] = (char)(text[i] ? text[i] : ' ');
	text[n] = '\0';
	close(told[1]);
	close(said[0]);
	close(said[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void variables_of_a_process(_unused_ void **state)
{
	const char *environment[] = { "PATH=/bin", "SLURM_JOB_ID=42", "SECRET=1", "RUN_ID=r",
				      "RUN_IDS=x", "RANK=1",          NULL };
	char text[4096];

	need_processes();
	found_of(environment, "RUN_ID", text);
	assert_string_equal(text, "SLURM_JOB_ID=42 RUN_ID=r RANK=1 ");
	found_of(environment, "A,RUN_IDS", text);
	assert_string_equal(text, "SLURM_JOB_ID=42 RUN_IDS=x RANK=1 ");
	assert_int_equal(proc_job_environment("/proc", UINT32_MAX, "", text, sizeof(text), &(size_t){ 0 }),
			 -ESRCH);
}

static void a_folder_of_htcondor(_unused_ void **state)
{
	char folder[] = "/tmp/gpusonde-job-XXXXXX", path[64], variable[96], text[4096];
	const char *environment[] = { variable, NULL };
	FILE *file;

	need_processes();
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	snprintf(path, sizeof(path), "%s/.job.ad", folder);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(ad, file);
	fclose(file);
	for (unsigned i = 0; i < 2; i++) {
		if (i == 0)
			snprintf(variable, sizeof(variable), "_CONDOR_JOB_AD=%s", path);
		else
			snprintf(variable, sizeof(variable), "_CONDOR_SCRATCH_DIR=%s", folder);
		found_of(environment, "", text);
		assert_string_equal(text, "condor:ClusterId=17 condor:ProcId=2 condor:Owner=alice "
					  "condor:JobBatchName=a \"b\" c condor:Cmd=/home/alice/train.sh ");
	}
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slurm),
		cmocka_unit_test(pbs_and_lsf),
		cmocka_unit_test(ranks_are_those_of_the_innermost_launcher),
		cmocka_unit_test(hostile_values),
		cmocka_unit_test(attributes_of_a_job_ad),
		cmocka_unit_test(variables_of_a_process),
		cmocka_unit_test(a_folder_of_htcondor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
