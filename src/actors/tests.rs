//! Every way out of a session, in every phase, gives everything back.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use actix::{Handler, Message, System};
use tokio::sync::mpsc::Receiver;

use super::registry::Registry;
use super::session::SessionActor;
use super::*;
use crate::device::simulated::{
    FaultPlan, InjectedFault, SimulatedDevice, SimulatedSettings, TokenSource,
};
use crate::sampling::{DryBreakers, SamplingParams};
use crate::schedule::{SessionId, Settings};
use crate::session::{
    Fault, Frame, FrameBody, Generation, LogprobsRequest, Outcome, StopCause, StopRules,
};
use crate::telemetry::live;
use crate::vocab::{byte_vocabulary, encode_bytes};

/// A session is told to panic, as a bug in its code would.
#[derive(Message)]
#[rtype(result = "()")]
struct Sabotage;

impl Handler<Sabotage> for SessionActor {
    type Result = ();

    fn handle(&mut self, _: Sabotage, _: &mut Self::Context) {
        panic!("sabotage");
    }
}

impl Registry {
    fn sabotage_all(&self) {
        self.sessions_for_test(|_, address| address.do_send(Sabotage));
    }

    fn sabotage_first(&self) {
        let mut first = None;
        self.sessions_for_test(|id, _| first = first.min(Some(id)).or(Some(id)));
        self.sessions_for_test(|id, address| {
            if Some(id) == first {
                address.do_send(Sabotage);
            }
        });
    }
}

/// The live counters belong to the process: one runtime at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn schedule(step_deadline: Duration) -> Settings {
    Settings {
        target_step: Duration::from_millis(20),
        step_deadline,
        prefix_bytes: 1 << 24,
        draft_tokens: 0,
        weights: BTreeMap::new(),
    }
}

struct Bench {
    runtime: Runtime,
    permit: Arc<dyn Send + Sync>,
}

fn run<F: Future<Output = ()>>(device: SimulatedSettings, body: impl FnOnce(Bench) -> F) {
    let _alone = alone();
    System::new().block_on(async {
        let device = Box::new(SimulatedDevice::new(device).unwrap());
        let settings = RuntimeSettings {
            session_threads: 2,
            schedule: schedule(Duration::from_millis(400)),
            queue_deadline: None,
            stall_timeout: Duration::from_millis(150),
        };
        let (runtime, threads) = Runtime::start(device, byte_vocabulary(), settings).unwrap();
        let permit: Arc<dyn Send + Sync> = Arc::new(());
        body(Bench { runtime, permit }).await;
        assert!(threads.stop(Duration::from_secs(5)).await, "the device thread ends");
    });
    assert_eq!(live::SESSIONS.get(), 0);
}

impl Bench {
    fn start(&self, generation: Generation) -> Receiver<Frame> {
        self.start_with(vec![generation], None, 64)
    }

    fn start_with(
        &self,
        generations: Vec<Generation>,
        deadline: Option<Duration>,
        frame_capacity: usize,
    ) -> Receiver<Frame> {
        self.runtime.submit(Request {
            request_id: "test".into(),
            client: "test".into(),
            generations,
            permit: Arc::clone(&self.permit),
            deadline,
            frame_capacity,
        })
    }

