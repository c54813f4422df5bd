"""A database of PostgreSQL that Flink CDC follows into an upsert table, and changes to its one table."""

from lakehouse import options

ORDERS = """
    CREATE TABLE orders (id bigint PRIMARY KEY, item text, qty int);
    ALTER TABLE orders REPLICA IDENTITY FULL;
    INSERT INTO orders SELECT id, 'item ' || id, id % 7 FROM generate_series(1, 1000) id;
"""
CHANGES = (
    "UPDATE orders SET qty = qty + 100 WHERE id <= 50",
    "DELETE FROM orders WHERE id BETWEEN 51 AND 60",
    "INSERT INTO orders SELECT id, 'late ' || id, 1 FROM generate_series(1001, 1100) id",
)
CHANGES_WHILE_DOWN = (
    "UPDATE orders SET item = 'renamed' WHERE id BETWEEN 900 AND 1050",
    "DELETE FROM orders WHERE id > 1090",
    "INSERT INTO orders VALUES (51, 'back again', 51)",
)


class Shop:
    def __init__(self, server):
        self.server = server
        self.database = server.fresh_database("shop").rsplit("/", 1)[1]
        self.change(ORDERS)

    def change(self, *statements):
        """Each statement is a transaction of its own."""
        for statement in statements:
            self.server.execute(self.database, statement)

    def orders(self):
        """The rows as text, ordered by id."""
        return self.server.rows(self.database, "SELECT id, item, qty FROM orders ORDER BY id")

    def follow(self, lake):
        """Makes Flink's source `followed`; its place in the change log is kept in a replication slot."""
        source = {
            "connector": "postgres-cdc",
            "hostname": "127.0.0.1",
            "port": self.server.port,
            "username": "postgres",
            "password": "unused",
            "database-name": self.database,
            "schema-name": "public",
            "table-name": "orders",
            "slot.name": "flink",
            "decoding.plugin.name": "pgoutput",
            "scan.incremental.snapshot.enabled": "true",
        }
        columns = "id BIGINT, item STRING, qty INT, PRIMARY KEY (id) NOT ENFORCED"
        lake.run(f"CREATE TEMPORARY TABLE followed ({columns}) WITH ({options(source)})")
