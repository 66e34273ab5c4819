//! `locdiff gallery search`: the references that are most similar to a photograph.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use locdiff::geography::{InvalidConstraint, place_name};
use locdiff::locate::PlaceFacts;
use locdiff::photo::Crops;
use locdiff::{Constraint, Photo};
use locdiff_gallery::{Evidence, Gallery, GalleryError, Hit, Likelihood};
use locdiff_sphere::{Area, Density, LatLon};
use serde::Serialize;
use serde_json::json;

use super::{drawing, encoder};
use crate::text::{json_stdout, on_one_line};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The gallery
    #[arg(value_name = "DIR")]
    gallery: PathBuf,
    /// A photograph
    photo: PathBuf,
    /// How many references to show
    #[arg(short = 'k', long, value_name = "K", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    count: u64,
    /// Only references in this area: a country, `land`, SOUTH,WEST,NORTH,EAST, LAT,LON,RADIUSkm, or a GeoJSON file of
    /// polygons. If given several times, all must hold
    #[arg(short, long, value_name = "AREA", value_parser = parse_constraint, allow_hyphen_values = true)]
    within: Vec<Constraint>,
    /// Draw a map of the references: a .png or .svg file. For a fitted gallery, the map also shows the density
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Divide the prior of the gallery out of the density: photographs are as probable where it has few references as
    /// where it has many
    #[arg(long)]
    even: bool,
    /// Encoder of the photograph [default: the gallery's encoder, by its name]
    #[arg(long, value_name = "NAME")]
    encoder: Option<String>,
    /// Device to compute on: cpu, cuda:N, wgpu or metal, if this program was built with it
    #[arg(long, default_value = "cpu")]
    device: String,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// A reference, as it is printed.
#[derive(Serialize)]
struct Reference {
    id: String,
    similarity: f32,
    place: PlaceFacts,
}

impl Reference {
    fn new(gallery: &Gallery, hit: &Hit) -> Reference {
        let place = gallery.place(hit.row);
        Reference {
            id: gallery.id(hit.row).to_owned(),
            similarity: hit.similarity,
            place: PlaceFacts::new(place, &place_name(place)),
        }
    }
}

fn parse_constraint(text: &str) -> Result<Constraint, String> {
    text.parse().map_err(|error: InvalidConstraint| error.to_string())
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if let Some(plot) = &arguments.plot {
        drawing::check_destination(plot, &arguments.photo)?;
    }
    let gallery = encoder::open_gallery(&arguments.gallery)?;
    let photo = &arguments.photo;
    let read = Photo::open(photo).with_context(|| photo.display().to_string())?;
    // The first name takes a third of a second: meanwhile the encoder is opened.
    std::thread::spawn(|| LatLon::new(0.0, 0.0).map(place_name));
    let encoder = encoder::of_gallery(&gallery, arguments.encoder.as_deref(), &arguments.device)?;
    let query = encoder.embed_photos(std::slice::from_ref(&read), &Crops::Single);
    let fitted = match Likelihood::read(&gallery) {
        Ok(likelihood) => Some(likelihood),
        Err(GalleryError::NotFitted { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    // The likelihood needs its number of hits, however few are shown.
    let count = (arguments.count as usize).max(if fitted.is_some() { Likelihood::HITS } else { 0 });
    let hits = search(&gallery, &query, &arguments.within, count)?;
    // Within an area hits say which of its references are similar, not whether the photograph was taken there.
    let fitted = fitted.filter(|_| arguments.within.is_empty());
    let evidence = fitted.as_ref().map(|fitted| fitted.evidence(&gallery, &hits)).transpose()?;
    let shown = &hits[..hits.len().min(arguments.count as usize)];
    let references: Vec<Reference> =
        shown.iter().map(|hit| Reference::new(&gallery, hit)).collect();
    if let Some(plot) = &arguments.plot {
        let places: Vec<LatLon> = shown.iter().map(|hit| gallery.place(hit.row)).collect();
        let density = |evidence: &Evidence| match arguments.even {
            true => evidence.product(&Density::uniform()),
            false => evidence.density(),
        };
        drawing::draw(plot, photo, &places, evidence.as_ref().map(density).transpose()?)?;
    }
    print(arguments, &gallery, &references, fitted.as_ref().zip(evidence.as_ref()))
}

/// The best hits in all of the areas.
fn search(
    gallery: &Gallery,
    query: &[f32],
    within: &[Constraint],
    count: usize,
) -> Result<Vec<Hit>, GalleryError> {
    let Some((first, others)) = within.split_first() else { return gallery.search(query, count) };
    let is_in = |hit: &Hit| {
        let place = gallery.place(hit.row);
        others.iter().all(|constraint: &Constraint| constraint.area().contains(place))
    };
    let area: &[Area] = std::slice::from_ref(first.area());
    // Hits of the first area are tested one by one, and more are asked for until enough are left.
    let mut asked = count;
    loop {
        let found = gallery.search_within(query, area, asked)?;
        let all = found.len() < asked || asked >= gallery.len();
        let mut hits: Vec<Hit> = found.into_iter().filter(is_in).collect();
        if hits.len() >= count || all {
            hits.truncate(count);
            return Ok(hits);
        }
        asked = asked.saturating_mul(8);
    }
}

fn print(
    arguments: &Arguments,
    gallery: &Gallery,
    references: &[Reference],
    fitted: Option<(&Likelihood, &Evidence)>,
) -> anyhow::Result<()> {
    let mut out = crate::text::stdout();
    let within: Vec<String> = arguments.within.iter().map(Constraint::to_string).collect();
    if arguments.json {
        let near = fitted.map(|(likelihood, evidence)| {
            json!({
                "probability": evidence.share(),
                "width_km": likelihood.width_km,
                "held_out_rows": likelihood.held_out_rows,
                "prior_divided_out": arguments.even,
            })
        });
        let answer = json!({
            "image": arguments.photo.display().to_string(),
            "gallery": arguments.gallery.display().to_string(),
            "references": gallery.len(),
            "encoder": gallery.encoder(),
            "within": within,
            "hits": references,
            "near": near,
        });
        writeln!(json_stdout(), "{answer}")?;
        return Ok(());
    }
    writeln!(out, "{}", on_one_line(&arguments.photo.display().to_string()))?;
    if references.is_empty() {
        writeln!(out, "  no reference within {}", within.join(" and "))?;
    }
    let lengths = references.iter().map(|reference| reference.id.chars().count());
    let id_width = lengths.max().unwrap_or(0).min(60);
    for (rank, reference) in references.iter().enumerate() {
        let place = format!("{:.4},{:.4}", reference.place.latitude, reference.place.longitude);
        writeln!(
            out,
            "  {:>2}  {:.4}  {:<id_width$}  {place:<19}  {}",
            rank + 1,
            reference.similarity,
            on_one_line(&reference.id),
            reference.place.name
        )?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "  the second column is the cosine between the embeddings: a similarity, not a probability"
    )?;
    match fitted {
        Some((likelihood, evidence)) => writeln!(
            out,
            "  probability that one of the best {} references is near: {:.0} % (fitted on {} photographs; near means about {:.2} km)",
            Likelihood::HITS.min(gallery.len()),
            100.0 * evidence.share(),
            likelihood.held_out_rows,
            likelihood.width_km
        )?,
        None if within.is_empty() => writeln!(
            out,
            "  for probabilities, fit the gallery: `locdiff gallery fit {} --data HELD_OUT`",
            arguments.gallery.display()
        )?,
        None => writeln!(out, "  within {} only", within.join(" and "))?,
    }
    Ok(())
}
