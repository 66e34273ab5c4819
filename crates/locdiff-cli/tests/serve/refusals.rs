//! Requests that the server rejects, and the reasons that it gives.

use std::io::Write;
use std::net::Shutdown;
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Running, example, form, read_answer, repository};

#[test]
fn nonsense_is_refused_in_words() {
    let server = Running::start(&["--max-images", "2", "--max-image-bytes", "400000"]);
    let (kind, body) = form(&[("a", b"x"), ("b", b"y"), ("c", b"z")]);
    let too_many = server.ask("POST", "/v1/locate", &kind, &body);
    let photo = std::fs::read(repository("parity/photo/files/rgb.jpg")).unwrap();
    let answers = [
        (server.post("/v1/locate?tpo=3", &example()), 400, "no option `tpo`"),
        (server.post("/v1/locate?model=alexnet", &example()), 400, "no model `alexnet`"),
        (server.post("/v1/locate?within=/etc/passwd", &example()), 400, "no country"),
        (server.post("/v1/locate", b""), 400, "the body is empty"),
        (server.post("/v1/locate", b"<html>"), 415, "not a picture"),
        (server.post("/v1/locate", &example()[..5000]), 415, "damaged"),
        (server.post("/v1/locate", &vec![0; 400_001]), 413, "the limit is 400000"),
        (server.post("/v1/locate", &bomb()), 413, "30000×30000"),
        (too_many, 413, "more than 2 images"),
        (server.post("/v1/locate", &photo), 422, "locdiff model fetch plonk-yfcc"),
        (server.post("/v1/density", b"{}"), 400, "not a density"),
        (server.post("/v1/density?width=63", b"{}"), 400, "from 64 to 2048"),
        (server.get("/v1/locate"), 405, "Allow"),
        (server.get("/nothing"), 404, "nothing at /nothing"),
    ];
    for (answer, status, complaint) in answers {
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, status, "{text}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{text}");
        let problem = answer.json();
        assert!(problem["detail"].as_str().unwrap().contains(complaint), "{text}");
        assert_eq!(problem["status"], status);
        assert!(problem["type"].as_str().unwrap().starts_with("/docs#problem-"));
        if status == 405 {
            assert_eq!(answer.header("allow"), Some("POST"));
        }
    }
    // And it lives.
    assert_eq!(server.post("/v1/locate", &example()).status, 200);
}

/// A PNG of 900 megapixels in a few bytes.
fn bomb() -> Vec<u8> {
    let mut header = b"IHDR".to_vec();
    header.extend_from_slice(&30_000_u32.to_be_bytes());
    header.extend_from_slice(&30_000_u32.to_be_bytes());
    header.extend_from_slice(&[8, 2, 0, 0, 0]);
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0d".to_vec();
    png.extend_from_slice(&header);
    png.extend_from_slice(&crc32(&header).to_be_bytes());
    // The beginning of its pixels.
    png.extend_from_slice(b"\0\0\0\x04IDAT\x78\x9c\0\0\0\0\0\0");
    png
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[test]
fn slow_clients_are_shown_the_door_and_disturb_nobody() {
    let server = Running::start(&["--body-timeout-s", "2", "--header-timeout-s", "2"]);
    let mut slow_body = server.connect();
    slow_body
        .write_all(b"POST /v1/locate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
        .unwrap();
    let mut slow_head = server.connect();
    slow_head.write_all(b"POST /v1/loc").unwrap();
    let mut gone = server.connect();
    gone.write_all(
        b"POST /v1/locate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nabc",
    )
    .unwrap();
    gone.shutdown(Shutdown::Both).unwrap();
    let idle: Vec<_> = (0..100).map(|_| server.connect()).collect();
    assert_eq!(server.post("/v1/locate", &example()).status, 200);
    let began = Instant::now();
    for _ in 0..10 {
        if slow_body.write_all(b"x").is_err() || began.elapsed() > Duration::from_secs(3) {
            break;
        }
        thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(read_answer(&mut slow_body).status, 408);
    // Without a whole head there is nothing to answer.
    let mut rest = Vec::new();
    let _ = std::io::Read::read_to_end(&mut slow_head, &mut rest);
    assert!(began.elapsed() < Duration::from_secs(20));
    drop(idle);
}

#[test]
fn too_much_at_once_is_refused_at_once() {
    let server = Running::start(&["--max-queue", "2", "--max-batch", "1", "--workers", "1"]);
    let asked: Vec<_> = thread::scope(|scope| {
        let ask = || {
            let began = Instant::now();
            (server.post("/v1/locate", &example()), began.elapsed())
        };
        let askers: Vec<_> = (0..24).map(|_| scope.spawn(ask)).collect();
        askers.into_iter().map(|asker| asker.join().unwrap()).collect()
    });
    let answered = asked.iter().filter(|(answer, _)| answer.status == 200).count();
    let refused: Vec<_> = asked.iter().filter(|(answer, _)| answer.status == 429).collect();
    assert!(answered >= 1 && !refused.is_empty(), "{answered} answered");
    assert_eq!(answered + refused.len(), 24);
    let mut times: Vec<Duration> = refused.iter().map(|(_, time)| *time).collect();
    times.sort();
    // In a test on a busy machine; experiments/server/serve-load measures it.
    assert!(times[times.len() / 2] < Duration::from_secs(2), "{times:?}");
    for (answer, _) in refused {
        assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    }
}
