//! The syntax of ECMA-262 patterns with the flag `u`, and what schemas in the wild get away with.
//!
//! Beyond the flag `u`, as the standard's Annex B: braces that are no quantifier, `]`, an escaped
//! character that needs no escape (except letters and digits, which could mean something), and `-`
//! next to a class escape stand for themselves; a look-ahead may have a quantifier.

use super::super::{CharSet, Fuel, LimitError};
use super::RegularError;

/// Groups within groups.
const NEST_MAX: u32 = 200;

/// A pattern that was read.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) root: Ast,
    /// What is looked at around a place; each after those within it.
    pub(super) looks: Vec<Look>,
}

/// A part of a pattern.
#[derive(Debug)]
pub(super) enum Ast {
    Empty,
    Char(char),
    Set(CharSet),
    Concat(Vec<Ast>),
    Alt(Vec<Ast>),
    Repeat {
        body: Box<Ast>,
        min: u32,
        /// `None`: any number.
        max: Option<u32>,
    },
    /// The start of the text.
    Start,
    /// The end of the text.
    End,
    /// A place with a word character on one side of it only, or any other place.
    Word {
        negated: bool,
    },
    /// An element of [`Pattern::looks`].
    Look(u32),
}

/// `(?=…)`, `(?!…)`, `(?<=…)` or `(?<!…)`.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) behind: bool,
    pub(super) negated: bool,
    pub(super) body: Ast,
}

/// What is not read yet.
pub(super) struct Parser<'p, 'f, 'a> {
    pub(super) rest: std::str::Chars<'p>,
    /// Characters of the whole pattern.
    length: usize,
    depth: u32,
    looks: Vec<Look>,
    pub(super) fuel: &'f mut Fuel<'a>,
}

impl Pattern {
    pub(super) fn parse(source: &str, fuel: &mut Fuel<'_>) -> Result<Self, RegularError> {
        let length = source.chars().count();
        let mut parser = Parser { rest: source.chars(), length, depth: 0, looks: Vec::new(), fuel };
        let root = parser.alternatives()?;
        match parser.peek() {
            None => Ok(Self { root, looks: parser.looks }),
            Some(_) => Err(parser.syntax("unmatched `)`")),
        }
    }
}

