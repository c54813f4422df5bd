"""The statements of the last release (`migrations/last_release`), which this one's schema must still serve.

    last_release.py --write    replaces them by those of the working tree: done once, when a release is made

A test of each store prepares them on the newest schema, for replicas of both releases run side by side while one takes
the other's place.
"""

import argparse
import json
import sys

import paths

STORES = {"postgres": "store-postgres", "sqlite": "store-sqlite"}

# Between statements, which hold semicolons themselves in no place that is alone on its line.
BETWEEN = "\n;\n"


def statements(store):
    """All that the store sends, in an order that does not change."""
    kept = (paths.REPO / "server" / store / ".sqlx").glob("*.json")
    return sorted(json.loads(file.read_text())["query"].strip() for file in kept)


def newest_migration(engine):
    last = max((paths.REPO / "migrations" / engine).glob("*.sql"))
    return int(last.name.split("_")[0])


def write(engine, store):
    head = f"-- schema {newest_migration(engine)}"
    file = paths.REPO / "migrations" / "last_release" / f"{engine}.sql"
    file.parent.mkdir(exist_ok=True)
    file.write_text(BETWEEN.join([head, *statements(store)]) + "\n")
    return file


def main():
    parser = argparse.ArgumentParser(description="Keeps the statements of a release that is being made.")
    parser.add_argument("--write", action="store_true", required=True, help="replace what is checked in")
    parser.parse_args()
    for engine, store in STORES.items():
        print(write(engine, store).relative_to(paths.REPO))


if __name__ == "__main__":
    sys.exit(main())
