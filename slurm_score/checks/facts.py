"""What `slurm-score check` knows when it judges, as frozen values. Pure; gather.py fills them in.

Times are seconds since the epoch. A text `error` says why the rest isn't known, and is empty where it is.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from slurm_score.model import SlurmConfig
from slurm_score.policy import Policy
from slurm_score.slurm.gateway import Identity
from slurm_score.slurm.lua import Trial

READ, WRITE, SEARCH = 4, 2, 1
"""What is wanted of a file or folder, as one digit of its mode."""


class Level(StrEnum):
    """How bad a result is; an error makes the command fail."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Check:
    """One result: what was looked at, what was found and what to do about it."""

    name: str
    level: Level
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        """Return the result as a line."""
        text = f"{self.found}; {self.remedy}" if self.remedy else self.found
        shown = "".join(c if c.isprintable() else " " for c in text)
        return f"{self.level:7}  {self.name:18}  {shown}"


@dataclass(frozen=True, slots=True)
class Account:
    """A user of the system, with all groups."""

    name: str
    uid: int
    gids: frozenset[int]


@dataclass(frozen=True, slots=True)
class Rights:
    """Owner and mode of one file or folder."""

    path: str
    uid: int = 0
    gid: int = 0
    mode: int = 0o755

    def allow(self, account: Account, wanted: int) -> bool:
        """Return whether the mode lets an account do it; access lists are not looked at."""
        if account.uid == 0:
            return True
        shift = 6 if self.uid == account.uid else 3 if self.gid in account.gids else 0
        return self.mode >> shift & wanted == wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """A file, socket or whatever is at a path, and the folders above it from the root on."""

    rights: Rights
    kind: str = "file"
    mtime_s: float = 0
    ctime_s: float = 0
    folders: tuple[Rights, ...] = ()

    @property
    def path(self) -> str:
        """Where it is."""
        return self.rights.path

    def only_changed_by(self, *uids: int) -> bool:
        """Return whether nobody but these users may write to it."""
        return self.rights.uid in uids and not self.rights.mode & 0o022

    def refusal(self, account: Account, wanted: int) -> str:
        """Return what keeps an account from it, as `path (mode 0600, owner 0:0)`; empty if nothing does."""
        asked = [*((folder, SEARCH) for folder in self.folders), (self.rights, wanted)]
        for rights, needed in asked:
            if not rights.allow(account, needed):
                return f"{rights.path} (mode {rights.mode:04o}, owner {rights.uid}:{rights.gid})"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmFacts:
    """What slurmctld answered; where it didn't, `config` is read from slurm.conf, if that could be."""

    missing_commands: tuple[str, ...] = ()
    answers: bool = False
    error: str = ""
    config: SlurmConfig | None = None
    identity: Identity | None = None
    slurm_user: Account | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFacts:
    """The policy on disk, or every problem of it."""

    path: str
    policy: Policy | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFacts:
    """When the snapshot was taken."""

    path: str
    time_s: float | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LuaFacts:
    """slurmctld's Lua: the plugin's file, its version, and LuaSocket's in it.

    `plugin` is None where there is no such file in any of the folders.
    """

    plugin: str | None = None
    version: str = ""
    error: str = ""
    luasocket: str = ""
    luasocket_error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleFacts:
    """One of our modules beside the script: its file, None where it is missing; is it as shipped."""

    name: str
    file: FileFacts | None = None
    as_shipped: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class HookFacts:
    """job_submit.lua and what belongs to it. `trial` is None where no Lua could look at it.

    `socket` is the file at the hook's socket, None where there is none.
    """

    script_path: str
    script: FileFacts | None = None
    error: str = ""
    mentions_us: bool = True
    lua: LuaFacts = field(default_factory=LuaFacts)
    trial: Trial | None = None
    modules: tuple[ModuleFacts, ...] = ()
    socket_path: str = ""
    socket: FileFacts | None = None
    socket_error: str = ""


@dataclass(frozen=True, slots=True)
class HookSeen:
    """What the service remembers of the hook that asked last."""

    last_s: float | None = None
    version: str = ""
    lua: str = ""
    loaded_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What the service says of itself."""

    version: str = ""
    mode: str = ""
    policy: str = ""
    policy_error: str = ""
    snapshot_error: str = ""
    hook: HookSeen = field(default_factory=HookSeen)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFacts:
    """The service at the readers' socket."""

    path: str
    health: Health | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that is judged; `version` is ours."""

    now_s: float
    version: str
    slurm: SlurmFacts
    policy: PolicyFacts
    snapshot: SnapshotFacts
    hook: HookFacts
    service: ServiceFacts
