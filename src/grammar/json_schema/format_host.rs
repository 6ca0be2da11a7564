//! Host names, addresses and mailboxes.

use super::explore::{Machine, explore};
use crate::grammar::regular::{Dfa, RegularError};
use crate::grammar::{CharSet, Fuel};

/// Characters of a label: of at most three labels, or of at most seven. Either way a name has at
/// most 253 characters, without counting them all.
const LABEL_MAX: u8 = 63;
const SHORT_LABEL_MAX: u8 = 35;
const LABELS_MAX: u8 = 3;
const SHORT_LABELS_MAX: u8 = 7;
/// Characters of a label with others than ASCII: 5 ASCII characters each and `xn--` fit a label.
const WIDE_LABEL_MAX: u8 = 11;

/// A host name so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Name {
    /// Labels begun, the present one included.
    labels: u8,
    /// Characters of the label.
    length: u8,
    /// Whether the last character is a hyphen.
    hyphen: bool,
    /// Whether no label is longer than a short one, and none has characters other than ASCII.
    short: bool,
    /// Whether the label has characters other than ASCII.
    wide: bool,
}

/// Host names, with `letters` other than ASCII.
struct NameMachine {
    letters: CharSet,
}

impl Machine for NameMachine {
    type State = Name;

    fn start(&self) -> Name {
        Name { labels: 1, length: 0, hyphen: false, short: true, wide: false }
    }

    fn accepts(&self, name: &Name) -> bool {
        name.length > 0 && !name.hyphen
    }

    fn follow(&self, name: &Name, to: &mut dyn FnMut(u32, u32, Name)) {
        let length = name.length + 1;
        let long = name.labels <= LABELS_MAX;
        let length_max = match (name.wide, long) {
            (true, _) => WIDE_LABEL_MAX,
            (false, true) => LABEL_MAX,
            (false, false) => SHORT_LABEL_MAX,
        };
        let short = name.short && length <= SHORT_LABEL_MAX;
        let letter = Name { length, hyphen: false, short, ..*name };
        // Labels with hyphens in third and fourth place mean something else.
        let hyphen = name.length > 0 && !(name.length == 3 && name.hyphen);
        if hyphen && length <= length_max {
            to('-'.into(), '-'.into(), Name { hyphen: true, ..letter });
        }
        let more = name.labels < if name.short { SHORT_LABELS_MAX } else { LABELS_MAX };
        if self.accepts(name) && more {
            let next = Name { labels: name.labels + 1, length: 0, wide: false, ..*name };
            to('.'.into(), '.'.into(), next);
        }
        if length <= length_max {
            for (low, high) in [('0', '9'), ('A', 'Z'), ('a', 'z')] {
                to(low.into(), high.into(), letter);
            }
        }
        if long && length <= WIDE_LABEL_MAX {
            for &(low, high) in self.letters.ranges() {
                to(low, high, Name { short: false, wide: true, ..letter });
            }
        }
    }
}

/// RFC 1123 names.
pub(super) fn hostname(fuel: &mut Fuel<'_>) -> Result<Dfa, RegularError> {
    explore(&NameMachine { letters: CharSet::default() }, fuel)?.minimize(fuel)
}

/// Names of RFC 5890, of letters without rules of their own.
pub(super) fn idn_hostname(fuel: &mut Fuel<'_>) -> Result<Dfa, RegularError> {
    explore(&NameMachine { letters: letters() }, fuel)?.minimize(fuel)
}

/// Letters that are valid in every place of a label and that no normalisation changes: of Latin,
/// Greek, Cyrillic, Hiragana, Katakana, Han, Hangul.
fn letters() -> CharSet {
    let latin = (0xE0..0x17F_u32).filter(|&code| {
        let lower = char::from_u32(code).is_some_and(char::is_lowercase);
        // Compatibility forms, and those that case folding treats in its own way.
        lower && !matches!(code, 0x131 | 0x133 | 0x138 | 0x140 | 0x149)
    });
    let scripts = [
        (0x3B1, 0x3C1),
        (0x3C3, 0x3C9),
        (0x430, 0x45F),
        (0x3042, 0x3096),
        (0x30A2, 0x30FA),
        (0x4E00, 0x9FA5),
        (0xAC00, 0xD7A3),
    ];
    CharSet::new(latin.map(|code| (code, code)).chain(scripts))
}

/// RFC 2673 `dotted-decimal`, octets without leading zeros.
pub(super) fn ipv4() -> String {
    let octet = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    format!(r"{octet}(\.{octet}){{3}}")
}

