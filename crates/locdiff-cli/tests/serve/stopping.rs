//! SIGTERM: what was accepted is answered, then the program ends well.

use std::io::Write;
use std::thread;
use std::time::Duration;

use crate::client::{Running, example, read_answer};

#[test]
fn accepted_requests_are_answered_before_the_end() {
    let server = Running::start(&[]);
    let image = example();
    let mut streams: Vec<_> = (0..4).map(|_| server.connect()).collect();
    let head = format!(
        "POST /v1/locate?registration=false HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        image.len()
    );
    for stream in &mut streams {
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&image[..image.len() / 2]).unwrap();
    }
    // One more that has said nothing at all yet, and never will.
    let silent = server.connect();
    thread::sleep(Duration::from_millis(300));
    server.signal("TERM");
    thread::sleep(Duration::from_millis(100));
    for stream in &mut streams {
        stream.write_all(&image[image.len() / 2..]).unwrap();
    }
    for stream in &mut streams {
        let answer = read_answer(stream);
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    }
    drop(silent);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_second_server_at_the_same_address_is_told_so() {
    let server = Running::start(&[]);
    let port = server.address.rsplit(':').next().unwrap().to_owned();
    let home = tempfile::tempdir().unwrap();
    let second =
        crate::client::program(home.path()).args(["serve", "--port", &port]).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let text = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(text.contains("cannot listen") && text.contains("--port"), "{text}");
}
