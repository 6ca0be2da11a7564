//! The engine against an oracle that shares nothing with it: derivatives of a plain syntax tree,
//! byte by byte, with no tree of tokens, no states and no caches.

use std::collections::BTreeMap;
use std::rc::Rc;

use pleach::TokenId;
use pleach::grammar::{
    CompiledGrammar, Fuel, GrammarError, GrammarSource, GrammarVocabulary, Limits, MatchError,
};
use pleach::vocab::{Token, TokenKind, Vocabulary};
use proptest::prelude::*;

/// A language, as the tests know it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Never,
    Empty,
    Text(String),
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
    Seq(Vec<Rc<Node>>),
    Alt(Vec<Rc<Node>>),
    Repeat(Rc<Node>, u32, Option<u32>),
    Rule(usize),
    Token {
        negated: bool,
        id: TokenId,
    },
    /// What is left of a character class after some bytes of a character.
    Rest {
        class: Rc<Node>,
        begun: Vec<u8>,
    },
    /// What is left of a text.
    Bytes(Vec<u8>),
}

struct Oracle {
    rules: Vec<Rc<Node>>,
    nullable: Vec<bool>,
    productive: Vec<bool>,
}

impl Oracle {
    fn new(rules: Vec<Rc<Node>>) -> Self {
        let count = rules.len();
        let mut oracle =
            Self { rules, nullable: vec![false; count], productive: vec![false; count] };
        for _ in 0..=count {
            for rule in 0..count {
                oracle.nullable[rule] = oracle.is_nullable(&oracle.rules[rule]);
                oracle.productive[rule] = oracle.is_productive(&oracle.rules[rule]);
            }
        }
        oracle
    }

    fn is_nullable(&self, node: &Node) -> bool {
        match node {
            Node::Empty => true,
            Node::Text(text) => text.is_empty(),
            Node::Bytes(bytes) => bytes.is_empty(),
            Node::Seq(parts) => parts.iter().all(|part| self.is_nullable(part)),
            Node::Alt(choices) => choices.iter().any(|choice| self.is_nullable(choice)),
            Node::Repeat(body, min, _) => *min == 0 || self.is_nullable(body),
            Node::Rule(rule) => self.nullable[*rule],
            Node::Never | Node::Class { .. } | Node::Token { .. } | Node::Rest { .. } => false,
        }
    }

    fn is_productive(&self, node: &Node) -> bool {
        match node {
            Node::Never => false,
            Node::Empty | Node::Text(_) | Node::Bytes(_) | Node::Token { .. } => true,
            Node::Class { .. } => in_class(node, 'a', '\u{10FFFF}'),
            Node::Rest { class, begun } => completions(class, begun),
            Node::Seq(parts) => parts.iter().all(|part| self.is_productive(part)),
            Node::Alt(choices) => choices.iter().any(|choice| self.is_productive(choice)),
            Node::Repeat(body, min, _) => *min == 0 || self.is_productive(body),
            Node::Rule(rule) => self.productive[*rule],
        }
    }

    /// Whether a rule reaches itself before anything is consumed: derivatives would not end.
    fn is_left_recursive(&self) -> bool {
        (0..self.rules.len()).any(|rule| {
            let mut reached = vec![false; self.rules.len()];
            let mut open = vec![rule];
            while let Some(next) = open.pop() {
                let mut leading = Vec::new();
                self.leading(&self.rules[next], &mut leading);
                for call in leading {
                    if !std::mem::replace(&mut reached[call], true) {
                        open.push(call);
                    }
                }
            }
            reached[rule]
        })
    }

    fn leading(&self, node: &Node, calls: &mut Vec<usize>) {
        match node {
            Node::Rule(rule) => calls.push(*rule),
            Node::Seq(parts) => {
                for part in parts {
                    self.leading(part, calls);
                    if !self.is_nullable(part) {
                        break;
                    }
                }
            }
            Node::Alt(choices) => choices.iter().for_each(|choice| self.leading(choice, calls)),
            Node::Repeat(body, _, _) => self.leading(body, calls),
            _ => {}
        }
    }

