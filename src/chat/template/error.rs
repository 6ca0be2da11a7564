//! The one error of this layer.

/// Why a chat template could not be compiled, fed or rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The template's source is not a valid template: the model's fault, found when it is loaded.
    #[error("chat template does not compile at line {line}: {message}")]
    Compile {
        /// Line in the source, from 1; 0 where it is not known.
        line: usize,
        /// What the engine says is wrong.
        message: String,
    },
    /// The template itself refused the conversation with `raise_exception(message)`.
    #[error("{0}")]
    Raised(String),
    /// The template failed on this conversation (a missing field, a wrong type).
    #[error("chat template failed at line {line}: {message}")]
    Render {
        /// Line in the source, from 1; 0 where it is not known.
        line: usize,
        /// What the engine says is wrong.
        message: String,
    },
    /// The template did more work than [`Limits::fuel`](super::Limits::fuel) allows.
    #[error("chat template did not end within its work limit of {fuel} steps")]
    OutOfFuel {
        /// The limit.
        fuel: u64,
    },
    /// The rendered prompt is longer than [`Limits::output_bytes`](super::Limits::output_bytes).
    #[error("chat template wrote more than {limit_bytes} bytes")]
    OutputTooLong {
        /// The limit.
        limit_bytes: usize,
    },
    /// A message asks for what the template cannot show.
    #[error("messages[{index}].{field}: {reason}")]
    Message {
        /// Index of the message in the request.
        index: usize,
        /// Path of the field inside the message.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The request as a whole asks for what the template cannot do.
    #[error("{field}: {reason}")]
    Unsupported {
        /// Name of the request's field.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// Travels inside the engine's error from `raise_exception` to [`TemplateError::Raised`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct RaisedByTemplate(pub(super) String);

impl TemplateError {
    /// The error of a failed compilation.
    pub(super) fn from_compile(error: &minijinja::Error) -> Self {
        Self::Compile { line: error.line().unwrap_or(0), message: describe(error) }
    }

    /// The error of a failed render under `limits`.
    pub(super) fn from_render(error: &minijinja::Error, limits: &super::Limits) -> Self {
        if let Some(raised) = find_source::<RaisedByTemplate>(error) {
            return Self::Raised(raised.0.clone());
        }
        if error.kind() == minijinja::ErrorKind::OutOfFuel {
            return Self::OutOfFuel { fuel: limits.fuel };
        }
        Self::Render { line: error.line().unwrap_or(0), message: describe(error) }
    }
}

/// The error's own words, without the template's name and line.
fn describe(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

fn find_source<T: std::error::Error + 'static>(error: &minijinja::Error) -> Option<&T> {
    let mut next = std::error::Error::source(error);
    while let Some(current) = next {
        if let Some(found) = current.downcast_ref::<T>() {
            return Some(found);
        }
        next = current.source();
    }
    None
}
