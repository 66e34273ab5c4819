//! Public test sets: where to get each, how its files look, how to know that it is whole.
//!
//! Nothing is fetched: pictures belong to their photographers, and some sets may only be had from
//! their makers. Addresses were right when this was written.

/// A public set of images with places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Benchmark {
    /// By which it is asked for.
    pub key: &'static str,
    /// As the field calls it.
    pub name: &'static str,
    /// Images of the whole set, if it has a fixed number.
    pub images: Option<usize>,
    /// Authors, kind of photographs, and what to know before using it.
    pub about: &'static str,
    /// Where images and places come from.
    pub source: &'static str,
    /// The file of places, and its columns.
    pub file: &'static str,
    /// Whether names in that file lack the ending `.jpg`.
    pub names_lack_ending: bool,
    /// A digest of names and places of the whole set, where it is known: see
    /// [`Completeness`](super::Completeness).
    pub digest: Option<&'static str>,
    /// Who may use it for what, as far as we know.
    pub licence: &'static str,
}

const FLICKR: &str = "The photographs belong to their owners on Flickr, each under its own license; places are published with the \
     GeoEstimation code (GPL-3.0). Research use is customary; don't redistribute the photographs.";

/// The sets that papers report.
pub const BENCHMARKS: [Benchmark; 7] = [
    Benchmark {
        key: "im2gps",
        name: "Im2GPS",
        images: Some(237),
        about: "Test set of Hays and Efros (CVPR 2008): holiday photographs, some of landmarks. Small: one image is 0.42 %.",
        source: "Images: graphics.cs.cmu.edu/projects/im2gps (test images). Places: im2gps_places365.csv in the folder meta of \
                 github.com/TIBHannover/GeoEstimation, branch original_tf.",
        file: "im2gps_places365.csv: IMG_ID,AUTHOR,LAT,LON and scene labels; IMG_ID is the file name",
        names_lack_ending: false,
        digest: Some("9bb577f07a35fe14bec91f8315a4f8c1e0b6fe75dd9a90955596ad61623b227c"),
        licence: FLICKR,
    },
    Benchmark {
        key: "im2gps3k",
        name: "Im2GPS3k",
        images: Some(2997),
        about: "Test set of Vo, Jacobs and Hays (ICCV 2017): Flickr photographs, the most reported benchmark.",
        source: "Images: im2gps3ktest.zip by way of github.com/lugiavn/revisiting-im2gps. Places: im2gps3k_places365.csv in the \
                 folder meta of github.com/TIBHannover/GeoEstimation, branch original_tf. The archive has about 3,000 images, of which 2,997 have a published place.",
        file: "im2gps3k_places365.csv: IMG_ID,AUTHOR,LAT,LON and scene labels; IMG_ID is the file name",
        names_lack_ending: false,
        digest: Some("24204783658e7b34558a328d7fb322c1d2f03606da6eac360b5fea926e375186"),
        licence: FLICKR,
    },
    Benchmark {
        key: "yfcc4k",
        name: "YFCC4k",
        images: Some(4536),
        about: "Test set of Vo, Jacobs and Hays (ICCV 2017): photographs of YFCC100M, hard because few of them were chosen for their view.",
        source: "Images: yfcc4k.zip by way of github.com/lugiavn/revisiting-im2gps. Places: a table by photo id, as yfcc4k_places365.csv of \
                 other projects, or yfcc_4k_dataset_with_gps.csv (tabs) made by plonk's scripts from YFCC100M's metadata.",
        file: "photo_id, longitude, latitude, separated by tabs; or IMG_ID,LAT,LON",
        names_lack_ending: true,
        digest: None,
        licence: "YFCC100M: each photograph under the Creative Commons license that its metadata states, some without commercial use; the metadata under Yahoo's Webscope terms.",
    },
    Benchmark {
        key: "yfcc26k",
        name: "YFCC26k",
        images: Some(25_600),
        about: "Validation set of Theiner et al. (WACV 2022): 25,600 photographs of YFCC100M.",
        source: "Places: yfcc25600_places365.csv, and addresses of the images yfcc25600_urls.csv, among the releases (`pytorch`) of github.com/TIBHannover/GeoEstimation. \
                 Images are fetched from Flickr one by one. Some are no longer available: report how many you used.",
        file: "yfcc25600_places365.csv: IMG_ID,LAT,LON and scene labels; IMG_ID is a path such as 45/77/3228511372.jpg",
        names_lack_ending: false,
        digest: Some("53685d216bbb8beee2388a8d4adcdd0d2787a50bb0a90c31caef662e0212c8f4"),
        licence: "YFCC100M: each photograph under the Creative Commons license that its metadata states, some without commercial use.",
    },
    Benchmark {
        key: "gws15k",
        name: "GWS15k",
        images: None,
        about: "Google World Streets of Clark et al. (CVPR 2023): about 15,000 street views, spread over the countries by area and population.",
        source: "Not published: github.com/AHKerrigan/GeoGuessNet, issue 1. Numbers on a re-created set are not comparable with those of the paper.",
        file: "a file of its authors: a table with the columns image, latitude, longitude",
        names_lack_ending: false,
        digest: None,
        licence: "Google Street View's terms forbid storing and redistributing its pictures.",
    },
    Benchmark {
        key: "osv5m",
        name: "OSV-5M",
        images: Some(210_122),
        about: "OpenStreetView-5M of Astruc et al. (CVPR 2024), test set: street views of 225 countries and territories, at least 1 km from any training image.",
        source: "Dataset osv5m/osv5m of the Hugging Face hub: test.csv and images/test/*.zip. (Its training set has 4,894,685 images: train.csv.)",
        file: "test.csv: id,latitude,longitude,country,… ; the image is id.jpg",
        names_lack_ending: true,
        digest: None,
        licence: "CC BY-SA 4.0, as Mapillary's images are: name Mapillary and its contributors, share alike.",
    },
    Benchmark {
        key: "mp16",
        name: "MP16",
        images: Some(4_723_695),
        about: "MediaEval Placing Task 2016: photographs of YFCC100M, the usual set for training. Not a test set.",
        source: "Places: mp16_places365.csv, and addresses mp16_urls.csv, among the releases (`v1.0`) of github.com/TIBHannover/GeoEstimation; a copy with images is \
                 dataset Jia-py/MP16-Pro of the Hugging Face hub. Many of the 4,723,695 images are no longer available (MP16-Pro of 2024 has about 4.1 million): report how many you used.",
        file: "mp16_places365.csv: IMG_ID,AUTHOR,LAT,LON and scene labels; IMG_ID is a path such as f1/7b/9503350142.jpg",
        names_lack_ending: false,
        digest: None,
        licence: "YFCC100M: each photograph under the Creative Commons license that its metadata states, some without commercial use.",
    },
];

impl Benchmark {
    /// The one with a key or a name, in any case.
    pub fn find(name: &str) -> Option<&'static Benchmark> {
        BENCHMARKS.iter().find(|benchmark| {
            benchmark.key.eq_ignore_ascii_case(name) || benchmark.name.eq_ignore_ascii_case(name)
        })
    }
}
