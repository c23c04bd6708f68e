#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpusonde mcp, spoken to by hand; and by the protocol's own client, where that is installed."""
import asyncio
import json
import os
import subprocess
import tempfile

from lib import fetch
from lib.e2e import BUILD, GPUSONDE, PATIENCE_S, Agent, Skip, command, contains, environment, equal, run, wait_for
from lib.perfetto_write import Writer

HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
STATELESS = "2026-07-28"
META = "io.modelcontextprotocol/"


def well_formed(message):
    """As each version of the protocol's schema has an answer; whose request's id could not be read has none, which those before 2025-11-25 do not know."""
    for one in message if isinstance(message, list) else [message]:
        assert one["jsonrpc"] == "2.0" and isinstance(one.get("id", 0), (str, int)), one
        if "error" in one:
            assert set(one) <= {"jsonrpc", "id", "error"} and isinstance(one["error"]["code"], int) and isinstance(one["error"]["message"], str), one
        else:
            assert set(one) == {"jsonrpc", "id", "result"} and isinstance(one["result"], dict), one
    return message


class Server:
    def __init__(self, *flags, env=None):
        self.process = subprocess.Popen([GPUSONDE, "mcp", *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env or environment())
        self.next = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        equal((self.process.wait(PATIENCE_S), self.process.stderr.read()), (0, ""), "its end")
        self.process.stdout.close()
        self.process.stderr.close()

    def line(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return well_formed(json.loads(self.process.stdout.readline()))

    def say(self, **message):
        return self.line(json.dumps(dict(message, jsonrpc="2.0")))

    def ask(self, method, **params):
        self.next += 1
        answer = self.say(id=self.next, method=method, params=params)
        equal((answer["jsonrpc"], answer["id"]), ("2.0", self.next))
        return answer["result"] if "result" in answer else answer["error"]

    def call(self, tool, **arguments):
        return self.ask("tools/call", name=tool, arguments=arguments)


def test_handshakes():
    for asked, got in [*((version, version) for version in HANDSHAKES), ("1999-01-01", HANDSHAKES[-1]), (STATELESS, HANDSHAKES[-1])]:
        with Server() as server:
            result = server.ask("initialize", protocolVersion=asked, capabilities={}, clientInfo={"name": "test", "version": "0"})
            equal((result["protocolVersion"], result["serverInfo"]["name"], result["capabilities"]), (got, "gpusonde", {"tools": {}}), asked)
            equal(server.line('{"jsonrpc":"2.0","method":"notifications/initialized"}\n{"jsonrpc":"2.0","id":"text","method":"ping"}'),
                  {"jsonrpc": "2.0", "id": "text", "result": {}})


def test_requests_that_name_their_version():
    meta = {META + "protocolVersion": STATELESS, META + "clientInfo": {"name": "test", "version": "0"}, META + "clientCapabilities": {}}
    with Server() as server:
        result = server.ask("server/discover", _meta=meta)
        equal(result["supportedVersions"], [*HANDSHAKES, STATELESS])
        tools = server.ask("tools/list", _meta=meta)
        for answer in (result, tools):
            equal((answer["resultType"], answer["cacheScope"], answer["_meta"][META + "serverInfo"]["name"]), ("complete", "private", "gpusonde"))
        equal(server.ask("tools/list"), {"tools": tools["tools"]}, "the same tools after a handshake")
        error = server.ask("tools/list", _meta={META + "protocolVersion": "2099-01-01"})
        equal((error["code"], error["data"]), (-32022, {"supported": [*HANDSHAKES, STATELESS], "requested": "2099-01-01"}))


def schema_of(version):
    """A function that says what is wrong in a message by a definition of the protocol's own schema."""
    try:
        import jsonschema
    except ImportError:
        raise Skip("the package jsonschema is not installed: messages were checked by the test's own rules alone") from None
    try:
        path, = fetch.get(f"mcp-schema-{version}", f"{BUILD}/real").values()
    except fetch.Unavailable as why:
        raise Skip(f"{why}; messages were checked by the test's own rules alone") from None
    with open(path, encoding="utf-8") as f:
        schema = json.load(f)
    where = "$defs" if "$defs" in schema else "definitions"
    return lambda name, value: [f"{version} {name} {e.json_path}: {e.message}" for e in
                                jsonschema.validators.validator_for(schema)({"$schema": schema["$schema"], "$ref": f"#/{where}/{name}", where: schema[where]}).iter_errors(value)]


def answers_by_name(server, version):
    """(the name of its definition, an answer) of every kind that there is."""
    meta = {} if version != STATELESS else {"_meta": {META + "protocolVersion": version, META + "clientInfo": {"name": "test", "version": "0"}, META + "clientCapabilities": {}}}
    if meta:
        yield "DiscoverResult", server.ask("server/discover", **meta)
    else:
        yield "InitializeResult", server.ask("initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "test", "version": "0"})
        yield "EmptyResult", server.ask("ping")
    yield "ListToolsResult", server.ask("tools/list", **meta)
    for arguments in ({"columns": "gpu,name"}, {"nonsense": 1}):
        yield "CallToolResult", server.ask("tools/call", name="gpus", arguments=arguments, **meta)
    old = version < "2025-11-25"
    result, error = ("JSONRPCResponse", "JSONRPCError") if old else ("JSONRPCResultResponse", "JSONRPCErrorResponse")
    yield result, server.say(id="a", method="tools/list", params=meta)
    yield error, server.say(id=1, method="nothing", params=meta)
    yield error, server.say(id=1, method="tools/call", params={"name": "rm", **meta})
    if not old: # before, no answer without an id was foreseen, nor one with null
        yield error, server.line("x")
        yield error, server.line("[]")


def test_answers_are_as_the_protocols_schema_has_them():
    with Agent() as agent:
        for version in (*HANDSHAKES, STATELESS):
            wrong = schema_of(version)
            assert wrong("ListToolsResult", {"tools": 1}), "a schema that finds nothing"
            with Server("--socket", agent.socket) as server:
                equal([fault for name, answer in answers_by_name(server, version) for fault in wrong(name, answer)], [])


def test_what_cannot_be_ended_early_is_answered():
    """A request is answered before the next message is read: one that is cancelled has been, and notifications of any kind have no answer."""
    with Server("--socket", "none") as server:
        cancelled = json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "no need"}})
        progress = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": 5})
        equal(server.line(f"{cancelled}\n{progress}\n" + '{"jsonrpc":"2.0","id":2,"method":"ping","params":{"_meta":7}}')["id"], 2)
        # With another version in every request: each is answered by its own.
        for version, code in ((STATELESS, None), ("2025-11-25", -32022), (5, None), (None, None)):
            equal(server.ask("tools/list", _meta={META + "protocolVersion": version}).get("code"), code, version)


