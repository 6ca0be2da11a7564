//! The device thread: one command in, one result out, panics caught.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use super::{Device, DeviceError, Rows, Slot, StepBatch};

/// What the device has to do next, in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepCommand {
    /// Number of this step; comes back in [`StepDone`].
    pub epoch: u64,
    /// Forget every sequence first: the last step left them in an unknown state.
    pub reset: bool,
    /// What happens to sequences before the step, in this order.
    pub operations: Vec<SequenceOp>,
    /// The step. Empty: only the above.
    pub batch: StepBatch,
}

/// Something done to a sequence between two steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SequenceOp {
    /// Forget it.
    Release(Slot),
    /// Save it; the state comes back in [`StepDone::saved`] under this number.
    Save {
        /// Whose sequence.
        slot: Slot,
        /// Comes back with the state.
        ticket: u64,
    },
    /// Restore a saved sequence into a slot that is empty.
    Load {
        /// The empty slot.
        slot: Slot,
        /// What [`Device::save_state`] gave.
        state: Arc<Vec<u8>>,
    },
    /// Copy a sequence into a slot that is empty.
    Copy {
        /// Whose sequence.
        from: Slot,
        /// The empty slot.
        to: Slot,
    },
    /// Cut a sequence back.
    Trim {
        /// Whose sequence.
        slot: Slot,
        /// What stays.
        length_tokens: u32,
    },
}

/// The end of a step.
#[derive(Debug)]
pub struct StepDone {
    /// Number of the step.
    pub epoch: u64,
    /// The rows, exactly as many as were wanted, or what went wrong.
    pub result: Result<Arc<Rows>, StepFault>,
    /// The sequences that were saved, whatever became of the step.
    pub saved: Vec<SavedSequence>,
    /// How long the step took, without what came before it.
    pub device_time: Duration,
}

/// The end of a [`SequenceOp::Save`].
#[derive(Debug)]
pub struct SavedSequence {
    /// Its number.
    pub ticket: u64,
    /// The state, or why it could not be saved.
    pub state: Result<Vec<u8>, DeviceError>,
}

/// What went wrong in a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepFault {
    /// The device panicked.
    #[error("the device panicked: {0}")]
    Panic(String),
    /// The device returned an error.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device delivered rows of another number or size than was wanted.
    #[error("the device delivered {found} logits where {expected} were wanted")]
    RowSize {
        /// Logits that were wanted.
        expected: usize,
        /// Logits that came.
        found: usize,
    },
    /// Sequences could not be restored, copied or cut: these slots are empty. Everything else was
    /// done, but for the step itself.
    #[error("{} sequences could not be brought back", .0.len())]
    Restore(Vec<(Slot, DeviceError)>),
}

/// The way to a running device thread. Dropping it ends the thread after its present step.
#[derive(Debug)]
pub struct DeviceHandle {
    commands: Sender<StepCommand>,
    abort: Arc<AtomicBool>,
}

/// The device thread has ended or has a command waiting: a bug, or the process is going down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// A command is waiting already; at most one step is in flight.
    #[error("the device has a command waiting already")]
    Busy,
    /// The thread has ended.
    #[error("the device thread has ended")]
    Ended,
}

impl DeviceHandle {
    /// Gives the device its next command. Never blocks.
    ///
    /// # Errors
    /// See [`SendError`].
    pub fn send(&self, command: StepCommand) -> Result<(), SendError> {
        self.commands.try_send(command).map_err(|error| match error {
            TrySendError::Full(_) => SendError::Busy,
            TrySendError::Disconnected(_) => SendError::Ended,
        })
    }

    /// Ends the running step early, where the device can.
    pub fn abort(&self) {
        self.abort.store(true, Ordering::Release);
    }
}

