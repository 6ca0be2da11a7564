//! What came of a load.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::stats::{ms, of_sorted};
use super::{Answer, BenchError, Request, Verdict};

/// Milliseconds below which half, 90% and 99% of the values lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Half.
    pub p50: f64,
    /// 90%.
    pub p90: f64,
    /// 99%.
    pub p99: f64,
}

/// What became of answers that were held to something.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Constrained {
    /// They are what was asked for.
    pub valid: usize,
    /// They ran out of tokens.
    pub cut: usize,
    /// They are something else.
    pub invalid: usize,
    /// Valid ones in a minute.
    pub valid_per_minute: f64,
    /// What was wrong with the first that was invalid.
    pub first_invalid: Option<String>,
}

/// What came of a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The workload's name.
    pub workload: String,
    /// Clients at once.
    pub clients: usize,
    /// Whole answers.
    pub answers: usize,
    /// From the first request to the last byte.
    pub seconds: f64,
    /// Tokens of the prompts.
    pub prompt_tokens: u64,
    /// Of these, those that the server did not compute.
    pub cached_tokens: u64,
    /// Tokens of the answers.
    pub completion_tokens: u64,
    /// Tokens of all answers a second.
    pub tokens_per_second: f64,
    /// From a request to the first of its answer, in milliseconds.
    pub ttft_ms: Percentiles,
    /// Between two events of a stream, in milliseconds.
    pub itl_ms: Percentiles,
    /// From a request to the end of its answer, in milliseconds.
    pub request_ms: Percentiles,
    /// Answers by the reason why they ended.
    pub finish_reasons: BTreeMap<String, usize>,
    /// Answers that were held to something.
    pub constrained: Constrained,
    /// Requests without a whole answer, by the error.
    pub errors: BTreeMap<String, usize>,
}

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    answers: Vec<Answer>,
    constrained: Constrained,
    errors: BTreeMap<String, usize>,
}

impl Tally {
    pub(super) fn take(&mut self, request: &Request, answer: Result<Answer, BenchError>) {
        match answer {
            Ok(answer) => {
                self.judge(request.expectation.judge(&answer));
                self.answers.push(answer);
            }
            Err(error) => *self.errors.entry(error.to_string()).or_default() += 1,
        }
    }

    fn judge(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Free => {}
            Verdict::Valid => self.constrained.valid += 1,
            Verdict::Cut => self.constrained.cut += 1,
            Verdict::Invalid(why) => {
                self.constrained.invalid += 1;
                self.constrained.first_invalid.get_or_insert(why);
            }
        }
    }

    fn failed(&self) -> usize {
        self.errors.values().sum()
    }

    /// Requests that are over, and those of them that failed.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.answers.len() + self.failed(), self.failed())
    }

    pub(super) fn report(&self, workload: &str, clients: usize, wall: Duration) -> Report {
        let seconds = wall.as_secs_f64().max(1e-9);
        let sum = |of: fn(&Answer) -> u64| self.answers.iter().map(of).sum::<u64>();
        let times = |of: fn(&Answer) -> Duration| self.answers.iter().map(of);
        let mut finish_reasons = BTreeMap::new();
        for answer in &self.answers {
            *finish_reasons.entry(answer.finish_reason.clone()).or_default() += 1;
        }
        let mut constrained = self.constrained.clone();
        constrained.valid_per_minute = constrained.valid as f64 * 60.0 / seconds;
        Report {
            workload: workload.to_owned(),
            clients,
            answers: self.answers.len(),
            seconds,
            prompt_tokens: sum(|answer| answer.prompt_tokens),
            cached_tokens: sum(|answer| answer.cached_tokens),
            completion_tokens: sum(|answer| answer.tokens),
            tokens_per_second: sum(|answer| answer.tokens) as f64 / seconds,
            ttft_ms: Percentiles::of(times(|answer| answer.first)),
            itl_ms: Percentiles::of(self.answers.iter().flat_map(|answer| answer.gaps.clone())),
            request_ms: Percentiles::of(times(|answer| answer.wall)),
            finish_reasons,
            constrained,
            errors: self.errors.clone(),
        }
    }
}

