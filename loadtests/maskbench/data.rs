//! Grammars and texts: lines of JSON, or the files that come with the bench.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;

/// A text, and whether the grammar should accept it.
#[derive(Clone, Debug, Deserialize)]
pub struct Instance {
    pub valid: bool,
    pub text: String,
}

/// A grammar with texts.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    pub id: String,
    /// A JSON schema, as JSON text.
    pub schema: Option<String>,
    pub gbnf: Option<String>,
    /// The same grammar in llguidance's dialect of Lark.
    pub lark: Option<String>,
    #[serde(default)]
    pub tests: Vec<Instance>,
}

impl Case {
    /// Whether our engine can read this kind of grammar.
    pub fn is_known(&self) -> bool {
        self.gbnf.is_some() || self.schema.is_some()
    }
}

/// Reads a file with a case on each line, one after the other: all together take more memory than
/// an engine.
pub fn read_lines(file: &Path) -> Result<impl Iterator<Item = Result<Case, String>>, String> {
    let named = |error: &dyn Display, line: usize| {
        format!("{}, line {}: {error}", file.display(), line + 1)
    };
    let lines = BufReader::new(File::open(file).map_err(|error| named(&error, 0))?).lines();
    let parse = move |(index, line): (usize, std::io::Result<String>)| {
        let line = line.map_err(|error| named(&error, index))?;
        serde_json::from_str(&line).map_err(|error| named(&error, index))
    };
    let is_text =
        |line: &std::io::Result<String>| !matches!(line, Ok(line) if line.trim().is_empty());
    Ok(lines.enumerate().filter(move |(_, line)| is_text(line)).map(parse))
}

/// Reads `NAME.gbnf`, `NAME.lark` and `NAME.jsonl` (texts) for each name in a folder.
pub fn read_builtin(folder: &Path) -> Result<Vec<Case>, String> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".gbnf").map(str::to_owned))
        .collect();
    names.sort();
    names.into_iter().map(|name| read_case(folder, name)).collect()
}

fn read_case(folder: &Path, name: String) -> Result<Case, String> {
    let gbnf = read(&folder.join(format!("{name}.gbnf")))?;
    let lark = read(&folder.join(format!("{name}.lark")))?;
    let file = folder.join(format!("{name}.jsonl"));
    let texts = read(&file)?;
    let parse = |line: &str| {
        serde_json::from_str(line).map_err(|error| format!("{}: {error}", file.display()))
    };
    let tests = texts.lines().map(parse).collect::<Result<_, _>>()?;
    Ok(Case { id: name, schema: None, gbnf: Some(gbnf), lark: Some(lark), tests })
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}
