//! A density model and a gallery as one model.
//!
//! Rule `product`: the model's density times the likelihood ratio of the gallery's hits, normalized. Either of the two
//! can overrule the other. The prior of the gallery is divided out, so that the prior of the answer is the model's. Both look at
//! the same embedding: only numbers that were fitted with both ([`Fusion`]) account for what they have in common.
//!
//! Rule `paper` (LocDiff-H, appendix "A LocDiff-H Hybrid Approach"): samples of the model, the references within 200 km of
//! any of them, and of those the most similar is the answer. A kernel makes a density of that one place. What the model
//! excludes stays excluded. The paper's gallery is GeoCLIP's: places instead of photographs, as its location encoder embeds
//! them. A model on embeddings of CLIP ViT-L/14, on which GeoCLIP stands, searches such a gallery through GeoCLIP's head.

use locdiff_gallery::{EncoderIdentity, Fusion, FusionFit, Gallery, GalleryError, Hit, Likelihood};
use locdiff_sphere::{Area, Density, Kernel, LatLon, PointMasses};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::gallery_model::{gallery_version, mean_direction, reference};
use super::geoclip::{GeoClip, ImageHead};
use super::hybrid_files::{HybridConfig, HybridRule};
use super::opening::{CannotOpen, OpenOptions};
use crate::checksum::Checksum;
use crate::encoders::EncoderRecord;
use crate::geography::Constraint;
use crate::locate::{
    Estimate, Frame, Geolocator, Inference, InvalidInference, Located, LocationModel,
    ModelIdentity, NotItsKind, Sampler,
};
use crate::photo::Photo;

/// The name of GeoCLIP, and of the encoder that it stands on.
const GEOCLIP: &str = "geoclip";
const BACKBONE: &str = "clip-vit-l-14";
/// So many hits are looked at if some do not count: enough that others are left.
const SEARCHED_BEFORE_REMOVAL: usize = 4096;

/// A density model, a gallery of the same encoder, and the rule that makes one density of both.
#[derive(Debug)]
pub struct HybridModel {
    model: Geolocator,
    gallery: Gallery,
    /// None if the gallery is not fitted, which only the paper's rule permits.
    likelihood: Option<Likelihood>,
    /// The numbers of the product, if they were fitted with both.
    fusion: Option<Fusion>,
    config: HybridConfig,
    /// Makes queries of the model's embeddings, if the gallery is GeoCLIP's.
    head: Option<ImageHead>,
    identity: ModelIdentity,
}

impl HybridModel {
    /// A hybrid of its parts, which must fit together; GeoCLIP's head is found if the gallery needs it.
    pub(super) fn open(
        model: Geolocator,
        gallery: Gallery,
        config: HybridConfig,
        name: &str,
        fusion: Option<Fusion>,
        options: &OpenOptions,
    ) -> Result<HybridModel, CannotOpen> {
        let is_places = gallery.encoder().name == GEOCLIP;
        if is_places && model.model().embeds_with().is_some_and(|encoder| encoder.name != GEOCLIP) {
            let geoclip = GeoClip::open(&options.home()?.model(GEOCLIP), &options.device()?)?;
            let head = geoclip_head(&model, &gallery, &geoclip)?;
            return HybridModel::of_one_encoder(model, gallery, config, name, Some(head), fusion);
        }
        HybridModel::of_same_encoder(model, gallery, config, name, fusion)
    }

    /// A hybrid of a model on embeddings of CLIP ViT-L/14 and a gallery that GeoCLIP's location encoder made.
    pub fn with_geoclip(
        model: Geolocator,
        gallery: Gallery,
        config: HybridConfig,
        name: &str,
        geoclip: &GeoClip,
    ) -> Result<HybridModel, CannotOpen> {
        let head = geoclip_head(&model, &gallery, geoclip)?;
        HybridModel::of_one_encoder(model, gallery, config, name, Some(head), None)
    }

    /// A hybrid of its parts. Both must be of the same encoder; the rule `product` needs a fitted gallery.
    pub fn new(
        model: Geolocator,
        gallery: Gallery,
        config: HybridConfig,
        name: &str,
    ) -> Result<HybridModel, CannotOpen> {
        HybridModel::of_same_encoder(model, gallery, config, name, None)
    }

    fn of_same_encoder(
        model: Geolocator,
        gallery: Gallery,
        config: HybridConfig,
        name: &str,
        fusion: Option<Fusion>,
    ) -> Result<HybridModel, CannotOpen> {
        match model.model().embeds_with() {
            Some(encoder) if encoder.is_same(gallery.encoder()) => {
                HybridModel::of_one_encoder(model, gallery, config, name, None, fusion)
            }
            _ => Err(other_gallery(&model, &gallery)),
        }
    }

