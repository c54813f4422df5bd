"""The records of the suite."""


def readings(*ids, **more):
    """One record per id."""
    return [{"id": id, "place": f"place {id % 7}", **more} for id in ids]
