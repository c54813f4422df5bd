"""A catalog as the settings of a Spark session name it."""

CATALOG = "org.apache.iceberg.spark.SparkCatalog"


def catalog(name, uri, warehouse, login=None):
    """Where the store is, the catalog tells its clients; who may enter it, they bring themselves."""
    settings = {"type": "rest", "uri": uri, "warehouse": warehouse.name}
    if s3 := warehouse.s3:
        settings |= {"s3.access-key-id": s3.access_key_id, "s3.secret-access-key": s3.secret_access_key}
    if login:
        settings |= login.properties()
    prefix = f"spark.sql.catalog.{name}"
    return {prefix: CATALOG, **{f"{prefix}.{key}": value for key, value in settings.items()}}