/// `IPv6address` of RFC 3986.
pub(super) fn ipv6() -> String {
    let group = "[0-9a-fA-F]{1,4}";
    let tail = format!("({group}:{group}|{})", ipv4());
    let mut forms = vec![format!("({group}:){{6}}{tail}")];
    for after in (0..=5).rev() {
        // So many groups follow `::` before the last 32 bits; as many as are left may precede.
        let before = match 5 - after {
            0 => String::new(),
            most => format!("(({group}:){{0,{}}}{group})?", most - 1),
        };
        forms.push(format!("{before}::({group}:){{{after}}}{tail}"));
    }
    forms.push(format!("(({group}:){{0,5}}{group})?::{group}"));
    forms.push(format!("(({group}:){{0,6}}{group})?::"));
    forms.join("|")
}

/// Bytes of the local part of a mailbox.
const LOCAL_MAX: u8 = 64;

/// The local part of a mailbox and the `@` so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Local {
    bytes: u8,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Start,
    Atom,
    Dot,
    Quoted,
    Escaped,
    Closed,
    End,
}

/// `Local-part` of RFC 5321 and an `@`; of RFC 6531 if `wide`.
struct LocalMachine {
    wide: bool,
}

/// `atext` of ASCII.
const ATOM: [(char, char); 9] = [
    ('!', '!'),
    ('#', '\''),
    ('*', '+'),
    ('-', '-'),
    ('/', '9'),
    ('=', '='),
    ('?', '?'),
    ('A', 'Z'),
    ('^', '~'),
];
/// `qtextSMTP`.
const QUOTED: [(char, char); 3] = [(' ', '!'), ('#', '['), (']', '~')];
/// Characters other than ASCII by their bytes in UTF-8, controls left out.
const WIDE: [(u32, u32, u8); 4] =
    [(0xA1, 0x7FF, 2), (0x800, 0xD7FF, 3), (0xE000, 0xFFFF, 3), (0x1_0000, 0x10_FFFF, 4)];

impl Machine for LocalMachine {
    type State = Local;

    fn start(&self) -> Local {
        Local { bytes: 0, place: Place::Start }
    }

    fn accepts(&self, local: &Local) -> bool {
        local.place == Place::End
    }

    fn follow(&self, local: &Local, to: &mut dyn FnMut(u32, u32, Local)) {
        let ranges = |ranges: &[(char, char)], place| -> Vec<(u32, u32, u8, Place)> {
            ranges.iter().map(|&(low, high)| (low.into(), high.into(), 1, place)).collect()
        };
        let mut arms = match local.place {
            Place::Start | Place::Atom | Place::Dot => ranges(&ATOM, Place::Atom),
            Place::Quoted => ranges(&QUOTED, Place::Quoted),
            Place::Escaped => ranges(&[('!', '~')], Place::Quoted),
            Place::Closed | Place::End => Vec::new(),
        };
        match local.place {
            Place::Start => arms.extend(ranges(&[('"', '"')], Place::Quoted)),
            Place::Atom => arms.extend(ranges(&[('.', '.')], Place::Dot)),
            Place::Quoted => {
                arms.extend(ranges(&[('"', '"')], Place::Closed));
                arms.extend(ranges(&[('\\', '\\')], Place::Escaped));
            }
            _ => {}
        }
        if self.wide && !matches!(local.place, Place::Escaped | Place::Closed | Place::End) {
            let place = if local.place == Place::Quoted { Place::Quoted } else { Place::Atom };
            arms.extend(WIDE.map(|(low, high, bytes)| (low, high, bytes, place)));
        }
        if matches!(local.place, Place::Atom | Place::Closed) {
            arms.push(('@'.into(), '@'.into(), 0, Place::End));
        }
        arms.sort_unstable_by_key(|arm| arm.0);
        for (low, high, bytes, place) in arms {
            let bytes = local.bytes + bytes;
            if place == Place::End {
                to(low, high, Local { bytes: 0, place });
            } else if bytes <= LOCAL_MAX {
                to(low, high, Local { bytes, place });
            }
        }
    }
}

/// `Mailbox` of RFC 5321 or, if `wide`, of RFC 6531, with the names of `domain`.
pub(super) fn email(wide: bool, domain: &Dfa, fuel: &mut Fuel<'_>) -> Result<Dfa, RegularError> {
    let literal = Dfa::whole_pattern(&format!(r"\[({}|IPv6:({}))\]", ipv4(), ipv6()), fuel)?;
    let domain = domain.union(&literal, fuel)?;
    explore(&LocalMachine { wide }, fuel)?.concat(&domain, fuel)?.minimize(fuel)
}
