//! Escapes and character classes of ECMA-262 patterns.

use regex_syntax::hir::{Class, HirKind};

use super::super::CharSet;
use super::RegularError;
use super::ecma::{Ast, Parser};

const DIGITS: [(u32, u32); 1] = [(0x30, 0x39)];
/// The standard's `\w`.
pub(super) const WORD: [(u32, u32); 4] = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];
/// The standard's WhiteSpace and LineTerminator.
const SPACES: [(u32, u32); 10] = [
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
];
/// The standard's LineTerminator, which `.` leaves out.
const LINE_ENDS: [(u32, u32); 3] = [(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)];

/// Steps that a look-up of a Unicode property is taken to cost.
const PROPERTY_STEPS: u32 = 1_000;

/// What an escape or one element of a class stands for.
enum Item {
    /// A code point, perhaps half of a surrogate pair, which no text has.
    Code(u32),
    Set(CharSet),
}

impl Parser<'_, '_, '_> {
    pub(super) fn not_line_ends() -> CharSet {
        CharSet::new(LINE_ENDS).complement()
    }

    /// What stands after a backslash outside a class.
    pub(super) fn atom_escape(&mut self) -> Result<Ast, RegularError> {
        match self.peek() {
            Some('b') => {
                self.next();
                return Ok(Ast::Word { negated: false });
            }
            Some('B') => {
                self.next();
                return Ok(Ast::Word { negated: true });
            }
            Some('1'..='9' | 'k') => {
                return Err(RegularError::Unsupported { feature: "a back-reference" });
            }
            _ => {}
        }
        Ok(match self.escape()? {
            Item::Set(set) => Ast::Set(set),
            Item::Code(code) => match char::from_u32(code) {
                Some(character) => Ast::Char(character),
                None => Ast::Set(CharSet::default()),
            },
        })
    }

    /// What stands after a backslash, the same within a class as outside.
    fn escape(&mut self) -> Result<Item, RegularError> {
        let code = match self.next() {
            None => return Err(self.syntax("nothing after the backslash")),
            Some('d') => return Ok(Item::Set(CharSet::new(DIGITS))),
            Some('D') => return Ok(Item::Set(CharSet::new(DIGITS).complement())),
            Some('w') => return Ok(Item::Set(CharSet::new(WORD))),
            Some('W') => return Ok(Item::Set(CharSet::new(WORD).complement())),
            Some('s') => return Ok(Item::Set(CharSet::new(SPACES))),
            Some('S') => return Ok(Item::Set(CharSet::new(SPACES).complement())),
            Some('p') => return Ok(Item::Set(self.property()?)),
            Some('P') => return Ok(Item::Set(self.property()?.complement())),
            Some('t') => 0x09,
            Some('n') => 0x0A,
            Some('v') => 0x0B,
            Some('f') => 0x0C,
            Some('r') => 0x0D,
            Some('0') if !self.peek().is_some_and(|next| next.is_ascii_digit()) => 0,
            Some('c') => match self.next() {
                Some(letter) if letter.is_ascii_alphabetic() => u32::from(letter) & 0x1F,
                _ => return Err(self.syntax("no letter after `\\c`")),
            },
            Some('x') => self.hex(2)?,
            Some('u') => self.unicode_escape()?,
            Some('A' | 'Z' | 'z' | 'G') => {
                let feature = "`\\A`, `\\Z`, `\\z` or `\\G`, which ECMA-262 writes as `^` or `$`";
                return Err(RegularError::Unsupported { feature });
            }
            Some(other) if other.is_ascii_alphanumeric() => {
                return Err(self.syntax(format_args!("`\\{other}` is not known")));
            }
            Some(other) => u32::from(other),
        };
        Ok(Item::Code(code))
    }

    fn hex(&mut self, digits: u32) -> Result<u32, RegularError> {
        let mut value = 0;
        for _ in 0..digits {
            match self.peek().and_then(|next| next.to_digit(16)) {
                Some(digit) => value = value * 16 + digit,
                None => return Err(self.syntax("hexadecimal digit expected")),
            }
            self.next();
        }
        Ok(value)
    }

    /// What stands after `\u`. Two escapes that make a surrogate pair are one code point.
    fn unicode_escape(&mut self) -> Result<u32, RegularError> {
        if self.eat("{") {
            let mut value = self.hex(1)?;
            while !self.eat("}") {
                value = value * 16 + self.hex(1)?;
                if value > 0x10FFFF {
                    return Err(self.syntax("no such code point"));
                }
            }
            return Ok(value);
        }
        let first = self.hex(4)?;
        if (0xD800..0xDC00).contains(&first) && self.sees("\\u") && !self.sees("\\u{") {
            let before = self.rest.clone();
            self.eat("\\u");
            let second = self.hex(4)?;
            if (0xDC00..0xE000).contains(&second) {
                return Ok(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00));
            }
            self.rest = before;
        }
        Ok(first)
    }

    /// What stands after `\p`: a property in braces, as Unicode knows it.
    fn property(&mut self) -> Result<CharSet, RegularError> {
        self.fuel.spend(PROPERTY_STEPS)?;
        if !self.eat("{") {
            return Err(self.syntax("`{` and the name of a property expected"));
        }
        let mut name = String::new();
        while !self.eat("}") {
            match self.next() {
                Some(next) if next.is_ascii_alphanumeric() || "_=".contains(next) => {
                    name.push(next);
                }
                _ => return Err(self.syntax("the name of a property does not end")),
            }
        }
        let hir = regex_syntax::parse(&format!("\\p{{{name}}}"))
            .map_err(|_| self.syntax(format_args!("no property `{name}`")))?;
        match hir.kind() {
            HirKind::Class(Class::Unicode(class)) => {
                let ranges = class.ranges().iter();
                Ok(CharSet::new(ranges.map(|range| (range.start().into(), range.end().into()))))
            }
            _ => Err(RegularError::Unsupported { feature: "a property of a single character" }),
        }
    }

    /// What stands after `[`.
    pub(super) fn class(&mut self) -> Result<CharSet, RegularError> {
        let negated = self.eat("^");
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        while !self.eat("]") {
            self.fuel.spend(1)?;
            let first = self.class_item()?;
            if !self.sees("-") || self.sees("-]") {
                first.add_to(&mut ranges);
                continue;
            }
            self.eat("-");
            match (first, self.class_item()?) {
                (Item::Code(low), Item::Code(high)) if low <= high => ranges.push((low, high)),
                (Item::Code(_), Item::Code(_)) => {
                    return Err(self.syntax("a range that runs backwards"));
                }
                (first, last) => {
                    first.add_to(&mut ranges);
                    last.add_to(&mut ranges);
                    ranges.push((u32::from('-'), u32::from('-')));
                }
            }
        }
        let set = CharSet::new(ranges);
        Ok(if negated { set.complement() } else { set })
    }

    fn class_item(&mut self) -> Result<Item, RegularError> {
        match self.next() {
            None => Err(self.syntax("a class is not closed: `]` expected")),
            Some('\\') if self.eat("b") => Ok(Item::Code(0x08)),
            Some('\\') => self.escape(),
            Some(other) => Ok(Item::Code(u32::from(other))),
        }
    }
}

impl Item {
    fn add_to(self, ranges: &mut Vec<(u32, u32)>) {
        match self {
            Self::Code(code) => ranges.push((code, code)),
            Self::Set(set) => ranges.extend_from_slice(set.ranges()),
        }
    }
}
