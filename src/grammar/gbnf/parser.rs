//! The grammar of grammars, by recursive descent.

use rustc_hash::FxHashMap;

use super::cursor::Cursor;
use crate::TokenId;
use crate::grammar::error::GrammarError;
use crate::grammar::expr::{CharSet, ExprId, ExprPool, RuleId, TokenSet};

/// Groups within groups.
const NEST_MAX: u32 = 200;

/// What is known of a rule's name.
struct Name {
    rule: RuleId,
    defined_at: Option<usize>,
    /// Where it is used first.
    used_at: usize,
}

pub(super) struct Parser<'t> {
    cursor: Cursor<'t>,
    pool: &'t mut ExprPool,
    names: FxHashMap<&'t str, Name>,
    token_by_name: &'t dyn Fn(&str) -> Option<TokenId>,
    vocabulary_len: usize,
    nesting: u32,
}

impl<'t> Parser<'t> {
    pub(super) fn new(
        pool: &'t mut ExprPool,
        text: &'t str,
        token_by_name: &'t dyn Fn(&str) -> Option<TokenId>,
        vocabulary_len: usize,
    ) -> Self {
        Self {
            cursor: Cursor::new(text),
            pool,
            names: FxHashMap::default(),
            token_by_name,
            vocabulary_len,
            nesting: 0,
        }
    }

    pub(super) fn parse(mut self) -> Result<RuleId, GrammarError> {
        self.cursor.skip_space(true);
        while self.cursor.peek().is_some() {
            self.rule()?;
            self.cursor.skip_space(true);
        }
        let undefined = self.names.iter().filter(|(_, name)| name.defined_at.is_none());
        if let Some((text, name)) = undefined.min_by_key(|(_, name)| name.used_at) {
            let message = format!("rule `{text}` is used but not defined");
            return Err(self.cursor.error_at(name.used_at, message));
        }
        match self.names.get("root") {
            Some(root) => Ok(root.rule),
            None => Err(self.cursor.error("expected a rule named `root`, found none")),
        }
    }

