//! Problems in the format of RFC 9457: `application/problem+json`.

use std::borrow::Cow;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use locdiff::photo::PhotoError;
use locdiff_sphere::shown_message;
use serde::Serialize;
use utoipa::ToSchema;

/// A rejected or failed request. `type` is the address of its explanation in `/docs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Problem {
    /// The kind of the problem: an address in this server's documentation.
    #[serde(rename = "type")]
    #[schema(example = "/docs#problem-not-an-image")]
    kind: String,
    /// The standard phrase of the HTTP status.
    #[schema(value_type = String)]
    title: Cow<'static, str>,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What failed, on what, and what to do.
    detail: String,
    #[serde(skip)]
    retry_after_s: Option<u64>,
}

/// The kinds of problems: name, status, title.
pub(crate) type Kind = (&'static str, StatusCode, &'static str);

pub(crate) const BAD_OPTION: Kind = ("bad-option", StatusCode::BAD_REQUEST, "Bad Request");
pub(crate) const BAD_BODY: Kind = ("bad-body", StatusCode::BAD_REQUEST, "Bad Request");
pub(crate) const NO_KEY: Kind = ("no-key", StatusCode::UNAUTHORIZED, "Unauthorized");
pub(crate) const OTHER_ORIGIN: Kind = ("other-origin", StatusCode::FORBIDDEN, "Forbidden");
pub(crate) const NOT_FOUND: Kind = ("not-found", StatusCode::NOT_FOUND, "Not Found");
pub(crate) const WRONG_METHOD: Kind =
    ("wrong-method", StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
pub(crate) const TOO_SLOW: Kind = ("too-slow", StatusCode::REQUEST_TIMEOUT, "Request Timeout");
pub(crate) const TOO_LARGE: Kind =
    ("too-large", StatusCode::PAYLOAD_TOO_LARGE, "Content Too Large");
pub(crate) const NOT_AN_IMAGE: Kind =
    ("not-an-image", StatusCode::UNSUPPORTED_MEDIA_TYPE, "Unsupported Media Type");
pub(crate) const NO_ANSWER: Kind =
    ("no-answer", StatusCode::UNPROCESSABLE_ENTITY, "Unprocessable Content");
pub(crate) const TOO_COSTLY: Kind =
    ("too-costly", StatusCode::UNPROCESSABLE_ENTITY, "Unprocessable Content");
pub(crate) const BUSY: Kind = ("busy", StatusCode::TOO_MANY_REQUESTS, "Too Many Requests");
pub(crate) const NOT_READY: Kind =
    ("not-ready", StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable");
pub(crate) const TIMED_OUT: Kind = ("timed-out", StatusCode::GATEWAY_TIMEOUT, "Gateway Timeout");
pub(crate) const BROKEN: Kind =
    ("broken", StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error");

/// All of them, for the documentation.
pub(crate) const KINDS: [Kind; 15] = [
    BAD_OPTION,
    BAD_BODY,
    NO_KEY,
    OTHER_ORIGIN,
    NOT_FOUND,
    WRONG_METHOD,
    TOO_SLOW,
    TOO_LARGE,
    NOT_AN_IMAGE,
    NO_ANSWER,
    TOO_COSTLY,
    BUSY,
    NOT_READY,
    TIMED_OUT,
    BROKEN,
];

impl Problem {
    pub(crate) fn new((name, status, title): Kind, detail: impl Into<String>) -> Problem {
        Problem {
            kind: format!("/docs#problem-{name}"),
            title: Cow::Borrowed(title),
            status: status.as_u16(),
            // It may quote what was sent.
            detail: shown_message(&detail.into()),
            retry_after_s: None,
        }
    }

    /// Come back after so many seconds.
    pub(crate) fn retry_after(self, seconds: u64) -> Problem {
        Problem { retry_after_s: Some(seconds.max(1)), ..self }
    }

    pub(crate) fn of_photo(error: &PhotoError) -> Problem {
        let kind = match error {
            PhotoError::NotAnImage { .. }
            | PhotoError::Unsupported { .. }
            | PhotoError::Damaged { .. } => NOT_AN_IMAGE,
            PhotoError::TooLarge { .. } => TOO_LARGE,
            _ => NO_ANSWER,
        };
        Problem::new(kind, error.to_string())
    }

    pub(crate) fn broken() -> Problem {
        let detail = "internal error while computing the answer; please report it with the log of the server";
        Problem::new(BROKEN, detail)
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// What was wrong, with what, and what to do.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_short_whatever_they_quote() {
        for text in ["\\", "\"", "\n", "\u{1b}", "\u{fffd}", "🗺", "a"] {
            let problem = Problem::new(TOO_COSTLY, text.repeat(1 << 20));
            let length = serde_json::to_vec(&problem).expect("JSON").len();
            assert!(length < 5000, "{length} bytes of {text:?}");
        }
    }
}
