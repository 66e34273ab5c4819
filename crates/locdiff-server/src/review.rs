//! The review of a photo archive: pictures with their predicted places, and the user's decisions. For the person at this
//! machine only: whoever opens another site in the same browser must not be able to read or decide anything.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use axum::extract::{Path as Parameter, RawQuery, State};
use axum::http::{HeaderMap, Method, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use locdiff::Photo;
use locdiff::geography::place_name;
use locdiff::photo::ReadOptions;
use locdiff_archive::library::{
    Candidate, ContentHash, Decision, Entry, Library, LibraryError, UsedModel,
};
use locdiff_sphere::LatLon;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tower_http::catch_panic::CatchPanicLayer;

use crate::lanes::Lane;
use crate::problem::{BAD_BODY, NOT_FOUND, Problem};
use crate::state::App;
use crate::{access, options, page, routes, thumbnail};

/// Decisions about a hundred thousand pictures.
const MOST_BYTES: u64 = 16 << 20;
/// Decisions take so many bytes of memory per byte of JSON, at most, with lists that grow while they are read.
const READING: u64 = 12;
/// Default size of a thumbnail: pixels along the longer side.
const SIDE: u64 = 256;

/// A library under review.
pub(crate) struct Review {
    app: App,
    library: Mutex<Library>,
    name: String,
}

type Shared = State<Arc<Review>>;

impl Review {
    pub(crate) fn open(app: App, path: &Path) -> Result<Review, LibraryError> {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(Review { app, library: Mutex::new(Library::open(path)?), name })
    }

    /// Every write is a transaction of its own, so a panic elsewhere leaves nothing half done.
    fn library(&self) -> MutexGuard<'_, Library> {
        self.library.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn router(review: Arc<Review>) -> Router {
    let app = Arc::clone(&review.app);
    Router::new()
        .route("/v1/archive", get(archive))
        .route("/v1/archive/decisions", post(decide))
        .route("/v1/archive/thumbnail/{id}", get(picture))
        .route("/review", get(index))
        .fallback(file)
        .method_not_allowed_fallback(access::wrong_method)
        .layer(CatchPanicLayer::custom(routes::panicked))
        .layer(axum::middleware::from_fn_with_state(app, access::around))
        .with_state(review)
}

async fn index(State(review): Shared, method: Method) -> Response {
    page::file_or_index(&review.app, &method, &Uri::from_static("/"), "review.html")
}

async fn file(State(review): Shared, method: Method, uri: Uri) -> Response {
    page::file_or_index(&review.app, &method, &uri, "review.html")
}

#[derive(Serialize)]
struct Archive {
    library: String,
    model: Option<Model>,
    pictures: Vec<Picture>,
}

#[derive(Serialize)]
struct Model {
    name: String,
    version: String,
    calibrated: bool,
}

#[derive(Serialize)]
struct Picture {
    id: String,
    name: String,
    path: String,
    time: Option<String>,
    kind: &'static str,
    gps: Option<[f64; 2]>,
    place: Option<[f64; 2]>,
    /// Of the pin, the prediction or the GPS place, the first that is there.
    place_name: Option<String>,
    confidence: Option<f64>,
    radius_68_km: Option<f64>,
    radius_90_km: Option<f64>,
    candidates: Vec<Candidate>,
    fused: bool,
    influences: Vec<String>,
    error: Option<String>,
    decision: Option<Verdict>,
    pin: Option<[f64; 2]>,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Accepted,
    Rejected,
    Moved,
}

impl Picture {
    fn of(entry: Entry) -> Picture {
        let pair = |place: LatLon| [place.latitude(), place.longitude()];
        let (decision, pin) = match entry.decision {
            Some(Decision::Accepted) => (Some(Verdict::Accepted), None),
            Some(Decision::Rejected) => (Some(Verdict::Rejected), None),
            Some(Decision::Moved(pin)) => (Some(Verdict::Moved), Some(pin)),
            _ => (None, None),
        };
        let predicted = entry.prediction;
        let place = predicted.as_ref().and_then(|prediction| prediction.place);
        let answer = predicted.as_ref().filter(|_| place.is_some());
        Picture {
            id: entry.hash.to_string(),
            name: entry.path.rsplit(['/', '\\']).next().unwrap_or(&entry.path).to_owned(),
            time: entry.time.map(|time| time.to_string()),
            kind: entry.kind.name(),
            gps: entry.gps.map(pair),
            place: place.map(pair),
            place_name: pin.or(place).or(entry.gps).map(|place| place_name(place).to_string()),
            confidence: answer.map(|answer| answer.confidence),
            radius_68_km: answer.map(|answer| answer.radius_68_km),
            radius_90_km: answer.map(|answer| answer.radius_90_km),
            fused: answer.is_some_and(|answer| answer.fused),
            error: entry.error.or_else(|| predicted.as_ref()?.error.clone()),
            influences: answer.map(|answer| answer.influences.clone()).unwrap_or_default(),
            candidates: predicted.map(|prediction| prediction.candidates).unwrap_or_default(),
            path: entry.path,
            decision,
            pin: pin.map(pair),
        }
    }
}

/// All pictures of the library.
async fn archive(State(review): Shared) -> Result<Response, Problem> {
    let work = move || {
        let (model, entries) = {
            let library = review.library();
            let model = library.model()?;
            let (name, version) =
                model.as_ref().map_or(("", ""), |m| (m.name.as_str(), m.version.as_str()));
            let entries = library.entries(name, version)?;
            (model, entries)
        };
        // Names of places are looked up in outlines of countries.
        let pictures = entries.into_par_iter().map(Picture::of).collect();
        let model = model.map(|UsedModel { name, version, calibrated }| Model {
            name,
            version,
            calibrated,
        });
        Ok(Json(Archive { library: review.name.clone(), model, pictures }).into_response())
    };
    blocking(work).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Decisions {
    decisions: Vec<Decided>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Decided {
    id: String,
    // Required, though it may be null: a misspelt name must not take a decision back.
    #[serde(deserialize_with = "Option::deserialize")]
    decision: Option<Verdict>,
    latitude: Option<f64>,
    longitude: Option<f64>,
}

impl Decided {
    fn parsed(&self) -> Result<(ContentHash, Option<Decision>, Option<LatLon>), Problem> {
        let wrong = |detail: &dyn std::fmt::Display| {
            Problem::new(BAD_BODY, format!("{}: {detail}", self.id))
        };
        let place = match (self.latitude, self.longitude) {
            (Some(latitude), Some(longitude)) => {
                Some(LatLon::new(latitude, longitude).map_err(|error| wrong(&error))?)
            }
            _ => None,
        };
        let decision = match (self.decision, place) {
            (None, _) => None,
            (Some(Verdict::Accepted), _) => Some(Decision::Accepted),
            (Some(Verdict::Rejected), _) => Some(Decision::Rejected),
            (Some(Verdict::Moved), Some(place)) => Some(Decision::Moved(place)),
            (Some(Verdict::Moved), None) => {
                return Err(wrong(&"moved needs latitude and longitude"));
            }
        };
        Ok((id_of(&self.id)?, decision, place))
    }
}

fn id_of(id: &str) -> Result<ContentHash, Problem> {
    let shown: String = id.chars().take(80).collect();
    let detail = || format!("`{shown}` is not a picture of this library: see /v1/archive");
    ContentHash::from_hex(id).ok_or_else(|| Problem::new(NOT_FOUND, detail()))
}

/// Stores decisions, except acceptances of places that the library has no longer: those are returned.
async fn decide(
    State(review): Shared,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let app = &review.app;
    let time = app.settings.body_timeout();
    let received = app.memory.receive(&headers, body, MOST_BYTES, time).await?;
    let _reading = app.memory.work(Lane::First, READING * received.bytes.len() as u64).await;
    let decisions: Decisions = serde_json::from_slice(&received.bytes).map_err(|error| {
        Problem::new(BAD_BODY, format!("the body is not a list of decisions: {error}"))
    })?;
    let decisions: Vec<_> =
        decisions.decisions.iter().map(Decided::parsed).collect::<Result<_, _>>()?;
    let work = move || {
        let changed = review.library().decide_all(&decisions)?;
        let stored = decisions.len() - changed.len();
        let changed: Vec<_> = changed.iter().map(ContentHash::to_string).collect();
        Ok(Json(serde_json::json!({ "stored": stored, "changed": changed })).into_response())
    };
    blocking(work).await
}

/// A small version of a picture, upright.
async fn picture(
    State(review): Shared,
    Parameter(id): Parameter<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let hash = id_of(&id)?;
    let options = options::Options::parse(query.as_deref(), &["size"])?;
    let side = options.number("size", 16..=1024)?.unwrap_or(SIDE) as u32;
    let turn = thumbnail::AT_A_TIME.acquire().await.map_err(|_| Problem::broken())?;
    let work = move || {
        let _turn = turn;
        let paths = review.library().paths(hash)?;
        Ok(paths.iter().find_map(|path| small(Path::new(path), hash, side)))
    };
    let Some(jpeg) = blocking(work).await? else {
        let detail =
            "the file of this picture is missing or cannot be shown: scan the folder again";
        return Err(Problem::new(NOT_FOUND, detail));
    };
    // The id is that of the content: it never shows anything else.
    let lifetime = "private, max-age=31536000, immutable";
    let headers = [(header::CONTENT_TYPE, "image/jpeg"), (header::CACHE_CONTROL, lifetime)];
    Ok((headers, jpeg).into_response())
}

/// None also if the file has another content by now.
fn small(path: &Path, hash: ContentHash, side: u32) -> Option<Vec<u8>> {
    let options = ReadOptions { fast_decode: Some(side), ..ReadOptions::default() };
    std::fs::metadata(path)
        .ok()
        .filter(|file| file.is_file() && file.len() <= options.max_bytes)?;
    let bytes = std::fs::read(path).ok().filter(|bytes| ContentHash::of(bytes) == hash)?;
    let photo = Photo::decode(&bytes, &options).ok()?.shrunk_to(side);
    thumbnail::jpeg(photo.rgb(), photo.width() as u16, photo.height() as u16)
}

/// Files and SQLite wait for the disk.
async fn blocking<Product: Send + 'static>(
    work: impl FnOnce() -> Result<Product, LibraryError> + Send + 'static,
) -> Result<Product, Problem> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|_| Problem::broken())?;
    done.map_err(|error| match error {
        LibraryError::Unknown(_) => Problem::new(NOT_FOUND, format!("{error}; nothing was stored")),
        error => {
            tracing::error!(%error, "cannot use the library");
            Problem::broken()
        }
    })
}
