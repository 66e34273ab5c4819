//! What is answered where.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use locdiff::locate::ModelFacts;
use locdiff::{Answer, Inference};
use serde::Serialize;
use utoipa::ToSchema;

use crate::body::{Received, boundary, images_in, most_bytes, say_farewell};
use crate::clients::Client;
use crate::costs::FIRST_GUESS;
use crate::engine::{Made, SentImage, Wanted, read_options};
use crate::lanes::Lane;
use crate::memory::Held;
use crate::options::{Options, locate_options};
use crate::problem::{BROKEN, NOT_READY, Problem};
use crate::state::{App, Shared};
use crate::wire::{EmbedAnswer, Embedded, LocateAnswer, Outcome};

/// What reading the header of an image takes in memory, beside copies of its metadata.
pub(crate) const EXAMINING: u64 = 8 << 20;

/// A form with images.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct ImageForm {
    /// One or more files.
    #[schema(value_type = Vec<Vec<u8>>, format = Binary, min_items = 1)]
    image: Vec<Vec<u8>>,
}

/// Where images were taken.
///
/// The body is the bytes of one image, or a form with several parts named `image`. If a single image has no
/// answer, the response is the problem. With several images, each result is an answer or a problem.
#[utoipa::path(
    post, path = "/v1/locate", tag = "images", operation_id = "locate",
    params(
        ("model" = Option<String>, Query, description = "Name of the model; by default, the first model that accepts the picture", example = "earth-view"),
        ("top" = Option<u64>, Query, minimum = 1, maximum = 100, description = "Largest number of candidates; default 5"),
        ("within" = Option<Vec<String>>, Query, description = "Restrict the answer to an area: a country, `land`, SOUTH,WEST,NORTH,EAST or LAT,LON,RADIUSkm; if repeated, all must hold", example = json!(["Madagascar"])),
        ("density" = Option<bool>, Query, description = "Whether to return the whole density"),
        ("draws" = Option<u64>, Query, minimum = 0, maximum = 10000, description = "Number of places to draw from the density"),
        ("frames" = Option<u64>, Query, minimum = 0, maximum = 201, description = "Number of steps of the denoising to return: 0, or 2 and more. Only diffusion models have a denoising"),
        ("sampler" = Option<String>, Query, description = "Sampler: `one-pass`, `ddim`, `ddpm`, `flow` or `exact`. This and the following options default to the settings of the model; options that the model does not support are rejected"),
        ("steps" = Option<u64>, Query, minimum = 2, maximum = 10000, description = "Noise levels that `ddim` visits, or steps of a flow"),
        ("samples" = Option<u64>, Query, minimum = 1, maximum = 32, description = "Samples for each view; samples times views is at most 32"),
        ("guidance" = Option<f64>, Query, minimum = 0, maximum = 20, description = "Guidance scale: how strongly the picture conditions the answer; 1 is as trained"),
        ("views" = Option<u64>, Query, minimum = 1, maximum = 32, description = "Views of the picture: 1 is its center, more are random crops"),
        ("seed" = Option<u64>, Query, minimum = 0, description = "Seed of crops, noise and draws: the same seed gives the same answer"),
        ("decode" = Option<String>, Query, description = "Which place is taken from the density: `mode`, `mean`, `kl`, `geoscore` or `distance`"),
        ("kernel_km" = Option<f64>, Query, minimum = 1, maximum = 5000, description = "Width of the kernel that spreads samples"),
        ("registration" = Option<bool>, Query, description = "Whether a view of the Earth from above is registered against a map; `false` is faster and coarser"),
        ("width_km" = Option<f64>, Query, minimum = 1, maximum = 20000, description = "For views of the Earth from above: width of the ground along the shorter side, if it is known"),
    ),
    request_body(description = "An image, or a form of images", content(
        (Vec<u8> = "application/octet-stream"), (Vec<u8> = "image/jpeg"), (Vec<u8> = "image/png"),
        (ImageForm = "multipart/form-data"),
    )),
    responses(
        (status = 200, description = "An answer for each image", body = serde_json::Value),
        (status = "4XX", description = "Request rejected: `detail` gives the reason and what to do", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Starting, stopping, or out of time", body = Problem, content_type = "application/problem+json"),
    ),
    security((), ("key" = [])),
)]
pub(crate) async fn locate(
    State(app): State<App>,
    Extension(client): Extension<Arc<Client>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let options = locate_options(query.as_deref());
    let made = make(&app, &client, &headers, body, |app| {
        let options = options?;
        app.engine()?.chosen(&options)?;
        Ok(Wanted::Place(options))
    });
    let (made, answering) = made.await?;
    let results: Vec<Outcome<Answer>> = made
        .into_iter()
        .map(|made| match made {
            Made::Place(outcome) => Ok(outcome),
            Made::Embedding(_) => Err(Problem::broken()),
        })
        .collect::<Result<_, _>>()?;
    match &results[..] {
        [Outcome::Failed(failed)] => Err(failed.problem.clone()),
        _ => app.answer(&client, &LocateAnswer { prediction: true, results }, answering),
    }
}

