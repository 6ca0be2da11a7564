//! The tools of a chat request, and which of them the answer may call.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::fields::{Fields, wrong_type};
use super::schema;
use super::unsupported::not_yet;
use crate::chat::constraint::Function;
use crate::chat::parse::ToolSet;
use crate::grammar::json_schema::SchemaOptions;
use crate::http::error::ApiError;

/// Tools, checked.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    /// Their definitions as they were sent, for the template; none where no tool may be called.
    pub shown: Option<Vec<Value>>,
    /// The functions that the answer may call.
    pub offered: Arc<ToolSet>,
    /// The same, with what their arguments are held to.
    pub functions: Vec<Function>,
    /// The answer may have no more than one call.
    pub one_call: bool,
    /// The answer must be a call.
    pub must_call: bool,
    /// There are tools, and the request wants none of them called.
    pub no_calls: bool,
}

/// Which of the tools may be called, and whether one must be.
enum Choice {
    None,
    /// Only these, or all.
    Some {
        names: Option<HashSet<String>>,
        must_call: bool,
    },
}

/// Takes `tools`, `tool_choice` and `parallel_tool_calls`. `strict`: whether functions are that do
/// not say so themselves.
pub fn take(f: &mut Fields, strict: bool) -> Result<Tools, ApiError> {
    let tools = f.list("tools")?.unwrap_or_default();
    let mut functions: Vec<Function> = Vec::with_capacity(tools.len());
    for (i, tool) in tools.iter().enumerate() {
        let function = function(tool, &format!("tools[{i}]"), strict)?;
        let name = &function.name;
        if functions.iter().any(|earlier| earlier.name == *name) {
            let param = format!("tools[{i}].function.name");
            let message = format!("`{param}` is `{name}`, which an earlier tool has");
            return Err(ApiError::invalid(param, message));
        }
        functions.push(function);
    }
    let choice = choice(f, &functions)?;
    let one_call = f.boolean("parallel_tool_calls")? == Some(false);
    // Tools that may not be called stay out of the prompt: the model would call them.
    let Choice::Some { names, must_call } = choice else {
        return Ok(Tools { no_calls: !tools.is_empty(), ..Tools::default() });
    };
    if tools.is_empty() {
        return Ok(Tools::default());
    }
    let may_call = |name: &str| names.as_ref().is_none_or(|names| names.contains(name));
    functions.retain(|function| may_call(&function.name));
    let offered = Arc::new(ToolSet::from_request(&tools).only(may_call));
    let no_calls = false;
    Ok(Tools { shown: Some(tools), offered, functions, one_call, must_call, no_calls })
}

/// The function that a tool is.
fn function(tool: &Value, path: &str, strict: bool) -> Result<Function, ApiError> {
    let mut tool = Fields::nested(tool.clone(), path)?;
    let kind_param = tool.param("type");
    match tool.string("type")?.as_deref() {
        None | Some("function") => {}
        Some(other) => return Err(not_yet(&kind_param, &format!(" = \"{other}\""))),
    }
    let function_param = tool.param("function");
    let mut function = Fields::nested(tool.require("function")?, &function_param)?;
    function.string("description")?;
    let place = function.param("parameters");
    let parameters = function.object("parameters")?.map(Value::Object);
    // OpenAI's words: who leaves the parameters out has none.
    let parameters = parameters.unwrap_or_else(
        || json!({"type": "object", "properties": {}, "additionalProperties": false}),
    );
    let strict = function.boolean("strict")?.unwrap_or(strict);
    let options = SchemaOptions { strict, ..SchemaOptions::default() };
    if !schema::may_be_object(&parameters) {
        let message = format!("`{place}` must be the schema of an object: arguments are one");
        return Err(ApiError::invalid(place, message));
    }
    let schema = schema::of_arguments(&parameters, &parameters.to_string());
    let param = function.param("name");
    match function.require("name")? {
        Value::String(name) if !name.trim().is_empty() => {
            Ok(Function { name, schema, options, place })
        }
        Value::String(_) => Err(ApiError::invalid(&*param, format!("`{param}` must not be empty"))),
        other => Err(wrong_type(&param, "a string", &other)),
    }
}

/// Which tools may be called.
fn choice(f: &mut Fields, functions: &[Function]) -> Result<Choice, ApiError> {
    let any = |must_call| Choice::Some { names: None, must_call };
    let value = match f.take("tool_choice") {
        None => return Ok(any(false)),
        Some(Value::String(word)) => match word.as_str() {
            "auto" => return Ok(any(false)),
            "none" => return Ok(Choice::None),
            "required" if functions.is_empty() => {
                return Err(refused("`tool_choice` = \"required\" needs `tools`".to_owned()));
            }
            "required" => return Ok(any(true)),
            _ => {
                return Err(refused(format!(
                    "`tool_choice` is `{word}`; legal are none, auto, required and a named function"
                )));
            }
        },
        Some(value) => value,
    };
    let mut object = Fields::nested(value, "tool_choice")?;
    match object.string("type")?.as_deref() {
        Some("function") => {
            let name = function_name(&mut object, functions)?;
            Ok(Choice::Some { names: Some([name].into()), must_call: true })
        }
        Some("allowed_tools") => allowed_tools(object, functions),
        Some(other) => Err(refused(format!("not supported: `tool_choice` of type `{other}`"))),
        None => {
            let message = "missing required field `tool_choice.type`";
            Err(ApiError::invalid("tool_choice.type", message))
        }
    }
}

