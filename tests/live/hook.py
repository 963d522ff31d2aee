"""The submit hook of a cluster under test: its files, its log, and a service that only takes notes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .harness import Cluster
from .product import HOOK_PATH, Product

FOLDER = HOOK_PATH.rpartition("/")[0]
MODULES = ("slurm_score.lua", "slurm_score_http.lua", "slurm_score_json.lua", "slurm_score_request.lua")
LOG_PATH = "/var/log/slurm/slurmctld.log"
# The longest that the hook may wait: on a busy machine the default can be too short for any service.
PATIENT = "deadline_s = 0.05"

READERS_SOCKET = "/run/slurm-score/slurm-score.sock"
GET = """
import socket, sys
asked = socket.socket(socket.AF_UNIX)
asked.connect(sys.argv[1])
asked.sendall(f"GET {sys.argv[2]} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n".encode())
print(b"".join(iter(lambda: asked.recv(65536), b"")).decode().partition("\\r\\n\\r\\n")[2])
"""

RECORDER_SOCKET = "/run/slurm-score/recorder.sock"
REQUESTS = "/run/slurm-score/recorder.jsonl"
# Writes every request down and gives every one the same answer; says its process id once it listens.
RECORDER = """
import http.server, os, socketserver, sys
path, notes, answer = sys.argv[1], sys.argv[2], sys.argv[3].encode()

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        with open(notes, "ab") as file:
            file.write(self.rfile.read(int(self.headers["Content-Length"])) + b"\\n")
        self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(answer), answer))

for old in (path, notes):
    if os.path.exists(old):
        os.unlink(old)
open(notes, "w").close()
server = socketserver.ThreadingUnixStreamServer(path, Handler)
server.daemon_threads = True
child = os.fork()
if child:
    print(child, flush=True)
    os._exit(0)
os.setsid()
for stream in (0, 1, 2):
    os.dup2(os.open(os.devnull, os.O_RDWR), stream)
server.serve_forever()
"""


def read_all(cluster: Cluster) -> dict[str, str]:
    """Returns the text of the hook's files by their names."""
    return {name: cluster.read_file(f"{FOLDER}/{name}") for name in (*MODULES, "job_submit.lua")}


def install(product: Product, files: Mapping[str, str]) -> None:
    """Replaces these files of the hook, so that the next submission runs them.

    slurmctld watches job_submit.lua only, so that goes last, whether it is among them or not.
    """
    for name, text in files.items():
        if name != "job_submit.lua":
            product.cluster.write_file(f"{FOLDER}/{name}", text)
    product.replace_hook(files.get("job_submit.lua") or product.cluster.read_file(HOOK_PATH))


def with_options(script: str, options: str) -> str:
    """Returns job_submit.lua with these options of setup."""
    changed = re.sub(r"module\.setup\({.*?}\)", lambda _: f"module.setup({{ {options} }})", script)
    assert options in changed
    return changed


def read_log(product: Product) -> str:
    """Returns slurmctld's log."""
    return product.cluster.read_file(LOG_PATH)


def get(product: Product, path: str) -> str:
    """Returns what the service tells its readers."""
    return product.cluster.exec(["python3", "-c", GET, READERS_SOCKET, path], user="alice").stdout


def health(product: Product) -> dict[str, Any]:
    """Returns what the service says of itself."""
    told: dict[str, Any] = json.loads(get(product, "/healthz"))
    return told


def answers(product: Product) -> int:
    """Returns how many questions of the hook the service has answered."""
    text = get(product, "/metrics")
    return sum(int(float(n)) for n in re.findall(r"^slurm_score_answers_total\{.*\} (\S+)", text, re.M))


@dataclass(frozen=True)
class Recorder:
    """What the hook asks, at the other end of its socket."""

    product: Product

    def requests(self) -> list[dict[str, Any]]:
        """Returns all questions so far, the oldest first."""
        text = self.product.cluster.read_file(REQUESTS)
        return [json.loads(line) for line in text.splitlines()]


@contextmanager
def recording(product: Product, answer: Mapping[str, object], rule: str = "") -> Iterator[Recorder]:
    """Lets the hook ask a recorder, behind a rule of the site: Lua that may change job_desc."""
    argv = ["python3", "-c", RECORDER, RECORDER_SOCKET, REQUESTS, json.dumps(answer)]
    pid = product.cluster.exec(argv, user="slurm").stdout.strip()
    try:
        script = product.cluster.read_file(HOOK_PATH)
        script = with_options(script, f'{PATIENT}, socket = "{RECORDER_SOCKET}"')
        head, call, tail = script.partition('  return call("submit"')
        assert call
        product.replace_hook(f"{head}  {rule}\n{call}{tail}")
        yield Recorder(product)
    finally:
        product.cluster.exec(["kill", pid])
