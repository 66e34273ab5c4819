//! Bodies of requests, received with limits: so many bytes, so much time, and so much memory for all of
//! them together. Memory is counted as it arrives, so a thousand clients that send nothing cost nothing.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::BodyExt;
use locdiff_sphere::shown;
use tokio::time::{Instant, timeout, timeout_at};

use crate::engine::SentImage;
use crate::memory::{Held, Memory, PIECE};
use crate::multipart;
use crate::problem::{BAD_BODY, Problem, TOO_LARGE, TOO_SLOW};
use crate::settings::Settings;

/// What a form may add to its images.
const ENVELOPE: u64 = 64 << 10;
/// How long a client that is refused may go on sending, so that it reads the refusal.
const FAREWELL: Duration = Duration::from_millis(20);
/// And how much of it.
const FAREWELL_BYTES: usize = 4 << 20;

/// A body, and the memory that it takes until this is dropped.
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    pub(crate) memory: Held,
}

impl Memory {
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
        let mut bytes = Vec::new();
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
            if length > bytes.capacity() {
                let room = room_for(length, announced as usize, most as usize);
                // While it is copied, it is there twice.
                let larger = self.take(room)?;
                bytes.reserve_exact(room - bytes.len());
                memory = larger;
            }
            bytes.extend_from_slice(&data);
        }
        Ok(Received { bytes: bytes.into(), memory })
    }
}

/// How much room is made for a body that has become longer. What was announced is taken at its word only as far as a part of
/// it has come.
fn room_for(length: usize, announced: usize, most: usize) -> usize {
    match announced {
        0 => 2 * length,
        announced => announced.min(4 * length).max(length),
    }
    .min(most)
    .next_multiple_of(PIECE)
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
            // A body that grows is there twice for a moment. One image of the largest kind always has room.
            let share = (settings.client_memory() / 2).saturating_sub(ENVELOPE);
            all.min(share.max(settings.max_image_bytes)).saturating_add(ENVELOPE)
        }
        None => settings.max_image_bytes,
    }
}

/// What separates the parts of a form, if the body is one.
pub(crate) fn boundary(headers: &HeaderMap) -> Option<String> {
    multipart::boundary(headers.get(header::CONTENT_TYPE)?.to_str().ok()?)
}

/// The images in a body: itself, or the parts of a form named `image`.
pub(crate) fn images_in(
    boundary: Option<&str>,
    bytes: Bytes,
    max_images: usize,
) -> Result<Vec<SentImage>, Problem> {
    let Some(boundary) = boundary else {
        if bytes.is_empty() {
            let detail =
                "the body is empty: send the bytes of an image, or a form with parts named `image`";
            return Err(Problem::new(BAD_BODY, detail));
        }
        return Ok(vec![SentImage { name: None, bytes }]);
    };
    let wrong = |detail: String| Problem::new(BAD_BODY, detail);
    let mut images = Vec::new();
    for part in multipart::parts(&bytes, boundary) {
        let part = part.map_err(|reason| wrong(format!("the form is not valid: {reason}")))?;
        if part.name != "image" {
            return Err(wrong(format!(
                "the form has a part `{}`: name images `image`, and put options into the query",
                shown(&part.name)
            )));
        }
        if images.len() == max_images {
            let detail = format!(
                "the form has more than {max_images} images: send them in several requests"
            );
            return Err(Problem::new(TOO_LARGE, detail));
        }
        let name = part.file_name.map(|name| name.chars().take(255).collect());
        images.push(SentImage { name, bytes: part.bytes });
    }
    if images.is_empty() {
        return Err(wrong("the form has no part named `image`".to_owned()));
    }
    Ok(images)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bodies_are_counted_with_the_room_that_they_have() {
        let settings = Settings::default();
        let memory = Memory::new(&settings);
        let receive = async |length: usize, announced: Option<usize>| {
            let mut headers = HeaderMap::new();
            if let Some(announced) = announced {
                headers.insert(header::CONTENT_LENGTH, announced.into());
            }
            let body = Body::from(vec![7; length]);
            memory.receive(&headers, body, 1 << 20, Duration::from_secs(9)).await
        };
        for (length, announced) in [(0, None), (100_000, None), (100_000, Some(100_000))] {
            let received = receive(length, announced).await.expect("room");
            assert_eq!(received.bytes.len(), length);
            let held = received.memory.bytes();
            assert!(held >= length && held <= 2 * length + PIECE, "{held} for {length}");
        }
        assert!(receive((1 << 20) + 1, None).await.is_err());
        assert!(receive(10, Some((1 << 20) + 1)).await.is_err());
    }

    #[test]
    fn one_client_has_room_for_the_longest_form_while_it_grows() {
        let mut headers = HeaderMap::new();
        let form = "multipart/form-data; boundary=xyz";
        headers.insert(header::CONTENT_TYPE, form.parse().expect("a header"));
        for client_share_percent in [50, 100] {
            let settings = Settings { client_share_percent, ..Settings::default() };
            let most = most_bytes(&headers, &settings);
            assert!(most > settings.max_image_bytes && 2 * most <= settings.client_memory());
        }
    }

    #[test]
    fn room_follows_what_has_come() {
        const MOST: usize = 1 << 30;
        assert_eq!(room_for(1, 1 << 30, MOST), PIECE);
        assert_eq!(room_for(PIECE, 1 << 30, MOST), 4 * PIECE);
        assert_eq!(room_for(5 * PIECE, 6 * PIECE, MOST), 6 * PIECE);
        assert_eq!(room_for(5 * PIECE, 0, MOST), 10 * PIECE);
        // A body that may not be longer needs no more room.
        assert_eq!(room_for(5 * PIECE, 0, 7 * PIECE), 7 * PIECE);
        // More came than was announced.
        assert_eq!(room_for(5 * PIECE, PIECE, MOST), 5 * PIECE);
    }
}
