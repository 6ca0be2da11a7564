//! The headers of messages.

use super::call::Call;
use super::machine::{Machine, Mode, State};
use crate::chat::format::Channels;

/// Longest header, in bytes. Real ones stay below 100.
const HEADER_MAX: usize = 256;

/// A header as it is read: `<|start|>assistant<|channel|>analysis`.
#[derive(Clone, Debug)]
pub(super) struct Header {
    text: String,
}

impl Header {
    pub(super) fn new(start: &str) -> Self {
        Self { text: start.to_owned() }
    }
}

/// What a header says about its message.
enum Reading<'a> {
    Reasoning,
    Content,
    /// For the function of this name.
    Function(&'a str),
}

impl Machine {
    pub(super) fn header_letter(&mut self, mut header: Header, letter: char) {
        header.text.push(letter);
        let format = std::sync::Arc::clone(&self.format);
        let Some(channels) = &format.channels else { return };
        if let Some(read) = header.text.strip_suffix(channels.message.as_ref()) {
            self.open_message(channels, read, &header.text);
        } else if channels.ends.iter().any(|end| header.text.ends_with(end.as_ref())) {
            self.set_mode(Mode::Content);
        } else if header.text.len() > HEADER_MAX {
            self.write(&header.text, header.text.len());
        } else {
            self.state = State::Header(header);
        }
    }

    /// Starts the message of a header.
    fn open_message(&mut self, channels: &Channels, header: &str, whole: &str) {
        match read_header(channels, header) {
            Reading::Reasoning if self.options.separate_reasoning => {
                self.set_mode(Mode::Reasoning);
            }
            Reading::Reasoning | Reading::Content => self.set_mode(Mode::Content),
            Reading::Function(name) if self.options.tools.contains(name) => {
                self.set_mode(Mode::Content);
                let index = self.begin_call(name, None, None);
                if let Some(call) = Call::of_header(&self.format, index, name) {
                    self.state = State::Call(Box::new(call));
                }
            }
            Reading::Function(_) => {
                self.set_mode(Mode::Content);
                self.write(whole, whole.len());
            }
        }
    }

    /// The text ended in a header. Framing is dropped; a text without any channel is an answer that
    /// came without its header.
    pub(super) fn finish_header(&mut self, header: &Header) {
        let generated = self.options.prefill.len().saturating_sub(self.position(&header.text));
        let Some(text) = header.text.get(generated..) else { return };
        let framed = self.format.channels.as_ref().is_some_and(|channels| {
            channels.starts.iter().any(|start| text.contains(start.as_ref()))
                || channels.starts.iter().chain([&channels.message]).any(|marker| {
                    let text = text.trim_start();
                    !text.is_empty() && marker.starts_with(text)
                })
        });
        if !framed {
            self.write(&header.text, header.text.len());
        }
    }
}

fn read_header<'a>(channels: &Channels, header: &'a str) -> Reading<'a> {
    if !channels.recipient.is_empty()
        && let Some((_, rest)) = header.rsplit_once(channels.recipient.as_ref())
    {
        let end = rest.find(|letter: char| letter.is_whitespace() || letter == '<');
        return Reading::Function(rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest));
    }
    // A stray channel before the real one does not count: the last word decides.
    let last = channels
        .words
        .iter()
        .filter_map(|word| Some((header.rfind(word.as_ref())?, word)))
        .max_by_key(|(at, _)| *at);
    match last {
        Some((_, word)) if *word == channels.reasoning => Reading::Reasoning,
        _ => Reading::Content,
    }
}
