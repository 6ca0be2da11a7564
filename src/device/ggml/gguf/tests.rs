use std::io::Write;

use tempfile::NamedTempFile;

use super::testing::{model_path, start_quietly};
use super::*;

fn string(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

fn entry(key: &str, kind: u32, value: &[u8]) -> Vec<u8> {
    [string(key), kind.to_le_bytes().to_vec(), value.to_vec()].concat()
}

fn array(kind: u32, length: u64, values: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &length.to_le_bytes(), values].concat()
}

/// A GGUF file with a value of every type and one tensor of 2 x 3 floats.
fn small_file() -> Vec<u8> {
    let entries = [
        entry("u8", 0, &[200]),
        entry("i8", 1, &[0xff]),
        entry("u16", 2, &[1, 2]),
        entry("i16", 3, &(-2i16).to_le_bytes()),
        entry("general.file_type", 4, &3u32.to_le_bytes()),
        entry("i32", 5, &(-3i32).to_le_bytes()),
        entry("f32", 6, &1.5f32.to_le_bytes()),
        entry("bool", 7, &[1]),
        entry("text", 8, &string("héllo")),
        entry("u64", 10, &u64::MAX.to_le_bytes()),
        entry("i64", 11, &i64::MIN.to_le_bytes()),
        entry("f64", 12, &0.25f64.to_le_bytes()),
        entry("ints", 9, &array(5, 2, &[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff])),
        entry("floats", 9, &array(6, 1, &2.5f32.to_le_bytes())),
        entry("bools", 9, &array(7, 3, &[0, 1, 0])),
        entry("texts", 9, &array(8, 2, &[string("a"), string("")].concat())),
        entry("bad", 8, &[2, 0, 0, 0, 0, 0, 0, 0, 0xc3, 0x28]),
    ];
    let mut file = b"GGUF".to_vec();
    file.extend(3u32.to_le_bytes());
    file.extend(1u64.to_le_bytes());
    file.extend((entries.len() as u64).to_le_bytes());
    file.extend(entries.concat());
    file.extend(string("weight"));
    file.extend(2u32.to_le_bytes());
    file.extend([2u64.to_le_bytes(), 3u64.to_le_bytes()].concat());
    file.extend(0u32.to_le_bytes());
    file.extend(0u64.to_le_bytes());
    file.resize(file.len().next_multiple_of(32) + 32, 0);
    file
}

fn read(bytes: &[u8]) -> Result<GgufMetadata, GgufError> {
    start_quietly();
    let mut file = NamedTempFile::new().expect("temporary file");
    file.write_all(bytes).expect("writes");
    GgufMetadata::read(file.path())
}

#[test]
fn every_type_is_read() {
    let metadata = read(&small_file()).expect("reads");
    assert_eq!(metadata.integer("u8").expect("typed"), Some(200u8));
    assert_eq!(metadata.integer("i8").expect("typed"), Some(-1i32));
    assert_eq!(metadata.integer("u16").expect("typed"), Some(0x0201u32));
    assert_eq!(metadata.integer("i16").expect("typed"), Some(-2i64));
    assert_eq!(metadata.integer("i32").expect("typed"), Some(-3i32));
    assert_eq!(metadata.integer("u64").expect("typed"), Some(u64::MAX));
    assert_eq!(metadata.integer("i64").expect("typed"), Some(i64::MIN));
    assert_eq!(metadata.float("f32").expect("typed"), Some(1.5));
    assert_eq!(metadata.float("f64").expect("typed"), Some(0.25));
    assert_eq!(metadata.boolean("bool").expect("typed"), Some(true));
    assert_eq!(metadata.string("text").expect("typed"), Some("héllo"));
    assert_eq!(metadata.integers("ints").expect("typed"), Some(&[1i128, -1][..]));
    assert_eq!(metadata.floats("floats").expect("typed"), Some(vec![2.5]));
    assert_eq!(metadata.get("bools"), Some(&GgufValue::Bools(vec![false, true, false])));
    let texts = metadata.strings("texts").expect("typed").expect("there");
    assert_eq!(texts, ["a", ""]);
    assert_eq!(metadata.file_type().expect("typed"), Some(3));
    assert_eq!((metadata.tensors(), metadata.parameters()), (1, 6));
    assert_eq!(metadata.tensor_bytes(), 24);
    assert_eq!(metadata.iter().count(), 17);
}

