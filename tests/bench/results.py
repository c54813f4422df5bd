"""What came out of a bench: one outcome for each run, and what they were measured on."""

import datetime
import json
import os
import platform
import re
import subprocess
from dataclasses import asdict, dataclass, field

import machine
import paths
import peers
import postgres

RAN, LOST, IN_PART, COULD_NOT = "ran", "lost", "ran in part", "could not run"
# Keys of a row that say why a point has no figures.
NO_FIGURES = ("failed", "skipped")


@dataclass(frozen=True)
class Outcome:
    """One run. `told` is what the generator wrote; `trouble` says why there is nothing, or what was lost.

    Memory was read when the server had started, and when the generator had ended.
    """

    workload: str
    store: str
    server: str
    status: str
    took_s: float
    trouble: str | None = None
    rss_mib_at_rest: float | None = None
    rss_mib_left: float | None = None
    told: dict = field(default_factory=dict)

    @property
    def rows(self):
        return self.told.get("rows", [])

    def left_out(self):
        """Points that were not measured, as text, with the reason."""
        return [f"{row[key]} ({named(row)})" for row in self.rows for key in NO_FIGURES if key in row]


@dataclass(frozen=True)
class Results:
    """All outcomes of a bench, its floors by store, and where and when it ran."""

    about: dict
    floors: dict[str, dict]
    outcomes: list[Outcome]

    def write(self, file):
        file.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @staticmethod
    def read(file):
        told = json.loads(file.read_text())
        outcomes = [Outcome(**outcome) for outcome in told["outcomes"]]
        return Results(told["about"], told["floors"], outcomes)

    def of(self, workload, store=None):
        return [found for found in self.outcomes if found.workload == workload and store in (None, found.store)]


def named(row):
    return ", ".join(f"{key} {value}" for key, value in row.items() if key not in NO_FIGURES)


def about(preset, binary):
    """What a reader must know to compare the figures with others."""
    return {
        "began": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "preset": preset.name,
        "commit": told_by("git", "-C", paths.REPO, "describe", "--always", "--dirty", "--exclude", "*"),
        "machine": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
            "kernel": platform.release(),
        },
        "versions": versions(binary),
        "settings": {
            "logs": "warnings",
            "java heap": peers.HEAP.removeprefix("-Xmx"),
            "PostgreSQL": "fsync on, its own defaults but for connections",
            "connections to PostgreSQL": peers.CONNECTIONS,
        },
    }


def versions(binary):
    pinned = machine.VERSIONS
    return {
        "Frazil": told_by(binary, "--version").removeprefix("frazil "),
        "Rustberg": peers.rustberg_version(),
        "Iceberg's REST fixture": pinned["maven"]["fixture"]["iceberg.version"],
        "Nessie": pinned["jar"]["nessie"].split(":")[2],
        "PostgreSQL": told_by(postgres.binaries() / "postgres", "--version").split()[2],
        "SeaweedFS": pinned["venv"]["s3"][0].split("==")[1],
    }


def processor():
    with open("/proc/cpuinfo") as told:
        found = re.search(r"^model name\s*:\s*(.+)$", told.read(), re.MULTILINE)
    return found[1] if found else platform.machine()


def told_by(*argv):
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True)
    return done.stdout.strip()
