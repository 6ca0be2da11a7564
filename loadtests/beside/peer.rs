//! llama-server as a child process.

use std::error::Error;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::support::daemon::wait_until_ready;

/// A server that ends with this value.
pub struct LlamaServer {
    child: Child,
    /// Where it answers, `http://…`.
    pub url: String,
}

/// Where `llama-server.sh` has put the program.
pub fn built() -> Result<PathBuf, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("loadtests/llama-server.sh");
    let output = Command::new("sh").arg(&script).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("{}: {error}", script.display()))?;
    if !output.status.success() {
        return Err("llama-server could not be built".to_owned());
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

impl LlamaServer {
    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Starts it with its defaults but for what both sides have in common and `further` flags, and
    /// waits until it is ready.
    pub async fn start(
        program: &Path,
        model: &Path,
        threads: u32,
        slots: usize,
        context_tokens: usize,
        further: &[&str],
    ) -> Result<Self, Box<dyn Error>> {
        // Taken again by the server a moment later.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = Command::new(program)
            .arg("--model")
            .arg(model)
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .args(["--threads", &threads.to_string(), "--threads-batch", &threads.to_string()])
            .args(["--parallel", &slots.to_string()])
            .args(["--ctx-size", &(slots * context_tokens).to_string()])
            .args(further)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let server = Self { child, url: format!("http://127.0.0.1:{port}") };
        wait_until_ready(&format!("{}/health", server.url)).await?;
        Ok(server)
    }
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
