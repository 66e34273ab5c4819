//! The map page, as it was built into the program.

use axum::extract::State;
use axum::http::{HeaderValue, Method, Uri, header};
use axum::response::{Html, IntoResponse, Response};

use crate::problem::{NOT_FOUND, Problem};
use crate::state::App;

mod files {
    include!(concat!(env!("OUT_DIR"), "/page.rs"));
}

const WITHOUT_PAGE: &str = "<!doctype html><html lang=en><meta charset=utf-8><title>LocDiff</title>\
<style>body{font:16px/1.5 system-ui;max-width:40em;margin:4em auto;padding:0 1em;color-scheme:light dark}</style>\
<h1>LocDiff</h1><p>This program was built without the map page. The HTTP interface works: see <a href=/docs>/docs</a>.\
<p>To build the page too, with Node 20 or newer: <pre>just build</pre>";

/// A file of the page; `/` is its index.
pub(crate) async fn file(State(app): State<App>, method: Method, uri: Uri) -> Response {
    file_or_index(&app, &method, &uri, "index.html")
}

/// A file of the page; `/` is the one that is named.
pub(crate) fn file_or_index(app: &App, method: &Method, uri: &Uri, index: &str) -> Response {
    let path = uri.path().trim_start_matches('/');
    let name = if path.is_empty() { index } else { path };
    let reads = [Method::GET, Method::HEAD].contains(method);
    let found = files::FILES.binary_search_by(|(file, _)| (*file).cmp(name));
    let Some(index) = found.ok().filter(|_| reads) else {
        if path.is_empty() && reads {
            return (policy(app), Html(WITHOUT_PAGE)).into_response();
        }
        let shown: String = uri.path().chars().take(80).collect();
        let detail = format!("there is nothing at {shown}: see /docs");
        return Problem::new(NOT_FOUND, detail).into_response();
    };
    let bytes = files::FILES[index].1;
    // Names of assets change with their content.
    let lifetime = if name.starts_with("assets/") {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let headers = [(header::CONTENT_TYPE, kind_of(name)), (header::CACHE_CONTROL, lifetime)];
    (policy(app), headers, bytes).into_response()
}

/// What the page may load and talk to: this server, and the tiles if there are any.
fn policy(app: &App) -> [(header::HeaderName, HeaderValue); 1] {
    let tiles = app.settings.tiles_origin().unwrap_or_default();
    let policy = format!(
        "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; \
         img-src 'self' data: blob: {tiles}; style-src 'self' 'unsafe-inline'; \
         connect-src 'self' data: blob: {tiles}; font-src 'self'; object-src 'none'; base-uri 'none'; \
         frame-ancestors 'none'"
    );
    let policy = HeaderValue::from_str(&policy);
    // Settings with other characters were refused.
    [(
        header::CONTENT_SECURITY_POLICY,
        policy.unwrap_or(HeaderValue::from_static("default-src 'self'")),
    )]
}

fn kind_of(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "wasm" => "application/wasm",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
