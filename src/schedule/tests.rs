//! The scheduler against a device made by hand, with a clock made by hand.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::TokenId;
use crate::device::simulated::{SimulatedDevice, SimulatedSettings};
use crate::device::thread::Driver;
use crate::device::{
    Device, DeviceError, SequenceOp, Slot, StepBatch, StepCommand, StepDone, StepFault,
};
use crate::session::{Fault, Outcome};

fn settings() -> Settings {
    Settings {
        target_step: Duration::from_millis(20),
        step_deadline: Duration::from_secs(10),
        prefix_bytes: 1 << 20,
        draft_tokens: 0,
        weights: BTreeMap::new(),
    }
}

/// The scheduler, its device and what the sessions were told.
struct World {
    scheduler: Scheduler,
    driver: Driver,
    now: Instant,
    running: Option<StepCommand>,
    told: BTreeMap<SessionId, Vec<Notice>>,
    batches: Vec<StepBatch>,
    gave_up: Option<String>,
}

impl World {
    fn new(max_sequences: u32, context_tokens: u32) -> Self {
        Self::with(SimulatedSettings {
            max_sequences,
            context_tokens,
            max_batch_tokens: 8,
            ..Default::default()
        })
    }

    fn with(device: SimulatedSettings) -> Self {
        let device = SimulatedDevice::new(device).unwrap();
        Self {
            scheduler: Scheduler::new(settings(), device.info()),
            driver: Driver::new(Box::new(device)),
            now: Instant::now(),
            running: None,
            told: BTreeMap::new(),
            batches: Vec::new(),
            gave_up: None,
        }
    }

    fn event(&mut self, event: Event) -> Effects {
        let mut effects = self.scheduler.on_event(self.now, event);
        self.scheduler.check().unwrap();
        for (session, notice) in effects.notices.drain(..) {
            self.told.entry(session).or_default().push(notice);
        }
        if let Some(command) = effects.command.take() {
            assert!(self.running.is_none(), "exactly one step is in flight");
            self.batches.push(command.batch.clone());
            self.running = Some(command);
        }
        self.gave_up = self.gave_up.take().or(effects.give_up.take());
        effects
    }

    fn submit(&mut self, id: u64, prompt: &[TokenId]) {
        self.submit_for("someone", id, prompt);
    }

    fn submit_for(&mut self, client: &str, id: u64, prompt: &[TokenId]) {
        self.event(Event::Submit(Submission { client: client.into(), ..submission(id, prompt) }));
    }

    fn next(&mut self, id: u64, tokens: &[TokenId]) {
        self.event(Event::Next {
            session: SessionId(id),
            tokens: tokens.to_vec(),
            drafts: Vec::new(),
        });
    }

    /// Lets the grace pass.
    fn pass_grace(&mut self) {
        self.now += Duration::from_millis(30);
        self.event(Event::Tick);
    }

    /// Lets the device run its command; it must be a legal one.
    fn step(&mut self) -> Effects {
        let command = self.running.take().expect("a step is in flight");
        let done = self.driver.run(&command);
        assert!(done.result.is_ok(), "{:?}", done.result);
        self.event(Event::StepDone(StepDone { device_time: Duration::from_millis(5), ..done }))
    }

    /// The same, but its step fails.
    fn fail(&mut self, fault: StepFault) -> Effects {
        let command = self.running.take().expect("a step is in flight");
        let before = StepCommand { batch: StepBatch::default(), ..command };
        let done = self.driver.run(&before);
        self.event(Event::StepDone(StepDone { result: Err(fault), ..done }))
    }

    fn late(&mut self, epoch: u64, fault: StepFault) {
        let device_time = Duration::from_millis(5);
        let done = StepDone { epoch, result: Err(fault), saved: Vec::new(), device_time };
        self.event(Event::StepDone(done));
    }

    fn outcome(&self, id: u64) -> Option<&Outcome> {
        self.told.get(&SessionId(id))?.iter().find_map(|notice| match notice {
            Notice::End(outcome) => Some(outcome),
            Notice::Started | Notice::Rows { .. } => None,
        })
    }

    fn rows(&self, id: u64) -> usize {
        let count = |notice: &Notice| match notice {
            Notice::Rows { rows, .. } => rows.len(),
            Notice::Started | Notice::End(_) => 0,
        };
        self.told.get(&SessionId(id)).map_or(0, |told| told.iter().map(count).sum())
    }

    fn last_batch(&self) -> Vec<(u32, usize)> {
        let batch = self.batches.last().expect("a step was started");
        batch.pieces.iter().map(|piece| (piece.start, piece.tokens.len())).collect()
    }
}

