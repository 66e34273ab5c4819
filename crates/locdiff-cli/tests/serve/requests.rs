//! What a server answers.

use std::process::Command;

use serde_json::{Value, json};

use crate::client::{Running, example, form, program, repository};

#[test]
fn an_image_is_located_as_the_program_locates_it() {
    let server = Running::start(&[]);
    let answer = server.post("/v1/locate?top=3&density=true&draws=5&frames=5", &example());
    assert_eq!(answer.status, 200);
    let answer = answer.json();
    assert_eq!(answer["prediction"], true);
    let result = &answer["results"][0];
    assert_eq!(result["candidates"][0]["country_code"], "MG");
    assert_eq!(result["footprint"]["corners"].as_array().unwrap().len(), 4);
    assert_eq!(result["draws"].as_array().unwrap().len(), 5);
    assert_eq!(result["density"]["kind"], "mixture");
    // earth-view has no diffusion: there is nothing to play.
    assert_eq!(result["frames"], Value::Null);

    let home = tempfile::tempdir().unwrap();
    let output = program(home.path())
        .args(["predict", "--json", "--top", "3"])
        .arg(repository("examples/madagascar.jpg"))
        .output()
        .unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    for key in [
        "place",
        "candidates",
        "footprint",
        "radius_50_km",
        "radius_90_km",
        "area_50_km2",
        "area_90_km2",
        "within",
        "inference",
        "warnings",
    ] {
        assert_eq!(said[key], result[key], "{key}");
    }
    for key in ["name", "version", "description", "chosen_because", "prior"] {
        assert_eq!(said["model"][key], result["model"][key], "{key}");
    }
}

#[test]
fn several_images_each_stand_for_themselves() {
    let server = Running::start(&[]);
    let sinai = std::fs::read(repository("examples/sinai.jpg")).unwrap();
    let (kind, body) =
        form(&[("a.jpg", &example()), ("notes.txt", b"not an image"), ("c.jpg", &sinai)]);
    let answer = server.ask("POST", "/v1/locate?within=land", &kind, &body);
    assert_eq!(answer.status, 200);
    let results = answer.json()["results"].as_array().unwrap().clone();
    assert_eq!(results.len(), 3);
    assert_eq!(results[0]["image"]["name"], "a.jpg");
    assert_eq!(results[0]["candidates"][0]["country_code"], "MG");
    assert_eq!(results[1]["problem"]["status"], 415);
    assert_eq!(results[2]["within"], json!(["land"]));
}

#[test]
fn a_restriction_holds_and_makes_answers_more_certain() {
    let server = Running::start(&[]);
    let everywhere = server.post("/v1/locate", &example()).json();
    let there = server.post("/v1/locate?within=Madagascar", &example()).json();
    let mass = |answer: &Value| answer["results"][0]["candidates"][0]["mass"].as_f64().unwrap();
    assert!(mass(&there) >= mass(&everywhere));
    // What it shows is not there.
    let elsewhere = server.post("/v1/locate?within=Chile", &example()).json();
    assert_eq!(elsewhere["results"][0]["footprint"], Value::Null);
    assert!(everywhere["results"][0]["footprint"].is_object());
    assert_eq!(there["results"][0]["candidates"][0]["country_code"], "MG");
}

#[test]
fn embeddings_are_the_same_for_the_same_image() {
    let server = Running::start(&[]);
    let embedding = || {
        let answer = server.post("/v1/embed", &example());
        assert_eq!(answer.status, 200);
        answer.json()["results"][0]["embedding"].as_array().unwrap().clone()
    };
    let first = embedding();
    assert!(first.len() > 100 && first.iter().any(|number| number != &first[0]));
    assert_eq!(first, embedding());
}

