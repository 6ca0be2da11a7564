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
    /// Sequences to forget first.
    pub releases: Vec<Slot>,
    /// The step. Empty: only the above.
    pub batch: StepBatch,
}

/// The end of a step.
#[derive(Debug)]
pub struct StepDone {
    /// Number of the step.
    pub epoch: u64,
    /// The rows, exactly as many as were wanted, or what went wrong.
    pub result: Result<Arc<Rows>, StepFault>,
    /// How long the device took.
    pub device_time: Duration,
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
        let mut driver = Driver { device, spare: None };
        while let Ok(command) = inbox.recv() {
            on_done(driver.run(command));
        }
    })?;
    Ok((DeviceHandle { commands, abort }, thread))
}

/// Runs commands on a device and reuses the memory of rows that no session holds any more.
struct Driver {
    device: Box<dyn Device>,
    spare: Option<Arc<Rows>>,
}

impl Driver {
    fn run(&mut self, command: StepCommand) -> StepDone {
        let started = Instant::now();
        let epoch = command.epoch;
        // The state that a panic may leave half changed is the device's; the scheduler then asks
        // for a reset before anything else.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.step(&command)));
        let result = outcome.unwrap_or_else(|payload| Err(StepFault::Panic(panic_text(&*payload))));
        StepDone { epoch, result, device_time: started.elapsed() }
    }

    fn step(&mut self, command: &StepCommand) -> Result<Arc<Rows>, StepFault> {
        if command.reset {
            self.device.reset()?;
        }
        for &slot in &command.releases {
            self.device.release(slot);
        }
        let wanted = command.batch.row_count();
        let mut block = self.take_block(wanted);
        if !command.batch.pieces.is_empty() {
            self.device.step(&command.batch, &mut block)?;
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

fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "no message".to_owned()
    }
}
