"""Builds and runs images without a daemon: buildah with folders of its own, and no isolation but a change of the root."""

import contextlib
import json
import os
import shutil
import subprocess

import paths

HOME = paths.RUNS / "image"
STORAGE = ["--storage-driver", "vfs", "--root", HOME / "storage", "--runroot", HOME / "run"]


def buildah(*arguments, bound_s=300):
    """What it prints."""
    argv = ["buildah", *STORAGE, *arguments]
    told = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=bound_s, cwd=paths.REPO)
    assert told.returncode == 0, told.stdout + told.stderr
    return told.stdout.strip()


def build(name, *options):
    """The id of the image that the Dockerfile makes."""
    options = ["--isolation", "chroot", "--format", "docker", *options]
    return buildah("bud", *options, "--tag", name, "--quiet", ".").splitlines()[-1]


def settings(image):
    """How containers of the image are started."""
    return inspect(image)["Docker"]["config"]


def layers(image):
    """The digests of its files."""
    return inspect(image)["OCIv1"]["rootfs"]["diff_ids"]


def inspect(image):
    return json.loads(buildah("inspect", "--type", "image", image))


@contextlib.contextmanager
def container(image):
    name = buildah("from", image)
    try:
        yield name
    finally:
        buildah("rm", name)


@contextlib.contextmanager
def mounted(container):
    """The folder with the files of a container."""
    yield buildah("mount", container)
    buildah("umount", container)


def run_argv(container, *command, environment=(), volumes=()):
    """The words that run a command in it, as the user of the image."""
    options = [word for name, value in dict(environment).items() for word in ("--env", f"{name}={value}")]
    options += [word for volume in volumes for word in ("--volume", volume)]
    return ["buildah", *STORAGE, "run", "--isolation", "chroot", *options, container, "--", *command]


def forget():
    """Removes all images and containers."""
    for part in ("storage", "run"):
        shutil.rmtree(HOME / part, ignore_errors=True)
    os.makedirs(HOME, exist_ok=True)
