//! Masks of the places in a text that is told by an automaton, between quotes.
//!
//! What may come within such a text says the place in the automaton alone, and what may come after
//! its closing quote says the place after it alone. Tokens that stay within are found once for each
//! place, and for the languages that all schemas share, once for the vocabulary; what follows a
//! closing quote is found once for each place that it leads to.

use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::automaton::ConfigId;
use super::builder::StackId;
use super::error::LimitError;
use super::key_ends::RestId;
use super::limits::Fuel;
use super::mask::tokens_of;
use super::mask_cache::{CachedMask, finish_below};
use super::masks::MaskMaker;
use super::program::{NO_WAY, Node, NodeId, Program, Role};
use super::text::CharRanges;
use super::text_survey::Survey;
use crate::TokenId;

/// Nodes of the vocabulary's tree that are looked at, before a place is left to a walk over shapes.
const STEPS_MAX: u32 = 60_000;
/// Steps that cost as much as one of a walk over states.
const STEPS_PER_PAYMENT: u32 = 16;
/// Places that a vocabulary remembers of one kind, at most: each takes up to some tens of kilobytes.
const SHARED_MAX: usize = 512;
/// Nodes of the graph of a string of any characters.
const STRING_NODES_MAX: usize = 64;
/// Bytes that the longest character lacks when it has begun.
const CHARACTER_BYTES_MAX: u32 = 12;
/// Characters that lead back to their place, from which on a walk over shapes takes less time.
const LOOP_CHARS_MAX: u32 = 16;

/// A text in a program.
#[derive(Clone, Debug)]
pub(crate) struct QuotedText {
    /// The nodes of its states.
    pub(crate) nodes: Vec<NodeId>,
    /// The node of the closing quote.
    pub(crate) quote: NodeId,
    /// The number of the language, if all grammars share it.
    pub(crate) shared: Option<u32>,
    /// The characters that may come, if they are the same at all places.
    pub(crate) takes: Option<CharRanges>,
}

/// Where nodes are in the texts of a program.
#[derive(Debug, Default)]
pub(crate) struct TextNodes {
    texts: Vec<QuotedText>,
    /// Most bytes from a state of each text to the end of its rule.
    bytes_max: Vec<u32>,
    /// Text and state by node.
    places: FxHashMap<NodeId, (u32, u32)>,
}

impl TextNodes {
    pub(crate) fn new(texts: Vec<QuotedText>, costs: &[u32]) -> Self {
        let mut nodes = Self::default();
        for (number, text) in texts.iter().enumerate() {
            let alive = text.nodes.iter().map(|&node| costs[node as usize]);
            nodes.bytes_max.push(alive.filter(|cost| *cost < NO_WAY).max().unwrap_or(NO_WAY));
            for (state, &node) in text.nodes.iter().enumerate() {
                nodes.places.insert(node, (number as u32, state as u32));
            }
        }
        nodes.texts = texts;
        nodes
    }
}

/// The tokens that may come at a place in a text.
#[derive(Debug)]
pub(crate) struct TextPlace {
    /// Those that stay within, if they are many,
    pub(super) many: Option<Arc<[u32]>>,
    /// or if they are few; ascending.
    pub(super) few: Box<[TokenId]>,
    /// Those that end the text, by what they go on with after the quote; ascending.
    pub(super) quoted: Box<[(RestId, TokenId)]>,
}

/// What may come after a closing quote.
#[derive(Debug)]
struct Rests {
    alive: Box<[u64]>,
    floor: u32,
    finish_bytes: u32,
}

/// What was found out under keys; `None`: only walks can tell.
type Known<K, V> = Mutex<FxHashMap<K, Option<Arc<V>>>>;

/// What is known of texts and of what follows them.
#[derive(Default)]
pub(crate) struct TextPlaces {
    places: Known<NodeId, TextPlace>,
    rests: Known<ConfigId, Rests>,
}

/// Tokens that stay within texts of some characters only, in any order.
pub(crate) type TextsOf = Known<CharRanges, TextPlace>;

/// Places in strings of any characters, by the form of their graph.
pub(crate) type StringPlaces = Known<Box<[u32]>, TextPlace>;

/// Places of the languages that all grammars share, by language and state.
pub(crate) type SharedPlaces = Known<(u32, u32), TextPlace>;

