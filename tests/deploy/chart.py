"""Renders the chart, as a release in the namespace `catalog`."""

import os
import subprocess

import paths
import yaml

CHART = paths.REPO / "charts" / "frazil"
EXAMPLES = paths.REPO / "deploy" / "examples" / "kubernetes"
VALUES = [*sorted((CHART / "ci").glob("*-values.yaml")), EXAMPLES / "frazil-values.yaml"]


def helm(*arguments):
    """The finished process."""
    return subprocess.run([os.environ["HELM"], *map(str, arguments)], capture_output=True, text=True, timeout=120)


def render(values, release="try"):
    """The objects that Kubernetes is given, in the order in which they are printed."""
    told = template("--values", values, release=release)
    assert told.returncode == 0, told.stderr
    return list(filter(None, yaml.safe_load_all(told.stdout)))


def template(*options, release="try"):
    return helm("template", release, CHART, "--namespace", "catalog", "--kube-version", "1.33.0", *options)


def of_kind(objects, *kinds):
    return [found for found in objects if found["kind"] in kinds]


def only(objects, kind):
    (found,) = of_kind(objects, kind)
    return found


def workload(objects):
    """The Deployment or the StatefulSet."""
    (found,) = of_kind(objects, "Deployment", "StatefulSet")
    return found


def pods(objects):
    """The pod templates of all that makes pods."""
    return [found["spec"]["template"] for found in of_kind(objects, "Deployment", "StatefulSet", "Job")]
