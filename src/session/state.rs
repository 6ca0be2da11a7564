//! The state of one generation.

use std::collections::VecDeque;
use std::sync::Arc;

use super::constraint::Guide;
use super::draft::Drafter;
use super::stops::{Scan, StopMatcher};
use super::{Delta, Fault, Generation, Outcome, Reader, StopCause, TokenEntry, Usage};
use crate::TokenId;
use crate::sampling::{SampleError, SampleInput, Sampler, logprobs};
use crate::vocab::{TextAssembler, TokenKind, Vocabulary};

/// One generation from its first row to its last token. It owns all that belongs to the generation
/// (sampler, text, counters), so nothing of it can reach the next one.
pub struct Session {
    generation: Generation,
    vocabulary: Arc<Vocabulary>,
    sampler: Sampler,
    guide: Option<Guide>,
    /// Never to be sampled: ids without a token, and end tokens where they are to be ignored.
    banned: Vec<TokenId>,
    /// The same and every token that would end the answer before `min_tokens`.
    banned_at_first: Vec<TokenId>,
    assembler: TextAssembler,
    reader: Option<Reader>,
    stops: StopMatcher,
    drafter: Option<Drafter>,
    /// What may be computed together with the tokens that were fed last.
    drafts: Vec<TokenId>,
    report: Report,
    generated: u32,
    reasoning_tokens: u32,
    forced: u32,
    cached_tokens: u32,
    /// Prompt rows taken, where the prompt's log-probabilities are reported.
    prompt_rows: usize,
}

/// What a session has to say after it was given rows.
#[derive(Debug)]
pub struct Progress {
    /// More of the answer.
    pub delta: Option<Delta>,
    /// What happens now.
    pub then: Then,
}

impl Progress {
    /// Takes up what the session said after this: its text is appended, and what happens is what
    /// it said last, unless it was over already.
    pub fn extend(&mut self, later: Progress) {
        match (&mut self.delta, later.delta) {
            (Some(delta), Some(more)) => delta.extend(more),
            (delta @ None, more) => *delta = more,
            (Some(_), None) => {}
        }
        if !matches!(self.then, Then::End(_)) {
            self.then = later.then;
        }
    }
}

/// What happens to a session now.
#[derive(Debug, PartialEq, Eq)]
pub enum Then {
    /// More rows of the prompt will come.
    Wait,
    /// The device goes on with these tokens: the one drawn, and those that the grammar forces after
    /// it.
    Feed(Vec<TokenId>),
    /// The generation is over.
    End(Outcome),
}

impl Session {
    /// A session for `generation` on a model whose rows have `row_length` entries.
    pub fn new(generation: Generation, vocabulary: Arc<Vocabulary>, row_length: usize) -> Self {
        let sampler = Sampler::new(
            generation.sampling.clone(),
            row_length,
            generation.seed,
            &generation.prompt,
            generation.dry_breakers.clone(),
        );
        let mut banned = unused_ids(&vocabulary, row_length);
        let mut banned_at_first = banned.clone();
        banned_at_first.extend_from_slice(vocabulary.end_tokens());
        banned_at_first.extend_from_slice(&generation.stop.token_ids);
        if generation.stop.ignore_eos {
            banned.extend_from_slice(vocabulary.end_tokens());
        }
        let stops =
            StopMatcher::new(generation.stop.strings.clone(), generation.stop.include_in_output);
        let reader = generation.reading.as_ref().map(Reader::new);
        let report = Report::new(generation.logprobs.is_some());
        // A forced token has no row, so no log-probability could be reported.
        let may_force = generation.logprobs.is_none();
        let guide = generation.constraint.as_ref().map(|held_to| Guide::new(held_to, may_force));
        Self {
            generation,
            vocabulary,
            sampler,
            guide,
            banned,
            banned_at_first,
            assembler: TextAssembler::default(),
            reader,
            stops,
            drafter: None,
            drafts: Vec::new(),
            report,
            generated: 0,
            reasoning_tokens: 0,
            forced: 0,
            cached_tokens: 0,
            prompt_rows: 0,
        }
    }

    /// Guesses up to `most` tokens ahead; see [`Session::draft`].
    pub fn with_drafts(mut self, most: u32) -> Self {
        self.drafter = (most > 0).then(|| Drafter::new(&self.generation.prompt, most));
        self
    }

