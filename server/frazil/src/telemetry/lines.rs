//! The lines of the log: each event with the fields of the request that it belongs to, flat, as JSON or as text.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Write as _};
use std::io::Write as _;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::config::LogFormat;

/// The text of an event.
const MESSAGE: &str = "message";

/// Where a record of the `log` crate names its target.
const LOG_TARGET: &str = "log.target";

/// Fields that are meant for others than the log.
const NOT_LOGGED: [&str; 2] = ["otel.", "log."];

/// Takes a whole line, its end included.
pub type Write = Box<dyn Fn(&str) + Send + Sync>;

/// Writes one line for each event.
pub struct Lines {
    pub format: LogFormat,
    pub write: Write,
}

/// The fields of a span or an event; of two with one name the later one stands.
#[derive(Debug, Clone, Default)]
struct Fields(BTreeMap<&'static str, Value>);

/// One event with all that is known of it.
struct Line {
    timestamp: String,
    level: &'static str,
    target: String,
    message: String,
    fields: Fields,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = ctx.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, ctx: Context<'_, S>) {
        if let Some(span) = ctx.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        let mut fields = Fields::default();
        // What is nearer to the event says it better.
        for span in ctx.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                fields.0.extend(of_span.0.clone());
            }
        }
        event.record(&mut fields);
        let line = Line::of(event.metadata(), fields);
        let text = match self.format {
            LogFormat::Json => serde_json::to_string(&line).unwrap_or_else(|error| error.to_string()),
            LogFormat::Text => line.to_string(),
        };
        (self.write)(&(text + "\n"));
    }
}

/// Nobody can be told of a log that cannot be written.
pub fn to_stderr(line: &str) {
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

impl Line {
    fn of(metadata: &Metadata<'_>, mut fields: Fields) -> Self {
        let mut taken = |name| fields.0.remove(name).map(|value| plain(&value));
        let (message, target) = (taken(MESSAGE).unwrap_or_default(), taken(LOG_TARGET));
        fields.0.retain(|name, _| !NOT_LOGGED.iter().any(|prefix| name.starts_with(prefix)));
        let target = target.unwrap_or_else(|| metadata.target().to_owned());
        Self { timestamp: timestamp(), level: metadata.level().as_str(), target, message, fields }
    }
}

fn timestamp() -> String {
    let mut text = String::new();
    // Writing to memory does not fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut text));
    text
}

impl Serialize for Line {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, text) in [("timestamp", &*self.timestamp), ("level", self.level), ("target", &self.target)] {
            map.serialize_entry(name, text)?;
        }
        map.serialize_entry(MESSAGE, &self.message)?;
        for (name, value) in &self.fields.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:>5} {}: ", self.timestamp, self.level, self.target)?;
        // A name that a client chose must not end the line.
        for c in self.message.chars() {
            if c.is_control() { write!(f, "{}", c.escape_default())? } else { f.write_char(c)? }
        }
        for (name, value) in &self.fields.0 {
            write!(f, " {name}={}", word(value))?;
        }
        Ok(())
    }
}

/// Text as it is, anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A value that ends at the next space.
fn word(value: &Value) -> String {
    let is_plain =
        |text: &&str| !text.is_empty() && text.chars().all(|c| !c.is_whitespace() && !c.is_control() && c != '"');
    value.as_str().filter(is_plain).map_or_else(|| value.to_string(), str::to_owned)
}

impl Fields {
    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name(), value.into());
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value);
    }

    /// With its causes.
    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let (mut chain, mut cause) = (value.to_string(), value.source());
        while let Some(error) = cause {
            chain.push_str(&format!(": {error}"));
            cause = error.source();
        }
        self.set(field, chain);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = String::new();
        let _ = write!(text, "{value:?}");
        self.set(field, text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(message: &str, fields: &[(&'static str, Value)]) -> Line {
        let (timestamp, level) = ("2026-01-02T03:04:05.000000Z".to_owned(), "INFO");
        let fields = Fields(fields.iter().cloned().collect());
        Line { timestamp, level, target: "frazil".to_owned(), message: message.to_owned(), fields }
    }

    #[test]
    fn a_line_of_json_is_flat() {
        let text =
            serde_json::to_string(&line("answered", &[("status", json!(200)), ("table", json!("a b"))])).unwrap();
        let expected = r#"{"timestamp":"2026-01-02T03:04:05.000000Z","level":"INFO","target":"frazil","message":"answered","status":200,"table":"a b"}"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn a_line_of_text_stays_one_line_whatever_is_in_it() {
        let text =
            line("one\ntwo", &[("a", json!("x")), ("b", json!("y\nz")), ("c", json!("")), ("d", json!(1))]).to_string();
        assert_eq!(text, r#"2026-01-02T03:04:05.000000Z  INFO frazil: one\ntwo a=x b="y\nz" c="" d=1"#);
    }
}
