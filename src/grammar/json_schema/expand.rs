//! From a conjunction to alternatives, for one JSON type at a time.
//!
//! With the type fixed, most keywords hold or fail by themselves, so the alternatives stay few.
//! A branch is a term (what is known so far), goals that must be taken in, and choices that are
//! still open. Taking in a goal may make more goals and choices; when none is left, the term is
//! one alternative.

use smallvec::SmallVec;

use super::atom::{Atom, NameId, Types};
use super::conj::{Conj, Literal, NodeId};
use super::error::SchemaError;
use super::shaper::Shaper;
use super::term_object::SomeKey;

/// Alternatives of one type beyond this are refused.
const ALTERNATIVES_MAX: usize = 256;
/// Branches, most of which come to nothing, beyond this are refused.
const BRANCHES_MAX: u32 = 4_000;

/// Something that must hold.
#[derive(Clone, Debug)]
pub(super) enum Goal {
    /// A schema, or its negation.
    Literal(Literal),
    /// An atom of a schema, or its negation.
    Atom { node: NodeId, atom: u32, positive: bool },
    /// The object has the property.
    Present(NameId),
    /// The object does not have the property.
    Absent(NameId),
    /// The property, if it is there, satisfies the literal.
    Value(NameId, Literal),
    /// The object has at least so many properties.
    MinProperties(u32),
    /// The array has at least so many items.
    MinItems(u32),
    /// The array has at most so many items.
    MaxItems(u32),
    /// The item of the index satisfies the literal.
    Item(u32, Literal),
    /// So many items satisfy the literal.
    Count(Literal, u32, Option<u32>),
    /// The object has a key that cannot be named yet.
    Some(Box<SomeKey>),
}

/// Goals of which all must hold, if they are chosen.
pub(super) type Choice = SmallVec<[Goal; 2]>;

/// One of the choices must hold.
#[derive(Clone, Debug)]
pub(super) struct Disjunction {
    /// The schema and keyword that it comes from.
    pub(super) node: NodeId,
    pub(super) keyword: &'static str,
    pub(super) choices: Vec<Choice>,
}

/// What taking in a goal leaves to do.
#[derive(Default)]
pub(super) struct Next {
    pub(super) goals: Vec<Goal>,
    pub(super) open: Vec<Disjunction>,
}

/// What is known of the values of one JSON type.
pub(super) trait Term: Clone + Default {
    /// The type.
    const TYPES: Types;

    /// Takes in an atom of the type, or its negation. False: it contradicts what is known.
    fn assume(
        &mut self,
        at: (NodeId, u32),
        atom: &Atom,
        positive: bool,
        next: &mut Next,
        shaper: &mut Shaper<'_, '_>,
    ) -> Result<bool, SchemaError>;

    /// How much there is to copy, roughly, in steps.
    fn size(&self) -> u32 {
        0
    }

    /// Takes in a goal that is not a schema.
    fn take(&mut self, goal: &Goal) -> bool {
        let _ = goal;
        true
    }

    /// Keeps only these of the type's own subtypes.
    fn restrict(&mut self, types: Types) -> bool {
        types.meets(Self::TYPES)
    }

    /// Takes in a disjunction without branching, if it can.
    fn absorb(
        &mut self,
        open: &Disjunction,
        shaper: &mut Shaper<'_, '_>,
    ) -> Result<bool, SchemaError> {
        let _ = (open, shaper);
        Ok(false)
    }

    /// Whether no value can be left. Called when all goals are taken in.
    fn is_dead(&mut self, shaper: &mut Shaper<'_, '_>) -> Result<bool, SchemaError>;

    /// A choice that was put off until everything else is known.
    fn last(&mut self, shaper: &mut Shaper<'_, '_>) -> Result<Option<Disjunction>, SchemaError> {
        let _ = shaper;
        Ok(None)
    }
}

#[derive(Clone)]
struct Branch<T> {
    term: T,
    /// Next goal last.
    goals: Vec<Goal>,
    /// Next choice last.
    open: Vec<Disjunction>,
}