#[test]
fn a_density_comes_back_as_grid_regions_and_picture() {
    let server = Running::start(&[]);
    // Smooth enough for sums over degrees.
    let density = r#"{"kind": "points", "kernel_km": 400, "latitudes": [-19.5, 10], "longitudes": [46.5, 77], "masses": [0.75, 0.25]}"#;
    let ask = |options: &str| {
        let path = format!("/v1/density?{options}");
        let answer =
            server.ask("POST", &path, "Content-Type: application/json\r\n", density.as_bytes());
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        answer
    };
    let grid = ask("width=360").json();
    let values = grid["log_density"].as_array().unwrap();
    assert_eq!(values.len(), 360 * 180);
    // It is normalised: the sum over cells is one.
    let step = 1.0_f64.to_radians();
    let total: f64 = values
        .iter()
        .enumerate()
        .map(|(index, value)| {
            let latitude = (89.5 - (index / 360) as f64).to_radians();
            value.as_f64().unwrap().exp() * step * step * latitude.cos()
        })
        .sum();
    assert!((total - 1.0).abs() < 0.02, "{total}");
    let regions = ask("format=geojson&levels=0.5").json();
    let kinds: Vec<&str> = regions["features"]
        .as_array()
        .unwrap()
        .iter()
        .map(|feature| feature["properties"]["kind"].as_str().unwrap())
        .collect();
    assert!(kinds[0] == "region" && kinds[1..].iter().all(|kind| *kind == "candidate"));
    let picture = ask("format=png&width=400&within=Madagascar");
    assert_eq!(picture.header("content-type"), Some("image/png"));
    assert_eq!(&picture.body[..8], b"\x89PNG\r\n\x1a\n");
}

#[test]
fn the_server_tells_about_itself() {
    let server = Running::start(&[]);
    let models = server.get("/v1/models").json();
    assert_eq!(models["models"][0]["name"], "earth-view");
    assert_eq!(models["models"][0]["frames"], false);
    assert_eq!(models["models"][0]["inference"]["sampler"], "one-pass");
    server.post("/v1/locate", &example());
    let metrics = String::from_utf8(server.get("/metrics").body).unwrap();
    assert!(
        metrics.contains(r#"locdiff_requests_total{path="/v1/locate",status="200"} 1"#),
        "{metrics}"
    );
    let document = server.get("/openapi.json").json();
    for path in
        ["/v1/locate", "/v1/embed", "/v1/density", "/v1/models", "/health/ready", "/metrics"]
    {
        assert!(document["paths"][path].is_object(), "{path}");
    }
    let docs = server.get("/docs");
    assert!(String::from_utf8_lossy(&docs.body).contains("curl --data-binary"));
    let page = server.get("/");
    assert_eq!(page.status, 200);
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'self'"));
}

#[test]
fn keys_close_the_server() {
    let keys = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(keys.path(), "# for the archive\nswordfish\n").unwrap();
    let server = Running::start(&["--api-key-file", keys.path().to_str().unwrap()]);
    let closed = server.post("/v1/locate", &example());
    assert_eq!(closed.status, 401);
    assert_eq!(closed.header("content-type"), Some("application/problem+json"));
    assert_eq!(server.get("/metrics").status, 401);
    assert_eq!(server.get("/v1/page").json()["key_required"], true);
    let open = server.ask("POST", "/v1/locate", "Authorization: Bearer swordfish\r\n", &example());
    assert_eq!(open.status, 200);
}

#[test]
fn settings_come_from_flags_and_environment() {
    let home = tempfile::tempdir().unwrap();
    let print = |command: &mut Command| {
        let output = command.args(["serve", "--print-config", "--json"]).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let settings =
        print(program(home.path()).env("LOCDIFF_MAX_BATCH", "3").env("LOCDIFF_PORT", "1234"));
    assert_eq!((&settings["max_batch"], &settings["port"]), (&json!(3), &json!(1234)));
    assert_eq!(settings["host"], "127.0.0.1");
    let mut wrong = program(home.path());
    let wrong = wrong.args(["serve", "--workers", "0"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("workers: must be at least 1"));
    let mut unknown = program(home.path());
    let unknown = unknown.args(["serve", "--port", "0", "--model", "nonsense"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("there is no model `nonsense`"));
}
