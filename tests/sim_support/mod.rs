//! A scheduler, a simulated device and the sessions between them, driven by hand: no thread, no
//! clock, no runtime. Every row that a session is given is compared with what a device of its own
//! says to the same tokens.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fastrand::Rng;
use pleach::TokenId;
use pleach::device::simulated::{SimulatedDevice, SimulatedSettings};
use pleach::device::thread::Driver;
use pleach::device::{Device, Piece, Row, Rows, Slot, StepBatch, StepCommand, StepDone, StepFault};
use pleach::schedule::{Effects, Event, Notice, Scheduler, SessionId, Settings, Submission};
use pleach::session::Outcome;

/// What a session has to do and how far it is.
pub struct Peer {
    pub client: String,
    pub prompt: Vec<TokenId>,
    pub answer: Vec<TokenId>,
    /// Tokens after which it is done.
    pub wanted: usize,
    pub prompt_rows: bool,
    /// The token that its last row chose; it owes an answer.
    pub drawn: Option<TokenId>,
    /// Drafts that were right, before that token.
    kept: Vec<TokenId>,
    drafts: Vec<TokenId>,
    pub paused: bool,
    pub started: Option<Instant>,
    pub submitted: Instant,
    pub ended: Option<(Instant, Option<Outcome>)>,
    /// Longest time between two of its rows.
    pub gap: Duration,
    last_row: Option<Instant>,
    rows_seen: usize,
    reference: Reference,
}

impl Peer {
    pub fn is_live(&self) -> bool {
        self.ended.is_none()
    }
}

/// A device of its own, which knows what must be said.
struct Reference {
    device: SimulatedDevice,
    length: u32,
}

impl Reference {
    fn new(settings: &SimulatedSettings) -> Self {
        let device = SimulatedDevice::new(SimulatedSettings {
            max_sequences: 1,
            kv_tokens: 0,
            max_batch_tokens: 1 << 16,
            context_tokens: 1 << 16,
            source: settings.source.clone(),
            ..Default::default()
        });
        Self { device: device.unwrap(), length: 0 }
    }

    /// What is said after one more token.
    fn after(&mut self, token: TokenId) -> TokenId {
        chosen(self.take(&[token], 1).get(0).unwrap())
    }

    fn take(&mut self, tokens: &[TokenId], rows_wanted: u32) -> Rows {
        let piece =
            Piece { slot: Slot(0), start: self.length, tokens: tokens.to_vec(), rows_wanted };
        let mut rows = Rows::new(self.device.info().vocab_size, 1);
        if !tokens.is_empty() {
            self.device.step(&StepBatch { pieces: vec![piece] }, &mut rows).unwrap();
        }
        self.length += u32::try_from(tokens.len()).unwrap();
        rows
    }
}

fn chosen(row: &[f32]) -> TokenId {
    // The simulated device gives the token that follows a logit of 16, and all others none.
    let best = row.iter().position(|&logit| logit > 1.0).expect("a token follows");
    TokenId::try_from(best).unwrap()
}

/// See the module's documentation.
pub struct World {
    pub scheduler: Scheduler,
    pub now: Instant,
    pub running: Option<StepCommand>,
    pub wake_at: Option<Instant>,
    pub peers: BTreeMap<SessionId, Peer>,
    pub gave_up: Option<String>,
    /// How much each step's batch held: sequences and tokens.
    pub batches: Vec<(usize, usize)>,
    pub restore_faults: usize,
    /// Every session guesses so many tokens, of which so many parts in a hundred are right.
    pub drafts: (usize, u8),
    /// Looks at what must hold after every event, not only once a step: that costs as much as
    /// there are sessions.
    pub is_checked_always: bool,
    /// Prints what happens.
    pub is_traced: bool,
    driver: Driver,
    settings: SimulatedSettings,
    rng: Rng,
    next_id: u64,
}

impl World {
    pub fn new(device: SimulatedSettings, settings: Settings) -> Self {
        let simulated = SimulatedDevice::new(SimulatedSettings {
            fixed: Duration::ZERO,
            per_token: Duration::ZERO,
            per_sequence: Duration::ZERO,
            ..device.clone()
        })
        .unwrap();
        Self {
            scheduler: Scheduler::new(settings, simulated.info()),
            now: Instant::now(),
            running: None,
            wake_at: None,
            peers: BTreeMap::new(),
            gave_up: None,
            batches: Vec::new(),
            restore_faults: 0,
            drafts: (0, 100),
            rng: Rng::with_seed(7),
            is_checked_always: false,
            is_traced: false,
            driver: Driver::new(Box::new(simulated)),
            settings: device,
            next_id: 0,
        }
    }

    pub fn submit(&mut self, client: &str, prompt: Vec<TokenId>, wanted: usize) -> SessionId {
        self.submit_with(client, prompt, wanted, false)
    }