fn submission(id: u64, prompt: &[TokenId]) -> Submission {
    Submission {
        session: SessionId(id),
        client: "someone".into(),
        prompt: prompt.into(),
        prompt_rows: false,
        answer_tokens_max: 1000,
    }
}

#[test]
fn one_session_is_prefilled_in_chunks_and_decodes() {
    let mut world = World::new(2, 64);
    world.submit(1, &[7; 11]);
    assert_eq!(world.last_batch(), [(0, 8)]);
    world.step();
    assert_eq!((world.last_batch(), world.rows(1)), (vec![(8, 3)], 0));
    world.step();
    assert_eq!(world.rows(1), 1);
    assert!(world.running.is_none(), "it waits for the session's answer");
    world.next(1, &[9]);
    assert_eq!(world.last_batch(), [(11, 1)]);
    world.step();
    world.next(1, &[9, 9, 9]);
    assert_eq!(world.last_batch(), [(12, 3)], "a forced run is one piece");
    world.step();
    assert_eq!(world.rows(1), 3, "of which only the last row was wanted");
}

#[test]
fn decodes_go_first_and_a_long_prompt_fills_what_is_left_for_it() {
    let mut world = World::new(2, 64);
    world.submit(1, &[7]);
    world.step();
    world.submit(2, &[8; 20]);
    assert_eq!(world.batches.len(), 1, "session 1 is waited for");
    world.next(1, &[9]);
    assert_eq!(world.last_batch(), [(1, 1), (0, 7)]);
    world.step();
    world.next(1, &[9]);
    assert_eq!(world.last_batch(), [(2, 1), (7, 7)]);
}

#[test]
fn a_straggler_is_waited_for_a_grace_and_no_longer() {
    let mut world = World::new(2, 64);
    world.submit(1, &[7]);
    world.submit(2, &[7]);
    world.step();
    world.pass_grace();
    world.step();
    world.next(1, &[9]);
    assert!(world.running.is_none());
    world.now += Duration::from_millis(4);
    let effects = world.event(Event::Tick);
    assert!(world.running.is_none() && effects.wake_at.is_some());
    world.now = effects.wake_at.unwrap();
    world.event(Event::Tick);
    assert_eq!(world.last_batch(), [(1, 1)]);
    world.next(2, &[9]);
    world.step();
    world.next(1, &[9]);
    assert_eq!(world.last_batch().len(), 2, "the straggler joins the step after");
}

/// Sixteen sessions that have rows and have not answered, and a seventeenth that comes.
fn many_awaited_and_one_ready() -> World {
    let mut world = World::with(SimulatedSettings {
        max_sequences: 20,
        context_tokens: 64,
        max_batch_tokens: 64,
        ..Default::default()
    });
    (1..=16).for_each(|id| world.submit(id, &[7]));
    world.step();
    world.pass_grace();
    world.step();
    world.submit(17, &[7]);
    world
}

#[test]
fn many_are_waited_for_where_one_is_ready() {
    let mut world = many_awaited_and_one_ready();
    world.now += Duration::from_millis(30);
    world.event(Event::Tick);
    assert!(world.running.is_none(), "a step for one would hold up sixteen");
    (1..=15).for_each(|id| world.next(id, &[9]));
    assert!(world.running.is_none(), "one answers within the grace");
    world.next(16, &[9]);
    assert_eq!(world.last_batch().len(), 17);
}

#[test]
fn many_are_not_waited_for_without_end() {
    let mut world = many_awaited_and_one_ready();
    world.now += Duration::from_millis(41);
    world.event(Event::Tick);
    assert_eq!(world.last_batch(), [(0, 1)]);
}

#[test]
fn a_paused_session_is_not_waited_for_and_keeps_its_sequence() {
    let mut world = World::new(2, 64);
    world.submit(1, &[7]);
    world.submit(2, &[7]);
    world.step();
    world.pass_grace();
    world.step();
    world.event(Event::Pause(SessionId(2)));
    world.next(1, &[9]);
    assert_eq!(world.last_batch(), [(1, 1)]);
    world.next(2, &[9]);
    world.step();
    world.event(Event::Leave(SessionId(1)));
    assert_eq!(world.last_batch(), [(1, 1)], "and goes on where it was");
}