    /// Nothing is held any more, within the time a person would wait.
    async fn all_zero(&self) {
        let held = || {
            let status = self.runtime.status();
            (
                live::SESSIONS.get() + live::GRAMMARS.get(),
                live::SLOTS.get(),
                self.runtime.live_sessions(),
                status.running + status.waiting,
                Arc::strong_count(&self.permit) - 1,
            )
        };
        let end = Instant::now() + Duration::from_secs(10);
        while held() != (0, 0, 0, 0, 0) {
            assert!(Instant::now() < end, "still held: {:?}", held());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn until(&self, holds: impl Fn(&Status) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !holds(&self.runtime.status()) {
            assert!(Instant::now() < end, "it never came to that: {:?}", self.runtime.status());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// A request that comes afterwards is answered as if nothing had happened.
    async fn answers(&self) {
        let (text, outcome) = collect(self.start(short())).await;
        assert_eq!((text.len(), outcome), (3, Some(Outcome::Length)));
        self.all_zero().await;
    }
}

fn generation(prompt: &str, max_tokens: u32) -> Generation {
    Generation {
        choice: 0,
        prompt: encode_bytes(prompt, true).into(),
        max_tokens,
        min_tokens: 0,
        sampling: SamplingParams::default(),
        dry_breakers: DryBreakers::none(),
        seed: 0,
        logprobs: None,
        stop: StopRules::default(),
        constraint: None,
        reading: None,
        echo: false,
    }
}

fn short() -> Generation {
    generation("hello", 3)
}

/// Longer than any test runs, but not for ever.
fn endless() -> Generation {
    generation("hello", 20_000)
}

async fn collect(mut frames: Receiver<Frame>) -> (String, Option<Outcome>) {
    let mut text = String::new();
    while let Some(frame) = frames.recv().await {
        match frame.body {
            FrameBody::Delta(delta) => text.push_str(&delta.text),
            FrameBody::Done(summary) => return (text, Some(summary.outcome)),
        }
    }
    (text, None)
}

/// Slow enough that a test can act between two steps.
fn paced() -> SimulatedSettings {
    SimulatedSettings {
        context_tokens: 1 << 20,
        max_sequences: 4,
        max_batch_tokens: 64,
        fixed: Duration::from_millis(3),
        ..Default::default()
    }
}

/// Where a session stands when it is ended.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Queued,
    Prefill,
    Decode,
    Paused,
}

const PHASES: [Phase; 4] = [Phase::Queued, Phase::Prefill, Phase::Decode, Phase::Paused];

/// Brings one session into `phase`; the receivers keep it there.
async fn bring(bench: &Bench, phase: Phase) -> Vec<Receiver<Frame>> {
    match phase {
        Phase::Queued => {
            let mut held: Vec<_> = (0..4).map(|_| bench.start(endless())).collect();
            for frames in &mut held {
                frames.recv().await.unwrap();
            }
            held.push(bench.start(endless()));
            bench.until(|status| status.waiting == 1).await;
            held
        }
        Phase::Prefill => {
            let frames = bench.start(generation(&"x".repeat(50_000), 10));
            bench.until(|status| status.running == 1).await;
            vec![frames]
        }
        Phase::Decode => {
            let mut frames = bench.start(endless());
            frames.recv().await.unwrap();
            vec![frames]
        }
        Phase::Paused => {
            let frames = bench.start_with(vec![endless()], None, 1);
            tokio::time::sleep(Duration::from_millis(30)).await;
            vec![frames]
        }
    }
}

#[test]
fn a_client_that_leaves_frees_everything_in_every_phase() {
    for phase in PHASES {
        run(paced(), |bench| async move {
            drop(bring(&bench, phase).await);
            bench.all_zero().await;
            bench.answers().await;
        });
    }
}

#[test]
fn a_drain_ends_every_phase_and_says_so() {
    for phase in PHASES {
        run(paced(), |bench| async move {
            let held = bring(&bench, phase).await;
            bench.runtime.finish_all(&Outcome::Drained);
            for frames in held {
                assert_eq!(collect(frames).await.1, Some(Outcome::Drained), "{phase:?}");
            }
            bench.all_zero().await;
            bench.answers().await;
        });
    }
}

#[test]
fn a_panic_in_a_session_closes_its_channel_in_every_phase() {
    for phase in PHASES {
        run(paced(), |bench| async move {
            let held = bring(&bench, phase).await;
            bench.runtime.registry().sabotage_all();
            for frames in held {
                assert_eq!(collect(frames).await.1, None, "{phase:?}");
            }
            bench.all_zero().await;
            bench.answers().await;
        });
    }
}

#[test]
fn deadlines_end_queued_and_running_sessions() {
    run(paced(), |bench| async move {
        let started: Vec<_> = (0..6)
            .map(|_| bench.start_with(vec![endless()], Some(Duration::from_millis(60)), 1024))
            .collect();
        for frames in started {
            assert_eq!(collect(frames).await.1, Some(Outcome::Deadline));
        }
        bench.all_zero().await;
        bench.answers().await;
    });
}

#[test]
fn whole_answers_end_by_stop_length_and_nothing() {
    let source = TokenSource::script("said");
    run(SimulatedSettings { source, ..paced() }, |bench| async move {
        let (text, outcome) = collect(bench.start(generation("p", 50))).await;
        assert_eq!(text, "said");
        assert!(matches!(outcome, Some(Outcome::Stop(StopCause::EndToken(_)))));
        assert_eq!(collect(bench.start(generation("p", 2))).await.0, "sa");
        let echo = Generation { echo: true, max_tokens: 0, ..generation("me", 0) };
        let (text, outcome) = collect(bench.start(echo.clone())).await;
        assert_eq!((text.as_str(), outcome), ("me", Some(Outcome::Length)));
        let rows = Generation { logprobs: Some(LogprobsRequest { top: 1 }), ..echo };
        let (text, outcome) = collect(bench.start(rows)).await;
        assert_eq!((text.as_str(), outcome), ("me", Some(Outcome::Length)));
        bench.all_zero().await;
    });
}

#[test]
fn a_client_that_does_not_read_is_given_up_and_holds_nobody_up() {
    run(paced(), |bench| async move {
        let stuck = bench.start_with(vec![endless()], None, 2);
        let (text, outcome) = collect(bench.start(generation("p", 100))).await;
        assert_eq!((text.len(), outcome), (100, Some(Outcome::Length)));
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(collect(stuck).await.1, Some(Outcome::SlowClient));
        bench.all_zero().await;
    });
}

#[test]
fn a_client_that_reads_slowly_loses_nothing() {
    run(paced(), |bench| async move {
        let (fast, _) = collect(bench.start(generation("p", 40))).await;
        let mut slow = bench.start_with(vec![generation("p", 40)], None, 1);
        let mut text = String::new();
        while let Some(frame) = slow.recv().await {
            if let FrameBody::Delta(delta) = frame.body {
                text.push_str(&delta.text);
            }
            tokio::time::sleep(Duration::from_millis(8)).await;
        }
        assert_eq!(text, fast);
        bench.all_zero().await;
    });
}

#[test]
fn a_long_echo_to_a_slow_reader_loses_nothing() {
    run(paced(), |bench| async move {
        let prompt: String = (0..400).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
        let logprobs = Some(LogprobsRequest { top: 0 });
        let echo = Generation { echo: true, logprobs, ..generation(&prompt, 2) };
        let mut slow = bench.start_with(vec![echo], None, 1);
        let (mut text, mut tokens) = (String::new(), 0);
        while let Some(frame) = slow.recv().await {
            if let FrameBody::Delta(delta) = frame.body {
                text.push_str(&delta.text);
                tokens += delta.tokens.len();
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        assert_eq!((text.get(..400), tokens), (Some(prompt.as_str()), 402));
        bench.all_zero().await;
    });
}

#[test]
fn choices_of_one_request_share_a_channel_and_all_end() {
    run(paced(), |bench| async move {
        let choices = (0..6).map(|choice| Generation { choice, ..short() }).collect();
        let mut frames = bench.start_with(choices, None, 2);
        let mut ended = Vec::new();
        while let Some(frame) = frames.recv().await {
            if let FrameBody::Done(summary) = frame.body {
                assert_eq!(summary.outcome, Outcome::Length);
                ended.push(frame.choice);
            }
        }
        ended.sort_unstable();
        assert_eq!(ended, [0, 1, 2, 3, 4, 5]);
        bench.all_zero().await;
    });
}

/// A fault in a decode step: those in its batch get it, the next request is answered.
fn device_fault(fault: InjectedFault, expected: impl Fn(&Outcome) -> bool) {
    let faults = vec![FaultPlan { at_step: 6, steps: 1, fault }];
    run(SimulatedSettings { faults, max_sequences: 2, ..paced() }, |bench| async move {
        let first = bench.start(endless());
        let second = bench.start(endless());
        let queued = bench.start(generation("later", 3));
        // On a busy machine one of them may not have been in that step; the other was.
        let (_, outcome) = tokio::select! {
            ended = collect(first) => ended,
            ended = collect(second) => ended,
        };
        assert!(outcome.as_ref().is_some_and(&expected), "{outcome:?}");
        let (text, outcome) = collect(queued).await;
        assert_eq!((text.len(), outcome), (3, Some(Outcome::Length)));
        bench.all_zero().await;
        bench.answers().await;
    });
}

#[test]
fn device_faults_end_their_batch_alone() {
    let device = |outcome: &Outcome| matches!(outcome, Outcome::Fault(Fault::Device(_)));
    device_fault(InjectedFault::Panic, device);
    device_fault(InjectedFault::Error, device);
    device_fault(InjectedFault::ShortRow, device);
    device_fault(InjectedFault::NanRow, |outcome| *outcome == Outcome::Fault(Fault::NonFinite));
    device_fault(InjectedFault::Hang(Duration::from_secs(2)), |outcome| {
        *outcome == Outcome::Fault(Fault::DeviceHang)
    });
}

#[test]
fn a_broken_row_leaves_its_neighbours_text_as_it_is() {
    // None: on a busy machine the neighbour was alone in that step, and the fault was its own.
    let neighbour = |faults: Vec<FaultPlan>| -> Option<String> {
        let text = Arc::new(Mutex::new(None));
        let out = Arc::clone(&text);
        run(SimulatedSettings { faults, ..paced() }, |bench| async move {
            let broken = bench.start(endless());
            let (said, outcome) = collect(bench.start(generation("neighbour", 30))).await;
            *out.lock().unwrap() = (outcome == Some(Outcome::Length)).then_some(said);
            drop(broken);
            bench.all_zero().await;
        });
        text.lock().unwrap().clone()
    };
    let alone = neighbour(vec![]).expect("nothing goes wrong");
    // Two that take turns on a busy machine are met at steps of either kind.
    let fault = |at_step| FaultPlan { at_step, steps: 1, fault: InjectedFault::NanRow };
    let beside = (9..29).find_map(|at_step| neighbour(vec![fault(at_step)]));
    assert_eq!(beside, Some(alone));
}

#[test]
fn three_device_faults_give_up() {
    let faults = vec![FaultPlan { at_step: 1, steps: 3, fault: InjectedFault::Panic }];
    let device = SimulatedSettings { faults, ..paced() };
    let _alone = alone();
    System::new().block_on(async {
        let device = Box::new(SimulatedDevice::new(device).unwrap());
        let settings = RuntimeSettings {
            session_threads: 1,
            schedule: schedule(Duration::from_secs(5)),
            queue_deadline: None,
            stall_timeout: Duration::from_secs(1),
        };
        let (runtime, mut threads) = Runtime::start(device, byte_vocabulary(), settings).unwrap();
        let bench = Bench { runtime, permit: Arc::new(()) };
        for _ in 0..3 {
            assert!(matches!(collect(bench.start(short())).await.1, Some(Outcome::Fault(_))));
        }
        let reason = (&mut threads.given_up).await.unwrap();
        assert!(reason.contains("3 device faults"), "{reason}");
        assert!(threads.stop(Duration::from_secs(5)).await);
    });
}

#[test]
fn an_arbiter_that_dies_takes_its_sessions_and_nothing_else() {
    run(paced(), |bench| async move {
        let mut held = [bench.start(endless()), bench.start(endless())];
        for frames in &mut held {
            frames.recv().await.unwrap();
        }
        bench.runtime.registry().arbiter(SessionId(0)).stop();
        let [first, second] = held;
        assert_eq!(collect(first).await.1, None);
        drop(second);
        bench.all_zero().await;
        let outcomes =
            [collect(bench.start(short())).await.1, collect(bench.start(short())).await.1];
        assert!(outcomes.contains(&None) && outcomes.contains(&Some(Outcome::Length)));
        bench.all_zero().await;
    });
}

#[test]
fn a_storm_of_leaving_clients_leaves_nothing() {
    run(paced(), |bench| async move {
        for round in 0..5 {
            let held: Vec<_> = (0..30).map(|_| bench.start(endless())).collect();
            tokio::time::sleep(Duration::from_millis(round * 4)).await;
            drop(held);
            bench.all_zero().await;
        }
        bench.answers().await;
    });
}

#[test]
fn stopping_the_runtime_under_load_joins_every_thread() {
    run(paced(), |bench| async move {
        let held: Vec<_> = (0..6).map(|_| bench.start(endless())).collect();
        tokio::time::sleep(Duration::from_millis(10)).await;
        std::mem::forget(held);
    });
}

#[test]
fn the_same_seed_gives_the_same_text_alone_and_among_others() {
    run(SimulatedSettings { max_sequences: 8, ..paced() }, |bench| async move {
        let seeded = || {
            let mut generation = generation("prompt", 40);
            generation.sampling.temperature = 8.0;
            generation.seed = 42;
            generation
        };
        let (alone, _) = collect(bench.start(seeded())).await;
        let others: Vec<_> = (0..7).map(|_| bench.start(endless())).collect();
        let (among, _) = collect(bench.start(seeded())).await;
        drop(others);
        assert_eq!(alone, among);
        bench.all_zero().await;
    });
}

/// A thousand constrained requests over a hundred grammars, a third of them left midway and one
/// whose session panics: the others get what they get alone.
#[test]
fn grammar_state_never_crosses_from_one_session_to_another() {
    use crate::grammar::{CompiledGrammar, Fuel, GrammarSource, GrammarVocabulary, Limits};
    use crate::session::Constraint;

    let vocabulary = GrammarVocabulary::new(&byte_vocabulary());
    let limits = Limits::default();
    let constraints: Vec<Constraint> = (0..100u8)
        .map(|which| {
            let letter = char::from(b'a' + which % 26);
            let source =
                GrammarSource::Regex(format!("{which}:({letter}[0-9]{{1,3}}|[x-z]+;){{2,5}}\\."));
            let mut fuel = Fuel::new(limits.compile_steps_max);
            let grammar =
                CompiledGrammar::compile(&source, &vocabulary, &limits, &mut fuel).unwrap();
            Constraint { start: grammar.matcher(), forced_by: None, whole: true }
        })
        .collect();
    let request = |which: usize| {
        let mut generation = generation(&format!("say {which}"), 50);
        generation.constraint = Some(constraints[which].clone());
        generation.sampling.temperature = 9.0;
        generation.seed = which as u64;
        generation
    };
    let device = SimulatedSettings { max_sequences: 16, fixed: Duration::ZERO, ..paced() };
    run(device, |bench| async move {
        let mut alone = Vec::new();
        for which in 0..100 {
            let (text, outcome) = collect(bench.start(request(which))).await;
            assert_eq!(outcome, Some(Outcome::Stop(StopCause::Grammar)), "{text}");
            alone.push(text);
        }
        for round in 0..20usize {
            let mut running = Vec::new();
            for turn in 0..50usize {
                let which = (round * 37 + turn * 13) % 100;
                let mut frames = bench.start(request(which));
                if turn % 3 == 0 {
                    frames.recv().await.unwrap();
                    continue;
                }
                running.push((which, frames));
            }
            if round == 7 {
                bench.runtime.registry().sabotage_first();
            }
            let mut lost = 0;
            for (which, frames) in running {
                match collect(frames).await {
                    (text, Some(_)) => assert_eq!(text, alone[which]),
                    (_, None) => lost += 1,
                }
            }
            assert!(lost <= usize::from(round == 7));
        }
        bench.all_zero().await;
    });
}
