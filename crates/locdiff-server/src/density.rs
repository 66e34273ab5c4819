//! `POST /v1/density`: a density that came with an answer, as numbers, a picture or regions.

use axum::Json;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use locdiff::locate::{CandidateFacts, Decode, features};
use locdiff::{Constraint, Summary};
use locdiff_map::{LineStyle, Map, Marker, Outline, Projection, Theme};
use locdiff_sphere::{Density, DensityRecord, LatLon, MultiPolygon};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::body::say_farewell;
use crate::options::Options;
use crate::problem::{BAD_BODY, BAD_OPTION, NO_ANSWER, Problem};
use crate::state::App;

/// A density's JSON is at most this long.
const MOST_BYTES: u64 = 6 << 20;
const DEFAULT_WIDTH: u64 = 1024;
const KNOWN: [&str; 5] = ["format", "within", "width", "projection", "levels"];

/// Logarithms of a density per steradian, at the middles of equal steps of latitude and longitude; of point masses and of what
/// is restricted, by interpolation between the points of cells that resolve it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GridAnswer {
    /// Values in a row.
    width: usize,
    /// Rows, from north to south.
    height: usize,
    /// Of the first row, in degrees.
    first_latitude: f64,
    /// Of the first value in each row, in degrees.
    first_longitude: f64,
    /// From one to the next, in degrees.
    step_degrees: f64,
    /// Row by row; null where the density is zero.
    log_density: Vec<Option<f64>>,
}

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
        ("format" = Option<String>, Query, description = "`grid` (if not said), `png` or `geojson`"),
        ("within" = Option<Vec<String>>, Query, description = "Restrict it, as in /v1/locate"),
        ("width" = Option<u64>, Query, minimum = 64, maximum = 2048, description = "Values or pixels in a row, an even number; 1024 if not said"),
        ("projection" = Option<String>, Query, description = "Of the picture: `globe` or `equal-earth`"),
        ("levels" = Option<String>, Query, description = "Of the regions: `0.5,0.9` if not said", example = "0.5,0.9"),
    ),
    request_body(content = serde_json::Value, description = "As `density` in an answer of /v1/locate"),
    responses(
        (status = 200, description = "As asked for", content(
            (GridAnswer = "application/json"), (Vec<u8> = "image/png"), (serde_json::Value = "application/geo+json"),
        )),
        (status = "4XX", description = "Refused: `detail` says why and what to do", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Starting, stopping, or out of time", body = Problem, content_type = "application/problem+json"),
    ),
    security((), ("key" = [])),
)]
pub(crate) async fn density(
    State(app): State<App>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let wish = match app.would_admit(&app.densities).and_then(|()| wish(query.as_deref())) {
        Ok(wish) => wish,
        Err(problem) => {
            say_farewell(&headers, body).await;
            return Err(problem);
        }
    };
    let received =
        app.memory.receive(&headers, body, MOST_BYTES, app.settings.body_timeout()).await?;
    app.work(move || {
        let record: DensityRecord = serde_json::from_slice(&received.bytes)
            .map_err(|error| Problem::new(BAD_BODY, format!("the body is no density: {error}")))?;
        make(&record, &wish)
    })
    .await?
}

fn wish(query: Option<&str>) -> Result<Wish, Problem> {
    let wrong = |detail: String| Problem::new(BAD_OPTION, detail);
    let options = Options::parse(query, &KNOWN)?;
    let form = match options.one("format")?.unwrap_or("grid") {
        "grid" => Form::Grid,
        "png" => Form::Png,
        "geojson" => Form::GeoJson,
        _ => return Err(wrong("format: grid, png or geojson".to_owned())),
    };
    let globe = match options.one("projection")? {
        None => None,
        Some("globe") => Some(true),
        Some("equal-earth") => Some(false),
        Some(_) => return Err(wrong("projection: globe or equal-earth".to_owned())),
    };
    let width = options.number("width", 64..=2048)?.unwrap_or(DEFAULT_WIDTH);
    if !width.is_multiple_of(2) {
        return Err(wrong(format!("width={width}: an even number")));
    }
    let levels = options.one("levels")?.unwrap_or("0.5,0.9");
    let level = |text: &str| text.trim().parse().ok().filter(|level| (0.01..=0.99).contains(level));
    let levels: Option<Vec<f64>> = levels.split(',').map(level).collect();
    let levels = levels.filter(|levels| levels.len() <= 10);
    let levels = levels.ok_or_else(|| {
        wrong("levels: up to ten numbers from 0.01 to 0.99, with commas between them".to_owned())
    })?;
    Ok(Wish { form, within: options.within()?, width: width as usize, globe, levels })
}

fn make(record: &DensityRecord, wish: &Wish) -> Result<Response, Problem> {
    let mut density =
        record.density().map_err(|error| Problem::new(BAD_BODY, error.to_string()))?;
    for constraint in &wish.within {
        density = density
            .restricted_to(constraint.area().clone())
            .map_err(|error| Problem::new(NO_ANSWER, format!("within {constraint}: {error}")))?;
    }
    let response = match wish.form {
        Form::Grid => Json(grid(&density, wish.width)).into_response(),
        Form::Png => ([(header::CONTENT_TYPE, "image/png")], png(&density, wish)?).into_response(),
        Form::GeoJson => {
            let kind = [(header::CONTENT_TYPE, "application/geo+json")];
            (kind, geojson(&density, wish).to_string()).into_response()
        }
    };
    Ok(response)
}

fn grid(density: &Density, width: usize) -> GridAnswer {
    let (height, step) = (width / 2, 360.0 / width as f64);
    let (first_latitude, first_longitude) = (90.0 - 0.5 * step, -180.0 + 0.5 * step);
    // Every point of a gallery at every node would take hours; between the cells' points it takes none.
    let exact = matches!(density, Density::Exponential(_) | Density::Linear(_) | Density::Cells(_));
    let survey = density.survey();
    let row = |row: usize| -> Vec<Option<f64>> {
        let latitude = first_latitude - step * row as f64;
        let value = |column: usize| {
            let place = LatLon::new(latitude, first_longitude + step * column as f64).ok()?;
            let value = if exact {
                density.log_density(place)
            } else {
                survey.interpolated_log_density(place)
            };
            Some((1e5 * value).round() / 1e5).filter(|value| value.is_finite())
        };
        (0..width).map(value).collect()
    };
    let rows: Vec<Vec<Option<f64>>> = (0..height).into_par_iter().map(row).collect();
    GridAnswer {
        width,
        height,
        first_latitude,
        first_longitude,
        step_degrees: step,
        log_density: rows.concat(),
    }
}

fn png(density: &Density, wish: &Wish) -> Result<Vec<u8>, Problem> {
    let survey = density.survey();
    let modes = survey.modes();
    let best = modes.modes[0].place;
    let globe = wish.globe.unwrap_or_else(|| survey.radius_km(best, 0.9) <= 4000.0);
    let projection =
        if globe { Projection::Globe { centre: best } } else { Projection::EqualEarth };
    let highest = modes.modes.iter().map(|mode| mode.log_density).fold(f64::MIN, f64::max);
    let caption = "A prediction, not a fact. Lines: the smallest regions that hold so much.";
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

fn geojson(density: &Density, wish: &Wish) -> Value {
    let survey = density.survey();
    let summary = Summary::of(&survey, 5, Decode::Mode);
    let candidates: Vec<CandidateFacts> =
        summary.candidates.iter().map(CandidateFacts::new).collect();
    let features = features(&survey, &wish.levels, &candidates);
    json!({ "type": "FeatureCollection", "features": features })
}