    fn rule_name(&mut self) -> Option<&'t str> {
        let name = self.cursor.eat_while(is_name_character);
        (!name.is_empty()).then_some(name)
    }

    /// The rule with a name that stands at an offset.
    fn named(&mut self, name: &'t str, offset: usize) -> &mut Name {
        let pool = &mut *self.pool;
        self.names.entry(name).or_insert_with(|| Name {
            rule: pool.declare(name),
            defined_at: None,
            used_at: offset,
        })
    }

    fn rule(&mut self) -> Result<(), GrammarError> {
        let offset = self.cursor.offset();
        let Some(text) = self.rule_name() else {
            return Err(self.cursor.expected("a rule name"));
        };
        let name = self.named(text, offset);
        let (rule, before) = (name.rule, name.defined_at.replace(offset));
        if before.is_some() {
            let message = format!("rule `{text}` is defined a second time");
            return Err(self.cursor.error_at(offset, message));
        }
        self.cursor.skip_space(false);
        if !self.cursor.eat("::=") {
            return Err(self.cursor.expected("`::=`"));
        }
        self.cursor.skip_space(true);
        let body = self.alternatives(false)?;
        self.pool.define(rule, body);
        match self.cursor.peek() {
            None | Some('\n' | '\r') => Ok(()),
            Some(_) => Err(self.cursor.expected("an element, `|` or the end of the line")),
        }
    }

    /// `newlines`: inside a group, where a line end means nothing.
    fn alternatives(&mut self, newlines: bool) -> Result<ExprId, GrammarError> {
        let mut choices = vec![self.sequence(newlines)?];
        loop {
            // A line that begins with `|` goes on with the rule.
            let mut ahead = self.cursor;
            ahead.skip_space(true);
            if !ahead.eat("|") {
                return Ok(self.pool.alt(&choices));
            }
            ahead.skip_space(true);
            self.cursor = ahead;
            choices.push(self.sequence(newlines)?);
        }
    }

    fn sequence(&mut self, newlines: bool) -> Result<ExprId, GrammarError> {
        let mut parts = Vec::new();
        loop {
            self.cursor.skip_space(newlines);
            let Some(mut part) = self.element()? else { break };
            self.cursor.skip_space(newlines);
            while let Some((min, max)) = self.quantifier()? {
                part = self.pool.repeat(part, min, max);
                self.cursor.skip_space(newlines);
            }
            parts.push(part);
        }
        Ok(self.pool.seq(&parts))
    }

    /// One element; `None` if none begins here.
    fn element(&mut self) -> Result<Option<ExprId>, GrammarError> {
        let element = match self.cursor.peek() {
            Some('"') => self.literal()?,
            Some('[') => self.class()?,
            Some('(') => self.group()?,
            Some('<' | '!') => self.token()?,
            Some('.') => {
                self.cursor.next();
                self.pool.chars(CharSet::all())
            }
            Some(character) if is_name_character(character) => {
                let offset = self.cursor.offset();
                let Some(name) = self.rule_name() else { return Ok(None) };
                let rule = self.named(name, offset).rule;
                self.pool.call(rule)
            }
            _ => return Ok(None),
        };
        Ok(Some(element))
    }

    fn group(&mut self) -> Result<ExprId, GrammarError> {
        let open = self.cursor;
        self.cursor.next();
        if self.nesting >= NEST_MAX {
            return Err(open.error(format!("groups are nested more than {NEST_MAX} deep")));
        }
        self.nesting += 1;
        self.cursor.skip_space(true);
        let body = self.alternatives(true)?;
        self.nesting -= 1;
        self.cursor.skip_space(true);
        if self.cursor.eat(")") {
            return Ok(body);
        }
        match self.cursor.peek() {
            None => Err(open.error("unterminated group")),
            Some(_) => Err(self.cursor.expected("an element, `|` or `)`")),
        }
    }

    fn literal(&mut self) -> Result<ExprId, GrammarError> {
        let open = self.cursor;
        self.cursor.next();
        let mut text = String::new();
        loop {
            let at = self.cursor;
            match self.cursor.peek() {
                None => return Err(open.error("unterminated literal")),
                Some('"') => break,
                Some(_) => {}
            }
            let code = self.character()?;
            match char::from_u32(code) {
                Some(character) => text.push(character),
                None => return Err(at.error(format!("U+{code:04X} is no character"))),
            }
        }
        self.cursor.next();
        Ok(self.pool.literal(text.as_bytes()))
    }

    fn class(&mut self) -> Result<ExprId, GrammarError> {
        let open = self.cursor;
        self.cursor.next();
        let is_negated = self.cursor.eat("^");
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        while self.cursor.peek() != Some(']') {
            let at = self.cursor;
            if self.cursor.peek().is_none() {
                return Err(open.error("unterminated character class"));
            }
            let low = self.character()?;
            let is_range = self.cursor.rest().starts_with('-')
                && !self.cursor.rest().starts_with("-]")
                && self.cursor.eat("-");
            let high = match is_range {
                true if self.cursor.peek().is_none() => {
                    return Err(open.error("unterminated character class"));
                }
                true => self.character()?,
                false => low,
            };
            if high < low {
                return Err(at.error("the range in the character class runs backwards"));
            }
            ranges.push((low, high));
        }
        self.cursor.next();
        if ranges.is_empty() && !is_negated {
            return Err(open.error("the character class is empty"));
        }
        let set = CharSet::new(ranges);
        let set = if is_negated { set.complement() } else { set };
        Ok(self.pool.chars(set))
    }

    /// A character of a literal or class, escaped or not, by its code.
    fn character(&mut self) -> Result<u32, GrammarError> {
        let at = self.cursor;
        let character = self.cursor.next();
        if character != Some('\\') {
            return character.map(u32::from).ok_or_else(|| at.expected("a character"));
        }
        match self.cursor.next() {
            Some('x') => self.hex(at, 2),
            Some('u') => self.hex(at, 4),
            Some('U') => self.hex(at, 8),
            Some('t') => Ok(0x09),
            Some('n') => Ok(0x0A),
            Some('r') => Ok(0x0D),
            Some(itself @ ('\\' | '"' | '[' | ']')) => Ok(itself.into()),
            Some(other) => Err(at.error(format!(
                "unknown escape `\\{other}`; known are \\n \\r \\t \\\\ \\\" \\[ \\] \\x \\u \\U"
            ))),
            None => Err(at.error("unterminated escape")),
        }
    }

    fn hex(&mut self, escape: Cursor<'t>, digits: usize) -> Result<u32, GrammarError> {
        let mut code = 0;
        for _ in 0..digits {
            match self.cursor.peek().and_then(|digit| digit.to_digit(16)) {
                Some(digit) => code = code << 4 | digit,
                None => return Err(escape.error(format!("expected {digits} hexadecimal digits"))),
            }
            self.cursor.next();
        }
        if code > 0x10FFFF {
            return Err(escape.error(format!("U+{code:04X} is no character")));
        }
        Ok(code)
    }

    /// How often the element before is repeated, if a quantifier is here.
    fn quantifier(&mut self) -> Result<Option<(u32, Option<u32>)>, GrammarError> {
        if self.cursor.eat("*") {
            return Ok(Some((0, None)));
        }
        if self.cursor.eat("+") {
            return Ok(Some((1, None)));
        }
        if self.cursor.eat("?") {
            return Ok(Some((0, Some(1))));
        }
        let open = self.cursor;
        if !self.cursor.eat("{") {
            return Ok(None);
        }
        self.cursor.skip_space(false);
        let min = self.number()?;
        self.cursor.skip_space(false);
        let max = match self.cursor.eat(",") {
            false => Some(min),
            true => {
                self.cursor.skip_space(false);
                let is_number = self.cursor.peek().is_some_and(|c| c.is_ascii_digit());
                if is_number { Some(self.number()?) } else { None }
            }
        };
        self.cursor.skip_space(false);
        if !self.cursor.eat("}") {
            return Err(self.cursor.expected("`}`"));
        }
        if max.is_some_and(|max| max < min) {
            return Err(open.error("the repetition's greatest number is below its least"));
        }
        Ok(Some((min, max)))
    }

    fn number(&mut self) -> Result<u32, GrammarError> {
        /// Counts above stand for states of a count, and nobody means them.
        const COUNT_MAX: u32 = 1_000_000_000;
        let at = self.cursor;
        let digits = self.cursor.eat_while(|c| c.is_ascii_digit());
        if digits.is_empty() {
            return Err(at.expected("a number"));
        }
        match digits.parse() {
            Ok(number) if number <= COUNT_MAX => Ok(number),
            _ => Err(at.error(format!("a repetition goes up to {COUNT_MAX}"))),
        }
    }

    fn token(&mut self) -> Result<ExprId, GrammarError> {
        let open = self.cursor;
        let is_negated = self.cursor.eat("!");
        if self.cursor.peek() != Some('<') {
            return Err(self.cursor.expected("a token in `<` and `>`"));
        }
        let token = match self.cursor.rest().starts_with("<[") {
            true => self.token_id()?,
            false => self.token_name(open)?,
        };
        let set = match is_negated {
            true => TokenSet::any_text_but(&[token]),
            false => TokenSet::only(token),
        };
        Ok(self.pool.token(set))
    }

    fn token_id(&mut self) -> Result<TokenId, GrammarError> {
        self.cursor.eat("<[");
        let at = self.cursor;
        let token = self.number()?;
        if !self.cursor.eat("]>") {
            return Err(self.cursor.expected("`]>`"));
        }
        if token as usize >= self.vocabulary_len {
            let last = self.vocabulary_len.saturating_sub(1);
            return Err(at.error(format!("the vocabulary's last token is {last}")));
        }
        Ok(token)
    }

    fn token_name(&mut self, open: Cursor<'t>) -> Result<TokenId, GrammarError> {
        let start = self.cursor;
        self.cursor.eat_while(|c| c != '>' && c != '\n');
        if !self.cursor.eat(">") {
            return Err(open.error("unterminated token name"));
        }
        let name = &start.rest()[..self.cursor.offset() - start.offset()];
        (self.token_by_name)(name)
            .ok_or_else(|| start.error(format!("the vocabulary has no token `{name}`")))
    }
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '-' || character == '_'
}