/// Starts the thread that drives `device`. `on_done` is called on it after every command.
///
/// # Errors
/// When the system has no thread to give.
pub fn spawn(
    device: Box<dyn Device>,
    mut on_done: impl FnMut(StepDone) + Send + 'static,
) -> std::io::Result<(DeviceHandle, JoinHandle<()>)> {
    let (commands, inbox): (Sender<StepCommand>, Receiver<StepCommand>) = bounded(1);
    let abort = device.abort_flag();
    let thread = std::thread::Builder::new().name("device".to_owned()).spawn(move || {
        let mut driver = Driver::new(device);
        while let Ok(command) = inbox.recv() {
            on_done(driver.run(&command));
        }
    })?;
    Ok((DeviceHandle { commands, abort }, thread))
}

/// Runs commands on a device and reuses the memory of rows that no session holds any more. The
/// device thread has one; a simulation without threads may have its own.
pub struct Driver {
    device: Box<dyn Device>,
    spare: Option<Arc<Rows>>,
}

impl Driver {
    /// A driver of `device`.
    pub fn new(device: Box<dyn Device>) -> Self {
        Self { device, spare: None }
    }

    /// Does what the command says, and catches panics on the way.
    pub fn run(&mut self, command: &StepCommand) -> StepDone {
        let mut saved = Vec::new();
        let mut device_time = Duration::ZERO;
        // The state that a panic may leave half changed is the device's; the scheduler then asks
        // for a reset before anything else.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            self.prepare(command, &mut saved)?;
            let started = Instant::now();
            let rows = self.step(&command.batch);
            device_time = started.elapsed();
            rows
        }));
        let result = outcome.unwrap_or_else(|payload| Err(StepFault::Panic(panic_text(&*payload))));
        StepDone { epoch: command.epoch, result, saved, device_time }
    }

    /// What comes before the step. One sequence that cannot be brought back does not keep the
    /// others from it.
    fn prepare(
        &mut self,
        command: &StepCommand,
        saved: &mut Vec<SavedSequence>,
    ) -> Result<(), StepFault> {
        if command.reset {
            self.device.reset()?;
        }
        let mut lost = Lost::default();
        for operation in &command.operations {
            let (slot, done) = match operation {
                SequenceOp::Release(slot) => {
                    self.device.release(*slot);
                    lost.forget(*slot);
                    continue;
                }
                SequenceOp::Save { slot, ticket } => {
                    let state = lost.check(*slot).and_then(|()| self.device.save_state(*slot));
                    saved.push(SavedSequence { ticket: *ticket, state });
                    continue;
                }
                SequenceOp::Load { slot, state } => (*slot, self.device.load_state(*slot, state)),
                SequenceOp::Copy { from, to } => {
                    (*to, lost.check(*from).and_then(|()| self.device.copy(*from, *to)))
                }
                SequenceOp::Trim { slot, length_tokens } => {
                    let trim = |()| self.device.trim(*slot, *length_tokens);
                    (*slot, lost.check(*slot).and_then(trim))
                }
            };
            if let Err(error) = done {
                self.device.release(slot);
                lost.add(slot, error);
            }
        }
        lost.into_result()
    }

    fn step(&mut self, batch: &StepBatch) -> Result<Arc<Rows>, StepFault> {
        let wanted = batch.row_count();
        let mut block = self.take_block(wanted);
        if !batch.pieces.is_empty() {
            self.device.step(batch, &mut block)?;
        }
        if !block.is_whole(wanted) {
            return Err(StepFault::RowSize {
                expected: wanted * block.vocab_size(),
                found: block.logit_count(),
            });
        }
        let block = Arc::new(block);
        self.spare = Some(Arc::clone(&block));
        Ok(block)
    }

    /// An empty block: the last one's memory if every session has let go of its row.
    fn take_block(&mut self, rows: usize) -> Rows {
        match self.spare.take().map(Arc::try_unwrap) {
            Some(Ok(mut block)) => {
                block.clear();
                block
            }
            Some(Err(_)) | None => Rows::new(self.device.info().vocab_size, rows),
        }
    }
}

/// The slots that are empty because something could not be brought back, each with the first reason.
#[derive(Default)]
struct Lost(Vec<(Slot, DeviceError)>);

impl Lost {
    fn check(&self, slot: Slot) -> Result<(), DeviceError> {
        let found = self.0.iter().find(|(lost, _)| *lost == slot);
        found.map_or(Ok(()), |(_, error)| Err(error.clone()))
    }

