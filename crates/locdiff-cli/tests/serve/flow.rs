//! A flow behind the server: what a plain request costs is allowed, more is not.

use std::fs;

use burn::tensor::Device;
use locdiff::ModelHome;
use locdiff::models::flow::{FlowAbout, PublishedFlow};
use locdiff::models::open_encoder;

use crate::client::{Running, repository};
use crate::schema::assert_fits;

#[test]
fn a_flow_answers_about_photographs_from_the_ground() {
    let folder = tempfile::tempdir().unwrap();
    let home = ModelHome::at(folder.path());
    let flow = PublishedFlow::named("plonk-yfcc").unwrap();
    let encoder = home.model(flow.encoder);
    fs::create_dir_all(&encoder).unwrap();
    for file in ["config.json", "model.safetensors"] {
        let from = repository("parity/vision/dinov2-registers").join(file);
        fs::copy(from, encoder.join(file)).unwrap();
    }
    let encoder = open_encoder(flow.encoder, &home, &Device::flex()).unwrap().unwrap();
    let small = repository("parity/plonk/small");
    let config = fs::read_to_string(small.join("config.json")).unwrap();
    let about = FlowAbout::new(serde_json::from_str(&config).unwrap(), encoder.record().clone());
    about.install(&home.model(flow.name), &small.join("model.safetensors")).unwrap();

    let server = Running::start_in(folder.path(), &[]);
    let photo = fs::read(repository("parity/photo/files/gps-paris.jpg")).unwrap();
    let answer = server.post("/v1/locate", &photo);
    assert_eq!(answer.status, 200, "{}", answer.json());
    let answer = answer.json()["results"][0].clone();
    assert_fits(&answer);
    assert_eq!(
        (&answer["model"]["name"], &answer["inference"]["samples"]),
        (&"plonk-yfcc".into(), &512.into())
    );
    assert_eq!(
        (&answer["exif"]["town"], &answer["exif"]["recorded_by"]),
        (&"Paris".into(), &"camera".into())
    );
    for (query, words) in
        [("steps=40", "20480 evaluations"), ("sampler=exact", "evaluations of the network")]
    {
        let rejected = server.post(&format!("/v1/locate?model=plonk-yfcc&{query}"), &photo);
        let detail = rejected.json()["detail"].clone();
        assert!(rejected.status == 400 && detail.as_str().unwrap().contains(words), "{detail}");
    }
    assert_eq!(server.post("/v1/locate?model=plonk-yfcc&samples=8", &photo).status, 200);
}
