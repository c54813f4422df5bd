//! Primitive types by name: what is known of them, what they may become, what may be computed from them.

use crate::metadata::json::{Checked, Flaw};

/// The types without arguments. Those of a place on earth may have some.
const PLAIN: [&str; 18] = [
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "timestamp_ns",
    "timestamptz_ns",
    "string",
    "uuid",
    "binary",
    "variant",
    "unknown",
    "geometry",
    "geography",
];

const DECIMAL_PRECISION_MAX: u32 = 38;

/// How a `geography` may draw the line between two points.
const EDGE_ALGORITHMS: [&str; 5] = ["spherical", "vincenty", "thomas", "andoyer", "karney"];

/// The name without the blanks among its arguments, which mean nothing.
pub(super) fn normal(name: &str) -> String {
    let arguments = name.find(['(', '[']).unwrap_or(name.len());
    let (base, arguments) = name.split_at(arguments);
    format!("{base}{}", arguments.replace(' ', ""))
}

/// Whether this is, to the letter, a primitive type of format version 1 to 3, which every client can read.
pub(super) fn is_of_the_format(name: &str) -> bool {
    let Some(open) = name.find(['(', '[']) else {
        return PLAIN.contains(&name);
    };
    let (base, arguments) = name.split_at(open);
    let inside = |open: char, close: char| arguments.strip_prefix(open)?.strip_suffix(close);
    match base {
        "decimal" => inside('(', ')').is_some_and(is_precision_and_scale),
        "fixed" => inside('[', ']').and_then(number).is_some_and(|bytes| i32::try_from(bytes).is_ok()),
        "geometry" => inside('(', ')').is_some_and(is_reference_system),
        "geography" => inside('(', ')').is_some_and(|arguments| match arguments.split_once(',') {
            None => is_reference_system(arguments),
            Some((system, edges)) => is_reference_system(system) && EDGE_ALGORITHMS.contains(&edges.trim()),
        }),
        _ => false,
    }
}

fn is_precision_and_scale(arguments: &str) -> bool {
    let numbers = arguments
        .split_once(',')
        .and_then(|(precision, scale)| Some((number(precision)?, number(scale.trim_start())?)));
    numbers.is_some_and(|(precision, scale)| (1..=DECIMAL_PRECISION_MAX).contains(&precision) && scale <= precision)
}

fn is_reference_system(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains(['(', ')', ','])
}

/// Digits alone: no sign, no blank.
fn number(text: &str) -> Option<u32> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

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
    match base(&transform.to_ascii_lowercase()) {
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

/// `bucket` and `truncate` need a positive width, as in `bucket[16]`; clients fail on whatever else begins like them.
pub(crate) fn check_width(transform: &str) -> Checked<()> {
    let lower = transform.to_ascii_lowercase();
    let Some(rest) = ["bucket", "truncate"].iter().find_map(|base| lower.strip_prefix(base)) else {
        return Ok(());
    };
    let width = rest.strip_prefix('[').and_then(|rest| number(rest.strip_suffix(']')?));
    match width.and_then(|width| i32::try_from(width).ok()) {
        Some(1..) => Ok(()),
        _ => Err(Flaw::new(format!("'{transform}' needs a positive number, as in bucket[16]")).under("transform")),
    }
}

pub(super) fn is_known(name: &str) -> bool {
    let base = base(name);
    PLAIN.contains(&base) || matches!(base, "decimal" | "fixed")
}

/// The name without its arguments: `fixed[16]` is `fixed`.
pub(super) fn base(name: &str) -> &str {
    name.split(['(', '[']).next().unwrap_or(name)
}

pub(super) fn argument(name: &str) -> Option<&str> {
    name.split_once(['(', '['])?.1.strip_suffix([')', ']'])
}

pub(super) fn decimal(name: &str) -> Option<(u32, u32)> {
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
        for (transform, type_) in
            [("day", "string"), ("hour", "date"), ("bucket[4]", "double"), ("identity", "variant")]
        {
            assert!(!accepts(transform, type_), "{transform} of {type_}");
        }
    }

    #[test]
    fn a_width_is_a_positive_number() {
        for transform in ["bucket[16]", "truncate[1]", "Bucket[2]", "day", "zorder", "identity"] {
            assert!(check_width(transform).is_ok(), "{transform}");
        }
        for transform in [
            "bucket",
            "truncate",
            "bucket[0]",
            "truncate[-3]",
            "bucket[]",
            "bucket[x]",
            "bucket[+1]",
            "bucket(4)",
            "bucket[4",
            "buckets",
            "BUCKET",
            "bucket[2147483648]",
        ] {
            assert!(check_width(transform).is_err(), "{transform}");
        }
    }

    #[test]
    fn the_types_of_the_format_are_known_to_the_letter() {
        for name in [
            "long",
            "timestamptz_ns",
            "variant",
            "unknown",
            "decimal(38,38)",
            "decimal(9, 2)",
            "decimal(1,0)",
            "fixed[16]",
            "geometry",
            "geometry(OGC:CRS84)",
            "geography(srid:4326)",
            "geography(OGC:CRS84, karney)",
        ] {
            assert!(is_of_the_format(name), "{name}");
        }
        for name in [
            "",
            "martian",
            "LONG",
            " long",
            "long(3)",
            "decimal",
            "decimal(0,0)",
            "decimal(39,2)",
            "decimal(50,60)",
            "decimal(5,6)",
            "decimal(-9,2)",
            "decimal(9)",
            "decimal( 9,2)",
            "decimal (9,2)",
            "decimal[9,2]",
            "fixed",
            "fixed[]",
            "fixed[-1]",
            "fixed[2147483648]",
            "fixed(3)",
            "geometry()",
            "geography(OGC:CRS84,flat)",
            "geometry(a)b",
        ] {
            assert!(!is_of_the_format(name), "{name}");
        }
    }

    #[test]
    fn blanks_mean_nothing_among_the_arguments_only() {
        assert_eq!(normal("decimal(9, 2)"), "decimal(9,2)");
        assert_eq!(normal(" long"), " long");
    }
}
