//! The map itself: what to draw, in which order.

use crate::clip::{self, Line};
use crate::coastlines;
use crate::countries::Countries;
use crate::field::{Field, Samples, largest_on_earth};
use crate::graticule::{self, Graticule};
use crate::inset;
use crate::layout::{Contents, Frame, Layout, NARROWEST_WITH_TEXT, circle, design_width};
use crate::marks::{self, Marker, Outline, Rectangle};
use crate::names::{self, Name};
use crate::picture::Picture;
use crate::projection::{Plane, Projection};
use crate::scale::{ColourBar, Scale};
use crate::scale_bar;
use crate::scene::{Anchor, Colour, Item, Paint, Scene, Shape, Stroke, Text};
use crate::text::{CAP_HEIGHT, shortened, width};
use crate::theme::{Palette, Theme};
use locdiff_sphere::LatLon;
use std::fmt;

/// Size of the title of an inset, in design pixels.
const HEADING_SIZE: f64 = 13.0;

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
    countries: Vec<Vec<LatLon>>,
    names: Vec<Name>,
    inset: Option<Box<Map<'a>>>,
}

impl<'a> Map<'a> {
    /// The widest picture that is drawn.
    pub const MAX_WIDTH_PX: u32 = 8192;

    /// A map of land and sea in the day theme, 1200 pixels wide (a globe or close-up: 800), with a
    /// graticule and a logarithmic scale over three powers of ten.
    pub fn new(projection: Projection) -> Map<'a> {
        Map {
            projection,
            width: None,
            theme: Theme::default(),
            scale: Scale::default(),
            top: None,
            colour_bar: ColourBar::default(),
            graticule: Graticule::default(),
            title: String::new(),
            caption: String::new(),
            field: None,
            markers: Vec::new(),
            outlines: Vec::new(),
            countries: Vec::new(),
            names: Vec::new(),
            inset: None,
        }
    }

    /// Width of the picture in pixels, from 1 to [`Map::MAX_WIDTH_PX`]; other numbers are taken as
    /// the nearest of these. The height follows from the projection and the texts. Twice the width
    /// is the same picture at twice the resolution. Pictures of less than 240 pixels have no texts.
    #[must_use]
    pub fn width_px(self, width: u32) -> Map<'a> {
        Map { width: Some(width.clamp(1, Map::MAX_WIDTH_PX)), ..self }
    }

    /// Sets the theme: light or dark.
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

    /// Text of the color bar.
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

    /// The outlines of all countries, of which close-ups show land, coasts and borders instead of the
    /// built-in coastlines, which are good to about a kilometre. Other maps show the borders.
    ///
    /// A ring is an exterior or a hole, in either direction; it may cross the antimeridian, and may be
    /// cut there. Neighbours must have the points of their common border in common.
    #[must_use]
    pub fn countries(mut self, rings: impl IntoIterator<Item = Vec<LatLon>>) -> Map<'a> {
        self.countries.extend(rings);
        self
    }

    /// One more name of a country or town. It is shown if there is room for it.
    #[must_use]
    pub fn name(mut self, name: Name) -> Map<'a> {
        self.names.push(name);
        self
    }

    /// A second map to the right of this one, as high as this one: a close-up
    /// ([`Projection::Around`]), whose part of this map gets a frame.
    ///
    /// Theme, scale and top are those of this map, so that the same colour means the same density, and
    /// so is the field if the inset has none. The inset's title stands in its corner; its width, caption
    /// and colour bar are not used. Unless [`Map::width_px`] is set, the picture is 1600 pixels wide (a
    /// globe: 1200). Pictures of less than 240 pixels have no inset.
    ///
    /// ```
    /// use locdiff_map::{Map, Name, Projection};
    /// use locdiff_sphere::LatLon;
    ///
    /// let suva = LatLon::new(-18.14, 178.44)?;
    /// let closeup = Map::new(Projection::Around { centre: suva, radius_km: 300.0 })
    ///     .name(Name::town(suva, "Suva"))
    ///     .title("300 km around Suva");
    /// let picture = Map::new(Projection::Globe { centre: suva })
    ///     .field(|place| -(place.distance_km(suva) / 80.0).powi(2) / 2.0)
    ///     .inset(closeup)
    ///     .draw();
    /// assert_eq!(picture.width_px(), 1200);
    /// # Ok::<(), locdiff_sphere::InvalidPlace>(())
    /// ```
    #[must_use]
    pub fn inset(self, inset: Map<'a>) -> Map<'a> {
        Map { inset: Some(Box::new(inset)), ..self }
    }

    /// Asks the field and lays out the picture.
    pub fn draw(&self) -> Picture {
        let palette = self.theme.palette();
        let mut contents = Contents {
            projection: self.projection,
            width: self
                .width
                .unwrap_or_else(|| design_width(self.projection, self.inset.is_some())),
            title: &self.title,
            caption: &self.caption,
            bar: None,
            inset: self.inset.as_ref().map(|inset| inset.projection),
        };
        // The frames don't depend on the colour bar, which needs the field's largest value.
        let layout = Layout::new(&contents);
        let main = Part::new(self, layout.frame, self.field.as_deref());
        let inset = self.inset.as_deref().zip(layout.inset).map(|(inset, frame)| {
            Part::new(inset, frame, inset.field.as_deref().or(self.field.as_deref()))
        });
        let largest =
            || [Some(&main), inset.as_ref()].into_iter().flatten().filter_map(Part::largest);
        let top = self.top.or_else(|| largest().reduce(f64::max));
        contents.bar = match (top, self.colour_bar) {
            (None, _) | (_, ColourBar::Hidden) => None,
            (Some(top), bar) => main.samples.as_ref().map(|_| (bar, self.scale, top)),
        };
        let layout = Layout::new(&contents);

        let style = Style {
            palette: &palette,
            unit: layout.unit,
            scale: self.scale,
            top,
            with_text: contents.width >= NARROWEST_WITH_TEXT,
        };
        let mut items = main.ground(&style);
        if let Some(inset) = &inset {
            items.extend(inset::items(&main.frame, &inset.frame, &palette, layout.unit));
        }
        items.extend(main.marks(&style, None));
        if let Some(inset) = &inset {
            items.extend(inset.ground(&style));
            items.extend(inset.marks(&style, Some(&inset.map.title)));
        }
        items.extend(layout.furniture(&contents, &palette));

        let description = match (self.title.as_str(), self.caption.as_str()) {
            ("", "") => "Map of the Earth".to_owned(),
            ("", text) | (text, "") => text.to_owned(),
            (title, caption) => format!("{title}. {caption}"),
        };
        let scene = Scene { size: layout.size, background: palette.background, description, items };
        Picture { scene, theme: self.theme, frame: Some(layout.frame) }
    }
}

