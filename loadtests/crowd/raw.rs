//! HTTP by hand, for clients that have to cost little or to be exact about time.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A stream of exactly so many tokens.
pub fn stream_body(which: usize, tokens: u32) -> Value {
    let prompt: Vec<usize> = (0..16).map(|at| 100 + (at * 7 + which * 13) % 150).collect();
    json!({"prompt": prompt, "max_tokens": tokens, "ignore_eos": true, "temperature": 0, "stream": true})
}

/// A request that closes its connection.
pub fn post(body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    format!(
        "POST /v1/completions HTTP/1.1\r\nhost: pleach\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// One GET, timed from the connection to the last byte; anything but 200 is an error.
pub fn timed_get(address: SocketAddr, path: &str) -> Result<Duration, Error> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: pleach\r\nconnection: close\r\n\r\n");
    match exchange(address, request.as_bytes())? {
        (200, time) => Ok(time),
        (status, _) => Err(Error::other(format!("{path} answered {status}"))),
    }
}

/// Sends one request; its status and how long it took.
pub fn exchange(address: SocketAddr, request: &[u8]) -> Result<(u16, Duration), Error> {
    let started = Instant::now();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(request)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let status =
        answer.get(9..12).and_then(|status| std::str::from_utf8(status).ok()?.parse().ok());
    let status = status.ok_or_else(|| Error::new(ErrorKind::InvalidData, "not HTTP"))?;
    Ok((status, started.elapsed()))
}

/// As many open files as the system allows.
pub fn raise_file_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls only read or write the structure that they are given.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            // Where it is refused the connections that are too many fail and say so.
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}
