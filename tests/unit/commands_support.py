"""A scripted Slurm for the tests of the gateway of commands."""

from collections.abc import Sequence

from slurm_score.slurm.commands import Answer, CommandGateway
from slurm_score.slurm.gateway import Access, WriteGuard
from tests.unit.builders import NOW
from tests.unit.slurm_texts import END


class Slurm:
    """Answers commands from a script, by their first words, and remembers what it was asked."""

    def __init__(self, **answers: str | Answer) -> None:
        self.answers = answers
        self.asked: list[tuple[Sequence[str], str]] = []

    def __call__(self, argv: Sequence[str], stdin: str, timeout_s: float) -> Answer:
        """Return the answer of the longest fitting name: scontrol_show_node before scontrol."""
        self.asked.append((argv, stdin))
        assert timeout_s >= 60
        words = "_".join(argv)
        name = max((name for name in self.answers if words.startswith(name)), key=len)
        answer = self.answers[name]
        return answer if isinstance(answer, Answer) else Answer(0, answer, "")


def gateway(slurm: Slurm, access: Access = Access.READ_ONLY) -> CommandGateway:
    """Return a gateway to the scripted Slurm; our own clock is an hour ahead of its NOW."""
    return CommandGateway(WriteGuard(access), slurm, lambda: NOW + 3600.0)


def squeue(text: str) -> Slurm:
    """Return a Slurm whose squeue prints a text with the separators that it was asked for."""

    class Asked(Slurm):
        def __call__(self, argv: Sequence[str], stdin: str, timeout_s: float) -> Answer:
            answer = super().__call__(argv, stdin, timeout_s)
            if argv[0] != "squeue":
                return answer
            end = argv[-1].rpartition("Comment:")[2]
            return Answer(0, text.replace(END, end), "")

    return Asked(squeue="", sprio="812|1200|700|500|0|0|0|0|0|0|\n")