/// What a map and its inset have in common.
struct Style<'m> {
    palette: &'m Palette,
    /// Pixels per design pixel.
    unit: f64,
    scale: Scale,
    top: Option<f64>,
    with_text: bool,
}

/// A map in its place in the picture.
struct Part<'m, 'a> {
    map: &'m Map<'a>,
    frame: Frame,
    field: Option<&'m Field<'a>>,
    samples: Option<Samples>,
}

impl<'m, 'a> Part<'m, 'a> {
    fn new(map: &'m Map<'a>, frame: Frame, field: Option<&'m Field<'a>>) -> Part<'m, 'a> {
        let samples = field.map(|field| Samples::of(field, &frame));
        Part { map, frame, field, samples }
    }

    /// The largest density: of the pixels, and for a globe or close-up also of what is not seen, so
    /// that colours mean the same from wherever one looks.
    fn largest(&self) -> Option<f64> {
        let seen = self.samples.as_ref()?.largest();
        match (self.map.projection, self.field) {
            (Projection::Globe { .. } | Projection::Around { .. }, Some(field)) => {
                seen.into_iter().chain(largest_on_earth(field)).reduce(f64::max)
            }
            _ => seen,
        }
    }

    /// Sea, land, density and lines, up to the edge of the map.
    fn ground(&self, style: &Style<'_>) -> Vec<Item> {
        let Style { palette, unit, .. } = *style;
        let (map, frame) = (self.map, &self.frame);
        let countries = Countries::seen(&map.countries, frame);
        let (land, coast) = match frame.plane {
            Plane::Around(_) if !map.countries.is_empty() => (countries.land, countries.coasts),
            _ => {
                let land = clip::area(&frame.plane, &coastlines::land());
                (frame.pixels(&land.fill), frame.pixels(&land.boundary))
            }
        };
        let mut items = sea(frame, palette);
        items.push(Item::BeginClip(vec![edge(frame)]));
        items.push(filled(land, Paint::Plain(palette.land)));
        items.extend(shade(frame, palette));
        if let Some(samples) = &self.samples {
            // Without any finite value there may still be infinite ones; those are the top.
            let top = style.top.unwrap_or(0.0);
            items.push(Item::Image(samples.image(frame, style.scale, top, palette)));
        }
        items.push(stroked(graticule::lines(frame, map.graticule), palette.graticule, unit));
        if !countries.borders.is_empty() {
            let borders = countries.borders;
            items.push(stroked(borders.clone(), palette.halo.with_alpha(0.3), 1.9 * unit));
            items.push(stroked(borders, palette.border, 0.8 * unit));
        }
        // The halo disappears on the ground and makes the coast visible on a dense field.
        items.push(stroked(coast.clone(), palette.halo.with_alpha(0.4), 1.7 * unit));
        items.push(stroked(coast, palette.coast, 0.8 * unit));
        for outline in &map.outlines {
            let rings = outline.rings.iter();
            let lines: Vec<Line> =
                rings.flat_map(|ring| clip::outline(&frame.plane, ring)).collect();
            items.extend(outline.items(frame.pixels(&lines), palette, unit));
        }
        items.push(Item::EndClip);
        items.push(stroked(vec![edge(frame)], palette.frame, unit));
        items
    }

