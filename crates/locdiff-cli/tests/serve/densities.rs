//! What the work on a density may cost, and when it ends.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Running, example};

const QUICK: &str = r#"{"kind": "points", "kernel_km": 400, "latitudes": [-19.5], "longitudes": [46.5], "masses": [1]}"#;
const PATH: &str = "/v1/density?format=geojson";

/// A mixture of noise: many seconds of work.
fn slow() -> String {
    let mut state = 1_u64;
    let mut number = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{:.3}", (state >> 40) as f64 / f64::from(1 << 22) - 2.0)
    };
    let part = |_| {
        let coefficients: Vec<String> = (0..48 * 48).map(&mut number).collect();
        let coefficients = coefficients.join(",");
        format!(
            r#"{{"weight": 1, "density": {{"kind": "exponential", "max_degree": 47, "coefficients": [{coefficients}]}}}}"#
        )
    };
    let parts: Vec<String> = (0..32).map(part).collect();
    format!(r#"{{"kind": "mixture", "parts": [{}]}}"#, parts.join(","))
}

/// Asks, and doesn't wait for the answer.
fn send(server: &Running, body: &str) -> TcpStream {
    let mut stream = server.connect();
    let length = body.len();
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

fn ask_quickly(server: &Running) {
    let began = Instant::now();
    let answer = server.post(PATH, QUICK.as_bytes());
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
fn what_would_cost_too_much_is_refused_with_the_reason() {
    let server = Running::start(&[]);
    let began = Instant::now();
    let answer = server.post(PATH, slow().as_bytes());
    assert_eq!(answer.status, 422);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let problem = answer.json();
    assert_eq!(problem["type"], "/docs#problem-too-costly");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("the limit is 2.0 s") && detail.contains("wider kernel"), "{detail}");
    // What is wished can be too expensive too.
    ask_quickly(&server);
    let noise: Vec<String> = (0..128 * 128).map(|k| format!("{}", k % 7)).collect();
    let linear = format!(
        r#"{{"kind": "linear", "max_degree": 127, "coefficients": [{}]}}"#,
        noise.join(",")
    );
    let answer = server.post("/v1/density?format=png&width=2048", linear.as_bytes());
    assert_eq!(answer.status, 422, "{}", String::from_utf8_lossy(&answer.body));
}

#[test]
fn a_client_that_goes_away_frees_the_worker() {
    let server = Running::start(&["--density-budget-ms", "600000"]);
    let gone = send(&server, &slow());
    thread::sleep(Duration::from_secs(1));
    drop(gone);
    ask_quickly(&server);
}

#[test]
fn work_ends_when_its_time_is_up() {
    let server = Running::start(&["--density-budget-ms", "600000", "--request-timeout-s", "3"]);
    assert_eq!(server.post(PATH, slow().as_bytes()).status, 504);
    ask_quickly(&server);
}

#[test]
fn slow_densities_do_not_make_images_be_refused() {
    let server = Running::start(&["--density-budget-ms", "600000"]);
    let waiting: Vec<TcpStream> = (0..4).map(|_| send(&server, &slow())).collect();
    thread::sleep(Duration::from_secs(1));
    for _ in 0..6 {
        let answer = server.post("/v1/locate", &example());
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    }
    drop(waiting);
}
