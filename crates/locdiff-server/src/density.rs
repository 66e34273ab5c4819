//! `POST /v1/density`: a density that came with an answer, as numbers, a picture or regions.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, RawQuery, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use locdiff::locate::{CandidateFacts, Decode, features};
use locdiff::{Constraint, Summary};
use locdiff_map::{LineStyle, Map, Marker, Outline, Projection, Theme};
use locdiff_sphere::{
    Area, Budget, Cost, DensityRecord, LatLon, MultiPolygon, OverBudget, RecordLimits, Stop, Survey,
};
use serde_json::{Value, json};

use crate::body::{Received, say_farewell};
use crate::clients::Client;
use crate::grid::GridAnswer;
use crate::lanes::Lane;
use crate::options::Options;
use crate::problem::{BAD_BODY, BAD_OPTION, NO_ANSWER, Problem, TOO_COSTLY};
use crate::state::App;
use crate::workers::{Expected, MARGIN};

/// A density's JSON is at most this long.
const MOST_BYTES: u64 = 6 << 20;
/// A record takes so many bytes of memory per byte of JSON, at most: a number of eight bytes needs two.
const RECORD: usize = 4;
/// And lists that grow, while they are read.
const GROWING: u64 = 8;
/// What a value of a grid or a pixel costs, in cells.
const COST_OF_VALUE: f64 = 0.015;
/// What each degree adds to a value that is summed up along a row.
const COST_OF_WAVE: f64 = 5e-5;
/// What each coefficient adds to a value that is summed up by itself.
const COST_OF_TERM: f64 = 2.5e-5;
/// What each level beyond the usual two adds to a survey, as a part of it.
const COST_OF_LEVEL: f64 = 0.2;
/// What work takes in memory beside the survey: transforms of the highest degree, a grid or a picture of the largest width.
const DRAWING_BYTES: u64 = 48 << 20;
/// A machine that was busy when its speed was measured is not slower than this.
const SLOWEST_CELL_S: f64 = 1.5e-4;
const DEFAULT_WIDTH: u64 = 1024;
const KNOWN: [&str; 5] = ["format", "within", "width", "projection", "levels"];

#[derive(Clone, Copy)]
enum Form {
    Grid,
    Png,
    GeoJson,
}

struct Wish {
    form: Form,
    within: Vec<Constraint>,
    width: usize,
    globe: Option<bool>,
    levels: Vec<f64>,
}

/// A density as numbers on a grid, as a picture, or as regions and candidates in GeoJSON.
#[utoipa::path(
    post, path = "/v1/density", tag = "densities", operation_id = "density",
    params(
        ("format" = Option<String>, Query, description = "`grid` (default), `png` or `geojson`"),
        ("within" = Option<Vec<String>>, Query, description = "Restrict the density to an area, as in /v1/locate"),
        ("width" = Option<u64>, Query, minimum = 64, maximum = 2048, description = "Values or pixels in a row, an even number; default 1024"),
        ("projection" = Option<String>, Query, description = "Projection of the picture: `globe` or `equal-earth`"),
        ("levels" = Option<String>, Query, description = "Levels of the regions; default `0.5,0.9`", example = "0.5,0.9"),
    ),
    request_body(content = serde_json::Value, description = "A density, as in an answer of /v1/locate"),
    responses(
        (status = 200, description = "The density in this format", content(
            (GridAnswer = "application/json"), (Vec<u8> = "image/png"), (serde_json::Value = "application/geo+json"),
        )),
        (status = "4XX", description = "Request rejected: `detail` gives the reason and what to do", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Starting, stopping, or out of time", body = Problem, content_type = "application/problem+json"),
    ),
    security((), ("key" = [])),
)]
pub(crate) async fn density(
    State(app): State<App>,
    Extension(client): Extension<Arc<Client>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let wish = match app
        .would_admit(&app.densities, 0.0, &client.densities)
        .and_then(|()| wish(query.as_deref()))
    {
        Ok(wish) => wish,
        Err(problem) => {
            say_farewell(&headers, body).await;
            return Err(problem);
        }
    };
    let own = client.memory(&app.memory);
    let received = own.receive(&headers, body, MOST_BYTES, app.settings.body_timeout()).await?;
    let Received { bytes, memory } = received;
    let of_record = own.take(RECORD * bytes.len())?;
    let answering = own.take(wish.answer_bytes())?;
    // Who waits for its turn holds no memory that others wait for.
    let turn = client.turn().await;
    let lane = Lane::of(&client.densities);
    let growing = app.memory.work(lane, GROWING * bytes.len() as u64).await;
    // Charged, whatever comes of it.
    let bucket = Arc::clone(&client.densities);
    let read = app.aside(growing.lane(), move || {
        let _charging = turn.charging(&bucket);
        let record = record(&bytes)?;
        drop((bytes, memory, growing));
        let expected = expected(&record, &wish);
        Ok::<_, Problem>((record, wish, expected))
    });
    let (record, wish, expected) = read.await??;
    let (seconds, limit) = (expected.seconds, app.settings.density_budget());
    if seconds > limit.as_secs_f64() {
        return Err(too_costly(format!("about {seconds:.1}"), limit));
    }
    // Predictions can be wrong.
    let most = MARGIN * limit.as_secs_f64();
    let budget = Budget::of(Cost::of_cells(most / seconds_per_cell()));
    let made = app.work(expected, budget, &client, move |stop| {
        let _memory = of_record;
        make(&record, &wish, stop)
    });
    let (kind, answer) = made.await?.unwrap_or_else(|over| match over {
        OverBudget::Cost(_) => Err(too_costly(format!("more than {most:.1}"), limit)),
        OverBudget::Stopped => Err(Problem::broken()),
    })?;
    let answer = own.answer(answer, answering)?;
    Ok(([(header::CONTENT_TYPE, kind)], answer).into_response())
}

