//! `frazil warehouse`: warehouses of a running server.

use std::io::Write;

use catalog::error::Error as Refused;
use catalog::location::Location;
use clap::{Args, Subcommand};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::client::{Access, Client, ClientError};
use crate::config::{Hidden, SERVER};

const WAREHOUSES: &str = "/management/v1/warehouses";

/// Warehouses that are asked for at one time.
const PAGE: u32 = 1_000;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Args)]
pub struct WarehouseCommand {
    #[command(subcommand)]
    action: Action,
    /// The server to talk to.
    #[arg(long, global = true, value_name = "URL", env = SERVER, default_value = "http://127.0.0.1:8181")]
    server: String,
    #[command(flatten)]
    access: Access,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a warehouse, once the server has tried that it can write, read, list and delete there.
    Create {
        name: String,
        /// Where its tables lie: s3://bucket/prefix, gs://bucket/prefix, file:///path, or
        /// abfss://container@account.dfs.core.windows.net/prefix.
        #[arg(long, value_name = "URI")]
        location: String,
        /// Leave a warehouse of that name as it is, where there is one.
        #[arg(long)]
        if_missing: bool,
        #[command(flatten)]
        settings: Box<Settings>,
    },
    /// Print the names and locations of all warehouses.
    List,
    /// Print a warehouse, without secrets.
    Show { name: String },
    /// Change what is given of a warehouse, and leave the rest as it is.
    Update {
        name: String,
        #[command(flatten)]
        settings: Box<Settings>,
        /// A key to take out of the defaults; may be given more than once.
        #[arg(long, value_name = "KEY")]
        remove_default: Vec<String>,
        /// A key to take out of the overrides; may be given more than once.
        #[arg(long, value_name = "KEY")]
        remove_override: Vec<String>,
    },
    /// Delete a warehouse that holds nothing. The files at its location stay.
    Delete { name: String },
}

/// What a warehouse is told besides its name and its location.
#[derive(Debug, Default, Args)]
struct Settings {
    /// URL of an S3-compatible store.
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    #[arg(long)]
    region: Option<String>,
    /// The bucket is part of the path of the store's URL, and not of its host name.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    path_style: Option<bool>,
    #[arg(long, value_name = "ID")]
    access_key_id: Option<String>,
    /// The secret itself, or where the server finds it: env:NAME or file:PATH.
    #[arg(long, value_name = "SECRET", value_parser = Hidden::parse)]
    secret_access_key: Option<Hidden>,
    /// Any other setting of the store, as in --storage account-key=env:AZURE_KEY; may be given more than once.
    #[arg(long, value_name = "KEY=VALUE", value_parser = Hidden::parse)]
    storage: Vec<Hidden>,
    /// A further place for tables; may be given more than once.
    #[arg(long, value_name = "URI")]
    allowed_location: Vec<String>,
    /// A setting that clients take where they have none; may be given more than once.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    default: Vec<(String, String)>,
    /// A setting that clients take whatever they have; may be given more than once.
    #[arg(long = "override", value_name = "KEY=VALUE", value_parser = pair)]
    overrides: Vec<(String, String)>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it like KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// What is refused is not shown: it may hold a secret.
fn of_store(text: &Hidden) -> Result<(String, Value), Refused> {
    let (key, value) = text.reveal().split_once('=').ok_or_else(|| {
        Refused::invalid("--storage is not written like KEY=VALUE, as in --storage account-key=env:AZURE_KEY")
    })?;
    Ok((key.to_owned(), of_text(value)))
}

impl WarehouseCommand {
    /// Does what is asked for, and prints the answer to `out`.
    pub async fn run(self, out: &mut (dyn Write + Send)) -> Result<(), Error> {
        let client = Client::of(&self.server)?.logged_in(&self.access).await?;
        match self.action {
            Action::Create { name, if_missing: true, .. } if is_there(&client, &name).await? => {
                Ok(writeln!(out, "{name} is there already")?)
            }
            Action::Create { name, location, settings, .. } => {
                let body = settings.new_warehouse(&name, &location)?;
                print(out, &client.send(Method::POST, WAREHOUSES, Some(&body)).await?)
            }
            Action::List => print_list(out, &list(&client).await?),
            Action::Show { name } => print(out, &client.send(Method::GET, &path(&name), None).await?),
            Action::Update { name, settings, remove_default, remove_override } => {
                let mut body = client.send(Method::GET, &path(&name), None).await?;
                settings.change(&mut body)?;
                remove(&mut body["defaults"], &remove_default);
                remove(&mut body["overrides"], &remove_override);
                print(out, &client.send(Method::PUT, &path(&name), Some(&body)).await?)
            }
            Action::Delete { name } => {
                client.send(Method::DELETE, &path(&name), None).await?;
                Ok(writeln!(out, "{name} is deleted")?)
            }
        }
    }
}

impl Settings {
    /// The body that makes a warehouse. Where nothing is said of the store, the server's environment says it.
    fn new_warehouse(&self, name: &str, location: &str) -> Result<Value, Refused> {
        let mut body = json!({"name": name, "location": location});
        let kind = Location::parse(location)?.kind();
        self.change(&mut body)?;
        if let Some(storage) = body.get_mut("storage") {
            storage["type"] = kind.to_string().into();
        }
        Ok(body)
    }

