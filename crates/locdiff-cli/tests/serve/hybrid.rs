//! A trained model and a gallery of its training pictures as one model, asked by every command.

use std::path::Path;

use locdiff_gallery::{Fit, Gallery, GalleryWriter};
use locdiff_sphere::LatLon;
use locdiff_train::{Dataset, Ids, OnBadShard, StreamOptions};
use serde_json::{Value, json};

use crate::chain::Workshop;
use crate::client::Running;
use crate::schema::{assert_fits, fits};

/// Embeddings, places and ids of a data set.
fn rows(data: &Path) -> (Vec<(Vec<f32>, LatLon, String)>, locdiff_gallery::EncoderIdentity) {
    let data = Dataset::open(data.to_str().unwrap(), OnBadShard::Fail).unwrap();
    let width = data.layout().width;
    let options = StreamOptions { epochs: Some(1), ids: Ids::Include, ..StreamOptions::default() };
    let mut rows = Vec::new();
    for batch in data.stream(options).unwrap() {
        let batch = batch.unwrap();
        let embeddings = batch.embeddings.chunks_exact(width).map(<[f32]>::to_vec);
        for ((embedding, place), id) in embeddings.zip(batch.places).zip(batch.ids) {
            rows.push((embedding, place, id));
        }
    }
    (rows, data.layout().encoder.for_gallery(width))
}