impl Wish {
    /// The memory that the answer may take; more is taken when it is needed.
    fn answer_bytes(&self) -> usize {
        match self.form {
            Form::Grid => GridAnswer::json_bytes(self.width),
            Form::Png | Form::GeoJson => 2 << 20,
        }
    }
}

fn record(bytes: &[u8]) -> Result<DensityRecord, Problem> {
    let record: DensityRecord = serde_json::from_slice(bytes)
        .map_err(|error| Problem::new(BAD_BODY, format!("the body is not a density: {error}")))?;
    let checked = record.check(&RecordLimits::default());
    checked.map_err(|error| Problem::new(BAD_BODY, error.to_string()))?;
    Ok(record)
}

/// What it is expected to take to make what is wished.
fn expected(record: &DensityRecord, wish: &Wish) -> Expected {
    let areas: Vec<&Area> = wish.within.iter().map(Constraint::area).collect();
    let levels = if matches!(wish.form, Form::Grid) { 0 } else { wish.levels.len() };
    let more_levels = COST_OF_LEVEL * levels.saturating_sub(2) as f64;
    let cost = record.expected_cost(&areas);
    let survey = cost.cells() * (1.0 + more_levels);
    let values = (wish.width * wish.width / 2) as f64;
    let each = match (wish.form, record) {
        (Form::GeoJson, _) => 0.0,
        (
            Form::Grid,
            DensityRecord::Exponential { max_degree, .. }
            | DensityRecord::Linear { max_degree, .. },
        ) if areas.is_empty() => COST_OF_VALUE + COST_OF_WAVE * *max_degree as f64,
        _ => COST_OF_VALUE + COST_OF_TERM * terms(record) as f64,
    };
    let seconds = (survey + values * each) * seconds_per_cell();
    Expected { seconds, bytes: DRAWING_BYTES + cost.memory_bytes() }
}

/// Coefficients that are summed up for a value: where a linear density has a kink it is never interpolated.
fn terms(record: &DensityRecord) -> usize {
    match record {
        DensityRecord::Linear { coefficients, .. } => coefficients.len(),
        DensityRecord::Mixture { parts } => parts.iter().map(|part| terms(&part.density)).sum(),
        DensityRecord::Product { factors } => {
            factors.iter().map(|factor| terms(&factor.density)).sum()
        }
        _ => 0,
    }
}

/// On this machine; measured when it is first asked for.
pub(crate) fn seconds_per_cell() -> f64 {
    Cost::of_cells(1e3).duration().as_secs_f64().min(1e3 * SLOWEST_CELL_S) / 1e3
}

fn too_costly(seconds: String, limit: Duration) -> Problem {
    let detail = format!(
        "this density needs {seconds} s of CPU time, the limit is {:.1} s: use a wider kernel, fewer points, a lower degree, \
         fewer parts, fewer or simpler areas in `within`, or a smaller `width`",
        limit.as_secs_f64()
    );
    Problem::new(TOO_COSTLY, detail)
}

