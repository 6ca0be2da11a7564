//! Times, verdicts, and how they are printed.

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::samples::Samples;

/// Runs `work` and says how many microseconds of this thread's CPU time it took, less what
/// asking for the time takes by itself: about a microsecond on a virtual machine.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f32) {
    let clock = clock_nanos();
    let start = thread_nanos();
    let result = work();
    (result, (thread_nanos() - start - clock).max(0) as f32 / 1_000.0)
}

/// What two looks at the clock take, at the median.
fn clock_nanos() -> i64 {
    static NANOS: OnceLock<i64> = OnceLock::new();
    *NANOS.get_or_init(|| {
        let mut samples: Vec<i64> = (0..10_001)
            .map(|_| {
                let start = thread_nanos();
                thread_nanos() - start
            })
            .collect();
        samples.sort_unstable();
        samples[samples.len() / 2]
    })
}

fn thread_nanos() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place to write a `timespec` to.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// What one engine did on some grammars. Times in microseconds.
#[derive(Debug, Default)]
pub struct Tally {
    pub grammars: usize,
    pub refused: Vec<(String, String)>,
    masks: usize,
    tbm: Samples,
    /// Of each mask; not a number where no token was taken.
    accept: Samples,
    pub ttfm: Samples,
    valid: usize,
    invalid: usize,
    valid_rejected: Vec<String>,
    invalid_accepted: Vec<String>,
}

impl Tally {
    /// Nothing measured yet, of one grammar.
    pub fn of_one() -> Self {
        Self { grammars: 1, ..Self::default() }
    }

    /// A mask, and the token after it if one was taken.
    pub fn step(&mut self, mask: f32, accept: Option<f32>) {
        self.masks += 1;
        self.tbm.push(mask);
        self.accept.push(accept.unwrap_or(f32::NAN));
    }

    pub fn refuse(&mut self, id: &str, reason: String) {
        self.refused.push((id.to_owned(), reason));
    }

    pub fn judge(&mut self, id: &str, is_valid: bool, is_accepted: bool) {
        match (is_valid, is_accepted) {
            (true, false) => self.valid_rejected.push(id.to_owned()),
            (false, true) => self.invalid_accepted.push(id.to_owned()),
            _ => {}
        }
        self.valid += usize::from(is_valid);
        self.invalid += usize::from(!is_valid);
    }

    /// Adds what was done on one grammar.
    pub fn add(&mut self, other: Self) -> Result<(), String> {
        self.grammars += other.grammars;
        self.refused.extend(other.refused);
        self.masks += other.masks;
        let samples = [
            (&mut self.tbm, other.tbm),
            (&mut self.accept, other.accept),
            (&mut self.ttfm, other.ttfm),
        ];
        for (all, more) in samples {
            all.extend(more).map_err(|error| format!("keeping times: {error}"))?;
        }
        self.valid += other.valid;
        self.invalid += other.invalid;
        self.valid_rejected.extend(other.valid_rejected);
        self.invalid_accepted.extend(other.invalid_accepted);
        Ok(())
    }

    fn to_json(&self, rows: &Rows, peak: f64) -> Value {
        let mut object = json!({
            "grammars": self.grammars,
            "refused_pct": percent(self.refused.len(), self.grammars),
            "valid_rejected_pct": percent(self.valid_rejected.len(), self.valid),
            "invalid_accepted_pct": percent(self.invalid_accepted.len(), self.invalid),
            "peak_mb": peak,
        });
        for (name, row) in rows {
            object[*name] = row.to_json();
        }
        object
    }

    fn rows(&self) -> Result<Rows, String> {
        let read = |samples: &Samples| {
            samples.read().map_err(|error| format!("reading times back: {error}"))
        };
        let (tbm, accept, ttfm) = (read(&self.tbm)?, read(&self.accept)?, read(&self.ttfm)?);
        let is_taken = |time: &f32| !time.is_nan();
        let accepts = accept.iter().copied().filter(is_taken);
        let steps = tbm.iter().zip(&accept).map(|(mask, accept)| mask + accept).filter(is_taken);
        Ok([
            ("tbm", Summary::of(tbm.iter().copied())),
            ("accept", Summary::of(accepts)),
            ("step", Summary::of(steps)),
            ("ttfm", Summary::of(ttfm.into_iter())),
        ])
    }
}

