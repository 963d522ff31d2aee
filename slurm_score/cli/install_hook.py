"""slurm-score install-hook: job_submit.lua and its modules beside slurm.conf."""

import time
from pathlib import Path

import click

from slurm_score.errors import SlurmError, SlurmScoreError
from slurm_score.gather import find_folder, find_plugin, look_at_slurm
from slurm_score.hookfile import SCRIPT, install, is_ours, lines_to_add, mentions_us, read_script, shipped
from slurm_score.model import SlurmConfig
from slurm_score.slurm.commands import CommandGateway
from slurm_score.slurm.lua import PLUGIN, open_lua


@click.command("install-hook")
@click.option(
    "--script",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Install this job_submit.lua, your own, instead of ours.",
)
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Install into this folder instead of slurm.conf's.",
)
@click.option(
    "--replace", is_flag=True, help="Put our job_submit.lua in the place of your own, which is kept."
)
def command(script: Path | None, folder: Path | None, replace: bool) -> None:
    """Install the submit hook so that slurmctld loads it at the next submission.

    A script of your own that calls slurm_score stays, and only our modules are brought up to date. A
    script that Lua does not take is refused. The files that were there are kept as NAME.old-TIME.
    slurm.conf is never changed.

    \b
    Example:
      slurm-score install-hook --to /etc/slurm
    """
    if script is not None and replace:
        raise click.UsageError("--script and --replace exclude each other")
    slurm = look_at_slurm(CommandGateway())
    if slurm.config is None and folder is None:
        raise SlurmScoreError(f"{slurm.error}; say where to install with --to")
    config = slurm.config or SlurmConfig()
    target = folder or find_folder(config)
    source = choose(script, target, replace)
    refuse_what_fails(source, str(script or target / SCRIPT), config)
    done = install(target, source, shipped().modules, time.time())
    for path in done.written:
        click.echo(f"installed {path}")
    for path in done.kept:
        click.echo(f"kept the old one as {path}")
    click.echo(outlook(config, changed=bool(done.written)))


def choose(script: Path | None, folder: Path, replace: bool) -> bytes:
    """Return the script to install: the site's new one, ours, or the site's as it is there already.

    Raises:
        SlurmScoreError: the folder has a script that isn't ours and doesn't call us; it is left alone.
    """
    if script is not None:
        given = read_script(script)
        if given is None:
            raise SlurmScoreError(f"{script}: no such file")
        if not mentions_us(given):
            click.echo(f"warning: {script} never mentions slurm_score: no job gets a first score", err=True)
        return given
    there = read_script(folder / SCRIPT)
    if there is None or replace or is_ours(there):
        return shipped().script
    if mentions_us(there):
        return there
    top, call = lines_to_add(folder)
    raise SlurmScoreError(
        f"{folder / SCRIPT}: is not ours and was left alone; add to a copy of it, at its top\n    {top}\n"
        f"and last in slurm_job_submit, before it returns slurm.SUCCESS\n    {call}\n"
        "then `slurm-score install-hook --script COPY`; or --replace it"
    )


def refuse_what_fails(source: bytes, name: str, config: SlurmConfig) -> None:
    """Let a script pass that slurmctld's own Lua takes; where that can't be tried, say so.

    Raises:
        SlurmScoreError: slurmctld would refuse it, and not start with it.
    """
    plugin = find_plugin(config)
    try:
        if plugin is None:
            raise SlurmError(f"{PLUGIN} is not in {':'.join(config.plugin_dirs) or 'any known folder'}")
        lua, _ = open_lua(plugin)
    except SlurmError as error:
        click.echo(f"warning: the script was not tried: {error}", err=True)
        return
    trial = lua.try_script(source, name)
    if trial.faults:
        refused = "\n".join(f"{name}: {sentence}" for sentence in trial.faults)
        raise SlurmScoreError(f"{refused}\nnothing was installed")
    if trial.doubt:
        click.echo(f"warning: {name}: {trial.doubt}", err=True)


def outlook(config: SlurmConfig, *, changed: bool) -> str:
    """Return what happens next, or what the admin has to do for it."""
    done = (
        "slurmctld loads it at the next submission"
        if changed
        else "nothing to do: the files are there already"
    )
    if config.submits_to_lua:
        return done
    plugins = ",".join((*config.job_submit_plugins, "lua"))
    told = "the files are in place" if changed else done
    return f"{told}; add to slurm.conf\n    JobSubmitPlugins={plugins}\nand run `scontrol reconfigure`"
