//! What several views of one picture (flips, crops), or several draws for it, say together.

use burn::tensor::Tensor;
use locdiff_sphere::{Decoder, Density, InvalidDensity, LatLon, mean_place};

use super::sampler::{Diffusion, SampleOptions, coefficients_of};

impl Diffusion {
    /// The density of each view `[views, condition]`, mixed with equal weights: views that
    /// disagree leave several modes. `None` if the objective gives no probabilities.
    ///
    /// # Panics
    /// If there is no view.
    pub fn density_of_views(
        &self,
        views: Tensor<2>,
        options: SampleOptions,
    ) -> Option<Result<Density, InvalidDensity>> {
        let output = self.sample_views(views, options);
        let parts = self.densities(&output)?;
        Some(Density::mixture(parts.into_iter().map(|density| (1.0, density)).collect()))
    }

    /// The paper's ensemble: the mode of each view, averaged, but on the sphere instead of
    /// over latitudes and longitudes. Views that disagree give a place between them where
    /// none of them is. `None` if they cancel out.
    ///
    /// # Panics
    /// If there is no view.
    pub fn mean_place_of_views(&self, views: Tensor<2>, options: SampleOptions) -> Option<LatLon> {
        let output = self.sample_views(views, options);
        let decoder = Decoder::new(self.config().denoiser.max_degree);
        let modes: Vec<LatLon> =
            coefficients_of(&output).iter().map(|e| decoder.mode(e).place).collect();
        mean_place(&modes)
    }

    fn sample_views(&self, views: Tensor<2>, options: SampleOptions) -> Tensor<2> {
        let [count, _] = views.dims();
        assert!(count > 0, "no views");
        self.sample(Some(views), count, options, |_| ())
    }
}
