//! The map itself: what to draw, in which order.

use crate::clip::{self, Line};
use crate::coastlines;
use crate::field::{Field, Samples, largest_on_earth};
use crate::layout::{Contents, Frame, Layout, circle};
use crate::marks::{self, Marker, Outline};
use crate::picture::Picture;
use crate::projection::{Plane, Projection};
use crate::scale::{ColourBar, Scale};
use crate::scene::{Colour, Item, Paint, Scene, Shape, Stroke};
use crate::theme::{Palette, Theme};
use locdiff_sphere::{LatLon, UnitVector};
use std::fmt;

/// The lines of equal latitude and longitude.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Graticule {
    /// None.
    Hidden,
    /// One line for every so many degrees, at least 1.
    Every {
        /// The distance between neighbouring lines.
        degrees: f64,
    },
}

/// A description of a picture: a density on the Earth, and what is to be seen with it.
///
/// ```
/// use locdiff_map::{Map, Marker, Projection, Theme};
/// use locdiff_sphere::LatLon;
///
/// // A von Mises-Fisher density: κ = 200, its centre near the antimeridian.
/// let suva = LatLon::new(-18.14, 178.44)?;
/// let kappa: f64 = 200.0;
/// let log_normaliser = (std::f64::consts::TAU / kappa).ln();
/// let picture = Map::new(Projection::Globe { centre: suva })
///     .field(|place| kappa * (place.angle_to(suva).cos() - 1.0) - log_normaliser)
///     .marker(Marker::new(suva).label("Suva"))
///     .title("Where was it taken?")
///     .caption("A prediction, not a fact.")
///     .theme(Theme::Dark)
///     .draw();
/// let png: Vec<u8> = picture.png();
/// let svg: String = picture.svg();
/// # assert!(png.starts_with(b"\x89PNG") && svg.starts_with("<svg"));
/// # Ok::<(), locdiff_sphere::InvalidPlace>(())
/// ```
pub struct Map<'a> {
    projection: Projection,
    width: Option<u32>,
    theme: Theme,
    scale: Scale,
    top: Option<f64>,
    colour_bar: ColourBar,
    graticule: Graticule,
    title: String,
    caption: String,
    field: Option<Box<Field<'a>>>,
    markers: Vec<Marker>,
    outlines: Vec<Outline>,
}

impl<'a> Map<'a> {
    /// The widest picture that is drawn.
    pub const MAX_WIDTH_PX: u32 = 8192;

