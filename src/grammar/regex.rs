//! Regular expressions, by the parser of the `regex` crate.
//!
//! The whole answer must match. `^` and `$` are exact wherever they stand; what looks around
//! further (`\b`, look-ahead, look-behind, back-references) is refused.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

use super::error::GrammarError;
use super::expr::{CharSet, ExprId, ExprPool};

/// Groups within groups.
const NEST_MAX: u32 = 200;

/// The expression for all of a text to match a pattern.
pub(crate) fn lower(pool: &mut ExprPool, pattern: &str) -> Result<ExprId, GrammarError> {
    let hir = ParserBuilder::new().nest_limit(NEST_MAX).build().parse(pattern).map_err(error)?;
    let place = Place { at_start: true, at_end: true };
    if hir.properties().look_set().is_empty() {
        return plain(pool, &hir);
    }
    let parts = with_looks(pool, &hir, place)?;
    Ok(parts.whole(pool))
}

fn error(error: regex_syntax::Error) -> GrammarError {
    let kind = match &error {
        regex_syntax::Error::Parse(error) => {
            use regex_syntax::ast::ErrorKind;
            match error.kind() {
                ErrorKind::UnsupportedLookAround => {
                    return GrammarError::RegexUnsupported { feature: "look-ahead or look-behind" };
                }
                ErrorKind::UnsupportedBackreference => {
                    return GrammarError::RegexUnsupported { feature: "a back-reference" };
                }
                kind => format!("{kind} at character {}", error.span().start.column),
            }
        }
        regex_syntax::Error::Translate(error) => {
            format!("{} at character {}", error.kind(), error.span().start.column)
        }
        other => other.to_string(),
    };
    GrammarError::RegexSyntax { message: kind }
}

/// Lowers what holds no `^` or `$`.
fn plain(pool: &mut ExprPool, hir: &Hir) -> Result<ExprId, GrammarError> {
    match hir.kind() {
        HirKind::Empty => Ok(ExprPool::EMPTY),
        HirKind::Literal(literal) => Ok(pool.literal(&literal.0)),
        HirKind::Class(class) => Ok(lower_class(pool, class)),
        HirKind::Look(look) => Err(unsupported_look(*look)),
        HirKind::Capture(capture) => plain(pool, &capture.sub),
        HirKind::Repetition(repetition) => {
            let body = plain(pool, &repetition.sub)?;
            Ok(pool.repeat(body, repetition.min, repetition.max))
        }
        HirKind::Concat(parts) => {
            let parts: Vec<ExprId> =
                parts.iter().map(|part| plain(pool, part)).collect::<Result<_, _>>()?;
            Ok(pool.seq(&parts))
        }
        HirKind::Alternation(choices) => {
            let choices: Vec<ExprId> =
                choices.iter().map(|choice| plain(pool, choice)).collect::<Result<_, _>>()?;
            Ok(pool.alt(&choices))
        }
    }
}

fn lower_class(pool: &mut ExprPool, class: &Class) -> ExprId {
    match class {
        Class::Unicode(class) => {
            let ranges = class.ranges().iter();
            pool.chars(CharSet::new(ranges.map(|range| (range.start().into(), range.end().into()))))
        }
        Class::Bytes(class) => {
            let bytes: Vec<ExprId> =
                class.ranges().iter().map(|range| pool.byte(range.start(), range.end())).collect();
            pool.alt(&bytes)
        }
    }
}

/// Where in the answer an expression stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Nothing comes before it.
    at_start: bool,
    /// Nothing comes after it.
    at_end: bool,
}

/// What an expression matches in one place, the empty text told apart from the rest: whether
/// something stands at the start or end depends on which of its neighbours are empty.
#[derive(Clone, Copy, Debug)]
struct Parts {
    is_nullable: bool,
    not_empty: ExprId,
}

impl Parts {
    fn whole(self, pool: &mut ExprPool) -> ExprId {
        if self.is_nullable { pool.optional(self.not_empty) } else { self.not_empty }
    }
}

