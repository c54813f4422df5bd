"""Which workload runs against which servers on which store, in what order, and how long that may take."""

from dataclasses import dataclass, field

from process import Failed
from servers import SERVERS

FRAZIL = ("frazil-sqlite", "frazil-postgres")
NOREBASE = ("frazil-sqlite-norebase", "frazil-postgres-norebase")
RUSTBERG = ("rustberg-redb", "rustberg-postgres")
EVERYONE = (*FRAZIL, *RUSTBERG, "fixture", "nessie")
ON_S3 = ("frazil-postgres", "rustberg-postgres", "fixture", "nessie")
REPLICAS = ("frazil-postgres-two",)


@dataclass(frozen=True)
class Workload:
    """`servers` by store; those of a preset that measures less are in `Preset.servers`."""

    name: str
    what: str
    servers: dict[str, tuple[str, ...]]


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("W1", "one writer appends to one table, by retained snapshots", {"file": EVERYONE, "s3": EVERYONE}),
        Workload(
            "W2",
            "writers append to one table, no retries",
            {"file": (*FRAZIL, *NOREBASE, *EVERYONE[2:]), "s3": (*EVERYONE, "frazil-postgres-norebase")},
        ),
        Workload("W3", "the same with Iceberg's retries", {"file": EVERYONE, "s3": EVERYONE}),
        Workload("W4", "writers append to a table each, and a quiet table beside a hot one", {"file": EVERYONE}),
        Workload("W5", "readers load a table, by retained snapshots", {"file": EVERYONE}),
        Workload("W6", "a compaction loop races appends", {"file": EVERYONE}),
        Workload("W7", "many namespaces and tables: create, list, page, load", {"file": EVERYONE}),
        Workload("W8", "two replicas of Frazil against one", {"file": REPLICAS}),
    )
}


@dataclass(frozen=True)
class Preset:
    """`seconds` is what a run of each workload takes, by which the plan is told; `servers` replaces the workload's.

    `parameters` are for servers that would take hours over a workload.
    """

    name: str
    limit_s: int
    seconds: dict[str, int]
    servers: dict[tuple[str, str], tuple[str, ...]]
    parameters: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    def servers_of(self, workload, store):
        return self.servers.get((workload.name, store), workload.servers.get(store, ()))


QUICK = Preset(
    "quick",
    30 * 60,
    {"W1": 40, "W2": 35, "W3": 35, "W4": 40, "W5": 40, "W6": 40, "W7": 60, "W8": 100},
    {
        ("W1", "s3"): ON_S3,
        ("W2", "s3"): ON_S3,
        ("W3", "s3"): (),
        ("W5", "file"): (*FRAZIL, "rustberg-redb", "fixture"),
        ("W6", "file"): (*FRAZIL, "rustberg-redb", "fixture"),
        ("W7", "file"): FRAZIL,
    },
)
FULL = Preset(
    "full",
    3 * 60 * 60,
    {"W1": 150, "W2": 100, "W3": 100, "W4": 120, "W5": 240, "W6": 220, "W7": 600, "W8": 350},
    {},
    {("W7", "fixture"): ("namespaces=1000",), ("W7", "rustberg-postgres"): ("namespaces=1000",)},
)
PRESETS = {preset.name: preset for preset in (QUICK, FULL)}
# A run that takes this many times as long as planned, and at least so long, is ended.
PATIENCE, PATIENCE_AT_LEAST_S = 3, 180


@dataclass(frozen=True)
class Run:
    """One workload against one fresh server; `parameters` are the generator's, as in `writers=8`."""

    workload: str
    store: str
    server: str
    expected_s: int
    parameters: tuple[str, ...] = ()

    @property
    def name(self):
        return f"{self.workload}-{self.store}-{self.server}"

    @property
    def bound_s(self):
        return max(PATIENCE * self.expected_s, PATIENCE_AT_LEAST_S)


def runs(preset, only=None, servers=None, store=None, others=()):
    """The runs of a plan in order. `others` are names of servers by URL with their stores; they follow the rest."""
    refuse_unknown(only, WORKLOADS, "workload")
    refuse_unknown(servers, [*SERVERS, *(name for name, _ in others)], "server")
    planned = []
    for workload in WORKLOADS.values():
        for kind in ("file", "s3"):
            wanted = servers_on(preset, workload, kind, servers)
            wanted += [name for name, its_store in others if its_store == kind and joins(workload, kind)]
            fits = (not only or workload.name in only) and (not store or kind == store)
            planned += [planned_run(preset, workload.name, kind, name) for name in wanted if fits]
    return planned


def planned_run(preset, workload, store, server):
    parameters = preset.parameters.get((workload, server), ())
    return Run(workload, store, server, preset.seconds[workload], parameters)


def servers_on(preset, workload, store, named):
    """Those of the preset; servers that are named outright also where the preset leaves them out."""
    pool = preset.servers_of(workload, store)
    if named:
        pool = [name for name in SERVERS if name in named and name in {*pool, *workload.servers.get(store, ())}]
    return [name for name in pool if store in SERVERS[name].stores]


def joins(workload, store):
    """Whether a server by URL takes part: everywhere but in what Frazil does alone."""
    return workload.name != "W8" and store in workload.servers


def refuse_unknown(names, known, kind):
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise Failed(f"no {kind} is named {', '.join(unknown)}; there are {', '.join(known)}")


def told(planned, preset):
    """The plan as lines of text."""
    lines = [f"{run.workload}  {run.store:4}  {run.server:26} about {run.expected_s:4} s" for run in planned]
    total = sum(run.expected_s for run in planned)
    return [*lines, f"{len(planned)} runs, about {total // 60} min; at most {preset.limit_s // 60} min"]
