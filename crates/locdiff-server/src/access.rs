//! Around every request: keys, a time limit, one line in the log, and counting. Nothing of what was sent is
//! written down.

use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use tracing::Instrument;

use crate::body::say_farewell;
use crate::problem::{NO_KEY, Problem, TIMED_OUT, WRONG_METHOD};
use crate::state::App;

/// Paths that are counted under their own name.
const PATHS: [&str; 15] = [
    "/v1/locate",
    "/v1/embed",
    "/v1/density",
    "/v1/models",
    "/v1/page",
    "/v1/thumbnail",
    "/v1/archive",
    "/v1/archive/decisions",
    "/review",
    "/health/live",
    "/health/ready",
    "/metrics",
    "/openapi.json",
    "/docs",
    "/",
];

pub(crate) async fn around(State(app): State<App>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let path = PATHS.into_iter().find(|path| *path == request.uri().path()).unwrap_or("other");
    // Of what was asked for, not of the name that it is counted under.
    let guarded = is_guarded(request.uri().path());
    let method = request.method().clone();
    let span = tracing::info_span!("request", method = %shown(&method), path);
    let mut response = async {
        if guarded && !is_known(request.headers(), &app.keys) {
            let detail = "send one of this server's keys in the header `Authorization: Bearer KEY`";
            let (parts, body) = request.into_parts();
            say_farewell(&parts.headers, body).await;
            return Problem::new(NO_KEY, detail).into_response();
        }
        let limit = app.settings.request_timeout();
        match tokio::time::timeout(limit, next.run(request)).await {
            Ok(response) => response,
            Err(_) => {
                let detail = format!("no answer within {} s: send fewer images", limit.as_secs());
                Problem::new(TIMED_OUT, detail).into_response()
            }
        }
    }
    .instrument(span.clone())
    .await;
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if path.starts_with("/v1/") {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    let (status, seconds) = (response.status().as_u16(), began.elapsed().as_secs_f64());
    app.metrics.answered(path, status, seconds);
    let _entered = span.enter();
    let ms = (seconds * 1e4).round() / 10.0;
    match status {
        500.. if status != 503 => tracing::error!(status, ms, "answered"),
        _ if path.starts_with("/health") || path == "/metrics" => {
            tracing::debug!(status, ms, "answered")
        }
        _ => tracing::info!(status, ms, "answered"),
    }
    response
}

/// The page, its documentation and the health of the process need no key.
fn is_guarded(path: &str) -> bool {
    (path.starts_with("/v1/") && path != "/v1/page") || path == "/metrics"
}

/// Whether the request brings one of the keys, or none is wanted. Digests are compared, so that the time it
/// takes tells nothing about a key.
fn is_known(headers: &HeaderMap, keys: &[[u8; 32]]) -> bool {
    if keys.is_empty() {
        return true;
    }
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some((scheme, key)) = value.and_then(|value| value.split_once(' ')) else { return false };
    let digest = digest_of(key.trim());
    scheme.eq_ignore_ascii_case("bearer") && keys.contains(&digest)
}

/// What is kept of a key.
pub(crate) fn digest_of(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

/// Anybody can invent methods, and long ones.
fn shown(method: &Method) -> &str {
    let known =
        [Method::GET, Method::POST, Method::HEAD, Method::OPTIONS, Method::PUT, Method::DELETE];
    if known.contains(method) { method.as_str() } else { "other" }
}

/// The path is known, the method isn't.
pub(crate) async fn wrong_method(request: Request) -> Problem {
    let detail = format!(
        "{} does not support {}: use a method of the header `Allow`, see /docs",
        request.uri().path(),
        shown(request.method())
    );
    let (parts, body) = request.into_parts();
    say_farewell(&parts.headers, body).await;
    Problem::new(WRONG_METHOD, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_keys_open() {
        let keys = [digest_of("swordfish")];
        let with = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(value));
            headers
        };
        assert!(is_known(&with("Bearer swordfish"), &keys));
        assert!(is_known(&with("bearer  swordfish"), &keys));
        for wrong in ["Bearer Swordfish", "Basic swordfish", "swordfish", "Bearer ", "Bearer"] {
            assert!(!is_known(&with(wrong), &keys), "{wrong}");
        }
        assert!(!is_known(&HeaderMap::new(), &keys) && is_known(&HeaderMap::new(), &[]));
    }
}