    /// What must follow after a symbol.
    fn derive(&self, node: &Node, symbol: Symbol) -> Rc<Node> {
        match (node, symbol) {
            (Node::Never | Node::Empty, _) => Rc::new(Node::Never),
            (Node::Text(text), Symbol::Byte(_)) => {
                self.derive(&Node::Bytes(text.clone().into_bytes()), symbol)
            }
            (Node::Bytes(bytes), Symbol::Byte(byte)) => match bytes.split_first() {
                Some((first, rest)) if *first == byte => Rc::new(Node::Bytes(rest.to_vec())),
                _ => Rc::new(Node::Never),
            },
            (Node::Class { .. }, Symbol::Byte(byte)) => {
                after_byte(&Rc::new(node.clone()), &[], byte)
            }
            (Node::Rest { class, begun }, Symbol::Byte(byte)) => after_byte(class, begun, byte),
            (Node::Token { negated, id }, Symbol::Token { id: given, is_text }) => {
                let matches = if *negated { given != *id && is_text } else { given == *id };
                Rc::new(if matches { Node::Empty } else { Node::Never })
            }
            (Node::Seq(parts), _) => {
                let mut choices = Vec::new();
                for (index, part) in parts.iter().enumerate() {
                    let mut rest = vec![self.derive(part, symbol)];
                    rest.extend_from_slice(&parts[index + 1..]);
                    choices.push(seq(rest));
                    if !self.is_nullable(part) {
                        break;
                    }
                }
                alt(choices)
            }
            (Node::Alt(choices), _) => {
                alt(choices.iter().map(|choice| self.derive(choice, symbol)).collect())
            }
            (Node::Repeat(body, min, max), _) => {
                if *max == Some(0) {
                    return Rc::new(Node::Never);
                }
                // A nullable body may leave rounds out, so none is then required.
                let min = if self.is_nullable(body) { 0 } else { *min };
                let rest =
                    Node::Repeat(body.clone(), min.saturating_sub(1), max.map(|max| max - 1));
                seq(vec![self.derive(body, symbol), Rc::new(rest)])
            }
            (Node::Rule(rule), _) => self.derive(&self.rules[*rule], symbol),
            (Node::Token { .. }, Symbol::Byte(_))
            | (
                Node::Text(_) | Node::Bytes(_) | Node::Class { .. } | Node::Rest { .. },
                Symbol::Token { .. },
            ) => Rc::new(Node::Never),
        }
    }
}

/// Nodes from which on the oracle gives up.
const LEFT_SIZE_MAX: usize = 2_000;

fn size(node: &Node) -> usize {
    match node {
        Node::Seq(nodes) | Node::Alt(nodes) => nodes
            .iter()
            .fold(1, |sum, node| if sum > LEFT_SIZE_MAX { sum } else { sum + size(node) }),
        Node::Repeat(body, ..) => 1 + size(body),
        _ => 1,
    }
}

#[derive(Clone, Copy, Debug)]
enum Symbol {
    Byte(u8),
    Token { id: TokenId, is_text: bool },
}

fn seq(parts: Vec<Rc<Node>>) -> Rc<Node> {
    if parts.iter().any(|part| **part == Node::Never) {
        return Rc::new(Node::Never);
    }
    let parts: Vec<Rc<Node>> = parts
        .into_iter()
        .filter(|part| !matches!(&**part, Node::Empty) && **part != Node::Bytes(Vec::new()))
        .collect();
    if parts.is_empty() { Rc::new(Node::Empty) } else { Rc::new(Node::Seq(parts)) }
}

fn alt(choices: Vec<Rc<Node>>) -> Rc<Node> {
    let mut kept: Vec<Rc<Node>> = Vec::new();
    for choice in choices {
        if *choice != Node::Never && !kept.contains(&choice) {
            kept.push(choice);
        }
    }
    match kept.len() {
        0 => Rc::new(Node::Never),
        1 => kept.remove(0),
        _ => Rc::new(Node::Alt(kept)),
    }
}

