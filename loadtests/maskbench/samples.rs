//! Times of many masks. They wait in a file: in memory they would count as the engines'.

use std::fs::{File, OpenOptions, remove_file};
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicU32, Ordering};

/// Samples that are held in memory, at most.
const HELD_MAX: usize = 16_384;

/// Samples, in the order in which they came.
#[derive(Debug, Default)]
pub struct Samples {
    held: Vec<f32>,
    file: Option<File>,
}

impl Samples {
    pub fn push(&mut self, sample: f32) {
        self.held.push(sample);
    }

    /// Adds the samples of another list, which were never written out.
    pub fn extend(&mut self, other: Self) -> std::io::Result<()> {
        self.held.extend(other.held);
        if self.held.len() < HELD_MAX {
            return Ok(());
        }
        let bytes: Vec<u8> = self.held.drain(..).flat_map(f32::to_le_bytes).collect();
        if self.file.is_none() {
            self.file = Some(nameless_file()?);
        }
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(&bytes))
    }

    /// The first sample, if none was written out.
    pub fn first(&self) -> Option<f32> {
        self.held.first().copied()
    }

    /// All samples.
    pub fn read(&self) -> std::io::Result<Vec<f32>> {
        let mut bytes = Vec::new();
        if let Some(mut file) = self.file.as_ref() {
            file.seek(SeekFrom::Start(0))?;
            file.read_to_end(&mut bytes)?;
        }
        let written = bytes.chunks_exact(4);
        let written =
            written.map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        Ok(written.chain(self.held.iter().copied()).collect())
    }
}

/// A file that is gone when it is closed.
fn nameless_file() -> std::io::Result<File> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("maskbench-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    remove_file(path)?;
    Ok(file)
}
