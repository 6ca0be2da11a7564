//! Finds out what each token needs at a place in a key.
//!
//! Where a free key may come of it, nearly every token is allowed, and a mask made once for the
//! vocabulary stands for most of them. Only bytes that lead elsewhere than from the place where the
//! key is a free one are followed, from both places at once.

use std::sync::{Arc, Mutex};

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::ends::{Ends, Sees};
use super::{Base, KeyPlace, MaskMaker, Need};
use crate::TokenId;
use crate::grammar::error::LimitError;
use crate::grammar::limits::Fuel;
use crate::grammar::mask::has_bit;
use crate::grammar::members::{KeyId, KeySet, insert};
use crate::grammar::program::{Arm, Node, NodeId, Program, Role, Span};
use crate::grammar::trie::{NO_TOKEN, Trie};

/// A set of bytes.
type Bytes = [u64; 4];

/// Nodes of the tree that are looked at, before a place is left to a walk over shapes.
const STEPS_MAX: u32 = 8_000;

/// Where a byte leads from a node of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Dead,
    Inside(NodeId),
    End { key: KeyId, next: NodeId },
}

/// A place in the making.
struct Survey<'s, 'f> {
    maker: &'s MaskMaker<'s>,
    machine: u32,
    fuel: &'s mut Fuel<'f>,
    /// Keys that may not come.
    without: Option<u32>,
    groups: FxHashMap<Need, Vec<TokenId>>,
    followed: Vec<TokenId>,
    /// Tokens that lead elsewhere than from the place of a free key.
    moved: FxHashSet<TokenId>,
    /// Whether those are among them that begin with a quote.
    ends_at_once: bool,
    value_bytes: u32,
    steps_left: u32,
    /// Whether something came up that only a plain walk can answer.
    is_beyond: bool,
}

impl MaskMaker<'_> {
    /// What tokens need at a node of a key, if a free key may come or may not; `None` if only
    /// walks can tell.
    pub(super) fn survey(
        &self,
        node: NodeId,
        is_free: bool,
        fuel: &mut Fuel<'_>,
    ) -> Result<Option<KeyPlace>, LimitError> {
        let program = self.automaton.program();
        let Role::Key { machine, .. } = program.role(node) else { return Ok(None) };
        let outside = program.machines[machine as usize].outside();
        if outside.first_key.is_none() {
            return Ok(None);
        }
        let free = outside.free_key;
        let like = match free {
            Some(free) if is_free && free != node => self.key_place(free, true, fuel)?,
            _ => None,
        };
        let mut survey = Survey {
            maker: self,
            machine,
            fuel,
            without: free.filter(|_| !is_free).map(|_| program.node_keys(machine).free()),
            groups: FxHashMap::default(),
            followed: Vec::new(),
            moved: FxHashSet::default(),
            ends_at_once: false,
            value_bytes: 0,
            steps_left: STEPS_MAX,
            is_beyond: false,
        };
        let mut base = None;
        match (free, &like) {
            (Some(free), None) if is_free && free == node => base = survey.free(node)?,
            (Some(free), Some(like)) => {
                survey.differ((node, free), None)?;
                survey.take_over(like);
                base = like.base.clone();
            }
            _ if is_free => return Ok(None),
            _ => survey.walk(node, self.vocabulary.trie(), None, &no_tails)?,
        }
        let is_beyond = survey.is_beyond || (is_free && base.is_none());
        Ok((!is_beyond).then(|| survey.finish(base)))
    }
}

/// The tokens that a node of a tree stands for.
type Tokens<'t> = dyn Fn(TokenId) -> SmallVec<[TokenId; 1]> + 't;

/// Nodes of the vocabulary's own tree.
fn no_tails(token: TokenId) -> SmallVec<[TokenId; 1]> {
    SmallVec::from_slice(&[token])
}

impl Survey<'_, '_> {
    /// The place where the key is a free one: tokens of plain characters lead back to it, the
    /// others are told apart by what comes after such characters.
    fn free(&mut self, node: NodeId) -> Result<Option<Base>, LimitError> {
        let program = self.maker.automaton.program();
        let split = program.char_loop(node).and_then(|it| self.maker.vocabulary.split(it.chars));
        let Some(split) = split else { return Ok(None) };
        let tails = &split.tails;
        self.walk(node, &tails.trie, None, &|tail| SmallVec::from_slice(tails.tokens(tail)))?;
        Ok(Some((split.inside(None), Need::OneOf(program.key_set_of(self.machine, node)))))
    }