    pub fn submit_with(
        &mut self,
        client: &str,
        prompt: Vec<TokenId>,
        wanted: usize,
        prompt_rows: bool,
    ) -> SessionId {
        self.next_id += 1;
        let session = SessionId(self.next_id);
        let submission = Submission {
            session,
            client: client.into(),
            prompt: prompt.as_slice().into(),
            prompt_rows,
            answer_tokens_max: u32::try_from(wanted).unwrap(),
        };
        let mut reference = Reference::new(&self.settings);
        let rows_from = if prompt_rows { 0 } else { prompt.len() - 1 };
        reference.take(&prompt[..rows_from], 0);
        let peer = Peer {
            client: client.to_owned(),
            prompt,
            answer: Vec::new(),
            wanted,
            prompt_rows,
            drawn: None,
            kept: Vec::new(),
            drafts: Vec::new(),
            paused: false,
            started: None,
            submitted: self.now,
            ended: None,
            gap: Duration::ZERO,
            last_row: None,
            rows_seen: 0,
            reference,
        };
        self.peers.insert(session, peer);
        self.event(Event::Submit(submission));
        session
    }

    /// One event and all that follows from it at once; what must hold is looked at afterwards.
    pub fn event(&mut self, event: Event) {
        if self.is_traced {
            match &event {
                Event::StepDone(done) => {
                    eprintln!("step {} done: {:?}", done.epoch, done.result.as_ref().err());
                }
                other => eprintln!("{other:?}"),
            }
        }
        let mut effects = self.scheduler.on_event(self.now, event);
        if self.is_traced {
            let told = effects.notices.iter().map(|(session, notice)| match notice {
                Notice::Rows { rows, .. } => format!("{session:?} {} rows", rows.len()),
                other => format!("{session:?} {other:?}"),
            });
            eprintln!("    {:?} {:?}", told.collect::<Vec<_>>(), effects.command);
        }
        if self.is_checked_always || effects.command.is_some() {
            self.scheduler.check().unwrap();
        }
        for (session, notice) in std::mem::take(&mut effects.notices) {
            self.told(session, notice);
        }
        self.apply(effects);
    }

    fn apply(&mut self, effects: Effects) {
        if let Some(command) = effects.command {
            assert!(self.running.is_none(), "exactly one step is in flight");
            if !command.batch.pieces.is_empty() {
                self.batches.push((command.batch.pieces.len(), command.batch.token_count()));
            }
            self.running = Some(command);
        }
        self.wake_at = effects.wake_at;
        self.gave_up = self.gave_up.take().or(effects.give_up);
    }

    fn told(&mut self, session: SessionId, notice: Notice) {
        match &notice {
            Notice::Started => self.check_order(session),
            Notice::Rows { .. } | Notice::End(_) => {}
        }
        let now = self.now;
        let peer = self.peers.get_mut(&session).expect("a session that was submitted");
        assert!(peer.is_live(), "{session:?} has ended and is told {notice:?}");
        match notice {
            Notice::Started => {
                assert_eq!(peer.started.replace(now), None, "{session:?} starts once");
            }
            Notice::Rows { rows, prompt_done, .. } => {
                assert!(peer.drawn.is_none(), "{session:?} has not answered yet");
                let tried = peer.drafts.len().min(rows.len() - 1);
                let (certain, after_drafts) = rows.split_at(rows.len() - tried);
                for row in certain {
                    peer.take_row(chosen(row));
                }
                if prompt_done {
                    let drawn = peer.try_drafts(chosen(certain.last().unwrap()), after_drafts);
                    peer.drawn = Some(drawn);
                    let since = peer.last_row.replace(now).unwrap_or(now);
                    peer.gap = peer.gap.max(now - since);
                }
            }
            Notice::End(outcome) => peer.ended = Some((now, Some(outcome))),
        }
    }

    /// A client's sessions start in the order in which they came.
    fn check_order(&self, session: SessionId) {
        let client = &self.peers[&session].client;
        let earlier = self
            .peers
            .range(..session)
            .find(|(_, peer)| peer.is_live() && peer.started.is_none() && peer.client == *client);
        assert!(earlier.is_none(), "{session:?} starts before {:?}", earlier.map(|(id, _)| id));
    }

    /// A session that owes an answer gives it: the token it drew, and `forced` ones after it. One
    /// that is done leaves.
    pub fn answer(&mut self, session: SessionId, forced: &[TokenId]) {
        let peer = self.peers.get_mut(&session).expect("a session that was submitted");
        let Some(drawn) = peer.drawn.take() else { return };
        peer.paused = false;
        let kept = peer.kept.len();
        let mut tokens = std::mem::take(&mut peer.kept);
        tokens.push(drawn);
        tokens.extend_from_slice(forced);
        peer.answer.extend_from_slice(&tokens);
        if peer.answer.len() >= peer.wanted {
            self.leave(session);
            return;
        }
        peer.reference.take(&tokens[kept..tokens.len() - 1], 0);
        let drafts = self.guess(session);
        self.event(Event::Next { session, tokens, drafts });
    }

