//! Retrieval among MP16's places by GeoCLIP's embeddings: everywhere, or around what a model says.

use burn::tensor::{Device, Tensor, TensorData};
use locdiff_experiments::paper::Task;
use locdiff_sphere::{EARTH_RADIUS_KM, LatLon, UnitVector};

/// As in the paper.
const NEAR_KM: f64 = 200.0;
const TOGETHER: usize = 250;

pub struct Gallery<'a> {
    task: &'a Task,
    vectors: Vec<[f32; 3]>,
    embeddings: Tensor<2>,
}

impl Gallery<'_> {
    pub fn new(task: &Task) -> Gallery<'_> {
        let places = &task.simulation.gallery;
        let values = task.simulation.embed(places);
        let data = TensorData::new(values, [places.len(), task.simulation.width]);
        Gallery {
            task,
            vectors: places.iter().map(|place| vector(*place)).collect(),
            embeddings: Tensor::from_data(data, &Device::flex()),
        }
    }

    /// The place whose embedding is nearest to each image, among those within 200 km of its candidates if there are some.
    /// If no place is, the first candidate stands.
    pub fn best(&self, images: &[f32], around: Option<&[Vec<LatLon>]>) -> Vec<LatLon> {
        let width = self.task.simulation.width;
        let cosine = (NEAR_KM / EARTH_RADIUS_KM).cos() as f32;
        let mut found = Vec::new();
        for images in images.chunks(TOGETHER * width) {
            let rows = images.len() / width;
            let data = TensorData::new(images.to_vec(), [rows, width]);
            let images = Tensor::<2>::from_data(data, &Device::flex());
            let products = images.matmul(self.embeddings.clone().transpose());
            let products: Vec<f32> = products.into_data().try_to_vec().expect("f32");
            for products in products.chunks_exact(self.vectors.len()) {
                let candidates = around.map(|around| &around[found.len()]);
                let near: Option<Vec<[f32; 3]>> =
                    candidates.map(|places| places.iter().map(|place| vector(*place)).collect());
                let is_near = |k: &usize| {
                    near.as_ref().is_none_or(|near| {
                        near.iter().any(|place| dot(*place, self.vectors[*k]) >= cosine)
                    })
                };
                let best = (0..products.len())
                    .filter(is_near)
                    .max_by(|a, b| products[*a].total_cmp(&products[*b]));
                let place = best.map(|best| self.task.simulation.gallery[best]);
                found.push(place.or_else(|| Some(candidates?[0])).expect("places or candidates"));
            }
        }
        found
    }
}

fn vector(place: LatLon) -> [f32; 3] {
    UnitVector::from(place).to_array().map(|part| part as f32)
}

fn dot(a: [f32; 3], b: [f32; 3]) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}
