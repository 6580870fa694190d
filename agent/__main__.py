"""`python -m agent`: the same as the console script, where no script was installed."""

from __future__ import annotations

from agent.cli import run

if __name__ == "__main__":
    run()