/// The list of tools in a `tool_choice`: in an object of its own, as chat requests have it, or
/// beside the type.
fn allowed_tools(mut object: Fields, functions: &[Function]) -> Result<Choice, ApiError> {
    let inner = object.param("allowed_tools");
    let mut allowed = match object.take("allowed_tools") {
        Some(inside) => Fields::nested(inside, &inner)?,
        None => object,
    };
    let param = allowed.param("mode");
    let must_call = match allowed.string("mode")?.as_deref() {
        None | Some("auto") => false,
        Some("required") => true,
        Some(other) => {
            let message = format!("`{param}` is `{other}`; legal are auto and required");
            return Err(ApiError::invalid(param, message));
        }
    };
    let param = allowed.param("tools");
    let tools = allowed.require("tools")?;
    let Value::Array(tools) = tools else { return Err(wrong_type(&param, "a list", &tools)) };
    if tools.is_empty() {
        return Err(ApiError::invalid(&*param, format!("`{param}` must not be empty")));
    }
    let name = |(i, tool): (usize, Value)| {
        function_name(&mut Fields::nested(tool, &format!("{param}[{i}]"))?, functions)
    };
    let names: HashSet<String> =
        tools.into_iter().enumerate().map(name).collect::<Result<_, _>>()?;
    Ok(Choice::Some { names: Some(names), must_call })
}

/// The name in `{"type": "function", "function": {"name"}}`, or in the flat shape of the same. It
/// is that of a tool.
fn function_name(object: &mut Fields, functions: &[Function]) -> Result<String, ApiError> {
    let param = object.param("function");
    let name = match (object.take("function"), object.string("name")?) {
        (Some(function), _) => Fields::nested(function, &param)?.string("name")?,
        (None, Some(name)) => Some(name),
        (None, None) => {
            return Err(ApiError::invalid(&*param, format!("missing required field `{param}`")));
        }
    };
    let name = name.unwrap_or_default();
    if functions.iter().any(|function| function.name == name) {
        return Ok(name);
    }
    Err(refused(format!("`tool_choice` names `{name}`, which is not in `tools`")))
}

fn refused(message: String) -> ApiError {
    ApiError::invalid("tool_choice", message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(body: Value) -> Result<Tools, ApiError> {
        take(&mut Fields::nested(body, "").unwrap(), true)
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
    fn every_way_to_choose_says_which_tools_and_whether_one_must_be_called() {
        let nested = |name: &str| json!({"type": "function", "function": {"name": name}});
        let flat = |name: &str| json!({"type": "function", "name": name});
        let list = json!([nested("b"), flat("c")]);
        let allowed = |mode: &str| json!({"mode": mode, "tools": list});
        let mut flat_list = allowed("required");
        flat_list["type"] = json!("allowed_tools");
        for (choice, names, must_call) in [
            (json!("auto"), "abc", false),
            (json!("required"), "abc", true),
            (nested("b"), "b", true),
            (flat("c"), "c", true),
            (json!({"type": "allowed_tools", "allowed_tools": allowed("auto")}), "bc", false),
            (flat_list, "bc", true),
        ] {
            let tools = json!([tool("a"), tool("b"), tool("c")]);
            let tools = of(json!({"tools": tools, "tool_choice": choice})).unwrap();
            let found: String = tools.functions.iter().map(|it| it.name.as_str()).collect();
            assert_eq!((found.as_str(), tools.must_call), (names, must_call), "{choice}");
            assert!(
                ["a", "b", "c"].iter().all(|it| tools.offered.contains(it) == names.contains(it))
            );
            assert_eq!(tools.shown.unwrap().len(), 3, "the prompt shows all of them");
        }
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
            (with(json!({"name": "a", "strict": 1})), "tools[0].function.strict"),
            (
                with(json!({"name": "a", "parameters": {"type": "string"}})),
                "tools[0].function.parameters",
            ),
            (json!([tool("a"), tool("a")]), "tools[1].function.name"),
        ];
        for (tools, param) in tools {
            let error = of(json!({"tools": tools})).unwrap_err();
            assert_eq!(error.param(), Some(param), "{tools}");
        }
        let named = |name: &str| json!({"type": "function", "function": {"name": name}});
        let allowed = |inner: Value| json!({"type": "allowed_tools", "allowed_tools": inner});
        let choices = [
            (json!("any"), "tool_choice"),
            (json!(1), "tool_choice"),
            (json!({}), "tool_choice.type"),
            (json!({"type": "custom"}), "tool_choice"),
            (json!({"type": "function"}), "tool_choice.function"),
            (named("other"), "tool_choice"),
            (json!({"type": "function", "name": "other"}), "tool_choice"),
            (allowed(json!({})), "tool_choice.allowed_tools.tools"),
            (allowed(json!({"tools": []})), "tool_choice.allowed_tools.tools"),
            (allowed(json!({"tools": [named("other")]})), "tool_choice"),
            (
                allowed(json!({"mode": "x", "tools": [named("a")]})),
                "tool_choice.allowed_tools.mode",
            ),
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
