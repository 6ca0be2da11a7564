//! Stop strings over a growing text: nothing that could still become a stop is given out, and
//! nothing is lost.

/// Matches stop strings in text that arrives in pieces.
///
/// The answer does not depend on how the text was cut: the match that is complete first wins, and
/// of those that end at the same character the longest.
#[derive(Debug)]
pub struct StopMatcher {
    strings: Vec<String>,
    include_in_output: bool,
    /// Text that was not given out: the longest tail that is a proper prefix of some stop.
    held: String,
}

/// What became of a piece of text.
#[derive(Debug, PartialEq, Eq)]
pub enum Scan {
    /// No stop yet; this much of the text is certain.
    Text(String),
    /// A stop matched; this is the last of the text.
    Stopped {
        /// Text before the stop (through its end where it is to be included).
        text: String,
        /// The string that matched.
        stop: String,
    },
}

impl StopMatcher {
    /// A matcher for `strings`, none of them empty. `include_in_output`: the stop stays in the text.
    pub fn new(strings: Vec<String>, include_in_output: bool) -> Self {
        Self { strings, include_in_output, held: String::new() }
    }

    /// Takes more text.
    pub fn push(&mut self, text: &str) -> Scan {
        if self.strings.is_empty() {
            return Scan::Text(text.to_owned());
        }
        self.held.push_str(text);
        if let Some((start, end)) = self.first_match() {
            let stop = self.held[start..end].to_owned();
            self.held.truncate(if self.include_in_output { end } else { start });
            return Scan::Stopped { text: std::mem::take(&mut self.held), stop };
        }
        let certain = self.held.len() - self.longest_open_tail();
        let rest = self.held.split_off(certain);
        Scan::Text(std::mem::replace(&mut self.held, rest))
    }

    /// Whether all text was given out.
    pub fn is_idle(&self) -> bool {
        self.held.is_empty()
    }

    /// The end of the answer: what was held back is plain text.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// The match that ends first, as a byte range of `held`; the longest where several end there.
    fn first_match(&self) -> Option<(usize, usize)> {
        self.strings
            .iter()
            .filter_map(|stop| {
                self.held.find(stop.as_str()).map(|start| (start, start + stop.len()))
            })
            .min_by_key(|&(start, end)| (end, start))
    }

    /// Length in bytes of the longest tail of `held` that is a proper prefix of a stop.
    fn longest_open_tail(&self) -> usize {
        self.strings.iter().map(|stop| open_tail(&self.held, stop)).max().unwrap_or(0)
    }
}

fn open_tail(text: &str, stop: &str) -> usize {
    let longest = text.len().min(stop.len() - 1);
    (1..=longest)
        .rev()
        .find(|&length| {
            let tail = text.len() - length;
            text.is_char_boundary(tail) && stop.as_bytes().starts_with(&text.as_bytes()[tail..])
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(stops: &[&str], include: bool, pieces: &[&str]) -> (String, Option<String>) {
        let stops = stops.iter().map(ToString::to_string).collect();
        let mut matcher = StopMatcher::new(stops, include);
        let mut out = String::new();
        for piece in pieces {
            match matcher.push(piece) {
                Scan::Text(text) => out.push_str(&text),
                Scan::Stopped { text, stop } => {
                    out.push_str(&text);
                    return (out, Some(stop));
                }
            }
        }
        out.push_str(&matcher.finish());
        (out, None)
    }

    #[test]
    fn a_stop_across_pieces_is_found_and_cut() {
        let (text, stop) = run(&["END"], false, &["ok E", "N", "D more"]);
        assert_eq!((text.as_str(), stop.as_deref()), ("ok ", Some("END")));
    }

    #[test]
    fn a_tail_that_came_to_nothing_is_kept() {
        assert_eq!(run(&["END"], false, &["E", "N", "Dx".trim_start_matches('D')]).0, "ENx");
        assert_eq!(run(&["END"], false, &["finish EN"]).0, "finish EN");
    }

    #[test]
    fn the_stop_stays_when_asked() {
        let (text, _) = run(&["."], true, &["One. Two."]);
        assert_eq!(text, "One.");
    }

    #[test]
    fn of_two_stops_the_one_complete_first_wins() {
        let (text, stop) = run(&["abcdef", "cd"], false, &["abcdef"]);
        assert_eq!((text.as_str(), stop.as_deref()), ("ab", Some("cd")));
    }

    #[test]
    fn overlapping_restarts_are_held() {
        let (text, stop) = run(&["aab"], false, &["a", "a", "a", "b"]);
        assert_eq!((text.as_str(), stop.as_deref()), ("a", Some("aab")));
    }

    proptest! {
        #[test]
        fn every_chunking_gives_the_same(
            text in "[ab🙂.]{0,24}",
            stops in proptest::collection::vec("[ab🙂.]{1,4}", 0..4),
            cuts in proptest::collection::vec(0usize..25, 0..6),
            include in any::<bool>(),
        ) {
            let stops: Vec<&str> = stops.iter().map(String::as_str).collect();
            let chars: Vec<String> = text.chars().map(String::from).collect();
            let one_by_one: Vec<&str> = chars.iter().map(String::as_str).collect();
            let expected = run(&stops, include, &one_by_one);

            let mut cuts: Vec<usize> = cuts.into_iter().filter(|&cut| text.is_char_boundary(cut) && cut <= text.len()).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            prop_assert_eq!(run(&stops, include, &pieces), expected.clone());
            if expected.1.is_none() {
                prop_assert_eq!(expected.0, text);
            }
        }
    }
}