/// Embeddings of images.
#[utoipa::path(
    post, path = "/v1/embed", tag = "images", operation_id = "embed",
    params(("model" = Option<String>, Query, description = "Name of the model; by default, the first of /v1/models", example = "earth-view")),
    request_body(description = "An image, or a form of images", content(
        (Vec<u8> = "application/octet-stream"), (Vec<u8> = "image/jpeg"), (Vec<u8> = "image/png"),
        (ImageForm = "multipart/form-data"),
    )),
    responses(
        (status = 200, description = "An embedding for each image", body = serde_json::Value),
        (status = "4XX", description = "Request rejected: `detail` gives the reason and what to do", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Starting, stopping, or out of time", body = Problem, content_type = "application/problem+json"),
    ),
    security((), ("key" = [])),
)]
pub(crate) async fn embed(
    State(app): State<App>,
    Extension(client): Extension<Arc<Client>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let options = Options::parse(query.as_deref(), &["model"]);
    let made = make(&app, &client, &headers, body, |app| {
        let model = options?.one("model")?.map(str::to_owned);
        if let Some(name) = &model {
            app.engine()?.model(name)?;
        }
        Ok(Wanted::Embedding { model })
    });
    let (made, answering) = made.await?;
    let results: Vec<Outcome<Embedded>> = made
        .into_iter()
        .map(|made| match made {
            Made::Embedding(outcome) => Ok(outcome),
            Made::Place(_) => Err(Problem::broken()),
        })
        .collect::<Result<_, _>>()?;
    match &results[..] {
        [Outcome::Failed(failed)] => Err(failed.problem.clone()),
        _ => app.answer(&client, &EmbedAnswer { results }, answering),
    }
}

/// Receives images and has them made into what is wanted. The cheapest refusals come first. Also returns the memory for the
/// answer.
async fn make(
    app: &App,
    client: &Client,
    headers: &HeaderMap,
    body: Body,
    wanted: impl FnOnce(&App) -> Result<Wanted, Problem>,
) -> Result<(Vec<Made>, Held), Problem> {
    let admits = |cost: f64| app.would_admit(&app.images, cost, &client.images);
    let wanted = admits(FIRST_GUESS).and_then(|()| {
        let wanted = wanted(app)?;
        let expected_s = app.expected_s(&wanted)?;
        admits(expected_s).map(|()| (wanted, expected_s))
    });
    let (wanted, expected_s) = match wanted {
        Ok(wanted) => wanted,
        Err(problem) => {
            say_farewell(headers, body).await;
            return Err(problem);
        }
    };
    let receiving = app.images.receiving(expected_s, &client.images);
    let most = most_bytes(headers, &app.settings);
    let own = client.memory(&app.memory);
    let received = own.receive(headers, body, most, app.settings.body_timeout()).await?;
    let Received { bytes, memory } = received;
    drop(receiving);
    // Who waits for its turn holds no memory that others wait for.
    let turn = client.turn().await;
    // All of the body is looked through: not on the threads that listen, and charged.
    let (boundary, max_images) = (boundary(headers), app.settings.max_images);
    let (bucket, lane) = (Arc::clone(&client.images), Lane::of(&client.images));
    let read = app.aside(lane, move || {
        let charging = turn.charging(&bucket);
        let images = images_in(boundary.as_deref(), bytes, max_images);
        drop(charging);
        images.map(|images| (images, turn, bucket))
    });
    let (images, turn, bucket) = read.await??;
    let answering = own.take(images.len() * wanted.answer_bytes())?;
    // Files that are no images, and decompression bombs, are rejected before they wait. Headers can be long.
    let options = read_options(&app.settings);
    let examining = app.memory.work(lane, EXAMINING + 2 * longest(&images)).await;
    let examined = app.aside(examining.lane(), move || {
        let (_memory, _charging) = (examining, turn.charging(&bucket));
        let examine = |image: SentImage| {
            let header = locdiff::Photo::examine(&image.bytes, &options);
            (image, header.map(|header| header.memory_bytes))
        };
        images.into_iter().map(examine).collect::<Vec<_>>()
    });
    let examined = examined.await?;
    if let [(_, Err(error))] = &examined[..] {
        return Err(Problem::of_photo(error));
    }
    let with_memory = |(image, bytes): (SentImage, Result<u64, _>)| {
        // One of several that can't be decoded is told in its place.
        let bytes = bytes.unwrap_or_default();
        app.memory.check_work(bytes).map(|()| (image, bytes))
    };
    let images = examined.into_iter().map(with_memory).collect::<Result<_, Problem>>()?;
    Ok((app.make(images, (wanted, expected_s), memory, client).await?, answering))
}

fn longest(images: &[SentImage]) -> u64 {
    images.iter().map(|image| image.bytes.len() as u64).max().unwrap_or_default()
}

