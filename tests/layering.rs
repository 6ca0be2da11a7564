//! The rooms of `src/lib.rs`'s table use only what stands below them, and what each may touch.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

/// No runtime, no clock, no input or output, no logging of their own.
const PURE: [&str; 5] = ["session", "schedule", "chat", "grammar", "sampling"];
const NOT_PURE: [&str; 18] = [
    "tokio",
    "actix",
    "actix_rt",
    "actix_web",
    "awc",
    "crossbeam_channel",
    "Instant::now",
    "SystemTime",
    "std::fs",
    "stdin",
    "stdout",
    "stderr",
    "std::net",
    "std::env",
    "std::thread",
    "tracing",
    "metrics",
    "println!",
];

struct Source {
    /// Relative to `src`, as in `device/thread.rs`.
    path: String,
    room: String,
    /// Without comments and without the tests at the end.
    code: String,
}

#[test]
fn rooms_use_only_what_stands_below_them() {
    let order = rooms_in_order();
    let rank = |room: &str| order.iter().position(|other| other == room);
    let mut uses = 0;
    for source in sources() {
        let Some(own) = rank(&source.room) else {
            panic!("{} is in no room of the table in src/lib.rs", source.path)
        };
        for used in rooms_used(&source.code) {
            let Some(other) = rank(&used) else {
                panic!("{} uses crate::{used}, which the table in src/lib.rs lacks", source.path)
            };
            assert!(own <= other, "{} uses crate::{used}, which stands above it", source.path);
            uses += 1;
        }
    }
    assert!(uses > 5, "only {uses} uses were found: the test reads the sources wrongly");
}

#[test]
fn pure_rooms_have_no_runtime_no_clock_and_no_io() {
    for source in sources().iter().filter(|source| PURE.contains(&source.room.as_str())) {
        for word in NOT_PURE {
            assert!(!names(&source.code, word), "{} names {word}", source.path);
        }
    }
}

#[test]
fn only_the_rim_touches_actors_and_only_the_device_thread_the_channel() {
    for source in sources() {
        let is_rim = ["actors", "daemon"].contains(&source.room.as_str());
        assert!(is_rim || !source.code_has_path("actix"), "{} names actix::", source.path);
        let is_thread = source.path == "device/thread.rs";
        let has_channel = names(&source.code, "crossbeam_channel");
        assert!(is_thread || !has_channel, "{} names crossbeam_channel", source.path);
    }
}

#[test]
fn the_reader_of_this_test_sees_what_it_should() {
    let code = strip(
        "use crate::{chat, device::Slot};\n// crate::http\nx(crate::TokenId, crate::vocab::y);\n#[cfg(test)]\nmod tests { use crate::daemon; }\n",
    );
    assert_eq!(rooms_used(&code), ["chat", "device", "vocab"]);
    assert!(names("std::time::Instant::now()", "Instant::now"));
    assert!(names("metrics::counter!()", "metrics"));
    assert!(!names("let my_metrics = metrics_of(x);", "metrics"));
}

impl Source {
    /// Whether a path starts with the crate's name: `actix::` but not `actix_web::`.
    fn code_has_path(&self, crate_name: &str) -> bool {
        names(&self.code, &format!("{crate_name}::"))
            || names(&self.code, &format!("use {crate_name}"))
    }
}

/// The rooms of the table in `src/lib.rs`, top to bottom.
fn rooms_in_order() -> Vec<String> {
    let text = std::fs::read_to_string(source_folder().join("lib.rs")).unwrap();
    let rooms: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("//! | [`")?.split_once('`'))
        .map(|(room, _)| room.to_owned())
        .collect();
    assert!(rooms.len() >= 12, "the table of rooms in src/lib.rs was not found: {rooms:?}");
    rooms
}

fn source_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every source file of a room, without test files. The two at the top belong to no room.
fn sources() -> Vec<Source> {
    let mut files = Vec::new();
    collect(&source_folder(), &mut files);
    files
        .into_iter()
        .map(|file| {
            let path = file.strip_prefix(source_folder()).unwrap().to_str().unwrap().to_owned();
            let room = path.split(['/', '.']).next().unwrap().to_owned();
            Source { room, code: strip(&std::fs::read_to_string(&file).unwrap()), path }
        })
        .filter(|source| !["lib", "main"].contains(&source.room.as_str()))
        .collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "tests" {
            collect(&path, files);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            files.push(path);
        }
    }
}

/// The code without line comments and without the test module that ends a file.
fn strip(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let line_start = line.trim_start();
        let is_test = line_start.starts_with("#[cfg(test)]");
        if is_test
            && lines.peek().is_some_and(|next| next.starts_with("mod ") && next.contains('{'))
        {
            break;
        }
        if !line_start.starts_with("//") {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

/// The rooms named after `crate::` (also in braces), in order of appearance. Names in capitals are
/// the crate's own few items.
fn rooms_used(code: &str) -> Vec<String> {
    let mut rooms = Vec::new();
    for (start, _) in code.match_indices("crate::") {
        if code[..start].ends_with(|letter: char| letter == '_' || letter.is_alphanumeric()) {
            continue;
        }
        let rest = &code[start + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(list) => rooms.extend(first_names_in_braces(list)),
            None => rooms.push(leading_name(rest)),
        }
    }
    rooms.retain(|room| room.starts_with(|letter: char| letter.is_ascii_lowercase()));
    rooms
}

/// The first name of each item of a `use` list, whose opening brace is behind us.
fn first_names_in_braces(list: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 1;
    let mut item_starts = true;
    for (index, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => item_starts = true,
            letter if item_starts && !letter.is_whitespace() => {
                names.push(leading_name(&list[index..]));
                item_starts = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

fn leading_name(text: &str) -> String {
    text.chars().take_while(|letter| *letter == '_' || letter.is_alphanumeric()).collect()
}

/// Whether `word` stands in the code as a word of its own.
fn names(code: &str, word: &str) -> bool {
    let is_part = |letter: char| letter == '_' || letter.is_alphanumeric();
    code.match_indices(word).any(|(start, _)| {
        let before = code[..start].chars().next_back();
        let after = code[start + word.len()..].chars().next();
        let ends_open = !word.ends_with(is_part);
        !before.is_some_and(is_part) && (ends_open || !after.is_some_and(is_part))
    })
}
