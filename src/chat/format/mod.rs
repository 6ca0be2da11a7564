//! What a chat format is: data, from which the parser and the grammar are both read.
//!
//! # How the parser reads it
//!
//! [`crate::chat::parse`] walks a text with one state machine. Outside of calls it looks for the
//! markers of [`Reasoning`], for [`ChatFormat::content_marks`] and for the first text of a call;
//! within a call it goes through the pieces of [`ToolSyntax`] in order. A run of whitespace in a
//! text stands for any run of whitespace, also none, and whitespace between pieces is skipped: so
//! models that write a newline more or less are understood.
//!
//! # How a grammar is read from it
//!
//! Texts are canonical: a grammar takes them letter by letter.
//!
//! ```text
//! answer    = reasoning? body
//! reasoning = open gap_after_open  free text without `close`  gap_before_close close gap_after
//! body      = free text, in which `trigger` starts calls       (tool_choice: auto)
//!           | calls                                            (required, named)
//! calls     = open call (between call)* close                  (open.is_empty(): a block a call)
//! call      = its pieces, one after the other
//! ```
//!
//! * Where the prompt has opened the reasoning ([`ChatFormat::prefill`]), `open` is there already;
//!   a grammar therefore starts on `prefill + text`. [`ReasoningMode::Forced`] makes reasoning
//!   part of every answer.
//! * The trigger of free text is [`ToolSyntax::trigger`]. With [`Place::Start`] a call can only
//!   stand at the start of the answer, so free text is what does not start with the trigger.
//! * One call at most (`parallel_tool_calls: false`) leaves `(between call)*` out.
//! * [`Piece::OneOf`] is its first text; the others are what models also write.
//! * [`Piece::Name`] is a tool's name, and the rest of the call follows that tool's schema.
//! * [`Piece::Arguments`] is the tool's schema in an [`ArgumentSyntax`]; [`Piece::Envelope`] is a
//!   JSON object with the members of [`Envelope`] in the order given there.
//! * [`Parameters`] are blocks of texts around a name and a value. Which values are JSON and which are
//!   plain text the schema's type decides, or the type that the block names. A plain text ends where
//!   `close` is followed by what may follow a value, so a grammar keeps `close` out of it.
//! * [`ToolSyntax::arguments_sorted`] asks for the properties in alphabetical order, everything
//!   else for the order of the schema.
//! * With [`Channels`] an answer is a sequence of messages, each with a header, between which stand
//!   one of [`Channels::ends`] and [`Channels::next`]. The headers of reasoning and content are in
//!   there. Where [`ToolSyntax::open`] is empty a call is a message, header included; otherwise
//!   (Muse) the block stands in the content of one.

mod markers;
mod pieces;
mod stops;
mod write;

pub use pieces::{ArgumentSyntax, Envelope, Marker, Member, Parameters, Piece, Typing, Wrapping};
pub(crate) use stops::turn_end;

use std::borrow::Cow;

/// A text of a format. Formats that a model's own files describe bring owned ones.
pub type Text = Cow<'static, str>;

/// How a model writes reasoning, content and tool calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatFormat {
    /// Name of the format, as in `hermes_json`.
    pub kind: Text,
    /// The markers of reasoning; none where the model does not reason or writes it without any.
    pub reasoning: Option<Reasoning>,
    /// Markers in content that are dropped (`<response>`, `<|START_RESPONSE|>`).
    pub content_marks: Vec<Text>,
    /// How calls are written; none where nothing is known.
    pub tools: Option<ToolSyntax>,
    /// The headers of messages, where an answer is a sequence of messages (Harmony).
    pub channels: Option<Channels>,
    /// Where the ids of calls come from.
    pub call_ids: CallIds,
    /// Texts of the tokens that end a turn and may be missing in the model's end tokens.
    pub extra_stops: Vec<Text>,
    /// What the template's generation prompt adds by default: the parser and the grammar start
    /// there. The prompt of a request may add something else.
    pub prefill: String,
}

/// How reasoning is marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reasoning {
    /// Whether every answer reasons.
    pub mode: ReasoningMode,
    /// Starts the reasoning. Empty: nothing does, it starts with the answer.
    pub open: Text,
    /// Canonical whitespace after `open`.
    pub gap_after_open: Text,
    /// Canonical whitespace before `close`.
    pub gap_before_close: Text,
    /// Ends the reasoning.
    pub close: Text,
    /// Canonical whitespace between `close` and content.
    pub gap_after: Text,
    /// Where the markers count. `<think>` in the middle of content is prose that speaks of it;
    /// a marker that is a token of its own means what it says wherever it stands.
    pub place: Place,
}

/// When a model reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningMode {
    /// When it or the prompt opens the reasoning.
    Tags,
    /// Always: the prompt opens it, whatever the request says.
    Forced,
}

/// Where a marker counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Wherever it stands.
    Anywhere,
    /// Only where no content has been written since the start or the last call.
    Start,
}

/// How calls are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSyntax {
    /// What opens the block that holds all calls. Empty: each call is a block of its own.
    pub open: Vec<Piece>,
    /// One call.
    pub call: Vec<Piece>,
    /// Canonical text between two calls.
    pub between: Text,
    /// What closes the block.
    pub close: Vec<Piece>,
    /// Where a call may start. [`Place::Start`] is for formats without a marker of their own.
    pub place: Place,
    /// Whether the model writes the arguments sorted by name.
    pub arguments_sorted: bool,
}

impl ToolSyntax {
    /// The text that starts calls in free text: empty where the first call's name does.
    pub fn trigger(&self) -> &str {
        let mut pieces = self.open.iter().chain(&self.call).map(|piece| match piece {
            Piece::Text(_) | Piece::OneOf(_) => piece.texts().first().map(AsRef::as_ref),
            Piece::Envelope(_) => Some("{"),
            Piece::Name | Piece::Id | Piece::Ordinal | Piece::Arguments(_) => None,
        });
        pieces.find(|text| *text != Some("")).flatten().unwrap_or_default()
    }

    /// Whether all calls of an answer share one block.
    pub fn calls_share_block(&self) -> bool {
        !self.open.is_empty() || !self.between.trim().is_empty()
    }
}

/// The headers of an answer that is a sequence of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channels {
    /// Each starts a header: before the role, before the channel.
    pub starts: Vec<Text>,
    /// Ends a header.
    pub message: Text,
    /// Each ends a message.
    pub ends: Vec<Text>,
    /// Text of a header before the name of the function that the message is for.
    pub recipient: Text,
    /// The word of a header that makes the message reasoning.
    pub reasoning: Text,
    /// Words of a header that say what the message is, the one above and those of content.
    pub words: Vec<Text>,
    /// Canonical header of reasoning, after what the prompt has opened.
    pub reasoning_header: Text,
    /// Canonical headers of content.
    pub content_headers: Vec<Text>,
    /// Canonical start of another message, after one of `ends`: also between two calls.
    pub next: Text,
}

/// Where the ids of calls come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallIds {
    /// `call_` and 24 letters and digits.
    Generated,
    /// This many letters and digits: what the model wrote, if it did before the arguments.
    Alphanumeric(usize),
    /// `functions.NAME:INDEX`, as the model wrote it.
    Header,
}

impl ChatFormat {
    /// A format about which nothing is known: all text is content.
    pub fn content_only() -> Self {
        Self {
            kind: Text::Borrowed("content_only"),
            reasoning: None,
            content_marks: Vec::new(),
            tools: None,
            channels: None,
            call_ids: CallIds::Generated,
            extra_stops: Vec::new(),
            prefill: String::new(),
        }
    }
}