    fn of_one_encoder(
        model: Geolocator,
        gallery: Gallery,
        config: HybridConfig,
        name: &str,
        head: Option<ImageHead>,
        fusion: Option<Fusion>,
    ) -> Result<HybridModel, CannotOpen> {
        let part = model.identity().name.clone();
        let likelihood = match (Likelihood::read(&gallery), config.rule) {
            (Ok(likelihood), _) => Some(likelihood),
            (Err(GalleryError::NotFitted { .. }), HybridRule::Paper) => None,
            (Err(GalleryError::NotFitted { .. }), _) if fusion.is_some() => None,
            (Err(error), _) => return Err(error.into()),
        };
        let mut version = Checksum::default();
        version.update(serde_json::to_string(&config).expect("a configuration is JSON"));
        version.update(&model.identity().version);
        version.update(gallery_version(&gallery)?);
        let HybridConfig { rule, radius_km, .. } = config;
        let prior = match rule {
            HybridRule::Product => "the prior of the gallery is divided out".to_owned(),
            HybridRule::Paper => format!(
                "within {radius_km} km of its samples, photographs are taken where those of the gallery were: the prior \
                 of the gallery is not divided out"
            ),
        };
        let own = model.identity().prior.as_ref().map(|prior| format!("{prior}; "));
        let identity = ModelIdentity {
            name: name.to_owned(),
            version: version.finish_short(),
            description: format!(
                "{} of {part} and a gallery of {} references; {part} is {}",
                rule.in_words(),
                gallery.len(),
                model.identity().description,
            ),
            calibrated: false,
            prior: Some(own.unwrap_or_default() + &prior),
        };
        let hybrid =
            HybridModel { model, gallery, likelihood, fusion: None, config, head, identity };
        Ok(match fusion {
            Some(fusion) => hybrid.with_fusion(fusion),
            None => hybrid,
        })
    }

    /// With numbers that were fitted for this model and this gallery.
    pub fn with_fusion(mut self, fusion: Fusion) -> HybridModel {
        let mut version = Checksum::default();
        version.update(&self.identity.version);
        version.update(serde_json::to_string(&fusion).expect("numbers are JSON"));
        self.identity.version = version.finish_short();
        self.fusion = Some(fusion);
        self
    }

    /// Numbers of the product that fit embeddings of held-out photographs best. `held_out` names the data.
    pub fn fit(
        &self,
        rows: &[(Vec<f32>, LatLon, String)],
        held_out: &str,
    ) -> Result<Fusion, CannotOpen> {
        let model = self.model.identity().name.clone();
        let width = self.model.takes_embeddings_of().map(|(_, width)| width);
        let mut fit = FusionFit::new(&self.gallery);
        for (embedding, place, id) in rows {
            let known = width.is_some_and(|width| width == embedding.len());
            let estimates = if known { self.model.locate_embeddings(embedding, 1) } else { None };
            let Some(estimate) = estimates.and_then(|mut estimates| estimates.pop()) else {
                return Err(CannotOpen::NoEmbeddings { model });
            };
            let query = self.query(embedding, embedding.len());
            fit.push(&query, *place, id, estimate.density())?;
        }
        Ok(fit.finish(held_out, &self.model.identity().version)?)
    }

    /// What the answer to one embedding would be if the gallery had no references in an area: what it owes to them. `None` if
    /// the model takes photographs only.
    pub fn locate_without(
        &self,
        embedding: &[f32],
        inference: &Inference,
        removed: &Area,
    ) -> Option<Located> {
        let estimate = self.model.asked(inference).locate_embeddings(embedding, 1)?.pop()?;
        let removed = Some(removed);
        let query = self.query(embedding, embedding.len());
        Some(self.combined(&estimate, &query, inference, &[], removed))
    }

    /// What the gallery is searched with, from the embeddings of one or several views.
    fn query(&self, views: &[f32], width: usize) -> Vec<f32> {
        match &self.head {
            None => mean_direction(views, width),
            Some(head) => {
                let embedded = views.chunks_exact(width).map(|view| head.embed_row(view));
                mean_direction(&embedded.collect::<Vec<_>>().concat(), head.width())
            }
        }
    }

    /// What the model and the gallery make of a photograph together. An embedding of no use leaves the model's density.
    fn combined(
        &self,
        estimate: &Estimate,
        query: &[f32],
        inference: &Inference,
        within: &[Constraint],
        removed: Option<&Area>,
    ) -> Located {
        let density = estimate.density();
        let found = match self.config.rule {
            HybridRule::Product => self.product(density, query, removed),
            HybridRule::Paper => self.paper(density, query, inference, within, removed),
        };
        Located {
            footprint: estimate.footprint().copied(),
            warnings: estimate.warnings().to_vec(),
            ..found.unwrap_or_else(|_| density.clone().into())
        }
    }