#[test]
fn the_queue_is_first_in_first_out_and_leaving_it_is_immediate() {
    let mut world = World::new(1, 64);
    for id in 1..=3 {
        world.submit(id, &[7; 2]);
    }
    assert_eq!(world.scheduler.stats().waiting_tokens, 4);
    world.event(Event::Leave(SessionId(2)));
    assert_eq!(world.scheduler.stats().waiting, 1);
    world.step();
    world.event(Event::Leave(SessionId(1)));
    assert!(matches!(world.told[&SessionId(3)][..], [Notice::Started]));
    assert!(!world.told.contains_key(&SessionId(2)));
}

#[test]
fn a_slot_that_was_left_is_released_before_it_is_used_again() {
    let mut world = World::new(1, 64);
    world.submit(1, &[7; 12]);
    world.submit(2, &[8]);
    let effects = world.event(Event::Leave(SessionId(1)));
    assert!(effects.abort, "nobody needs the running step any more");
    assert_eq!(world.scheduler.stats().running, 0, "the slot is free at once");
    world.step();
    assert_eq!(world.running.as_ref().unwrap().operations, [SequenceOp::Release(Slot(0))]);
    world.step();
    assert_eq!(world.rows(2), 1);
}

#[test]
fn a_full_context_ends_with_length() {
    let mut world = World::new(1, 4);
    world.submit(1, &[7; 3]);
    world.step();
    world.next(1, &[9]);
    world.step();
    world.next(1, &[9]);
    assert_eq!(world.outcome(1), Some(&Outcome::Length));
    assert_eq!(world.scheduler.stats().running, 0);
}

#[test]
fn one_that_ends_with_length_leaves_the_count_of_those_waited_for() {
    let mut world = World::new(2, 4);
    world.submit(1, &[7; 3]);
    world.submit(2, &[7; 2]);
    world.step();
    world.pass_grace();
    world.step();
    world.next(1, &[9, 9]);
    assert_eq!(world.outcome(1), Some(&Outcome::Length));
    assert!(world.running.is_none(), "the other one is still waited for");
    world.next(2, &[9]);
    assert_eq!(world.last_batch(), [(2, 1)]);
}

#[test]
fn a_device_fault_fails_its_batch_and_everyone_else_is_computed_again() {
    let mut world = World::new(3, 64);
    world.submit(1, &[7]);
    world.submit(2, &[7]);
    world.step();
    world.pass_grace();
    world.step();
    world.event(Event::Pause(SessionId(2)));
    world.submit(3, &[7; 2]);
    world.next(1, &[9]);
    world.fail(StepFault::Panic("planned".to_owned()));
    assert!(matches!(world.outcome(1), Some(Outcome::Fault(Fault::Device(_)))));
    assert!(matches!(world.outcome(3), Some(Outcome::Fault(Fault::Device(_)))));
    assert_eq!(world.outcome(2), None);
    world.next(2, &[9]);
    assert!(world.running.as_ref().unwrap().reset);
    assert_eq!(world.last_batch(), [(0, 2)], "its sequence is computed from the start");
    world.step();
    assert_eq!(world.rows(2), 2);
}

#[test]
fn three_faults_in_ten_minutes_give_the_device_up() {
    let mut world = World::new(1, 64);
    for id in 1..=3 {
        world.submit(id, &[7]);
        world.fail(StepFault::Panic("planned".to_owned()));
        assert_eq!(world.gave_up.is_some(), id == 3);
        world.now += Duration::from_secs(60);
    }
    let mut world = World::new(1, 64);
    for id in 1..=3 {
        world.submit(id, &[7]);
        world.fail(StepFault::Panic("planned".to_owned()));
        world.now += Duration::from_secs(301);
    }
    assert_eq!(world.gave_up, None);
}

#[test]
fn a_hang_fails_its_batch_and_a_late_result_is_discarded() {
    let mut world = World::new(1, 64);
    world.submit(1, &[7]);
    world.submit(2, &[7]);
    world.now += Duration::from_secs(11);
    let effects = world.event(Event::Tick);
    assert!(effects.abort);
    assert_eq!(world.outcome(1), Some(&Outcome::Fault(Fault::DeviceHang)));
    assert_eq!(world.scheduler.health(), Health::Hung);
    world.step();
    assert_eq!(world.scheduler.health(), Health::Good);
    assert!(world.running.as_ref().unwrap().reset);
    world.step();
    assert_eq!((world.rows(1), world.rows(2)), (0, 1));
    world.late(1, StepFault::Panic("late".to_owned()));
    assert_eq!(world.outcome(2), None);
}

