"""What the binary is made of: a CycloneDX bill of materials, and the licences of all its parts.

    materials.py TARGET FOLDER

writes frazil.cdx.json and third-party-licences.txt into FOLDER, for a build for the Rust target TARGET. Both are the same for
the same Cargo.lock. Asks Cargo alone; it wants the sources of the dependencies, as a build has them.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime

ROOT = "frazil"
LICENCE_FILES = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|UNLICEN[CS]E)([-._].*)?", re.IGNORECASE)
# Crates that come without a text are under one that everybody knows.
NO_TEXT = "The crate ships no text of its licence."


def main():
    target, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    packages = linked(target)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "frazil.cdx.json").write_text(json.dumps(bill(packages), indent=1) + "\n")
    (folder / "third-party-licences.txt").write_text(licences(packages))


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], check=True, capture_output=True, text=True).stdout


def linked(target):
    """What Cargo tells of the packages that go into the binary, sorted; each with the ids of those that it uses."""
    tree = cargo("tree", "--locked", "-p", ROOT, "-e", "normal", "--target", target, "--prefix", "none", "-f", "{p}")
    wanted = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    metadata = json.loads(cargo("metadata", "--locked", "--format-version", "1", "--filter-platform", target))
    packages = [package for package in metadata["packages"] if (package["name"], f"v{package['version']}") in wanted]
    uses = {node["id"]: node["dependencies"] for node in metadata["resolve"]["nodes"]}
    ids = {package["id"] for package in packages}
    for package in packages:
        package["uses"] = sorted(ids.intersection(uses[package["id"]]))
    return sorted(packages, key=lambda package: (package["name"], package["version"]))


def bill(packages):
    """CycloneDX 1.6."""
    digests = checksums()
    components = {package["id"]: component(package, digests) for package in packages}
    root = next(package["id"] for package in packages if package["name"] == ROOT)
    refs = {id: component["bom-ref"] for id, component in components.items()}
    uses = [
        {"ref": refs[package["id"]], "dependsOn": sorted(refs[id] for id in package["uses"])} for package in packages
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": timestamp(), "component": components.pop(root) | {"type": "application"}},
        "components": list(components.values()),
        "dependencies": uses,
    }


def timestamp():
    """That of SOURCE_DATE_EPOCH, or the beginning of time: the same input gives the same bytes."""
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def checksums():
    lock = tomllib.loads(pathlib.Path("Cargo.lock").read_text())
    return {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}


def component(package, digests):
    name, version = package["name"], package["version"]
    purl = f"pkg:cargo/{name}@{version}"
    found = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if package["license"]:
        found["licenses"] = [{"expression": expression(package["license"])}]
    if digest := digests.get((name, version)):
        found["hashes"] = [{"alg": "SHA-256", "content": digest}]
    if package["repository"]:
        found["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return found


def expression(licence):
    """As SPDX writes it: older crates put a slash between two to choose from."""
    return licence.replace("/", " OR ") if " OR " not in licence else licence


def licences(packages):
    """Each crate with its licence, then every text once, with the crates that it belongs to."""
    theirs = [package for package in packages if package["source"]]
    lines = [f"{package['name']} {package['version']}: {licence_of(package)}" for package in theirs]
    texts = {}
    for package in theirs:
        for text in texts_of(package) or [NO_TEXT]:
            texts.setdefault(text, []).append(f"{package['name']} {package['version']}")
    parts = [f"{'=' * 80}\n{', '.join(crates)}\n{'=' * 80}\n{text}\n" for text, crates in texts.items()]
    return "\n".join(["Frazil contains these crates:", "", *lines, "", *parts])


def licence_of(package):
    return package["license"] or f"see {package['license_file']}"


def texts_of(package):
    home = pathlib.Path(package["manifest_path"]).parent
    files = sorted(file for file in home.iterdir() if file.is_file() and LICENCE_FILES.fullmatch(file.name))
    if package["license_file"]:
        files.append(home / package["license_file"])
    return list(dict.fromkeys(file.read_text(errors="replace").strip() for file in files))


if __name__ == "__main__":
    main()
