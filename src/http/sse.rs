//! A streamed answer as a response body.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
use bytes::BytesMut;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep};

use super::error::ApiError;
use super::openai::chunk::{ChunkWriter, PING};
use super::openai::usage::Tally;
use crate::session::{Frame, FrameBody};

/// Frames that are ready together go out in one write, up to about this many bytes.
const WRITE_BYTES: usize = 16 << 10;
/// Room for one of them, so that it is not made in pieces.
const CHUNK_BYTES: usize = 512;

/// Turns frames into events. Dropping it (the client left) drops the frame receiver, which cancels
/// the sessions; so does its own end after an error.
pub struct SseBody {
    /// `None`: the stream has ended.
    frames: Option<mpsc::Receiver<Frame>>,
    /// A frame that was read before the head was sent.
    first: Option<Frame>,
    writer: ChunkWriter,
    tally: Tally,
    /// Choices whose opening chunk is out.
    opened: Vec<bool>,
    out: BytesMut,
    idle: IdleTimer,
}

impl SseBody {
    /// A stream of `frames`, `first` before them.
    pub fn new(
        frames: mpsc::Receiver<Frame>,
        first: Option<Frame>,
        writer: ChunkWriter,
        tally: Tally,
        ping_interval: Duration,
    ) -> Self {
        let opened = vec![false; tally.choices()];
        let idle = IdleTimer::new(ping_interval);
        Self { frames: Some(frames), first, writer, tally, opened, out: BytesMut::new(), idle }
    }

    /// Writes what is ready; stops at the end of the stream, at `WRITE_BYTES`, or when nothing is.
    fn fill(&mut self, cx: &mut Context<'_>) {
        while self.out.len() < WRITE_BYTES {
            let Some(frames) = &mut self.frames else { return };
            let frame = match self.first.take() {
                Some(frame) => Some(frame),
                None => match frames.poll_recv(cx) {
                    Poll::Ready(frame) => frame,
                    Poll::Pending => return,
                },
            };
            if let Err(error) = self.take(frame) {
                self.writer.error(&mut self.out, &error);
                self.frames = None;
            }
        }
    }

    fn take(&mut self, frame: Option<Frame>) -> Result<(), ApiError> {
        self.out.reserve(CHUNK_BYTES);
        let Some(frame) = frame else {
            tracing::error!("the sessions ended without finishing the stream");
            return Err(ApiError::Internal);
        };
        self.tally.check(&frame)?;
        let Frame { choice, body } = frame;
        let finish = match &body {
            FrameBody::Delta(_) => None,
            FrameBody::Done(summary) => Some(self.tally.finish(choice, summary)?),
        };
        if let Some(opened) = self.opened.get_mut(choice as usize)
            && !std::mem::replace(opened, true)
        {
            self.writer.opening(&mut self.out, choice);
        }
        if let FrameBody::Delta(delta) = &body {
            self.writer.delta(&mut self.out, choice, delta);
        }
        if let Some(finish) = finish {
            self.writer.finish(&mut self.out, choice, finish);
        }
        if self.tally.is_complete() {
            self.writer.done(&mut self.out, self.tally.usage());
            self.frames = None;
        }
        Ok(())
    }
}

impl MessageBody for SseBody {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Infallible>>> {
        let this = self.get_mut();
        this.fill(cx);
        if !this.out.is_empty() {
            this.idle.touch();
            return Poll::Ready(Some(Ok(this.out.split().freeze())));
        }
        if this.frames.is_none() {
            return Poll::Ready(None);
        }
        match this.idle.poll_expired(cx) {
            Poll::Ready(()) => Poll::Ready(Some(Ok(Bytes::from_static(PING)))),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Fires after a time without a touch. A touch only notes the time: the timer itself is set again
/// when it fires, which a busy stream makes it do once an interval, not once a token.
struct IdleTimer {
    interval: Duration,
    touched: Instant,
    /// Polled since it was last set, so that it wakes the task when it fires.
    is_armed: bool,
    sleep: Pin<Box<Sleep>>,
}

impl IdleTimer {
    fn new(interval: Duration) -> Self {
        let sleep = Box::pin(tokio::time::sleep(interval));
        Self { interval, touched: Instant::now(), is_armed: false, sleep }
    }

    fn touch(&mut self) {
        self.touched = Instant::now();
    }

    /// The body belongs to one task from its first poll on, so a timer that is armed wakes it.
    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_armed && Instant::now() < self.sleep.deadline() {
            return Poll::Pending;
        }
        self.is_armed = true;
        while self.sleep.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let due = self.touched + self.interval;
            if now >= due {
                self.touched = now;
                self.sleep.as_mut().reset(now + self.interval);
                // Polled again after the ping is written, which arms it.
                self.is_armed = false;
                return Poll::Ready(());
            }
            self.sleep.as_mut().reset(due);
        }
        Poll::Pending
    }
}
