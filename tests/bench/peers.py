"""The peers: Rustberg, Iceberg's own REST fixture, Nessie. Each with what its makers advise for production, logs at
warnings, and a Java heap of 1 GB."""

import contextlib
import os
import re

import machine
import paths
import process
from process import Failed
from room import child
from target import answers, target, traits

HEAP = "-Xmx1g"
READY_WITHIN_S = 90
NESSIE_JAVA = 25
# As many connections to PostgreSQL as Frazil and Rustberg have.
CONNECTIONS = 16
ADMIN_KEY = re.compile(r"X-API-Key: (\S+)")


def rustberg_version():
    return machine.VERSIONS["cargo"]["rustberg"]["version"]


def fetch_rustberg(log):
    """The binary, built where it is not there yet or has another version."""
    pinned = machine.VERSIONS["cargo"]["rustberg"]
    home = paths.REPO / "target" / "peers"
    binary, made_of = home / "bin" / "rustberg", home / "rustberg.made-of"
    if not binary.exists() or not made_of.exists() or made_of.read_text() != repr(pinned):
        install = ["cargo", "install", "rustberg", "--version", pinned["version"], "--features", pinned["features"]]
        process.run([*install, "--locked", "--force", "--root", home], log, 7200)
        made_of.write_text(repr(pinned))
    return binary


def rustberg(database):
    """Rustberg on its embedded redb, or on PostgreSQL."""

    @contextlib.contextmanager
    def start(room, name, _):
        port = process.free_port()
        uri, warehouse = f"http://127.0.0.1:{port}", room.warehouse()
        catalog = (room.folder / "catalog").as_uri() if database == "redb" else room.database()
        settings = room.folder / "rustberg.toml"
        settings.write_text(rustberg_settings(room))
        with open(room.log_file, "a") as log:
            argv = [fetch_rustberg(log), "--config", settings, "--dev", "--insecure-http", "--log-level", "warn"]
        argv += ["--host", "127.0.0.1", "--port", port, "--catalog-url", catalog, "--warehouse", warehouse]
        environment = clean_environment("RUSTBERG_")

        def ready():
            return answers(uri, warehouse, admin_key(room))

        with child(room, argv, "Rustberg", ready, READY_WITHIN_S, env=environment) as started:
            told = traits(chooses_location=True)
            yield target(room, name, [uri], warehouse, [started.pid], told, token=admin_key(room))

    return start


def rustberg_settings(room):
    lines = ["[rate_limit]", "enabled = false"]
    if room.store == "s3":
        s3 = room.backends.s3
        lines += ["[storage.properties]", f'"s3.endpoint" = "{s3.endpoint}"', f'"s3.region" = "{s3.region}"']
        lines += ['"s3.path-style-access" = "true"', f'"s3.access-key-id" = "{s3.access_key_id}"']
        lines += [f'"s3.secret-access-key" = "{s3.secret_access_key}"']
    return "\n".join([*lines, ""])


def admin_key(room):
    """What Rustberg printed at its start, or None so far."""
    found = ADMIN_KEY.search(room.log_file.read_text(errors="replace"))
    return found and found[1]


@contextlib.contextmanager
def fixture(room, name, _):
    """Iceberg's JDBC catalog on PostgreSQL behind the REST servlet of Iceberg's tests."""
    port = process.free_port()
    uri, warehouse = f"http://127.0.0.1:{port}", room.warehouse()
    properties = {"uri": room.jdbc(), "jdbc.user": "postgres", "jdbc.strict-mode": "true", "warehouse": warehouse}
    properties |= {"clients": CONNECTIONS}
    if room.store == "s3":
        s3 = room.backends.s3
        properties |= {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "s3.endpoint": s3.endpoint}
        properties |= {"s3.path-style-access": "true", "client.region": s3.region}
        properties |= {"s3.access-key-id": s3.access_key_id, "s3.secret-access-key": s3.secret_access_key}
    with open(room.log_file, "a") as log:
        classpath = machine.classpath("fixture", log)
    source = paths.REPO / "tests" / "bench" / "fixture" / "Fixture.java"
    argv = [machine.java_home() / "bin" / "java", HEAP, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    argv += ["-cp", classpath, source, port, *(f"{key}={value}" for key, value in properties.items())]
    environment = clean_environment("CATALOG_")
    with child(room, argv, "the fixture", lambda: answers(uri, warehouse), READY_WITHIN_S, env=environment) as started:
        yield target(room, name, [uri], warehouse, [started.pid], traits())


@contextlib.contextmanager
def nessie(room, name, _):
    """Nessie's runner with its version store on PostgreSQL. It takes tables on object stores alone."""
    java = machine.java_home(NESSIE_JAVA)
    if not java:
        raise Failed(f"Nessie needs a JDK {NESSIE_JAVA}: {machine.TOOLS[f'java-{NESSIE_JAVA}'][1]}")
    port, management = process.free_port(), process.free_port()
    with open(room.log_file, "a") as log:
        jar = machine.jar("nessie", log)
    settings = nessie_settings(room, port, management)
    argv = [java / "bin" / "java", HEAP, *(f"-D{key}={value}" for key, value in settings.items()), "-jar", jar]
    uri = f"http://127.0.0.1:{port}/iceberg"
    environment = clean_environment("NESSIE_", "QUARKUS_")
    with child(room, argv, "Nessie", lambda: answers(uri, "default"), READY_WITHIN_S, env=environment) as started:
        told = traits(registers=False, keeps_history=False, chooses_location=True, always_stage_create=True)
        yield target(room, name, [uri], "default", [started.pid], told)


def nessie_settings(room, port, management):
    s3 = room.backends.s3
    store = "nessie.catalog.service.s3.default-options"
    return {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": port,
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": management,
        "quarkus.log.level": "WARN",
        "quarkus.http.access-log.enabled": "false",
        "quarkus.otel.sdk.disabled": "true",
        "quarkus.oidc.tenant-enabled": "false",
        "nessie.server.authentication.enabled": "false",
        "nessie.version.store.type": "JDBC2",
        "nessie.version.store.persist.jdbc.datasource": "postgresql",
        "quarkus.datasource.postgresql.jdbc.url": room.jdbc(),
        "quarkus.datasource.postgresql.username": "postgres",
        "quarkus.datasource.postgresql.password": "unused",
        "nessie.catalog.default-warehouse": "default",
        "nessie.catalog.warehouses.default.location": room.warehouse(),
        f"{store}.endpoint": s3.endpoint,
        f"{store}.region": s3.region,
        f"{store}.path-style-access": "true",
        f"{store}.access-key": "urn:nessie-secret:quarkus:store-key",
        "store-key.name": s3.access_key_id,
        "store-key.secret": s3.secret_access_key,
    }


def clean_environment(*prefixes):
    """This process's environment without what the server would take for settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
