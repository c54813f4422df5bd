"""What a suite made its client do, as rows of the table in docs/engines/README.md."""

import json
import os
import pathlib
import time
from collections import Counter


class Report:
    """Written to the file FRAZIL_REPORT where that is set: a list of objects with `engine`, `version`, `catalog`,
    `files`, `statements` and `seconds` (of the whole run)."""

    def __init__(self):
        self.began = time.monotonic()
        self.client = None
        self.statements = Counter()

    def engine(self, name, version):
        """Names the client that the next statements are run by."""
        self.client = (name, version)

    def ran(self, warehouse, count=1):
        """Counts statements that came out as they must."""
        assert self.client, "name the engine first"
        self.statements[*self.client, warehouse.scheme] += count

    def write(self):
        file = os.environ.get("FRAZIL_REPORT")
        if file:
            pathlib.Path(file).write_text(json.dumps(self.rows(), indent=1))

    def rows(self):
        seconds = round(time.monotonic() - self.began)
        catalog = os.environ.get("FRAZIL_STORE", "")
        return [
            {
                "engine": engine,
                "version": version,
                "catalog": catalog,
                "files": scheme,
                "statements": count,
                "seconds": seconds,
            }
            for (engine, version, scheme), count in self.statements.items()
        ]
