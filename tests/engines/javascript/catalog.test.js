// The catalog through iceberg-js, which speaks of namespaces and tables but reads and writes no rows.
//
//     export NODE_PATH=target/npm/javascript/node_modules FRAZIL_URI=http://127.0.0.1:8181
//     node --test tests/engines/javascript

const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const { writeFileSync } = require("node:fs");
const { join } = require("node:path");
const { after, beforeEach, describe, test } = require("node:test");
const { IcebergError, IcebergRestCatalog } = require("iceberg-js");
const { version } = require(join(require.resolve("iceberg-js"), "../../package.json"));

const { FRAZIL_URI, FRAZIL_STORE = "", FRAZIL_REPORT, FRAZIL_WAREHOUSES = "default" } = process.env;
const schemeOf = (warehouse) => (warehouse === "default" ? "file" : "s3");
const began = Date.now();
const calls = new Map();

// What came out as it must is counted, call by call.
function counted(catalog, scheme) {
  return new Proxy(catalog, {
    get: (target, method) => async (...given) => {
      const answer = await target[method](...given);
      calls.set(scheme, (calls.get(scheme) ?? 0) + 1);
      return answer;
    },
  });
}

after(() => {
  if (!FRAZIL_REPORT) return;
  const seconds = Math.round((Date.now() - began) / 1000);
  const rows = [...calls].map(([files, statements]) => ({
    engine: "iceberg-js", version, catalog: FRAZIL_STORE, files, statements, seconds,
  }));
  writeFileSync(FRAZIL_REPORT, JSON.stringify(rows, null, 1));
});

const readings = {
  name: "readings",
  schema: {
    type: "struct",
    "schema-id": 0,
    "identifier-field-ids": [1],
    fields: [
      { id: 1, name: "id", type: "long", required: true },
      { id: 2, name: "place", type: "string", required: false },
      { id: 3, name: "flow", type: "decimal(9, 2)", required: false },
    ],
  },
  "partition-spec": {
    "spec-id": 0,
    fields: [{ "source-id": 2, "field-id": 1000, name: "place", transform: "identity" }],
  },
  properties: { owner: "hydrology" },
};

// Matches the refusal that the client makes of an answer with this status and type.
const refused = (status, type) => (error) =>
  error instanceof IcebergError && error.status === status && error.icebergType === type;

for (const warehouse of FRAZIL_WAREHOUSES.split(",")) {
  const catalog = counted(
    new IcebergRestCatalog({ baseUrl: FRAZIL_URI, catalogName: warehouse }),
    schemeOf(warehouse),
  );

  describe(schemeOf(warehouse), () => {
    let namespace, table;

    beforeEach(async () => {
      namespace = { namespace: [`n${randomUUID().replaceAll("-", "").slice(0, 12)}`] };
      table = { ...namespace, name: "readings" };
      await catalog.createNamespace(namespace, { properties: { owner: "hydrology" } });
    });

    test("a namespace is created, listed, loaded and dropped", async () => {
      assert.deepEqual((await catalog.loadNamespaceMetadata(namespace)).properties, { owner: "hydrology" });
      assert.ok((await catalog.listNamespaces()).some((found) => found.namespace[0] === namespace.namespace[0]));
      await assert.rejects(catalog.createNamespace(namespace), refused(409, "AlreadyExistsException"));
      await catalog.createNamespaceIfNotExists(namespace);

      await catalog.dropNamespace(namespace);
      assert.equal(await catalog.namespaceExists(namespace), false);
    });

    test("a nested namespace is listed below its parent", async () => {
      const child = { namespace: [...namespace.namespace, "rivers"] };
      await catalog.createNamespace(child);

      assert.deepEqual(await catalog.listNamespaces(namespace), [child]);
      await assert.rejects(catalog.dropNamespace(namespace), refused(409, "NamespaceNotEmptyException"));
      await catalog.dropNamespace(child);
    });

    test("a created table is what was asked for", async () => {
      const made = await catalog.createTable(namespace, readings);
      const loaded = await catalog.loadTable(table);

      assert.deepEqual(loaded, made);
      assert.deepEqual(loaded.schemas[0].fields, readings.schema.fields);
      assert.deepEqual(loaded["partition-specs"][0].fields, readings["partition-spec"].fields);
      assert.equal(loaded.properties.owner, "hydrology");
      assert.match(loaded.location, new RegExp(`^${schemeOf(warehouse)}:`));
      assert.deepEqual(await catalog.listTables(namespace), [table]);
    });

    test("a name is given once", async () => {
      const made = await catalog.createTable(namespace, readings);

      await assert.rejects(catalog.createTable(namespace, readings), refused(409, "AlreadyExistsException"));
      assert.equal((await catalog.createTableIfNotExists(namespace, readings))["table-uuid"], made["table-uuid"]);
    });

    test("properties and columns change by a commit of updates", async () => {
      const made = await catalog.createTable(namespace, readings);
      const wider = { ...readings.schema, "schema-id": 1, fields: [...readings.schema.fields] };
      wider.fields.push({ id: 4, name: "note", type: "string", required: false });

      const { metadata } = await catalog.updateTable(table, {
        requirements: [{ type: "assert-table-uuid", uuid: made["table-uuid"] }],
        updates: [
          { action: "set-properties", updates: { unit: "m3/s" } },
          { action: "add-schema", schema: wider },
          { action: "set-current-schema", "schema-id": -1 },
        ],
      });

      assert.equal(metadata.properties.unit, "m3/s");
      assert.equal(metadata["current-schema-id"], 1);
      assert.deepEqual(await catalog.loadTable(table), metadata);
    });

    test("a commit without a list of updates is refused and changes nothing", async () => {
      const made = await catalog.createTable(namespace, readings);

      const update = catalog.updateTable(table, { properties: { unit: "m3/s" } });

      await assert.rejects(update, refused(400, "BadRequestException"));
      assert.deepEqual(await catalog.loadTable(table), made);
    });

    test("a dropped table is gone, purged or not", async () => {
      for (const purge of [false, true]) {
        await catalog.createTable(namespace, readings);
        await catalog.dropTable(table, { purge });

        assert.equal(await catalog.tableExists(table), false);
        await assert.rejects(catalog.loadTable(table), refused(404, "NoSuchTableException"));
      }
      await catalog.dropNamespace(namespace);
    });
  });
}
