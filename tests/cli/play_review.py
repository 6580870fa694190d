"""Plays one review on the terminal it is started on; what was decided goes to stdout as JSON."""

from __future__ import annotations

import json
import sys

from agent.cli.terminal import TerminalConsole
from agent.review.session import review
from tests.unit.review.fakes import FakeDesk, verdict

desk = FakeDesk()
console = TerminalConsole()
outcomes = review([verdict("_my_stage1"), verdict("_my_stage2")], desk.desk(), console)
json.dump(
    {
        "interactive": console.interactive,
        "states": [outcome.state for outcome in outcomes],
        "decisions": [[entry.action, entry.reason] for entry in desk.decisions],
        "text": desk.text,
    },
    sys.stdout,
)
