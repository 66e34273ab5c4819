//! What a search finds, against a comparison with every row.

use locdiff_sphere::{Area, LatLon};

use crate::made::{append, as_good, brute_force, build, clustered, queries};

fn at(latitude: f64, longitude: f64) -> LatLon {
    LatLon::new(latitude, longitude).unwrap()
}

#[test]
fn a_search_finds_the_best_rows() {
    for (rows, dimension) in [(20_000, 128), (6000, 512), (1500, 70), (3, 5)] {
        let directory = tempfile::tempdir().unwrap();
        let rows = clustered(1, rows, dimension);
        let gallery = build(&directory.path().join("gallery"), &rows);
        let (mut found, mut wanted) = (0, 0);
        for query in queries(&rows, 25) {
            let hits = gallery.search(&query, 10).unwrap();
            let reference = brute_force(&gallery, &query, None);
            assert_eq!(hits.len(), 10.min(rows.len()));
            assert!(hits.windows(2).all(|pair| pair[0].similarity >= pair[1].similarity));
            for hit in &hits {
                let exact = reference.iter().find(|(_, row)| *row == hit.row).unwrap().0;
                assert!((f64::from(hit.similarity) - exact).abs() < 1e-6);
            }
            found += as_good(&hits, &reference);
            wanted += hits.len();
        }
        let recall = found as f64 / wanted as f64;
        assert!(recall >= 0.98, "{} rows of {dimension}: recall {recall}", rows.len());
    }
}

#[test]
fn rows_are_stored_with_their_places_and_ids() {
    let directory = tempfile::tempdir().unwrap();
    let mut rows = clustered(2, 300, 20);
    rows[7].2 = "two\nlines, ünïcode".to_owned();
    rows[8].2 = String::new();
    let gallery = build(&directory.path().join("gallery"), &rows);
    assert_eq!(gallery.len(), rows.len());
    for (embedding, place, id) in &rows {
        let row = (0..rows.len()).find(|row| gallery.id(*row) == id).unwrap();
        assert_eq!(gallery.place(row), *place);
        let length = embedding.iter().map(|x| x * x).sum::<f32>().sqrt();
        for (stored, number) in gallery.embedding(row).iter().zip(embedding) {
            assert!((stored - number / length).abs() < 5e-4);
        }
    }
}

#[test]
fn a_restricted_search_is_exact() {
    let directory = tempfile::tempdir().unwrap();
    let mut rows = clustered(3, 8000, 96);
    // Poles and the antimeridian have rows too.
    for (row, center) in
        [at(90.0, 0.0), at(-90.0, 0.0), at(10.0, 180.0), at(48.86, 2.35)].into_iter().enumerate()
    {
        for k in 0..200 {
            let place = center.destination(f64::from(k) * 17.0, f64::from(k) * 1.5);
            rows[1000 * row + k as usize].1 = place;
        }
    }
    let path = directory.path().join("gallery");
    build(&path, &rows[..5000]);
    let gallery = append(&path, &rows[5000..]);
    let circle =
        |latitude, longitude, radius| Area::circle(at(latitude, longitude), radius).unwrap();
    let sixteen = rows.iter().step_by(500).map(|row| Area::circle(row.1, 200.0).unwrap()).collect();
    let cases: Vec<Vec<Area>> = vec![
        vec![circle(90.0, 0.0, 150.0)],
        vec![circle(-89.0, 60.0, 150.0)],
        vec![circle(10.0, -179.9, 100.0), circle(10.0, 179.5, 120.0)],
        vec![Area::bounding_box(0.0, 179.0, 20.0, -179.0).unwrap(), circle(48.86, 2.35, 3.0)],
        vec![Area::whole()],
        vec![circle(0.0, -140.0, 0.1)],
        sixteen,
    ];
    for areas in cases {
        for query in queries(&rows, 5) {
            let hits = gallery.search_within(&query, &areas, 10).unwrap();
            let reference = brute_force(&gallery, &query, Some(&areas));
            assert_eq!(hits.len(), 10.min(reference.len()), "{areas:?}");
            assert_eq!(as_good(&hits, &reference), hits.len(), "{areas:?}");
            for hit in hits {
                assert!(areas.iter().any(|area| area.contains(gallery.place(hit.row))));
            }
        }
    }
}

#[test]
fn threads_share_a_gallery() {
    let directory = tempfile::tempdir().unwrap();
    let rows = clustered(6, 500, 16);
    let gallery = build(&directory.path().join("gallery"), &rows);
    let alone = gallery.search(&rows[0].0, 5).unwrap();
    std::thread::scope(|scope| {
        let search = || gallery.search(&rows[0].0, 5).unwrap();
        let threads = [scope.spawn(search), scope.spawn(search)];
        for thread in threads {
            assert_eq!(thread.join().unwrap(), alone);
        }
    });
}

#[test]
fn queries_of_no_use_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let rows = clustered(4, 100, 8);
    let gallery = build(&directory.path().join("gallery"), &rows);
    let error = |query: &[f32]| gallery.search(query, 3).unwrap_err().to_string();
    assert_eq!(error(&[1.0; 7]), "the query has 7 numbers, the encoder makes 8");
    assert!(error(&[0.0; 8]).contains("the query is zero everywhere"));
    assert!(error(&[f32::NAN; 8]).contains("the query is NaN at position 0"));
    assert!(gallery.search(&[1.0; 8], 0).unwrap().is_empty());
    assert_eq!(gallery.search(&[1.0; 8], usize::MAX).unwrap().len(), 100);
}

#[test]
fn info_measures_the_gallery() {
    let directory = tempfile::tempdir().unwrap();
    let mut rows = clustered(5, 200, 16);
    for (k, row) in rows.iter_mut().enumerate() {
        row.1 = at(-50.0 + (k / 20) as f64, 170.0 + (k % 20) as f64);
    }
    let gallery = build(&directory.path().join("gallery"), &rows);
    let info = gallery.info().unwrap();
    assert_eq!((info.rows, info.segments), (200, 1));
    // A degree of longitude at 45.5° south.
    let expected = at(-45.5, 0.0).distance_km(at(-45.5, 1.0));
    let median = info.median_nearest_km.unwrap();
    assert!((median / expected - 1.0).abs() < 0.1, "{median} {expected}");
    let alone = build(&directory.path().join("alone"), &rows[..1]);
    assert_eq!(alone.info().unwrap().median_nearest_km, None);
}
