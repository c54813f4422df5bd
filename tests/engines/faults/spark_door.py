"""Spark as a process that a test drives: spark_door.py PORT FOLDER JAR CATALOG=URI...

A request is a POST with a JSON document, {"do": what, ...}; the answer is {"answer": value} or {"error": text}.
Requests are answered beside each other.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pyspark.sql import SparkSession


def main(port, folder, jar, *catalogs):
    catalogs = dict(catalog.split("=", 1) for catalog in catalogs)
    spark = session(folder, jar, catalogs)
    for name in catalogs:
        spark.sql(f"SHOW NAMESPACES IN {name}")  # A stream that is the first to name a catalog does not find it.
    with ThreadingHTTPServer(("127.0.0.1", int(port)), Handler) as door:
        door.actions = Actions(spark, folder)
        door.serve_forever()


class Actions:
    def __init__(self, spark, folder):
        self.spark = spark
        self.folder = folder
        self.query = None

    def sql(self, statement):
        """The rows that a statement finds."""
        return [list(row) for row in self.spark.sql(statement).collect()]

    def stream(self, table, checkpoint, rows_per_batch, every):
        """Starts the query that appends (id, v) to a table, a batch `every` so long, from its checkpoint on."""
        source = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows_per_batch).load()
        writer = source.selectExpr("value AS id", "CAST(value % 7 AS int) AS v").writeStream.format("iceberg")
        writer = writer.option("checkpointLocation", checkpoint).trigger(processingTime=every)
        self.query = writer.outputMode("append").toTable(table)

    def streams(self):
        """Whether the query goes on; it ends where it fails."""
        return self.query is not None and self.query.isActive

    def stop(self):
        self.query.stop()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        action = getattr(self.server.actions, request.pop("do"))
        try:
            answer = {"answer": action(**request)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer, default=str).encode())

    def log_message(self, *_):
        pass


def session(folder, jar, catalogs):
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.jars": jar,
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
    }
    for name, uri in catalogs.items():
        catalog = f"spark.sql.catalog.{name}"
        settings |= {
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.type": "rest",
            f"{catalog}.uri": uri,
            f"{catalog}.warehouse": "default",
            # Each statement is to see the table as it is then.
            f"{catalog}.cache-enabled": "false",
        }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


main(*sys.argv[1:])