    /// Sets what is given, and leaves the rest.
    fn change(&self, body: &mut Value) -> Result<(), Refused> {
        for (key, value) in self.of_storage()? {
            body["storage"][key] = value;
        }
        if !self.allowed_location.is_empty() {
            body["allowed-locations"] = self.allowed_location.clone().into();
        }
        for (key, value) in &self.default {
            body["defaults"][key] = value.as_str().into();
        }
        for (key, value) in &self.overrides {
            body["overrides"][key] = value.as_str().into();
        }
        Ok(())
    }

    fn of_storage(&self) -> Result<Map<String, Value>, Refused> {
        let named = [
            ("endpoint", self.endpoint.clone().map(Value::from)),
            ("region", self.region.clone().map(Value::from)),
            ("path-style", self.path_style.map(Value::from)),
            ("access-key-id", self.access_key_id.clone().map(Value::from)),
            ("secret-access-key", self.secret_access_key.as_ref().map(|secret| secret.reveal().into())),
        ];
        let named = named.into_iter().filter_map(|(key, value)| Some(Ok((key.to_owned(), value?))));
        named.chain(self.storage.iter().map(of_store)).collect()
    }
}

fn of_text(text: &str) -> Value {
    match text {
        "true" => true.into(),
        "false" => false.into(),
        text => text.into(),
    }
}

fn remove(settings: &mut Value, keys: &[String]) {
    if let Some(settings) = settings.as_object_mut() {
        settings.retain(|key, _| !keys.contains(key));
    }
}

fn path(name: &str) -> String {
    format!("{WAREHOUSES}/{}", utf8_percent_encode(name, NON_ALPHANUMERIC))
}

async fn is_there(client: &Client, name: &str) -> Result<bool, ClientError> {
    Ok(list(client).await?.iter().any(|warehouse| warehouse["name"] == name))
}

/// All of them, page by page. None leads to itself.
async fn list(client: &Client) -> Result<Vec<Value>, ClientError> {
    let (mut all, mut token) = (Vec::new(), String::new());
    loop {
        let page = client.send(Method::GET, &format!("{WAREHOUSES}?pageSize={PAGE}&pageToken={token}"), None).await?;
        let warehouses = page["warehouses"].as_array().ok_or_else(|| client.foreign(StatusCode::OK))?;
        all.extend_from_slice(warehouses);
        match page["next-page-token"].as_str() {
            Some(next) if next == token => return Err(client.foreign(StatusCode::OK)),
            Some(next) => token = next.to_owned(),
            None => return Ok(all),
        }
    }
}

fn print(out: &mut (dyn Write + Send), answer: &Value) -> Result<(), Error> {
    Ok(writeln!(out, "{answer:#}")?)
}

fn print_list(out: &mut (dyn Write + Send), warehouses: &[Value]) -> Result<(), Error> {
    let text = |warehouse: &Value, field: &str| warehouse[field].as_str().unwrap_or_default().to_owned();
    let rows: Vec<_> =
        warehouses.iter().map(|warehouse| (text(warehouse, "name"), text(warehouse, "location"))).collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    for (name, location) in rows {
        writeln!(out, "{name:width$}  {location}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        command: WarehouseCommand,
    }

    fn parse(line: &str) -> Action {
        Line::parse_from(line.split_whitespace()).command.action
    }

    fn body(line: &str) -> Value {
        let Action::Create { name, location, settings, .. } = parse(line) else { panic!("not create: {line}") };
        settings.new_warehouse(&name, &location).unwrap()
    }

    #[test]
    fn what_is_not_given_is_not_sent() {
        let sent = body("frazil create lake --location s3a://bucket/x");
        assert_eq!(sent, json!({"name": "lake", "location": "s3a://bucket/x"}));
    }

    #[test]
    fn every_flag_has_its_field() {
        let sent = body(
            "frazil create lake --location s3://bucket/x --endpoint http://127.0.0.1:9000 --region r --path-style \
             --access-key-id id --secret-access-key env:KEY --storage session-token=file:/t --allowed-location s3://a \
             --allowed-location s3://b --default a=b=c --override d=",
        );
        let storage = json!({"type": "s3", "endpoint": "http://127.0.0.1:9000", "region": "r", "path-style": true,
            "access-key-id": "id", "secret-access-key": "env:KEY", "session-token": "file:/t"});
        assert_eq!(
            sent,
            json!({"name": "lake", "location": "s3://bucket/x", "storage": storage,
                "allowed-locations": ["s3://a", "s3://b"], "defaults": {"a": "b=c"}, "overrides": {"d": ""}})
        );
    }

    #[test]
    fn a_setting_of_the_store_that_is_none_is_refused_and_not_shown() {
        let action = parse("frazil create lake --location s3://bucket/x --storage account-key:hush");
        let Action::Create { name, location, settings, .. } = action else { panic!("not create") };
        let error = settings.new_warehouse(&name, &location).unwrap_err();
        assert!(error.message().contains("KEY=VALUE") && !error.message().contains("hush"), "{error}");
        assert!(!format!("{settings:?}").contains("hush"));
    }

    #[test]
    fn the_type_of_store_is_that_of_the_location() {
        for (location, kind) in
            [("gs://bucket/x", "gcs"), ("abfss://c@a.dfs.core.windows.net/x", "adls"), ("s3n://b", "s3")]
        {
            let sent = body(&format!("frazil create lake --location {location} --storage anonymous=true"));
            assert_eq!(sent["storage"], json!({"type": kind, "anonymous": true}));
        }
    }

    #[test]
    fn an_update_changes_what_is_given() {
        let line = "frazil update lake --path-style=false --default a=c --remove-override x";
        let Action::Update { settings, remove_override, .. } = parse(line) else { panic!("not update") };
        let mut body = json!({"storage": {"type": "s3", "path-style": true, "region": "r"},
            "allowed-locations": ["s3://a"], "defaults": {"a": "b", "k": "v"}, "overrides": {"x": "y"}});
        settings.change(&mut body).unwrap();
        remove(&mut body["overrides"], &remove_override);
        assert_eq!(
            body,
            json!({"storage": {"type": "s3", "path-style": false, "region": "r"},
                "allowed-locations": ["s3://a"], "defaults": {"a": "c", "k": "v"}, "overrides": {}})
        );
    }
}