    fn step(&self, node: NodeId, byte: u8) -> Step {
        let program = self.maker.automaton.program();
        let Node::Switch(span) = program.nodes[node as usize] else { return Step::Dead };
        let Some(next) = program.follow(span, byte) else { return Step::Dead };
        let machine = &program.machines[self.machine as usize];
        let without = self.without.map_or(&[][..], |set| machine.key_set(set));
        let is_left = |keys: &[u64]| {
            keys.iter()
                .enumerate()
                .any(|(word, keys)| keys & !without.get(word).copied().unwrap_or(0) != 0)
        };
        match program.nodes[next as usize] {
            Node::Member { key, next, .. } => {
                let mut only = KeySet::new();
                insert(&mut only, key);
                if is_left(&only) { Step::End { key, next } } else { Step::Dead }
            }
            _ if is_left(machine.key_set(program.key_set_of(self.machine, next))) => {
                Step::Inside(next)
            }
            _ => Step::Dead,
        }
    }

    /// Pays for a step; false if there were too many.
    fn pay(&mut self) -> Result<bool, LimitError> {
        self.fuel.spend(1)?;
        self.steps_left = self.steps_left.saturating_sub(1);
        self.is_beyond |= self.steps_left == 0;
        Ok(!self.is_beyond)
    }

    /// Notes the tokens below a node of a tree, whose bytes lead to a node of the key.
    fn walk(
        &mut self,
        from: NodeId,
        trie: &Trie,
        at: Option<u32>,
        tokens: &Tokens<'_>,
    ) -> Result<(), LimitError> {
        for (index, child) in trie.children(at) {
            match self.step(from, child.byte) {
                Step::Dead => {}
                Step::Inside(next) => {
                    if !self.pay()? {
                        return Ok(());
                    }
                    if child.token != NO_TOKEN {
                        tokens(child.token).iter().for_each(|&token| self.land(token, next));
                    }
                    self.walk(next, trie, Some(index), tokens)?;
                }
                Step::End { key, next } => {
                    let below = trie.tokens_from(index).flat_map(tokens);
                    self.end_all(below, (key, next))?;
                }
            }
        }
        Ok(())
    }

    /// Notes the tokens below a node of the tree that end another key than they would from the
    /// place where it is a free one. All that stay within the key are allowed here and there.
    fn differ(
        &mut self,
        (ours, theirs): (NodeId, NodeId),
        at: Option<u32>,
    ) -> Result<(), LimitError> {
        let program = self.maker.automaton.program();
        let (Node::Switch(first), Node::Switch(second)) =
            (program.nodes[ours as usize], program.nodes[theirs as usize])
        else {
            self.is_beyond = true;
            return Ok(());
        };
        let differing = differing_arms(program, first, second);
        let (trie, key_ends) = (self.maker.vocabulary.trie(), self.maker.vocabulary.key_ends());
        for (index, child) in trie.children(at) {
            let differs = differing[usize::from(child.byte >> 6)] >> (child.byte & 63) & 1 == 1;
            if !differs || !key_ends.has_quote_below(index) {
                continue;
            }
            if !self.pay()? {
                return Ok(());
            }
            match (self.step(ours, child.byte), self.step(theirs, child.byte)) {
                (Step::Inside(our), Step::Inside(their)) => {
                    self.differ((our, their), Some(index))?;
                }
                (Step::End { key, next }, _) if at.is_none() => {
                    self.ends_at_once = true;
                    self.end_at_once((key, next))?;
                }
                (Step::End { key, next }, _) => {
                    self.moved.extend(trie.tokens_from(index));
                    self.end_all(trie.tokens_from(index), (key, next))?;
                }
                _ => self.is_beyond = true,
            }
        }
        Ok(())
    }

    /// A token that ends within a key.
    fn land(&mut self, token: TokenId, node: NodeId) {
        let set = self.maker.automaton.program().key_set_of(self.machine, node);
        self.groups.entry(Need::OneOf(set)).or_default().push(token);
    }

    /// Tokens that end a key.
    fn end_all(
        &mut self,
        tokens: impl Iterator<Item = TokenId>,
        (key, next): (KeyId, NodeId),
    ) -> Result<(), LimitError> {
        let Some(ends) = self.ends_of((key, next))? else { return Ok(()) };
        let key_ends = self.maker.vocabulary.key_ends();
        for token in tokens {
            if let Some(rest) = key_ends.rest_of(token) {
                self.end(token, key, ends.sees(rest));
            }
        }
        Ok(())
    }

