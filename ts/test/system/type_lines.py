"""Runs a command on a terminal of its own, types each line of a JSON list at its prompt, and exits with its code.

    python type_lines.py LINES COMMAND [ARGUMENT ...]
"""

import json
import os
import pty
import re
import sys

from process_end import exit_as

lines, command = json.loads(sys.argv[1]), sys.argv[2:]
process, terminal = pty.fork()
if process == 0:
    os.execvp(command[0], command)

# A terminal also gets codes that move its cursor, which stand before and behind the prompt.
PROMPT = re.compile(rb"(state: |\? )(\x1b\[\d*[A-Za-z])*$")
written, since = b"", b""
while True:
    try:
        part = os.read(terminal, 4096)
    except OSError:  # how Linux says that the last process has left the terminal
        part = b""
    if not part:
        break
    written += part
    since += part
    if lines and PROMPT.search(since):
        os.write(terminal, lines.pop(0).encode() + b"\n")
        since = b""

sys.stdout.buffer.write(written)
sys.stdout.flush()
exit_as(process)