impl MaskMaker<'_> {
    /// The mask of a state in which a text is open and nothing else, and the height of the lowest
    /// frame that it depends on.
    pub(super) fn text_mask(
        &self,
        id: ConfigId,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<(u32, CachedMask)>, LimitError> {
        let config = self.automaton.config(id);
        let ([item], false, false) = (&*config.items, config.accepting, config.has_token_items)
        else {
            return Ok(None);
        };
        let frame = *self.automaton.lock().frame(*item);
        let program = self.automaton.program();
        let (place, quote, bytes_max) = match program.texts.places.get(&frame.node) {
            Some(&(number, state)) => {
                let text = &program.texts.texts[number as usize];
                let bytes_max = program.texts.bytes_max[number as usize];
                (self.text_place(text, state, fuel)?, text.quote, bytes_max)
            }
            None if is_string(program, frame.node) => {
                let bytes_max = program.costs[frame.node as usize] + CHARACTER_BYTES_MAX;
                (self.string_place(frame.node, fuel)?, frame.node, bytes_max)
            }
            None => return Ok(None),
        };
        let Some(place) = place else { return Ok(None) };
        let Some(rests) = self.rests(*item, quote, fuel)? else { return Ok(None) };
        let below = self.automaton.lock().frame(frame.parent).finish_bytes;
        let inside = below.saturating_add(bytes_max);
        let finish_bytes = inside.max(rests.finish_bytes);
        let floor = rests.floor.min(frame.height);
        let cut = finish_below(self.automaton, id, floor);
        let cached = CachedMask {
            mask: self.vocabulary.mask_of_tokens(place.many.clone(), place.tokens(&rests)),
            finish_bytes_over_cut: cut
                .filter(|_| finish_bytes < NO_WAY)
                .map(|(least, _)| finish_bytes.saturating_sub(least)),
            floor_below_items: frame.height - floor,
        };
        Ok(Some((floor, cached)))
    }

    fn text_place(
        &self,
        text: &QuotedText,
        state: u32,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<Arc<TextPlace>>, LimitError> {
        let node = text.nodes[state as usize];
        if let Some(language) = text.shared {
            let known = &self.vocabulary.text_places;
            return find(known, &(language, state), SHARED_MAX, || {
                self.text_survey(text, node, fuel)
            });
        }
        find(&self.cache.texts.places, &node, usize::MAX, || {
            let place = self.text_survey(text, node, fuel)?;
            self.automaton.add_bytes(place.as_ref().map_or(0, TextPlace::bytes));
            Ok(place)
        })
    }

    /// The place in a string of any characters, which is the same in all grammars that write such
    /// strings alike.
    fn string_place(
        &self,
        node: NodeId,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<Arc<TextPlace>>, LimitError> {
        let program = self.automaton.program();
        let Some((form, after)) = form_of(program, node) else { return Ok(None) };
        find(&self.vocabulary.string_places, &form, SHARED_MAX, || {
            self.look_through((node, after), (false, u32::MAX), fuel)
        })
    }

    /// Looks at all tokens from a node of a text on, or just those with a quote, in so many steps.
    fn look_through(
        &self,
        (node, after): (NodeId, NodeId),
        (only_quoted, steps_max): (bool, u32),
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<TextPlace>, LimitError> {
        let survey = Survey { node, after, only_quoted, steps_max };
        let (steps, place) = survey.run(self.automaton.program(), self.vocabulary);
        fuel.spend(steps / STEPS_PER_PAYMENT)?;
        Ok(place)
    }

    /// Looks at all tokens from a place in a text.
    fn text_survey(
        &self,
        text: &QuotedText,
        node: NodeId,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<TextPlace>, LimitError> {
        let program = self.automaton.program();
        let Node::Switch(quote) = program.nodes[text.quote as usize] else { return Ok(None) };
        let Some(after) = program.follow(quote, b'"') else { return Ok(None) };
        let is_switch = |&node: &NodeId| matches!(program.nodes[node as usize], Node::Switch(_));
        let is_loop = loop_chars(program, node) > LOOP_CHARS_MAX && text.takes.is_none();
        if is_loop || !text.nodes.iter().all(is_switch) {
            return Ok(None);
        }
        let is_shared = text.shared.is_some() || text.takes.is_some();
        let steps_max = if is_shared { u32::MAX } else { STEPS_MAX };
        let mut survey =
            |only_quoted| self.look_through((node, after), (only_quoted, steps_max), &mut *fuel);
        let Some(takes) = &text.takes else { return survey(false) };
        // What stays within is the same for all such texts and at all places.
        let all = find(&self.vocabulary.texts_of, takes, SHARED_MAX, || survey(false))?;
        let (Some(all), Some(place)) = (all, survey(true)?) else { return Ok(None) };
        Ok(Some(TextPlace { many: all.many.clone(), few: all.few.clone(), ..place }))
    }

    /// What may come after the quote that closes the text of an item.
    fn rests(
        &self,
        item: StackId,
        quote: NodeId,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<Arc<Rests>>, LimitError> {
        let program = self.automaton.program();
        let Node::Switch(span) = program.nodes[quote as usize] else { return Ok(None) };
        let Some(next) = program.follow(span, b'"') else { return Ok(None) };
        let edge = self.automaton.beside(item, next, fuel)?;
        let found = find(&self.cache.texts.rests, &edge.to, usize::MAX, || {
            let key_ends = self.vocabulary.key_ends();
            let mut alive = vec![0u64; key_ends.count.div_ceil(64)];
            alive[0] |= 1;
            let start = self.automaton.config(edge.to);
            let mut finish_bytes = start.finish_bytes;
            let set = |rest: TokenId, _: ConfigId, config: &super::automaton::Config| {
                alive[rest as usize / 64] |= 1 << (rest % 64);
                finish_bytes = finish_bytes.max(config.finish_bytes);
                Ok(())
            };
            let floor = super::walk::walk(self.automaton, &key_ends.rests, start, fuel, set)?;
            self.automaton.add_bytes(size_of::<Rests>() + size_of_val(&*alive));
            Ok(Some(Rests { alive: alive.into(), floor, finish_bytes }))
        })?;
        // The step over the quote is the item's own.
        Ok(found.map(|rests| match rests.floor <= edge.floor {
            true => rests,
            false => Arc::new(Rests {
                alive: rests.alive.clone(),
                floor: edge.floor,
                finish_bytes: rests.finish_bytes,
            }),
        }))
    }
}

/// What is known under a key, or else is found now. All that is known goes when it is too much.
fn find<K: Hash + Eq + Clone, V>(
    known: &Known<K, V>,
    key: &K,
    most: usize,
    find: impl FnOnce() -> Result<Option<V>, LimitError>,
) -> Result<Option<Arc<V>>, LimitError> {
    if let Some(known) = known.lock().unwrap_or_else(PoisonError::into_inner).get(key) {
        return Ok(known.clone());
    }
    let found = find()?.map(Arc::new);
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() >= most {
        known.clear();
    }
    Ok(known.entry(key.clone()).or_insert(found).clone())
}

/// Characters by which a place leads back to itself.
fn loop_chars(program: &Program, node: NodeId) -> u32 {
    let Node::Switch(span) = program.nodes[node as usize] else { return u32::MAX };
    let arms = program.arms(span).iter().filter(|arm| arm.next == node);
    arms.map(|arm| u32::from(arm.high - arm.low) + 1).sum()
}

/// Whether a node is that of a string of any characters, however they are escaped.
fn is_string(program: &Program, node: NodeId) -> bool {
    program.char_loop(node).is_some_and(|it| !it.returns && it.chars.wide)
        && matches!(program.role(node), Role::Plain)
        && matches!(program.nodes[node as usize], Node::Switch(span)
            if program.follow(span, b'"').is_some() && program.follow(span, b'\\').is_some())
}

/// The form of the graph of a string: its arms, with the nodes numbered as they are met, and where
/// its closing quote leads. `None`: it is no such graph.
fn form_of(program: &Program, node: NodeId) -> Option<(Box<[u32]>, NodeId)> {
    let Node::Switch(span) = program.nodes[node as usize] else { return None };
    let after = program.follow(span, b'"')?;
    let mut met: Vec<NodeId> = vec![node];
    let mut form: Vec<u32> = Vec::new();
    let mut next = 0;
    while let Some(&at) = met.get(next) {
        let Node::Switch(span) = program.nodes[at as usize] else { return None };
        form.push(span.count);
        for arm in program.arms(span) {
            let number = if arm.next == after && at == node {
                u32::MAX
            } else {
                let known = met.iter().position(|&known| known == arm.next);
                known.unwrap_or_else(|| {
                    met.push(arm.next);
                    met.len() - 1
                }) as u32
            };
            form.extend([u32::from(arm.low) << 8 | u32::from(arm.high), number]);
        }
        if met.len() > STRING_NODES_MAX {
            return None;
        }
        next += 1;
    }
    Some((form.into(), after))
}

impl TextPlace {
    /// `inside` are the tokens that stay within, as bits; `quoted` those that end the text,
    /// ascending.
    pub(super) fn new(inside: Vec<u32>, quoted: Box<[(RestId, TokenId)]>) -> Self {
        let count: u32 = inside.iter().map(|word| word.count_ones()).sum();
        let is_many = count as usize > inside.len() / 8;
        if is_many {
            return Self { many: Some(inside.into()), few: Box::default(), quoted };
        }
        Self { many: None, few: tokens_of(&inside).collect(), quoted }
    }

    /// Bytes of memory it takes, about.
    fn bytes(&self) -> usize {
        let many = self.many.as_ref().map_or(0, |many| size_of_val(&**many));
        size_of::<Self>() + many + size_of_val(&*self.few) + size_of_val(&*self.quoted)
    }

    /// The tokens that may come, but for the many; ascending.
    fn tokens(&self, rests: &Rests) -> Vec<TokenId> {
        let is_alive = |rest: RestId| rests.alive[rest as usize / 64] >> (rest % 64) & 1 == 1;
        let ended = self.quoted.iter().filter(|(rest, _)| is_alive(*rest)).map(|(_, token)| *token);
        let mut tokens: Vec<TokenId> = self.few.iter().copied().chain(ended).collect();
        tokens.sort_unstable();
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::{CompiledGrammar, GrammarSource, GrammarVocabulary, Limits};
    use crate::vocab::byte_vocabulary;

    #[test]
    fn what_a_vocabulary_remembers_of_strings_is_bounded() {
        let vocabulary = GrammarVocabulary::new(&byte_vocabulary());
        let limits = Limits::default();
        let mut forms = 0;
        for (first, second) in (b'a'..=b'z').flat_map(|a| (b'A'..=b'Z').map(move |b| (a, b))) {
            let (first, second) = (char::from(first), char::from(second));
            let plain = format!(r#"[^"\\{first}{second}]"#);
            let gbnf = format!(r#"root ::= "\"" ({plain} | "\\" ["\\])* "\"""#);
            let mut fuel = Fuel::new(limits.compile_steps_max);
            let source = GrammarSource::Gbnf(gbnf);
            let grammar = CompiledGrammar::compile(&source, &vocabulary, &limits, &mut fuel);
            let mut matcher = grammar.unwrap().matcher();
            matcher.accept(b'"'.into()).unwrap();
            let mask = matcher.mask().unwrap();
            let allowed = |character: char| mask.contains(character as TokenId);
            assert!(allowed('0') && allowed('"') && !allowed(first) && !allowed(second));
            forms += 1;
            let known = vocabulary.string_places.lock().unwrap().len();
            assert!(known <= SHARED_MAX && known <= forms, "{known} of {forms}");
            assert!(known > 0, "such strings are remembered at all");
        }
        assert!(forms > SHARED_MAX);
    }

    #[test]
    fn places_count_as_memory_of_their_grammar() {
        let vocabulary = GrammarVocabulary::new(&byte_vocabulary());
        let limits = Limits::default();
        let mut fuel = Fuel::new(limits.compile_steps_max);
        let schema = r#"{"properties":{"abc":{"type":"string","pattern":"^[0-9]{3}-[a-f]{2}$"}}}"#;
        let options = crate::grammar::json_schema::SchemaOptions::default();
        let source = GrammarSource::JsonSchema { schema: schema.into(), options };
        let grammar = CompiledGrammar::compile(&source, &vocabulary, &limits, &mut fuel).unwrap();
        let mut matcher = grammar.matcher();
        let mut grew = [false; 2];
        for (byte, place) in br#"{"abc":"012-"#.iter().zip([9, 9, 0, 9, 9, 9, 9, 9, 1, 9, 9, 9]) {
            matcher.accept((*byte).into()).unwrap();
            let before = grammar.size();
            matcher.mask().unwrap();
            if let Some(grew) = grew.get_mut(place) {
                *grew = grammar.size().bytes > before.bytes;
            }
        }
        assert_eq!(grew, [true; 2]);
    }
}
