//! Pages of other sites, and clients that take all that there is.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::{Running, example, program, read_answer};

#[test]
fn pages_of_other_sites_and_foreign_names_are_rejected() {
    let server = Running::start(&["--allowed-host", "maps.example"]);
    let own = format!("Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n", server.address);
    let asked = |headers: &str| server.ask("POST", "/v1/locate", headers, &example()).status;
    assert_eq!(asked(&own), 200);
    for foreign in [
        "Origin: http://evil.example\r\n",
        "Origin: http://localhost:1\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
    ] {
        assert_eq!(asked(foreign), 403, "{foreign}");
        assert_eq!(server.ask("GET", "/v1/models", foreign, b"").status, 403, "{foreign}");
    }
    let named = |host: &str| {
        let mut stream = server.connect();
        write!(stream, "GET /v1/models HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .unwrap();
        read_answer(&mut stream)
    };
    assert_eq!(named("maps.example").status, 200);
    assert_eq!(named("localhost:9").status, 200);
    let answer = named("evil.example");
    assert_eq!(answer.status, 403);
    assert!(answer.json()["detail"].as_str().unwrap().contains("--allowed-host"));
}

/// Idle connections take all descriptors. Somebody with a request gets an answer nevertheless, and the log stays short.
#[test]
#[cfg(target_os = "linux")]
fn few_descriptors_are_enough() {
    let home = tempfile::tempdir().unwrap();
    let mut limited = Command::new("sh");
    let program = program(home.path());
    limited.args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""]).arg(program.get_program());
    limited.env("LOCDIFF_HOME", home.path()).env("HF_HOME", home.path());
    let server = Running::start_by(
        {
            limited.stderr(Stdio::piped());
            limited
        },
        &[],
    );
    let idle: Vec<_> = (0..100).map(|_| server.connect()).collect();
    for _ in 0..3 {
        let began = Instant::now();
        assert_eq!(server.get("/health/live").status, 200);
        // Idle connections leave after a second. It was 42 s.
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
    assert_eq!(server.post("/v1/locate?registration=false", &example()).status, 200);
    drop(idle);
    let log = server.log();
    assert!(log.contains("32 connections at a time instead of 1024"), "{log}");
    assert!(log.lines().count() < 10, "{log}");
}
