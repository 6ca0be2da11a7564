//! A small HTTP/1.1 client over a plain socket: the tests decide when bytes are sent, read, or
//! the connection is dropped.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("answers are UTF-8")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("JSON: {}", self.text()))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }
}

/// An answer whose body is still being read.
pub struct Open {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
}

pub fn get(address: SocketAddr, path: &str) -> io::Result<Answer> {
    send(address, "GET", path, &[], b"")?.finish()
}

pub fn post(address: SocketAddr, path: &str, body: &Value) -> io::Result<Answer> {
    open(address, path, body)?.finish()
}

/// Sends a POST of JSON and reads the head of the answer.
pub fn open(address: SocketAddr, path: &str, body: &Value) -> io::Result<Open> {
    let headers = [("content-type", "application/json")];
    send(address, "POST", path, &headers, body.to_string().as_bytes())
}

/// Sends a request with any headers and body, and reads the head of the answer.
pub fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<Open> {
    let mut stream = connect(address)?;
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes())?;
    // The server may answer and close before it has read all of a body that it refuses.
    let _ = stream.write_all(body);
    read_head(stream)
}

pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(120)))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

pub fn read_head(stream: TcpStream) -> io::Result<Open> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("no status line: {line:?}")))?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end();
        if line.is_empty() {
            return Ok(Open { status, headers, reader });
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
}

impl Open {
    fn is_chunked(&self) -> bool {
        self.headers.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked")
        })
    }

    /// The next chunk of a chunked body; `None` at its end. A body that is cut is an error.
    pub fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut size = String::new();
        self.reader.read_line(&mut size)?;
        let size = usize::from_str_radix(size.trim(), 16)
            .map_err(|_| io::Error::other(format!("the body was cut: chunk size {size:?}")))?;
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk)?;
        chunk.truncate(size);
        Ok((size > 0).then_some(chunk))
    }

    pub fn finish(mut self) -> io::Result<Answer> {
        let mut body = Vec::new();
        if self.is_chunked() {
            while let Some(chunk) = self.chunk()? {
                body.extend(chunk);
            }
        } else {
            self.reader.read_to_end(&mut body)?;
        }
        Ok(Answer { status: self.status, headers: self.headers, body })
    }
}

/// The data of each server-sent event: JSON, or a string for `[DONE]`.
pub fn events(body: &str) -> Vec<Value> {
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| Value::from(data))).collect()
}

/// The text that a client puts together from the events of one choice.
pub fn joined(events: &[Value], choice: u64) -> String {
    let mut text = String::new();
    for event in events {
        for one in event["choices"].as_array().into_iter().flatten() {
            if one["index"] == choice {
                let piece = one["text"].as_str().or_else(|| one["delta"]["content"].as_str());
                text.push_str(piece.unwrap_or(""));
            }
        }
    }
    text
}
