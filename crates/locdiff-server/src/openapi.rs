//! The interface described: for programs at `/openapi.json`, for people at `/docs`.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use bytes::Bytes;
use serde_json::Value;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use crate::problem::KINDS;
use crate::{density, routes, thumbnail};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "LocDiff",
        description = "Where on Earth was this taken? Images in, probability maps out. Answers are predictions, not facts.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    paths(
        routes::locate, routes::embed, density::density, routes::models, routes::page, routes::live, routes::ready,
        routes::metrics, thumbnail::thumbnail,
    ),
    modifiers(&Key),
    tags(
        (name = "images", description = "Locate and embed images"),
        (name = "densities", description = "Convert the density of an answer"),
        (name = "about", description = "Models, settings and health of this server"),
    ),
)]
struct Document;

struct Key;

impl Modify for Key {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let key = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_with(Default::default);
        components.add_security_scheme("key", SecurityScheme::Http(key));
    }
}

/// What answers and densities look like, in the words of the documentation.
const SCHEMA: &str = include_str!("../../../docs/answer.schema.json");

/// The document. Answers and densities are described once, in `docs/answer.schema.json`.
pub(crate) fn document() -> Value {
    let mut document = serde_json::to_value(Document::openapi()).unwrap_or_default();
    let text = SCHEMA.replace("#/$defs/", "#/components/schemas/");
    let schema: Value = serde_json::from_str(&text).unwrap_or_default();
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        document["components"]["schemas"][name] = definition.clone();
    }
    let reference =
        |name: &str| serde_json::json!({ "$ref": format!("#/components/schemas/{name}") });
    let json = "application/json";
    let post = |path: &str| format!("/paths/{}/post", path.replace('/', "~1"));
    for (path, name) in [("/v1/locate", "LocateAnswer"), ("/v1/embed", "EmbedAnswer")] {
        let pointer = format!("{}/responses/200/content", post(path));
        if let Some(content) = document.pointer_mut(&pointer) {
            content[json]["schema"] = reference(name);
        }
    }
    if let Some(body) =
        document.pointer_mut(&format!("{}/requestBody/content", post("/v1/density")))
    {
        body[json]["schema"] = reference("Density");
    }
    document
}

/// Made once: a thousand clients that read slowly share one.
static OPENAPI: LazyLock<Bytes> = LazyLock::new(|| document().to_string().into());
static DOCS: LazyLock<Bytes> = LazyLock::new(|| page(&document()).into());

pub(crate) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI.clone()).into_response()
}

pub(crate) async fn docs() -> Html<Bytes> {
    Html(DOCS.clone())
}

const STYLE: &str = "\
:root{color-scheme:light dark}body{font:16px/1.55 system-ui,sans-serif;max-width:52rem;margin:3rem auto;padding:0 1rem}\
code,pre{font:14px/1.5 ui-monospace,monospace}pre{padding:.8rem 1rem;border:1px solid #8886;border-radius:6px;overflow:auto}\
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.35rem .8rem .35rem 0;border-top:1px solid #8884}\
h2{margin-top:2.5rem}.verb{font-weight:600;color:#0a7d6c}@media(prefers-color-scheme:dark){.verb{color:#4fd1b8}a{color:#8ab4f8}}";

/// Commands that can be copied, and that the tests run.
pub(crate) const EXAMPLES: [(&str, &str); 6] = [
    ("/v1/locate", "curl --data-binary @examples/madagascar.jpg \"$LOCDIFF/v1/locate?top=3\""),
    (
        "/v1/locate",
        "curl -F image=@examples/madagascar.jpg -F image=@examples/sinai.jpg \"$LOCDIFF/v1/locate?within=land&density=true\"",
    ),
    ("/v1/embed", "curl --data-binary @examples/sinai.jpg \"$LOCDIFF/v1/embed?model=earth-view\""),
    (
        "/v1/density",
        "curl --json '{\"kind\":\"points\",\"kernel_km\":100,\"latitudes\":[48.86],\"longitudes\":[2.35],\"masses\":[1]}' \"$LOCDIFF/v1/density?format=geojson\"",
    ),
    ("/v1/models", "curl \"$LOCDIFF/v1/models\""),
    ("/health/ready", "curl \"$LOCDIFF/health/ready\""),
];

fn page(document: &Value) -> String {
    let text = |value: &Value| escaped(value.as_str().unwrap_or_default());
    let mut html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>LocDiff over HTTP</title><style>{STYLE}</style><h1>LocDiff over HTTP</h1><p>{}</p>\
         <p>For programs: <a href=/openapi.json>openapi.json</a>. In the examples, <code>LOCDIFF</code> is this server's \
         address: <code>LOCDIFF=http://127.0.0.1:8417</code>.</p>",
        text(&document["info"]["description"])
    );
    let none = serde_json::Map::new();
    for (path, operations) in document["paths"].as_object().unwrap_or(&none) {
        for (verb, operation) in operations.as_object().unwrap_or(&none) {
            let (verb, path) = (escaped(&verb.to_uppercase()), escaped(path));
            html.push_str(&format!("<h2 id=\"{path}\"><span class=verb>{verb}</span> {path}</h2>"));
            for key in ["summary", "description"] {
                html.push_str(&format!("<p>{}</p>", text(&operation[key])));
            }
            let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
            if !parameters.is_empty() {
                html.push_str("<table>");
                for parameter in parameters {
                    let (name, about) = (text(&parameter["name"]), text(&parameter["description"]));
                    html.push_str(&format!("<tr><td><code>{name}</code><td>{about}"));
                }
                html.push_str("</table>");
            }
            for (_, command) in EXAMPLES.iter().filter(|(of, _)| *of == path) {
                html.push_str(&format!("<pre>{}</pre>", escaped(command)));
            }
        }
    }
    html.push_str("<h2>Problems</h2><p>Errors are returned as <code>application/problem+json</code> (RFC 9457).</p><table>");
    for (name, status, title) in KINDS {
        let status = status.as_u16();
        html.push_str(&format!(
            "<tr id=problem-{name}><td>{status}<td><code>{name}</code><td>{title}"
        ));
    }
    html.push_str("</table></html>");
    html
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
