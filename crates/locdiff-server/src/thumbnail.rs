//! `GET /v1/thumbnail`: a reference of a gallery as a small picture, if the server may read its file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{Extension, RawQuery, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use locdiff::Photo;
use locdiff::photo::ReadOptions;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::clients::Client;
use crate::engine::read_options;
use crate::lanes::Lane;
use crate::options::Options;
use crate::problem::{BAD_OPTION, NOT_FOUND, Problem};
use crate::routes::EXAMINING;
use crate::state::App;

/// Pixels along each side: twice what the page shows, for dense screens.
const SIDE: u16 = 192;
const QUALITY: u8 = 80;
/// Decoding takes a core: few at a time.
pub(crate) static AT_A_TIME: Semaphore = Semaphore::const_new(2);

/// A reference of a gallery as a small picture.
///
/// Only pictures in the folder of `locdiff serve --references` are shown.
#[utoipa::path(
    get, path = "/v1/thumbnail", tag = "images", operation_id = "thumbnail",
    params(("id" = String, Query, description = "Id of a reference, as in an answer")),
    responses(
        (status = 200, description = "The central square of the picture", body = Vec<u8>, content_type = "image/jpeg"),
        (status = "4XX", description = "There is no such picture, or it may not be read", body = Problem, content_type = "application/problem+json"),
    ),
    security((), ("key" = [])),
)]
pub(crate) async fn thumbnail(
    State(app): State<App>,
    Extension(client): Extension<Arc<Client>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let options = Options::parse(query.as_deref(), &["id"])?;
    let id = options
        .one("id")?
        .ok_or_else(|| Problem::new(BAD_OPTION, "`id` is missing: give the id of a reference"))?;
    let id = id.to_owned();
    let Some(folder) = app.settings.references.clone() else {
        let detail =
            "this server shows no references: start it with `locdiff serve --references FOLDER`";
        return Err(Problem::new(NOT_FOUND, detail));
    };
    // First its own, so that many requests of one client don't stand before those of others.
    let turn = client.turn().await;
    let place = AT_A_TIME.acquire().await.map_err(|_| Problem::broken())?;
    let options = ReadOptions { fast_decode: Some(u32::from(SIDE)), ..read_options(&app.settings) };
    let runtime = Handle::current();
    // Work goes on if the client leaves: its turn ends when the work does.
    let made = tokio::task::spawn_blocking(move || {
        let _place = place;
        let (path, length) = found(&folder, &id, &options)?;
        // Both come second if they take much: on this thread, whose priority is that of the first lane, so that nobody waits for long.
        let lane = Lane::of(&client.images);
        let examining = runtime.block_on(app.memory.work(lane, EXAMINING + 3 * length));
        let charging = turn.charging(&client.images);
        let header = Photo::examine(&fs::read(&path).ok()?, &options).ok()?;
        // Given back first: work holds nothing that other work waits for.
        drop((charging, examining));
        let bytes = length + header.memory_bytes;
        app.memory.check_work(bytes).ok()?;
        let _memory = runtime.block_on(app.memory.work(lane, bytes));
        let _charging = turn.charging(&client.images);
        small(&path, &options)
    });
    match made.await.map_err(|_| Problem::broken())? {
        Some(jpeg) => Ok(([(header::CONTENT_TYPE, "image/jpeg")], jpeg).into_response()),
        // The same for all reasons: whoever asks learns nothing of other files.
        None => {
            Err(Problem::new(NOT_FOUND, "no picture of this name is in the folder of references"))
        }
    }
}

/// Where a picture of a folder is, and how long the file.
fn found(folder: &Path, id: &str, options: &ReadOptions) -> Option<(PathBuf, u64)> {
    let folder = folder.canonicalize().ok()?;
    // Links and `..` are followed first: what counts is where the file is.
    let path = folder.join(id).canonicalize().ok()?;
    let file = fs::metadata(&path).ok()?;
    // A pipe would be waited for.
    if !path.starts_with(&folder) || !file.is_file() || file.len() > options.max_bytes {
        return None;
    }
    Some((path, file.len()))
}

/// The middle of a picture, as JPEG.
fn small(path: &Path, options: &ReadOptions) -> Option<Vec<u8>> {
    let square = Photo::open_with(path, options).ok()?.square(u32::from(SIDE));
    jpeg(&square, SIDE, SIDE)
}

/// Red, green and blue bytes, row by row, as JPEG.
pub fn jpeg(rgb: &[u8], width: u16, height: u16) -> Option<Vec<u8>> {
    let mut jpeg = Vec::new();
    let encoder = jpeg_encoder::Encoder::new(&mut jpeg, QUALITY);
    encoder.encode(rgb, width, height, jpeg_encoder::ColorType::Rgb).ok()?;
    Some(jpeg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_of_the_folder_are_shown_and_nothing_else() {
        let scratch = tempfile::tempdir().expect("a directory");
        let folder = scratch.path().join("trips");
        fs::create_dir(&folder).expect("a folder");
        let picture = image::RgbImage::from_pixel(60, 40, image::Rgb([200, 30, 40]));
        picture.save(folder.join("a b.png")).expect("a picture");
        picture.save(scratch.path().join("private.png")).expect("a picture");
        fs::write(folder.join("notes.txt"), "nothing to see").expect("a text");
        let options = ReadOptions { fast_decode: Some(u32::from(SIDE)), ..ReadOptions::default() };
        let small = |id: &str| small(&found(&folder, id, &options)?.0, &options);
        let absolute = folder.join("a b.png").display().to_string();
        for id in ["a b.png", "./a b.png", &absolute] {
            let shown = image::load_from_memory(&small(id).expect("a thumbnail")).expect("JPEG");
            assert_eq!((shown.width(), shown.height()), (192, 192));
            let [red, green, blue] = shown.to_rgb8().get_pixel(96, 96).0;
            assert!(red > 180 && green < 60 && blue < 70, "{red} {green} {blue}");
        }
        let outside = scratch.path().join("private.png").display().to_string();
        for id in
            ["../private.png", "notes.txt", "none.png", "", "https://example.org/a.png", &outside]
        {
            assert!(small(id).is_none(), "{id}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&outside, folder.join("link.png")).expect("a link");
            assert!(small("link.png").is_none());
        }
    }
}
