//! Default values of columns: JSON that clients can read as a value of the column's type.

use serde_json::Value;
use uuid::Uuid;

use super::types;

/// Whether the JSON is a value of the primitive type. A type that is not known here takes any.
pub(super) fn is_value(type_: &str, json: &str) -> bool {
    !types::is_known(type_) || normal(type_, json).is_some()
}

/// Whether two defaults are one value of the type, however each is written.
pub(super) fn are_same(type_: &str, a: &str, b: &str) -> bool {
    let parsed = |json: &str| serde_json::from_str::<Value>(json).ok();
    match (normal(type_, a), normal(type_, b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b || parsed(a).is_some_and(|a| Some(a) == parsed(b)),
    }
}

/// The one writing of a value; `None` where the JSON is no value of the type, or the type has no defaults but null.
fn normal(type_: &str, json: &str) -> Option<String> {
    match (types::base(type_), serde_json::from_str(json).ok()?) {
        ("boolean", Value::Bool(value)) => Some(value.to_string()),
        ("int", Value::Number(number)) => Some(i32::try_from(number.as_i64()?).ok()?.to_string()),
        ("long", Value::Number(number)) => Some(number.as_i64()?.to_string()),
        ("float" | "double", Value::Number(number)) => Some(number.as_f64()?.to_string()),
        (_, Value::String(text)) => normal_text(type_, &text),
        _ => None,
    }
}

fn normal_text(type_: &str, text: &str) -> Option<String> {
    match types::base(type_) {
        "string" => Some(text.to_owned()),
        "decimal" => decimal(text, types::decimal(type_)?.1),
        "uuid" => Uuid::parse_str(text).ok().filter(|_| text.len() == 36).map(|uuid| uuid.to_string()),
        "fixed" => {
            let bytes: usize = types::argument(type_)?.parse().ok()?;
            hexadecimal(text).filter(|digits| Some(digits.len()) == bytes.checked_mul(2))
        }
        "binary" => hexadecimal(text),
        "date" => date(text),
        "time" => time(text),
        "timestamp" | "timestamp_ns" => timestamp(text),
        "timestamptz" | "timestamptz_ns" => timestamp(without_utc(text)?),
        _ => None,
    }
}

/// A number with just as many digits behind the point as the type has, counted as `1.5e-3` has four.
fn decimal(text: &str, scale: u32) -> Option<String> {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let unsigned = number.strip_prefix(['-', '+']).unwrap_or(number);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = format!("{whole}{fraction}");
    let has_scale = i64::try_from(fraction.len()).ok()?.checked_sub(exponent)? == i64::from(scale);
    if !has_scale || digits.is_empty() || !is_digits(&digits) {
        return None;
    }
    let unscaled = digits.trim_start_matches('0');
    let sign = if number.starts_with('-') && !unscaled.is_empty() { "-" } else { "" };
    Some(format!("{sign}{unscaled}"))
}

/// Two digits for each byte.
fn hexadecimal(text: &str) -> Option<String> {
    let is_whole = text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_whole.then(|| text.to_ascii_uppercase())
}

/// `2024-02-29`; years of more than four digits have a sign.
fn date(text: &str) -> Option<String> {
    let (sign, rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (&text[..1], rest),
        None => ("", text),
    };
    let (year, rest) = rest.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let is_year = is_digits(year) && (year.len() == 4 || (5..=9).contains(&year.len()) && !sign.is_empty());
    let year: u32 = year.parse().ok().filter(|_| is_year)?;
    let days = match number_of_two(month)? {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (1..=days).contains(&number_of_two(day)?).then(|| text.to_owned())
}

/// `10:11`, `10:11:12` or `10:11:12.5`, down to nanoseconds.
fn time(text: &str) -> Option<String> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (text, None),
    };
    let parts: Vec<u32> = clock.split(':').map(number_of_two).collect::<Option<_>>()?;
    let (hour, minute, second) = match (parts.as_slice(), fraction) {
        ([hour, minute], None) => (*hour, *minute, 0),
        ([hour, minute, second], _) => (*hour, *minute, *second),
        _ => return None,
    };
    let fraction = fraction.unwrap_or("0");
    let is_time = hour < 24 && minute < 60 && second < 60 && is_digits(fraction) && (1..=9).contains(&fraction.len());
    is_time.then(|| format!("{hour:02}:{minute:02}:{second:02}.{fraction:0<9}"))
}

