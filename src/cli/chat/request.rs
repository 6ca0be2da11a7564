//! The body of a chat request in a file.

use std::path::Path;

use serde_json::Value;

use super::super::CliError;
use super::super::grammar::read_text;
use crate::chat::parse::ToolSet;
use crate::http::error::ApiError;
use crate::http::openai::fields::Fields;
use crate::http::openai::types::Conversation;
use crate::http::openai::validate;

/// What of a request makes its prompt and the reading of its answer. Other fields have no part in
/// either.
pub(super) struct Request {
    pub(super) conversation: Conversation,
    tool_choice: Value,
}

impl Request {
    pub(super) fn read(file: &Path) -> Result<Self, CliError> {
        let refused = |error: ApiError| refuse(file, &error);
        let mut fields = Fields::nested(read_json(file)?, "").map_err(refused)?;
        let tools = fields.list("tools").map_err(refused)?.filter(|tools| !tools.is_empty());
        let tool_choice = fields.take("tool_choice").unwrap_or_default();
        let mut conversation = validate::conversation(&mut fields).map_err(refused)?;
        conversation.tools = tools;
        Ok(Self { conversation, tool_choice })
    }

    /// The functions that the answer may call.
    pub(super) fn offered(&self) -> ToolSet {
        let tools = ToolSet::from_request(self.conversation.tools.as_deref().unwrap_or_default());
        match &self.tool_choice {
            Value::String(word) if word == "none" => ToolSet::default(),
            Value::Object(_) => {
                let name = self.tool_choice.pointer("/function/name").and_then(Value::as_str);
                match name {
                    Some(name) => tools.only(|tool| tool == name),
                    None => tools,
                }
            }
            _ => tools,
        }
    }
}

/// The tools in a file: a list, or a request's body.
pub(super) fn read_tools(file: &Path) -> Result<ToolSet, CliError> {
    let json = read_json(file)?;
    let tools = json.as_array().or_else(|| json.get("tools")?.as_array());
    let tools = tools.ok_or_else(|| {
        CliError::Usage(format!("{} is no list of tools and has none", file.display()))
    })?;
    Ok(ToolSet::from_request(tools))
}

fn read_json(file: &Path) -> Result<Value, CliError> {
    serde_json::from_str(&read_text(file)?)
        .map_err(|error| CliError::Usage(format!("{}: {error}", file.display())))
}

fn refuse(file: &Path, error: &ApiError) -> CliError {
    let body = error.to_value();
    let message = body.pointer("/error/message").or_else(|| body.get("message"));
    let message = message.and_then(Value::as_str).unwrap_or("it is no chat request");
    CliError::Usage(format!("{}: {message}", file.display()))
}
