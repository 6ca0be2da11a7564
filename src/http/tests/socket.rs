//! What only a real connection shows.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::web::Data;
use serde_json::json;

use super::{CHAT, chat_body};
use crate::http::testing::{Act, ScriptedEngine, hello, say, state_of};
use crate::http::{HttpSettings, HttpState, serve};

struct Running {
    address: SocketAddr,
    handle: ServerHandle,
    state: Data<HttpState>,
}

fn start(engine: &Arc<ScriptedEngine>, settings: HttpSettings) -> Running {
    let listen = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let state = state_of(engine, HttpSettings { listen, ..settings });
    let bound = serve(state.clone()).unwrap();
    actix_web::rt::spawn(bound.server);
    Running { address: bound.addresses[0], handle: bound.handle, state }
}

/// Does blocking work with a connection, beside the server.
async fn with_client<T: Send + 'static>(
    server: &Running,
    work: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> T {
    let address = server.address;
    let client = move || {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        work(stream)
    };
    actix_web::web::block(client).await.unwrap()
}

fn request(body: &str) -> String {
    let length = body.len();
    format!(
        "POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// Reads up to the end of one response of known length: status line, headers and body.
fn read_response(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut byte = [0];
    while !text.ends_with("\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        text.push(byte[0] as char);
    }
    let lower = text.to_ascii_lowercase();
    let length = lower.split("content-length: ").nth(1).and_then(|s| s.split("\r\n").next());
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    text + std::str::from_utf8(&body).unwrap()
}

/// Waits for a condition; one that never comes fails the test instead of hanging it.
async fn until(mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("it never happened");
}

#[actix_web::test]
async fn a_slow_body_is_a_408_and_the_connection_closes() {
    let settings =
        HttpSettings { body_timeout: Duration::from_millis(50), ..HttpSettings::default() };
    let server = start(&hello(), settings);
    let text = with_client(&server, |mut stream| {
        let head = request("{}").replace("content-length: 2", "content-length: 100");
        stream.write_all(head.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    })
    .await;
    assert!(text.starts_with("HTTP/1.1 408"), "{text}");
    assert!(text.contains("\"code\":\"request_timeout\""), "{text}");
    assert_eq!(server.state.admission().in_use(), 0);
    server.handle.stop(false).await;
}

#[actix_web::test]
async fn a_body_over_the_limit_is_a_413_although_it_never_ends() {
    let server =
        start(&hello(), HttpSettings { body_bytes_max: 10_000, ..HttpSettings::default() });
    let text = with_client(&server, |mut stream| {
        let head = format!(
            "POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let chunk = format!("2000\r\n{}\r\n", " ".repeat(0x2000));
        stream.write_all(chunk.as_bytes()).unwrap();
        stream.write_all(chunk.as_bytes()).unwrap();
        let mut byte = [0; 12];
        stream.read_exact(&mut byte).unwrap();
        String::from_utf8_lossy(&byte).into_owned()
    })
    .await;
    assert_eq!(text, "HTTP/1.1 413");
    server.handle.stop(false).await;
}

#[actix_web::test]
async fn a_connection_lives_on_after_a_refusal() {
    let server = start(&hello(), HttpSettings::default());
    let statuses = with_client(&server, |mut stream| {
        let good = chat_body(json!({})).to_string();
        let bodies = ["{", "{}", "{\"model\":\"x\"}", &good];
        let status = |body: &str| {
            stream.write_all(request(body).as_bytes()).unwrap();
            read_response(&mut stream)[9..12].to_owned()
        };
        bodies.map(status)
    })
    .await;
    assert_eq!(statuses, ["400", "400", "404", "200"]);
    server.handle.stop(false).await;
}

#[actix_web::test]
async fn a_panic_leaves_the_server_answering() {
    let server = start(&hello(), HttpSettings::default());
    let texts = with_client(&server, |mut stream| {
        let panic = chat_body(json!({"messages": [{"role": "user", "content": "panic"}]}));
        [panic, chat_body(json!({}))].map(|body| {
            stream.write_all(request(&body.to_string()).as_bytes()).unwrap();
            read_response(&mut stream)
        })
    })
    .await;
    assert!(texts[0].starts_with("HTTP/1.1 500") && texts[0].contains("internal_error"));
    assert!(texts[0].contains("x-request-id: req_"), "{}", texts[0]);
    assert!(texts[1].starts_with("HTTP/1.1 200"));
    server.handle.stop(false).await;
}

/// How a client leaves.
#[derive(Clone, Copy, Debug)]
enum Leave {
    Close,
    HalfClose,
}

#[actix_web::test]
async fn a_client_that_leaves_cancels_its_request() {
    for leave in [Leave::Close, Leave::HalfClose] {
        for (stream, silent) in [(false, true), (true, true), (true, false)] {
            let acts = if silent { vec![Act::Hang] } else { vec![say("x"), Act::Hang] };
            let engine = ScriptedEngine::new(move |_| acts.clone());
            let settings =
                HttpSettings { stream_head_delay: Duration::from_millis(5), ..Default::default() };
            let server = start(&engine, settings);
            let body = chat_body(json!({"stream": stream})).to_string();
            let open = with_client(&server, move |mut connection| {
                connection.write_all(request(&body).as_bytes()).unwrap();
                if stream {
                    connection.read_exact(&mut [0; 12]).unwrap();
                }
                connection
            })
            .await;
            until(|| engine.jobs.lock().unwrap().len() == 1).await;
            assert_eq!(engine.cancelled.load(Ordering::SeqCst), 0);
            match leave {
                Leave::HalfClose => open.shutdown(Shutdown::Write).unwrap(),
                Leave::Close => open.shutdown(Shutdown::Both).unwrap(),
            }
            until(|| engine.cancelled.load(Ordering::SeqCst) == 1).await;
            until(|| server.state.admission().in_use() == 0).await;
            server.handle.stop(false).await;
        }
    }
}
