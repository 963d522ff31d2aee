"""Whose jobs a caller may be told of: Slurm's PrivateData, kept by the service.

On the readers' socket the kernel tells the uid of who connected (SO_PEERCRED), which nobody can choose. Over
TCP nobody is known.
"""

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from slurm_score.model import SlurmConfig
from slurm_score.users import user_name

PEER_UID = "slurm_score.peer_uid"
"""Where an ASGI scope holds the caller's uid, None where it isn't known."""

_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


def viewer_of(
    uid: int | None,
    config: SlurmConfig,
    name_of: Callable[[int], str] = user_name,
    own_uid: int | None = None,
) -> str | None:
    """Return the user whose jobs alone a caller may be told of, None where it may be told of all.

    An empty name is nobody's. Without PrivateData=jobs all are told of all. With it, root, SlurmUser,
    whoever runs the service, and operators are. Coordinators are taken for ordinary users: what they
    coordinate isn't known here.

    Source: slurm.conf(5), PrivateData; slurm src/slurmctld/job_mgr.c, _hide_job_user_rec.
    """
    if not config.jobs_are_private or uid in (0, os.geteuid() if own_uid is None else own_uid):
        return None
    if uid is None:
        return ""
    name = name_of(uid)
    return None if name == config.slurm_user or name in config.operators else name


def peer_uid(connection: Any) -> int | None:
    """Return the uid of whoever connected to a unix socket, None for another kind of socket."""
    if connection is None or connection.family != socket.AF_UNIX:
        return None
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(told)[1])


class PeerProtocol(HttpToolsProtocol):
    """HTTP whose requests hold the uid of whoever connected."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Ask the kernel once for each connection."""
        super().connection_made(transport)
        uid, app = peer_uid(transport.get_extra_info("socket")), self.app

        async def told(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, PEER_UID: uid}, receive, send)

        self.app = told
