//! Galleries of outputs of GeoCLIP's location encoder: how fast they are built, opened and searched, and what a search misses.
//!
//! `gallery encode WHEEL FOLDER ROWS` extends the cached encodings in FOLDER to so many rows; it may be interrupted.
//! `gallery imitate WHEEL FOLDER ENCODED ROWS` encodes the first of them only; the others are encodings of the list with noise (simulated).
//! `gallery measure WHEEL FOLDER ROWS QUERIES` builds FOLDER/gallery-ROWS if it isn't there, measures it, and prints JSON; queries and what an
//! exact search finds are written for usearch_hnsw.py. Times are processor time of one thread.
//!
//! Row k is the k-th place of GeoCLIP's own list as long as that has places (100,000, real), and then one of them moved by 0.1 to 50 km
//! (jittered). Queries are places of the list moved in the same way; every second one is turned away by noise until its cosine to the
//! encoding of its place is about 0.45, as photographs have it at best.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};
use burn::tensor::Device;
use half::f16;
use half::slice::HalfFloatSliceExt;
use locdiff::models::geoclip::GeoClip;
use locdiff_experiments::{Dense, multiply, write_npy};
use locdiff_gallery::{EncoderIdentity, Gallery, GalleryWriter, Hit};
use locdiff_sphere::{Area, EARTH_RADIUS_KM, LatLon};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use serde_json::json;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const DIMENSION: usize = 512;
/// Rows that are encoded, read or compared at a time.
const BATCH: usize = 1024;
const HITS: usize = 10;
/// A hit counts if it is as similar as the tenth of an exact search, minus this.
const TOLERANCE: f32 = 1e-3;
/// A restricted search is exact: only sums in another order differ.
const ROUNDING: f32 = 1e-5;
const CIRCLES: usize = 16;
const CIRCLE_KM: f64 = 200.0;

fn main() -> anyhow::Result<()> {
    locdiff_experiments::keep_freed_memory();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        ["encode", wheel, folder, rows] => {
            Cache::open(wheel.as_ref(), folder.as_ref())?.extend(rows.parse()?)
        }
        ["imitate", wheel, folder, encoded, rows] => {
            let cache = Cache::open(wheel.as_ref(), folder.as_ref())?;
            cache.extend(encoded.parse()?)?;
            cache.imitate(encoded.parse()?, rows.parse()?)
        }
        ["measure", wheel, folder, rows, queries] => {
            let cache = Cache::open(wheel.as_ref(), folder.as_ref())?;
            measure(&cache, rows.parse()?, queries.parse()?)
        }
        _ => anyhow::bail!("see the head of main.rs"),
    }
}

/// Encodings that are kept between runs: half precision, one row after the other.
struct Cache {
    geoclip: GeoClip,
    folder: PathBuf,
}

impl Cache {
    fn open(wheel: &Path, folder: &Path) -> anyhow::Result<Cache> {
        std::fs::create_dir_all(folder)?;
        let geoclip = GeoClip::import(wheel, &Device::flex())?;
        ensure!(geoclip.location_encoder.width() == DIMENSION, "GeoCLIP has 512 numbers");
        Ok(Cache { geoclip, folder: folder.to_owned() })
    }

    fn path(&self) -> PathBuf {
        self.folder.join("encodings.f16")
    }

    /// Row by row: real places first, then moved ones.
    fn place(&self, row: usize) -> LatLon {
        let real = &self.geoclip.gallery;
        match real.get(row) {
            Some(place) => *place,
            None => moved(real[row % real.len()], &mut ChaCha8Rng::seed_from_u64(row as u64)),
        }
    }

    fn rows(&self) -> usize {
        let bytes = self.path().metadata().map_or(0, |file| file.len() as usize);
        bytes / (2 * DIMENSION)
    }

    fn extend(&self, rows: usize) -> anyhow::Result<()> {
        let file = OpenOptions::new().create(true).append(true).open(self.path())?;
        // A kill may have left part of a row.
        file.set_len((self.rows() * 2 * DIMENSION) as u64)?;
        let mut file = BufWriter::new(file);
        let (first, began) = (self.rows(), Instant::now());
        let numbers: Vec<usize> = (first..rows).collect();
        for (k, batch) in numbers.chunks(BATCH).enumerate() {
            let places: Vec<LatLon> = batch.iter().map(|row| self.place(*row)).collect();
            let halves: Vec<f16> = self.encode(&places).into_iter().map(f16::from_f32).collect();
            let bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
            file.write_all(&bytes)?;
            if k % 64 == 63 {
                let done = batch[batch.len() - 1] + 1;
                let each = began.elapsed().as_secs_f64() / (done - first) as f64;
                eprintln!("{done} of {rows} encoded, {:.0} s left", each * (rows - done) as f64);
            }
        }
        Ok(file.flush()?)
    }

