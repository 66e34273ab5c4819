//! What a server takes in memory, whatever clients do. On Linux, which tells how much that is.

use std::io::{Cursor, Read, Write};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::client::{Running, example, form};

const LIMIT: u64 = 200_000_000;

fn start(options: &[&str]) -> Running {
    let limit = LIMIT.to_string();
    let own =
        ["--max-memory-bytes", &limit, "--max-image-bytes", "8000000", "--max-connections", "64"];
    let server = Running::start(&[&own, options].concat());
    // Models and maps are read when they are first needed.
    assert_eq!(server.post("/v1/locate?density=true", &example()).status, 200);
    assert_eq!(server.post("/v1/density?format=geojson", ONE.as_bytes()).status, 200);
    server
}

const ONE: &str = r#"{"kind": "points", "kernel_km": 400, "latitudes": [-19.5], "longitudes": [46.5], "masses": [1]}"#;

impl Running {
    /// What the server has in memory, and the most that it had since this was last asked, in bytes.
    fn memory(&self) -> [u64; 2] {
        let id = self.id();
        let text = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let of = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
        };
        let found = [of("VmRSS:"), of("VmHWM:")];
        std::fs::write(format!("/proc/{id}/clear_refs"), "5").unwrap();
        found
    }
}

/// The system keeps a huge page while any part of it is in use, so memory would grow for hours.
#[test]
fn memory_is_in_small_pages() {
    let server = start(&[]);
    let (_, statuses) = attack(&server, "/v1/embed", "", &example());
    assert!(statuses.contains(&200), "{statuses:?}");
    let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", server.id())).unwrap();
    let large = text.lines().find(|line| line.starts_with("AnonHugePages:")).unwrap();
    let kilobytes: u64 = large.split_whitespace().nth(1).unwrap().parse().unwrap();
    // Some may have been taken before the command began.
    assert!(kilobytes < 16 << 10, "{large}");
}

/// What some requests at a time take, as a part of the limit; and their statuses.
fn attack(server: &Running, path: &str, headers: &str, body: &[u8]) -> (f64, Vec<u16>) {
    let [idle, _] = server.memory();
    let statuses = thread::scope(|scope| {
        let ask = || server.ask("POST", path, headers, body).status;
        let askers: Vec<_> = (0..12).map(|_| scope.spawn(ask)).collect();
        askers.into_iter().map(|asker| asker.join().unwrap()).collect()
    });
    let [_, peak] = server.memory();
    (peak.saturating_sub(idle) as f64 / LIMIT as f64, statuses)
}

/// Deep and transparent, in few bytes.
fn deep_png(side: u32) -> Vec<u8> {
    let mut png = Cursor::new(Vec::new());
    let image = image::DynamicImage::new_rgba16(side, side);
    image.write_to(&mut png, image::ImageFormat::Png).unwrap();
    png.into_inner()
}

#[test]
fn images_take_no_more_than_they_may() {
    // All clients here have one address, and stand for many.
    let server = start(&["--client-share-percent", "100"]);
    // 82 MB each when they are decoded: one at a time.
    let png = deep_png(3200);
    let [idle, _] = server.memory();
    let (taken, statuses) = attack(&server, "/v1/locate", "", &png);
    let began = Instant::now();
    while server.memory()[0] > idle + LIMIT / 4 {
        assert!(began.elapsed() < Duration::from_secs(60), "not given back");
        thread::sleep(Duration::from_millis(100));
    }
    assert!(taken < 1.1, "{taken} {statuses:?}");
    let told = |status: &u16| [422, 429].contains(status);
    assert!(statuses.iter().all(told) && statuses.contains(&422), "{statuses:?}");
    let (kind, several) = form(&[("a.png", &png), ("b.png", &png), ("c.png", &png)]);
    let (taken, statuses) = attack(&server, "/v1/locate", &kind, &several);
    assert!(taken < 1.1, "{taken} {statuses:?}");
    assert!(statuses.contains(&200), "{statuses:?}");
    // Larger than there ever is memory for.
    let answer = server.post("/v1/locate", &deep_png(4200));
    assert_eq!(answer.status, 413);
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("--max-memory-bytes"), "{detail}");
    assert_eq!(server.post("/v1/locate", &example()).status, 200);
}

#[test]
fn densities_take_no_more_than_they_may() {
    let server = start(&["--client-share-percent", "100"]);
    let numbers = "0,".repeat(1_500_000);
    let body = format!(
        r#"{{"kind": "points", "kernel_km": 9, "latitudes": [{numbers}0], "longitudes": [{numbers}0], "masses": [1]}}"#
    );
    let (taken, statuses) = attack(&server, "/v1/density", "", body.as_bytes());
    assert!(taken < 1.1, "{taken} {statuses:?}");
    let told = |status: &u16| [400, 429].contains(status);
    assert!(statuses.iter().all(told) && statuses.contains(&400), "{statuses:?}");
    assert_eq!(server.post("/v1/density", &vec![b' '; 16 << 20]).status, 413);
    assert_eq!(server.post("/v1/density?format=png", ONE.as_bytes()).status, 200);
}

#[test]
fn who_does_not_read_is_left_and_counted_until_then() {
    let server = start(&["--answer-timeout-s", "3"]);
    let [idle, _] = server.memory();
    let path = "/v1/density?format=grid&width=1024";
    let address: SocketAddr = server.address.parse().unwrap();
    let length = ONE.len();
    let began = Instant::now();
    let mut readers: Vec<Socket> = (0..24)
        .map(|_| {
            let mut socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_recv_buffer_size(4096).unwrap();
            socket.connect(&address.into()).unwrap();
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n{ONE}"
            );
            socket.write_all(head.as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(20));
            socket
        })
        .collect();
    // A byte now and then is not reading.
    let mut byte = [0];
    while began.elapsed() < Duration::from_secs(20) {
        let _ = readers[0].read(&mut byte);
        thread::sleep(Duration::from_millis(300));
        if server.get("/metrics").body.is_empty() {
            panic!("no answer");
        }
    }
    let [_, peak] = server.memory();
    let taken = peak.saturating_sub(idle) as f64 / LIMIT as f64;
    assert!(taken < 1.1, "{taken}");
    let mut cut = 0;
    for mut reader in readers {
        reader.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut rest = Vec::new();
        let _ = reader.read_to_end(&mut rest);
        cut += usize::from(rest.len() < 4 << 20);
    }
    assert!(cut >= 20, "{cut} of 24");
    assert_eq!(server.post(path, ONE.as_bytes()).status, 200);
}
