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
use crate::clients::Peer;
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

pub(crate) async fn around(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let path = PATHS.into_iter().find(|path| *path == request.uri().path()).unwrap_or("other");
    // Of what was asked for, not of the name that it is counted under.
    let guarded = is_guarded(request.uri().path());
    let method = request.method().clone();
    let span = tracing::info_span!("request", method = %shown(&method), path);
    let mut response = async {
        let key = key_of(request.headers(), &app.keys);
        let checked = app.hosts.check(&request).and_then(|()| {
            let detail = "send one of this server's keys in the header `Authorization: Bearer KEY`";
            let open = !guarded || app.keys.is_empty() || key.is_some();
            if open { Ok(()) } else { Err(Problem::new(NO_KEY, detail)) }
        });
        if let Err(problem) = checked {
            let (parts, body) = request.into_parts();
            say_farewell(&parts.headers, body).await;
            return problem.into_response();
        }
        if let Some(peer) = request.extensions().get::<Peer>().copied() {
            let client = app.clients.of(peer, request.headers(), key);
            request.extensions_mut().insert(client);
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

/// Which of the keys the request brings. Digests are compared, so that the time it takes tells nothing about a key.
fn key_of(headers: &HeaderMap, keys: &[[u8; 32]]) -> Option<[u8; 32]> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    let digest = digest_of(key.trim());
    (scheme.eq_ignore_ascii_case("bearer") && keys.contains(&digest)).then_some(digest)
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
        assert_eq!(key_of(&with("Bearer swordfish"), &keys), Some(keys[0]));
        assert_eq!(key_of(&with("bearer  swordfish"), &keys), Some(keys[0]));
        for wrong in ["Bearer Swordfish", "Basic swordfish", "swordfish", "Bearer ", "Bearer"] {
            assert_eq!(key_of(&with(wrong), &keys), None, "{wrong}");
        }
        assert_eq!(key_of(&HeaderMap::new(), &keys), None);
        assert_eq!(key_of(&with("Bearer swordfish"), &[]), None);
    }
}
