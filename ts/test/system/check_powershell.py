"""Prints the places of a PowerShell script that are not valid PowerShell, or nothing if all are.

    python check_powershell.py SCRIPT
"""
import sys

import tree_sitter_powershell
from tree_sitter import Language, Parser


def mistakes(node):
    if node.type == "ERROR" or node.is_missing:
        yield node
    for child in node.children:
        yield from mistakes(child)


parser = Parser(Language(tree_sitter_powershell.language()))
with open(sys.argv[1], "rb") as script:
    tree = parser.parse(script.read())
for node in mistakes(tree.root_node):
    print(f"line {node.start_point.row + 1}: {node.text.decode()[:80]!r}")