impl Parser<'_, '_, '_> {
    pub(super) fn syntax(&self, what: impl std::fmt::Display) -> RegularError {
        let place = self.length - self.rest.clone().count() + 1;
        RegularError::Syntax { message: format!("{what}, before character {place}") }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        self.rest.next()
    }

    /// Reads `text` if it comes next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        match self.rest.as_str().strip_prefix(text) {
            Some(rest) => self.rest = rest.chars(),
            None => return false,
        }
        true
    }

    /// Whether `text` comes next.
    pub(super) fn sees(&self, text: &str) -> bool {
        self.rest.as_str().starts_with(text)
    }

    fn alternatives(&mut self) -> Result<Ast, RegularError> {
        if self.depth >= NEST_MAX {
            return Err(LimitError::Depth { max: NEST_MAX }.into());
        }
        self.depth += 1;
        let first = self.sequence()?;
        let mut choices = vec![first];
        while self.eat("|") {
            choices.push(self.sequence()?);
        }
        self.depth -= 1;
        Ok(only(choices).unwrap_or_else(Ast::Alt))
    }

    fn sequence(&mut self) -> Result<Ast, RegularError> {
        let mut parts = Vec::new();
        while self.peek().is_some_and(|next| next != '|' && next != ')') {
            self.fuel.spend(1)?;
            let part = self.term()?;
            parts.push(part);
        }
        if parts.is_empty() {
            return Ok(Ast::Empty);
        }
        Ok(only(parts).unwrap_or_else(Ast::Concat))
    }

    fn term(&mut self) -> Result<Ast, RegularError> {
        let at_term = self.rest.clone();
        let atom = self.atom()?;
        let Some((min, max)) = self.quantifier()? else { return Ok(atom) };
        const NOT_REPEATABLE: [&str; 6] = ["^", "$", "\\b", "\\B", "(?<=", "(?<!"];
        if NOT_REPEATABLE.iter().any(|start| at_term.as_str().starts_with(start)) {
            return Err(self.syntax("nothing to repeat before the quantifier"));
        }
        Ok(match (min, max) {
            (1, Some(1)) => atom,
            (_, Some(0)) => Ast::Empty,
            _ => Ast::Repeat { body: Box::new(atom), min, max },
        })
    }

    fn atom(&mut self) -> Result<Ast, RegularError> {
        let before = self.rest.clone();
        match self.next() {
            None => Ok(Ast::Empty),
            Some('^') => Ok(Ast::Start),
            Some('$') => Ok(Ast::End),
            Some('(') => self.group(),
            Some('.') => Ok(Ast::Set(Self::not_line_ends())),
            Some('[') => Ok(Ast::Set(self.class()?)),
            Some('\\') => self.atom_escape(),
            Some('*' | '+' | '?') => Err(self.syntax("nothing to repeat before the quantifier")),
            Some('{') => {
                self.rest = before;
                if self.braces()?.is_some() {
                    return Err(self.syntax("nothing to repeat before the quantifier"));
                }
                self.next();
                Ok(Ast::Char('{'))
            }
            Some(other) => Ok(Ast::Char(other)),
        }
    }

    fn group(&mut self) -> Result<Ast, RegularError> {
        let look = if self.eat("?=") {
            Some((false, false))
        } else if self.eat("?!") {
            Some((false, true))
        } else if self.eat("?<=") {
            Some((true, false))
        } else if self.eat("?<!") {
            Some((true, true))
        } else {
            self.group_start()?;
            None
        };
        let body = self.alternatives()?;
        if !self.eat(")") {
            return Err(self.syntax("a group is not closed: `)` expected"));
        }
        let Some((behind, negated)) = look else { return Ok(body) };
        self.looks.push(Look { behind, negated, body });
        Ok(Ast::Look(self.looks.len() as u32 - 1))
    }

    /// Reads what makes a group more than a bracket, without changing what it matches.
    fn group_start(&mut self) -> Result<(), RegularError> {
        if self.eat("?:") || !self.sees("?") {
            return Ok(());
        }
        if !self.eat("?<") {
            let is_flags = self.rest.as_str()[1..].starts_with(['i', 'm', 's', 'x', '-', 'u']);
            return Err(match is_flags {
                true => RegularError::Unsupported { feature: "flags within the pattern" },
                false => self.syntax("this kind of group is not known to ECMA-262"),
            });
        }
        let mut length = 0;
        loop {
            match self.next() {
                Some('>') if length > 0 => return Ok(()),
                Some(c) if c == '_' || c == '$' || c.is_alphabetic() => length += 1,
                Some(c) if length > 0 && c.is_alphanumeric() => length += 1,
                _ => return Err(self.syntax("a group's name does not end or is no identifier")),
            }
        }
    }

    fn quantifier(&mut self) -> Result<Option<(u32, Option<u32>)>, RegularError> {
        let counts = if self.eat("*") {
            Some((0, None))
        } else if self.eat("+") {
            Some((1, None))
        } else if self.eat("?") {
            Some((0, Some(1)))
        } else if self.sees("{") {
            self.braces()?
        } else {
            None
        };
        // Lazy or not is a matter of which match is found first.
        if counts.is_some() {
            self.eat("?");
        }
        Ok(counts)
    }

    /// Reads `{m}`, `{m,}` or `{m,n}`; nothing if it is none of these.
    fn braces(&mut self) -> Result<Option<(u32, Option<u32>)>, RegularError> {
        let before = self.rest.clone();
        self.eat("{");
        let min = self.number();
        let max = if self.eat(",") { self.number().map(Some).or(Some(None)) } else { Some(min) };
        let (Some(min), Some(max), true) = (min, max, self.eat("}")) else {
            self.rest = before;
            return Ok(None);
        };
        if max.is_some_and(|max| max < min) {
            return Err(self.syntax("the quantifier has its numbers in the wrong order"));
        }
        Ok(Some((min, max)))
    }

    /// A decimal number, or the largest there is if it is larger.
    fn number(&mut self) -> Option<u32> {
        let mut value = None;
        while let Some(digit) = self.peek().and_then(|next| next.to_digit(10)) {
            self.next();
            value = Some(value.unwrap_or(0_u32).saturating_mul(10).saturating_add(digit));
        }
        value
    }
}

/// The element of a list of one, or the list.
fn only(mut parts: Vec<Ast>) -> Result<Ast, Vec<Ast>> {
    match parts.pop() {
        Some(part) if parts.is_empty() => Ok(part),
        Some(part) => {
            parts.push(part);
            Err(parts)
        }
        None => Err(parts),
    }
}