    fn product(
        &self,
        density: &Density,
        query: &[f32],
        removed: Option<&Area>,
    ) -> Result<Located, GalleryError> {
        let count = if removed.is_some() { SEARCHED_BEFORE_REMOVAL } else { Likelihood::HITS };
        let mut hits = self.gallery.search(query, count)?;
        hits.retain(|hit| !self.is_in(removed, hit));
        hits.truncate(Likelihood::HITS);
        let density = match (&self.fusion, &self.likelihood) {
            (Some(fusion), _) => fusion.density(&self.gallery, &hits, density, removed)?,
            (None, Some(likelihood)) => {
                likelihood.evidence(&self.gallery, &hits)?.product(density)?
            }
            (None, None) => density.clone(),
        };
        Ok(self.located(density, &hits))
    }

    /// Without references near the samples, the answer is the model's own density.
    fn paper(
        &self,
        density: &Density,
        query: &[f32],
        inference: &Inference,
        within: &[Constraint],
        removed: Option<&Area>,
    ) -> Result<Located, GalleryError> {
        let areas = within.iter().map(Constraint::area);
        let narrowed = areas
            .clone()
            .try_fold(density.clone(), |density, area| density.restricted_to(area.clone()))?;
        let samples = self.samples(&narrowed, inference);
        // What lies beyond a border may be more similar than all within.
        let all = within.is_empty() && removed.is_none();
        let count = if all { Likelihood::HITS } else { self.gallery.len() };
        let mut hits =
            most_similar_near(&self.gallery, query, &samples, self.config.radius_km, count)?;
        hits.retain(|hit| {
            areas.clone().all(|area| self.is_in(Some(area), hit)) && !self.is_in(removed, hit)
        });
        hits.truncate(Likelihood::HITS);
        let Some(best) = hits.first() else { return Ok(density.clone().into()) };
        let kernel = match &self.likelihood {
            Some(likelihood) => Kernel::new(likelihood.width_km)?,
            None => Kernel::default(),
        };
        let winner = PointMasses::new(vec![self.gallery.place(best.row)], &[1.0])?;
        Ok(self.located(winner.spread(kernel), &hits))
    }

    /// Why the numbers of the product may no longer be right.
    fn outdated(&self, fusion: &Fusion) -> Option<String> {
        let (then, now) = (fusion.gallery_rows, self.gallery.len());
        let changed = if fusion.model_version != self.model.identity().version {
            "the model has changed or was calibrated".to_owned()
        } else if Likelihood::is_outgrown(then, now) {
            format!("the gallery has grown from {then} to {now} references")
        } else {
            return None;
        };
        Some(format!(
            "{changed} since its product with the gallery was fitted: make the hybrid again with `locdiff model hybrid … --data HELD_OUT`"
        ))
    }

    fn is_in(&self, area: Option<&Area>, hit: &Hit) -> bool {
        area.is_some_and(|area| area.contains(self.gallery.place(hit.row)))
    }

    /// Samples that the model has drawn, or, of a model that answers with a density, drawn from the density.
    fn samples(&self, density: &Density, inference: &Inference) -> Vec<LatLon> {
        match density {
            Density::PointMasses(spread) if spread.points().len() <= inference.draws() => {
                spread.points().places().to_vec()
            }
            density => {
                let mut rng = ChaCha8Rng::seed_from_u64(inference.seed);
                density.survey().sample(self.config.count, &mut rng)
            }
        }
    }

    fn located(&self, density: Density, hits: &[Hit]) -> Located {
        let references = hits.iter().map(|hit| reference(&self.gallery, hit)).collect();
        Located { references, ..Located::from(density) }
    }
}

/// The paper's second stage: the most similar references within a radius of any sample, best first.
pub fn most_similar_near(
    gallery: &Gallery,
    query: &[f32],
    samples: &[LatLon],
    radius_km: f64,
    count: usize,
) -> Result<Vec<Hit>, GalleryError> {
    let circles: Vec<Area> =
        samples.iter().filter_map(|place| Area::circle(*place, radius_km).ok()).collect();
    gallery.search_within(query, &circles, count)
}

