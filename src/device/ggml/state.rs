//! Saved sequences: the library's bytes in an envelope that says whose they are and that they are
//! whole. The library itself would write foreign bytes into its tensors unseen.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use rustc_hash::FxHasher;

const MAGIC: &[u8; 8] = b"PLCHSEQ1";
/// Magic, fingerprint, length in tokens, hash of these and of the body.
const HEAD: usize = 8 + 8 + 4 + 8;

/// Starts an envelope; the state's bytes are appended to it before [`seal`].
pub(super) fn open(fingerprint: u64, length_tokens: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&fingerprint.to_le_bytes());
    bytes.extend_from_slice(&length_tokens.to_le_bytes());
    bytes.extend_from_slice(&[0; 8]);
    bytes
}

/// Writes the hash of all the rest into the head.
pub(super) fn seal(bytes: &mut [u8]) {
    if let Some((head, body)) = bytes.split_at_mut_checked(HEAD) {
        let (named, place) = head.split_at_mut(HEAD - 8);
        place.copy_from_slice(&hash(named, body).to_le_bytes());
    }
}

/// The length in tokens and the state's bytes, or why they cannot be used here.
pub(super) fn read(bytes: &[u8], fingerprint: u64) -> Result<(u32, &[u8]), &'static str> {
    let named = bytes.get(..HEAD - 8).unwrap_or_default();
    let mut rest = bytes;
    if take::<8>(&mut rest) != Some(*MAGIC) {
        return Err("these bytes are not a saved sequence");
    }
    let whose = take::<8>(&mut rest).map(u64::from_le_bytes);
    let length = take::<4>(&mut rest).map(u32::from_le_bytes);
    let expected = take::<8>(&mut rest).map(u64::from_le_bytes);
    if whose != Some(fingerprint) {
        return Err("it was saved with another model, build or device setting");
    }
    match (length, expected) {
        (Some(length), Some(expected)) if expected == hash(named, rest) => Ok((length, rest)),
        _ => Err("the saved sequence is damaged"),
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

/// Finds damage, not malice; a few gigabytes a second.
fn hash(named: &[u8], body: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(named);
    hasher.write(body);
    hasher.write_usize(body.len());
    hasher.finish()
}

/// A number that differs for another model file, library version or context shape. Reads the
/// file's head, where the metadata is, and samples of its weights.
pub(super) fn fingerprint(model: &Path, texts: &[&str], numbers: &[u64]) -> io::Result<u64> {
    const HEAD_BYTES: u64 = 1 << 20;
    const SAMPLES: u64 = 16;
    const SAMPLE_BYTES: u64 = 4096;
    let mut file = File::open(model)?;
    let size = file.metadata()?.len();
    let mut hasher = FxHasher::default();
    let mut bytes = Vec::new();
    file.by_ref().take(HEAD_BYTES).read_to_end(&mut bytes)?;
    for sample in 1..=SAMPLES {
        let at = (size / SAMPLES * sample).saturating_sub(SAMPLE_BYTES);
        file.seek(SeekFrom::Start(at))?;
        file.by_ref().take(SAMPLE_BYTES).read_to_end(&mut bytes)?;
    }
    hasher.write(&bytes);
    hasher.write_u64(size);
    for text in texts {
        hasher.write(text.as_bytes());
        hasher.write_u8(0xff);
    }
    for number in numbers {
        hasher.write_u64(*number);
    }
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> Vec<u8> {
        let mut bytes = open(7, 300);
        bytes.extend_from_slice(b"the state");
        seal(&mut bytes);
        bytes
    }

    #[test]
    fn what_is_sealed_is_read() {
        assert_eq!(read(&sealed(), 7), Ok((300, b"the state".as_slice())));
    }

    #[test]
    fn every_changed_or_missing_byte_is_noticed() {
        let good = sealed();
        for index in 0..good.len() {
            let mut bad = good.clone();
            bad[index] ^= 0x10;
            assert!(read(&bad, 7).is_err(), "byte {index}");
            assert!(read(&good[..index], 7).is_err(), "cut at {index}");
        }
        assert!(read(&good, 8).is_err());
        assert!(read(&[], 7).is_err());
    }
}
