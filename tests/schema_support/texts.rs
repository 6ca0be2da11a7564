//! JSON texts as a judge wants them.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::BTreeSet;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A value of which no object has a key twice; the order of keys is kept.
pub struct Strict(pub Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Strict;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Strict, E> {
        Ok(Strict(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Strict, E> {
        Ok(Strict(Value::from(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Strict, E> {
        Ok(Strict(Value::from(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Strict, E> {
        Ok(Strict(Value::from(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Strict, E> {
        Ok(Strict(Value::from(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Strict, E> {
        Ok(Strict(Value::from(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Strict, A::Error> {
        let mut values = Vec::new();
        while let Some(Strict(value)) = items.next_element()? {
            values.push(value);
        }
        Ok(Strict(Value::from(values)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Strict, A::Error> {
        let mut object = Map::new();
        while let Some((key, Strict(value))) = entries.next_entry::<String, Strict>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} comes twice")));
            }
            object.insert(key, value);
        }
        Ok(Strict(Value::Object(object)))
    }
}

/// The value with the keys of all objects sorted.
pub fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(entries) => {
            let keys: BTreeSet<&String> = entries.keys().collect();
            keys.into_iter().map(|key| (key.clone(), sorted(&entries[key]))).collect()
        }
        other => other.clone(),
    }
}

/// A JSON text with a space after each comma and colon, and no other whitespace.
pub fn spaced_text(text: &str) -> String {
    let (mut spaced, mut in_string, mut is_escaped) = (String::new(), false, false);
    for letter in text.chars() {
        if in_string {
            in_string = is_escaped || letter != '"';
            is_escaped = !is_escaped && letter == '\\';
            spaced.push(letter);
        } else if !letter.is_ascii_whitespace() {
            in_string = letter == '"';
            spaced.push(letter);
            spaced.extend(matches!(letter, ',' | ':').then_some(' '));
        }
    }
    spaced
}

/// The texts of a value with the keys of its objects in every order; `None`: more than `most`.
pub fn orders(value: &Value, most: usize) -> Option<Vec<String>> {
    match value {
        Value::Array(items) => {
            let items: Option<Vec<Vec<String>>> =
                items.iter().map(|item| orders(item, most)).collect();
            let lists = product(&items?, most)?;
            Some(lists.iter().map(|list| format!("[{}]", list.join(","))).collect())
        }
        Value::Object(entries) => {
            let mut members: Vec<Vec<String>> = Vec::new();
            for (key, value) in entries {
                let key = Value::from(key.as_str()).to_string();
                let values = orders(value, most)?;
                members.push(values.iter().map(|value| format!("{key}:{value}")).collect());
            }
            let mut texts = Vec::new();
            for list in product(&members, most)? {
                for order in permutations(&list) {
                    texts.push(format!("{{{}}}", order.join(",")));
                }
                if texts.len() > most {
                    return None;
                }
            }
            Some(texts)
        }
        other => Some(vec![other.to_string()]),
    }
}

/// One of each, in every way.
fn product(lists: &[Vec<String>], most: usize) -> Option<Vec<Vec<String>>> {
    let mut ways = vec![Vec::new()];
    for list in lists {
        ways = ways
            .iter()
            .flat_map(|way: &Vec<String>| {
                list.iter().map(move |item| [way.as_slice(), std::slice::from_ref(item)].concat())
            })
            .collect();
        if ways.len() > most {
            return None;
        }
    }
    Some(ways)
}

fn permutations(list: &[String]) -> Vec<Vec<String>> {
    if list.len() <= 1 || list.len() > 6 {
        return vec![list.to_vec()];
    }
    let mut all = Vec::new();
    for first in 0..list.len() {
        let mut rest = list.to_vec();
        let item = rest.remove(first);
        for mut order in permutations(&rest) {
            order.insert(0, item.clone());
            all.push(order);
        }
    }
    all
}

/// Whether numbers have one plain spelling, and strings are short: what was written at random may
/// have more digits than are written again.
pub fn is_plain(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            number.to_string().len() <= 12 && !number.to_string().contains('e')
        }
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(entries) => entries.values().all(is_plain),
        _ => true,
    }
}
