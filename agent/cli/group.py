"""All commands of `wayout`, each loaded only when it is called.

The list below carries the help texts, so that `wayout --help` imports no command.
"""

from __future__ import annotations

import importlib
import os
import sys
from difflib import get_close_matches
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

import click

from agent.cli.asking import EXIT_USAGE, complain, fail

if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130
"""128 + SIGINT, as shells report it."""

COMMANDS = {
    "run": ("agent.cli.run:run", "Run the daemon in the foreground."),
    "status": ("agent.cli.read:status", "Show this node in ten lines."),
    "members": ("agent.cli.read:members", "List the members of the cluster."),
    "egress": ("agent.cli.read:egress", "List, show and explain egress IPs and their owners."),
    "history": ("agent.cli.history:history", "Show every move: cause, and times of its phases."),
    "plan": ("agent.cli.plan:plan", "Show what would move, before it does."),
    "drain": ("agent.cli.act:drain", "Hand every address over and stay a member."),
    "undrain": ("agent.cli.act:undrain", "Carry addresses again."),
    "restart-prepare": (
        "agent.cli.act:restart_prepare",
        "Make the next stop a restart that keeps the addresses.",
    ),
    "config": ("agent.cli.config:config", "Check, show, compare and reload the configuration."),
    "keyring": ("agent.cli.keyring:keyring", "Show and rotate the keys of gossip."),
    "keygen": ("agent.cli.keyring:keygen", "Make a key for gossip."),
    "doctor": ("agent.cli.doctor:doctor", "Look for what stands in the way on this host."),
    "cleanup": ("agent.cli.cleanup:cleanup", "Remove every address of ours from this host."),
    "bundle": ("agent.cli.bundle:bundle", "Write a redacted archive for support."),
    "simulate": ("agent.cli.simulate:simulate", "Try settings in virtual time."),
    "lab": ("agent.cli.lab:lab", "Run a local cluster in network namespaces."),
    "version": ("agent.cli.version:version", "Print version, protocol and build."),
}


class Commands(click.Group):
    """A group that knows its commands by name and module, and tells errors in our way."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Those whose module is part of this installation."""
        del ctx
        return [name for name, (place, _) in COMMANDS.items() if find_spec(_module(place))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None if there is none such."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        return cast("click.Command", getattr(importlib.import_module(module), attribute))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, but an unknown name is told with what was probably meant."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            close = get_close_matches(args[0], known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else "'wayout --help' lists all"
            fail(f"there is no command {args[0]!r}, {hint}", EXIT_USAGE)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list, from the texts above."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - click's signature
        **extra: Any,  # noqa: ANN401 - click's signature
    ) -> Any:  # noqa: ANN401
        """Run, and turn what click raises into our lines and exit codes."""
        code = self._code(args, prog_name, complete_var, extra)
        if standalone_mode:
            sys.exit(code)
        return code

    def _code(
        self,
        args: Sequence[str] | None,
        prog_name: str | None,
        complete_var: str | None,
        extra: dict[str, Any],
    ) -> int:
        try:
            result = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            return EXIT_USAGE
        except click.UsageError as error:
            complain("error", [_usage(error)])
            return error.exit_code
        except click.ClickException as error:
            complain("error", [error.format_message()])
            return error.exit_code
        except click.Abort:
            return INTERRUPTED
        return result if isinstance(result, int) else 0


def _usage(error: click.UsageError) -> str:
    path = error.ctx.command_path if error.ctx is not None else "wayout"
    return f"{error.format_message().rstrip('.')}, see '{path} --help'"


def _module(place: str) -> str:
    return place.partition(":")[0]


def _choose_socket(_ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    # As the variable does it: so the commands of every family find it.
    if value is not None:
        os.environ["WAYOUT_SOCKET"] = value


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    if value:
        from agent.release import VERSION

        click.echo(f"wayout {VERSION}")
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--socket",
    metavar="PATH",
    expose_value=False,
    callback=_choose_socket,
    help="Admin socket of the daemon, for every command. [env: WAYOUT_SOCKET; default: "
    "/run/wayout/admin.sock]",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the version.",
)
def wayout() -> None:
    """Egress IPs that survive the loss of a node."""