    /// Guesses what follows the tokens that are fed now, as far as the grammar allows it. The
    /// device may compute some of these together with them: the rows then come together, and those
    /// after a wrong guess are not looked at.
    pub fn draft(&mut self) -> &[TokenId] {
        self.drafts.clear();
        if let Some(drafter) = &self.drafter {
            // The last token that may come needs no row after it.
            let most = self.tokens_left().saturating_sub(1) as usize;
            let draft = drafter.draft();
            let draft = &draft[..draft.len().min(most)];
            let taken = self.guide.as_ref().map_or(draft.len(), |guide| guide.takes(draft));
            self.drafts.extend_from_slice(&draft[..taken]);
        }
        &self.drafts
    }

    /// Does the work that the next row need not wait for: the mask of the next token. To be called
    /// while the device is busy; what is not done here is done when the row is there.
    pub fn prepare(&mut self) {
        let tokens_left = self.tokens_left();
        if let Some(guide) = &mut self.guide {
            // A failure comes again, and ends the session, when the mask is needed.
            let _ = guide.prepare(tokens_left);
        }
    }

    /// Whether the answer is held to a grammar.
    pub fn is_constrained(&self) -> bool {
        self.guide.is_some()
    }

    /// Whether there are tool calls, each with all of its arguments.
    pub fn has_called(&self) -> bool {
        self.reader.as_ref().is_some_and(Reader::has_called)
    }

    fn is_reasoning(&self) -> bool {
        self.reader.as_ref().is_some_and(Reader::is_reasoning)
    }

    /// Tokens that were not drawn because the grammar left no choice.
    pub fn forced_tokens(&self) -> u32 {
        self.forced
    }

    /// Whether every position of the prompt wants a row (`echo` with log-probabilities).
    pub fn wants_prompt_rows(&self) -> bool {
        self.generation.echo && self.generation.logprobs.is_some()
    }

    /// What was asked for.
    pub fn generation(&self) -> &Generation {
        &self.generation
    }

    /// Tokens so far.
    pub fn usage(&self) -> Usage {
        Usage {
            prompt_tokens: u32::try_from(self.generation.prompt.len()).unwrap_or(u32::MAX),
            completion_tokens: self.generated,
            reasoning_tokens: self.reasoning_tokens,
            cached_tokens: self.cached_tokens,
        }
    }

    /// So many of the prompt's tokens were not computed for this session.
    pub fn set_cached_tokens(&mut self, tokens: u32) {
        self.cached_tokens = tokens;
    }

    /// What can be said before the device has done anything: the prompt's text where it is echoed.
    /// Ends at once where nothing is asked of the device.
    pub fn start(&mut self) -> Progress {
        if !self.generation.echo {
            return Progress { delta: None, then: Then::Wait };
        }
        if !self.wants_prompt_rows() {
            for &token in &*Arc::clone(&self.generation.prompt) {
                self.echo_token(token);
            }
            if self.generation.max_tokens == 0 {
                self.end_echo();
                return Progress { delta: self.report.take(), then: Then::End(Outcome::Length) };
            }
        }
        Progress { delta: self.report.take(), then: Then::Wait }
    }

    /// Takes the next rows: those of prompt positions where [`Session::wants_prompt_rows`], then
    /// one row and one for each draft that was computed. `prompt_done`: the next token is drawn from
    /// the last that is not a draft's.
    pub fn on_rows<R: AsRef<[f32]>>(&mut self, rows: &[R], prompt_done: bool) -> Progress {
        if self.wants_prompt_rows()
            && self.prompt_rows < self.generation.prompt.len()
            && let Err(outcome) = self.echo_rows(rows)
        {
            return self.end(outcome);
        }
        if !prompt_done {
            return Progress { delta: self.report.take(), then: Then::Wait };
        }
        if self.generation.max_tokens == 0 {
            return self.end(Outcome::Length);
        }
        let drafts = std::mem::take(&mut self.drafts);
        let computed = drafts.len().min(rows.len().saturating_sub(1));
        let Some(first) = rows.len().checked_sub(1 + computed) else {
            return self.end(Outcome::Fault(Fault::Device("no row was delivered".to_owned())));
        };
        match self.draw_all(&rows[first..], &drafts) {
            Ok(tokens) => Progress { delta: self.report.take(), then: Then::Feed(tokens) },
            Err(outcome) => self.end(outcome),
        }
    }

    /// Draws from the first row, and from those of drafts as long as these are what was drawn.
    fn draw_all<R: AsRef<[f32]>>(
        &mut self,
        rows: &[R],
        drafts: &[TokenId],
    ) -> Result<Vec<TokenId>, Outcome> {
        let mut tokens = Vec::new();
        while let Some(row) = rows.get(tokens.len())
            && drafts.starts_with(&tokens)
        {
            let token = self.draw(row.as_ref())?;
            tokens.extend(self.take_all(token, row.as_ref())?);
        }
        if let Some(drafter) = &mut self.drafter {
            drafter.take(&tokens);
        }
        Ok(tokens)
    }

