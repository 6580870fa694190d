"""Arguments, printing and exit codes; nothing else prints.

Exit codes: 0 done and clean, 1 done with findings or a failed gate, 2 could not do it, 130
interrupted.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.cli.screen import nowhere, print_anything, show_error, show_traceback, talk
from agent.errors import LabelAgentError

if TYPE_CHECKING:
    from click.exceptions import ClickException

EXIT_CLEAN, EXIT_FAILED, EXIT_INTERRUPTED = 0, 2, 130
_COLLECT_EVERY = 100_000
_COMPLETE = "_LABEL_AGENT_COMPLETE"
"""The variable by which a shell asks for completions."""
_GO_ON = {
    "propose": "; run it again: what was answered is kept and not asked twice",
    "review": "; what was decided is kept, go on with: label-agent review",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; the only place where every error is caught."""
    if sys.stdout is None:
        talk("CL002 stdout is closed")
        talk("hint: give it somewhere to go, a file or /dev/null")
        return EXIT_FAILED
    print_anything()
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        talk(f"interrupted{_GO_ON.get(next(iter(arguments), ''), '')}")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _silence_stdout()
        return EXIT_FAILED
    except Exception as err:  # noqa: BLE001 - the last resort: a bug is reported, never dumped
        show_error(err if isinstance(err, LabelAgentError) else _unexpected(err))
        if debug:
            show_traceback()
        return EXIT_FAILED


def _run(arguments: list[str]) -> int:
    from click.exceptions import ClickException, Exit, NoArgsIsHelpError

    from agent.cli.app import app

    try:
        with app.make_context("label-agent", arguments) as context:
            code = app.invoke(context)
    except Exit as stop:
        code = stop.exit_code
    except NoArgsIsHelpError as err:
        sys.stdout.write(f"{err.format_message()}\n")
        code = EXIT_CLEAN
    except ClickException as err:
        raise _wrong_usage(err, arguments) from None
    sys.stdout.flush()
    return code if isinstance(code, int) else EXIT_CLEAN


def _wrong_usage(err: ClickException, arguments: Sequence[str]) -> LabelAgentError:
    from agent.cli.app import COMMANDS
    from agent.errors import UsageError

    context = getattr(err, "ctx", None)
    called = [argument for argument in arguments[:1] if argument in COMMANDS]
    command = context.command_path if context is not None else " ".join(["label-agent", *called])
    message = err.format_message().rstrip(".")
    return UsageError("CL001", message, hint=f"{command} --help lists the options")


def _unexpected(err: Exception) -> LabelAgentError:
    if isinstance(err, OSError) and err.strerror:
        from agent.errors import UsageError

        where = str(err.filename) if err.filename is not None else ""
        hint = "free some space" if err.errno == errno.ENOSPC else "check the path and its mode"
        return UsageError("CL002", err.strerror, location=where, hint=hint)
    text = f"{type(err).__name__}: {err}"
    return LabelAgentError(
        "CL009", f"a bug in label-agent: {text}", hint="run again with --debug and report the trace"
    )


def _silence_stdout() -> None:
    """Keep the interpreter from failing again when it flushes a closed pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complete(instruction: str) -> int:
    """Answer a shell that asks what may come next."""
    from click.shell_completion import shell_complete

    from agent.cli.app import app

    return shell_complete(app, {}, "label-agent", _COMPLETE, instruction)


def run() -> None:
    """Run as a console script.

    The collector of cycles looks rarely: commands are short, and their values hold no cycles. At
    the end it looks for none: everything goes with the process. numpy need not start threads for
    linear algebra that nothing here does.
    """
    if sys.stderr is None:  # closed by who started this
        sys.stderr = nowhere()
    if instruction := os.environ.get(_COMPLETE):
        sys.exit(_complete(instruction))
    gc.set_threshold(_COLLECT_EVERY)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    code = main()
    gc.freeze()
    sys.exit(code)
