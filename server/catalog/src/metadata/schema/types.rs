//! Primitive types by name: what is known of them, what they may become, what may be computed from them.

use crate::metadata::json::{Checked, Flaw};

/// The first format version that has the type, where that is not the first of all.
pub(super) fn first_format_version(name: &str) -> Option<u8> {
    match base(name) {
        "timestamp_ns" | "timestamptz_ns" | "variant" | "unknown" | "geometry" | "geography" => Some(3),
        _ => None,
    }
}

/// Whether a column of type `from` may become one of type `to`. Names that are not known here are not judged.
pub(super) fn can_promote(from: &str, to: &str, format_version: u8) -> bool {
    if from == to || !is_known(from) || !is_known(to) {
        return true;
    }
    match (from, to) {
        ("int", "long") | ("float", "double") => true,
        ("date", "timestamp" | "timestamp_ns") => format_version >= 3,
        ("unknown", _) => true,
        _ => match (decimal(from), decimal(to)) {
            (Some((from_precision, from_scale)), Some((to_precision, to_scale))) => {
                from_scale == to_scale && from_precision <= to_precision
            }
            _ => false,
        },
    }
}

/// Whether a transform can be computed from a primitive type. What is not known here is not judged.
pub(crate) fn accepts(transform: &str, type_: &str) -> bool {
    if !is_known(type_) || type_ == "unknown" {
        return true;
    }
    let is_timestamp = matches!(type_, "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns");
    let is_decimal = base(type_) == "decimal";
    match base(transform) {
        "identity" => !matches!(base(type_), "variant" | "geometry" | "geography"),
        "year" | "month" | "day" => is_timestamp || type_ == "date",
        "hour" => is_timestamp,
        "truncate" => is_decimal || matches!(type_, "int" | "long" | "string" | "binary"),
        "bucket" => {
            let bits = matches!(base(type_), "string" | "uuid" | "fixed" | "binary");
            is_timestamp || is_decimal || bits || matches!(type_, "int" | "long" | "date" | "time")
        }
        _ => true,
    }
}

/// The number in `bucket[n]` and `truncate[n]` must be positive.
pub(crate) fn check_width(transform: &str) -> Checked<()> {
    match (base(transform), argument(transform).and_then(|n| n.parse::<i64>().ok())) {
        ("bucket" | "truncate", Some(width)) if width <= 0 || width > i64::from(i32::MAX) => {
            Err(Flaw::new(format!("'{transform}' needs a positive number")).under("transform"))
        }
        _ => Ok(()),
    }
}

fn is_known(name: &str) -> bool {
    matches!(
        base(name),
        "boolean"
            | "int"
            | "long"
            | "float"
            | "double"
            | "decimal"
            | "date"
            | "time"
            | "timestamp"
            | "timestamptz"
            | "timestamp_ns"
            | "timestamptz_ns"
            | "string"
            | "uuid"
            | "fixed"
            | "binary"
            | "variant"
            | "unknown"
            | "geometry"
            | "geography"
    )
}

/// The name without its arguments: `fixed[16]` is `fixed`.
fn base(name: &str) -> &str {
    name.split(['(', '[']).next().unwrap_or(name)
}

fn argument(name: &str) -> Option<&str> {
    name.split_once(['(', '['])?.1.strip_suffix([')', ']'])
}

fn decimal(name: &str) -> Option<(u32, u32)> {
    let (precision, scale) = argument(name).filter(|_| base(name) == "decimal")?.split_once(',')?;
    Some((precision.trim().parse().ok()?, scale.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_grow_and_never_shrink() {
        for (from, to) in [
            ("int", "long"),
            ("float", "double"),
            ("decimal(9,2)", "decimal(10,2)"),
            ("string", "string"),
            ("martian", "int"),
            ("int", "martian"),
        ] {
            assert!(can_promote(from, to, 2), "{from} to {to}");
        }
        for (from, to) in [
            ("long", "int"),
            ("long", "string"),
            ("double", "float"),
            ("decimal(9,2)", "decimal(9,3)"),
            ("decimal(9,2)", "decimal(8,2)"),
            ("date", "timestamp"),
            ("fixed[4]", "fixed[8]"),
        ] {
            assert!(!can_promote(from, to, 2), "{from} to {to}");
        }
        assert!(can_promote("date", "timestamp", 3));
    }

    #[test]
    fn a_transform_takes_only_what_it_can_compute_from() {
        for (transform, type_) in [
            ("day", "timestamptz_ns"),
            ("bucket[4]", "decimal(9,2)"),
            ("truncate[2]", "string"),
            ("zorder", "long"),
            ("day", "martian"),
        ] {
            assert!(accepts(transform, type_), "{transform} of {type_}");
        }
        for (transform, type_) in [
            ("day", "string"),
            ("hour", "date"),
            ("bucket[4]", "double"),
            ("identity", "variant"),
        ] {
            assert!(!accepts(transform, type_), "{transform} of {type_}");
        }
    }

    #[test]
    fn a_width_is_positive() {
        assert!(check_width("bucket[16]").is_ok());
        assert!(check_width("bucket[0]").is_err());
        assert!(check_width("truncate[-3]").is_err());
    }
}