fn wish(query: Option<&str>) -> Result<Wish, Problem> {
    let wrong = |detail: String| Problem::new(BAD_OPTION, detail);
    let options = Options::parse(query, &KNOWN)?;
    let form = match options.one("format")?.unwrap_or("grid") {
        "grid" => Form::Grid,
        "png" => Form::Png,
        "geojson" => Form::GeoJson,
        _ => return Err(wrong("unknown format: use grid, png or geojson".to_owned())),
    };
    let globe = match options.one("projection")? {
        None => None,
        Some("globe") => Some(true),
        Some("equal-earth") => Some(false),
        Some(_) => return Err(wrong("unknown projection: use globe or equal-earth".to_owned())),
    };
    let width = options.number("width", 64..=2048)?.unwrap_or(DEFAULT_WIDTH);
    if !width.is_multiple_of(2) {
        return Err(wrong(format!("width={width} is odd: use an even number")));
    }
    let levels = options.one("levels")?.unwrap_or("0.5,0.9");
    let level = |text: &str| text.trim().parse().ok().filter(|level| (0.01..=0.99).contains(level));
    let levels: Option<Vec<f64>> = levels.split(',').map(level).collect();
    let levels = levels.filter(|levels| levels.len() <= 10);
    let levels = levels.ok_or_else(|| {
        wrong("levels must be up to ten numbers from 0.01 to 0.99, separated by commas".to_owned())
    })?;
    Ok(Wish { form, within: options.within()?, width: width as usize, globe, levels })
}

/// The answer with its kind. Nobody reads it once it is stopped.
fn make(
    record: &DensityRecord,
    wish: &Wish,
    stop: &Stop,
) -> Result<(&'static str, Vec<u8>), Problem> {
    let mut density =
        record.density().map_err(|error| Problem::new(BAD_BODY, error.to_string()))?;
    for constraint in &wish.within {
        density = density
            .restricted_to(constraint.area().clone())
            .map_err(|error| Problem::new(NO_ANSWER, format!("within {constraint}: {error}")))?;
    }
    if let Form::Grid = wish.form {
        let json = GridAnswer::new(&density, wish.width).to_json();
        return Ok(("application/json", json.map_err(|_| Problem::broken())?));
    }
    let survey = density.survey();
    // The budget ends surveys, and not what is made of them.
    if stop.is_stopped() {
        return Err(Problem::broken());
    }
    match wish.form {
        Form::Png => Ok(("image/png", png(&survey, wish)?)),
        _ => Ok(("application/geo+json", geojson(&survey, wish).to_string().into_bytes())),
    }
}

fn png(survey: &Survey<'_>, wish: &Wish) -> Result<Vec<u8>, Problem> {
    let modes = survey.modes();
    let best = modes.modes[0].place;
    let globe = wish.globe.unwrap_or_else(|| survey.radius_km(best, 0.9) <= 4000.0);
    let projection =
        if globe { Projection::Globe { centre: best } } else { Projection::EqualEarth };
    let highest = modes.modes.iter().map(|mode| mode.log_density).fold(f64::MIN, f64::max);
    let caption = "A prediction, not a fact. Lines: the smallest regions of the chosen levels.";
    let mut map = Map::new(projection)
        .theme(Theme::Dark)
        .width_px(wish.width as u32)
        .top(highest)
        .caption(caption)
        .field(|place| survey.interpolated_log_density(place));
    for (index, level) in wish.levels.iter().enumerate() {
        if let Some(polygons) = survey.region(*level).outline() {
            let style = if index == 0 { LineStyle::Solid } else { LineStyle::Dashed };
            map = map.outline(outline(&polygons)?.style(style));
        }
    }
    for (rank, mode) in modes.modes.iter().take(5).enumerate() {
        let label = format!("{} · {:.0} %", rank + 1, 100.0 * mode.mass);
        map = map.marker(Marker::new(mode.place).label(label));
    }
    Ok(map.draw().png())
}

fn outline(polygons: &MultiPolygon) -> Result<Outline, Problem> {
    let place = |[longitude, latitude]: &[f64; 2]| LatLon::new(*latitude, *longitude);
    let rings = polygons.coordinates().iter().flatten();
    let rings: Result<Vec<Vec<LatLon>>, _> =
        rings.map(|ring| ring.iter().map(place).collect()).collect();
    Ok(Outline::new(rings.map_err(|_| Problem::broken())?))
}

fn geojson(survey: &Survey<'_>, wish: &Wish) -> Value {
    let summary = Summary::of(survey, 5, Decode::Mode);
    let candidates: Vec<CandidateFacts> =
        summary.candidates.iter().map(CandidateFacts::new).collect();
    let features = features(survey, &wish.levels, &candidates);
    json!({ "type": "FeatureCollection", "features": features })
}
