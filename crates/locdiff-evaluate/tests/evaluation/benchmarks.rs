//! Miniatures of public test sets, in the shape in which these are published.

use std::fs;
use std::path::Path;

use locdiff_evaluate::{
    BENCHMARKS, Benchmark, Completeness, make_manifest, manifest_path, read_manifest,
};

/// The published file with made-up rows, the files of images as they unpack, and the manifest's first column.
const MINIATURES: [(&str, &str, &[&str], &[&str]); 7] = [
    (
        "im2gps",
        "IMG_ID,AUTHOR,LAT,LON,S3_Label,S16_Label,S365_Label,Prob_indoor,Prob_natural,Prob_urban\n\
         104_7410c_19_193@N00.jpg,193@N00,-16.663606,145.563537,1,8,150,0.003,0.778,0.219\n\
         Paris_00005_444_0054_27_989@N00.jpg,0054_27_989@N00,48.853717,2.347738,2,11,252,0.1,0.1,0.8\n",
        &["104_7410c_19_193@N00.jpg", "Paris_00005_444_0054_27_989@N00.jpg", "readme.txt"],
        &["104_7410c_19_193@N00.jpg", "Paris_00005_444_0054_27_989@N00.jpg"],
    ),
    (
        "im2gps3k",
        "IMG_ID,AUTHOR,LAT,LON,S3_Label,S16_Label,S365_Label,Prob_indoor,Prob_natural,Prob_urban\n\
         1000269685_e60e_1125_788@N00.jpg,788@N00,32.325436,-64.764404,1,6,48,0.0,0.9,0.1\n",
        &["im2gps3ktest/1000269685_e60e_1125_788@N00.jpg", "im2gps3ktest/without-a-place.jpg"],
        &["im2gps3ktest/1000269685_e60e_1125_788@N00.jpg"],
    ),
    (
        "yfcc4k",
        "photo_id\tlongitude\tlatitude\taccuracy\textension\tdownload_url\tmedia_type\thash\n\
         6985418911\t-2.5\t51.45\t16.0\tjpg\tx\t0.0\t3a2\n",
        &["yfcc4k/6985418911.jpg"],
        &["yfcc4k/6985418911.jpg"],
    ),
    (
        "yfcc26k",
        "IMG_ID,LAT,LON,S3_Label,S16_Label,S365_Label,Prob_indoor,Prob_natural,Prob_urban\n\
         45/77/3228511372.jpg,46.778991,23.611207,2,15,1,0.1,0.1,0.8\n\
         2e/b5/4325164013.jpg,40.445378999999996,116.66398999999998,2,15,1,0.1,0.1,0.8\n",
        &["45/77/3228511372.jpg"],
        &["45/77/3228511372.jpg"],
    ),
    (
        "gws15k",
        "image,latitude,longitude\npano-a.png,-1.5,29.6\n",
        &["pano-a.png"],
        &["pano-a.png"],
    ),
    (
        "osv5m",
        "id,latitude,longitude,thumb_original_url,country,sequence,captured_at,lon_bin,lat_bin,cell,region,sub-region,city\n\
         3859149887465501,-16.58,-151.3,\"https://x/?a=1,2\",PF,abc,1.5e12,8,30,1,\"Leeward Islands\",,Taputapuatea\n\
         487556889045765,69.3,88.2,x,RU,abd,1.5e12,8,30,1,Krasnoyarskiy,,Norilsk\n",
        &["test/00/3859149887465501.jpg", "test/01/487556889045765.jpg"],
        &["test/00/3859149887465501.jpg", "test/01/487556889045765.jpg"],
    ),
    (
        "mp16",
        "IMG_ID,AUTHOR,LAT,LON,S3_Label,S16_Label,S365_Label,Prob_indoor,Prob_natural,Prob_urban\n\
         f1/7b/9503350142.jpg,9@N0,-90,180,1,6,48,0.0,0.9,0.1\n",
        &["f1/7b/9503350142.jpg"],
        &["f1/7b/9503350142.jpg"],
    ),
];

fn unpack(folder: &Path, files: &[&str]) {
    for file in files {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "a picture").unwrap();
    }
}

#[test]
fn every_published_file_becomes_the_one_manifest() {
    assert_eq!(MINIATURES.map(|(key, ..)| key), BENCHMARKS.map(|benchmark| benchmark.key));
    for (key, published, files, expected) in MINIATURES {
        let benchmark = Benchmark::find(key).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let (places, images) = (directory.path().join("places"), directory.path().join("images"));
        fs::write(&places, published).unwrap();
        unpack(&images, files);
        let (manifest, missing) = make_manifest(benchmark, &places, Some(&images)).unwrap();
        let rows = published.lines().count() - 1;
        assert_eq!(missing, rows - expected.len(), "{key}");
        fs::write(images.join("manifest.csv"), &manifest).unwrap();
        let table = read_manifest(&manifest_path(&images)).unwrap();
        let names: Vec<&str> = table.rows.iter().map(|row| row.image.as_deref().unwrap()).collect();
        assert_eq!(names, expected, "{key}");
        let found = Completeness::of(&manifest_path(&images), Some(benchmark)).unwrap();
        assert!(found.files_missing.is_empty(), "{key}: {found:?}");
        // A miniature isn't the whole set, unless its size is unknown.
        assert_eq!(found.is_complete(), benchmark.images.is_none(), "{key}");
        // Without images, all rows are kept, with names as they will unpack.
        let (manifest, missing) = make_manifest(benchmark, &places, None).unwrap();
        assert_eq!((missing, manifest.lines().count()), (0, rows + 1));
    }
}

#[test]
fn the_digest_knows_names_and_places_but_no_order_and_no_folders() {
    let directory = tempfile::tempdir().unwrap();
    let digest = |text: &str| {
        let path = directory.path().join("manifest.csv");
        fs::write(&path, text).unwrap();
        Completeness::of(&path, None).unwrap().digest
    };
    let first = digest("image,latitude,longitude\na/1.jpg,10,20\n2.png,-5.1234564,180\n");
    let same = digest("IMG_ID,LON,LAT\nb/2.jpg,-180,-5.1234561\n1.jpg,20,10.0\n");
    assert_eq!(first, same);
    // sha256 of "1 10.000000 20.000000\n2 -5.123456 -180.000000\n"
    assert_eq!(first, "4c1023346d5d7f5266e80c4d7b59d8808e7fe1a162bdfaa955938873609032fe");
    assert_ne!(first, digest("image,latitude,longitude\na/1.jpg,10,20\n2.png,-5.2,180\n"));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("manifest.csv");
    fs::write(&path, "image,latitude,longitude\nhere.jpg,0,0\ngone.jpg,0,0\n").unwrap();
    unpack(directory.path(), &["here.jpg"]);
    let found = Completeness::of(&path, None).unwrap();
    assert_eq!((found.images, found.files_missing), (2, vec!["gone.jpg".to_owned()]));
}
