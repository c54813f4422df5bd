"""Which workload runs against which servers on which store, in what order, and how long that may take."""

from dataclasses import dataclass

from process import Failed
from servers import SERVERS

FRAZIL = ("frazil-sqlite", "frazil-postgres")
NOREBASE = ("frazil-sqlite-norebase", "frazil-postgres-norebase")
RUSTBERG = ("rustberg-redb", "rustberg-postgres")
EVERYONE = (*FRAZIL, *RUSTBERG, "fixture", "nessie")
ON_S3 = ("frazil-postgres", "rustberg-postgres", "fixture", "nessie")
REPLICAS = ("frazil-postgres-two",)
# No server by URL takes part in it.
FRAZILS_OWN = "W8"


@dataclass(frozen=True)
class Workload:
    """`servers` by store; those of a preset that measures less are in `Preset.servers`."""

    name: str
    what: str
    servers: dict[str, tuple[str, ...]]


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("W1", "one writer appends to one table, by retained snapshots", {"file": EVERYONE, "s3": ON_S3}),
        Workload(
            "W2",
            "writers append to one table, no retries",
            {"file": (*FRAZIL, *NOREBASE, *EVERYONE[2:]), "s3": (*ON_S3, "frazil-postgres-norebase")},
        ),
        Workload("W3", "the same with Iceberg's retries", {"file": EVERYONE, "s3": ON_S3}),
        Workload("W4", "writers append to a table each, and a quiet table beside a hot one", {"file": EVERYONE}),
        Workload("W5", "readers load a table, by retained snapshots", {"file": EVERYONE}),
        Workload("W6", "a compaction loop races appends", {"file": EVERYONE}),
        Workload("W7", "many namespaces and tables: create, list, page, load", {"file": EVERYONE}),
        Workload("W8", "two replicas of Frazil against one", {"file": REPLICAS}),
    )
}


@dataclass(frozen=True)
class Preset:
    """`servers` replaces a workload's on a store. `seconds` is what a run takes on a quiet machine with two cores, and
    `parameters` is what the generator is given: of a workload, or of one server under it."""

    name: str
    limit_s: int
    servers: dict[tuple[str, str], tuple[str, ...]]
    seconds: dict[str | tuple[str, str], int]
    parameters: dict[str | tuple[str, str], tuple[str, ...]]

    def servers_of(self, workload, store):
        return self.servers.get((workload.name, store), workload.servers.get(store, ()))

    def run(self, workload, store, server):
        own = (workload, server)
        expected_s = self.seconds.get(own, self.seconds[workload])
        return Run(workload, store, server, expected_s, self.parameters.get(own, self.parameters.get(workload, ())))


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


# A run that takes this many times as long as planned, and at least so long, is ended.
PATIENCE, PATIENCE_AT_LEAST_S = 3, 180
QUICK = Preset(
    "quick",
    limit_s=30 * 60,
    servers={
        ("W1", "s3"): ("frazil-postgres", "rustberg-postgres", "nessie"),
        ("W3", "s3"): (),
        ("W5", "file"): (*FRAZIL, "rustberg-redb", "fixture"),
        ("W6", "file"): (*FRAZIL, "rustberg-redb", "fixture"),
        ("W7", "file"): FRAZIL,
    },
    seconds={"W1": 45, "W2": 32, "W3": 32, "W4": 42, "W5": 65, "W6": 38, "W7": 25, "W8": 80, ("W1", "fixture"): 80},
    parameters={
        "W1": ("commits=40",),
        "W2": ("seconds=6",),
        "W3": ("seconds=6",),
        "W4": ("seconds=6",),
        "W5": ("seconds=3",),
        "W8": ("seconds=8",),
    },
)
# Peers that make few tables a second fill a tenth of W7.
TENTH = ("namespaces=1000",)
FULL = Preset(
    "full",
    limit_s=3 * 60 * 60,
    servers={},
    seconds={
        "W1": 130,
        "W2": 130,
        "W3": 130,
        "W4": 200,
        "W5": 320,
        "W6": 190,
        "W7": 380,
        "W8": 350,
        ("W1", "fixture"): 260,
        ("W1", "nessie"): 60,
        ("W7", "rustberg-postgres"): 80,
        ("W7", "fixture"): 300,
    },
    parameters={
        "W1": ("commits=100",),
        "W2": ("seconds=15",),
        "W3": ("seconds=15",),
        ("W7", "rustberg-postgres"): TENTH,
        ("W7", "fixture"): TENTH,
    },
)
PRESETS = {preset.name: preset for preset in (QUICK, FULL)}


def runs(preset, only=None, servers=None, store=None, others=()):
    """The runs of a plan in order. `others` are names of servers by URL with their stores; they follow the rest."""
    refuse_unknown(only, WORKLOADS, "workload")
    refuse_unknown(servers, [*SERVERS, *(name for name, _ in others)], "server")
    planned = []
    for workload in WORKLOADS.values():
        for kind in ("file", "s3"):
            asked = kind == store
            wanted = servers_on(preset, workload, kind, asked, servers)
            joins = workload.name != FRAZILS_OWN and (asked or kind in workload.servers)
            wanted += [name for name, its_store in others if its_store == kind and joins]
            fits = (not only or workload.name in only) and (not store or kind == store)
            planned += [preset.run(workload.name, kind, name) for name in wanted if fits]
    return planned


def servers_on(preset, workload, store, asked, named):
    """Those of the preset. Servers that are named also where it leaves them out; and where the store is asked for, a
    workload that has none on it takes those of the other."""
    everywhere = {name for servers in workload.servers.values() for name in servers}
    pool = preset.servers_of(workload, store)
    if named:
        able = everywhere if asked else {*pool, *workload.servers.get(store, ())}
        pool = [name for name in SERVERS if name in named and name in able]
    elif asked:
        pool = pool or preset.servers_of(workload, "file")
    return [name for name in pool if store in SERVERS[name].stores]


def refuse_unknown(names, known, kind):
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise Failed(f"no {kind} is named {', '.join(unknown)}; there are {', '.join(known)}")


def told(planned, preset):
    """The plan as lines of text."""
    lines = [f"{run.workload}  {run.store:4}  {run.server:26} about {run.expected_s:4} s" for run in planned]
    total = sum(run.expected_s for run in planned)
    return [*lines, f"{len(planned)} runs, about {total // 60} min; at most {preset.limit_s // 60} min"]