    /// Ends the session from outside (deadline, drain, a fault): gives out what is certain.
    pub fn end(&mut self, outcome: Outcome) -> Progress {
        match &outcome {
            Outcome::Stop(StopCause::StopString(_)) => self.report.drop_held(),
            Outcome::Stop(_) => {
                let tail = self.assembler.finish();
                self.scan(&tail);
                self.flush();
            }
            _ => self.flush(),
        }
        Progress { delta: self.report.take(), then: Then::End(outcome) }
    }

    fn tokens_left(&self) -> u32 {
        self.generation.max_tokens.saturating_sub(self.generated)
    }

    fn draw(&mut self, row: &[f32]) -> Result<TokenId, Outcome> {
        let tokens_left = self.tokens_left();
        let mut mask = None;
        if let Some(guide) = &mut self.guide {
            guide.prepare(tokens_left)?;
            mask = Some(guide.mask());
        }
        if self.generated < self.generation.min_tokens {
            let banned = &self.banned_at_first;
            match self.sampler.sample(SampleInput { row, mask, banned }) {
                // A grammar that can only end beats `min_tokens`.
                Err(SampleError::EmptyMask) if mask.is_some() => {}
                drawn => return drawn.map_err(outcome_of),
            }
        }
        let banned = &self.banned;
        self.sampler.sample(SampleInput { row, mask, banned }).map_err(outcome_of)
    }

    /// Takes a drawn token into the answer, and those that the grammar forces after it.
    fn take_all(&mut self, token: TokenId, row: &[f32]) -> Result<Vec<TokenId>, Outcome> {
        if let Some(guide) = &mut self.guide {
            guide.accept(token)?;
        }
        self.add(token, Some(row))?;
        let mut tokens = vec![token];
        for token in self.forced_run()? {
            if let Some(guide) = &mut self.guide {
                guide.accept_forced(token)?;
            }
            self.sampler.skip();
            self.forced += 1;
            self.add(token, None)?;
            tokens.push(token);
        }
        self.end_if_exhausted()?;
        Ok(tokens)
    }

    fn forced_run(&mut self) -> Result<Vec<TokenId>, Outcome> {
        let tokens_left = self.tokens_left();
        match &mut self.guide {
            Some(guide) => guide.forced(tokens_left),
            None => Ok(Vec::new()),
        }
    }

    /// Adds a token to the answer; an error is the end of it.
    fn add(&mut self, token: TokenId, row: Option<&[f32]>) -> Result<(), Outcome> {
        self.sampler.accept(token);
        self.generated += 1;
        if self.ends_answer(token) {
            return Err(Outcome::Stop(StopCause::EndToken(token)));
        }
        if let (Some(request), Some(row)) = (self.generation.logprobs, row) {
            let found = logprobs(row, token, usize::from(request.top)).map_err(outcome_of)?;
            self.report.add_token(token, Some(found.logprob), found.top);
        }
        let text = self.assembler.push(answer_bytes(&self.generation, &self.vocabulary, token));
        let was_reasoning = self.is_reasoning();
        let cause = self.scan(&text);
        self.reasoning_tokens += u32::from(was_reasoning || self.is_reasoning());
        if let Some(cause) = cause {
            return Err(Outcome::Stop(cause));
        }
        if self.generated >= self.generation.max_tokens {
            self.end_if_exhausted()?;
            return Err(Outcome::Length);
        }
        Ok(())
    }

    /// An end token ends the answer, unless the grammar took it as text of its own.
    fn ends_answer(&self, token: TokenId) -> bool {
        if self.generation.stop.token_ids.contains(&token) {
            return true;
        }
        let owned = self.guide.as_ref().is_some_and(|guide| !guide.has_ended());
        self.vocabulary.is_end(token) && !owned && !self.generation.stop.ignore_eos
    }

    /// A complete answer to which the grammar allows nothing more is over.
    fn end_if_exhausted(&mut self) -> Result<(), Outcome> {
        let vocabulary = &self.vocabulary;
        let Some(guide) = &mut self.guide else { return Ok(()) };
        if guide.is_exhausted(|token| vocabulary.is_end(token))? {
            return Err(Outcome::Stop(StopCause::Grammar));
        }
        Ok(())
    }

    /// Puts text through the reader and the stop strings; why the answer is over, if it is.
    fn scan(&mut self, text: &str) -> Option<StopCause> {
        self.report.assembled(text);
        let may_stop = self.generated >= self.generation.min_tokens;
        if let Some(reader) = &mut self.reader {
            let (told, cause) = reader.push(text, &mut self.stops, may_stop);
            self.report.tell(told);
            if cause.is_none() && self.stops.is_idle() {
                self.report.release_held_tokens();
            }
            return cause;
        }
        if !may_stop {
            self.report.release(text);
            return None;
        }
        match self.stops.push(text) {
            Scan::Text(text) => {
                self.report.release(&text);
                None
            }
            Scan::Stopped { text, stop } => {
                self.report.release(&text);
                Some(StopCause::StopString(stop))
            }
        }
    }