#[test]
fn no_room_pushes_the_youngest_out_and_ends_one_that_does_not_fit_alone() {
    let mut world = World::new(4, 64);
    world.submit(1, &[7]);
    for id in 2..=4 {
        world.submit(id, &[7]);
    }
    world.step();
    world.next(1, &[9]);
    for left in [4, 3, 2, 1] {
        assert_eq!(world.last_batch().len(), left);
        world.fail(StepFault::Device(DeviceError::NoRoom));
    }
    assert_eq!(world.outcome(1), Some(&Outcome::Length));
    assert_eq!(world.scheduler.stats().preemptions, 3);
    for id in 2..=4 {
        assert_eq!(world.outcome(id), None);
    }
}

#[test]
fn an_aborted_step_is_run_again_for_those_who_still_want_it() {
    let mut world = World::new(2, 64);
    world.submit(1, &[7; 3]);
    world.fail(StepFault::Device(DeviceError::Aborted));
    assert_eq!(world.last_batch(), [(0, 3)]);
    world.step();
    assert_eq!(world.rows(1), 1);
}

#[test]
fn all_rows_of_a_prompt_come_where_they_are_wanted() {
    let mut world = World::new(1, 64);
    world.event(Event::Submit(Submission { prompt_rows: true, ..submission(1, &[7; 11]) }));
    world.step();
    world.step();
    assert_eq!(world.rows(1), 11);
}

#[test]
fn words_from_sessions_that_are_not_expected_change_nothing() {
    let mut world = World::new(1, 64);
    world.submit(1, &[7]);
    world.next(1, &[9]);
    world.next(5, &[9]);
    world.event(Event::Pause(SessionId(1)));
    world.event(Event::Leave(SessionId(5)));
    world.step();
    world.next(1, &[]);
    assert!(world.running.is_none());
    world.next(1, &[9]);
    world.next(1, &[9]);
    assert_eq!(world.last_batch(), [(1, 1)]);
}

/// What may happen at any moment.
#[derive(Clone, Debug)]
enum Move {
    Submit(u8),
    Next(u8, u8),
    Pause(u8),
    Leave(u8),
    Step,
    Fail(u8),
    Wait(u16),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        3 => (1u8..30).prop_map(Move::Submit),
        6 => (any::<u8>(), 1u8..4).prop_map(|(who, run)| Move::Next(who, run)),
        1 => any::<u8>().prop_map(Move::Pause),
        1 => any::<u8>().prop_map(Move::Leave),
        6 => Just(Move::Step),
        1 => (0u8..4).prop_map(Move::Fail),
        2 => (0u16..12_000).prop_map(Move::Wait),
    ];
    proptest::collection::vec(one, 1..120)
}

proptest! {
    /// Whatever happens in whatever order: the invariants hold after each event (`check`), each
    /// batch is legal for the device (`step` expects it), and when all have left nothing is held.
    #[test]
    fn invariants_hold_in_every_order(moves in moves(), slots in 1u32..5) {
        let mut world = World::new(slots, 32);
        let mut submitted = 0u64;
        for one in moves {
            let who = |pick: u8| u64::from(pick) % submitted.max(1) + 1;
            match one {
                Move::Submit(length) => {
                    submitted += 1;
                    world.submit(submitted, &vec![7; usize::from(length)]);
                }
                Move::Next(pick, run) => world.next(who(pick), &vec![9; usize::from(run)]),
                Move::Pause(pick) => { world.event(Event::Pause(SessionId(who(pick)))); }
                Move::Leave(pick) => { world.event(Event::Leave(SessionId(who(pick)))); }
                Move::Step if world.running.is_some() => { world.step(); }
                Move::Fail(kind) if world.running.is_some() => {
                    world.fail(match kind {
                        0 => StepFault::Panic("planned".to_owned()),
                        1 => StepFault::Device(DeviceError::NoRoom),
                        2 => StepFault::Device(DeviceError::Aborted),
                        _ => StepFault::RowSize { expected: 1, found: 0 },
                    });
                }
                Move::Step | Move::Fail(_) => {}
                Move::Wait(ms) => {
                    world.now += Duration::from_millis(ms.into());
                    world.event(Event::Tick);
                }
            }
            if world.gave_up.is_some() {
                return Ok(());
            }
        }
        for id in 1..=submitted {
            world.event(Event::Leave(SessionId(id)));
            let ends = world.told.get(&SessionId(id)).map_or(0, |told| {
                told.iter().filter(|notice| matches!(notice, Notice::End(_))).count()
            });
            prop_assert!(ends <= 1, "at most one end each");
        }
        let stats = world.scheduler.stats();
        prop_assert_eq!((stats.running, stats.waiting, stats.waiting_tokens, stats.held_tokens), (0, 0, 0, 0));
    }
}