#[test]
fn a_wrong_type_is_an_error_and_a_missing_key_is_not() {
    let metadata = read(&small_file()).expect("reads");
    assert_eq!(metadata.string("missing").expect("no error"), None);
    let error = metadata.string("u8").expect_err("not text");
    assert_eq!(error.to_string(), "the model file's `u8` is an integer, but should be text");
    assert!(metadata.integer::<u8>("i8").is_err());
    assert!(metadata.string("bad").is_err());
}

#[test]
fn what_is_no_gguf_is_named() {
    assert!(matches!(read(b""), Err(GgufError::NotGguf { .. })));
    assert!(matches!(read(b"GGU"), Err(GgufError::NotGguf { .. })));
    assert!(matches!(read(b"some text file\n"), Err(GgufError::NotGguf { .. })));
    let missing = Path::new("/no/such/model.gguf");
    assert!(matches!(GgufMetadata::read(missing), Err(GgufError::Io { .. })));
    let folder = std::env::temp_dir();
    assert!(matches!(GgufMetadata::read(&folder), Err(GgufError::NotAFile { .. })));
    let mut version = small_file();
    version[4] = 1;
    assert!(matches!(read(&version), Err(GgufError::Version { version: 1, .. })));
}

#[test]
fn every_truncation_is_an_error() {
    let file = small_file();
    // What follows the last tensor's bytes is padding.
    let needed = file.len() - 8;
    for length in 0..needed {
        assert!(read(&file[..length]).is_err(), "{length} of {} bytes", file.len());
    }
    assert!(read(&file[..needed]).is_ok());
}

#[test]
fn no_changed_byte_ends_the_process() {
    let file = small_file();
    for position in 0..file.len() - 32 {
        for value in [0x00, 0x7f, 0x80, 0xff, file[position].wrapping_add(1)] {
            let mut changed = file.clone();
            changed[position] = value;
            if let Err(error) = read(&changed) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}

#[test]
fn hostile_counts_are_refused_before_anything_is_allocated() {
    let header = |tensors: u64, keys: u64| {
        [&b"GGUF\x03\0\0\0"[..], &tensors.to_le_bytes(), &keys.to_le_bytes()].concat()
    };
    for (tensors, keys) in [(u64::MAX, 0), (0, u64::MAX), (1 << 40, 1), (0, 1 << 20)] {
        let error = read(&header(tensors, keys)).expect_err("refused");
        assert!(matches!(error, GgufError::Damaged { .. }), "{error}");
    }
    for (kind, length) in [(8, 1u64 << 29), (4, 1 << 29), (10, u64::MAX), (9, 1), (77, 1)] {
        let mut file = header(0, 1);
        file.extend(entry("k", 9, &array(kind, length, &[])));
        assert!(read(&file).is_err(), "array of {length} of type {kind}");
    }
}

#[test]
fn a_real_model_is_read_whole_or_not_at_all() {
    let Some(path) = model_path() else { return };
    let metadata = GgufMetadata::read(&path).expect("reads");
    assert_eq!(metadata.string("general.architecture").expect("typed"), Some("llama"));
    let tokens = metadata.strings("tokenizer.ggml.tokens").expect("typed").expect("there");
    assert_eq!(tokens.len(), 49_152);
    assert!((130_000_000..140_000_000).contains(&metadata.parameters()));

    let copy = NamedTempFile::new().expect("temporary file");
    std::fs::copy(&path, copy.path()).expect("copies");
    let length = copy.as_file().metadata().expect("has a size").len();
    let cuts = [length - 64, length / 2, 1_900_000, 1_000_000, 4_097, 600, 24, 23, 8, 5, 4, 1, 0];
    for cut in cuts {
        copy.as_file().set_len(cut).expect("cuts");
        let error = GgufMetadata::read(copy.path()).expect_err("cut short");
        let named = matches!(error, GgufError::Truncated { .. } | GgufError::NotGguf { .. });
        assert!(named || cut > 1_000_000, "{cut}: {error}");
    }
}