    /// A map of land and sea in the day theme, 1200 pixels wide (a globe: 800), with a graticule
    /// every 30 degrees and a logarithmic scale over three powers of ten.
    pub fn new(projection: Projection) -> Map<'a> {
        Map {
            projection,
            width: None,
            theme: Theme::default(),
            scale: Scale::default(),
            top: None,
            colour_bar: ColourBar::default(),
            graticule: Graticule::Every { degrees: 30.0 },
            title: String::new(),
            caption: String::new(),
            field: None,
            markers: Vec::new(),
            outlines: Vec::new(),
        }
    }

    /// Width of the picture in pixels, from 1 to [`Map::MAX_WIDTH_PX`]; other numbers are taken as
    /// the nearest of these. The height follows from the projection and the texts. Twice the width
    /// is the same picture at twice the resolution. Pictures of less than 240 pixels have no texts.
    #[must_use]
    pub fn width_px(self, width: u32) -> Map<'a> {
        Map { width: Some(width.clamp(1, Map::MAX_WIDTH_PX)), ..self }
    }

    /// Light or dark.
    #[must_use]
    pub fn theme(self, theme: Theme) -> Map<'a> {
        Map { theme, ..self }
    }

    /// The density: its natural logarithm per steradian, at any place.
    ///
    /// It is asked for once per pixel, from several threads. −∞ and not-a-number are drawn as no
    /// density. A peak narrower than a pixel may fall between the pixels: mark it.
    #[must_use]
    pub fn field(self, log_density: impl Fn(LatLon) -> f64 + Sync + 'a) -> Map<'a> {
        Map { field: Some(Box::new(log_density)), ..self }
    }

    /// How densities become colours.
    #[must_use]
    pub fn scale(self, scale: Scale) -> Map<'a> {
        Map { scale, ..self }
    }

    /// Fixes the log-density at the top of the scale, so that several pictures can be compared.
    /// Not-a-number and infinities count as unset: the largest density on the Earth is the top.
    #[must_use]
    pub fn top(self, log_density: f64) -> Map<'a> {
        Map { top: log_density.is_finite().then_some(log_density), ..self }
    }

    /// What the colour bar says.
    #[must_use]
    pub fn colour_bar(self, colour_bar: ColourBar) -> Map<'a> {
        Map { colour_bar, ..self }
    }

    /// The lines of equal latitude and longitude.
    #[must_use]
    pub fn graticule(self, graticule: Graticule) -> Map<'a> {
        Map { graticule, ..self }
    }

    /// One more marker.
    #[must_use]
    pub fn marker(mut self, marker: Marker) -> Map<'a> {
        self.markers.push(marker);
        self
    }

    /// One more outline.
    #[must_use]
    pub fn outline(mut self, outline: Outline) -> Map<'a> {
        self.outlines.push(outline);
        self
    }

    /// The heading above the map.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Map<'a> {
        Map { title: title.into(), ..self }
    }

    /// The text below the map. Here a prediction is called a prediction.
    #[must_use]
    pub fn caption(self, caption: impl Into<String>) -> Map<'a> {
        Map { caption: caption.into(), ..self }
    }

    /// Asks the field and lays out the picture.
    pub fn draw(&self) -> Picture {
        let palette = self.theme.palette();
        let mut contents = Contents {
            projection: self.projection,
            width: self.width.unwrap_or(match self.projection {
                Projection::Globe { .. } => 800,
                _ => 1200,
            }),
            title: &self.title,
            caption: &self.caption,
            bar: None,
        };
        // The frame doesn't depend on the colour bar, which needs the field's largest value.
        let frame = Layout::new(&contents).frame;
        let samples = self.field.as_ref().map(|field| Samples::of(field, &frame));
        let top = self.top.or_else(|| self.largest(samples.as_ref()?));
        contents.bar = match (top, self.colour_bar) {
            (None, _) | (_, ColourBar::Hidden) => None,
            (Some(top), bar) => samples.as_ref().map(|_| (bar, self.scale, top)),
        };
        let layout = Layout::new(&contents);

        let mut items = ground(&layout, &palette, self.projection);
        items.push(Item::BeginClip(vec![edge(&frame)]));
        let land = clip::area(&frame.plane, &coastlines::land());
        items.push(filled(frame.pixels(&land.fill), Paint::Plain(palette.land)));
        items.extend(shade(&frame, &palette, self.projection));
        if let Some(samples) = &samples {
            // Without any finite value there may still be infinite ones; those are the top.
            let top = top.unwrap_or(0.0);
            items.push(Item::Image(samples.image(&frame, self.scale, top, &palette)));
        }
        let unit = layout.unit;
        items.push(stroked(graticule(&frame, self.graticule), palette.graticule, unit));
        // The halo disappears on the ground and makes the coast visible on a dense field.
        let coast = frame.pixels(&land.boundary);
        items.push(stroked(coast.clone(), palette.halo.with_alpha(0.4), 1.7 * unit));
        items.push(stroked(coast, palette.coast, 0.8 * unit));
        for outline in &self.outlines {
            let rings = outline.rings.iter();
            let lines: Vec<Line> =
                rings.flat_map(|ring| clip::outline(&frame.plane, ring)).collect();
            items.extend(outline.items(frame.pixels(&lines), &palette, unit));
        }
        items.push(Item::EndClip);
        items.push(stroked(vec![edge(&frame)], palette.frame, unit));
        items.extend(marks::items(&self.markers, &frame, &palette, unit));
        items.extend(layout.furniture(&contents, &palette));

        let description = match (self.title.as_str(), self.caption.as_str()) {
            ("", "") => "Map of the Earth".to_owned(),
            ("", text) | (text, "") => text.to_owned(),
            (title, caption) => format!("{title}. {caption}"),
        };
        let scene = Scene { size: layout.size, background: palette.background, description, items };
        Picture { scene, theme: self.theme, frame: Some(frame) }
    }

    /// The largest density: of the pixels, and for a globe also of the side that is not seen, so
    /// that colours mean the same from wherever one looks.
    fn largest(&self, samples: &Samples) -> Option<f64> {
        let seen = samples.largest();
        match (self.projection, &self.field) {
            (Projection::Globe { .. }, Some(field)) => {
                seen.into_iter().chain(largest_on_earth(field)).reduce(f64::max)
            }
            _ => seen,
        }
    }
}

