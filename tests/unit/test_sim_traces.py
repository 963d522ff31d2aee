"""Workloads from tables: of Slurm sites, of sacct -P, of Philly and openb."""

import gzip
from pathlib import Path

import pytest

from slurm_score.errors import WorkloadError
from slurm_score.sim.traces import read_openb_nodes, read_table
from slurm_score.sim.workload import Asked, Workload
from tests.unit.sim_support import DATA, needs_data

SITE_CSV = """name,submit,user,qos,partition,nodes,ntasks,mem,constraint,gres,exclusive,timelimit_s,walltime
jobid_00007,10.75,ann,priority,general,2,18,62G,IB|OPA,gpu:V100:1,0,7200,3600.0
jobid_00009,11,bob,normal,debug,1,1,,,,1,60,90
jobid_00010,12,bob,normal,debug,1,1,,,,1,60,0
"""


def written(folder: Path, text: str, name: str = "table.csv") -> Path:
    """Return a file with a text in it, gzipped if its name says so."""
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def asked_of(work: Workload) -> Asked:
    """Return what the jobs ask for."""
    assert work.asked is not None
    return work.asked


def problems(path: Path) -> list[str]:
    """Return what is wrong with a table, the file's folder left out."""
    with pytest.raises(WorkloadError) as caught:
        read_table(path)
    return [str(problem).replace(f"{path.parent}/", "") for problem in caught.value.problems]


@pytest.mark.parametrize("name", ["week.csv", "week.csv.gz"])
def test_a_site_s_table_is_read(tmp_path: Path, name: str) -> None:
    """Tasks are spread evenly over the nodes; a job that never ran is left out; a low limit is raised."""
    work = read_table(written(tmp_path, SITE_CSV, name))
    asked = asked_of(work)
    assert (work.name, work.job_id.tolist(), work.submit_s.tolist()) == ("week", [7, 9], [10, 11])
    assert (work.run_s.tolist(), work.request_s.tolist()) == ([3600, 90], [7200, 90])
    assert (work.users, work.qos_names) == (("ann", "bob"), ("priority", "normal"))
    assert (asked.nodes.tolist(), asked.cores.tolist()) == ([2, 1], [9, 1])
    assert (asked.mem_mib.tolist(), asked.gpus.tolist()) == ([62 * 1024, 0], [1, 0])
    assert [asked.gpu_sets[code] for code in asked.gpu_set.tolist()] == [("v100",), ()]
    assert [asked.features[code] for code in asked.feature.tolist()] == ["IB|OPA", ""]
    assert (asked.partitions, asked.exclusive.tolist()) == (("general", "debug"), [False, True])
    assert [remark.partition(": ")[2] for remark in work.remarks] == [
        "1 jobs never ran and are left out",
        "1 jobs ran longer than their request, which is raised to that",
    ]


def test_sacct_is_read_by_its_columns_names(tmp_path: Path) -> None:
    """In any order; GPUs, CPUs and memory become those of one node. Source: sacct(1)."""
    text = """Submit|JobID|User|Partition|QOS|NNodes|ReqCPUS|ReqMem|ReqTRES|Elapsed|Timelimit|Constraints
2026-01-31T23:59:59|12|ann|gpu,cpu|normal|2|16|64G|cpu=16,gres/gpu=4,gres/gpu:a100=4|1-00:00:01|2-00:00:00|IB
1769903999|13_4|bob|cpu|normal|1|2|4Gc||00:10:00|UNLIMITED|
"""
    work = read_table(written(tmp_path, text, "jobs.txt"))
    asked = asked_of(work)
    assert work.submit_s.tolist() == [1769903999, 1769903999]
    assert (work.job_id.tolist(), work.run_s.tolist()) == ([1, 2], [86401, 600])
    assert work.request_s.tolist() == [172800, 600]
    assert (asked.nodes.tolist(), asked.cores.tolist(), asked.gpus.tolist()) == ([2, 1], [8, 2], [2, 0])
    assert asked.mem_mib.tolist() == [65536, 8192]
    assert asked.gpu_sets[asked.gpu_set[0]] == ("a100",)
    assert asked.partitions == ("gpu", "cpu")


def test_sacct_s_raw_columns_do_as_well(tmp_path: Path) -> None:
    """TimelimitRaw is in minutes."""
    text = "JobID|Submit|ElapsedRaw|TimelimitRaw|AllocNodes|NCPUS\n5|100|30|2|1|4\n6|100|30||1|4\n"
    work = read_table(written(tmp_path, text))
    assert (work.run_s.tolist(), work.request_s.tolist()) == ([30, 30], [120, 30])
    assert (work.job_id.tolist(), work.procs.tolist()) == ([5, 6], [4, 4])


