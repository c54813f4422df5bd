"""What the tests need from the machine: system packages, Java runtimes, Python environments, jars."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import libraries
import paths
import postgres
import process
from process import Failed

VERSIONS = tomllib.loads((paths.ENGINES / "versions.toml").read_text())
JAVA = 17


def java_home(version=JAVA):
    """The home of a Java runtime of that version, or None: the one that JAVA<version>_HOME names, else one found."""
    told = os.environ.get(f"JAVA{version}_HOME")
    on_path = shutil.which("java")
    found = [pathlib.Path(told)] if told else []
    found += [pathlib.Path(on_path).resolve().parents[1]] if on_path else []
    found += sorted(pathlib.Path("/usr/lib/jvm").glob(f"*{version}*"))
    return next((home for home in found if java_version(home) == version), None)


def java_version(home):
    try:
        told = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    major = re.search(r'version "(\d+)', told)
    return int(major[1]) if major else None


def has_ensurepip():
    return subprocess.run([sys.executable, "-c", "import ensurepip"], capture_output=True).returncode == 0


# Debian package -> whether the machine has what it brings.
PACKAGES = {
    "buildah": lambda: shutil.which("buildah"),
    "build-essential": lambda: shutil.which("cc"),
    "ca-certificates": lambda: os.path.exists("/etc/ssl/certs/ca-certificates.crt"),
    "git": lambda: shutil.which("git"),
    "maven": lambda: shutil.which("mvn"),
    f"openjdk-{JAVA}-jdk-headless": java_home,
    "openssl": lambda: shutil.which("openssl"),
    "pgbouncer": lambda: shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin"),
    "postgresql": postgres.binaries,
    "python3-venv": has_ensurepip,
}


def install_packages(log):
    """Installs the system packages that are missing; needs root only where one is."""
    missing = [package for package, present in PACKAGES.items() if not present()]
    if not missing:
        return
    if os.geteuid() != 0:
        raise Failed(f"not installed: {', '.join(missing)}; install them, or run this once as root")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    process.run(["apt-get", "update", "-q"], log, 300, env=environment)
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing]
    process.run(install, log, 900, env=environment)
    absent = [package for package in missing if not PACKAGES[package]()]
    if absent:
        raise Failed(f"installed, but of no use: {', '.join(absent)}")


def venv(name, log):
    """The `bin` folder of the Python environment `name` of versions.toml, made when it is not there yet."""
    wanted = VERSIONS["venv"][name]
    home = paths.VENVS / name
    made_of = home / "made-of"
    if not made_of.exists() or made_of.read_text() != "\n".join(wanted):
        shutil.rmtree(home, ignore_errors=True)
        process.run([sys.executable, "-m", "venv", home], log, 120)
        process.run([home / "bin" / "pip", "install", "-q", *wanted], log, 900)
        made_of.write_text("\n".join(wanted))
    return home / "bin"


def npm(name, log):
    """The `node_modules` of the npm packages `name` of versions.toml, as the lock in tests/engines/NAME has them."""
    wanted = json.dumps({"name": name, "private": True, "dependencies": VERSIONS["npm"][name]})
    lock = (paths.ENGINES / name / "package-lock.json").read_text()
    home = paths.NPM / name
    made_of = home / "made-of"
    if not made_of.exists() or made_of.read_text() != wanted + lock:
        home.mkdir(parents=True, exist_ok=True)
        (home / "package.json").write_text(wanted)
        (home / "package-lock.json").write_text(lock)
        process.run(["npm", "ci", "--no-audit", "--no-fund"], log, 300, cwd=home)
        made_of.write_text(wanted + lock)
    return home / "node_modules"


def jar(name, log):
    """The file of the jar `name` of versions.toml, fetched when it is not there yet."""
    coordinate = VERSIONS["jar"][name]
    _, artifact, version, *packaging = coordinate.split(":")
    classifier = packaging[1:]
    file = paths.JARS / f"{'-'.join([artifact, version, *classifier])}.jar"
    if not file.exists():
        copy = f"org.apache.maven.plugins:maven-dependency-plugin:{VERSIONS['maven-dependency-plugin']}:copy"
        maven([copy, f"-Dartifact={coordinate}", f"-DoutputDirectory={paths.JARS}"], log, 600)
    return file


def unpacked(name, log):
    """The folder that the archive `name` of versions.toml holds, fetched when it is not there yet."""
    coordinate = VERSIONS["archive"][name]
    home = paths.UNPACKED / "-".join(coordinate.split(":")[1:3])
    if not home.exists():
        fresh = paths.UNPACKED / f"{home.name}.partial"
        shutil.rmtree(fresh, ignore_errors=True)
        unpack = f"org.apache.maven.plugins:maven-dependency-plugin:{VERSIONS['maven-dependency-plugin']}:unpack"
        maven([unpack, f"-Dartifact={coordinate}", f"-DoutputDirectory={fresh}"], log, 900)
        (held,) = fresh.iterdir()
        held.rename(home)
        fresh.rmdir()
    return home


def classpath(name, log):
    """The class path of the Maven project `name` of versions.toml, as one string; missing jars are fetched."""
    pinned = dict(VERSIONS["maven"][name])
    pom = paths.ENGINES / pinned.pop("pom")
    digest = hashlib.sha256(pom.read_bytes() + repr(sorted(pinned.items())).encode()).hexdigest()[:16]
    file = paths.CLASSPATHS / f"{name}-{digest}.txt"
    if not is_complete(file):
        paths.CLASSPATHS.mkdir(parents=True, exist_ok=True)
        plugin = f"org.apache.maven.plugins:maven-dependency-plugin:{VERSIONS['maven-dependency-plugin']}"
        properties = [f"-D{key}={value}" for key, value in pinned.items()]
        maven(["-f", pom, f"{plugin}:build-classpath", f"-Dmdep.outputFile={file}", *properties], log, 1200)
    return file.read_text().strip()


def is_complete(classpath_file):
    """Whether all jars of a remembered class path are still there."""
    if not classpath_file.exists():
        return False
    return all(os.path.exists(jar) for jar in classpath_file.read_text().strip().split(os.pathsep))


def fetch(name, log):
    """Whatever versions.toml has under this name, or the project of a library's suite locks."""
    if name in VERSIONS["venv"]:
        venv(name, log)
    if name in VERSIONS["npm"]:
        npm(name, log)
    if name in VERSIONS["jar"]:
        jar(name, log)
    if name in VERSIONS["archive"]:
        unpacked(name, log)
    if name in VERSIONS["maven"]:
        classpath(name, log)
    if name in libraries.FETCH:
        libraries.FETCH[name](log)


