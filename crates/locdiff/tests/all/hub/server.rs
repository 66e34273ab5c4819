//! A hub on this machine: speaks as much of the protocol as is needed, and misbehaves on request.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Of the only commit.
pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// How a request is answered instead of properly.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// With a status and nothing else.
    Status(u16),
    /// With so many bytes of the body; then the connection is closed.
    Cut(usize),
    /// The same, without having said how many there would be.
    CutUnannounced(usize),
    /// With so many bytes; then with silence.
    Stall(usize),
    /// With bytes from the beginning, whatever was asked for, in the words of a proper part.
    WrongPart,
}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Whether it asks what a file is, not for the file.
    fn is_question(&self) -> bool {
        self.header("range") == "bytes=0-0"
    }
}

#[derive(Clone, Default)]
pub(crate) struct Behaviour {
    /// Content and ETag by file name, or by `owner/name/file` if repositories differ. Large files, whose ETag is a SHA-256, are
    /// elsewhere.
    pub(crate) files: HashMap<&'static str, (Vec<u8>, String)>,
    pub(crate) no_ranges: bool,
    /// Large files are under another name of this machine.
    pub(crate) other_host: bool,
    /// Small files are in another place of the hub, as they are in the real one.
    pub(crate) moved: bool,
    /// Status, code and message for everybody without this token.
    pub(crate) gate: Option<(&'static str, u16, &'static str, &'static str)>,
    pub(crate) faults_of_questions: VecDeque<Fault>,
    pub(crate) faults_of_downloads: VecDeque<Fault>,
}

pub(crate) struct Server {
    address: SocketAddr,
    behaviour: Arc<Mutex<Behaviour>>,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub(crate) fn start(behaviour: Behaviour) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let behaviour = Arc::new(Mutex::new(behaviour));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (shared, log) = (behaviour.clone(), requests.clone());
        // Ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, log) = (shared.clone(), log.clone());
                // A client that hangs up early is part of the tests.
                thread::spawn(move || drop(serve(stream, address, &shared, &log)));
            }
        });
        Server { address, behaviour, requests }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.behaviour.lock().unwrap());
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The `Range` of each request for a file's bytes, where it ended up.
    pub(crate) fn downloads(&self, file: &str) -> Vec<String> {
        let served = |r: &Request| r.path.ends_with(file) && !r.is_question();
        let large = |r: &Request| r.path.starts_with("/elsewhere/");
        let requests: Vec<Request> = self.requests().into_iter().filter(served).collect();
        let redirected = requests.iter().any(large);
        let ranges = requests.iter().filter(|r| !redirected || large(r));
        ranges.map(|r| r.header("range").to_owned()).collect()
    }

    pub(crate) fn forget_requests(&self) {
        self.requests.lock().unwrap().clear();
    }
}

fn serve(
    mut stream: TcpStream,
    address: SocketAddr,
    behaviour: &Mutex<Behaviour>,
    log: &Mutex<Vec<Request>>,
) -> std::io::Result<()> {
    let request = read_request(&stream)?;
    log.lock().unwrap().push(request.clone());
    let mut behaviour = behaviour.lock().unwrap();
    let parts: Vec<&str> = request.path.split('/').skip(1).collect();
    let (file, parts) = parts.split_last().unwrap();
    let parts =
        parts.strip_prefix(&["elsewhere"]).or(parts.strip_prefix(&["moved"])).unwrap_or(parts);
    let file = match parts {
        [owner, name, ..] => format!("{owner}/{name}/{file}"),
        _ => (*file).to_owned(),
    };
    let large = |etag: &str| etag.len() == 64;
    let elsewhere = request.path.starts_with("/elsewhere/");

    if let Some((token, status, code, message)) = behaviour.gate
        && !elsewhere
        && request.header("authorization") != format!("Bearer {token}")
    {
        let headers = [("X-Error-Code", code), ("X-Error-Message", message)];
        return answer(&mut stream, status, &headers, b"");
    }
    let plain = file.rsplit('/').next().unwrap();
    let found = behaviour.files.get(file.as_str()).or(behaviour.files.get(plain));
    let Some((content, etag)) = found.cloned() else {
        return answer(&mut stream, 404, &[("X-Error-Code", "EntryNotFound")], b"");
    };
    let size = content.len().to_string();
    let quoted = format!("\"{etag}\"");

    // Where the redirect leads, faults strike, not before.
    let redirects = !elsewhere && large(&etag) && !request.is_question();
    let faults = if request.is_question() {
        &mut behaviour.faults_of_questions
    } else {
        &mut behaviour.faults_of_downloads
    };
    let fault = if redirects || (!request.is_question() && !large(&etag)) {
        None
    } else {
        faults.pop_front()
    };
    if let Some(Fault::Status(status)) = fault {
        return answer(&mut stream, status, &[], b"");
    }
    if behaviour.moved && request.path.contains("/resolve/") && !large(&etag) {
        return answer(&mut stream, 307, &[("Location", &format!("/moved/{file}"))], b"");
    }
    if !elsewhere && large(&etag) {
        let host = if behaviour.other_host { "localhost" } else { "127.0.0.1" };
        let location = format!("http://{host}:{}/elsewhere/{file}", address.port());
        let headers = [
            ("Location", location.as_str()),
            ("X-Repo-Commit", COMMIT),
            ("X-Linked-Etag", &quoted),
            ("X-Linked-Size", &size),
            ("ETag", "\"not-the-one\""),
        ];
        return answer(&mut stream, 302, &headers, b"");
    }
    let no_ranges = behaviour.no_ranges;
    drop(behaviour);

    let range = request.header("range").strip_prefix("bytes=").filter(|_| !no_ranges);
    let (start, end) = match range.and_then(|range| range.split_once('-')) {
        None => (0, content.len()),
        Some((start, end)) => {
            let end = end.parse().map_or(content.len(), |end: usize| end + 1);
            (start.parse().unwrap(), end)
        }
    };
    if start >= content.len() {
        return answer(&mut stream, 416, &[], b"");
    }
    let part = match fault {
        Some(Fault::WrongPart) => &content[..end - start],
        _ => &content[start..end],
    };
    let status = if range.is_some() { 206 } else { 200 };
    let mut head = format!(
        "HTTP/1.1 {status} X\r\nConnection: close\r\nETag: {quoted}\r\nX-Repo-Commit: {COMMIT}\r\n"
    );
    if range.is_some() {
        head += &format!("Content-Range: bytes {start}-{}/{size}\r\n", end - 1);
    }
    if !matches!(fault, Some(Fault::CutUnannounced(_))) {
        head += &format!("Content-Length: {}\r\n", part.len());
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    match fault {
        Some(Fault::Cut(count) | Fault::CutUnannounced(count)) => {
            stream.write_all(&part[..count.min(part.len())])
        }
        Some(Fault::Stall(count)) => {
            stream.write_all(&part[..count.min(part.len())])?;
            thread::sleep(Duration::from_secs(20));
            Ok(())
        }
        _ => stream.write_all(part),
    }
}

fn read_request(stream: &TcpStream) -> std::io::Result<Request> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().ok_or(std::io::ErrorKind::UnexpectedEof)??;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = HashMap::new();
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    Ok(Request { path, headers })
}

fn answer(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(&str, &str)],
    body: &[u8],
) -> std::io::Result<()> {
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}
