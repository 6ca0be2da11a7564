//! Our engine against Python's: the same templates and variables, the same text.
//!
//! Two corpora. `tests/python/snippets.json` holds small templates of our own, one for each feature.
//! `$PLEACH_SHARED/data/templates` holds real ones. Both need a `python3` with `jinja2`; what is
//! missing is printed and its test skipped.

// The helpers here are test code too, which clippy.toml does not see.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use pleach::chat::template::{
    ArgumentsForm, ChatTemplate, RenderInput, TemplateCaps, TemplateError,
};
use serde_json::{Map, Value};
use time::macros::datetime;

/// The same moment as in tests/python/render_templates.py.
const NOW: time::OffsetDateTime = datetime!(2026-02-03 04:05:06 UTC);

/// A difference that is meant.
struct Intended {
    /// Part of the template's name.
    template: &'static str,
    /// Name of the probe; empty for all.
    probe: &'static str,
    /// Part of Python's error; empty where Python renders.
    python_error: &'static str,
    /// Why ours may differ.
    reason: &'static str,
}

const INTENDED: &[Intended] = &[
    Intended {
        template: "",
        probe: "",
        python_error: "'NoneType' object is not iterable",
        reason: "a loop over none is a loop over nothing: absent tools and documents do no harm",
    },
    Intended {
        template: "llama-cpp-deepseek-r1",
        probe: "",
        python_error: "generator is not JSON serializable",
        reason: "a lazy list is a list: this template is meant for llama.cpp, where it works",
    },
    Intended {
        template: "functionary-medium-v3.1",
        probe: "",
        python_error: "",
        reason: "`|safe` + text escapes the text's quotes in Python: an accident of its string class",
    },
    Intended {
        template: "GigaChat3",
        probe: "floats",
        python_error: "",
        reason: "the engine's own `~` writes floats from 1e16 up and below 1e-4 without an exponent",
    },
    Intended {
        template: "llama4_pythonic",
        probe: "nested_arguments",
        python_error: "",
        reason: "as above, inside a dict that is joined to a text",
    },
    Intended {
        template: "toolace",
        probe: "nested_arguments",
        python_error: "",
        reason: "as above, inside a dict that is joined to a text",
    },
    Intended {
        template: "llama4_pythonic",
        probe: "call_string",
        python_error: "",
        reason: "`loop.last` over a text's letters; prepared messages have an object there",
    },
    Intended {
        template: "toolace",
        probe: "call_string",
        python_error: "",
        reason: "`loop.last` over a text's letters; prepared messages have an object there",
    },
];

#[derive(Debug, Clone, PartialEq)]
enum Answer {
    Text(String),
    Raised(String),
    Failed(String),
}

impl Answer {
    /// The same text, the same refusal, or a failure on both sides.
    fn agrees(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Failed(_), Self::Failed(_))) || self == other
    }
}