/// Whether some character from `low` to `high` is in the class.
fn in_class(class: &Node, low: char, high: char) -> bool {
    let Node::Class { negated, ranges } = class else { return false };
    if *negated {
        // The tests' classes have one range, so what is outside is found at its edges.
        !ranges.iter().any(|(from, to)| *from <= low && high <= *to)
    } else {
        ranges.iter().any(|(from, to)| *from <= high && low <= *to)
    }
}

fn contains(class: &Node, character: char) -> bool {
    in_class(class, character, character)
}

/// Whether some character of the class starts with these bytes and has more.
fn completions(class: &Node, begun: &[u8]) -> bool {
    let (length, low) = match begun[0] {
        0xC2..=0xDF => (2, 0x80),
        0xE0 => (3, 0xA0),
        0xE1..=0xEF => (3, 0x80),
        0xF0 => (4, 0x90),
        0xF1..=0xF4 => (4, 0x80),
        _ => return false,
    };
    let high = match begun[0] {
        0xED => 0x9F,
        0xF4 => 0x8F,
        _ => 0xBF,
    };
    let fill = |second: u8, rest: u8| {
        let mut bytes = begun.to_vec();
        while bytes.len() < length {
            bytes.push(if bytes.len() == 1 { second } else { rest });
        }
        String::from_utf8(bytes).ok().and_then(|text| text.chars().next())
    };
    match (fill(low, 0x80), fill(high, 0xBF)) {
        (Some(first), Some(last)) if begun.len() < length => in_class(class, first, last),
        _ => false,
    }
}

fn after_byte(class: &Rc<Node>, begun: &[u8], byte: u8) -> Rc<Node> {
    let mut begun = begun.to_vec();
    begun.push(byte);
    if let Ok(text) = std::str::from_utf8(&begun) {
        let whole = text.chars().next().is_some_and(|c| contains(class, c));
        return Rc::new(if whole { Node::Empty } else { Node::Never });
    }
    let may_go_on = completions(class, &begun);
    Rc::new(if may_go_on { Node::Rest { class: class.clone(), begun } } else { Node::Never })
}

/// The grammar in GBNF.
fn gbnf(rules: &[Rc<Node>]) -> String {
    let mut text = String::new();
    for (index, rule) in rules.iter().enumerate() {
        let name = if index == 0 { "root".to_owned() } else { format!("r{index}") };
        text.push_str(&format!("{name} ::= {}\n", element(rule)));
    }
    text
}

fn escaped(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '"' | '\\' | '[' | ']' => format!("\\{c}"),
            '\n' => "\\n".to_owned(),
            '^' | '-' => format!("\\x{:02X}", u32::from(c)),
            _ => c.to_string(),
        })
        .collect()
}

fn element(node: &Node) -> String {
    match node {
        Node::Empty => "\"\"".to_owned(),
        Node::Text(text) => format!("\"{}\"", escaped(text)),
        Node::Class { negated, ranges } => {
            let ranges: String = ranges
                .iter()
                .map(|(low, high)| {
                    format!("{}-{}", escaped(&low.to_string()), escaped(&high.to_string()))
                })
                .collect();
            format!("[{}{ranges}]", if *negated { "^" } else { "" })
        }
        Node::Seq(parts) => {
            let parts: Vec<String> = parts.iter().map(|part| element(part)).collect();
            format!("({})", parts.join(" "))
        }
        Node::Alt(choices) => {
            let choices: Vec<String> = choices.iter().map(|choice| element(choice)).collect();
            format!("({})", choices.join(" | "))
        }
        Node::Repeat(body, min, max) => {
            let max = max.map_or(String::new(), |max| max.to_string());
            format!("({}){{{min},{max}}}", element(body))
        }
        Node::Rule(0) => "root".to_owned(),
        Node::Rule(rule) => format!("r{rule}"),
        Node::Token { negated, id } => format!("{}<[{id}]>", if *negated { "!" } else { "" }),
        Node::Never | Node::Rest { .. } | Node::Bytes(_) => unreachable!("not generated"),
    }
}