    /// Tokens that begin with the quote that ends a key.
    fn end_at_once(&mut self, (key, next): (KeyId, NodeId)) -> Result<(), LimitError> {
        let Some(ends) = self.ends_of((key, next))? else { return Ok(()) };
        let key_ends = self.maker.vocabulary.key_ends();
        for (rest, sees) in ends.alive() {
            if let Some(token) = key_ends.quote_and(rest) {
                self.end(token, key, sees);
            }
        }
        Ok(())
    }

    fn ends_of(&mut self, (key, next): (KeyId, NodeId)) -> Result<Option<Arc<Ends>>, LimitError> {
        let ends = self.maker.ends_of((self.machine, key), next, self.fuel)?;
        self.is_beyond |= ends.is_none();
        let value_bytes = ends.as_ref().map_or(0, |ends| ends.value_bytes);
        self.value_bytes = self.value_bytes.max(value_bytes);
        Ok(ends)
    }

    fn end(&mut self, token: TokenId, key: KeyId, sees: Sees) {
        let need = match sees {
            Sees::Dead => return,
            Sees::Nothing => Need::Key(key),
            Sees::More | Sees::MoreAndQuote => Need::KeyAndMore(key),
            Sees::End => Need::KeyAndEnd(key),
            Sees::All => return self.followed.push(token),
        };
        self.groups.entry(need).or_default().push(token);
    }

    /// Adds what is as at another place.
    fn take_over(&mut self, like: &KeyPlace) {
        let vocabulary = self.maker.vocabulary;
        let (moved, ends_at_once) = (&self.moved, self.ends_at_once);
        let is_same = |token: &&TokenId| {
            let is_quote = || vocabulary.token_bytes(**token).first() == Some(&b'"');
            !(ends_at_once && is_quote()) && (moved.is_empty() || !moved.contains(*token))
        };
        for (need, tokens) in &like.groups {
            self.groups.entry(*need).or_default().extend(tokens.iter().filter(is_same));
        }
        self.followed.extend(like.followed.iter().filter(is_same));
        self.value_bytes = self.value_bytes.max(like.value_bytes);
    }

    fn finish(mut self, base: Option<Base>) -> KeyPlace {
        let twins = self.maker.vocabulary.twins();
        for &(token, twin) in twins {
            if self.moved.contains(&token) {
                self.moved.insert(twin);
            }
            let lists = self.groups.values_mut().chain([&mut self.followed]);
            for list in lists {
                if list.contains(&token) && !list.contains(&twin) {
                    list.push(twin);
                }
            }
        }
        let in_base =
            |token: &TokenId| base.as_ref().is_some_and(|(bits, _)| has_bit(bits, *token));
        let mut except: Vec<TokenId> = self.moved.iter().copied().filter(in_base).collect();
        except.sort_unstable();
        let mut groups: Vec<(Need, Box<[TokenId]>)> =
            self.groups.into_iter().map(|(need, tokens)| (need, tokens.into())).collect();
        groups.sort_unstable_by_key(|(need, _)| *need);
        groups.iter_mut().for_each(|(_, tokens)| tokens.sort_unstable());
        KeyPlace {
            machine: self.machine,
            base,
            except: except.into(),
            groups: groups.into(),
            followed: self.followed.into(),
            value_bytes: self.value_bytes,
            masks: Mutex::default(),
        }
    }
}

/// The bytes by which two switches lead to different nodes.
fn differing_arms(program: &Program, first: Span, second: Span) -> Bytes {
    let mut differing = [0; 4];
    // The places where an arm of either starts or ends; between two of them nothing changes.
    let mut edges: SmallVec<[u16; 32]> = SmallVec::new();
    for arm in program.arms(first).iter().chain(program.arms(second)) {
        edges.extend([u16::from(arm.low), u16::from(arm.high) + 1]);
    }
    edges.sort_unstable();
    edges.dedup();
    let target = |arms: &[Arm], byte: u8| {
        let at = arms.partition_point(|arm| arm.high < byte);
        arms.get(at).filter(|arm| arm.low <= byte).map(|arm| arm.next)
    };
    let (first, second) = (program.arms(first), program.arms(second));
    for pair in edges.windows(2) {
        let low = pair[0] as u8;
        if target(first, low) != target(second, low) {
            for byte in pair[0]..pair[1] {
                differing[usize::from(byte >> 6)] |= 1u64 << (byte & 63);
            }
        }
    }
    differing
}