fn timestamp(text: &str) -> Option<String> {
    let (day, clock) = text.split_once(['T', 't'])?;
    Some(format!("{}T{}", date(day)?, time(clock)?))
}

/// The timestamp without its zone, which must be that of UTC.
fn without_utc(text: &str) -> Option<&str> {
    let zones = ["Z", "z", "+00:00", "-00:00", "+00:00:00"];
    zones.into_iter().find_map(|zone| text.strip_suffix(zone))
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn number_of_two(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| text.len() == 2 && is_digits(text))
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_its_kind_of_json() {
        for (type_, json) in [
            ("boolean", "true"),
            ("int", "-2147483648"),
            ("long", "9223372036854775807"),
            ("float", "1.5"),
            ("double", "1"),
            ("double", "-1.0E-10"),
            ("decimal(9,2)", r#""14.20""#),
            ("decimal(9,0)", r#""-14""#),
            ("decimal(38,10)", r#""1E-10""#),
            ("string", r#""""#),
            ("uuid", r#""F79C3E09-677C-4BBD-A479-3F349CB785E7""#),
            ("fixed[2]", r#""00fF""#),
            ("binary", r#""""#),
            ("date", r#""2024-02-29""#),
            ("date", r#""+12024-01-31""#),
            ("time", r#""22:31:08.123456""#),
            ("timestamp", r#""2017-11-16T22:31:08""#),
            ("timestamp_ns", r#""2017-11-16T22:31:08.123456789""#),
            ("timestamptz", r#""2017-11-16T22:31:08.000001+00:00""#),
            ("timestamptz_ns", r#""2017-11-16T22:31Z""#),
            ("martian", "[1]"),
        ] {
            assert!(is_value(type_, json), "{json} as {type_}");
        }
    }

    #[test]
    fn json_of_another_kind_is_no_value() {
        for (type_, json) in [
            ("boolean", r#""true""#),
            ("int", r#""x""#),
            ("int", "5.0"),
            ("int", "2147483648"),
            ("long", "9223372036854775808"),
            ("double", r#""NaN""#),
            ("decimal(9,2)", "14.20"),
            ("decimal(9,2)", r#""14.2""#),
            ("decimal(9,2)", r#""1 4.20""#),
            ("decimal(9,0)", r#""""#),
            ("string", "5"),
            ("uuid", r#""f79c3e09677c4bbda4793f349cb785e7""#),
            ("fixed[2]", r#""00""#),
            ("binary", r#""0""#),
            ("binary", r#""0x""#),
            ("date", "19782"),
            ("date", r#""2023-02-29""#),
            ("date", r#""12024-01-31""#),
            ("time", r#""24:00:00""#),
            ("time", r#""é1:00:00""#),
            ("timestamp", r#""2017-11-16 22:31:08""#),
            ("timestamp", r#""2017-11-16T22:31:08Z""#),
            ("timestamptz", r#""2017-11-16T22:31:08""#),
            ("timestamptz", r#""2017-11-16T22:31:08+02:00""#),
            ("variant", "1"),
            ("unknown", "1"),
            ("geometry", r#""POINT (1 1)""#),
        ] {
            assert!(!is_value(type_, json), "{json} as {type_}");
        }
    }

    #[test]
    fn a_value_is_the_same_however_it_is_written() {
        for (type_, a, b) in [
            ("double", "5", "5.0"),
            ("decimal(9,2)", r#""1.50""#, r#""+01.50""#),
            ("binary", r#""ff""#, r#""FF""#),
            ("time", r#""10:11""#, r#""10:11:00.000""#),
            ("timestamptz", r#""2017-11-16T22:31:08Z""#, r#""2017-11-16T22:31:08.0+00:00""#),
            ("struct", r#"{"1":1,"2":2}"#, r#"{"2":2, "1":1}"#),
        ] {
            assert!(are_same(type_, a, b), "{a} and {b} as {type_}");
        }
        assert!(!are_same("string", r#""a""#, r#""A""#));
        assert!(!are_same("double", "5", "5.1"));
    }
}