    fn add(&mut self, slot: Slot, error: DeviceError) {
        if self.check(slot).is_ok() {
            self.0.push((slot, error));
        }
    }

    fn forget(&mut self, slot: Slot) {
        self.0.retain(|(lost, _)| *lost != slot);
    }

    fn into_result(self) -> Result<(), StepFault> {
        if self.0.is_empty() { Ok(()) } else { Err(StepFault::Restore(self.0)) }
    }
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "no message".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Piece;
    use crate::device::simulated::{SimulatedDevice, SimulatedSettings};

    fn driver(lost_restores: u64) -> Driver {
        let settings = SimulatedSettings { lost_restores, ..Default::default() };
        Driver::new(Box::new(SimulatedDevice::new(settings).unwrap()))
    }

    fn command(operations: Vec<SequenceOp>, pieces: &[(u32, u32, u32)]) -> StepCommand {
        let piece = |&(slot, start, count): &(u32, u32, u32)| Piece {
            slot: Slot(slot),
            start,
            tokens: vec![7; count as usize],
            rows_wanted: 1,
        };
        let batch = StepBatch { pieces: pieces.iter().map(piece).collect() };
        StepCommand { epoch: 1, reset: false, operations, batch }
    }

    fn saved(driver: &mut Driver, slot: u32) -> Arc<Vec<u8>> {
        let save = SequenceOp::Save { slot: Slot(slot), ticket: 5 };
        let mut done = driver.run(&command(vec![save], &[]));
        assert!(done.result.is_ok());
        Arc::new(done.saved.remove(0).state.unwrap())
    }

    #[test]
    fn operations_come_before_the_step_and_in_their_order() {
        let mut driver = driver(0);
        assert!(driver.run(&command(vec![], &[(0, 0, 9)])).result.is_ok());
        let state = saved(&mut driver, 0);
        let operations = vec![
            SequenceOp::Copy { from: Slot(0), to: Slot(1) },
            SequenceOp::Trim { slot: Slot(1), length_tokens: 4 },
            SequenceOp::Release(Slot(0)),
            SequenceOp::Load { slot: Slot(0), state },
        ];
        let done = driver.run(&command(operations, &[(0, 9, 1), (1, 4, 1)]));
        assert_eq!(done.result.unwrap().len(), 2);
    }

    #[test]
    fn one_that_is_lost_keeps_no_other_from_coming_back_and_is_never_saved() {
        let mut driver = driver(2);
        assert!(driver.run(&command(vec![], &[(0, 0, 9)])).result.is_ok());
        let state = saved(&mut driver, 0);
        let load = |slot| SequenceOp::Load { slot: Slot(slot), state: Arc::clone(&state) };
        let operations = vec![
            load(1),
            load(2),
            SequenceOp::Trim { slot: Slot(2), length_tokens: 3 },
            SequenceOp::Save { slot: Slot(2), ticket: 6 },
            load(3),
        ];
        let done = driver.run(&command(operations, &[(1, 9, 1)]));
        assert!(matches!(&done.saved[..], [SavedSequence { ticket: 6, state: Err(_) }]));
        let Err(StepFault::Restore(lost)) = done.result else { panic!("{:?}", done.result) };
        assert_eq!(lost.iter().map(|(slot, _)| slot.0).collect::<Vec<_>>(), [2]);
        let after = driver.run(&command(vec![], &[(1, 9, 1), (2, 0, 1), (3, 9, 1)]));
        assert!(after.result.is_ok(), "two came back, and the third slot is empty");
    }

    #[test]
    fn a_slot_that_is_given_up_is_not_missed() {
        let mut driver = driver(1);
        assert!(driver.run(&command(vec![], &[(0, 0, 9)])).result.is_ok());
        let operations =
            vec![SequenceOp::Copy { from: Slot(0), to: Slot(1) }, SequenceOp::Release(Slot(1))];
        assert!(driver.run(&command(operations, &[(1, 0, 1)])).result.is_ok());
    }
}
