//! One JSON object, as JSON defines it, with bounded whitespace.

use super::expr::{CharSet, ExprId, ExprPool, RuleId};

/// Whitespace characters in one place, at most: a constrained model otherwise pads for ever.
const GAP_CHARACTERS_MAX: u32 = 20;

/// Adds the rules to a pool: the one that is the object.
pub(crate) fn rules(pool: &mut ExprPool) -> RuleId {
    let object = pool.declare("object");
    let array = pool.declare("array");
    let value = pool.declare("value");
    let string = pool.declare("string");
    let string_body = string_rule(pool);
    pool.define(string, string_body);

    let strings = pool.call(string);
    let objects = pool.call(object);
    let arrays = pool.call(array);
    let number = number(pool);
    let words = pool.literals(&["true", "false", "null"]);
    let any_value = pool.alt(&[objects, arrays, strings, number, words]);
    pool.define(value, any_value);

    let gap = gap(pool);
    let values = pool.call(value);
    let colon = pool.literal(b":");
    let member = pool.seq(&[strings, gap, colon, gap, values, gap]);
    let object_body = bracketed(pool, b"{", member, b"}", gap);
    pool.define(object, object_body);
    let element = pool.seq(&[values, gap]);
    let array_body = bracketed(pool, b"[", element, b"]", gap);
    pool.define(array, array_body);
    object
}

fn gap(pool: &mut ExprPool) -> ExprId {
    let white = pool.chars(CharSet::new([(0x20, 0x20), (0x9, 0xA), (0xD, 0xD)]));
    pool.repeat(white, 0, Some(GAP_CHARACTERS_MAX))
}

/// `open`, any number of comma-separated `item`s (which end with a gap), `close`.
fn bracketed(pool: &mut ExprPool, open: &[u8], item: ExprId, close: &[u8], gap: ExprId) -> ExprId {
    let (open, close, comma) = (pool.literal(open), pool.literal(close), pool.literal(b","));
    let another = pool.seq(&[comma, gap, item]);
    let others = pool.repeat(another, 0, None);
    let items = pool.seq(&[item, others]);
    let items = pool.optional(items);
    pool.seq(&[open, gap, items, close])
}

/// A string: any character but quotes, backslashes and controls; or an escape.
fn string_rule(pool: &mut ExprPool) -> ExprId {
    let quote = pool.literal(b"\"");
    let refused = CharSet::new([(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)]);
    let plain = pool.chars(refused.complement());
    let short = pool.chars(CharSet::new(b"\"\\/bfnrt".map(|c| (u32::from(c), u32::from(c)))));
    let hex = pool.chars(CharSet::new([(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)]));
    let four = pool.repeat(hex, 4, Some(4));
    let u = pool.literal(b"u");
    let long = pool.seq(&[u, four]);
    let escape = pool.alt(&[short, long]);
    let backslash = pool.literal(b"\\");
    let escape = pool.seq(&[backslash, escape]);
    let character = pool.alt(&[plain, escape]);
    let characters = pool.repeat(character, 0, None);
    pool.seq(&[quote, characters, quote])
}

fn number(pool: &mut ExprPool) -> ExprId {
    let digit = pool.chars(CharSet::new([(0x30, 0x39)]));
    let first = pool.chars(CharSet::new([(0x31, 0x39)]));
    let digits = pool.repeat(digit, 0, None);
    let some_digits = pool.repeat(digit, 1, None);
    let (minus, zero, point) = (pool.literal(b"-"), pool.literal(b"0"), pool.literal(b"."));
    let sign = pool.optional(minus);
    let long = pool.seq(&[first, digits]);
    let whole = pool.alt(&[zero, long]);
    let fraction = pool.seq(&[point, some_digits]);
    let fraction = pool.optional(fraction);
    let e = pool.chars(CharSet::new([(0x45, 0x45), (0x65, 0x65)]));
    let exponent_sign = pool.chars(CharSet::new([(0x2B, 0x2B), (0x2D, 0x2D)]));
    let exponent_sign = pool.optional(exponent_sign);
    let exponent = pool.seq(&[e, exponent_sign, some_digits]);
    let exponent = pool.optional(exponent);
    pool.seq(&[sign, whole, fraction, exponent])
}