/// Expands a conjunction to terms. Values of `enum` and `const` make no terms: where they are
/// demanded, `candidates` gets the atom.
pub(super) fn expand<T: Term>(
    shaper: &mut Shaper<'_, '_>,
    conj: &Conj,
    candidates: &mut Vec<(NodeId, u32)>,
) -> Result<Vec<T>, SchemaError> {
    let goals = conj.literals().iter().rev().map(|&literal| Goal::Literal(literal)).collect();
    let mut stack = vec![Branch { term: T::default(), goals, open: Vec::new() }];
    let mut terms = Vec::new();
    let mut blame = None;
    let mut branches = 0_u32;
    while let Some(mut branch) = stack.pop() {
        branches += 1;
        shaper.fuel.spend(16 + 4 * branch.term.size())?;
        if !propagate(&mut branch, shaper, candidates, conj)? {
            continue;
        }
        let open = match branch.open.pop() {
            Some(open) => open,
            None => match branch.term.last(shaper)? {
                Some(open) => open,
                None => {
                    terms.push(branch.term);
                    match blame {
                        Some((node, keyword)) if terms.len() > ALTERNATIVES_MAX => {
                            let reason =
                                format!("leaves more than {ALTERNATIVES_MAX} alternatives");
                            return Err(shaper.graph.inexact(node, keyword, &reason));
                        }
                        _ => continue,
                    }
                }
            },
        };
        blame = Some((open.node, open.keyword));
        if branches > BRANCHES_MAX {
            let reason = format!("takes more than {BRANCHES_MAX} steps to take apart");
            return Err(shaper.graph.inexact(open.node, open.keyword, &reason));
        }
        let mut choices = open.choices.into_iter().rev();
        let Some(last) = choices.next() else { continue };
        let mut later = branch.clone();
        later.goals.extend(last.into_iter().rev());
        stack.push(later);
        for choice in choices {
            let mut other = branch.clone();
            other.goals.extend(choice.into_iter().rev());
            stack.push(other);
        }
    }
    Ok(terms)
}

/// Takes in all goals of a branch. False: nothing satisfies them.
fn propagate<T: Term>(
    branch: &mut Branch<T>,
    shaper: &mut Shaper<'_, '_>,
    candidates: &mut Vec<(NodeId, u32)>,
    conj: &Conj,
) -> Result<bool, SchemaError> {
    let mut next = Next::default();
    while let Some(goal) = branch.goals.pop() {
        shaper.fuel.spend(1)?;
        let alive = match goal {
            Goal::Literal(literal) => take_literal::<T>(literal, &mut next, shaper),
            Goal::Atom { node, atom, positive } => {
                let graph = shaper.graph;
                let Some(known) = graph.atoms(node).get(atom as usize) else { continue };
                match (known, positive) {
                    (Atom::Type(types), true) => branch.term.restrict(*types),
                    (Atom::Type(types), false) => branch.term.restrict(!*types),
                    (Atom::Enum(values), true) => {
                        if values.types.meets(T::TYPES) && !candidates.contains(&(node, atom)) {
                            candidates.push((node, atom));
                        }
                        false
                    }
                    (Atom::Enum(values), false) if !values.types.meets(T::TYPES) => true,
                    _ => {
                        match take_applicator::<T>(node, known, positive, &mut next, shaper, conj)?
                        {
                            Some(alive) => alive,
                            None => branch.term.assume(
                                (node, atom),
                                known,
                                positive,
                                &mut next,
                                shaper,
                            )?,
                        }
                    }
                }
            }
            ref other => branch.term.take(other),
        };
        if !alive {
            return Ok(false);
        }
        branch.goals.extend(next.goals.drain(..).rev());
        for mut open in next.open.drain(..) {
            match open.choices.len() {
                0 => return Ok(false),
                1 => branch.goals.extend(open.choices.swap_remove(0).into_iter().rev()),
                _ if branch.term.absorb(&open, shaper)? => {}
                _ => branch.open.insert(0, open),
            }
        }
    }
    Ok(!branch.term.is_dead(shaper)?)
}

fn take_literal<T: Term>(literal: Literal, next: &mut Next, shaper: &Shaper<'_, '_>) -> bool {
    let graph = shaper.graph;
    if !graph.upper(literal).meets(T::TYPES) {
        return false;
    }
    if graph.lower(literal).covers(T::TYPES) {
        return true;
    }
    let node = literal.node;
    let atoms = graph.atoms(node).iter().enumerate();
    let goals = atoms.filter(|(_, atom)| atom.domain().meets(T::TYPES)).map(|(at, _)| at as u32);
    let goal = |atom: u32, positive: bool| Goal::Atom { node, atom, positive };
    if literal.positive {
        next.goals.extend(goals.map(|atom| goal(atom, true)));
    } else {
        // Each choice with the atoms before it held: the choices exclude each other, so several
        // negations do not multiply.
        let atoms: Vec<u32> = goals.collect();
        let choices = atoms.iter().enumerate().map(|(index, &failed)| {
            let held = atoms.iter().take(index).map(|&atom| goal(atom, true));
            held.chain([goal(failed, false)]).collect()
        });
        next.open.push(Disjunction { node, keyword: "not", choices: choices.collect() });
    }
    true
}

