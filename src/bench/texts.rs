//! The texts that workloads are made of. Short words of everyday English, about one token each.

/// Questions for short answers.
pub(super) const QUESTIONS: [&str; 16] = [
    "Why is the sky blue?",
    "Write two sentences about the sea.",
    "What should I pack for a week in the mountains?",
    "Explain to a child how a bicycle stays upright.",
    "Give me three ideas for a quick dinner.",
    "What is the difference between a lake and a pond?",
    "How do I keep my plants alive in winter?",
    "Describe a busy market in the morning.",
    "Why do cats purr?",
    "Write a short poem about rain.",
    "How does a refrigerator work?",
    "What makes bread rise?",
    "Tell me about the history of paper.",
    "How can I learn to play chess?",
    "Why do leaves turn red in autumn?",
    "Describe your favourite season.",
];

const SUBJECTS: [&str; 8] = [
    "The clerk",
    "A guest",
    "The driver",
    "Our team",
    "The cook",
    "A child",
    "The guard",
    "My friend",
];
const VERBS: [&str; 8] =
    ["reads", "brings", "checks", "counts", "moves", "keeps", "finds", "writes down"];
const OBJECTS: [&str; 8] =
    ["the list", "a box", "the keys", "every letter", "two bags", "the map", "a coat", "the time"];
const ENDS: [&str; 8] = [
    "before noon",
    "at the gate",
    "with great care",
    "on the first day",
    "in the hall",
    "after the meal",
    "for the others",
    "without delay",
];

/// A text of `words` words or a few more, about as many tokens and a quarter; another one for each
/// `seed`, from its first word on.
pub fn long_text(seed: u64, words: usize) -> String {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut text = format!("Report {seed}.");
    let mut count = 2;
    while count < words {
        let parts = [&SUBJECTS, &VERBS, &OBJECTS, &ENDS];
        let sentence = parts.map(|words| words[rng.usize(..words.len())]).join(" ");
        count += sentence.split(' ').count();
        text.push(' ');
        text.push_str(&sentence);
        text.push('.');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_have_their_length_and_differ() {
        for words in [10, 800] {
            let text = long_text(3, words);
            let found = text.split(' ').count();
            assert!(found >= words && found < words + 16, "{found} for {words}");
            assert_eq!(text, long_text(3, words));
        }
        assert_ne!(long_text(1, 50)[..9], long_text(2, 50)[..9]);
    }
}