const ALPHABET: &str = "abcxyz01 \n\"\\é🙂€ß中\u{7F}\u{80}\u{FFFF}\u{10FFFF}";
const RULES: usize = 3;
/// Control, control, end, end that looks like text.
const SPECIAL_TOKENS: TokenId = 4;

fn texts() -> impl Strategy<Value = String> {
    proptest::sample::select(vec![
        "a", "b", "ab", "abc", "é", "🙂", "x\"", "\\", "ba", "c", "中€", "",
    ])
    .prop_map(str::to_owned)
}

fn leaf() -> impl Strategy<Value = Node> {
    prop_oneof![
        6 => texts().prop_map(Node::Text),
        2 => (any::<bool>(), proptest::sample::select(vec![('a', 'c'), ('a', 'a'), ('x', 'z'), ('é', '中'), ('\u{0}', '\u{7F}')]))
            .prop_map(|(negated, range)| Node::Class { negated, ranges: vec![range] }),
        1 => (0..SPECIAL_TOKENS + 2, any::<bool>()).prop_map(|(id, negated)| Node::Token { negated, id }),
    ]
}

fn node() -> impl Strategy<Value = Node> {
    leaf().prop_recursive(4, 24, 4, |inner| {
        let inner = inner.prop_map(Rc::new).boxed();
        let bounds = prop_oneof![
            4 => (0u32..3, 0u32..4).prop_map(|(min, more)| (min, Some(min + more))),
            2 => (0u32..3).prop_map(|min| (min, None)),
            // Enough to be counted and not written out.
            1 => (0u32..70, 0u32..70).prop_map(|(min, more)| (min, Some(min + more))),
            1 => (40u32..70).prop_map(|min| (min, None)),
        ];
        prop_oneof![
            3 => proptest::collection::vec(inner.clone(), 2..4).prop_map(Node::Seq),
            3 => proptest::collection::vec(inner.clone(), 2..4).prop_map(Node::Alt),
            2 => (inner.clone(), bounds)
                .prop_map(|(body, (min, max))| Node::Repeat(body, min, max)),
            // Something before a rule and something after, so that it nests.
            2 => (texts(), 0..RULES, inner).prop_map(|(before, rule, after)| {
                let before = Rc::new(Node::Text(before));
                Node::Seq(vec![before, Rc::new(Node::Rule(rule)), after])
            }),
        ]
    })
}

fn vocabulary() -> impl Strategy<Value = Vocabulary> {
    let token = prop_oneof![
        3 => proptest::collection::vec(proptest::sample::select(ALPHABET.chars().collect::<Vec<_>>()), 1..4)
            .prop_map(|chars| chars.into_iter().collect::<String>().into_bytes()),
        // Bytes that begin or end in the middle of a character.
        1 => (texts(), texts(), 1usize..6, 0usize..3).prop_map(|(a, b, take, skip)| {
            let bytes: Vec<u8> = format!("{a}{b}é").into_bytes();
            bytes.into_iter().skip(skip).take(take).collect()
        }),
    ];
    let bytes = prop_oneof![
        Just(Vec::new()),
        Just((0..=255u8).collect()),
        // All but a few, which may be some of those that texts are made of.
        (proptest::collection::vec(any::<u8>(), 8), proptest::collection::vec(texts(), 0..2))
            .prop_map(|(missing, texts)| {
                let missing = [missing, texts.concat().into_bytes()].concat();
                (0..=255u8).filter(|byte| !missing.contains(byte)).collect()
            }),
    ];
    (proptest::collection::vec(token, 5..40), bytes).prop_map(|(texts, bytes): (_, Vec<u8>)| {
        let mut tokens: Vec<Token> = ["<a>", "<b>", "<end>", "ab"]
            .into_iter()
            .map(|name| Token { bytes: name.into(), kind: TokenKind::Control })
            .collect();
        tokens[3].kind = TokenKind::Text;
        let texts = texts.into_iter().filter(|bytes| !bytes.is_empty());
        tokens.extend(texts.map(|bytes| Token { bytes, kind: TokenKind::Text }));
        let single = |byte| Token { bytes: vec![byte], kind: TokenKind::Text };
        tokens.extend(bytes.into_iter().map(single));
        tokens.push(Token { bytes: Vec::new(), kind: TokenKind::Unused });
        Vocabulary::new(tokens, &[2, 3], None)
    })
}

