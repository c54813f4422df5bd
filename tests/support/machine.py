"""What the tests need from the machine: system packages, a Java runtime, Python environments, jars."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import paths
import postgres
import process
from process import Failed

VERSIONS = tomllib.loads((paths.ENGINES / "versions.toml").read_text())
JAVA = 17


def java_home():
    """The home of a Java runtime of the version that every JVM client supports, or None."""
    on_path = shutil.which("java")
    found = [pathlib.Path(on_path).resolve().parents[1]] if on_path else []
    found += sorted(pathlib.Path("/usr/lib/jvm").glob(f"*{JAVA}*"))
    return next((home for home in found if java_version(home) == JAVA), None)


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
    "build-essential": lambda: shutil.which("cc"),
    "ca-certificates": lambda: os.path.exists("/etc/ssl/certs/ca-certificates.crt"),
    "git": lambda: shutil.which("git"),
    "maven": lambda: shutil.which("mvn"),
    f"openjdk-{JAVA}-jdk-headless": java_home,
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


def jar(name, log):
    """The file of the jar `name` of versions.toml, fetched when it is not there yet."""
    coordinate = VERSIONS["jar"][name]
    _, artifact, version = coordinate.split(":")
    file = paths.JARS / f"{artifact}-{version}.jar"
    if not file.exists():
        copy = f"org.apache.maven.plugins:maven-dependency-plugin:{VERSIONS['maven-dependency-plugin']}:copy"
        maven([copy, f"-Dartifact={coordinate}", f"-DoutputDirectory={paths.JARS}"], log, 600)
    return file


def fetch(name, log):
    """Whatever versions.toml has under this name."""
    if name in VERSIONS["venv"]:
        venv(name, log)
    if name in VERSIONS["jar"]:
        jar(name, log)


def maven(arguments, log, bound_s, **options):
    process.run(["mvn", "-B", "-ntp", "-Dstyle.color=never", *arguments], log, bound_s, env=with_java(), **options)


def with_java(**more):
    """This process's environment with the Java runtime of the suites."""
    return {**os.environ, "JAVA_HOME": str(java_home()), **more}
