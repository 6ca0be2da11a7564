//! Conjunctions of schemas: what a value has to satisfy at one place.

use smallvec::SmallVec;

/// A schema of a [`Document`](super::Document). Schemas that say the same have the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(super) u32);

impl NodeId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A schema that must hold, or must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Literal {
    /// The schema.
    pub node: NodeId,
    /// Whether it must hold (true) or must fail.
    pub positive: bool,
}

impl Literal {
    /// The schema must hold.
    pub fn yes(node: NodeId) -> Self {
        Self { node, positive: true }
    }

    /// The opposite demand.
    pub fn negated(self) -> Self {
        Self { node: self.node, positive: !self.positive }
    }
}

/// Literals that must all hold: sorted, distinct, none that always holds. One that can never
/// hold is kept alone. Cheap to hash; up to two take no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Conj(pub(super) SmallVec<[Literal; 2]>);

impl Conj {
    /// The empty conjunction, which every value satisfies.
    pub fn any() -> Self {
        Self::default()
    }

    /// Whether every value satisfies it.
    pub fn is_any(&self) -> bool {
        self.0.is_empty()
    }

    /// What must hold.
    pub fn literals(&self) -> &[Literal] {
        &self.0
    }
}
