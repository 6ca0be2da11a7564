//! The normal form of a conjunction: what a value of each JSON type may look like.

use std::sync::Arc;

use super::atom::Types;
use super::conj::{Conj, NodeId};
use super::decimal::Decimal;
use super::format_name::Format;
use super::json::Json;

/// What a conjunction allows: the union of all the fields. A value is valid exactly if it is
/// `null` or a boolean whose flag is set, or equal to one of `values`, or in one of the sets or
/// shapes of its type. They may overlap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shapes {
    /// Whether `null` is allowed.
    pub null: bool,
    /// Whether `false` and `true` are allowed, in this order.
    pub booleans: [bool; 2],
    /// Numbers, strings, arrays and objects that are allowed one by one, from `enum` and `const`
    /// and already held against everything else; distinct, in the order of the schema.
    pub values: Vec<Json>,
    /// Numbers: in any of the sets.
    pub numbers: Vec<NumberSet>,
    /// Strings: in any of the sets.
    pub strings: Vec<StringSet>,
    /// Arrays: of any of the shapes.
    pub arrays: Vec<ArrayShape>,
    /// Objects: of any of the shapes.
    pub objects: Vec<ObjectShape>,
}

impl Shapes {
    /// All values of some types, none of which is array or object.
    pub(super) fn of_scalars(types: Types) -> Self {
        let numbers = types & Types::NUMBER;
        let set = NumberSet {
            integer: numbers == Types::INTEGER,
            not_integer: numbers == Types::FRACTION,
            ..NumberSet::default()
        };
        Self {
            null: types.meets(Types::NULL),
            booleans: [types.meets(Types::BOOLEAN); 2],
            numbers: if numbers.is_empty() { Vec::new() } else { vec![set] },
            strings: match types.meets(Types::STRING) {
                true => vec![StringSet::default()],
                false => Vec::new(),
            },
            ..Self::default()
        }
    }

    /// Whether nothing is allowed. Shapes that no value has, because they contain themselves
    /// without end or ask for a value that does not exist, are not recognised here.
    pub fn is_never(&self) -> bool {
        !self.null
            && self.booleans == [false; 2]
            && self.values.is_empty()
            && self.numbers.is_empty()
            && self.strings.is_empty()
            && self.arrays.is_empty()
            && self.objects.is_empty()
    }
}

/// One end of a range of numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    /// The number.
    pub value: Decimal,
    /// Whether the number itself is outside.
    pub exclusive: bool,
}

/// Numbers that satisfy all of this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NumberSet {
    /// Integers only, however written (`1.0` is one).
    pub integer: bool,
    /// No integers. Never set together with `integer`.
    pub not_integer: bool,
    /// Least.
    pub min: Option<Bound>,
    /// Greatest.
    pub max: Option<Bound>,
    /// Multiples of each of these, all positive.
    pub multiples_of: Vec<Decimal>,
    /// Multiples of none of these.
    pub not_multiples_of: Vec<Decimal>,
    /// None of these.
    pub excluded: Vec<Decimal>,
}

/// Strings that satisfy all of this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StringSet {
    /// ECMA-262 patterns: true: found somewhere in the string; false: found nowhere.
    pub patterns: Vec<(Arc<str>, bool)>,
    /// Formats: true: has the format; false: has not.
    pub formats: Vec<(Format, bool)>,
    /// Least number of characters (code points).
    pub min_chars: u32,
    /// Greatest number of characters (code points).
    pub max_chars: Option<u32>,
    /// None of these.
    pub excluded: Vec<Arc<str>>,
}

/// Arrays that satisfy all of this.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArrayShape {
    /// What the first items satisfy, one for each place.
    pub prefix: Vec<Conj>,
    /// What every item after the prefix satisfies. `None`: there are none.
    pub rest: Option<Conj>,
    /// Least number of items.
    pub min: u32,
    /// Greatest number of items.
    pub max: Option<u32>,
    /// How many items must satisfy something more.
    pub contains: Vec<Contains>,
    /// Whether all items must differ.
    pub unique: bool,
    /// The schema to name in errors.
    pub at: NodeId,
}

/// A number of items, anywhere in the array, that satisfy a conjunction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Contains {
    /// What they satisfy.
    pub item: Conj,
    /// Least number of such items.
    pub min: u32,
    /// Greatest number of such items.
    pub max: Option<u32>,
}

/// Objects that satisfy all of this.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectShape {
    /// Properties known by name: as declared, in the order of first appearance, then those that
    /// are only named by `required` and the like. Every other key is free.
    pub properties: Vec<Property>,
    /// What free keys and their values satisfy: all of the rules. Rules that demand nothing are
    /// left out.
    pub free: Vec<FreeRule>,
    /// What free keys, as strings, satisfy: all of these. Properties were held against it.
    pub names: Vec<Conj>,
    /// Least number of properties, known and free.
    pub min: u32,
    /// Greatest number of properties, known and free.
    pub max: Option<u32>,
    /// Which properties are there and which are not: any one of these. Never empty.
    pub presence: Vec<Presence>,
    /// The schema to name in errors.
    pub at: NodeId,
}

/// A property known by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Property {
    /// The key, decoded.
    pub name: Arc<str>,
    /// What its value satisfies.
    pub value: Conj,
    /// False: no value satisfies it, so the key is never there. It is listed because it is not
    /// free either.
    pub possible: bool,
}

/// What one schema object says about keys that are not known by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FreeRule {
    /// The value of a key in which the ECMA-262 pattern is found satisfies the conjunction; of
    /// several patterns, all that are found.
    pub patterns: Vec<(Arc<str>, Conj)>,
    /// What the value of a key satisfies in which none of the patterns is found.
    pub additional: Conj,
    /// False: there are no keys in which none of the patterns is found.
    pub additional_allowed: bool,
}

/// Properties that are there and others that are not; indices of
/// [`properties`](ObjectShape::properties), ascending. The rest is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Presence {
    /// These are there. All are possible.
    pub required: Vec<usize>,
    /// These are not. Impossible ones need not be named.
    pub forbidden: Vec<usize>,
}
