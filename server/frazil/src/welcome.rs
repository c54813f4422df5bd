//! What the server prints when it is ready: where it is, and how each engine is pointed at it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::config::{DatabaseUrl, ServerConfig};

/// What is told besides where callers are asked who they are.
pub const ASKS: &str = "Callers must log in: add credential=ID:SECRET, or your provider's settings, to those above
(frazil principal create NAME; docs/authentication.md).";

/// Where clients on this machine, or behind the configured address, find the catalog.
pub fn catalog_uri(config: &ServerConfig, address: SocketAddr) -> String {
    match &config.public_url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => local_uri(config, address),
    }
}

/// Where processes on this machine find it.
pub fn local_uri(config: &ServerConfig, address: SocketAddr) -> String {
    let loopback: IpAddr = if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    let ip = if address.ip().is_unspecified() { loopback } else { address.ip() };
    format!("{}://{}{}", config.scheme(), SocketAddr::new(ip, address.port()), config.base_path())
}

/// Where the catalog keeps its state, and the settings of every engine for the warehouse `default`, to be copied as they
/// stand.
pub fn text(uri: &str, database: &DatabaseUrl) -> String {
    format!(
        r#"Frazil serves the Iceberg REST catalog at {uri}
with its state in {database}. Ctrl-C ends it; frazil --help tells what else it can do.

Spark (spark-sql --packages org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0 …)
  --conf spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions
  --conf spark.sql.catalog.frazil=org.apache.iceberg.spark.SparkCatalog
  --conf spark.sql.catalog.frazil.type=rest
  --conf spark.sql.catalog.frazil.uri={uri}
  --conf spark.sql.catalog.frazil.warehouse=default

Flink
  CREATE CATALOG frazil WITH ('type'='iceberg', 'catalog-type'='rest', 'uri'='{uri}',
    'warehouse'='default');

Trino (etc/catalog/frazil.properties)
  connector.name=iceberg
  iceberg.catalog.type=rest
  iceberg.rest-catalog.uri={uri}
  iceberg.rest-catalog.warehouse=default
  fs.local.enabled=true
  local.location=/

PyIceberg
  from pyiceberg.catalog import load_catalog
  catalog = load_catalog("frazil", type="rest", uri="{uri}", warehouse="default")

DuckDB
  INSTALL iceberg; LOAD iceberg;
  ATTACH 'default' AS frazil (TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none');
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_address_is_told_where_there_is_one() {
        let mut config = ServerConfig::default();
        assert_eq!(catalog_uri(&config, ([0, 0, 0, 0], 8181).into()), "http://127.0.0.1:8181");
        assert_eq!(catalog_uri(&config, ([127, 0, 0, 1], 9).into()), "http://127.0.0.1:9");
        config.base_path = Some("/ice".into());
        assert_eq!(catalog_uri(&config, "[::]:9".parse().unwrap()), "http://[::1]:9/ice");
        config.public_url = Some("https://catalog.example/".into());
        assert_eq!(catalog_uri(&config, ([0, 0, 0, 0], 8181).into()), "https://catalog.example");
    }
}
