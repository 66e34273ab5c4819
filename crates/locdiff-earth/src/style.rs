//! How strongly pictures are changed from the plain map.

/// Strengths of everything that a camera in orbit adds to the map: 0 is none, 1 what real
/// photographs show; each view draws its own values below that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Style {
    /// Sun from high to low, brightness, terminator.
    pub light: f32,
    /// Blue air, thicker with the tilt and towards the limb.
    pub haze: f32,
    /// Clouds with shadows.
    pub clouds: f32,
    /// Snow and ice by latitude and season.
    pub snow: f32,
    /// The sea's colours, from nearly black to turquoise, and its gradients.
    pub sea: f32,
    /// The sun's reflection on the sea.
    pub glint: f32,
    /// White balance, saturation, contrast, gamma.
    pub colour: f32,
    /// Blur and sharpening.
    pub blur: f32,
    /// Dark corners.
    pub vignette: f32,
    /// Noise of the sensor.
    pub noise: f32,
    /// Share of views that go through a real JPEG file of low quality.
    pub jpeg_share: f32,
    /// Share of views by night, where there is imagery for them.
    pub night_share: f32,
}

impl Style {
    /// The map as it is, in perspective, with a plain sea.
    pub fn plain() -> Self {
        Self {
            light: 0.0,
            haze: 0.0,
            clouds: 0.0,
            snow: 0.0,
            sea: 0.0,
            glint: 0.0,
            colour: 0.0,
            blur: 0.0,
            vignette: 0.0,
            noise: 0.0,
            jpeg_share: 0.0,
            night_share: 0.0,
        }
    }

    /// What the model is trained on: the weather in which crews take pictures, mostly clear.
    pub fn training() -> Self {
        Self {
            light: 0.8,
            haze: 0.5,
            clouds: 0.5,
            snow: 0.9,
            sea: 1.0,
            glint: 0.7,
            colour: 0.7,
            blur: 0.5,
            vignette: 0.6,
            noise: 0.4,
            jpeg_share: 0.2,
            night_share: 0.15,
        }
    }
}

impl Default for Style {
    fn default() -> Self {
        Self::training()
    }
}
