"""Runs the examples of one Markdown page, in order, in the current folder.

    python doc_page.py PAGE

Python blocks share one namespace; bash runs each line of a console block that begins with `$ ` (a line that
ends in a backslash continues on the next). A command must exit with 0, or with N if its line ends in `# exit
N`. Blocks in other languages are not run.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Block(NamedTuple):
    language: str
    line: int
    text: str


def blocks(markdown: str) -> Iterator[Block]:
    """The fenced blocks of a page; `line` is the number of the first line of `text`."""
    fence, language, start, lines = "", "", 0, []
    for number, line in enumerate(markdown.splitlines(), 1):
        opening = re.match(r"(`{3,})\s*([\w-]*)\s*$", line)
        if not fence:
            if opening:
                fence, language, start, lines = opening[1], opening[2], number + 1, []
        elif line.rstrip() == fence:
            yield Block(language, start, "\n".join(lines) + "\n")
            fence = ""
        else:
            lines.append(line)
    if fence:
        raise SystemExit(f"line {start - 1}: the block is not closed")


def commands(block: Block) -> Iterator[tuple[int, str, int]]:
    """(line, command, expected exit code) of a console block."""
    lines = iter(enumerate(block.text.splitlines(), block.line))
    for number, line in lines:
        if not line.startswith("$ "):
            continue
        command = line[2:]
        while command.endswith("\\"):
            command += "\n" + next(lines)[1]
        expected = re.search(r"# exit (\d+)\s*$", command)
        yield number, command, int(expected[1]) if expected else 0


def run_page(page: Path) -> None:
    namespace = {"__name__": "__main__"}
    for block in blocks(page.read_text()):
        if block.language == "python":
            code = "\n" * (block.line - 1) + block.text  # so that a traceback has the page's line numbers
            exec(compile(code, str(page), "exec"), namespace)
        elif block.language == "console":
            for line, command, expected in commands(block):
                code = subprocess.run(["bash", "-c", command]).returncode
                if code != expected:
                    raise SystemExit(f"{page}:{line}: exit {code}, not {expected}: {command}")


if __name__ == "__main__":
    run_page(Path(sys.argv[1]))
