//! Requests to the server, through a socket: paths, queries and headers, and bodies.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use locdiff::ModelHome;
use locdiff::models::open_encoder;
use locdiff::tensors::device_by_name;
use locdiff_server::{Server, Settings};

use super::model_directory::write_diffusion;
use crate::{Target, contents, repository};

pub(super) const QUERY: Target = Target {
    name: "http_query",
    reads: "paths, queries and headers of HTTP requests",
    longest: 2 << 10,
    most_bytes: 512 << 20,
    run: run_query,
    seeds: seeds_of_queries,
};

pub(super) const BODY: Target = Target {
    name: "http_body",
    reads: "bodies of HTTP requests: images, forms, densities",
    longest: 8 << 10,
    most_bytes: 512 << 20,
    run: run_body,
    seeds: seeds_of_bodies,
};

/// How long it may take before it is clear that the server waits for more.
const MOMENT: Duration = Duration::from_millis(100);
/// A client waits so long for an answer: with counters everything is slow.
const PATIENCE: Duration = Duration::from_secs(20);

/// The address of a server with a small model, which runs until the process ends.
fn server() -> SocketAddr {
    static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();
    *ADDRESS.get_or_init(start)
}

fn start() -> SocketAddr {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = repository("parity/vision/dinov2");
    let device = device_by_name("cpu").expect("the CPU");
    let home = ModelHome::at(folder.path());
    let encoder = open_encoder(&path.to_string_lossy(), &home, &device);
    let encoder = encoder.expect("an encoder").expect("its files are in the repository");
    let model = folder.path().join("small");
    write_diffusion(&model, encoder.record().clone(), encoder.record().test_embedding.len());
    let settings = Settings {
        port: 0,
        models: vec![model.to_string_lossy().into_owned()],
        encoder: Some(path),
        workers: 1,
        batch_delay_ms: 0,
        // Small, so that many requests are answered in a second.
        max_evaluations: 16,
        max_image_bytes: 64 << 10,
        max_image_pixels: 1 << 16,
        density_budget_ms: 20,
        max_connections: 64,
        header_timeout_s: 2,
        body_timeout_s: 2,
        // The name in the requests of these targets; every other one is rejected before anything else is read.
        allowed_hosts: vec!["x".to_owned()],
        // All requests come from one client.
        client_share_percent: 100,
        ..Settings::default()
    };
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let server = Server::bind(settings).await.expect("a free port");
            let address = server.address().expect("an address");
            let ready = move || {
                let _ = sender.send(address);
            };
            let _ = server.run(ready, std::future::pending()).await;
        });
        drop(folder);
    });
    receiver.recv().expect("the server starts")
}

/// Sends a request, and checks that the answer admits no mistake of the server's. One that `is_complete` must be answered. Returns how
/// the answer begins.
fn send(request: &[u8], is_complete: bool) -> String {
    let mut stream = TcpStream::connect(server()).expect("the server accepts connections");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
    // The server may answer and close before it has read everything.
    let _ = stream.write_all(request);
    let first = if is_complete { PATIENCE } else { MOMENT };
    let mut answer = vec![0; 4096];
    stream.set_read_timeout(Some(first)).expect("a socket");
    let first = read(&mut stream, &mut answer);
    let ended = format!("{first:?}");
    let mut count = first.unwrap_or(0);
    if count == 0 && !is_complete {
        // The server waits for the rest: there is none.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        count = match read(&mut stream, &mut answer) {
            Ok(count) => count,
            Err(error) => {
                let kind = error.kind();
                let timed_out = matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut);
                assert!(!timed_out, "no answer within {PATIENCE:?}");
                0
            }
        };
    }
    answer.truncate(count);
    if answer.is_empty() {
        assert!(!is_complete, "no answer: {ended}");
        return String::new();
    }
    let shown = String::from_utf8_lossy(&answer[..count.min(400)]).into_owned();
    assert!(answer.starts_with(b"HTTP/1."), "{shown}");
    assert_ne!(answer.get(9..12), Some(&b"500"[..]), "{shown}");
    shown
}

