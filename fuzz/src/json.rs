//! Mutations of a stream of JSON values that leave it one.

use serde_json::{Deserializer, Value, json};

use crate::dice::Dice;

/// Where a value stands: the index of its document in the stream, and its JSON pointer there.
type Place = (usize, String);

/// Changes one value of the stream, or what it holds; `None` where the bytes are no stream of JSON values.
pub fn mutate(data: &[u8], dice: &mut Dice) -> Option<Vec<u8>> {
    let stream = Deserializer::from_slice(data).into_iter::<Value>();
    let mut values: Vec<Value> = stream.collect::<Result<_, _>>().ok()?;
    let places = places(&values);
    let (donor, place) = (dice.choose(&places)?.clone(), dice.choose(&places)?.clone());
    let donor = at(&mut values, &donor)?.clone();
    change(at(&mut values, &place)?, donor, dice);
    let lines: Vec<String> = values.iter().map(Value::to_string).collect();
    Some(lines.join("\n").into_bytes())
}

fn places(values: &[Value]) -> Vec<Place> {
    let mut places = Vec::new();
    for (document, value) in values.iter().enumerate() {
        add_places(document, String::new(), value, &mut places);
    }
    places
}

fn add_places(document: usize, pointer: String, value: &Value, places: &mut Vec<Place>) {
    let mut below = |key: &str, value: &Value| {
        let key = key.replace('~', "~0").replace('/', "~1");
        add_places(document, format!("{pointer}/{key}"), value, places);
    };
    match value {
        Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| below(&index.to_string(), item)),
        Value::Object(members) => members.iter().for_each(|(key, member)| below(key, member)),
        _ => {}
    }
    places.push((document, pointer));
}

fn at<'v>(values: &'v mut [Value], (document, pointer): &Place) -> Option<&'v mut Value> {
    values.get_mut(*document)?.pointer_mut(pointer)
}

fn change(value: &mut Value, donor: Value, dice: &mut Dice) {
    match (dice.below(4), &mut *value) {
        (0, Value::Array(items)) if !items.is_empty() => {
            let index = dice.below(items.len());
            items.remove(index);
        }
        (1, Value::Array(items)) => {
            let index = dice.below(items.len() + 1);
            items.insert(index, donor);
        }
        (0, Value::Object(members)) => {
            let keys: Vec<String> = members.keys().cloned().collect();
            dice.choose(&keys).map(|key| members.remove(key));
        }
        (1, Value::Object(members)) => {
            if let Value::Object(others) = donor {
                members.extend(others);
            }
        }
        (0 | 1, Value::Number(number)) => {
            let step = if dice.below(2) == 0 { 1 } else { -1 };
            *value = json!(number.as_i64().map(|number| number.saturating_add(step)));
        }
        (2, _) => *value = donor,
        _ => *value = edge(dice),
    }
}

/// Values at which readers stumble.
fn edge(dice: &mut Dice) -> Value {
    let edges = [
        json!(0),
        json!(1),
        json!(-1),
        json!(999),
        json!(1000),
        json!(i32::MAX),
        json!(i32::MIN),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(0.5),
        json!(""),
        json!("main"),
        json!("/"),
        json!("null"),
        json!(true),
        json!([]),
        json!({}),
        Value::Null,
    ];
    dice.choose(&edges).cloned().unwrap_or_default()
}
