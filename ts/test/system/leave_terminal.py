"""Runs a command on a terminal of its own, and stops reading there once the output matches a pattern, whose group is
the address of a server. Asks that server until its log lines are more than a terminal takes, and ends it by SIGTERM.
Exits with the command's exit code, with 98 if an answer does not come, or with 99 if it still runs half a minute later.

    python leave_terminal.py PATTERN COMMAND [ARGUMENT ...]
"""
import os
import pty
import re
import signal
import sys
import urllib.error
import urllib.request

from process_end import exit_as

pattern, command = sys.argv[1].encode(), sys.argv[2:]
process, terminal = pty.fork()
if process == 0:
    os.execvp(command[0], command)

written = b""
while not (found := re.search(pattern, written)):
    written += os.read(terminal, 4096)


def ask(path):
    try:
        urllib.request.urlopen(found[1].decode() + path, timeout=20).close()
    except urllib.error.HTTPError:
        pass  # a path that is not there is answered, too


try:
    for _ in range(500):
        ask("/" + "p" * 200)
except OSError as error:
    print(error, file=sys.stderr)
    os.kill(process, signal.SIGKILL)
    sys.exit(98)

os.kill(process, signal.SIGTERM)
exit_as(process)
