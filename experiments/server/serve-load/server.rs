//! The server as a process of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

pub(crate) struct Server {
    process: Child,
    pub(crate) address: SocketAddr,
    _home: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start(options: &[&str]) -> Result<Server> {
        let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
        let program = Path::new(&target).join("release/locdiff");
        let home = tempfile::tempdir()?;
        let mut process = Command::new(&program)
            .args(["serve", "--port", "0", "--log", "error"])
            .args(options)
            .env("LOCDIFF_HOME", home.path())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| program.display().to_string())?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().context("its stdout")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("http://").context("its address")?.parse()?;
        let server = Server { process, address, _home: home };
        for _ in 0..600 {
            let ready = std::net::TcpStream::connect(address).ok().is_some_and(|mut stream| {
                use std::io::{Read, Write};
                let mut head = [0; 12];
                stream.write_all(b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n").is_ok()
                    && stream.read_exact(&mut head).is_ok()
                    && head.ends_with(b"200")
            });
            if ready {
                return Ok(server);
            }
            thread::sleep(Duration::from_millis(100));
        }
        anyhow::bail!("the server was never ready")
    }

    /// Memory that it holds, in MB (Linux).
    pub(crate) fn resident_mb(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))
            .unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line
            .and_then(|line| line.split_whitespace().next())
            .and_then(|n| n.parse::<f64>().ok());
        number.unwrap_or(f64::NAN) / 1024.0
    }

    pub(crate) fn terminate(&self) -> Result<()> {
        let id = self.process.id().to_string();
        ensure!(Command::new("kill").args(["-s", "TERM", &id]).status()?.success(), "kill failed");
        Ok(())
    }

    pub(crate) fn wait(mut self) -> Result<Option<i32>> {
        Ok(self.process.wait()?.code())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
