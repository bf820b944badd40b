"""The end of a process that a script has started."""

import os
import signal
import sys
import time


def exit_as(process):
    """Exits as the process ends: with its code, 128 and the number of its signal, or 99 if it runs on for 30 seconds."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            sys.exit(code if code >= 0 else 128 - code)
        time.sleep(0.05)
    os.kill(process, signal.SIGKILL)
    sys.exit(99)
