"""The settings on docs/engines/kafka-connect.md. Every worker and connector of this suite runs with them."""

import re

import paths

PAGE = paths.REPO / "docs" / "engines" / "kafka-connect.md"
BLOCK = re.compile(r"^<!-- settings: (?P<name>\S+) -->\n+```properties\n(?P<lines>.*?)^```$", re.MULTILINE | re.DOTALL)


def settings(name, changed):
    """The block of this name, with other values for some of its keys."""
    block = next(found for found in BLOCK.finditer(PAGE.read_text()) if found["name"] == name)
    page = dict(line.split("=", 1) for line in block["lines"].splitlines() if line and not line.startswith("#"))
    unknown = changed.keys() - page.keys()
    assert not unknown, f"{PAGE.name} has no such key in its settings of {name}: {sorted(unknown)}"
    return {**page, **{key: str(value) for key, value in changed.items()}}