/// Takes in an atom that applies schemas to the same value. `None`: it is not of this kind.
fn take_applicator<T: Term>(
    node: NodeId,
    atom: &Atom,
    positive: bool,
    next: &mut Next,
    shaper: &mut Shaper<'_, '_>,
    conj: &Conj,
) -> Result<Option<bool>, SchemaError> {
    let literal = |node: NodeId| Literal { node, positive };
    let keyword = atom.keyword();
    match (atom, positive) {
        (Atom::Not(inner), _) => next.goals.push(Goal::Literal(literal(*inner).negated())),
        (Atom::All(_, nodes), true) => {
            next.goals.extend(nodes.iter().map(|&node| Goal::Literal(literal(node))));
        }
        (Atom::Any(nodes), false) => {
            next.goals.extend(nodes.iter().map(|&node| Goal::Literal(literal(node))));
        }
        (Atom::All(_, nodes), false) => {
            next.open.extend(one_of_literals::<T>(node, keyword, nodes, false, shaper));
        }
        (Atom::Any(nodes), true) => {
            next.open.extend(one_of_literals::<T>(node, keyword, nodes, true, shaper));
        }
        (Atom::One(nodes), true) => {
            let choices = exactly_one::<T>(nodes, conj, shaper)?;
            next.open.push(Disjunction { node, keyword, choices });
        }
        (Atom::One(nodes), false) => {
            let choices = not_exactly_one(nodes);
            next.open.push(Disjunction { node, keyword, choices });
        }
        (Atom::If(condition), _) => {
            let test = Literal::yes(condition.test);
            let branches = [(test, condition.then), (test.negated(), condition.otherwise)];
            let choices = branches.into_iter().map(|(test, branch)| {
                Choice::from_iter([Goal::Literal(test), Goal::Literal(literal(branch))])
            });
            next.open.push(Disjunction { node, keyword, choices: choices.collect() });
        }
        _ => return Ok(None),
    }
    Ok(Some(true))
}

/// The disjunction of literals. `None`: one of them always holds for the type.
fn one_of_literals<T: Term>(
    node: NodeId,
    keyword: &'static str,
    nodes: &[NodeId],
    positive: bool,
    shaper: &Shaper<'_, '_>,
) -> Option<Disjunction> {
    let literals = nodes.iter().map(|&node| Literal { node, positive });
    let mut choices = Vec::with_capacity(nodes.len());
    for literal in literals {
        if shaper.graph.lower(literal).covers(T::TYPES) {
            return None;
        }
        if shaper.graph.upper(literal).meets(T::TYPES) {
            choices.push(Choice::from_iter([Goal::Literal(literal)]));
        }
    }
    Some(Disjunction { node, keyword, choices })
}

/// `oneOf`: each with the others failed, unless they cannot hold together anyway.
fn exactly_one<T: Term>(
    nodes: &[NodeId],
    conj: &Conj,
    shaper: &mut Shaper<'_, '_>,
) -> Result<Vec<Choice>, SchemaError> {
    let alive: Vec<NodeId> = nodes
        .iter()
        .copied()
        .filter(|&node| shaper.graph.node(node).upper.meets(T::TYPES))
        .collect();
    let apart = shaper.apart::<T>(&alive, conj)?;
    let mut choices = Vec::with_capacity(alive.len());
    for (index, &chosen) in alive.iter().enumerate() {
        let mut choice = Choice::from_iter([Goal::Literal(Literal::yes(chosen))]);
        for (other, &failed) in alive.iter().enumerate() {
            if other != index && !apart.contains(&(index.min(other), index.max(other))) {
                choice.push(Goal::Literal(Literal { node: failed, positive: false }));
            }
        }
        choices.push(choice);
    }
    Ok(choices)
}

/// Not `oneOf`: none, or two of them.
fn not_exactly_one(nodes: &[NodeId]) -> Vec<Choice> {
    let goal = |&node: &NodeId, positive| Goal::Literal(Literal { node, positive });
    let mut choices: Vec<Choice> = vec![nodes.iter().map(|node| goal(node, false)).collect()];
    for (index, first) in nodes.iter().enumerate() {
        for second in nodes.iter().skip(index + 1) {
            choices.push(Choice::from_iter([goal(first, true), goal(second, true)]));
        }
    }
    choices
}