/// What makes queries for a gallery of GeoCLIP's of the embeddings that a model takes.
fn geoclip_head(
    model: &Geolocator,
    gallery: &Gallery,
    geoclip: &GeoClip,
) -> Result<ImageHead, CannotOpen> {
    let head = &geoclip.image_head;
    let is_backbone = model.takes_embeddings_of().is_some_and(|(record, width)| {
        record.name.as_deref() == Some(BACKBONE) && width == head.feature_width()
    });
    let is_its_gallery = gallery.encoder().digest == format!("sha256:{}", geoclip.weights_sha256());
    if is_backbone && is_its_gallery {
        Ok(head.clone())
    } else {
        Err(other_gallery(model, gallery))
    }
}

/// The error for a gallery of another encoder; it names both.
fn other_gallery(model: &Geolocator, gallery: &Gallery) -> CannotOpen {
    let expected = model.model().embeds_with();
    CannotOpen::OtherGallery {
        model: model.identity().name.clone(),
        expected: expected.map_or("its own encoder".to_owned(), |encoder| encoder.to_string()),
        gallery: gallery.path().to_owned(),
        found: gallery.encoder().to_string(),
    }
}

impl LocationModel for HybridModel {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn inference(&self) -> Inference {
        *self.model.inference()
    }

    fn check(&self, inference: &Inference) -> Result<Vec<String>, InvalidInference> {
        let mut warnings = self.model.model().check(inference)?;
        warnings.extend(self.fusion.as_ref().and_then(|fusion| self.outdated(fusion)));
        if self.config.rule == HybridRule::Paper {
            warnings.push(
                "the paper's rule answers with one reference: radii and regions are those of the kernel"
                    .to_owned(),
            );
        } else if self.fusion.is_none() {
            warnings.push(
                "the gallery was fitted without the model: both use the same picture, and their product is overconfident. \
                 Fit them together with `locdiff model hybrid … --data HELD_OUT`"
                    .to_owned(),
            );
        }
        Ok(warnings)
    }

    fn locate(&self, photos: &[Photo], inference: &Inference) -> Vec<Result<Located, NotItsKind>> {
        self.locate_within(photos, inference, &[])
    }

    fn locate_within(
        &self,
        photos: &[Photo],
        inference: &Inference,
        within: &[Constraint],
    ) -> Vec<Result<Located, NotItsKind>> {
        let model = self.model.asked(inference);
        let queries = model.embed(photos);
        if queries.len() != photos.len() {
            let why = "the model was opened without its encoder";
            return photos.iter().map(|_| Err(NotItsKind::Other(why.to_owned()))).collect();
        }
        // A photograph is embedded once if one view of it is all that the model takes.
        let once = (inference.views == 1)
            .then(|| model.locate_embeddings(&queries.concat(), 1))
            .flatten()
            .map(|estimates| estimates.into_iter().map(Ok).collect());
        let estimates: Vec<_> = once.unwrap_or_else(|| model.locate_all(photos));
        let jobs = estimates.into_par_iter().zip(&queries);
        jobs.map(|(estimate, query)| {
            let estimate = estimate?;
            Ok(self.combined(&estimate, &self.query(query, query.len()), inference, within, None))
        })
        .collect()
    }

    fn embed(&self, photos: &[Photo]) -> Vec<Vec<f32>> {
        self.model.embed(photos)
    }

    fn locate_embeddings(
        &self,
        embeddings: &[f32],
        views: usize,
        inference: &Inference,
    ) -> Option<Vec<Located>> {
        let (_, width) = self.model.takes_embeddings_of()?;
        let estimates = self.model.asked(inference).locate_embeddings(embeddings, views)?;
        let jobs = estimates.into_par_iter().zip(embeddings.par_chunks_exact(views * width));
        let combined = jobs.map(|(estimate, row)| {
            let query = self.query(row, width);
            self.combined(&estimate, &query, inference, &[], None)
        });
        Some(combined.collect())
    }

    fn takes_embeddings_of(&self) -> Option<(&EncoderRecord, usize)> {
        self.model.takes_embeddings_of()
    }

    fn embeds_with(&self) -> Option<EncoderIdentity> {
        self.model.model().embeds_with()
    }

    fn denoising(&self, photo: &Photo, frames: usize, inference: &Inference) -> Vec<Frame> {
        self.model.model().denoising(photo, frames, inference)
    }

    fn rejects_pictures(&self) -> bool {
        self.model.rejects_pictures()
    }

    fn compares_with_maps(&self) -> bool {
        self.model.model().compares_with_maps()
    }

    fn usual_steps(&self, sampler: Sampler) -> Option<usize> {
        self.model.model().usual_steps(sampler)
    }

    fn evaluations(&self, inference: &Inference) -> usize {
        self.model.model().evaluations(inference)
    }

    fn steps_of_denoising(&self, inference: &Inference) -> usize {
        self.model.model().steps_of_denoising(inference)
    }

    fn can_denoise(&self) -> bool {
        self.model.can_denoise()
    }
}
