//! What a tool's schema says of one parameter.

use serde_json::Value;

/// The JSON types that a parameter's schema allows. Nothing declared is not the same as everything
/// allowed: see [`super::TypedText`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclaredTypes {
    bits: u8,
}

impl DeclaredTypes {
    /// Types of the parameter `name` by the `parameters` schema of a tool: local `$ref`, `anyOf`,
    /// `oneOf`, `allOf`, `enum`, `const`, lists of types and `nullable` are followed. A parameter
    /// the schema does not speak of declares nothing.
    pub fn of_parameter(tool_parameters: &Value, name: &str) -> Self { let _ = (tool_parameters, name); Self { bits: 0 } }
    /// Nothing is declared.
    pub fn unknown() -> Self { Self { bits: 0 } }
    /// A string and nothing else (DSML's `string="true"`).
    pub fn string() -> Self { Self { bits: 0 } }
    /// Every type but string (DSML's `string="false"`).
    pub fn not_string() -> Self { Self { bits: 0 } }
    /// The type of this JSON Schema name (Kimi K3's `type="…"`); nothing declared for other names.
    pub fn named(name: &str) -> Self { let _ = name; Self { bits: 0 } }
    /// Whether a string fits, as it does where nothing is declared.
    pub fn allows_string(self) -> bool { self.bits == 0 }
}
