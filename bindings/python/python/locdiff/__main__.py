"""The ``locdiff`` command: the same program as the one that cargo builds."""

from __future__ import annotations

import signal
import sys

from . import _native, batch


def main() -> int:
    """Runs the program with the arguments of this process."""
    if batch._is_ours(sys.argv[1:]):
        return batch._command(sys.argv[3:])
    # Python's own handling of Ctrl-C would wait until the program has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.run(["locdiff", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
