//! The formats that are known: tables, a file for each way of writing calls.
//!
//! A format is one [`Family`] in one of these files and one row in `tests/chat_examples.rs`. What
//! the fields mean for parser and grammar stands at [`crate::chat::format`].

mod bare;
mod channels;
mod enveloped;
mod named;
mod parameters;
mod plain;
mod python;

use super::detect::Evidence;
use super::format::{ChatFormat, Member, Piece, Place, Reasoning, ReasoningMode, Text};

/// A known format and what it is known by.
pub struct Family {
    /// Unique name, by which a config file or a command can ask for it.
    pub name: &'static str,
    /// Place in the order of questions: what is more specific is asked first.
    pub rank: u16,
    /// Each is enough, in the template's source and what it renders.
    pub signs: &'static [Sign],
    /// Each is enough, as one token of the vocabulary: for markers that no template prints.
    pub tokens: &'static [&'static str],
    /// The format. Its reasoning stays only where there is evidence of it.
    pub build: fn(&Evidence) -> ChatFormat,
}

/// Texts that together tell a format.
pub struct Sign {
    /// All must be there.
    pub all: &'static [&'static str],
    /// None may be there.
    pub none: &'static [&'static str],
}

/// Every family, most specific first.
pub fn families() -> Vec<&'static Family> {
    let mut families: Vec<&'static Family> = [
        bare::FAMILIES,
        channels::FAMILIES,
        enveloped::FAMILIES,
        named::FAMILIES,
        parameters::FAMILIES,
        plain::FAMILIES,
        python::FAMILIES,
    ]
    .into_iter()
    .flatten()
    .collect();
    families.sort_by_key(|family| family.rank);
    families
}

/// The format of this name, with its reasoning: for who knows what the model writes.
pub fn named(name: &str) -> Option<ChatFormat> {
    let family = families().into_iter().find(|family| family.name == name)?;
    Some((family.build)(&Evidence::none()))
}

const fn sign(all: &'static [&'static str]) -> Sign {
    Sign { all, none: &[] }
}

const fn sign_without(all: &'static [&'static str], none: &'static [&'static str]) -> Sign {
    Sign { all, none }
}

fn texts(list: &[&'static str]) -> Vec<Text> {
    list.iter().copied().map(Text::Borrowed).collect()
}

/// A format of this kind without reasoning or calls.
fn format(kind: &'static str) -> ChatFormat {
    ChatFormat { kind: Text::Borrowed(kind), ..ChatFormat::content_only() }
}

/// Reasoning in markers that are prose in the middle of content.
fn tags(open: &'static str, close: &'static str, gaps: [&'static str; 3]) -> Reasoning {
    let [gap_after_open, gap_before_close, gap_after] = gaps.map(Text::Borrowed);
    Reasoning {
        mode: ReasoningMode::Tags,
        open: Text::Borrowed(open),
        gap_after_open,
        gap_before_close,
        close: Text::Borrowed(close),
        gap_after,
        place: Place::Start,
    }
}

/// `<think>` and `</think>` on lines of their own.
fn think_lines() -> Option<Reasoning> {
    Some(tags("<think>", "</think>", ["\n", "\n", "\n\n"]))
}

/// `<think>` and `</think>` right around the text.
fn think() -> Option<Reasoning> {
    Some(tags("<think>", "</think>", ["", "", ""]))
}

/// Reasoning in markers that count wherever they stand.
fn special(
    open: &'static str,
    close: &'static str,
    gap_after_open: &'static str,
) -> Option<Reasoning> {
    Some(Reasoning { place: Place::Anywhere, ..tags(open, close, [gap_after_open, "", ""]) })
}

/// `{"name": …, "arguments": …}`; `parameters` is understood as well.
fn name_and_arguments() -> Piece {
    Piece::envelope(&[(Member::Name, &["name"]), (Member::Arguments, &["arguments", "parameters"])])
}

/// As [`name_and_arguments`], with an id at the end.
fn name_arguments_and_id() -> Piece {
    Piece::envelope(&[
        (Member::Name, &["name"]),
        (Member::Arguments, &["arguments", "parameters"]),
        (Member::Id, &["id"]),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::format::{Envelope, Marker};
    use super::*;

    #[test]
    fn names_and_ranks_are_unique() {
        let all = families();
        for (index, family) in all.iter().enumerate() {
            for other in all.iter().skip(index + 1) {
                assert_ne!(family.name, other.name);
                assert_ne!(family.rank, other.rank, "{} and {}", family.name, other.name);
            }
        }
    }

    #[test]
    fn every_call_can_be_told_from_text() {
        for family in families() {
            let format = (family.build)(&Evidence::none());
            let Some(tools) = format.tools else { continue };
            let named = matches!(tools.call.first(), Some(Piece::Name));
            assert!(
                tools.place == Place::Anywhere || named || tools.trigger().len() < 20,
                "{}",
                family.name
            );
            assert!(!tools.trigger().is_empty() || named, "{}", family.name);
            let names = tools.call.iter().any(|piece| match piece {
                Piece::Name => true,
                Piece::Envelope(Envelope::NameIsKey) => true,
                Piece::Envelope(Envelope::Members(members)) => {
                    members.iter().any(|Marker { member, .. }| *member == Member::Name)
                }
                _ => false,
            });
            assert!(names, "{}", family.name);
        }
    }
}