impl Shared {
    /// An answer as JSON, whose memory is counted until it was written.
    fn answer(
        &self,
        client: &Client,
        answer: &impl Serialize,
        memory: Held,
    ) -> Result<Response, Problem> {
        let json = serde_json::to_vec(answer).map_err(|_| Problem::broken())?;
        let kind = [(header::CONTENT_TYPE, "application/json")];
        Ok((kind, client.memory(&self.memory).answer(json, memory)?).into_response())
    }
}

impl Wanted {
    /// The memory that an answer may take, with what it is made from; more is taken when it is needed.
    fn answer_bytes(&self) -> usize {
        let Wanted::Place(options) = self else { return 128 << 10 };
        let density = if options.answer.density { 512 << 10 } else { 0 };
        (64 << 10) + density + 100 * options.answer.draws + (50 << 10) * options.frames
    }
}

/// A model of this server.
#[derive(Serialize, ToSchema)]
pub(crate) struct ModelOffer {
    #[serde(flatten)]
    #[schema(value_type = serde_json::Value)]
    facts: ModelFacts,
    /// Inference settings if a request gives none.
    #[schema(value_type = serde_json::Value)]
    inference: Inference,
    /// Whether this is the default model.
    default: bool,
    /// Whether the model supports `frames` of /v1/locate: steps of its denoising.
    frames: bool,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct ModelsAnswer {
    models: Vec<ModelOffer>,
}

/// The models of this server.
#[utoipa::path(
    get, path = "/v1/models", tag = "about", operation_id = "models",
    responses(
        (status = 200, description = "The models, the default model first", body = ModelsAnswer),
        (status = 401, description = "An API key is required", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not ready yet", body = Problem, content_type = "application/problem+json"),
    ),
    security((), ("key" = [])),
)]
pub(crate) async fn models(State(app): State<App>) -> Result<Json<ModelsAnswer>, Problem> {
    let models = app.engine()?.models().iter().enumerate();
    let offer = |(index, model): (usize, &locdiff::Geolocator)| ModelOffer {
        facts: ModelFacts::new(model.identity(), None),
        inference: *model.inference(),
        default: index == 0,
        frames: model.can_denoise(),
    };
    Ok(Json(ModelsAnswer { models: models.map(offer).collect() }))
}

/// Settings of the page.
#[derive(Serialize, ToSchema)]
pub(crate) struct PageSettings {
    /// The program's version.
    version: String,
    /// URL of tiles for street level.
    tiles: Option<String>,
    /// Attribution of the tiles.
    tiles_attribution: Option<String>,
    /// Whether /v1/thumbnail returns pictures of references.
    references: bool,
    /// Whether requests need an API key.
    key_required: bool,
    /// Larger images are rejected, in bytes.
    max_image_bytes: u64,
}

/// Settings of the page.
#[utoipa::path(
    get, path = "/v1/page", tag = "about", operation_id = "page",
    responses((status = 200, description = "Settings of the page", body = PageSettings)),
)]
pub(crate) async fn page(State(app): State<App>) -> Json<PageSettings> {
    let settings = &app.settings;
    Json(PageSettings {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tiles: settings.tiles.clone(),
        tiles_attribution: settings.tiles_attribution.clone(),
        references: settings.references.is_some(),
        key_required: !app.keys.is_empty(),
        max_image_bytes: settings.max_image_bytes,
    })
}

/// Whether the process is alive.
#[utoipa::path(
    get, path = "/health/live", tag = "about", operation_id = "live",
    responses((status = 200, description = "The process is alive", body = String, content_type = "text/plain")),
)]
pub(crate) async fn live() -> &'static str {
    "alive\n"
}

/// Whether the server is ready: the models are loaded, and the server is not stopping.
#[utoipa::path(
    get, path = "/health/ready", tag = "about", operation_id = "ready",
    responses(
        (status = 200, description = "The server is ready", body = String, content_type = "text/plain"),
        (status = 503, description = "The server is starting or stopping", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn ready(State(app): State<App>) -> Result<&'static str, Problem> {
    if app.stopping.load(Ordering::Relaxed) {
        return Err(Problem::new(NOT_READY, "the server is stopping").retry_after(5));
    }
    app.engine()?;
    Ok("ready\n")
}

/// Counters for Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "about", operation_id = "metrics",
    responses(
        (status = 200, description = "In Prometheus' text format", body = String, content_type = "text/plain"),
        (status = 401, description = "An API key is required", body = Problem, content_type = "application/problem+json"),
    ),
    security((), ("key" = [])),
)]
pub(crate) async fn metrics(State(app): State<App>) -> Response {
    app.metrics.waiting.set(app.images.waiting() as f64);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], app.metrics.text()).into_response()
}

/// A panic in a handler.
pub(crate) fn panicked(_: Box<dyn std::any::Any + Send + 'static>) -> Response {
    tracing::error!("a handler panicked");
    debug_assert_eq!(BROKEN.1, StatusCode::INTERNAL_SERVER_ERROR);
    Problem::broken().into_response()
}
