// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "view/findings.h"

static const struct table_options plain = { 0 };

static struct findings *one(void)
{
	struct findings *findings = findings_new(1, 2, 3, 0, NULL);

	assert_non_null(findings);
	findings->n = 1;
	findings->rules_n = 2;
	findings->events = 12;
	findings->rules[0] =
		(struct finding_rule){ "copy_bound", "threads wait for copies", "copy less", .active = 1 };
	findings->rules[1] =
		(struct finding_rule){ "straggler", "a rank is late", "look at it", .missing = 1 << 1 };
	findings->evidence[0] = "copies";
	findings->evidence[1] = "operations of NCCL";
	findings->list[0] = (struct finding){
		.active = true,
		.pid = 7,
		.node = "node1",
		.device = "GPU 0",
		.subject = "cudaMemcpy",
		.communicator = 0xab,
		.begin_ns = 1500000000,
		.end_ns = 2500000000,
		.confidence = 0.8,
		.without = 1 << 1,
		.values_n = 4,
		.values = { { "time_share", UNIT_RATIO, 0.125 },
			    { "mean_bytes", UNIT_BYTES, 2048 },
			    { "slowest", UNIT_SECONDS, 0.0021 },
			    { "calls", UNIT_NONE, 31 } },
		.frames_n = 3,
	};
	findings->frames_n = 3;
	findings->frames[0] = (struct finding_frame){ 0, "main (train.py:7)", "0-3" };
	findings->frames[1] = (struct finding_frame){ 1, "step (train.py:20)", "0-3" };
	findings->frames[2] = (struct finding_frame){ 2, "load (data.py:3)", "2" };
	return findings;
}

static void as_text(_unused_ void **state)
{
	struct findings *findings = one();
	struct strbuf out;

	strbuf_init(&out, 0);
	assert_int_equal(text_findings(findings, &plain, &out), 0);
	assert_string_equal(
		out.data,
		"copy_bound: threads wait for copies: cudaMemcpy (node1, PID 7, GPU 0, communicator 0xab, "
		"confidence 80 %)\n"
		"  evidence: time_share 12.5 %, mean_bytes 2.0 KiB, slowest 2.1 ms, calls 31\n"
		"  timeline: 1.500000 s to 2.500000 s, at the process\n"
		"  stacks by frame, the outermost first, with their ranks:\n"
		"    main (train.py:7)  [0-3]\n"
		"     step (train.py:20)\n"
		"      load (data.py:3)  [2]\n"
		"  surer with: operations of NCCL\n"
		"  remedy: copy less\n"
		"\n"
		"not judged for want of operations of NCCL: straggler\n");
	strbuf_done(&out);
	free(findings);
}

static void as_json(_unused_ void **state)
{
	struct findings *findings = one();
	struct strbuf out;

	findings->real_offset_ns = 1000000000;
	findings->beyond = 3;
	strbuf_init(&out, 0);
	assert_int_equal(json_findings(findings, &out), 0);
	assert_string_equal(
		out.data, "{\"findings\":[{\"finding\":\"copy_bound\",\"id\":null,\"caused_by\":null,"
			  "\"symptoms\":[],\"title\":\"threads wait for copies\","
			  "\"active\":true,\"node\":\"node1\",\"pid\":7,\"device\":\"GPU 0\","
			  "\"subject\":\"cudaMemcpy\","
			  "\"communicator\":\"0x00000000000000ab\",\"confidence\":0.8,"
			  "\"evidence\":{\"time_share\":0.125,\"mean_bytes\":2048,\"slowest_seconds\":0.0021,"
			  "\"calls\":31},\"surer_with\":[\"operations of NCCL\"],\"remedy\":\"copy less\","
			  "\"timeline\":{\"begin_ns\":1500000000,\"end_ns\":2500000000,"
			  "\"begin\":\"1970-01-01T00:00:02.500Z\",\"end\":\"1970-01-01T00:00:03.500Z\","
			  "\"track\":\"process\"},"
			  "\"stacks\":[{\"depth\":0,\"frame\":\"main (train.py:7)\",\"ranks\":\"0-3\"},"
			  "{\"depth\":1,\"frame\":\"step (train.py:20)\",\"ranks\":\"0-3\"},"
			  "{\"depth\":2,\"frame\":\"load (data.py:3)\",\"ranks\":\"2\"}]}],"
			  "\"rules\":[{\"finding\":\"copy_bound\",\"judged\":true,\"active\":1,"
			  "\"missing_evidence\":[]},{\"finding\":\"straggler\",\"judged\":false,\"active\":0,"
			  "\"missing_evidence\":[\"operations of NCCL\"]}],"
			  "\"events\":12,\"events_out_of_order\":0,\"beyond_limits\":3}");
	strbuf_done(&out);
	free(findings);
}

