//! The tokens of a vocabulary as a tree over their bytes, flat in memory in walking order.

use crate::TokenId;

/// Marks a node at which no token ends.
pub(crate) const NO_TOKEN: TokenId = TokenId::MAX;

/// One byte of one or more tokens. A node's first child follows it directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrieNode {
    /// Index of the first node that is not below this one.
    pub(crate) skip: u32,
    /// Token that ends here.
    pub(crate) token: TokenId,
    /// Bytes before this one.
    pub(crate) depth: u16,
    pub(crate) byte: u8,
    /// Bytes by which the longest token below goes on after this one; 255: as many or more.
    pub(crate) height: u8,
}

/// A tree of tokens. A walk goes through `nodes` from the front and jumps to `skip` wherever
/// it need not look below.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trie {
    nodes: Box<[TrieNode]>,
    depth_max: usize,
}

/// Bytes of a token from which on it is left out: no tokenizer has such, and depths are `u16`.
pub(crate) const TOKEN_BYTES_MAX: usize = 4_096;

impl Trie {
    /// The tree of `tokens`, sorted by their bytes, distinct, none empty or too long.
    pub(crate) fn new(tokens: &[(&[u8], TokenId)]) -> Self {
        let mut nodes: Vec<TrieNode> = Vec::new();
        let mut path: Vec<u32> = Vec::new();
        let mut previous: &[u8] = &[];
        for &(bytes, token) in tokens {
            let shared = previous.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            close(&mut nodes, &mut path, shared);
            for (depth, &byte) in bytes.iter().enumerate().skip(shared) {
                path.push(nodes.len() as u32);
                nodes.push(TrieNode {
                    skip: 0,
                    token: NO_TOKEN,
                    depth: depth as u16,
                    byte,
                    height: 0,
                });
            }
            if let Some(last) = path.last() {
                nodes[*last as usize].token = token;
            }
            previous = bytes;
        }
        close(&mut nodes, &mut path, 0);
        Self::from_nodes(nodes)
    }

    fn from_nodes(nodes: Vec<TrieNode>) -> Self {
        let depth_max = nodes.iter().map(|node| usize::from(node.depth) + 1).max().unwrap_or(0);
        Self { nodes: nodes.into(), depth_max }
    }

    /// The nodes, in walking order.
    #[inline]
    pub(crate) fn nodes(&self) -> &[TrieNode] {
        &self.nodes
    }

    /// Bytes of the longest token.
    pub(crate) fn depth_max(&self) -> usize {
        self.depth_max
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.len() * size_of::<TrieNode>()
    }

    /// The same tree with only the tokens for which `is_kept` holds.
    pub(crate) fn filter(&self, is_kept: impl Fn(TokenId) -> bool) -> Self {
        let mut nodes: Vec<TrieNode> = Vec::new();
        let mut path: Vec<u32> = Vec::new();
        // The originals from the root to the current node; `path` has copies of the first of them.
        let mut way: Vec<TrieNode> = Vec::new();
        for node in &self.nodes {
            let depth = usize::from(node.depth);
            way.truncate(depth);
            way.push(*node);
            if path.len() > depth {
                close(&mut nodes, &mut path, depth);
            }
            if node.token == NO_TOKEN || !is_kept(node.token) {
                continue;
            }
            for original in &way[path.len()..] {
                path.push(nodes.len() as u32);
                nodes.push(TrieNode { token: NO_TOKEN, height: 0, ..*original });
            }
            if let Some(last) = path.last() {
                nodes[*last as usize].token = node.token;
            }
        }
        close(&mut nodes, &mut path, 0);
        Self::from_nodes(nodes)
    }

    /// The children of the node at `index`, or of the root.
    pub(crate) fn children(&self, index: Option<u32>) -> impl Iterator<Item = (u32, &TrieNode)> {
        let (mut next, end) = match index {
            None => (0, self.nodes.len() as u32),
            Some(index) => (index + 1, self.nodes[index as usize].skip),
        };
        std::iter::from_fn(move || {
            let index = next;
            let node = (index < end).then(|| &self.nodes[index as usize])?;
            next = node.skip;
            Some((index, node))
        })
    }

    /// The node that `bytes` lead to from the root.
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<u32> {
        let mut at = None;
        for &byte in bytes {
            at = Some(self.children(at).find(|(_, node)| node.byte == byte)?.0);
        }
        at
    }

    /// The tokens that end at the node at `index` or below it.
    pub(crate) fn tokens_from(&self, index: u32) -> impl Iterator<Item = TokenId> + '_ {
        let end = self.nodes.get(index as usize).map_or(index, |node| node.skip);
        let nodes = self.nodes.get(index as usize..end as usize).unwrap_or_default();
        nodes.iter().map(|node| node.token).filter(|&token| token != NO_TOKEN)
    }

    /// The token that ends at the node at `index`.
    pub(crate) fn token_at(&self, index: u32) -> Option<TokenId> {
        self.nodes.get(index as usize).map(|node| node.token).filter(|&token| token != NO_TOKEN)
    }
}

/// Closes the open nodes from `depth` on: nothing more comes below them.
fn close(nodes: &mut [TrieNode], path: &mut Vec<u32>, depth: usize) {
    let end = nodes.len() as u32;
    while path.len() > depth {
        let Some(index) = path.pop() else { return };
        nodes[index as usize].skip = end;
        let height = nodes[index as usize].height.saturating_add(1);
        if let Some(&parent) = path.last() {
            let parent = &mut nodes[parent as usize];
            parent.height = parent.height.max(height);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(trie: &Trie) -> Vec<(Vec<u8>, TokenId)> {
        let mut bytes = Vec::new();
        let mut found = Vec::new();
        for node in trie.nodes() {
            bytes.truncate(usize::from(node.depth));
            bytes.push(node.byte);
            if node.token != NO_TOKEN {
                found.push((bytes.clone(), node.token));
            }
        }
        found
    }

    const TOKENS: [(&[u8], TokenId); 6] =
        [(b"a", 3), (b"ab", 1), (b"abcd", 0), (b"abd", 7), (b"b", 5), (b"ba", 2)];

    #[test]
    fn every_token_is_found_where_its_bytes_lead() {
        let trie = Trie::new(&TOKENS);
        assert!(TOKENS.iter().all(|(bytes, token)| {
            trie.find(bytes).and_then(|node| trie.token_at(node)) == Some(*token)
        }));
        assert_eq!(trie.find(b"abc").and_then(|node| trie.token_at(node)), None);
        assert_eq!(trie.find(b"c"), None);
        assert_eq!(trie.depth_max(), 4);
    }

    #[test]
    fn a_filter_keeps_just_what_it_says() {
        let kept = Trie::new(&TOKENS).filter(|token| token % 2 == 1);
        let expected: Vec<(&[u8], TokenId)> =
            TOKENS.into_iter().filter(|(_, token)| token % 2 == 1).collect();
        let again = Trie::new(&expected);
        assert_eq!(tokens(&kept), tokens(&again));
        assert_eq!(kept.nodes(), again.nodes());
    }
}