def test_tools_are_the_commands():
    with Agent() as agent, Server("--socket", agent.socket) as server:
        tools = {tool["name"]: tool for tool in server.ask("tools/list")["tools"]}
        equal(set(tools), {"gpus", "processes", "explain", "findings", "health", "report", "analyze_timeline"})
        for tool in tools.values():
            equal((tool["annotations"]["readOnlyHint"], tool["inputSchema"]["additionalProperties"]), (True, False), tool["name"])
            assert all(schema["description"] and schema["type"] in ("string", "boolean") for schema in tool["inputSchema"]["properties"].values()), tool
        equal(tools["processes"]["inputSchema"]["properties"]["by"]["enum"], ["container", "pod", "job", "user"])
        equal(tools["analyze_timeline"]["inputSchema"]["required"], ["file"])

        wait_for(lambda: len(json.loads(agent.cli("ps", "--json").stdout)["processes"]) > 8, "processes")
        result = server.call("gpus", columns="gpu,uuid", filter="gpu>=1", sort="+gpu")
        document = json.loads(agent.cli("gpus", "--json", "--columns", "gpu,uuid", "--filter", "gpu>=1", "--sort", "+gpu").stdout)
        equal((result["isError"], result["structuredContent"]["gpus"], result["structuredContent"]["simulated"]), (False, document["gpus"], True))
        equal(json.loads(result["content"][0]["text"]), result["structuredContent"])
        equal({process["gpu"] for process in server.call("processes", gpu=2)["structuredContent"]["processes"]}, {2})
        assert server.call("processes", by="user")["structuredContent"]["groups"]
        explained = server.call("explain", about="gpu:2")["structuredContent"]
        equal([subject["gpu"] for subject in explained["subjects"]], [2])
        equal(tools["explain"]["inputSchema"]["required"], [])
        contains(server.call("findings")["content"][0]["text"], "the agent does not analyse")
        # A command that finds faults ends with 1, and what it found is the answer.
        assert server.call("health")["structuredContent"]["checks"]


