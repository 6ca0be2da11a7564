//! What the system alone takes for the same writes.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes of an event with one token, about.
const EVENT_BYTES: usize = 230;
/// Events that are written to each connection.
const ROUNDS: u32 = 200;
/// How often the other side reads, as the clients of a crowd do.
const READ_EVERY: Duration = Duration::from_millis(150);

/// Processor time of writing one event to a connection on this machine, among `streams`.
pub fn write_time(streams: usize) -> Result<Duration, Error> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..streams {
        theirs.push(TcpStream::connect(address)?);
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        ours.push(stream);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let reader = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || drain(&theirs, &stop))
    };
    let event = [b'x'; EVENT_BYTES];
    let before = thread_time();
    for _ in 0..ROUNDS {
        ours.iter_mut().try_for_each(|stream| stream.write_all(&event))?;
    }
    let spent = thread_time().saturating_sub(before);
    stop.store(true, Ordering::Release);
    drop(ours);
    reader.join().map_err(|_| Error::other("the reader panicked"))??;
    Ok(spent / ROUNDS / u32::try_from(streams).unwrap_or(u32::MAX))
}

fn drain(streams: &[TcpStream], stop: &AtomicBool) -> Result<(), Error> {
    let mut buffer = vec![0; 64 << 10];
    streams.iter().try_for_each(|stream| stream.set_nonblocking(true))?;
    while !stop.load(Ordering::Acquire) {
        std::thread::sleep(READ_EVERY);
        for mut stream in streams {
            loop {
                match stream.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(())
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call only writes the structure that it is given.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) } != 0;
    if failed {
        return Duration::ZERO;
    }
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