/// The oracle's place in a text.
#[derive(Clone)]
struct Place {
    left: Rc<Node>,
    has_ended: bool,
}

fn owned(node: &Node, rules: &[Rc<Node>], tokens: &mut BTreeMap<TokenId, ()>, depth: u32) {
    match node {
        Node::Token { negated: false, id } => {
            tokens.insert(*id, ());
        }
        Node::Seq(nodes) | Node::Alt(nodes) => {
            nodes.iter().for_each(|node| owned(node, rules, tokens, depth));
        }
        Node::Repeat(body, _, max) if *max != Some(0) => owned(body, rules, tokens, depth),
        Node::Rule(rule) if depth > 0 => owned(&rules[*rule], rules, tokens, depth - 1),
        _ => {}
    }
}

fn step(
    oracle: &Oracle,
    vocabulary: &Vocabulary,
    owned: &BTreeMap<TokenId, ()>,
    place: &Place,
    id: TokenId,
) -> Option<Place> {
    if place.has_ended {
        return None;
    }
    let is_end = vocabulary.is_end(id);
    if is_end && !owned.contains_key(&id) && oracle.is_nullable(&place.left) {
        return Some(Place { left: Rc::new(Node::Never), has_ended: true });
    }
    let token = vocabulary.get(id)?;
    let is_text = token.kind == TokenKind::Text && !is_end;
    let by_id = oracle.derive(&place.left, Symbol::Token { id, is_text });
    let mut by_bytes = if is_text { place.left.clone() } else { Rc::new(Node::Never) };
    if is_text {
        for &byte in &token.bytes {
            by_bytes = oracle.derive(&by_bytes, Symbol::Byte(byte));
        }
    }
    let left = alt(vec![by_id, by_bytes]);
    oracle.is_productive(&left).then_some(Place { left, has_ended: false })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PLEACH_ORACLE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(192),
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn masks_are_what_the_oracle_allows(
        rules in proptest::collection::vec(node().prop_map(Rc::new), RULES),
        vocabulary in vocabulary(),
        choices in proptest::collection::vec(any::<u16>(), 24),
    ) {
        let source = GrammarSource::Gbnf(gbnf(&rules));
        let prepared = GrammarVocabulary::new(&vocabulary);
        let limits = Limits::default();
        let compiled =
            CompiledGrammar::compile(&source, &prepared, &limits, &mut Fuel::new(10_000_000));
        let oracle = Oracle::new(rules.clone());
        if oracle.is_left_recursive() {
            return Ok(());
        }
        let mut places =
            vec![Place { left: Rc::new(Node::Rule(0)), has_ended: false }];
        let mut owned_tokens = BTreeMap::new();
        owned(&rules[0], &rules, &mut owned_tokens, RULES as u32 + 1);
        let allowed = |place: &Place| -> Vec<TokenId> {
            (0..vocabulary.len() as TokenId)
                .filter(|&id| step(&oracle, &vocabulary, &owned_tokens, place, id).is_some())
                .collect()
        };
        let grammar = match compiled {
            Ok(grammar) => grammar,
            Err(GrammarError::MatchesNothing { .. }) => {
                prop_assert!(!oracle.is_productive(&Node::Rule(0)));
                return Ok(());
            }
            Err(GrammarError::Unspellable) => {
                prop_assert!(allowed(&places[0]).is_empty());
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let mut matcher = grammar.matcher();
        let mut bits = vec![0u32; prepared.mask_words()];
        for choice in choices {
            let place = places.last().cloned().unwrap_or_else(|| unreachable!());
            if size(&place.left) > LEFT_SIZE_MAX {
                // The oracle's trees can double with each byte; the engine's states do not.
                return Ok(());
            }
            let expected = allowed(&place);
            let filled = matcher.fill_mask(&mut bits);
            if place.has_ended {
                prop_assert_eq!(filled, Err(MatchError::Ended));
            } else if expected.is_empty() && !oracle.is_nullable(&place.left) {
                prop_assert_eq!(filled, Err(MatchError::DeadEnd));
            } else {
                prop_assert_eq!(filled, Ok(()));
                let set: Vec<TokenId> = (0..vocabulary.len() as TokenId)
                    .filter(|id| bits[*id as usize / 32] >> (id % 32) & 1 == 1)
                    .collect();
                prop_assert_eq!(&set, &expected, "after {} tokens of {:?}", places.len() - 1, source);
            }
            prop_assert_eq!(
                matcher.is_complete(),
                place.has_ended || oracle.is_nullable(&place.left)
            );
            // Now and then a token that is not allowed, a step back, or a fresh start.
            let refused = TokenId::from(choice) % vocabulary.len() as TokenId;
            if !expected.contains(&refused) {
                prop_assert!(matcher.accept(refused).is_err());
            }
            if choice % 5 == 0 || expected.is_empty() {
                let back = usize::from(choice / 5) % places.len();
                prop_assert_eq!(matcher.rollback(back), Ok(()));
                places.truncate(places.len() - back);
                if choice % 3 == 0 {
                    grammar.forget();
                }
                continue;
            }
            let token = expected[usize::from(choice) % expected.len()];
            prop_assert_eq!(matcher.accept(token), Ok(()));
            let next = step(&oracle, &vocabulary, &owned_tokens, &place, token);
            places.push(next.unwrap_or_else(|| unreachable!()));
        }
    }

    #[test]
    fn walks_within_a_budget_end_accepted(
        rules in proptest::collection::vec(node().prop_map(Rc::new), RULES),
        vocabulary in vocabulary(),
        choices in proptest::collection::vec(any::<u16>(), 24),
        spare in 0u32..12,
    ) {
        let source = GrammarSource::Gbnf(gbnf(&rules));
        let prepared = GrammarVocabulary::new(&vocabulary);
        let compiled = CompiledGrammar::compile(
            &source, &prepared, &Limits::default(), &mut Fuel::new(10_000_000));
        let Ok(grammar) = compiled else { return Ok(()) };
        let mut matcher = grammar.matcher();
        let Some(needed) = matcher.min_tokens_to_finish().map_err(fail)? else { return Ok(()) };
        let mut bits = vec![0u32; prepared.mask_words()];
        if let Some(too_few) = needed.checked_sub(1) {
            let refused = matcher.fill_mask_within(too_few, &mut bits);
            let is_too_small = matches!(refused, Err(MatchError::BudgetTooSmall { .. }));
            prop_assert!(is_too_small, "{:?}", refused);
        }
        let mut left = (needed + spare).min(200);
        if left < needed {
            return Ok(());
        }
        let mut plain = bits.clone();
        for choice in choices.iter().cycle() {
            if left == 0 {
                break;
            }
            matcher.fill_mask_within(left, &mut bits).map_err(fail)?;
            matcher.fill_mask(&mut plain).map_err(fail)?;
            prop_assert!(bits.iter().zip(&plain).all(|(within, plain)| within & !plain == 0));
            let set: Vec<TokenId> = (0..vocabulary.len() as TokenId)
                .filter(|id| bits[*id as usize / 32] >> (id % 32) & 1 == 1)
                .collect();
            if set.is_empty() {
                break;
            }
            matcher.accept(set[usize::from(*choice) % set.len()]).map_err(fail)?;
            left -= 1;
            if matcher.has_ended() {
                break;
            }
        }
        prop_assert!(matcher.is_complete());
    }
}

fn fail(error: MatchError) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}
