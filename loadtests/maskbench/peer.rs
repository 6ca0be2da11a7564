//! llguidance, used as its own benchmark uses it.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use pleach::TokenId;
use pleach::vocab::{TokenKind, Vocabulary};
use toktrie::{ApproximateTokEnv, SimpleVob, TokEnv, TokRxInfo, TokTrie};

use super::{Case, Engine, Follower};

/// The engine and the grammar it has compiled last.
pub struct Llguidance {
    factory: ParserFactory,
    matcher: Option<Matcher>,
    case: Option<Case>,
}

impl Llguidance {
    pub fn new(vocabulary: &Vocabulary) -> Result<Self, String> {
        let end = vocabulary.end_tokens().first().copied().unwrap_or(0);
        let info = TokRxInfo::new(vocabulary.len() as u32, end);
        let words: Vec<Vec<u8>> = (0..vocabulary.len() as TokenId)
            .map(|id| match vocabulary.get(id) {
                Some(token) if token.kind == TokenKind::Text => token.bytes.clone(),
                Some(token) => [&[TokTrie::SPECIAL_TOKEN_MARKER], &*token.bytes].concat(),
                None => Vec::new(),
            })
            .collect();
        let tokens: TokEnv = Arc::new(ApproximateTokEnv::new(TokTrie::from(&info, &words)));
        let mut factory = ParserFactory::new_simple(&tokens).map_err(|error| error.to_string())?;
        factory.quiet();
        Ok(Self { factory, matcher: None, case: None })
    }

    fn build(&self, case: &Case) -> Result<Matcher, String> {
        let grammar = match (&case.lark, &case.schema) {
            (Some(lark), _) => TopLevelGrammar::from_lark(lark.clone()),
            (None, Some(schema)) => {
                let schema = serde_json::from_str(schema).map_err(|error| error.to_string())?;
                TopLevelGrammar::from_json_schema(schema)
            }
            (None, None) => return Err("neither Lark nor a schema is given".to_owned()),
        };
        let mut matcher = Matcher::new(self.factory.create_parser(grammar));
        match matcher.compute_mask() {
            Ok(_) => Ok(matcher),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Engine for Llguidance {
    fn forget(&mut self) {
        self.matcher = None;
    }

    fn compile(&mut self, case: &Case) -> Result<(), String> {
        self.matcher = Some(self.build(case)?);
        self.case = Some(case.clone());
        Ok(())
    }

    fn start(&mut self, cold: bool) -> Result<Box<dyn Follower + '_>, String> {
        let matcher = match (&self.matcher, &self.case) {
            (Some(_), Some(case)) if cold => self.build(case)?,
            // A clone shares what the lexer has learnt, to the peer's advantage.
            (Some(matcher), _) => matcher.clone(),
            (None, _) => return Err("nothing is compiled".to_owned()),
        };
        Ok(Box::new(PeerFollower { matcher, mask: None }))
    }
}

struct PeerFollower {
    matcher: Matcher,
    mask: Option<SimpleVob>,
}

impl Follower for PeerFollower {
    fn mask(&mut self) -> bool {
        self.mask = self.matcher.compute_mask().ok();
        self.mask.is_some()
    }

    fn allows(&self, token: TokenId) -> bool {
        self.mask.as_ref().is_some_and(|mask| mask.is_allowed(token))
    }

    fn accept(&mut self, token: TokenId) -> bool {
        self.matcher.consume_token(token).is_ok()
    }

    fn is_complete(&mut self) -> bool {
        self.matcher.is_accepting().unwrap_or(false)
    }
}
