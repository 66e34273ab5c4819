//! Bodies of requests, received with limits: so many bytes, so much time, and so much memory for all of
//! them together. Memory is counted as it arrives, so a thousand clients that send nothing cost nothing.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use crate::engine::SentImage;
use crate::problem::{BAD_BODY, BUSY, Problem, TOO_LARGE, TOO_SLOW};
use crate::settings::Settings;

/// Memory is handed out in pieces of this many bytes.
const PIECE: usize = 4096;
/// What multipart may add to its images.
const ENVELOPE: u64 = 64 << 10;
/// How long a client that is refused may go on sending, so that it reads the refusal.
const FAREWELL: Duration = Duration::from_millis(20);
/// And how much of it.
const FAREWELL_BYTES: usize = 4 << 20;

/// What may be received in all, by everybody.
#[derive(Clone)]
pub(crate) struct Memory(Arc<Semaphore>);

/// A body, and the memory that it takes until this is dropped.
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    pub(crate) memory: OwnedSemaphorePermit,
}

impl Memory {
    pub(crate) fn new(bytes: u64) -> Memory {
        let pieces = (bytes / PIECE as u64).min(Semaphore::MAX_PERMITS as u64) as usize;
        Memory(Arc::new(Semaphore::new(pieces.max(1))))
    }

    /// Memory for so many bytes, if there is enough left.
    pub(crate) fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Problem> {
        let pieces = bytes.div_ceil(PIECE) as u32;
        Arc::clone(&self.0).try_acquire_many_owned(pieces).map_err(|_| {
            let detail = "the memory for images is used by other requests: retry in 1 s";
            Problem::new(BUSY, detail).retry_after(1)
        })
    }

    /// The whole body, if it isn't too much and comes in time.
    pub(crate) async fn receive(
        &self,
        headers: &HeaderMap,
        mut body: Body,
        most: u64,
        time: Duration,
    ) -> Result<Received, Problem> {
        let received = self.receive_from(headers, &mut body, most, time).await;
        if received.is_err() {
            say_farewell(headers, body).await;
        }
        received
    }

    async fn receive_from(
        &self,
        headers: &HeaderMap,
        body: &mut Body,
        most: u64,
        time: Duration,
    ) -> Result<Received, Problem> {
        let too_large = |bytes: u64| {
            let detail = format!("the body has {bytes} bytes or more, the limit is {most}");
            Problem::new(TOO_LARGE, detail)
        };
        let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let announced: u64 = announced.and_then(|length| length.parse().ok()).unwrap_or(0);
        if announced > most {
            return Err(too_large(announced));
        }
        let deadline = Instant::now() + time;
        let mut memory = self.take(0)?;
        let mut granted = 0;
        let mut bytes = BytesMut::new();
        loop {
            let frame = timeout_at(deadline, body.frame()).await.map_err(|_| {
                let (received, seconds) = (bytes.len(), time.as_secs());
                let detail =
                    format!("the body is not complete after {seconds} s ({received} bytes): send a smaller body");
                Problem::new(TOO_SLOW, detail)
            })?;
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|error| {
                Problem::new(BAD_BODY, format!("the body is not complete: {error}"))
            })?;
            let Ok(data) = frame.into_data() else { continue };
            let length = bytes.len() + data.len();
            if length as u64 > most {
                return Err(too_large(length as u64));
            }
            if length > granted {
                memory.merge(self.take(length - granted)?);
                granted = length.div_ceil(PIECE) * PIECE;
            }
            // What was announced is taken at its word only as far as it has come.
            bytes.extend_from_slice(&data);
        }
        Ok(Received { bytes: bytes.freeze(), memory })
    }
}

/// Reads on for a moment: a client that is still sending when its connection closes may never see
/// the answer. Who asked first whether to send (`Expect`) has sent nothing, and would be told to by reading.
pub(crate) async fn say_farewell(headers: &HeaderMap, mut body: Body) {
    if headers.contains_key(header::EXPECT) {
        return;
    }
    let mut left = FAREWELL_BYTES;
    let _ = timeout(FAREWELL, async {
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            if length > left {
                return;
            }
            left -= length;
        }
    })
    .await;
}

/// The most bytes of a request with images.
pub(crate) fn most_bytes(headers: &HeaderMap, settings: &Settings) -> u64 {
    match boundary(headers) {
        Some(_) => {
            let all = settings.max_image_bytes.saturating_mul(settings.max_images as u64);
            // Nobody gets more than half of what is there for all, but for one image of the largest kind.
            let share = (settings.max_memory_bytes / 2).max(settings.max_image_bytes);
            all.min(share).saturating_add(ENVELOPE)
        }
        None => settings.max_image_bytes,
    }
}

fn boundary(headers: &HeaderMap) -> Option<String> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    multer::parse_boundary(kind).ok()
}

/// The images in a body: itself, or the parts of a form named `image`.
pub(crate) async fn images_in(
    headers: &HeaderMap,
    bytes: Bytes,
    settings: &Settings,
) -> Result<Vec<SentImage>, Problem> {
    let Some(boundary) = boundary(headers) else {
        if bytes.is_empty() {
            let detail =
                "the body is empty: send the bytes of an image, or a form with parts named `image`";
            return Err(Problem::new(BAD_BODY, detail));
        }
        return Ok(vec![SentImage { name: None, bytes }]);
    };
    let wrong = |detail: String| Problem::new(BAD_BODY, detail);
    let whole = Body::from(bytes).into_data_stream();
    let mut form = multer::Multipart::new(whole, boundary);
    let mut images = Vec::new();
    loop {
        let field = form
            .next_field()
            .await
            .map_err(|error| wrong(format!("the form is not valid: {error}")))?;
        let Some(field) = field else { break };
        if field.name() != Some("image") {
            let name: String = field.name().unwrap_or("").chars().take(40).collect();
            return Err(wrong(format!(
                "the form has a part `{name}`: name images `image`, and put options into the query"
            )));
        }
        if images.len() == settings.max_images {
            let most = settings.max_images;
            let detail =
                format!("the form has more than {most} images: send them in several requests");
            return Err(Problem::new(TOO_LARGE, detail));
        }
        let name = field.file_name().map(|name| name.chars().take(255).collect());
        let bytes = field
            .bytes()
            .await
            .map_err(|error| wrong(format!("the form is not valid: {error}")))?;
        images.push(SentImage { name, bytes });
    }
    if images.is_empty() {
        return Err(wrong("the form has no part named `image`".to_owned()));
    }
    Ok(images)
}
