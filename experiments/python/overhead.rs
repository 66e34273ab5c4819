//! What `run` compares `locate_table` with: the same images by the Rust API, a round for each line on stdin. After each round a
//! line has the number of answers.

use std::io::{BufRead, stdin};

use anyhow::Result;
use locdiff::locate::{AnswerOptions, Answered, ChosenBecause, ReadPicture, locate_because};
use locdiff::{Geolocator, InferenceOptions, Photo};
use locdiff_cli::keep_for_a_while;
use rayon::prelude::*;

fn main() -> Result<()> {
    keep_for_a_while();
    let files: Vec<Vec<u8>> =
        std::env::args().skip(1).map(std::fs::read).collect::<Result<_, _>>()?;
    let options = InferenceOptions { registration: Some(false), ..InferenceOptions::default() };
    let model = Geolocator::open("earth-view")?.with(&options)?;
    let together = rayon::current_num_threads().clamp(2, 8);
    for line in stdin().lock().lines() {
        line?;
        let mut answered = 0;
        for batch in files.chunks(together) {
            let read: Vec<ReadPicture> = batch
                .par_iter()
                .map(|bytes| ReadPicture::decode(None, bytes))
                .collect::<Result<_, _>>()?;
            let (photos, facts): (Vec<Photo>, Vec<_>) =
                read.into_iter().map(|read| (read.photo, (read.facts, read.gps))).unzip();
            let located = locate_because(&model, ChosenBecause::Named, &photos);
            let jobs: Vec<_> = located.into_iter().zip(facts).collect();
            let records = jobs.into_par_iter().map(|(located, (facts, gps))| {
                let (estimate, because) = located.ok()?;
                let options = AnswerOptions::default();
                let answered = Answered::new(estimate, because, facts, gps, &options);
                serde_json::to_string(&answered.record).ok()
            });
            answered += records.filter(Option::is_some).count();
        }
        println!("{answered}");
    }
    Ok(())
}