    /// Rows of places that are moved as always, with the encoding of the place before it was moved, turned away by noise
    /// to a cosine of 0.93 or more.
    fn imitate(&self, encoded: usize, rows: usize) -> anyhow::Result<()> {
        let bytes = std::fs::read(self.path())?;
        let halves: Vec<f16> =
            bytes.as_chunks::<2>().0.iter().map(|half| f16::from_le_bytes(*half)).collect();
        let mut known = vec![0.0; halves.len()];
        halves.convert_to_f32_slice(&mut known);
        let mut file = BufWriter::new(OpenOptions::new().append(true).open(self.path())?);
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let noise: Vec<f32> = (0..64 * DIMENSION).map(|_| rng.sample(StandardNormal)).collect();
        let per_number = 0.4 / (DIMENSION as f32).sqrt();
        for row in self.rows()..rows {
            let encoding = &known[row % encoded * DIMENSION..][..DIMENSION];
            let first = rng.random_range(0..noise.len() - DIMENSION);
            let scale = per_number * rng.random::<f32>() * length(encoding);
            let turned = encoding.iter().zip(&noise[first..]).map(|(x, noise)| x + scale * noise);
            let bytes: Vec<u8> = turned.flat_map(|x| f16::from_f32(x).to_le_bytes()).collect();
            file.write_all(&bytes)?;
        }
        Ok(file.flush()?)
    }

    fn encode(&self, places: &[LatLon]) -> Vec<f32> {
        let encodings = self.geoclip.location_encoder.embed(places);
        encodings.into_data_as::<f32>().try_into_vec().expect("f32")
    }

    /// Queries, and the places that they stand for.
    fn queries(&self, count: usize) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(u64::MAX);
        let real = &self.geoclip.gallery;
        let places: Vec<LatLon> = (0..count)
            .map(|_| {
                let place = real[rng.random_range(0..real.len())];
                moved(place, &mut rng)
            })
            .collect();
        let mut queries = self.encode(&places);
        for query in queries.chunks_exact_mut(DIMENSION).skip(1).step_by(2) {
            let noise: Vec<f32> = query.iter().map(|_| rng.sample(StandardNormal)).collect();
            let times = 2.0 / length(&noise);
            query.iter_mut().zip(&noise).for_each(|(number, noise)| *number += times * noise);
        }
        for query in queries.chunks_exact_mut(DIMENSION) {
            let length = length(query);
            query.iter_mut().for_each(|number| *number /= length);
        }
        queries
    }
}

fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|x| x * x).sum::<f32>().sqrt()
}

/// 0.1 to 50 km away, all orders of magnitude alike.
fn moved(place: LatLon, rng: &mut ChaCha8Rng) -> LatLon {
    let km = 0.1 * 500.0_f64.powf(rng.random::<f64>());
    place.destination(rng.random_range(0.0..360.0), km)
}

/// Processor time of this thread in ms.
fn thread_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e6
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let began = thread_ms();
    let result = work();
    (result, thread_ms() - began)
}