def slow_program(path):
    """A timeline of a thread that waits for copies half of its time."""
    writer = Writer(real_offset=10**18)
    thread = writer.thread(writer.process(7, "train"), 7, 8)
    for at in range(10**12, 10**12 + 20 * 10**9, 10**7):
        writer.slice(thread, "cuda", "cudaMemcpy", at, at + 5 * 10**6, bytes=4096, kind=1)
    writer.write(path)


def every_answer(server, tmp):
    """(tool, its result), of each tool but `findings`, whose document is analyze_timeline's."""
    slow_program(f"{tmp}/slow.pftrace")
    wait_for(lambda: not server.call("report", file=f"{tmp}/r.gsr")["isError"], "a recording")
    for tool, arguments in (("gpus", {}), ("gpus", {"columns": "gpu,utilization_ratio.gpu,clocks_event_reason", "sort": "gpu"}), ("processes", {}), ("processes", {"columns": "pid,gpu,cuda.launches_total"}),
                            *(("processes", {"by": by}) for by in ("container", "pod", "job", "user")), ("explain", {}), ("explain", {"about": "gpu:0"}), ("health", {}),
                            *(("report", {"file": f"{tmp}/r.gsr", **whose}) for whose in ({"price": "0.3EUR"}, {"user": "0"})), ("analyze_timeline", {"file": f"{tmp}/slow.pftrace"})):
        yield tool, server.call(tool, **arguments)


def test_answers_are_as_the_tools_schemas_have_them():
    """What is structured in each answer, whichever columns were asked for; and the schemas know the members that there are."""
    try:
        import jsonschema
    except ImportError:
        raise Skip("no jsonschema here: apt-get install python3-jsonschema") from None
    with tempfile.TemporaryDirectory() as tmp, Agent("--recording-path", f"{tmp}/r.gsr", scenario="sick") as agent, Server("--socket", agent.socket) as server:
        schemas = {tool["name"]: tool["outputSchema"] for tool in server.ask("tools/list")["tools"]}
        for schema in schemas.values():
            jsonschema.Draft202012Validator.check_schema(schema)
        equal(schemas["findings"], schemas["analyze_timeline"])
        seen = {"findings"}
        for tool, result in every_answer(server, tmp):
            equal(result["isError"], False, result)
            document, schema = result["structuredContent"], schemas[tool]
            equal([f"{tool} {e.json_path}: {e.message}" for e in jsonschema.Draft202012Validator(schema).iter_errors(document)], [])
            assert set(document) <= set(schema["properties"]), (tool, set(document) - set(schema["properties"]))
            assert list(jsonschema.Draft202012Validator(schema).iter_errors({**document, list(document)[0]: {}})), "a schema that finds nothing"
            seen.add(tool)
        equal(seen, set(schemas))
        gpu = server.call("gpus")["structuredContent"]["gpus"][0]
        assert set(gpu) <= set(schemas["gpus"]["$defs"]["gpu"]["properties"]), "each member of a GPU"
        assert len(json.dumps(schemas)) < 40 << 10, "assistants may have them in their context"
    with Server("--socket", "none", env=environment(GPUSONDE_NVML_LIBRARY="/nonexistent.so")) as server:
        jsonschema.validate(server.call("gpus")["structuredContent"], schemas["gpus"])