impl fmt::Debug for Map<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map")
            .field("projection", &self.projection)
            .field("width", &self.width)
            .field("theme", &self.theme)
            .field("scale", &self.scale)
            .field("title", &self.title)
            .field("caption", &self.caption)
            .finish_non_exhaustive()
    }
}

fn filled(lines: Vec<Line>, fill: Paint) -> Item {
    Item::Shape(Shape { lines, fill: Some(fill), stroke: None })
}

fn stroked(lines: Vec<Line>, colour: Colour, width: f64) -> Item {
    let stroke = Some(Stroke { colour, width, dash: None });
    Item::Shape(Shape { lines, fill: None, stroke })
}

fn edge(frame: &Frame) -> Line {
    let points = frame.plane.edge().into_iter().map(|point| frame.pixel_from_plane(point));
    Line { points: points.collect(), closed: true }
}

/// The sea, and the glow around a globe.
fn ground(layout: &Layout, palette: &Palette, projection: Projection) -> Vec<Item> {
    let frame = &layout.frame;
    let mut items = Vec::new();
    if matches!(projection, Projection::Globe { .. }) {
        let centre = frame.pixel_from_plane([0.0, 0.0]);
        let radius = 1.09 * frame.pixels_per_radius;
        let glow = |share: f64| palette.glow.with_alpha(palette.glow.alpha * share);
        let stops = vec![(0.0, glow(1.0)), (0.9, glow(1.0)), (0.94, glow(0.38)), (1.0, glow(0.0))];
        items.push(filled(vec![circle(centre, radius)], Paint::Radial { centre, radius, stops }));
    }
    items.push(filled(vec![edge(frame)], Paint::Plain(palette.sea)));
    items
}

/// Light from above left on a globe. It lies under the density, whose colours have a meaning.
fn shade(frame: &Frame, palette: &Palette, projection: Projection) -> Option<Item> {
    let Projection::Globe { .. } = projection else { return None };
    let centre = frame.pixel_from_plane([-0.35, 0.45]);
    let radius = 1.6 * frame.pixels_per_radius;
    let nothing = palette.shadow.with_alpha(0.0);
    let stops = vec![
        (0.0, palette.light),
        (0.45, palette.light.with_alpha(0.0)),
        (0.45, nothing),
        (1.0, palette.shadow),
    ];
    Some(filled(vec![edge(frame)], Paint::Radial { centre, radius, stops }))
}

fn graticule(frame: &Frame, graticule: Graticule) -> Vec<Line> {
    let step = match graticule {
        Graticule::Every { degrees } if degrees.is_finite() => degrees.clamp(1.0, 180.0),
        _ => return Vec::new(),
    };
    let multiples = |limit: f64| {
        let count = (limit / step - 1e-9).floor() as i32;
        (-count..=count).map(move |index| f64::from(index) * step)
    };
    let mut lines = Vec::new();
    if let Plane::Globe(_) = frame.plane {
        let mut add = |places: &mut dyn Iterator<Item = (f64, f64)>, closed| {
            let places =
                places.filter_map(|(latitude, longitude)| LatLon::new(latitude, longitude).ok());
            let points: Vec<_> = places.map(|place| UnitVector::from(place).to_array()).collect();
            lines.extend(clip::line(&frame.plane, &points, closed));
        };
        // Meridians end one step before the poles, where they would run together in a knot.
        let last = (90.0 - step).max(0.0);
        for longitude in multiples(180.0).chain(Some(180.0)) {
            add(&mut (-1..=1).map(|end| (f64::from(end) * last, longitude)), false);
        }
        for latitude in multiples(90.0) {
            add(&mut (0..180).map(|index| (latitude, f64::from(index) * 2.0)), true);
        }
    } else {
        // Straight in the chart; through unit vectors a pole would lose its longitude.
        let mut add = |points: &mut dyn Iterator<Item = [f64; 2]>| {
            let points = points.map(|point| frame.plane.plane_from_chart(point)).collect();
            lines.push(Line { points, closed: false });
        };
        for longitude in multiples(180.0) {
            add(&mut (-45..=45).map(|index| [longitude, f64::from(index) * 2.0]));
        }
        for latitude in multiples(90.0) {
            add(&mut [-180.0, 180.0].map(|longitude| [longitude, latitude]).into_iter());
        }
    }
    frame.pixels(&lines)
}
