//! Every operation of the Iceberg REST spec is either served or named here as not supported.

use std::collections::BTreeSet;

use crate::document::operations;

/// The spec document that these lists were made from, by its SHA-256. With another document they are made anew.
const SPEC_SHA256: &str = "9a160d49002a14e559ab4dcb5be9953b8880ca1544cf9773f05b1a720c3b35b7";

/// How many operations the spec has.
const OPERATIONS: usize = 35;

const SERVED: [(&str, &str, &str); 29] = [
    ("getToken", "POST", "/v1/oauth/tokens"),
    ("getConfig", "GET", "/v1/config"),
    ("listNamespaces", "GET", "/v1/{prefix}/namespaces"),
    ("createNamespace", "POST", "/v1/{prefix}/namespaces"),
    ("loadNamespaceMetadata", "GET", "/v1/{prefix}/namespaces/{namespace}"),
    ("namespaceExists", "HEAD", "/v1/{prefix}/namespaces/{namespace}"),
    ("dropNamespace", "DELETE", "/v1/{prefix}/namespaces/{namespace}"),
    ("updateProperties", "POST", "/v1/{prefix}/namespaces/{namespace}/properties"),
    ("listTables", "GET", "/v1/{prefix}/namespaces/{namespace}/tables"),
    ("createTable", "POST", "/v1/{prefix}/namespaces/{namespace}/tables"),
    ("loadTable", "GET", "/v1/{prefix}/namespaces/{namespace}/tables/{table}"),
    ("updateTable", "POST", "/v1/{prefix}/namespaces/{namespace}/tables/{table}"),
    ("dropTable", "DELETE", "/v1/{prefix}/namespaces/{namespace}/tables/{table}"),
    ("tableExists", "HEAD", "/v1/{prefix}/namespaces/{namespace}/tables/{table}"),
    ("unregisterTable", "POST", "/v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister"),
    ("reportMetrics", "POST", "/v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics"),
    ("registerTable", "POST", "/v1/{prefix}/namespaces/{namespace}/register"),
    ("renameTable", "POST", "/v1/{prefix}/tables/rename"),
    ("commitTransaction", "POST", "/v1/{prefix}/transactions/commit"),
    ("listViews", "GET", "/v1/{prefix}/namespaces/{namespace}/views"),
    ("createView", "POST", "/v1/{prefix}/namespaces/{namespace}/views"),
    ("loadView", "GET", "/v1/{prefix}/namespaces/{namespace}/views/{view}"),
    ("replaceView", "POST", "/v1/{prefix}/namespaces/{namespace}/views/{view}"),
    ("dropView", "DELETE", "/v1/{prefix}/namespaces/{namespace}/views/{view}"),
    ("viewExists", "HEAD", "/v1/{prefix}/namespaces/{namespace}/views/{view}"),
    ("renameView", "POST", "/v1/{prefix}/views/rename"),
    ("registerView", "POST", "/v1/{prefix}/namespaces/{namespace}/register-view"),
    ("listFunctions", "GET", "/v1/{prefix}/namespaces/{namespace}/functions"),
    ("loadFunction", "GET", "/v1/{prefix}/namespaces/{namespace}/functions/{function}"),
];

/// What clients are not told of. This list may only shrink.
const UNSUPPORTED: [&str; 6] =
    ["planTableScan", "fetchPlanningResult", "cancelPlanning", "fetchScanTasks", "loadCredentials", "signRequest"];

/// What clients are to be told that they may call, in order.
pub fn advertised() -> Vec<String> {
    let below = SERVED.iter().filter(|(_, _, path)| path.starts_with("/v1/{prefix}/"));
    let mut endpoints: Vec<String> = below.map(|(_, method, path)| format!("{method} {path}")).collect();
    endpoints.sort();
    endpoints
}

#[test]
fn every_operation_of_the_spec_is_served_or_named_as_unsupported() {
    let served = SERVED.iter().map(|(id, ..)| *id);
    let all: BTreeSet<_> = served.chain(UNSUPPORTED).collect();
    assert_eq!(all.len(), OPERATIONS, "of the spec document {SPEC_SHA256}");
}

#[test]
fn what_is_served_is_documented_under_the_name_and_path_of_the_spec() {
    let ours = operations();
    for (id, method, path) in SERVED {
        assert_eq!(ours.get(id), Some(&(method.to_owned(), path.to_owned())), "{id}");
    }
    for id in UNSUPPORTED {
        assert_eq!(ours.get(id), None, "{id} is served: take it off the list");
    }
}

#[test]
fn nothing_else_is_served_below_the_root_of_the_spec() {
    let known: BTreeSet<_> = SERVED.iter().map(|(id, ..)| (*id).to_owned()).collect();
    for (id, (_, path)) in operations() {
        assert!(!path.starts_with("/v1/") || known.contains(&id), "{id} is not of the spec");
    }
}