def test_what_is_wrong_is_said():
    with Server("--socket", "none", env=environment(GPUSONDE_NVML_LIBRARY="/nonexistent.so")) as server:
        for tool, arguments, words in (("gpus", {"nonsense": 1}, 'gpus has no argument "nonsense"'), ("gpus", {"filter": []}, "the argument filter must be a text"),
                                       ("gpus", {"filter": "x" * 5000}, "the argument filter must be a text"), ("processes", {"by": "--json"}, "--by cannot be"),
                                       ("analyze_timeline", {}, "the argument file is needed"), ("analyze_timeline", {"file": "--help"}, "./--help"),
                                       ("analyze_timeline", {"file": "--"}, "./--"), ("analyze_timeline", {"file": "/bin/true"}, "it is no timeline"),
                                       ("analyze_timeline", {"file": "/nonexistent"}, "No such file"), ("analyze_timeline", {"file": "/dev/zero"}, "it is no regular file"),
                                       ("report", {"file": "/dev/zero"}, "it is no regular file"), ("report", {"file": 5}, "the argument file must be a path"),
                                       ("report", {"file": ""}, "the argument file must be a path"), ("report", {"file": "x" * 5000}, "the argument file must be a path"),
                                       ("gpus", {"x" * 59 + "\u00e9": 1}, "gpus has no argument"), ("processes", {"user": "1\n--json"}, "--user cannot be"),
                                       ("explain", {"about": 5}, "the argument about must be a text"), ("explain", {"about": "--json"}, "/nonexistent.so"),
                                       ("explain", {"file": "x"}, 'explain has no argument "file"'), ("findings", {"about": "0"}, 'findings has no argument "about"'),
                                       ("report", {"file": "/nonexistent", "since": "never"}, "never")):
            result = server.call(tool, **arguments)
            equal(result["isError"], True, (tool, arguments))
            contains(result["content"][0]["text"], words)
        # Without a driver the document says why it is empty.
        contains(server.call("gpus")["structuredContent"]["error"], "/nonexistent.so")
        equal(server.ask("tools/call", name="rm")["code"], -32602)
        equal(server.ask("tools/call", name="gpus", arguments=[])["code"], -32602)
        equal(server.ask("resources/list")["code"], -32601)
        for line, code in (("x", -32700), ("[]", -32600), ("7", -32600), ('{"id":1}', -32600), ('{"jsonrpc":"2.0","id":[],"method":"ping"}', -32600),
                           ('{"a":' * 5000, -32700), ("x" * (2 << 20), -32600), ('{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700)):
            equal(server.line(line)["error"]["code"], code, line[:60])
        answers = server.line('[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2,"method":"x"}]')
        equal([answer.get("result", answer.get("error", {}).get("code")) for answer in answers], [{}, -32601])
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        equal(len(server.line(json.dumps([ping] * 16))), 16)
        equal(server.line(json.dumps([ping] * 17))["error"]["code"], -32600, "answers would fill the memory")
        equal(server.line(json.dumps([[ping]]))[0]["error"]["code"], -32600, "no answer is left out")
        equal(server.ask("ping"), server.say(id=99, method="ping")["result"], "it goes on")


def test_a_fifo_is_not_waited_for():
    with tempfile.TemporaryDirectory() as folder, Server("--socket", "none") as server:
        os.mkfifo(f"{folder}/fifo")
        for tool in ("analyze_timeline", "report"):
            contains(server.call(tool, file=f"{folder}/fifo")["content"][0]["text"], "it is no regular file")


def test_the_protocols_own_client():
    try:
        import mcp
        import mcp.client.stdio
    except ImportError:
        raise Skip("the package mcp of PyPI is not installed: its client was not tried") from None

    def program(socket):
        return mcp.client.stdio.stdio_client(mcp.StdioServerParameters(command=GPUSONDE, args=["mcp", "--socket", socket], env=environment()))

    async def use(client):
        tools = await client.list_tools()
        result = await client.call_tool("gpus", {"columns": "gpu,name"})
        return [tool.name for tool in tools.tools], json.loads(result.content[0].text)["gpus"]

    async def by_handshake(socket):
        async with program(socket) as streams, mcp.ClientSession(*streams) as session:
            await session.initialize()
            return await use(session)

    async def by_discovery(socket):
        async with mcp.Client(program(socket)) as client:
            equal(client.protocol_version, STATELESS)
            return await use(client)

    with Agent() as agent:
        wait_for(lambda: json.loads(agent.cli("gpus", "--json").stdout)["gpus"], "GPUs")
        gpus = json.loads(agent.cli("gpus", "--json", "--columns", "gpu,name").stdout)["gpus"]
        # Before version 2 there is no other way than the handshake.
        for ask in (by_handshake, by_discovery) if hasattr(mcp, "Client") else (by_handshake,):
            names, got = asyncio.run(ask(agent.socket))
            assert "gpus" in names, names
            equal(got, gpus)


def test_help():
    contains(command("mcp", "--help").stdout, "Model Context Protocol")


if __name__ == "__main__":
    run()
