//! The engine, set up to read templates as `transformers` does.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind, Output, State, UndefinedBehavior};
use time::OffsetDateTime;

use super::error::RaisedByTemplate;
use super::{Limits, filters, methods, python_text, strftime, tests_of_type, tojson};

/// Name of the one template in the environment.
pub(super) const TEMPLATE_NAME: &str = "chat_template";

/// Deepest nesting of loops, macros and expressions. The engine's own stack use at this depth was
/// measured to fit the 2 MiB of a worker thread, unoptimised code included.
const RECURSION_MAX: usize = 160;

/// An environment without a template.
pub(super) fn build(limits: &Limits) -> Result<Environment<'static>, Error> {
    let mut env = Environment::new();
    env.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    env.set_undefined_behavior(UndefinedBehavior::Lenient);
    env.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    env.set_fuel(Some(limits.fuel));
    env.set_recursion_limit(RECURSION_MAX);
    env.set_unknown_method_callback(methods::call);
    env.set_formatter(print);
    filters::add_to(&mut env);
    tests_of_type::add_to(&mut env);
    env.add_filter("tojson", tojson::tojson);
    env.add_function("raise_exception", raise_exception);
    Ok(env)
}

/// The function `strftime_now` of one request.
pub(super) fn strftime_now(now: OffsetDateTime) -> Value {
    Value::from_function(move |format: &str| strftime::strftime(format, now))
}

/// Writes what `{{ value }}` prints.
fn print(out: &mut Output, _state: &mut State, value: &Value) -> Result<(), Error> {
    let written = match value.as_str() {
        Some(text) => out.write_str(text),
        None => out.write_str(&python_text::to_str(value)?),
    };
    written.map_err(Error::from)
}

fn raise_exception(message: &Value) -> Result<Value, Error> {
    let message = python_text::to_str(message)?;
    Err(Error::new(ErrorKind::InvalidOperation, "raised by the template")
        .with_source(RaisedByTemplate(message)))
}
