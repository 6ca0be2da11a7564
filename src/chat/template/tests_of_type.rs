//! Jinja's `is …` tests whose answer differs between Python's types and the engine's.

use minijinja::value::ValueKind;
use minijinja::{Environment, Value};

pub(super) fn add_to(env: &mut Environment) {
    env.add_test("sequence", is_sequence);
    env.add_test("iterable", is_iterable);
    env.add_test("number", is_number);
    env.add_test("callable", is_callable);
}

/// Python asks for a length and `[]`: strings, dicts and undefined values have both.
fn is_sequence(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Seq | ValueKind::Map | ValueKind::String | ValueKind::Undefined => true,
        // Slices and sums of lists are lists in Python; a lazy filter's result has no length.
        ValueKind::Iterable => value.len().is_some(),
        _ => false,
    }
}

fn is_iterable(value: &Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::Seq
            | ValueKind::Map
            | ValueKind::String
            | ValueKind::Iterable
            | ValueKind::Undefined
            | ValueKind::Bytes
    )
}

/// A boolean is a number in Python.
fn is_number(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Number | ValueKind::Bool)
}

/// Functions and macros; undefined values answer a call with an error and still count.
fn is_callable(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Plain | ValueKind::Undefined)
}
