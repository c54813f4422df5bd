"""The catalog through PyIceberg, for its own suite and for those of the libraries that build on it."""

from pyiceberg.catalog import load_catalog


def catalog(uri, warehouse, login=None):
    """Where the store is, the catalog tells its clients; who may enter it, they bring themselves."""
    keys = {}
    if s3 := warehouse.s3:
        keys = {"s3.access-key-id": s3.access_key_id, "s3.secret-access-key": s3.secret_access_key}
    known = login.properties() if login else {}
    return load_catalog("frazil", type="rest", uri=uri, warehouse=warehouse.name, **keys, **known)