#[test]
fn snippets_agree_with_python() {
    let Some(python) = python() else { return };
    let path = repository().join("tests/python/snippets.json");
    let file = read_json(&path);
    let (snippets, variables) = (file["snippets"].as_array().unwrap(), &file["variables"]);
    let answers = render_in_python(&python, std::slice::from_ref(&path));
    let mut differences = Vec::new();
    for (index, snippet) in snippets.iter().enumerate() {
        let source = snippet["source"].as_str().unwrap();
        let ours = match ChatTemplate::compile(source) {
            Ok(template) => render(&template, variables.as_object().unwrap()),
            Err(error) => Answer::Failed(error.to_string()),
        };
        let theirs = &answers[&(path.display().to_string(), index.to_string())];
        let differs = snippet.get("differs").is_some();
        if ours.agrees(theirs) == differs {
            differences.push(format!("{source}\n   ours   {ours:?}\n   python {theirs:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn real_templates_agree_with_python() {
    let Some(templates) = real_templates() else { return };
    let Some(python) = python() else { return };
    let probes = read_json(&probes_path()).as_array().cloned().unwrap();
    let answers = render_in_python(&python, &templates);
    let mut used = vec![false; INTENDED.len()];
    let mut agreed = 0;
    let mut differences = Vec::new();
    for path in &templates {
        let source = std::fs::read_to_string(path).unwrap();
        let template = ChatTemplate::compile(&source);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for probe in &probes {
            let probe_name = probe["name"].as_str().unwrap();
            let ours = match &template {
                Ok(template) => render(template, probe["variables"].as_object().unwrap()),
                Err(error) => Answer::Failed(error.to_string()),
            };
            let theirs = &answers[&(path.display().to_string(), probe_name.to_owned())];
            if ours.agrees(theirs) {
                agreed += 1;
            } else if let Some(at) = intended(&name, probe_name, theirs) {
                used[at] = true;
            } else {
                differences.push(difference(&name, probe_name, &ours, theirs));
            }
        }
    }
    println!("{agreed} renders agree, {} differ", differences.len());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let unused: Vec<_> = INTENDED
        .iter()
        .zip(&used)
        .filter(|(_, used)| !**used)
        .map(|(entry, _)| (entry.template, entry.probe, entry.reason))
        .collect();
    assert!(unused.is_empty(), "no longer different: {unused:?}");
}

#[test]
fn every_real_template_compiles() {
    let Some(templates) = real_templates() else { return };
    let manifest = templates[0].with_file_name("MANIFEST.tsv");
    let listed = std::fs::read_to_string(manifest).unwrap().lines().count() - 1;
    let failures: Vec<_> = templates
        .iter()
        .filter_map(|path| {
            let source = std::fs::read_to_string(path).unwrap();
            ChatTemplate::compile(&source).err().map(|error| format!("{}: {error}", path.display()))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(templates.len(), listed);
}

/// Templates whose label in the manifest says less than the probes find, and why.
const LABELS_EXCUSED: &[(&str, &str)] = &[
    ("command-r-plus-tool_use", "Python fails on it without documents, so it had no label"),
    ("llama-cpp-deepseek-r1", "Python fails on its lazy list, so it had no label"),
    ("phi4_mini", "prints an object as Python's dict and a text as the JSON that it is"),
];

/// The labels were made with Python, by hand and by rule; what is found here must be the same.
#[test]
fn probes_find_what_the_manifest_says() {
    let Some(templates) = real_templates() else { return };
    let manifest = std::fs::read_to_string(templates[0].with_file_name("MANIFEST.tsv")).unwrap();
    let mut rows = manifest.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let header = rows.next().unwrap();
    let column = |name: &str| header.iter().position(|title| *title == name).unwrap();
    let (form, tools) = (column("history_tool_args_form"), column("renders_tools"));
    let mut differences = Vec::new();
    for row in rows {
        let source = std::fs::read_to_string(templates[0].with_file_name(row[0])).unwrap();
        let template = ChatTemplate::compile(&source).unwrap();
        let caps = template.caps();
        let found = format!("{:?} calls {} tools {}", caps.arguments, caps.tool_calls, caps.tools);
        let excused = LABELS_EXCUSED.iter().any(|(name, _)| row[0].contains(name));
        if labels_agree(caps, row[form], row[tools]) == excused {
            differences
                .push(format!("{}: {found}; listed {} tools {}", row[0], row[form], row[tools]));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn labels_agree(caps: &TemplateCaps, form: &str, tools: &str) -> bool {
    let form_agrees = match form {
        _ if form.starts_with("object") => caps.arguments == ArgumentsForm::Object,
        _ if form.starts_with("string") => caps.arguments == ArgumentsForm::Text,
        _ => true,
    };
    form_agrees && (tools == "yes") == caps.tools
}

fn intended(template: &str, probe: &str, theirs: &Answer) -> Option<usize> {
    let error = match theirs {
        Answer::Failed(error) => error.as_str(),
        Answer::Text(_) | Answer::Raised(_) => "",
    };
    INTENDED.iter().position(|entry| {
        template.contains(entry.template)
            && (entry.probe.is_empty() || entry.probe == probe)
            && error.contains(entry.python_error)
            && entry.python_error.is_empty() == error.is_empty()
    })
}

/// Both answers from a little before the first byte that differs.
fn difference(template: &str, probe: &str, ours: &Answer, theirs: &Answer) -> String {
    let (ours, theirs) = match (ours, theirs) {
        (Answer::Text(a), Answer::Text(b)) => {
            let at = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
            let around = |text: &str| -> String {
                text.chars().skip(at.saturating_sub(40)).take(120).collect()
            };
            (format!("{:?}", around(a)), format!("{:?}", around(b)))
        }
        _ => (format!("{ours:.200?}"), format!("{theirs:.200?}")),
    };
    let short = |text: String| text.chars().take(300).collect::<String>();
    format!("{template} {probe}\n   ours   {}\n   python {}", short(ours), short(theirs))
}

fn render(template: &ChatTemplate, variables: &Map<String, Value>) -> Answer {
    let mut kwargs = variables.clone();
    let mut take = |name: &str| kwargs.shift_remove(name).unwrap_or_default();
    let (messages, tools, documents) = (take("messages"), take("tools"), take("documents"));
    let (bos, eos) = (take("bos_token"), take("eos_token"));
    let add_generation_prompt = take("add_generation_prompt").as_bool().unwrap_or(false);
    let input = RenderInput {
        messages: messages.as_array().map_or(&[], Vec::as_slice),
        tools: tools.as_array().map(Vec::as_slice),
        documents: documents.as_array().map(Vec::as_slice),
        add_generation_prompt,
        kwargs: &kwargs,
        bos_token: bos.as_str().unwrap_or_default(),
        eos_token: eos.as_str().unwrap_or_default(),
        now: NOW,
    };
    match template.render(&input) {
        Ok(text) => Answer::Text(text),
        Err(TemplateError::Raised(message)) => Answer::Raised(message),
        Err(error) => Answer::Failed(error.to_string()),
    }
}

type Answers = BTreeMap<(String, String), Answer>;

fn render_in_python(python: &str, templates: &[PathBuf]) -> Answers {
    let output = Command::new(python)
        .arg(repository().join("tests/python/render_templates.py"))
        .arg(probes_path())
        .args(templates)
        .output()
        .unwrap();
    std::io::stderr().write_all(&output.stderr).unwrap();
    assert!(output.status.success(), "{}", output.status);
    let lines = String::from_utf8(output.stdout).unwrap();
    lines
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            let key = (plain(&line["template"]), plain(&line["probe"]));
            let answer = match (line["text"].as_str(), line["raised"].as_bool()) {
                (Some(text), _) => Answer::Text(text.to_owned()),
                (None, Some(true)) => Answer::Raised(plain(&line["error"])),
                (None, _) => Answer::Failed(plain(&line["error"])),
            };
            (key, answer)
        })
        .collect()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A Python that has jinja2: `$PLEACH_PYTHON` or `python3`.
fn python() -> Option<String> {
    let python = std::env::var("PLEACH_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python).args(["-c", "import jinja2"]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    println!("skipped: {python} with jinja2 is not here");
    None
}

fn real_templates() -> Option<Vec<PathBuf>> {
    let Ok(shared) = std::env::var("PLEACH_SHARED") else {
        println!("skipped: PLEACH_SHARED is not set");
        return None;
    };
    let folder = Path::new(&shared).join("data/templates");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jinja"))
        .collect();
    paths.sort();
    Some(paths)
}

fn probes_path() -> PathBuf {
    repository().join("tests/python/probes.json")
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read_json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}
