"""The warehouses that a suite runs against."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class S3:
    """How a client reaches the store."""

    endpoint: str
    region: str
    access_key_id: str
    secret_access_key: str


@dataclass(frozen=True)
class Warehouse:
    """`s3` is set where its files lie on S3; else they are local files."""

    name: str
    s3: S3 | None = None

    @property
    def scheme(self):
        return "s3" if self.s3 else "file"


def named_by_environment():
    """Those of FRAZIL_WAREHOUSES. `default` lies on local files, every other one on S3."""
    names = os.environ.get("FRAZIL_WAREHOUSES", "default").split(",")
    return [Warehouse(name, None if name == "default" else s3()) for name in names]


def s3():
    return S3(*(os.environ[f"S3_{key}"] for key in ("ENDPOINT", "REGION", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY")))
