"""Frazil under load: a release build on SQLite or PostgreSQL, with one replica or two."""

import contextlib

import process
import server
from room import child
from target import target, traits

READY_WITHIN_S = 30


# Workloads whose tables have more than appends rebased: a compaction lands where it was sent, too.
STREAMING = ("W6",)


def serving(database, replicas=1, rebase=True):
    """Starts Frazil in a room; `database` is `sqlite` or `postgres`."""

    @contextlib.contextmanager
    def start(room, name, binary):
        url = f"sqlite:{room.folder / 'frazil.db'}" if database == "sqlite" else room.database()
        with contextlib.ExitStack() as stack:
            running = [stack.enter_context(replica(room, binary, url)) for _ in range(replicas)]
            uris = [uri for uri, _ in running]
            warehouse = "default"
            if room.store == "s3":
                warehouse = server.LAKE
                server.make_lake(binary, uris[0], room.backends.s3, room.warehouse(), room.log_file)
            rebased = "off" if not rebase else "streaming" if room.workload in STREAMING else "append"
            told = traits(properties={"frazil.commit.rebase": rebased})
            pids = [started.pid for _, started in running]
            yield target(room, name, uris, warehouse, pids, told, metrics=f"{uris[0]}/metrics")

    return start


@contextlib.contextmanager
def replica(room, binary, database_url):
    listen = f"127.0.0.1:{process.free_port()}"
    uri = f"http://{listen}"
    argv = [binary, "serve", "--listen", listen, "--data-dir", room.folder, "--database-url", database_url]
    argv += ["--set", "log.filter=warn"]
    environment = server.clean_environment()
    if room.store == "s3":
        environment |= room.backends.s3.environment()
    with child(room, argv, "Frazil", lambda: server.is_ready(uri), READY_WITHIN_S, env=environment) as started:
        yield uri, started
