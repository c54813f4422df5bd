"""Markdown that is made, and put between the marks of a document that is written by hand."""

import sys


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def put_between(document, begin, end, text):
    """Replaces what stands between the marks; the marks stay, each on a line of its own."""
    before, _, rest = document.read_text().partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        sys.exit(f"{document} lacks {end}")
    document.write_text(f"{before}{begin}\n{text}\n{end}{after}")
