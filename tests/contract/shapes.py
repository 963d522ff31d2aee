"""The clusters that the answers are recorded on, made from docker/topology.yaml."""

from __future__ import annotations

from tests.live.topology import Gres, Node, Partition, Topology, load

# A job whose file /tmp/hold-<job id> exists on its node stays COMPLETING.
EPILOG_PATH = "/etc/slurm/epilog.sh"
EPILOG = "#!/bin/bash\nwhile [ -e /tmp/hold-$SLURM_JOB_ID ]; do sleep 0.1; done\n"

LAB_CONF = {
    "Licenses": "matlab:2",
    "JobSubmitPlugins": None,
    "Epilog": EPILOG_PATH,
    "PreemptType": "preempt/qos",
    "PreemptMode": "REQUEUE",
}
TOPOLOGY_PATH = "/etc/slurm/topology.conf"
TOPOLOGY = """\
SwitchName=s1 Nodes=c1,m[1-6]
SwitchName=s2 Nodes=n[1-15]
SwitchName=s3 Nodes=cl[1-2]
SwitchName=top Switches=s[1-3]
"""
NODES_CONF = {
    "JobSubmitPlugins": None,
    "TopologyPlugin": "topology/tree",
    "Epilog": EPILOG_PATH,
    "ResumeProgram": "/bin/true",
    "SuspendProgram": "/bin/true",
    "ResumeTimeout": "3600",
    "SuspendTime": "60",
    "SuspendTimeout": "1",
    "RebootProgram": "/bin/true",
    "ReturnToService": "1",  # a node that an admin sets down stays down
    "PrivateData": "cloud",  # up to 22.05 powered-down nodes of a cloud are hidden without it
}


def lab() -> Topology:
    """Return the cluster that jobs are prepared on: 10 a100, 6 v100 and a node without GPUs.

    g1 has the feature nvlink, g4 has both GPU types; partition short is g1 and g2, an hour at most.
    """
    base = load()
    nodes = {
        **base.nodes,
        "g1": base.nodes["g1"].model_copy(update={"features": ("nvlink",)}),
        "g4": Node(
            cpus=8,
            memory_mib=4000,
            gpu_type="a100",
            gpus=2,
            more_gres=(Gres(type="v100", count="2"),),
            features=("v100",),
        ),
        "c1": Node(cpus=8, memory_mib=4000),
    }
    partitions = {
        "main": Partition(nodes=tuple(nodes), default=True, max_time="7-0"),
        "short": Partition(nodes=("g1", "g2"), max_time="60"),
    }
    return base.model_copy(update={"nodes": nodes, "partitions": partitions})


def nodes_conf() -> dict[str, str | None]:
    """Return the parameters of the cluster of nodes: only those of the cloud are ever powered down."""
    return {**NODES_CONF, "SuspendExcNodes": ",".join(nodes().nodes)}


def nodes() -> Topology:
    """Return the cluster that nodes are recorded on: m1 to m6 differ in GRES, n1 to n15 get states.

    cl1 and cl2 belong to a cloud and have no container.
    """
    small = {"cpus": 4, "memory_mib": 2000}
    inventory = {
        "m1": Node(**small, gpu_type="a100", gpus=2, more_gres=(Gres(type="v100", count="2"),)),
        "m2": Node(
            **small,
            gpu_type="nvidia_h200_nvl_4g.71gb",
            gpus=2,
            more_gres=(Gres(type="1g.10gb", count="2"),),
        ),
        "m3": Node(**small, gpu_type="A100-SXM4-40GB", gpus=2, more_gres=(Gres(name="shard", count="8"),)),
        "m4": Node(
            **small,
            gpu_type="kepler",
            gpus=2,
            more_gres=(Gres(name="bandwidth", type="lustre", count="4G", no_consume=True),),
        ),
        "m5": Node(**small, more_gres=(Gres(count="2"),)),
        "m6": Node(**small, gpus=2, more_gres=(Gres(name="shard", count="4"),)),
        "c1": Node(**small),
    }
    states = {f"n{i}": Node(cpus=2, memory_mib=1000, gpu_type="a100", gpus=1) for i in range(1, 16)}
    all_nodes = {**inventory, **states}
    return load().model_copy(
        update={
            "nodes": all_nodes,
            "partitions": {"main": Partition(nodes=(*all_nodes, "cl1", "cl2"), default=True, max_time="7-0")},
            "more_lines": ("NodeName=cl[1-2] CPUs=2 RealMemory=1000 Gres=gpu:a100:1 State=CLOUD",),
        }
    )
