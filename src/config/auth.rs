//! `[auth]`: who may ask.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::check::Problems;
use super::{ConfigError, Problem};

/// Who may ask. Without a key everybody may.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// The keys, one client each. Default none.
    pub keys: Vec<ApiKey>,
}

/// One client's key: its hash, or a file that holds it. The key itself never stands in the config.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// The client's name in logs and metrics; each has its own.
    pub name: String,
    /// The key's SHA-256 in 64 hexadecimal digits, as `pleach hash-key` prints it.
    pub sha256: Option<String>,
    /// A file that holds the key on its only line, such as a systemd credential.
    pub file: Option<PathBuf>,
    /// The client's share of the device where several compete for it: one of weight 2 gets twice
    /// the tokens of one of weight 1. Default 1, 1 to 1000.
    #[serde(default = "one")]
    pub weight: u32,
}

fn one() -> u32 {
    1
}

/// The SHA-256 of a key. Its `Debug` shows nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyDigest(pub [u8; 32]);

/// A key that is ready to be compared with what a client sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientKey {
    /// The client's name.
    pub name: String,
    /// What [`hash_key`] makes of the right key.
    pub digest: KeyDigest,
}

/// The digest by which a key is known.
pub fn hash_key(key: &[u8]) -> KeyDigest {
    KeyDigest(Sha256::digest(key).into())
}

impl KeyDigest {
    fn from_hex(text: &str) -> Option<Self> {
        let mut digest = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (index, byte) in digest.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
        }
        Some(Self(digest))
    }

    /// The digest in 64 hexadecimal digits.
    pub fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest(..)")
    }
}

impl AuthConfig {
    /// Every key with its digest; reads the files that hold keys.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] where a hash is malformed or a file cannot be used.
    pub fn client_keys(&self) -> Result<Vec<ClientKey>, ConfigError> {
        let resolve = |(index, key): (usize, &ApiKey)| {
            key.digest().map(|digest| ClientKey { name: key.name.clone(), digest }).map_err(
                |(field, message)| {
                    let key = format!("auth.keys[{index}].{field}");
                    ConfigError::Invalid(vec![Problem { place: None, key, message }])
                },
            )
        };
        self.keys.iter().enumerate().map(resolve).collect()
    }

    pub(super) fn resolve_paths(&mut self, folder: &Path) {
        for file in self.keys.iter_mut().filter_map(|key| key.file.as_mut()) {
            *file = folder.join(&*file);
        }
    }

    pub(super) fn check(&self, problems: &mut Problems) {
        for (index, key) in self.keys.iter().enumerate() {
            let path = format!("auth.keys[{index}]");
            problems.not_blank(format!("{path}.name"), &key.name);
            problems.range(&format!("{path}.weight"), key.weight, 1..=1000);
            if self.keys.iter().take(index).any(|earlier| earlier.name == key.name) {
                let message = format!("is {:?}, which another key has already", key.name);
                problems.add(format!("{path}.name"), message);
            }
            match (&key.sha256, &key.file) {
                (Some(_), None) => {
                    if let Err((field, message)) = key.digest() {
                        problems.add(format!("{path}.{field}"), message);
                    }
                }
                (None, Some(_)) => {}
                _ => problems.add(path, "must have either sha256 or file"),
            }
        }
    }

    pub(super) fn check_files(&self, problems: &mut Problems) {
        for (index, key) in self.keys.iter().enumerate().filter(|(_, key)| key.file.is_some()) {
            if let Err((field, message)) = key.digest() {
                problems.add(format!("auth.keys[{index}].{field}"), message);
            }
        }
    }
}

impl ApiKey {
    /// The digest, or the field at fault and what is wrong with it.
    fn digest(&self) -> Result<KeyDigest, (&'static str, String)> {
        if let Some(hash) = &self.sha256 {
            return KeyDigest::from_hex(hash).ok_or_else(|| {
                let message = "must be 64 hexadecimal digits, as pleach hash-key prints them";
                ("sha256", message.to_owned())
            });
        }
        let Some(file) = &self.file else {
            return Err(("sha256", "is not set, nor is file".to_owned()));
        };
        let shown = file.display();
        let text = std::fs::read_to_string(file)
            .map_err(|error| ("file", format!("names {shown}, which cannot be read: {error}")))?;
        let key = text.trim();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(("file", format!("names {shown}, which must hold one key on one line")));
        }
        Ok(hash_key(key.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest of "abc" in FIPS 180-2, appendix B.1.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn hashes_and_reads_hexadecimal() {
        assert_eq!(hash_key(b"abc").to_hex(), ABC);
        assert_eq!(KeyDigest::from_hex(ABC), Some(hash_key(b"abc")));
        assert_eq!(KeyDigest::from_hex(&ABC.to_uppercase()), Some(hash_key(b"abc")));
        for bad in ["", "ba78", &format!("{ABC}0"), &ABC.replace('a', "g"), &"é".repeat(32)] {
            assert_eq!(KeyDigest::from_hex(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_file_holds_the_key_itself() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        let mut auth = AuthConfig {
            keys: vec![ApiKey {
                name: "a".into(),
                sha256: None,
                file: Some("key".into()),
                weight: 1,
            }],
        };
        auth.resolve_paths(folder.path());
        std::fs::write(&file, "abc\n").unwrap();
        let keys = auth.client_keys().unwrap();
        assert_eq!(keys, [ClientKey { name: "a".into(), digest: hash_key(b"abc") }]);
        std::fs::write(&file, "abc\ndef\n").unwrap();
        let error = auth.client_keys().unwrap_err().to_string();
        assert!(error.starts_with("auth.keys[0].file names "), "{error}");
    }

    #[test]
    fn a_digest_never_shows_in_debug_output() {
        let key = ClientKey { name: "a".into(), digest: hash_key(b"abc") };
        assert_eq!(format!("{key:?}"), "ClientKey { name: \"a\", digest: KeyDigest(..) }");
    }
}