    fn flush(&mut self) {
        if let Some(reader) = &mut self.reader {
            self.report.tell(reader.finish(&mut self.stops));
        }
        let held = self.stops.finish();
        self.report.release(&held);
        self.report.release_held_tokens();
    }

    fn echo_rows<R: AsRef<[f32]>>(&mut self, rows: &[R]) -> Result<(), Outcome> {
        let Some(request) = self.generation.logprobs else { return Ok(()) };
        let prompt = Arc::clone(&self.generation.prompt);
        if self.prompt_rows == 0
            && let Some(&first) = prompt.first()
        {
            self.report.add_token(first, None, Vec::new());
            self.echo_token(first);
        }
        for row in rows {
            self.prompt_rows += 1;
            let Some(&token) = prompt.get(self.prompt_rows) else { break };
            let found =
                logprobs(row.as_ref(), token, usize::from(request.top)).map_err(outcome_of)?;
            self.report.add_token(token, Some(found.logprob), found.top);
            self.echo_token(token);
        }
        if self.prompt_rows >= prompt.len() {
            self.end_echo();
        }
        Ok(())
    }

    /// The prompt's text is given out as it is: stop strings match the answer alone.
    fn echo_token(&mut self, token: TokenId) {
        let text = self.assembler.push(self.vocabulary.text_bytes(token));
        self.report.assembled(&text);
        self.report.release(&text);
    }

    fn end_echo(&mut self) {
        self.report.release_held_tokens();
    }
}

fn outcome_of(error: SampleError) -> Outcome {
    match error {
        SampleError::NonFinite => Outcome::Fault(Fault::NonFinite),
        SampleError::EmptyMask => Outcome::GrammarDeadEnd,
        SampleError::RowLength { .. } => Outcome::Fault(Fault::Device(error.to_string())),
    }
}

/// What a token adds to the answer's text: a control token its name, where that is a marker that
/// the reader of the answer knows.
fn answer_bytes<'a>(
    generation: &Generation,
    vocabulary: &'a Vocabulary,
    token: TokenId,
) -> &'a [u8] {
    match &generation.reading {
        Some(reading) if reading.markers.binary_search(&token).is_ok() => vocabulary.bytes(token),
        _ => vocabulary.text_bytes(token),
    }
}

/// Ids below `row_length` that stand for nothing: padding of the model's output layer.
fn unused_ids(vocabulary: &Vocabulary, row_length: usize) -> Vec<TokenId> {
    let unused =
        |id: &TokenId| vocabulary.get(*id).is_none_or(|token| token.kind == TokenKind::Unused);
    (0..).take(row_length).filter(unused).collect()
}

/// What goes out: text, and the reported tokens once their text is out.
struct Report {
    wanted: bool,
    out: Delta,
    /// Tokens whose text is not out yet (held back, or half a character).
    held: VecDeque<TokenEntry>,
    chars_assembled: u32,
    chars_released: u32,
}

impl Report {
    fn new(wanted: bool) -> Self {
        Self {
            wanted,
            out: Delta::default(),
            held: VecDeque::new(),
            chars_assembled: 0,
            chars_released: 0,
        }
    }

    fn add_token(&mut self, token: TokenId, logprob: Option<f32>, top: Vec<(TokenId, f32)>) {
        self.held.push_back(TokenEntry { token, logprob, top, text_offset: self.chars_assembled });
    }

    fn assembled(&mut self, text: &str) {
        if self.wanted {
            self.chars_assembled += count_chars(text);
        }
    }

    fn release(&mut self, text: &str) {
        self.out.text.push_str(text);
        if self.wanted {
            self.chars_released += count_chars(text);
            let out = self.chars_released;
            while let Some(entry) = self.held.pop_front_if(|entry| entry.text_offset < out) {
                self.out.tokens.push(entry);
            }
        }
    }

    /// Takes what was read of a chat message.
    fn tell(&mut self, told: Delta) {
        self.out.extend(told);
    }

    fn release_held_tokens(&mut self) {
        self.out.tokens.extend(self.held.drain(..));
    }

    fn drop_held(&mut self) {
        self.held.clear();
    }

    fn take(&mut self) -> Option<Delta> {
        (!self.out.is_empty()).then(|| std::mem::take(&mut self.out))
    }
}

fn count_chars(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
}