/// What is shown of each kind of time.
type Rows = [(&'static str, Summary); 4];

fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// Most memory the process has held so far. Ours runs first on each grammar, so with a peer in
/// the run both figures include the peer's; run with `--peer none` for ours alone.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|text| text.trim().trim_end_matches("kB").trim().parse().ok());
    kilobytes.map_or(0.0, |kilobytes: f64| kilobytes / 1_024.0)
}

const NAMES: [&str; 6] = ["avg", "p50", "p90", "p99", "p99_9", "max"];

/// Average and percentiles, in the order of [`NAMES`].
#[derive(Clone, Copy, Debug, Default)]
struct Summary([f64; 6]);

impl Summary {
    fn of(samples: impl Iterator<Item = f32>) -> Self {
        let mut sorted: Vec<f32> = samples.collect();
        sorted.sort_unstable_by(f32::total_cmp);
        let Some(&max) = sorted.last() else { return Self::default() };
        let at = |share: f64| {
            let rank = (share * sorted.len() as f64).ceil() as usize;
            f64::from(sorted.get(rank.saturating_sub(1)).copied().unwrap_or(max))
        };
        let average = sorted.iter().copied().map(f64::from).sum::<f64>() / sorted.len() as f64;
        let max = f64::from(max);
        Self([average, at(0.5), at(0.9), at(0.99), at(0.999), max])
    }

    fn over(self, other: Self) -> Self {
        let mut ratio = self.0;
        ratio.iter_mut().zip(other.0).for_each(|(ours, theirs)| {
            *ours = if theirs == 0.0 { 0.0 } else { *ours / theirs };
        });
        Self(ratio)
    }

    fn to_json(self) -> Value {
        NAMES.iter().zip(self.0).map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
    }
}

/// All that was measured.
#[derive(Debug, Default)]
pub struct Report {
    pub ours: Tally,
    pub peer: Option<Tally>,
    /// Grammars of a kind that our engine does not read yet.
    pub skipped: usize,
}

impl Report {
    pub fn to_json(&self) -> Result<Value, String> {
        // Before the times are read back, which takes memory of its own.
        let peak = peak_mb();
        let ours = self.ours.rows()?;
        let mut object = json!({ "ours": self.ours.to_json(&ours, peak), "skipped": self.skipped });
        if let Some(peer) = &self.peer {
            let theirs = peer.rows()?;
            object["peer"] = peer.to_json(&theirs, peak);
            let ratios = ratios(&ours, &theirs);
            object["ratio"] =
                ratios.into_iter().map(|(name, row)| (name.to_owned(), row.to_json())).collect();
        }
        Ok(object)
    }

    pub fn to_text(&self) -> Result<String, String> {
        let peak = peak_mb();
        let mut text = format!("{} grammars, {} skipped\n", self.ours.grammars, self.skipped);
        text += &verdicts("ours", &self.ours);
        if let Some(peer) = &self.peer {
            text += &verdicts("peer", peer);
        }
        text += &format!("{:14}", "µs");
        NAMES.iter().for_each(|name| text += &format!("{name:>11}"));
        text.push('\n');
        let ours = self.ours.rows()?;
        let theirs = self.peer.as_ref().map(Tally::rows).transpose()?;
        let ratios = theirs.as_ref().map(|theirs| ratios(&ours, theirs));
        for (index, (name, row)) in ours.into_iter().enumerate() {
            text += &table_row(&format!("{name} ours"), row, 2);
            if let (Some(theirs), Some(ratios)) = (&theirs, &ratios) {
                text += &table_row(&format!("{name} peer"), theirs[index].1, 2);
                text += &table_row(&format!("{name} ratio"), ratios[index].1, 3);
            }
        }
        text += &format!("peak memory {peak:.0} MB\n");
        Ok(text)
    }
}

fn ratios(ours: &Rows, theirs: &Rows) -> Rows {
    let mut ratios = *ours;
    ratios.iter_mut().zip(theirs).for_each(|(ours, theirs)| ours.1 = ours.1.over(theirs.1));
    ratios
}

fn table_row(name: &str, row: Summary, decimals: usize) -> String {
    let mut text = format!("{name:14}");
    row.0.iter().for_each(|value| text += &format!("{value:11.decimals$}"));
    text.push('\n');
    text
}

fn verdicts(name: &str, tally: &Tally) -> String {
    /// Names shown of each kind.
    const SHOWN: usize = 5;
    let mut text = format!(
        "{name}: refused {:.2}%, valid rejected {:.2}%, invalid accepted {:.2}%, {} masks\n",
        percent(tally.refused.len(), tally.grammars),
        percent(tally.valid_rejected.len(), tally.valid),
        percent(tally.invalid_accepted.len(), tally.invalid),
        tally.masks,
    );
    for (id, reason) in tally.refused.iter().take(SHOWN) {
        text += &format!("  refused {id}: {reason}\n");
    }
    for id in tally.valid_rejected.iter().take(SHOWN) {
        text += &format!("  rejects a valid text of {id}\n");
    }
    for id in tally.invalid_accepted.iter().take(SHOWN) {
        text += &format!("  accepts an invalid text of {id}\n");
    }
    text
}

/// One grammar's figures on a line.
pub fn line(id: &str, ours: &Tally, peer: Option<&Tally>) -> Result<String, String> {
    let mut text = format!("{id:16} ours {}", figures(ours)?);
    if let Some(peer) = peer {
        text += &format!(" | peer {}", figures(peer)?);
    }
    Ok(text)
}

fn figures(tally: &Tally) -> Result<String, String> {
    let [(_, masks), _, (_, steps), _] = tally.rows()?;
    let [avg, p50, _, p99, _, max] = masks.0;
    let [step, ..] = steps.0;
    let ttfm = tally.ttfm.first().unwrap_or_default();
    Ok(format!(
        "{avg:8.2} avg {p50:7.2} p50 {p99:8.1} p99 {max:8.1} max {step:8.2} step {ttfm:8.0} ttfm"
    ))
}
