//! The arguments of each format that are not JSON: their grammar, and the parser that reads them.
// Each test file uses some of them; and helpers of tests count as tests.
#![allow(dead_code, clippy::unwrap_used)]

use std::sync::Arc;

use pleach::chat::arguments::Dialect as Written;
use pleach::chat::format::{ArgumentSyntax, ChatFormat, Parameters, Piece, Place, ToolSyntax};
use pleach::chat::format::{Text, Typing, Wrapping};
use pleach::chat::formats::{self, families};
use pleach::chat::parse::{ParseOptions, ToolSet, parse};
use pleach::grammar::json_schema::{SchemaError, SchemaOptions, rules_into};
use pleach::grammar::{CompiledGrammar, ExprPool, Fuel, GrammarError, GrammarVocabulary, Limits};
use serde_json::{Value, json};

/// The function that is called.
pub const FUNCTION: &str = "f";

/// A format whose arguments are not JSON.
pub struct Dialect {
    pub name: String,
    pub syntax: ArgumentSyntax,
    pub sorted: bool,
    format: Arc<ChatFormat>,
    /// What stands around the arguments of the one call.
    before: String,
    after: String,
}

impl Dialect {
    fn new(name: &str, format: ChatFormat) -> Option<Self> {
        // The markers of messages and reasoning are not at issue.
        let format = ChatFormat { reasoning: None, channels: None, ..format };
        let tools = format.tools.clone()?;
        let at = tools.call.iter().position(|piece| matches!(piece, Piece::Arguments(_)))?;
        let Piece::Arguments(syntax) = tools.call[at].clone() else { return None };
        let text = |piece: &Piece| match piece {
            Piece::Name => FUNCTION.to_owned(),
            Piece::Ordinal => "0".to_owned(),
            other => other.texts().first().map(|text| text.to_string()).unwrap_or_default(),
        };
        let before = tools.open.iter().chain(&tools.call[..at]).map(text).collect();
        let after = tools.call[at + 1..].iter().chain(&tools.close).map(text).collect();
        let is_json = syntax == ArgumentSyntax::Object(Written::Json);
        (!is_json).then(|| Self {
            name: name.to_owned(),
            syntax,
            sorted: tools.arguments_sorted,
            format: Arc::new(format),
            before,
            after,
        })
    }

    /// Arguments in a syntax that no format has, but a model's own description may ask for.
    fn of_syntax(name: &str, syntax: ArgumentSyntax, end: &'static str) -> Self {
        let tools = ToolSyntax {
            open: Vec::new(),
            call: vec![
                Piece::text("<call>"),
                Piece::Name,
                Piece::text("<with>"),
                Piece::Arguments(syntax),
                Piece::text(end),
            ],
            between: Text::Borrowed(""),
            close: Vec::new(),
            place: Place::Anywhere,
            arguments_sorted: false,
        };
        Self::new(name, ChatFormat { tools: Some(tools), ..ChatFormat::content_only() }).unwrap()
    }

    /// The dialect of a format by its name.
    pub fn of_format(name: &str) -> Self {
        Self::new(name, formats::named(name).unwrap()).unwrap()
    }

    /// Every dialect of a format, and some more.
    pub fn all() -> Vec<Self> {
        let names = families().into_iter().map(|family| family.name);
        let mut all: Vec<Self> =
            names.filter_map(|name| Self::new(name, formats::named(name)?)).collect();
        let object = |dialect| ArgumentSyntax::Object(dialect);
        all.push(Self::of_syntax("python_object", object(Written::Python), "<done>"));
        all.push(Self::of_syntax("json_strings", object(Written::Delimited("".into())), "<done>"));
        all.push(Self::of_syntax("quotes", object(Written::Delimited("\"".into())), "<done>"));
        all.push(Self::of_syntax("borders", object(Written::Delimited("''".into())), "<done>"));
        let parameters = Parameters {
            open: Text::Borrowed("[["),
            name_end: Text::Borrowed("]] "),
            typing: Typing::Schema,
            wrapping: Wrapping::Newlines,
            close: Text::Borrowed("\n\n!"),
            between: Text::Borrowed(" "),
            after: Text::Borrowed(""),
        };
        all.push(Self::of_syntax("odd_blocks", ArgumentSyntax::Parameters(parameters), "<done>"));
        all
    }

    pub fn options(&self) -> SchemaOptions {
        SchemaOptions { sorted: self.sorted, ..SchemaOptions::default() }
    }

    /// The grammar of the arguments by a schema.
    pub fn try_compile(
        &self,
        schema: &Value,
        options: SchemaOptions,
        vocabulary: &Arc<GrammarVocabulary>,
    ) -> Result<Arc<CompiledGrammar>, GrammarError> {
        let limits = Limits::default();
        let mut fuel = Fuel::new(limits.compile_steps_max);
        let mut pool = ExprPool::new();
        let dialect = self.syntax.grammar_dialect();
        let (root, _) = rules_into(&mut pool, &schema.to_string(), &options, &dialect, &mut fuel)?;
        CompiledGrammar::from_rules(pool, root, vocabulary, &limits, &mut fuel)
    }

    /// Why a schema is refused: the place and the keyword.
    pub fn inexact(&self, schema: &Value) -> (String, String) {
        match self.try_compile(schema, self.options(), super::schema_support::bytes()) {
            Err(GrammarError::Schema(SchemaError::Inexact { pointer, keyword, .. })) => {
                (pointer, keyword)
            }
            other => panic!("{} {schema}: {:?}", self.name, other.map(|_| "compiles")),
        }
    }

    /// The arguments of the one call, as the parser reads them; `None` if it reads no whole call.
    pub fn read(&self, schema: &Value, arguments: &str) -> Option<String> {
        let tool = json!({"function": {"name": FUNCTION, "parameters": schema}});
        let tools = Arc::new(ToolSet::from_request(&[tool]));
        let options = ParseOptions { tools, ..ParseOptions::default() };
        let text = format!("{}{arguments}{}", self.before, self.after);
        let message = parse(&self.format, &text, false, &options);
        let [call] = message.tool_calls.as_slice() else { return None };
        (call.complete && message.content.is_empty()).then(|| call.arguments.clone())
    }

    /// Arguments as the format writes them.
    pub fn written(&self, arguments: &Value) -> String {
        let call = json!({"name": FUNCTION, "id": "c:0", "arguments": arguments});
        let text = self.format.write_calls(&[call]);
        let inner = text.strip_prefix(&self.before).and_then(|it| it.strip_suffix(&self.after));
        inner.unwrap_or_else(|| panic!("{}: {text}", self.name)).to_owned()
    }

    /// What stands between the name and the arguments of the call at an index, name included, and
    /// after them.
    pub fn frame(&self, function: &str, index: usize) -> (String, String) {
        let tools = self.format.tools.as_ref().unwrap();
        let at = tools.call.iter().position(|it| matches!(it, Piece::Arguments(_))).unwrap();
        let text = |pieces: &[Piece]| -> String {
            let text = |piece: &Piece| match piece {
                Piece::Name => function.to_owned(),
                Piece::Ordinal => (index + 1).to_string(),
                other => other.texts().first().map(|text| text.to_string()).unwrap_or_default(),
            };
            pieces.iter().map(text).collect()
        };
        let name = tools.call.iter().position(|piece| *piece == Piece::Name).unwrap();
        (text(&tools.call[name..at]), text(&tools.call[at + 1..]))
    }
}