def test_every_wrong_field_is_named(tmp_path: Path) -> None:
    """File, line, field, and what is expected."""
    lines = [
        SITE_CSV.splitlines()[0],
        "a,10,u,q,p,two,1,,,,0,60,9",
        "b,10,u,q,p,1,1,lots,,gpu:,0,60,9",
        "c,10,u,q,p,1,1",
        "d,-1,u,q,p,0,1,,,,0,60,nan",
    ]
    assert problems(written(tmp_path, "\n".join(lines))) == [
        "table.csv:2: field nodes: not a number, got 'two'; a number from 1 on",
        "table.csv:3: field gres: a GRES text that was cut off, got 'gpu:'; "
        "ask squeue for the field without a width",
        "table.csv:3: field mem: not a memory, got 'lots'; such as 187000M or 62G",
        "table.csv:4: not a job, got 7 fields; 13 are expected",
        "table.csv:5: field nodes: not a number, got '0'; a number from 1 on",
        "table.csv:5: field submit: not a number, got '-1'; a number from 0 on",
        "table.csv:5: field walltime: not a number, got 'nan'; a number from 0 on",
    ]


def test_problems_end_somewhere(tmp_path: Path) -> None:
    """After twenty the rest isn't read."""
    found = problems(written(tmp_path, SITE_CSV + "x\n" * 100))
    assert (len(found), found[-1]) == (21, "table.csv: 20 problems so far; the rest is not read")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "table.csv: has no header; the first line names the columns"),
        (
            "JobID|Submit|ReqCPUS|NNodes\n",
            "table.csv:1: nearest to sacct -P, but lacks columns, got ElapsedRaw or Elapsed, TimelimitRaw or "
            "Timelimit; known: site csv, eagle csv, openb csv, philly csv, sacct -P",
        ),
        (
            "timestamp,duration,gpus,cluster\n",
            "table.csv:1: nearest to philly csv, but lacks columns, got num_gpus; "
            "known: site csv, eagle csv, openb csv, philly csv, sacct -P",
        ),
    ],
)
def test_a_table_of_no_known_form_is_told_what_it_lacks(tmp_path: Path, text: str, sentence: str) -> None:
    """By the form that it is nearest to."""
    assert problems(written(tmp_path, text)) == [sentence]


@pytest.mark.parametrize("stamp", ["2026-13-01 00:00:00", "yesterday"])
def test_a_wrong_date_is_a_problem(tmp_path: Path, stamp: str) -> None:
    """A date and a time of day, or seconds."""
    found = problems(written(tmp_path, f"timestamp,duration,num_gpus,cluster\n{stamp},5,1,a\n"))
    assert found[0].startswith("table.csv:2: field timestamp: not a ")


def test_a_file_that_isn_t_there_is_one_sentence(tmp_path: Path) -> None:
    """Not a traceback."""
    assert problems(tmp_path / "none.csv")[0].startswith("none.csv: can't be read: ")


@needs_data
@pytest.mark.parametrize(
    ("file", "jobs", "gpus", "sets"),
    [
        ("slurm-sites/ubhpc-week.csv.gz", 19552, 139, 1),
        ("slurm-sites/eagle-sample.csv", 1000, 22, 1),
        ("gpu/philly-reduced.csv.gz", 82247, 107235, 1),
        ("gpu/openb_pod_list_gpuspec33.csv.gz", 7255, 6571, 17),
    ],
)
def test_the_tables_at_hand_are_read(file: str, jobs: int, gpus: int, sets: int) -> None:
    """Jobs that ran, the GPUs that they ask for, and sets of types: counted by other means."""
    work = read_table(DATA / file)
    assert work.gpus is not None
    assert (len(work), int(work.gpus.sum()), len(asked_of(work).gpu_sets)) == (jobs, gpus, sets)


@needs_data
def test_openb_s_nodes_are_a_cluster() -> None:
    """1,523 nodes with six GPU models and one more."""
    site = read_openb_nodes(DATA / "gpu" / "openb_node_list_all_node.csv.gz")
    counts = dict(zip(site.gpu_types, site.gpus.sum(axis=0).tolist(), strict=True))
    assert (len(site.node_names), counts) == (
        1523,
        {"a10": 2, "g2": 4392, "g3": 312, "p100": 265, "t4": 842, "v100m16": 195, "v100m32": 204},
    )


def test_a_list_of_nodes_needs_its_columns(tmp_path: Path) -> None:
    """One sentence."""
    with pytest.raises(WorkloadError, match="not a list of nodes, got a, b; as openb's"):
        read_openb_nodes(written(tmp_path, "a,b\n1,2\n"))