/// libFuzzer's clock interrupts whatever waits.
fn read(stream: &mut TcpStream, answer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(answer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// The input is a request's method, path and query, and maybe headers; without them the body of a small density is sent.
fn run_query(input: &[u8]) {
    send(&query(input), !has_headers(input) && !input.contains(&b'\r'));
}

fn has_headers(input: &[u8]) -> bool {
    input.windows(4).any(|end| end == b"\r\n\r\n")
}

fn query(input: &[u8]) -> Vec<u8> {
    let mut request = input.to_vec();
    if !has_headers(input) {
        let body = br#"{"kind":"exponential","max_degree":1,"coefficients":[0,1.5,-2,3]}"#;
        let line = request.iter().position(|byte| *byte == b'\n').unwrap_or(request.len());
        request.truncate(line);
        let head = format!(
            " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        request.extend(head.as_bytes());
        request.extend(body);
    }
    request
}

/// The first byte chooses what the body is said to be, the others are the body.
fn run_body(input: &[u8]) {
    if let Some((choice, body)) = input.split_first() {
        send(&with_body(*choice, body), true);
    }
}

fn with_body(choice: u8, body: &[u8]) -> Vec<u8> {
    let (path, kind) = match choice % 6 {
        0 => ("/v1/density?format=grid&width=64", "application/json"),
        1 => ("/v1/density?format=geojson", "application/json"),
        2 => ("/v1/locate?density=true", "application/octet-stream"),
        3 => ("/v1/locate?top=3", "multipart/form-data; boundary=xyz"),
        4 => ("/v1/embed", "multipart/form-data; boundary=\"x y\""),
        _ => ("/v1/density?format=png&width=64", "application/json"),
    };
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn seeds_of_queries() -> Vec<Vec<u8>> {
    [
        "GET /",
        "GET /v1/models",
        "GET /v1/page",
        "GET /health/ready",
        "GET /metrics",
        "GET /openapi.json",
        "GET /docs",
        "GET /v1/thumbnail?id=a%2Fb.jpg&size=200",
        "POST /v1/locate?model=small&top=3&within=land&within=0,0,500km&draws=7&seed=18446744073709551615&density=true&frames=2",
        "POST /v1/locate?sampler=ddim&steps=10&samples=4&views=2&guidance=1.5&decode=geoscore&kernel_km=50&registration=false&width_km=300",
        "POST /v1/embed?model=small",
        "POST /v1/density?format=png&width=64&projection=globe&levels=0.5,0.9",
        "POST /v1/density?format=geojson&within=Portugal&levels=0.1",
        "POST /v1/density?format=grid&width=64&within=35,-10,60,30",
        "GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\nExpect: 100-continue\r\n\r\n",
        "POST /v1/density HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "PUT /v1/locate HTTP/1.0\r\nContent-Length: 18446744073709551615\r\n\r\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

fn seeds_of_bodies() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for record in (super::density_record::TARGET.seeds)() {
        for choice in [0, 1, 5] {
            seeds.push([&[choice], record.as_slice()].concat());
        }
    }
    let small = |path: &std::path::Path| {
        let name = path.to_string_lossy();
        ["gps-paris", "rgb.jpg", "bits.png", "lossy.webp"].iter().any(|part| name.contains(part))
    };
    for image in contents("parity/photo/files", 2 << 10, small) {
        seeds.push([&[2], image.as_slice()].concat());
        for (choice, boundary) in [(3, "xyz"), (4, "x y")] {
            let head = format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a.jpg\"\r\n\r\n"
            );
            let end = format!("\r\n--{boundary}--");
            seeds.push([&[choice], head.as_bytes(), &image, end.as_bytes()].concat());
        }
    }
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests that are rejected for their host, or for what their client asked before, would test nothing else.
    #[test]
    fn what_is_sent_is_read() {
        let queries = seeds_of_queries().into_iter().map(|seed| query(&seed));
        let bodies = seeds_of_bodies().into_iter().map(|seed| with_body(seed[0], &seed[1..]));
        for request in queries.chain(bodies) {
            // A client that closes its half before the answer may get none.
            let answer = send(&request, true);
            let shown = String::from_utf8_lossy(&request[..request.len().min(200)]).into_owned();
            let status = answer.get(9..12).unwrap_or_default();
            assert!(status.parse::<u16>().is_ok(), "{shown}\n{answer}");
            assert!(!["403", "429", "503"].contains(&status), "{shown}\n{answer}");
        }
    }
}