    /// What a session guesses to follow.
    fn guess(&mut self, session: SessionId) -> Vec<TokenId> {
        let (most, right) = self.drafts;
        let peer = self.peers.get_mut(&session).expect("a session that was submitted");
        peer.drafts.clear();
        if most > 0 {
            let mut reference = Reference::new(&self.settings);
            let all = [&peer.prompt[..], &peer.answer].concat();
            let (last, before) = all.split_last().unwrap();
            reference.take(before, 0);
            let mut token = *last;
            for _ in 0..self.rng.usize(..=most) {
                token = reference.after(token);
                let guess = if self.rng.u8(..100) < right { token } else { token ^ 1 };
                peer.drafts.push(guess);
            }
        }
        peer.drafts.clone()
    }

    pub fn leave(&mut self, session: SessionId) {
        let now = self.now;
        let peer = self.peers.get_mut(&session).expect("a session that was submitted");
        peer.ended.get_or_insert((now, None));
        peer.drawn = None;
        self.event(Event::Leave(session));
    }

    pub fn pause(&mut self, session: SessionId) {
        if let Some(peer) = self.peers.get_mut(&session) {
            peer.paused = true;
        }
        self.event(Event::Pause(session));
    }

    /// The device does what it was told; it must have been legal.
    pub fn step(&mut self, time: Duration) {
        let Some(command) = self.running.take() else { return };
        let done = self.driver.run(&command);
        match &done.result {
            Ok(_) => {}
            Err(StepFault::Restore(_)) => self.restore_faults += 1,
            Err(fault) => panic!("{fault} in {command:?}"),
        }
        self.now += time;
        self.event(Event::StepDone(StepDone { device_time: time, ..done }));
    }

    /// The step fails: before it changed anything, or after.
    pub fn fail(&mut self, fault: StepFault, after: bool) {
        let Some(mut command) = self.running.take() else { return };
        if !after {
            command.batch = StepBatch::default();
        }
        let done = self.driver.run(&command);
        let result = match done.result {
            // Then it came to no step.
            Err(lost) => {
                self.restore_faults += 1;
                Err(lost)
            }
            Ok(_) => Err(fault),
        };
        self.event(Event::StepDone(StepDone { result, ..done }));
    }

    pub fn wait(&mut self, time: Duration) {
        self.now += time;
        self.event(Event::Tick);
    }

    /// How long the device's next step takes, by its settings.
    pub fn step_time(&self) -> Duration {
        let batch = self.running.as_ref().map(|command| &command.batch);
        let (tokens, pieces) =
            batch.map_or((0, 0), |batch| (batch.token_count(), batch.pieces.len()));
        let count = |count: usize| u32::try_from(count).unwrap();
        self.settings.fixed
            + self.settings.per_token * count(tokens)
            + self.settings.per_sequence * count(pieces)
    }

    /// Goes on until all sessions are done, each answering at once; true if they are within so
    /// many steps.
    pub fn run(&mut self, steps_max: usize) -> bool {
        self.run_until(steps_max, |world| !world.peers.values().any(Peer::is_live))
    }

    /// The same until something else has come about.
    pub fn run_until(&mut self, steps_max: usize, is_done: impl Fn(&Self) -> bool) -> bool {
        for _ in 0..steps_max {
            let owing = |(&id, peer): (&SessionId, &Peer)| peer.drawn.is_some().then_some(id);
            let owing: Vec<SessionId> = self.peers.iter().filter_map(owing).collect();
            owing.into_iter().for_each(|session| self.answer(session, &[]));
            if is_done(self) {
                return true;
            } else if self.running.is_some() {
                self.step(self.step_time());
            } else {
                let until = self.wake_at.map_or(Duration::from_millis(30), |at| at - self.now);
                self.wait(until);
            }
        }
        false
    }

    /// Nothing is held once everyone is gone.
    pub fn assert_at_rest(&mut self) {
        while self.running.is_some() {
            self.step(Duration::ZERO);
        }
        let stats = self.scheduler.stats();
        let held = [stats.running as u64, stats.waiting as u64, stats.waiting_tokens];
        assert_eq!(held, [0; 3]);
        assert_eq!((stats.held_tokens, stats.work_tokens), (0, 0));
    }
}

impl Peer {
    /// Goes on from the drafts as long as they are what was drawn; the token drawn last.
    fn try_drafts(&mut self, mut drawn: TokenId, rows: &[Row]) -> TokenId {
        for (draft, row) in std::mem::take(&mut self.drafts).into_iter().zip(rows) {
            if draft != drawn || self.answer.len() + self.kept.len() + 1 >= self.wanted {
                break;
            }
            self.kept.push(draft);
            self.take_row(chosen(row));
            drawn = chosen(row);
        }
        drawn
    }

    /// A row must choose what the session's own device chooses.
    fn take_row(&mut self, found: TokenId) {
        let last = self.prompt.len() - 1;
        let at = if self.prompt_rows { self.rows_seen } else { last + self.rows_seen };
        self.rows_seen += 1;
        let token = match self.prompt.get(at) {
            Some(&token) => token,
            None => *self.kept.last().or(self.answer.last()).unwrap(),
        };
        let expected = self.reference.after(token);
        assert_eq!(
            found, expected,
            "row {} of {:?} + {:?}",
            self.rows_seen, self.prompt, self.answer
        );
    }
}