    /// Everything with letters, and markers. `heading` stands in the upper left corner.
    fn marks(&self, style: &Style<'_>, heading: Option<&str>) -> Vec<Item> {
        let Style { palette, unit, .. } = *style;
        let mut items = Vec::new();
        let mut taken: Vec<Rectangle> = Vec::new();
        if style.with_text {
            if let Some((bar, area)) = scale_bar::items(&self.frame, palette, unit) {
                items.extend(bar);
                taken.push(area);
            }
            if let Some(text) = heading.filter(|text| !text.is_empty()) {
                let (text, area) = self.heading(text, style);
                items.push(text);
                taken.push(area);
            }
        }
        let markers = marks::items(&self.map.markers, &mut taken, &self.frame, palette, unit);
        if style.with_text {
            let marked = marks::areas(&self.map.markers, &self.frame, unit);
            let names = &self.map.names;
            items.extend(names::items(names, &marked, &taken, &self.frame, palette, unit));
        }
        items.extend(markers);
        items
    }

    fn heading(&self, text: &str, style: &Style<'_>) -> (Item, Rectangle) {
        let (size, distance) = (HEADING_SIZE * style.unit, 10.0 * style.unit);
        let text = shortened(text, size, f64::from(self.frame.size[0]) - 2.0 * distance);
        let [left, top] = self.frame.at.map(|pixels| f64::from(pixels) + distance);
        let bottom = top + CAP_HEIGHT * size;
        let area = Rectangle { left, top, right: left + width(&text, size), bottom };
        let halo = Some(style.palette.halo.with_alpha(0.85));
        let (at, anchor, colour) = ([left, bottom], Anchor::Start, style.palette.text);
        (Item::Text(Text { at, anchor, size, colour, halo, text }), area)
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
fn sea(frame: &Frame, palette: &Palette) -> Vec<Item> {
    let mut items = Vec::new();
    if matches!(frame.projection, Projection::Globe { .. }) {
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
fn shade(frame: &Frame, palette: &Palette) -> Option<Item> {
    let Projection::Globe { .. } = frame.projection else { return None };
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