/* A symptom is listed under its cause, and not counted; one whose cause is not there stands alone. */
static void symptoms(_unused_ void **state)
{
	struct findings *findings = findings_new(3, 2, 0, 0, NULL);
	struct strbuf out;

	assert_non_null(findings);
	strbuf_init(&out, 0);
	findings->n = 3;
	findings->rules_n = 2;
	findings->events = 1;
	findings->rules[0] =
		(struct finding_rule){ .name = "effect", .title = "it is slow", .remedy = "look" };
	findings->rules[1] =
		(struct finding_rule){ .name = "cause", .title = "it is hot", .remedy = "cool it" };
	findings->list[0] = (struct finding){ .rule = 0, .id = 1, .cause = 2, .active = true, .pid = 7 };
	findings->list[1] = (struct finding){ .rule = 1, .id = 2, .active = true, .device = "GPU 0" };
	findings->list[2] = (struct finding){ .rule = 0, .id = 3, .cause = 9, .active = true, .pid = 8 };
	findings_count(findings);
	assert_int_equal(findings->rules[0].active, 1);
	assert_int_equal(findings->rules[1].active, 1);
	assert_int_equal(text_findings(findings, &plain, &out), 0);
	assert_string_equal(out.data, "cause: it is hot (GPU 0, confidence 0 %)\n"
				      "  timeline: 0.000000 s to 0.000000 s, at the GPU\n"
				      "  remedy: cool it\n"
				      "  explains these, its symptoms:\n"
				      "    effect: it is slow (PID 7, confidence 0 %)\n"
				      "\n"
				      "effect: it is slow (PID 8, confidence 0 %)\n"
				      "  timeline: 0.000000 s to 0.000000 s, at the process\n"
				      "  remedy: look\n"
				      "\n");
	strbuf_reset(&out);
	assert_int_equal(json_findings(findings, &out), 0);
	assert_non_null(strstr(out.data, "\"id\":1,\"caused_by\":2,\"symptoms\":[]"));
	assert_non_null(strstr(out.data, "\"id\":2,\"caused_by\":null,\"symptoms\":[1]"));
	assert_non_null(strstr(out.data, "\"id\":3,\"caused_by\":null,\"symptoms\":[]"));
	findings->real_offset_ns = INT64_C(1790000000) * 1000000000;
	strbuf_reset(&out);
	assert_int_equal(text_findings(findings, &plain, &out), 0);
	assert_non_null(strstr(out.data, " s, from 2026-09-21T14:13:20.000Z, at the GPU\n"));
	/* A recording that makes no sense loses none of them. */
	findings->list[1].cause = 1;
	strbuf_reset(&out);
	assert_int_equal(text_findings(findings, &plain, &out), 0);
	assert_non_null(strstr(out.data, "\ncause: "));
	assert_non_null(strstr(out.data, "PID 7"));
	strbuf_done(&out);
	free(findings);
}

/* Nothing found and nothing looked at are two things. */
static void without_findings(_unused_ void **state)
{
	struct findings *findings = findings_new(0, 0, 0, 0, NULL);
	struct strbuf out;

	assert_non_null(findings);
	strbuf_init(&out, 0);
	assert_int_equal(text_findings(findings, &plain, &out), 0);
	assert_string_equal(out.data, "There was nothing to analyse.\n");
	strbuf_reset(&out);
	findings->events = 1;
	assert_int_equal(text_findings(findings, &plain, &out), 0);
	assert_string_equal(out.data, "Nothing was found by the rules that could be judged.\n");
	strbuf_done(&out);
	free(findings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_text),
		cmocka_unit_test(as_json),
		cmocka_unit_test(symptoms),
		cmocka_unit_test(without_findings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