#[test]
fn a_model_and_a_gallery_answer_together_and_name_references() {
    let workshop = Workshop::new();
    workshop.success("embed pictures/manifest.csv --encoder tiny-clip --out embeddings");
    workshop.success("train tiny.toml --data embeddings --out runs/first");
    let (rows, encoder) = rows(&workshop.at("embeddings"));
    let mut writer = GalleryWriter::create(&workshop.at("gallery"), &encoder).unwrap();
    for (embedding, place, id) in &rows {
        writer.push(embedding, *place, id).unwrap();
    }
    writer.finish(|_| ()).unwrap();

    // Before a fit it has no density.
    let make = "model hybrid --model runs/first/model --gallery gallery --out both --json";
    for command in [make, "predict pictures/05.png --model gallery"] {
        let (code, complaint) = workshop.failure(command);
        assert!(code == 1 && complaint.contains("`locdiff gallery fit`"), "{code}: {complaint}");
    }
    // Held-out pictures that resemble references and were taken nearby.
    let gallery = Gallery::open(&workshop.at("gallery")).unwrap();
    let mut fit = Fit::new(&gallery);
    for copy in 0..3 {
        for (row, (embedding, place, id)) in rows.iter().enumerate() {
            let step = |k: usize| 0.01 * ((k * 7 + row * 3 + copy) as f32).sin();
            let near: Vec<f32> =
                embedding.iter().enumerate().map(|(k, x)| x * (1.0 + step(k))).collect();
            let place = place.destination(f64::from(copy as u32) * 120.0, 30.0);
            fit.push(&near, place, &format!("held-out-{copy}-{id}")).unwrap();
        }
    }
    fit.finish("copies").unwrap().write(&gallery).unwrap();

    let made = workshop.json(make);
    assert_eq!((&made["model"], &made["rule"]), (&json!("both"), &json!("product")));
    assert_eq!(workshop.failure(make).0, 1, "a directory is never overwritten");
    workshop.success(
        "model hybrid --model runs/first/model --gallery gallery --rule paper --out papers",
    );
    let shown = workshop.json("model show both --json");
    assert_eq!((&shown["kind"], &shown["rule"]), (&json!("hybrid"), &json!("product")));
    assert_eq!(shown["encoder"]["name"], "tiny-clip");
    for model in ["both", "papers", "gallery"] {
        assert_eq!(workshop.json(&format!("model verify {model} --json"))["ok"], true);
        let answer = workshop.json(&format!("predict pictures/05.png --model {model} --json"));
        assert_fits(&answer);
        let found = &answer["candidates"][0]["references"][0];
        // The paper's rule considers only references near the samples of a hardly trained model.
        let is_itself = found["id"].as_str().unwrap().contains("05");
        assert!(is_itself || model == "papers", "{model}: {found}");
        assert!(found["similarity"].as_f64().unwrap() > 0.99, "{model}: {found}");
        assert!(found["distance_km"].as_f64().unwrap() < 300.0, "{model}: {found}");
    }
    let alone = workshop.json("predict pictures/05.png --model runs/first/model --json");
    assert!(alone["candidates"].as_array().unwrap().iter().all(|c| c.get("references").is_none()));
    let text = workshop.success("predict pictures/05.png --model both");
    assert!(text.contains("like ") && text.contains("km away"), "{text}");

    // Server, GeoJSON and evaluation open it as any model.
    let path = workshop.at("both");
    let (path, pictures) = (path.to_str().unwrap(), workshop.at("pictures"));
    let references = ["--references", pictures.to_str().unwrap()];
    let server =
        Running::start_in(&workshop.at("home"), &["--model", path, references[0], references[1]]);
    let picture = std::fs::read(workshop.at("pictures/05.png")).unwrap();
    let served = server.post("/v1/locate", &picture).json();
    fits("LocateAnswer", &served);
    // Its references can be looked at.
    assert_eq!(server.get("/v1/page").json()["references"], true);
    let id = served["results"][0]["candidates"][0]["references"][0]["id"].as_str().unwrap();
    let shown = server.get(&format!("/v1/thumbnail?id={id}"));
    assert_eq!(image::guess_format(&shown.body).unwrap(), image::ImageFormat::Jpeg);
    assert_eq!(server.get("/v1/thumbnail?id=../tiny.toml").status, 404);
    let printed = workshop.json("predict pictures/05.png --model both --json");
    assert_eq!(served["results"][0]["candidates"], printed["candidates"]);
    let collection = workshop.json("predict pictures/05.png --model both --geojson");
    for feature in collection["features"].as_array().unwrap() {
        fits("FeatureProperties", &feature["properties"]);
    }
    let nll = |model: &str| -> f64 {
        let scores: Value = workshop
            .json(&format!("evaluate --model {model} --data embeddings --json --resamples 0"));
        assert_eq!(scores["images"], 40);
        scores["density_scores"]["nll_nats"]["value"].as_f64().unwrap()
    };
    let (both, alone) = (nll("both"), nll("runs/first/model"));
    assert!(both < alone - 1.0, "{both} and {alone}");

    // Fitted together on other pictures, which it embeds itself.
    std::fs::create_dir(workshop.at("held-out")).unwrap();
    let mut manifest = "image,latitude,longitude\n".to_owned();
    for number in 0..60_u32 {
        let like = number * 2 / 3;
        let original = image::open(workshop.at(&format!("pictures/{like:02}.png"))).unwrap();
        let mut picture = original.to_rgb8();
        (0..number + 4).for_each(|x| picture.put_pixel(x % 48, x % 40, image::Rgb([90, 0, 9])));
        picture.save(workshop.at(&format!("held-out/other-{number}.png"))).unwrap();
        manifest.push_str(&format!("other-{number}.png,{},{}\n", f64::from(like) - 19.9, 4 * like));
    }
    std::fs::write(workshop.at("held-out/manifest.csv"), manifest).unwrap();
    let made = workshop.json(
        "model hybrid --model runs/first/model --gallery gallery --data held-out/manifest.csv --out fitted --json",
    );
    let fusion = &made["fusion"];
    assert_eq!(fusion["held_out_rows"], 60);
    let nats = |name: &str| fusion[name].as_f64().unwrap();
    assert!(nats("nll_nats") < nats("model_nll_nats") - 1.0, "{fusion}");
    let warnings = |model: &str| {
        let answer = workshop.json(&format!("predict pictures/05.png --model {model} --json"));
        answer["warnings"].to_string()
    };
    assert!(warnings("both").contains("overconfident"));
    let quiet = warnings("fitted");
    assert!(!quiet.contains("overconfident") && !quiet.contains("make the hybrid again"));
    let fitted = nll("fitted");
    assert!(fitted < alone - 1.0, "{fitted} and {alone}");
    // The model is calibrated: the numbers of the product were fitted to something else.
    let numbers = workshop.at("fitted/fusion.json");
    let text = std::fs::read_to_string(&numbers).unwrap();
    let version = fusion["model_version"].as_str().unwrap();
    std::fs::write(&numbers, text.replace(version, "older")).unwrap();
    assert!(warnings("fitted").contains("make the hybrid again"));

    // Another encoder is rejected, and both are named.
    let other = locdiff_gallery::EncoderIdentity { name: "other".to_owned(), ..encoder };
    let other = locdiff_gallery::EncoderIdentity { digest: "other id:1".to_owned(), ..other };
    let mut writer = GalleryWriter::create(&workshop.at("others"), &other).unwrap();
    writer.push(&rows[0].0, rows[0].1, "a").unwrap();
    writer.finish(|_| ()).unwrap();
    let (code, complaint) = workshop
        .failure("model hybrid --model runs/first/model --gallery others --out no --rule paper");
    assert!(
        code == 1 && complaint.contains("tiny-clip") && complaint.contains("other id:1"),
        "{complaint}"
    );
}