fn with_looks(pool: &mut ExprPool, hir: &Hir, place: Place) -> Result<Parts, GrammarError> {
    match hir.kind() {
        HirKind::Look(Look::Start) => {
            Ok(Parts { is_nullable: place.at_start, not_empty: ExprPool::NEVER })
        }
        HirKind::Look(Look::End) => {
            Ok(Parts { is_nullable: place.at_end, not_empty: ExprPool::NEVER })
        }
        HirKind::Look(look) => Err(unsupported_look(*look)),
        HirKind::Capture(capture) => with_looks(pool, &capture.sub, place),
        HirKind::Concat(parts) => concat(pool, parts, place),
        HirKind::Alternation(choices) => {
            let mut is_nullable = false;
            let mut not_empty = Vec::with_capacity(choices.len());
            for choice in choices {
                let parts = with_looks(pool, choice, place)?;
                is_nullable |= parts.is_nullable;
                not_empty.push(parts.not_empty);
            }
            Ok(Parts { is_nullable, not_empty: pool.alt(&not_empty) })
        }
        HirKind::Repetition(repetition) if hir.properties().look_set().is_empty() => {
            let is_nullable = hir.properties().minimum_len() == Some(0);
            let body = plain(pool, &repetition.sub)?;
            let min = if is_nullable { 0 } else { repetition.min };
            let whole = pool.repeat(body, min, repetition.max);
            // Matching the empty text too does no harm here: `is_nullable` says the same.
            Ok(Parts { is_nullable, not_empty: whole })
        }
        HirKind::Repetition(repetition) if repetition.max == Some(1) => {
            let mut parts = with_looks(pool, &repetition.sub, place)?;
            parts.is_nullable |= repetition.min == 0;
            Ok(parts)
        }
        HirKind::Repetition(_) => {
            Err(GrammarError::RegexUnsupported { feature: "`^` or `$` inside a repetition" })
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => {
            let not_empty = plain(pool, hir)?;
            let is_nullable = matches!(hir.kind(), HirKind::Empty);
            let not_empty = if is_nullable { ExprPool::NEVER } else { not_empty };
            Ok(Parts { is_nullable, not_empty })
        }
    }
}

/// One after the other. In turn each side may be empty, which moves the other to the edge.
fn concat(pool: &mut ExprPool, parts: &[Hir], place: Place) -> Result<Parts, GrammarError> {
    let Some((first, rest)) = parts.split_first() else {
        return Ok(Parts { is_nullable: true, not_empty: ExprPool::NEVER });
    };
    if rest.is_empty() {
        return with_looks(pool, first, place);
    }
    let looks = |hir: &Hir| !hir.properties().look_set().is_empty();
    if !rest.iter().any(looks) && !looks(first) {
        let whole = Hir::concat(parts.to_vec());
        let is_nullable = whole.properties().minimum_len() == Some(0);
        return Ok(Parts { is_nullable, not_empty: plain(pool, &whole)? });
    }
    let inner_first = with_looks(pool, first, Place { at_end: false, ..place })?;
    let only_first = with_looks(pool, first, place)?;
    let only_rest = concat(pool, rest, place)?;
    // Asked only where it differs, or the work would double with each part.
    let inner_rest = match place.at_start {
        true => concat(pool, rest, Place { at_start: false, ..place })?,
        false => only_rest,
    };
    let both = pool.seq(&[inner_first.not_empty, inner_rest.not_empty]);
    let mut choices = vec![both];
    if inner_rest.is_nullable {
        choices.push(only_first.not_empty);
    }
    if inner_first.is_nullable {
        choices.push(only_rest.not_empty);
    }
    let is_nullable = only_first.is_nullable && only_rest.is_nullable;
    Ok(Parts { is_nullable, not_empty: pool.alt(&choices) })
}

fn unsupported_look(look: Look) -> GrammarError {
    let feature = match look {
        Look::Start | Look::End => "`^` or `$` in this place",
        Look::StartLF | Look::EndLF | Look::StartCRLF | Look::EndCRLF => {
            "multi-line `^` or `$` (the flag `m`)"
        }
        _ => "a word boundary (`\\b` or the like)",
    };
    GrammarError::RegexUnsupported { feature }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pattern: &str) -> Result<ExprId, GrammarError> {
        lower(&mut ExprPool::new(), pattern)
    }

    fn unsupported(pattern: &str) -> bool {
        matches!(parse(pattern), Err(GrammarError::RegexUnsupported { .. }))
    }

    #[test]
    fn what_looks_around_is_refused_by_name() {
        assert!(
            ["(?=a)a", "(?<!a)b", r"(a)\1", r"\bword\b", "(?m)^a$", "(^a|b)+"]
                .into_iter()
                .all(unsupported)
        );
    }

    #[test]
    fn a_broken_pattern_says_where() {
        let error = parse("ab(c").map(|_| ()).map_err(|error| error.to_string());
        let error = error.err().unwrap_or_default();
        assert!(error.contains("unclosed group at character 3"), "{error}");
    }

    #[test]
    fn many_anchors_take_no_time() {
        let pattern = format!("({})$", "a?^b?".repeat(150));
        assert!(parse(&pattern).is_ok());
    }
}
