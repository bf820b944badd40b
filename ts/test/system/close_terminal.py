"""Runs a command on a terminal of its own, sends it SIGHUP once its output matches a pattern, and closes the terminal
once its output matches a second one. Exits with the command's exit code, or with 99 if it still runs half a minute
later.

    python close_terminal.py PATTERN SECOND COMMAND [ARGUMENT ...]
"""
import os
import pty
import re
import signal
import sys

from process_end import exit_as

first, second, command = sys.argv[1].encode(), sys.argv[2].encode(), sys.argv[3:]
process, terminal = pty.fork()
if process == 0:
    os.execvp(command[0], command)

written = b""


def read_until(pattern):
    global written
    while not re.search(pattern, written):
        written += os.read(terminal, 4096)


read_until(first)
os.kill(process, signal.SIGHUP)
read_until(second)
os.close(terminal)
sys.stdout.buffer.write(written)

exit_as(process)
