//! The tools of a chat request, and which of them the answer may call.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::fields::{Fields, wrong_type};
use super::unsupported::not_yet;
use crate::chat::parse::ToolSet;
use crate::http::error::ApiError;

/// Tools, checked.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    /// Their definitions as they were sent, for the template; none where no tool may be called.
    pub shown: Option<Vec<Value>>,
    /// The functions that the answer may call.
    pub offered: Arc<ToolSet>,
    /// The answer may have no more than one call.
    pub one_call: bool,
}

/// Takes `tools`, `tool_choice` and `parallel_tool_calls`.
pub fn take(f: &mut Fields) -> Result<Tools, ApiError> {
    let tools = f.list("tools")?.filter(|tools| !tools.is_empty());
    let mut names = HashSet::new();
    for (i, tool) in tools.iter().flatten().enumerate() {
        let name = function_name(tool, &format!("tools[{i}]"))?;
        if !names.insert(name.clone()) {
            let param = format!("tools[{i}].function.name");
            let message = format!("`{param}` is `{name}`, which an earlier tool has");
            return Err(ApiError::invalid(param, message));
        }
    }
    let may_call = choice(f, &names)?;
    let one_call = f.boolean("parallel_tool_calls")? == Some(false);
    // Tools that may not be called stay out of the prompt: the model would call them.
    let Some(tools) = tools.filter(|_| may_call) else { return Ok(Tools::default()) };
    let offered = Arc::new(ToolSet::from_request(&tools));
    Ok(Tools { shown: Some(tools), offered, one_call })
}

/// The name of the function that a tool is.
fn function_name(tool: &Value, path: &str) -> Result<String, ApiError> {
    let mut tool = Fields::nested(tool.clone(), path)?;
    let kind_param = tool.param("type");
    match tool.string("type")?.as_deref() {
        None | Some("function") => {}
        Some(other) => return Err(not_yet(&kind_param, &format!(" = \"{other}\""))),
    }
    let function_param = tool.param("function");
    let mut function = Fields::nested(tool.require("function")?, &function_param)?;
    function.string("description")?;
    function.object("parameters")?;
    if function.boolean("strict")? == Some(true) {
        return Err(not_yet(&function.param("strict"), " = true"));
    }
    let param = function.param("name");
    match function.require("name")? {
        Value::String(name) if !name.trim().is_empty() => Ok(name),
        Value::String(_) => Err(ApiError::invalid(&*param, format!("`{param}` must not be empty"))),
        other => Err(wrong_type(&param, "a string", &other)),
    }
}

/// Whether tools may be called. What would force a call is refused.
fn choice(f: &mut Fields, names: &HashSet<String>) -> Result<bool, ApiError> {
    let refused = |message: String| Err(ApiError::invalid("tool_choice", message));
    let value = match f.take("tool_choice") {
        None => return Ok(true),
        Some(Value::String(word)) => match word.as_str() {
            "auto" => return Ok(true),
            "none" => return Ok(false),
            "required" if names.is_empty() => {
                return refused("`tool_choice` = \"required\" needs `tools`".to_owned());
            }
            "required" => return Err(not_yet("tool_choice", " = \"required\"")),
            _ => {
                return refused(format!(
                    "`tool_choice` is `{word}`; legal are none, auto, required and a named function"
                ));
            }
        },
        Some(value) => value,
    };
    let mut object = Fields::nested(value, "tool_choice")?;
    match object.string("type")?.as_deref() {
        Some("function") => {
            let function = object.param("function");
            let mut function = Fields::nested(object.require("function")?, &function)?;
            let name = function.string("name")?.unwrap_or_default();
            if !names.contains(&name) {
                return refused(format!("`tool_choice` names `{name}`, which is not in `tools`"));
            }
            Err(not_yet("tool_choice", " with a named function"))
        }
        Some("allowed_tools") => Err(not_yet("tool_choice", " of type `allowed_tools`")),
        Some(other) => refused(format!("not supported: `tool_choice` of type `{other}`")),
        None => {
            let message = "missing required field `tool_choice.type`";
            Err(ApiError::invalid("tool_choice.type", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(body: Value) -> Result<Tools, ApiError> {
        take(&mut Fields::nested(body, "").unwrap())
    }

    fn tool(name: &str) -> Value {
        json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}})
    }

    #[test]
    fn tools_are_on_offer_unless_none_may_be_called() {
        for choice in [Value::Null, json!("auto")] {
            let body = json!({"tools": [tool("a"), tool("b")], "tool_choice": choice});
            let tools = of(body).unwrap();
            assert_eq!(tools.shown.unwrap().len(), 2);
            assert!(tools.offered.contains("a") && tools.offered.contains("b") && !tools.one_call);
        }
        let none = of(json!({"tools": [tool("a")], "tool_choice": "none"})).unwrap();
        assert!(none.shown.is_none() && none.offered.is_empty());
        for body in [json!({}), json!({"tools": []}), json!({"tools": null, "tool_choice": "auto"})]
        {
            assert!(of(body).unwrap().shown.is_none());
        }
        let one = json!({"tools": [tool("a")], "parallel_tool_calls": false});
        assert!(of(one).unwrap().one_call);
    }

    #[test]
    fn what_is_wrong_or_cannot_be_done_yet_is_named() {
        let with = |extra: Value| json!([{"type": "function", "function": extra}]);
        let tools = [
            (json!({}), "tools"),
            (json!([1]), "tools[0]"),
            (json!([{"type": "custom"}]), "tools[0].type"),
            (json!([{"type": "function"}]), "tools[0].function"),
            (json!([{"function": "a"}]), "tools[0].function"),
            (with(json!({})), "tools[0].function.name"),
            (with(json!({"name": " "})), "tools[0].function.name"),
            (with(json!({"name": 1})), "tools[0].function.name"),
            (with(json!({"name": "a", "description": 1})), "tools[0].function.description"),
            (with(json!({"name": "a", "parameters": []})), "tools[0].function.parameters"),
            (with(json!({"name": "a", "strict": true})), "tools[0].function.strict"),
            (json!([tool("a"), tool("a")]), "tools[1].function.name"),
        ];
        for (tools, param) in tools {
            let error = of(json!({"tools": tools})).unwrap_err();
            assert_eq!(error.param(), Some(param), "{tools}");
        }
        let named = |name: &str| json!({"type": "function", "function": {"name": name}});
        let choices = [
            (json!("required"), "tool_choice"),
            (json!("any"), "tool_choice"),
            (json!(1), "tool_choice"),
            (json!({}), "tool_choice.type"),
            (json!({"type": "custom"}), "tool_choice"),
            (json!({"type": "function"}), "tool_choice.function"),
            (named("a"), "tool_choice"),
            (named("other"), "tool_choice"),
            (json!({"type": "allowed_tools", "allowed_tools": {}}), "tool_choice"),
        ];
        for (choice, param) in choices {
            let error = of(json!({"tools": [tool("a")], "tool_choice": choice})).unwrap_err();
            assert_eq!(error.param(), Some(param), "{choice}");
        }
        for choice in [json!("required"), named("a")] {
            let error = of(json!({"tool_choice": choice})).unwrap_err();
            assert_eq!(error.param(), Some("tool_choice"));
        }
        let error = of(json!({"parallel_tool_calls": 1})).unwrap_err();
        assert_eq!(error.param(), Some("parallel_tool_calls"));
    }
}
