//! A server process, and a client that is no cleverer than a socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

pub(crate) fn example() -> Vec<u8> {
    std::fs::read(repository("examples/madagascar.jpg")).unwrap()
}

/// The program with an empty home.
pub(crate) fn program(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_locdiff"));
    command.env("LOCDIFF_HOME", home).env("HF_HOME", home.join("hub")).env_remove("HF_HUB_CACHE");
    command
}

pub(crate) struct Running {
    process: Child,
    pub(crate) address: String,
    _home: Option<tempfile::TempDir>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line = self.head.lines().find(|line| {
            line.split_once(':').is_some_and(|(found, _)| found.eq_ignore_ascii_case(name))
        });
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim())
    }
}

impl Running {
    /// A server with some options, once it is ready.
    pub(crate) fn start(options: &[&str]) -> Running {
        let home = tempfile::tempdir().unwrap();
        let mut running = Running::start_in(home.path(), options);
        running._home = Some(home);
        running
    }

    /// The same with a home of models.
    pub(crate) fn start_in(home: &Path, options: &[&str]) -> Running {
        Running::start_by(program(home), options)
    }

    /// The same with a command that runs the program.
    pub(crate) fn start_by(mut command: Command, options: &[&str]) -> Running {
        command.args(["serve", "--port", "0", "--log", "warn"]).args(options);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").unwrap().to_owned();
        let running = Running { process, address, _home: None };
        let began = Instant::now();
        while running.get("/health/ready").status != 200 {
            assert!(began.elapsed() < Duration::from_secs(60), "never ready");
            thread::sleep(Duration::from_millis(20));
        }
        running
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", b"")
    }

    pub(crate) fn post(&self, path: &str, body: &[u8]) -> Answer {
        self.ask("POST", path, "Content-Type: application/octet-stream\r\n", body)
    }

    /// One request on its own connection.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        let mut stream = self.connect();
        let length = body.len();
        let host = &self.address;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        // Whoever is refused early may not be listened to until the end.
        let _ = stream.write_all(body);
        read_answer(&mut stream)
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// What it has logged, once it has ended.
    pub(crate) fn log(mut self) -> String {
        let _ = self.process.kill();
        let mut log = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        log
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    pub(crate) fn wait(mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads until the server closes, or as much as it announced.
pub(crate) fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 << 10];
    loop {
        if let Some(answer) = complete(&bytes) {
            return answer;
        }
        match stream.read(&mut buffer) {
            Ok(0) => {
                panic!("closed after {} bytes: {}", bytes.len(), String::from_utf8_lossy(&bytes))
            }
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) => panic!("{error} after {} bytes", bytes.len()),
        }
    }
}

fn complete(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut answer = Answer { status, head, body: bytes[end + 4..].to_vec() };
    let length: usize = answer.header("content-length")?.parse().ok()?;
    answer.body.truncate(length);
    (answer.body.len() == length).then_some(answer)
}

/// The content type and the body of a form with images.
pub(crate) fn form(images: &[(&str, &[u8])]) -> (String, Vec<u8>) {
    let mut body = Vec::new();
    for (name, bytes) in images {
        let head = format!(
            "--border\r\nContent-Disposition: form-data; name=\"image\"; filename=\"{name}\"\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--border--\r\n");
    ("Content-Type: multipart/form-data; boundary=border\r\n".to_owned(), body)
}