def maven(arguments, log, bound_s, **options):
    process.run(["mvn", "-B", "-ntp", "-Dstyle.color=never", *arguments], log, bound_s, env=with_java(), **options)


def with_java(version=JAVA, **more):
    """This process's environment with a Java runtime of that version."""
    return {**os.environ, "JAVA_HOME": str(java_home(version)), **more}


GO_AT_LEAST = (1, 26)


def go_version():
    """The version of `go` on the path as (major, minor), or None."""
    try:
        told = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r"go(\d+)\.(\d+)", told)
    return (int(found[1]), int(found[2])) if found else None


# What no package of the system brings: name -> (whether it is there, what to do).
TOOLS = {
    "java-25": (lambda: java_home(25), "install a JDK 25 and set JAVA25_HOME to its home"),
    "go": (lambda: (go_version() or (0, 0)) >= GO_AT_LEAST, "install Go 1.26 or newer and put `go` on the PATH"),
    "node": (lambda: shutil.which("node") and shutil.which("npm"), "install Node.js 20 or newer with npm"),
}


def check_tools(names):
    """Raises `Failed` naming every tool of `TOOLS` that is missing and what to do about it."""
    missing = [f"{name}: {mend}" for name, (present, mend) in TOOLS.items() if name in names and not present()]
    if missing:
        raise Failed(f"not on this machine: {'; '.join(missing)}")
