//! Directories of galleries: opened, and searched if they can be opened.

use std::path::Path;

use locdiff_gallery::{EncoderIdentity, Fit, Fusion, Gallery, GalleryWriter, Likelihood};
use locdiff_sphere::{Area, LatLon};

use crate::{Target, folder};

pub(super) const TARGET: Target = Target {
    name: "gallery_directory",
    reads: "gallery directories: gallery.json, segments, likelihood, fusion",
    longest: 16 << 10,
    most_bytes: 64 << 20,
    run,
    seeds,
};

fn run(input: &[u8]) {
    let folder = folder::unpacked(input);
    let _ = Fusion::read(folder.path());
    let Ok(gallery) = Gallery::open(folder.path()) else { return };
    let query = vec![0.5; gallery.encoder().dimension];
    let area = Area::circle(LatLon::new(48.0, 2.0).expect("a place"), 2000.0).expect("an area");
    let rows = gallery.len();
    for hits in [gallery.search(&query, 8), gallery.search_within(&query, &[area], 8)] {
        let Ok(hits) = hits else { continue };
        assert!(hits.len() <= 8.min(rows) && hits.iter().all(|hit| hit.row < rows));
        for hit in hits {
            let _ = (gallery.id(hit.row).len(), gallery.place(hit.row));
            assert!(gallery.embedding(hit.row).len() == query.len());
        }
    }
    let _ = gallery.info();
    if let Ok(likelihood) = Likelihood::read(&gallery)
        && let Ok(hits) = gallery.search(&query, Likelihood::HITS)
        && let Ok(evidence) = likelihood.evidence(&gallery, &hits)
    {
        let _ = evidence.density();
    }
}

fn write(directory: &Path, dimension: usize, rows: usize) {
    let encoder = EncoderIdentity {
        name: "x".to_owned(),
        digest: "0".to_owned(),
        preprocessing: "none".to_owned(),
        dimension,
    };
    let mut writer = GalleryWriter::create(directory, &encoder).expect("the folder can be written");
    for row in 0..rows {
        let embedding: Vec<f32> = (0..dimension).map(|k| ((row + k) as f32).cos()).collect();
        let place = LatLon::new(row as f64 * 4.0 - 60.0, row as f64 * 8.0).expect("a place");
        writer.push(&embedding, place, &format!("{row}.jpg")).expect("a row");
    }
    writer.finish(|_| {}).expect("the folder can be written");
}

fn seeds() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut seeds = Vec::new();
    for (name, dimension, rows) in [("a", 3, 4), ("b", 65, 12)] {
        let path = folder.path().join(name);
        write(&path, dimension, rows);
        if let Ok(gallery) = Gallery::open(&path) {
            let mut fit = Fit::new(&gallery);
            for row in 0..rows {
                let _ = fit.push(&gallery.embedding(row), gallery.place(row), "other");
            }
            if let Ok(likelihood) = fit.finish("held out") {
                let _ = likelihood.write(&gallery);
            }
        }
        seeds.push(folder::packed(&path));
    }
    seeds
}
