#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tags of the node: what its GPUs are, what the configuration says, labels of the cluster's node; the same pairs in every view."""
import json
import re

from e2e.fake_kube import Api, Server
from lib.e2e import Agent, contains, equal, run, wait_for

NODE = "node-1"
MIG = "node-mig"


def of_page(text):
    """(key, value) pairs, in their order, each of which must be there once."""
    pairs = re.findall(r'^gpusonde_node_tag_info\{key="([^"]*)",value="([^"]*)"\} 1$', text, re.M)
    equal(len(pairs), len(set(pairs)), "pairs that are there once")
    return sorted(pairs)


def pairs_of(document):
    """"key:value"; a key has no colon."""
    return sorted(tuple(tag.split(":", 1)) for tag in document["node"]["tags"])


def of_json(agent):
    return pairs_of(agent.get("/api/v1/node").json())


def everywhere(agent):
    """The tags, when every view has the same ones."""
    def same():
        # Pages of one moment may be of two snapshots.
        found = [of_json(agent)] + [of_page(agent.get(page).text) for page in ("/metrics", "/metrics/dcgm")]
        document = json.loads(agent.cli("snapshot", "--json").stdout)
        found.append(pairs_of(document))
        return found[0] if all(f == found[0] for f in found) else None
    return wait_for(same, "the same tags on all pages")


def values_of(tags, key):
    return [value for k, value in tags if k == key]


def test_what_the_gpus_are():
    with Agent() as agent:
        tags = everywhere(agent)
        gpus, node = agent.get("/api/v1/gpus").json()["gpus"], agent.get("/api/v1/node").json()["node"]
        for key, wanted in {"gpu_host": ["true"], "gpu_vendor": ["nvidia"], "gpu_count": [str(len(gpus))], "gpu_simulated": ["true"],
                            "gpu_model": sorted({g["name"] for g in gpus}), "gpu_architecture": sorted({g["architecture"] for g in gpus}),
                            "gpu_mig_mode": ["disabled"], "gpu_mig_profile": [], "gpu_driver_version": [node["driver_version"]],
                            "gpu_cuda_version": [node["cuda_version"]]}.items():
            equal(values_of(tags, key), wanted, key)


def test_instances():
    with Agent(scenario=MIG) as agent:
        tags = everywhere(agent)
        profiles = {i["profile"] for g in agent.get("/api/v1/gpus").json()["gpus"] for i in g["mig"]}
        assert profiles, "a node with instances"
        equal(values_of(tags, "gpu_mig_profile"), sorted(profiles))
        contains(values_of(tags, "gpu_mig_mode"), "enabled")


def test_two_models_and_none():
    with Agent(scenario="cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm}\n  - {model: a100-sxm}\n") as agent:
        equal(len(values_of(everywhere(agent), "gpu_model")), 2)
        equal(values_of(everywhere(agent), "gpu_count"), ["2"])
    with Agent("--node-tags", "rack:r1", scenario="empty", wait=False) as agent:
        wait_for(agent.port, "the agent to listen")
        equal(everywhere(agent), [("rack", "r1")])


def test_what_it_was_given():
    """By the configuration, whose keys are never the GPUs' own, and by the cluster, after it."""
    api = Api()
    api.objects[f"/api/v1/nodes/{NODE}"] = {"metadata": {"labels": {"zone": "a", "pool": "two", "gpu_model": "x"}}}
    server = Server(api)
    try:
        with Agent("--node-tags", "pool:one,team/x:ml", "--kube-server", f"http://127.0.0.1:{server.port}", "--kube-node", NODE,
                   "--kube-node-labels", "zone,pool,gpu_model") as agent:
            wait_for(lambda: ("zone", "a") in of_json(agent), "the node's label")
            tags = everywhere(agent)
            equal([(k, v) for k, v in tags if not k.startswith("gpu_")], [("pool", "one"), ("team/x", "ml"), ("zone", "a")])
            assert "x" not in values_of(tags, "gpu_model")
    finally:
        server.stop()


if __name__ == "__main__":
    run()
