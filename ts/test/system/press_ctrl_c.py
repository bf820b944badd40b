"""Runs a command on a terminal of its own, types Ctrl-C once its output matches a pattern, and exits with its code.

    python press_ctrl_c.py PATTERN COMMAND [ARGUMENT ...]
"""
import os
import pty
import re
import sys

pattern, command = sys.argv[1].encode(), sys.argv[2:]
process, terminal = pty.fork()
if process == 0:
    os.execvp(command[0], command)

written, pressed = b"", False
while True:
    try:
        part = os.read(terminal, 4096)
    except OSError:  # how Linux says that the last process has left the terminal
        part = b""
    if not part:
        break
    written += part
    if not pressed and re.search(pattern, written):
        os.write(terminal, b"\x03")
        pressed = True

sys.stdout.buffer.write(written)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
