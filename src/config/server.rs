//! `[server]`: the HTTP listener.

use std::net::{Ipv4Addr, SocketAddr};

use serde::{Deserialize, Deserializer, Serialize};

use super::check::Problems;

/// The HTTP listener.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Address and port. Default `127.0.0.1:8080`; port 0 takes any free one.
    #[serde(deserialize_with = "socket_address")]
    pub listen: SocketAddr,
    /// Address and port where `/livez`, `/readyz`, `/health` and `/metrics` are answered too, by a
    /// thread that does nothing else: at once, however many requests are read and streams written
    /// meanwhile. Default none.
    #[serde(deserialize_with = "some_socket_address", skip_serializing_if = "Option::is_none")]
    pub probe_listen: Option<SocketAddr>,
    /// Threads that read requests and write streams. Default 2, so that a probe does not wait behind
    /// thousands of streams; 1 to 64.
    pub workers: u32,
    /// Connections over which no further one is accepted. Default 16384, 1 to 1048576; each needs a
    /// file descriptor.
    pub max_connections: u32,
    /// A client without a key is known by the address that the proxy in front names
    /// (`Forwarded`, `X-Forwarded-For`). Default false: without a proxy clients could choose it.
    pub trust_forwarded: bool,
    /// `/metrics` answers without an API key. Default false; of no effect without keys.
    pub public_metrics: bool,
    /// Origins whose pages may call the API from a browser: `https://chat.example`, or `*` for
    /// all. Default none.
    pub cors_origins: Vec<String>,
    /// How long an idle connection is kept. Default 75, above the 60 of an nginx upstream so that
    /// the proxy closes first; 1 to 3600.
    pub keep_alive_seconds: u64,
    /// How long a client may take to send the request's head. Default 5, 1 to 300.
    pub client_head_timeout_seconds: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            probe_listen: None,
            workers: 2,
            max_connections: 16_384,
            trust_forwarded: false,
            public_metrics: false,
            cors_origins: Vec::new(),
            keep_alive_seconds: 75,
            client_head_timeout_seconds: 5,
        }
    }
}

impl ServerConfig {
    pub(super) fn check(&self, problems: &mut Problems) {
        if self.probe_listen == Some(self.listen) && self.listen.port() != 0 {
            problems.add("server.probe_listen", "must be another than `server.listen`");
        }
        problems.range("server.workers", self.workers, 1..=64);
        problems.range("server.max_connections", self.max_connections, 1..=1_048_576);
        problems.range("server.keep_alive_seconds", self.keep_alive_seconds, 1..=3600);
        let head_timeout = self.client_head_timeout_seconds;
        problems.range("server.client_head_timeout_seconds", head_timeout, 1..=300);
        for (index, origin) in self.cors_origins.iter().enumerate() {
            if !is_origin(origin) {
                problems.add(
                    format!("server.cors_origins[{index}]"),
                    format!("must be \"*\" or scheme://host[:port] without a path, not {origin:?}"),
                );
            }
        }
    }
}

/// Whether a browser could send `text` as its `Origin`, or it is `*`.
fn is_origin(text: &str) -> bool {
    if text == "*" {
        return true;
    }
    text.split_once("://").is_some_and(|(scheme, authority)| {
        !scheme.is_empty()
            && scheme.bytes().all(|byte| byte.is_ascii_lowercase())
            && !authority.is_empty()
            && !authority.contains(['/', '?', '#', '*', '@'])
            && !authority.contains(char::is_whitespace)
    })
}

fn socket_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| {
        serde::de::Error::custom(format!(
            "must be an IP address and a port, such as \"127.0.0.1:8080\" or \"[::]:8080\", \
             not {text:?}"
        ))
    })
}

fn some_socket_address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    socket_address(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::is_origin;

    #[test]
    fn origins() {
        for good in ["*", "https://chat.example", "http://localhost:3000", "http://[::1]:80"] {
            assert!(is_origin(good), "{good}");
        }
        for bad in ["", "chat.example", "https://", "https://a/", "https://*.example", "://a"] {
            assert!(!is_origin(bad), "{bad}");
        }
    }
}
