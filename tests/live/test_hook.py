"""The submit hook in real slurmctlds: every way to submit, every field, and what a broken hook costs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from .harness import Cluster, wait_for
from .hook import PATIENT, answers, health, install, read_all, read_log, recording, with_options
from .product import Product

ENFORCE = "mode: enforce\nslurm_factors: replace\nfactors: {remaining: {predict: false}}\n"
HAS_SCRONTAB = ["24.11", "26.05"]  # Debian's package of 22.05 leaves the command out


@pytest.fixture
def product(cluster: Cluster) -> Iterator[Product]:
    """The product in enforce with a patient hook, on full nodes; all is put back afterwards."""
    product = Product(cluster)
    shipped = read_all(cluster)
    product.set_policy(ENFORCE)
    product.cycle()
    product.fill()
    wait_for(lambda: health(product)["mode"] == "enforce", 30, "the service has the policy")
    product.replace_hook(with_options(shipped["job_submit.lua"], PATIENT))
    yield product
    install(product, shipped)
    cluster.clear_jobs()


# Ways to submit


def test_an_array_is_asked_for_once_and_has_one_score(product: Product) -> None:
    """The hook sees the whole array; all of its tasks are one record with one SiteFactor."""
    before = answers(product)
    array = product.submit("--array=0-9%2", "--gpus=1", "--time=10")
    assert answers(product) == before + 1
    sites = wait_for(lambda: product.sites() if array in product.sites() else None, 30, "the array is ranked")
    assert sites is not None
    assert sites[array] > 0


def test_a_het_job_is_asked_for_once_per_component(product: Product) -> None:
    """slurmctld calls the hook for each component, and each gets a score of its own."""
    before = answers(product)
    leader = product.submit("--gpus=1", "--time=10", ":", "--time=600", ":", "--time=20")
    assert answers(product) == before + 3
    sites = product.sites()
    assert all(sites[leader + offset] > 0 for offset in range(3))
    assert sites[leader + 2] > sites[leader + 1]


def test_a_job_for_two_partitions_is_asked_for_once(product: Product) -> None:
    """Slurm keeps one SiteFactor and adds it to the priority in each partition."""
    product.cluster.exec(["scontrol", "create", "PartitionName=second", "Nodes=g1,g3"])
    try:
        before = answers(product)
        job_id = product.submit("--partition=main,second", "--gpus=1", "--time=10")
        assert answers(product) == before + 1
        argv = ["sprio", "--noheader", f"--jobs={job_id}", "--format=%r %S"]
        rows = [row.split() for row in product.cluster.exec(argv).stdout.splitlines()]
        assert sorted(name for name, _ in rows) == ["main", "second"]
        assert len({site for _, site in rows} - {"0"}) == 1
        product.cluster.exec(["scancel", str(job_id)])
        product.wait_for_state(job_id, "CANCELLED")
    finally:
        product.cluster.exec(["scontrol", "delete", "PartitionName=second"])


@pytest.mark.parametrize("command", [["salloc", "--no-shell"], ["srun", "hostname"]], ids=lambda c: c[0])
def test_interactive_jobs_have_their_first_score(product: Product, command: list[str]) -> None:
    """salloc and srun pass the same hook as sbatch."""
    before = answers(product)
    line = 'exec "$@" </dev/null >/dev/null 2>&1 &'
    argv = [command[0], "--job-name=waits", "--gpus=1", "--time=10", *command[1:]]
    product.cluster.exec(["sh", "-c", line, "sh", *argv], user="alice")
    wait_for(lambda: "waits" in product.names().values(), 30, f"{command[0]} is in the queue")
    (job_id,) = (job_id for job_id, name in product.names().items() if name == "waits")
    assert answers(product) == before + 1
    assert product.sites()[job_id] > 0


def test_test_only_asks_and_leaves_nothing_behind(product: Product) -> None:
    """`sbatch --test-only` says when the job would start; there is no job afterwards."""
    before, records = answers(product), product.record_count()
    told = product.sbatch("--test-only", "--gpus=1", "--time=10")
    assert re.search(r"Job \d+ to start at \d{4}-\d\d-\d\dT", told.stderr)
    assert answers(product) == before + 1
    assert product.record_count() == records


@pytest.mark.parametrize("release", HAS_SCRONTAB, indirect=True)
def test_a_scrontab_job_has_a_first_score_that_stays(product: Product) -> None:
    """The hook is asked when the table is written; an update of such a job is refused by slurmctld."""
    cluster = product.cluster
    conf = cluster.read_file("/etc/slurm/slurm.conf")
    cluster.write_file("/etc/slurm/slurm.conf", conf + "ScronParameters=enable\n")
    cluster.exec(["scontrol", "reconfigure"])
    try:
        with recording(product, {"site_factor": 337}) as recorder:
            entry = "#SCRON --time=10 --job-name=nightly\n0 3 * * * true\n"
            cluster.exec(["scrontab", "-"], user="alice", stdin=entry)
            (asked,) = recorder.requests()
            assert (asked["cron_job"], asked["time_limit_min"]) == (True, 10)
            (job_id,) = (job_id for job_id, name in product.names().items() if name == "nightly")
            refused = cluster.exec(["scontrol", "update", f"JobId={job_id}", "SiteFactor=1"], check=False)
            assert refused.returncode == 1
            assert "cron" in refused.stderr.lower() or "scrontab" in refused.stderr.lower()
            cluster.exec(["scrontab", "-r"], user="alice")
    finally:
        cluster.write_file("/etc/slurm/slurm.conf", conf)
        cluster.exec(["scontrol", "reconfigure"])


# What is asked


def test_no_limit_a_limit_of_zero_and_no_word_about_it_are_told_apart(product: Product) -> None:
    """`--time=0` is UNLIMITED to sbatch; only a rule sets 0; no --time is null, the default comes later."""
    options = ("--time=UNLIMITED", "--time=0", "--time=30", "--job-name=zero", "--job-name=none")
    zero = 'if job_desc.name == "zero" then job_desc.time_limit = 0 end'
    with recording(product, {"site_factor": 337}, zero) as recorder:
        jobs = [product.submit(option) for option in options]
        asked = [request["time_limit_min"] for request in recorder.requests()]
    assert asked == ["UNLIMITED", "UNLIMITED", 30, 0, None]
    limits = [product.show_job(job_id)["TimeLimit"] for job_id in jobs[:4]]
    assert limits == ["UNLIMITED", "UNLIMITED", "00:30:00", "00:00:00"]


def test_every_field_arrives_as_the_user_gave_it(product: Product) -> None:
    """The keys of the README with real values; the fields that this release lacks cost no line in the log."""
    log = read_log(product)
    options = (
        *("--account=research", "--qos=high", "--partition=main", "--job-name=train", "--comment=est=20m"),
        *("--array=0-3%2", "--time=60", "--time-min=30", "--nodes=1-2", "--ntasks=4", "--cpus-per-task=2"),
        *("--ntasks-per-node=2", "--mem-per-cpu=100", "--gpus-per-node=a100:1", "--nodelist=g1"),
        *("--exclude=g3", "--export=SECRET=abc"),
    )
    with recording(product, {"site_factor": 337}) as recorder:
        product.submit(*options)
        (asked,) = recorder.requests()
    assert asked["uid"] == 2001
    assert asked.pop("tres_per_node") in {"gres:gpu:a100:1", "gres/gpu:a100:1"}
    assert asked.pop("tres_per_task") in {None, "cpu=2"}  # --cpus-per-task, said twice by newer releases
    assert {key: value for key, value in asked.items() if value is not None and key != "uid"} == {
        "user": "alice",
        "account": "research",
        "default_account": "research",
        "qos": "high",
        "default_qos": "normal",
        "partition": "main",
        "name": "train",
        "comment": "est=20m",
        "req_nodes": "g1",
        "exc_nodes": "g3",
        "array": "0-3%2",
        "time_limit_min": 60,
        "time_min_min": 30,
        "min_nodes": 1,
        "max_nodes": 2,
        "min_cpus": 8,
        "num_tasks": 4,
        "cpus_per_task": 2,
        "ntasks_per_node": 2,
        "mem_per_cpu_mib": 100,
        "cron_job": False,
    }
    assert "unrecognized" not in read_log(product)[len(log) :]


# What is done with the answer

NOTE = "slurm-score:site=337,policy=0123456789ab"
SITE_TEXT = 'if job_desc.name == "billed" then job_desc.admin_comment = "billed-to-X" end'


def test_admin_comment_holds_the_note_behind_what_was_there(product: Product) -> None:
    """Every release lets the hook read and write the field, whoever submits."""
    with recording(product, {"site_factor": 337, "admin_comment": NOTE}, SITE_TEXT):
        plain = product.submit("--time=10")
        billed = product.submit("--time=10", "--job-name=billed")
    assert product.show_job(plain)["AdminComment"] == NOTE
    assert product.show_job(billed)["AdminComment"] == f"billed-to-X;{NOTE}"
    assert product.sites()[plain] == product.sites()[billed] == 337


def test_the_service_writes_the_note_and_knows_who_asks(product: Product) -> None:
    """With `admin_comment: true` the job tells its first score; /healthz tells which hook asked for it."""
    former = health(product)["policy"]
    product.set_policy(f"{ENFORCE}admin_comment: true\n")
    wait_for(lambda: health(product)["policy"] != former, 30, "the service has the policy")
    job_id = product.submit("--gpus=1", "--time=10")
    told, site = health(product), product.sites()[job_id]
    assert site > 0
    note = f"slurm-score:site={site},policy={told['policy']}"
    assert product.show_job(job_id)["AdminComment"] == note
    loaded = re.findall(r"slurm_score: version (\S+) on Lua (5\.\d)", read_log(product))
    assert (told["hook"]["version"], told["hook"]["lua"]) == loaded[-1]
    assert told["hook"]["loaded_s"] <= told["hook"]["last_s"] < product.now_s() + 1


def test_a_sites_own_rule_rejects_and_what_it_lets_pass_is_scored(product: Product) -> None:
    """example_site.lua as it is shipped: a user without an account reads what to do."""
    share = "/opt/slurm-score/share/slurm-score/job_submit/example_site.lua"
    script = product.cluster.read_file(share)
    product.replace_hook(script.replace("\n\nfunction", f"\nscore.setup({{ {PATIENT} }})\n\nfunction", 1))
    refused = product.cluster.exec(["sbatch", "--wrap=true"], user="slurm", check=False)
    assert refused.returncode == 1
    assert "Please say which account pays for the job: sbatch --account=NAME" in refused.stderr
    job_id = product.submit("--time=10")
    assert product.sites()[job_id] > 0


# A broken hook

NO_HOOK = "function slurm_job_submit() return 0 end\nfunction slurm_job_modify() return 0 end\nreturn 0\n"
# A file of the hook, what is in it instead, what the log says.
REPLACED = {
    "no Lua": ("slurm_score.lua", "this is not Lua", "not loaded"),
    "no table": ("slurm_score.lua", "return 5", "not loaded"),
    "error at load": ("slurm_score.lua", "error({})", "not loaded"),
    "http is no Lua": ("slurm_score_http.lua", "end", "not loaded"),
    "json is no Lua": ("slurm_score_json.lua", "(", "not loaded"),
    "request is no Lua": ("slurm_score_request.lua", "=", "not loaded"),
}
# The same with what is put in front of the file's `return M`.
SPOILT = {
    "no submit": ("slurm_score.lua", "M.submit = nil", "not loaded"),
    "no modify": ("slurm_score.lua", "M.modify = nil", "not loaded"),
    "no setup": ("slurm_score.lua", "M.setup = nil", "not loaded"),
    "submit raises": ("slurm_score.lua", 'M.submit = function() error("boom") end', "submit failed"),
    "modify raises": ("slurm_score.lua", "M.submit, M.modify = function() end, error", "modify failed"),
    "no end": ("slurm_score.lua", "function M.submit() return 1 + M.submit() end", "submit failed"),
    "no post": ("slurm_score_http.lua", "M.post = nil", "no score"),
    "post raises": ("slurm_score_http.lua", "M.post = function() error({}) end", "no score"),
    "no setup of http": ("slurm_score_http.lua", "M.setup = nil", "setup: "),
    "no timer": ("slurm_score_http.lua", "M.start_timer = nil", "no score"),
    "no reader": ("slurm_score_json.lua", "M.decode_object = nil", "no score"),
    "writer raises": ("slurm_score_json.lua", 'M.quote = function() error("boom") end', "no score"),
    "no request": ("slurm_score_request.lua", "M.build = nil", "no score"),
}
# What two records of the same submission differ in: ids, times, and how far the scheduler has come.
OWN = re.compile(r"JobId|Sid|S?LUID|.*Time|LastSchedEval|Reason|Scheduler|.*NodeList")


def test_a_job_passes_a_broken_hook_unchanged(product: Product) -> None:
    """Wherever Lua fails, the record is that of a job without a hook, updates pass, and slurmctld goes on."""
    cluster, shipped = product.cluster, read_all(product.cluster)
    pid = cluster.read_file("/run/slurm-score-test/slurmctld.pid")
    product.replace_hook(NO_HOOK)
    expected = submitted_record(product)
    spoilt = {
        name: (file, shipped[file].removesuffix("return M\n") + f"{words}\nreturn M\n", message)
        for name, (file, words, message) in SPOILT.items()
    }
    for name, (file, text, message) in {**REPLACED, **spoilt}.items():
        log = read_log(product)
        install(product, {**shipped, file: text})
        assert submitted_record(product) == expected, name
        assert f"slurm_score: {message}" in read_log(product)[len(log) :], name
    assert cluster.read_file("/run/slurm-score-test/slurmctld.pid") == pid
    cluster.exec(["kill", "-0", pid.strip()])


def submitted_record(product: Product) -> dict[str, str]:
    """Returns a new job's record after an update of it, without what is its own."""
    job_id = product.submit("--gpus=1", "--time=10", "--comment=score: est=5m")
    product.cluster.exec(["scontrol", "update", f"JobId={job_id}", "Comment=updated"])
    assert product.sites()[job_id] == 0
    return {key: value for key, value in product.show_job(job_id).items() if not OWN.fullmatch(key)}
