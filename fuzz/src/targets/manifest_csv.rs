//! CSV files: lists of images, and tables of places that others wrote.

use std::path::Path;

use locdiff_evaluate::{PlaceTable, Role, Units, read_manifest};
use locdiff_train::EmbedError;
use locdiff_train::images::visit_csv;

use crate::{Target, folder};

pub(super) const TARGET: Target = Target {
    name: "manifest_csv",
    reads: "CSV lists of images, tables of places",
    longest: 4 << 10,
    most_bytes: 16 << 20,
    run,
    seeds,
};

fn run(input: &[u8]) {
    let mut rows = 0;
    let _ = visit_csv::<EmbedError>(Path::new("list.csv"), input, &mut |listed| {
        rows += 1;
        assert!(listed.bad.is_some() || !listed.path.as_os_str().is_empty());
        Ok(())
    });
    assert!(rows <= input.len());
    let folder = folder::with_file("places.csv", input);
    let path = folder.path().join("places.csv");
    for role in [Role::Answers, Role::Truth] {
        for units in [Units::Degrees, Units::Radians] {
            let Ok(table) = PlaceTable::read(&path, role, units) else { continue };
            assert!(!table.rows.is_empty() && table.rows.len() <= input.len());
        }
    }
    if let Ok(table) = read_manifest(&path) {
        assert!(table.has_images());
    }
}

fn seeds() -> Vec<Vec<u8>> {
    [
        "path,id,latitude,longitude\na.jpg,1,48.85,2.35\n\"b,\"\"c\"\".jpg\",,,\nd.jpg,2,91,0\n",
        "IMG_FILE,LAT,LON\na.jpg,48.85,2.35\n",
        "photo_id\tlatitude\tlongitude\n1\t-33.8\t151.2\n2\tnan\tnan\n",
        "img_id;gt_lat;gt_lon;predicted_lat;predicted_lon\nx;1;2;3;4\n",
        "# 0.84 0.04\n-0.5 1.2\n",
        "image,rank,latitude,longitude,nll_nats\nx,1,1,2,0.5\nx,2,3,4,0.5\n",
        "48.85,2.35\n-1e0,+179.5\n",
        "\u{feff}image,latitude,longitude\r\na.jpg,1,2\r\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}
