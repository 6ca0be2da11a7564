//! A walk over a GGUF header before the library reads it.
//!
//! The library trusts counts up to 2^30 and allocates for them in advance, and a failed
//! allocation there ends the process. So every count and length is first held against the bytes
//! that are there and against limits far above those of real models.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use super::GgufError;

/// Keys in a file. Real ones have some dozens.
const KEYS_MAX: u64 = 65_536;
/// Tensors in a file. The largest mixtures of experts have some thousands.
const TENSORS_MAX: u64 = 1_048_576;
/// Elements of one array. The largest are merges, some 500,000.
const ARRAY_ELEMENTS_MAX: u64 = 16_777_216;
/// Bytes of all keys and values. A vocabulary of 262,144 tokens with its merges needs some 20 MB.
const METADATA_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Checks the header of the file at `path` and gives the file's size in bytes.
pub(super) fn check(path: &Path) -> Result<u64, GgufError> {
    let io = |source| GgufError::Io { path: path.to_owned(), source };
    let about = std::fs::metadata(path).map_err(io)?;
    if !about.is_file() {
        return Err(GgufError::NotAFile { path: path.to_owned() });
    }
    let file = File::open(path).map_err(io)?;
    let walk = Walk { path, input: BufReader::new(file), at: 0, file_bytes: about.len() };
    walk.run()?;
    Ok(about.len())
}

struct Walk<'p> {
    path: &'p Path,
    input: BufReader<File>,
    /// Bytes read or passed over so far.
    at: u64,
    file_bytes: u64,
}

impl Walk<'_> {
    fn run(mut self) -> Result<(), GgufError> {
        self.magic_and_version()?;
        let tensors = self.u64("the number of tensors")?;
        let keys = self.u64("the number of keys")?;
        if tensors > TENSORS_MAX || keys > KEYS_MAX {
            return Err(self.damaged(format!("it claims {tensors} tensors and {keys} keys")));
        }
        for index in 0..keys {
            let place = format!("key {index} of {keys}");
            self.string(&place)?;
            let kind = self.u32(&place)?;
            if kind == 9 {
                self.array(&place)?
            } else {
                self.values(kind, 1, &place)?
            }
            if self.at > METADATA_BYTES_MAX {
                return Err(
                    self.damaged(format!("its keys fill more than {METADATA_BYTES_MAX} bytes"))
                );
            }
        }
        Ok(())
    }

    fn magic_and_version(&mut self) -> Result<(), GgufError> {
        let mut magic = [0; 4];
        let not_gguf = || GgufError::NotGguf { path: self.path.to_owned() };
        if self.file_bytes < 4 {
            return Err(not_gguf());
        }
        self.input
            .read_exact(&mut magic)
            .map_err(|source| GgufError::Io { path: self.path.to_owned(), source })?;
        if &magic != b"GGUF" {
            return Err(not_gguf());
        }
        self.at = 4;
        let version = self.u32("the version")?;
        if !(2..=3).contains(&version) {
            return Err(GgufError::Version { path: self.path.to_owned(), version });
        }
        Ok(())
    }

    fn array(&mut self, place: &str) -> Result<(), GgufError> {
        let kind = self.u32(place)?;
        let length = self.u64(place)?;
        if length > ARRAY_ELEMENTS_MAX {
            return Err(self.damaged(format!("{place} claims an array of {length} elements")));
        }
        self.values(kind, length, place)
    }

    fn values(&mut self, kind: u32, count: u64, place: &str) -> Result<(), GgufError> {
        let size = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            10..=12 => 8,
            8 => {
                for _ in 0..count {
                    self.string(place)?;
                }
                return Ok(());
            }
            _ => return Err(self.damaged(format!("{place} is of the unknown type {kind}"))),
        };
        self.pass_over(size * count, place)
    }

    fn string(&mut self, place: &str) -> Result<(), GgufError> {
        let length = self.u64(place)?;
        self.pass_over(length, place)
    }

    fn pass_over(&mut self, length: u64, place: &str) -> Result<(), GgufError> {
        if length > self.file_bytes.saturating_sub(self.at) {
            return Err(self.truncated(place));
        }
        let step = i64::try_from(length).map_err(|_| self.truncated(place))?;
        self.input
            .seek_relative(step)
            .map_err(|source| GgufError::Io { path: self.path.to_owned(), source })?;
        self.at += length;
        Ok(())
    }

    fn u32(&mut self, place: &str) -> Result<u32, GgufError> {
        self.bytes(place).map(u32::from_le_bytes)
    }

    fn u64(&mut self, place: &str) -> Result<u64, GgufError> {
        self.bytes(place).map(u64::from_le_bytes)
    }

    fn bytes<const N: usize>(&mut self, place: &str) -> Result<[u8; N], GgufError> {
        let mut bytes = [0; N];
        match self.input.read_exact(&mut bytes) {
            Ok(()) => {
                self.at += N as u64;
                Ok(bytes)
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(self.truncated(place)),
            Err(source) => Err(GgufError::Io { path: self.path.to_owned(), source }),
        }
    }

    fn truncated(&self, place: &str) -> GgufError {
        GgufError::Truncated { path: self.path.to_owned(), place: place.to_owned() }
    }

    fn damaged(&self, reason: String) -> GgufError {
        GgufError::Damaged { path: self.path.to_owned(), reason }
    }
}
