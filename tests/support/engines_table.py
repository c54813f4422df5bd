"""The table of docs/engines/README.md and of the README, made from what the suites told of their last runs.

    engines_table.py            prints it
    engines_table.py --write    puts it between the marks of both documents
"""

import json
import sys

import markdown
import paths

BEGIN, END = "<!-- the table of engines begins -->", "<!-- the table of engines ends -->"
DOCUMENTS = (paths.REPO / "docs" / "engines" / "README.md", paths.REPO / "README.md")
COLUMNS = ("engine", "version", "catalog", "files", "statements", "seconds")


def rows():
    told = [json.loads(file.read_text()) for file in sorted(paths.REPORTS.glob("*.json"))]
    found = [row for rows in told for row in rows]
    return sorted(found, key=lambda row: tuple(str(row[column]).casefold() for column in COLUMNS[:4]))


def table(columns, rows):
    return markdown.table(columns, [[row[column] for column in columns] for row in rows])


def whole():
    return table(COLUMNS, rows())


def summary():
    """One row for each version of an engine."""
    found = {}
    for row in rows():
        kept = found.setdefault((row["engine"], row["version"]), {**row, "catalog": [], "files": []})
        for column in ("catalog", "files"):
            kept[column] = list(dict.fromkeys([*kept[column], row[column]]))
    joined = [{**row, "catalog": ", ".join(row["catalog"]), "files": ", ".join(row["files"])} for row in found.values()]
    return table(COLUMNS[:4], joined)


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        markdown.put_between(DOCUMENTS[0], BEGIN, END, whole())
        markdown.put_between(DOCUMENTS[1], BEGIN, END, summary())
    else:
        print(whole())