/// Processor time of each of so many pieces of work, on average. It is counted in steps of some ms, so that only sums over many mean
/// anything: all are repeated for a second at least.
fn mean_ms(count: usize, mut work: impl FnMut(usize)) -> f64 {
    let (began, mut rounds) = (thread_ms(), 0);
    loop {
        (0..count).for_each(&mut work);
        rounds += 1;
        let spent = thread_ms() - began;
        if spent >= 1000.0 {
            return spent / (rounds * count) as f64;
        }
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn measure(cache: &Cache, rows: usize, count: usize) -> anyhow::Result<()> {
    ensure!(cache.rows() >= rows, "{} rows are encoded, {rows} are needed", cache.rows());
    let directory = cache.folder.join(format!("gallery-{rows}"));
    let times = cache.folder.join(format!("build-{rows}.txt"));
    if !directory.exists() {
        let ms = build(cache, rows, &directory)?;
        std::fs::write(&times, ms.to_string())?;
    }
    let build_ms: f64 = std::fs::read_to_string(&times)?.parse()?;
    let open = || Gallery::open(&directory);
    let open_ms = median(
        (0..11)
            .map(|_| {
                let began = Instant::now();
                let gallery = open();
                let ms = 1e3 * began.elapsed().as_secs_f64();
                drop(gallery);
                ms
            })
            .collect(),
    );
    let gallery = open()?;
    let queries = cache.queries(count);
    let each = || queries.chunks_exact(DIMENSION);
    // Once to bring the files into memory.
    each().take(3).try_for_each(|query| gallery.search(query, HITS).map(drop))?;

    let found: Vec<Vec<Hit>> =
        each().map(|query| gallery.search(query, HITS)).collect::<Result<_, _>>()?;
    let query_ms = mean_ms(count, |k| {
        gallery.search(&queries[k * DIMENSION..][..DIMENSION], HITS).expect("as before");
    });
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let real = &cache.geoclip.gallery;
    let middles: Vec<[LatLon; CIRCLES]> = (0..count)
        .map(|_| std::array::from_fn(|_| real[rng.random_range(0..real.len())]))
        .collect();
    let areas: Vec<[Area; CIRCLES]> = middles
        .iter()
        .map(|middles| middles.map(|middle| Area::circle(middle, CIRCLE_KM).unwrap()))
        .collect();
    let restricted: Vec<Vec<Hit>> = each()
        .zip(&areas)
        .map(|(query, areas)| gallery.search_within(query, areas, HITS))
        .collect::<Result<_, _>>()?;
    let restricted_ms = mean_ms(count, |k| {
        let query = &queries[k * DIMENSION..][..DIMENSION];
        gallery.search_within(query, &areas[k], HITS).expect("as before");
    });

    let exact = exact(&gallery, &queries, &middles);
    let (plain, turned): (Vec<usize>, Vec<usize>) = (0..count).partition(|k| k % 2 == 0);
    let recall = |which: &[usize]| {
        let good = |k: &usize| {
            let enough = |hit: &&Hit| hit.similarity >= exact[*k].all - TOLERANCE;
            found[*k].iter().filter(enough).count()
        };
        which.iter().map(good).sum::<usize>() as f64 / (HITS * which.len()) as f64
    };
    let (mut good_within, mut all_within) = (0, 0);
    for (hits, exact) in restricted.iter().zip(&exact) {
        let enough = |hit: &&Hit| hit.similarity >= exact.within - ROUNDING;
        good_within += hits.iter().filter(enough).count();
        // Circles may contain fewer than ten.
        all_within += HITS.min(exact.inside);
    }
    let every: Vec<usize> = (0..count).collect();
    let tenths: Vec<f32> = exact.iter().map(|exact| exact.all).collect();
    let inside = exact.iter().map(|exact| exact.inside as f64).sum::<f64>() / count as f64;
    write_npy(&cache.folder.join("queries.npy"), &[count, DIMENSION], &queries)?;
    write_npy(&cache.folder.join(format!("tenths-{rows}.npy")), &[count], &tenths)?;
    let info = gallery.info()?;
    println!(
        "{}",
        json!({
            "rows": rows,
            "real_places": rows.min(real.len()),
            "queries": count,
            "build_per_s": 1e3 * rows as f64 / build_ms,
            "open_ms": open_ms,
            "query_ms": query_ms,
            "recall": recall(&every),
            "recall_plain": recall(&plain),
            "recall_turned": recall(&turned),
            "restricted_ms": restricted_ms,
            "restricted_recall": f64::from(good_within as u32) / f64::from(all_within as u32),
            "restricted_rows": inside,
            "bytes": info.bytes,
            "median_nearest_km": info.median_nearest_km,
        })
    );
    Ok(())
}

/// Builds a gallery and returns the processor time that it took, without reading the cache.
fn build(cache: &Cache, rows: usize, directory: &Path) -> anyhow::Result<f64> {
    let encoder = EncoderIdentity {
        name: "geoclip".to_owned(),
        digest: format!("sha256:{}", cache.geoclip.weights_sha256()),
        preprocessing: "that of CLIP ViT-L/14".to_owned(),
        dimension: DIMENSION,
    };
    let mut writer = GalleryWriter::create(directory, &encoder)?;
    let mut file = File::open(cache.path()).context("no encodings")?;
    let mut bytes = vec![0; 2 * BATCH * DIMENSION];
    let mut numbers = vec![0.0; BATCH * DIMENSION];
    let (mut done, mut spent) = (0, 0.0);
    while done < rows {
        let batch = BATCH.min(rows - done);
        std::io::Read::read_exact(&mut file, &mut bytes[..2 * batch * DIMENSION])?;
        let halves: Vec<f16> = bytes[..2 * batch * DIMENSION]
            .as_chunks::<2>()
            .0
            .iter()
            .map(|half| f16::from_le_bytes(*half))
            .collect();
        halves.convert_to_f32_slice(&mut numbers[..batch * DIMENSION]);
        let rows: Vec<(LatLon, String)> =
            (done..done + batch).map(|row| (cache.place(row), row.to_string())).collect();
        let (pushed, ms) = timed(|| {
            let embeddings = numbers.chunks_exact(DIMENSION);
            rows.iter()
                .zip(embeddings)
                .try_for_each(|((place, id), embedding)| writer.push(embedding, *place, id))
        });
        pushed?;
        spent += ms;
        done += batch;
    }
    let (finished, ms) = timed(|| writer.finish(|_| ()));
    finished?;
    Ok(spent + ms)
}

/// What an exact search finds for one query.
#[derive(Clone)]
struct Exact {
    /// Similarity of the tenth; minus infinity if there are fewer.
    all: f32,
    /// The same in the query's circles.
    within: f32,
    /// Rows in the circles.
    inside: usize,
}

/// Compares every query with every row, as plain products of the stored numbers.
fn exact(gallery: &Gallery, queries: &[f32], middles: &[[LatLon; CIRCLES]]) -> Vec<Exact> {
    let count = middles.len();
    let middles: Vec<[[f64; 3]; CIRCLES]> =
        middles.iter().map(|places| places.map(vector)).collect();
    let cosine = (CIRCLE_KM / EARTH_RADIUS_KM).cos();
    let mut best = vec![[vec![f32::NEG_INFINITY; HITS], vec![f32::NEG_INFINITY; HITS]]; count];
    let mut inside = vec![0; count];
    let mut products = vec![0.0; count * BATCH];
    let rows: Vec<usize> = (0..gallery.len()).collect();
    for batch in rows.chunks(BATCH) {
        let mut numbers: Vec<f32> = Vec::with_capacity(batch.len() * DIMENSION);
        for row in batch {
            let mut embedding = gallery.embedding(*row);
            let length = length(&embedding);
            embedding.iter_mut().for_each(|number| *number /= length);
            numbers.extend(embedding);
        }
        let places: Vec<[f64; 3]> = batch.iter().map(|row| vector(gallery.place(*row))).collect();
        let transposed = Dense { entries: &numbers, row: 1, column: DIMENSION };
        multiply(&mut products, queries, transposed, [count, batch.len(), DIMENSION]);
        for k in 0..count {
            let of_query = &products[k * batch.len()..][..batch.len()];
            for (place, similarity) in places.iter().zip(of_query) {
                insert(&mut best[k][0], *similarity);
                if middles[k].iter().any(|middle| dot(middle, place) >= cosine) {
                    inside[k] += 1;
                    insert(&mut best[k][1], *similarity);
                }
            }
        }
    }
    let exact = |([all, within], inside): ([Vec<f32>; 2], usize)| Exact {
        all: all[HITS - 1],
        within: within[HITS - 1],
        inside,
    };
    best.into_iter().zip(inside).map(exact).collect()
}

/// On the unit sphere.
fn vector(place: LatLon) -> [f64; 3] {
    let (sin, cos) = place.latitude().to_radians().sin_cos();
    let longitude = place.longitude().to_radians();
    [cos * longitude.cos(), cos * longitude.sin(), sin]
}

fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Keeps the highest, sorted.
fn insert(best: &mut [f32], similarity: f32) {
    let last = best.len() - 1;
    if similarity > best[last] {
        let at = best.partition_point(|other| *other >= similarity);
        best[at..].rotate_right(1);
        best[at] = similarity;
    }
}