impl Percentiles {
    /// Of times.
    pub fn of(times: impl Iterator<Item = Duration>) -> Self {
        let mut sorted: Vec<f64> = times.map(ms).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |share| of_sorted(&sorted, share);
        Self { p50: at(0.5), p90: at(0.9), p99: at(0.99) }
    }
}

impl fmt::Display for Percentiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p50 {:9.1}   p90 {:9.1}   p99 {:9.1}", self.p50, self.p90, self.p99)
    }
}

impl Report {
    /// Requests without a whole answer.
    pub fn failed(&self) -> usize {
        self.errors.values().sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, clients, answers, seconds, .. } = self;
        writeln!(f, "{workload}: {answers} answers for {clients} clients in {seconds:.1} s")?;
        writeln!(
            f,
            "  tokens       {} of answers, {} of prompts ({} of them cached)",
            self.completion_tokens, self.prompt_tokens, self.cached_tokens
        )?;
        writeln!(f, "  throughput   {:.1} tokens/s", self.tokens_per_second)?;
        writeln!(f, "  TTFT, ms     {}", self.ttft_ms)?;
        writeln!(f, "  ITL, ms      {}", self.itl_ms)?;
        writeln!(f, "  request, ms  {}", self.request_ms)?;
        let reasons = self.finish_reasons.iter().map(|(reason, count)| format!("{count} {reason}"));
        writeln!(f, "  ended by     {}", reasons.collect::<Vec<_>>().join(", "))?;
        let Constrained { valid, cut, invalid, valid_per_minute, first_invalid } =
            &self.constrained;
        if valid + cut + invalid > 0 {
            writeln!(
                f,
                "  constrained  {valid} valid ({valid_per_minute:.1} a minute), {cut} cut off, \
                 {invalid} invalid"
            )?;
        }
        if let Some(why) = first_invalid {
            writeln!(f, "               the first invalid one: {why}")?;
        }
        for (error, count) in &self.errors {
            writeln!(f, "  failed       {count}: {error}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bench::{Endpoint, Expectation};

    #[test]
    fn a_report_counts_what_came() {
        let mut tally = Tally::default();
        let mut request = Request::new(Endpoint::Chat, json!({}));
        let answer = |text: &str, reason: &str| Answer {
            first: Duration::from_millis(7),
            gaps: vec![Duration::from_millis(2); 3],
            tokens: 4,
            text: text.to_owned(),
            finish_reason: reason.to_owned(),
            ..Answer::default()
        };
        tally.take(&request, Ok(answer("x", "stop")));
        request.expectation = Expectation::Schema("{\"type\": \"integer\"}".into());
        tally.take(&request, Ok(answer("12", "stop")));
        tally.take(&request, Ok(answer("", "length")));
        tally.take(&request, Ok(answer("x", "stop")));
        tally.take(&request, Err(BenchError::Timeout(3)));
        tally.take(&request, Err(BenchError::Timeout(3)));
        assert_eq!(tally.counts(), (6, 2));
        let report = tally.report("schema", 2, Duration::from_secs(2));
        assert_eq!((report.answers, report.failed(), report.completion_tokens), (4, 2, 16));
        assert_eq!(report.tokens_per_second, 8.0);
        assert_eq!((report.ttft_ms.p50, report.itl_ms.p99), (7.0, 2.0));
        assert_eq!(report.finish_reasons, [("length".into(), 1), ("stop".into(), 3)].into());
        let Constrained { valid, cut, invalid, valid_per_minute, .. } = report.constrained;
        assert_eq!((valid, cut, invalid, valid_per_minute), (1, 1, 1, 30.0));
        let text = report_text(&tally);
        for part in ["8.0 tokens/s", "1 valid", "1 invalid", "2: no whole answer within 3 s"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    fn report_text(tally: &Tally) -> String {
        tally.report("schema", 2, Duration::from_secs(2)).to_string()
    }
}
