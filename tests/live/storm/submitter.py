"""Runs in the controller's container as a user: submits jobs fast, and pings slurmctld meanwhile.

Standard input is a JSON object: `argvs`, the submissions, one after the other and then again from the
first; `count`, how many there are at least; `workers`, how many run at a time; `until`, a file that ends
the rest, or null. Texts may hold lone surrogates, which stand for bytes that aren't UTF-8. Standard output
is {"answers": [[index, exit code, stdout, stderr], ...], "pings": n, "silent": [...], "seconds": s}.
"""

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

PING_EVERY_S = 0.1
FOREVER_S = 120.0

Answer = tuple[int, int, str, str]


class Pinger(threading.Thread):
    """Asks slurmctld for a sign of life until stopped; `silent` holds what was said when there was none."""

    def __init__(self) -> None:
        super().__init__()
        self.pings = 0
        self.silent: list[str] = []
        self._stopped = threading.Event()

    def run(self) -> None:
        """Ping, at least once."""
        while True:
            _, code, stdout, stderr = ask(0, ["scontrol", "ping"])
            self.pings += 1
            if code or " UP" not in stdout:
                self.silent.append(f"exit {code}: {stdout}{stderr}")
            if self._stopped.wait(PING_EVERY_S):
                return

    def stop(self) -> None:
        """Return when the last ping is answered."""
        self._stopped.set()
        self.join()


def ask(index: int, argv: list[str]) -> Answer:
    """Return what a command printed and how it ended."""
    done = subprocess.run(
        [os.fsencode(word) for word in argv], capture_output=True, check=False, timeout=FOREVER_S
    )
    return index, done.returncode, os.fsdecode(done.stdout), os.fsdecode(done.stderr)


def submissions(asked: dict[str, Any]) -> Iterator[tuple[int, list[str]]]:
    """Yield index and argv of each submission, until there are enough and the file is there."""
    argvs, until = asked["argvs"], asked["until"]
    for index in itertools.count():
        if index >= asked["count"] and (until is None or Path(until).exists()):
            return
        yield index, argvs[index % len(argvs)]


def submit(asked: dict[str, Any]) -> list[Answer]:
    """Return the answers to all submissions, by index."""
    source, lock = submissions(asked), threading.Lock()

    def work() -> list[Answer]:
        answers: list[Answer] = []
        while True:
            with lock:
                following = next(source, None)
            if following is None:
                return answers
            answers.append(ask(*following))

    with ThreadPoolExecutor(asked["workers"]) as pool:
        workers = [pool.submit(work) for _ in range(asked["workers"])]
        return sorted(answer for worker in workers for answer in worker.result())


def main() -> None:
    """Answer one request."""
    asked = json.load(sys.stdin)
    pinger = Pinger()
    pinger.start()
    began = time.monotonic()
    try:
        answers = submit(asked)
        seconds = time.monotonic() - began
    finally:
        pinger.stop()
    json.dump(
        {"answers": answers, "pings": pinger.pings, "silent": pinger.silent, "seconds": seconds}, sys.stdout
    )


if __name__ == "__main__":
    main()
