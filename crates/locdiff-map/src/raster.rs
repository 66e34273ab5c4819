//! A scene as pixels.
//!
//! Painted by tiny-skia without its vector instructions, so that every machine does the same
//! arithmetic, and written as an opaque PNG.

use crate::clip::Line;
use crate::scene::{Colour, Image, Item, Paint, Scene, Shape, Text};
use crate::text::{Segment, outlines};
use tiny_skia::{
    FillRule, GradientStop, LineCap, LineJoin, LinearGradient, Mask, Path, PathBuilder, Pixmap,
    PixmapPaint, Point, RadialGradient, Shader, SpreadMode, StrokeDash, Transform,
};

/// Width of the stroke behind letters, half of which shows.
pub(crate) fn halo_width(size: f64) -> f64 {
    0.28 * size
}

/// The scene as a PNG file.
pub(crate) fn png(scene: &Scene) -> Vec<u8> {
    let Some(pixmap) = painted(scene) else { return Vec::new() };
    let rgb: Vec<u8> = pixmap
        .pixels()
        .iter()
        .flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()])
        .collect();
    encode(scene.size, ::png::ColorType::Rgb, &rgb)
}

/// The pixels of a scene; `None` if it has no or too many.
fn painted(scene: &Scene) -> Option<Pixmap> {
    let [width, height] = scene.size;
    let mut pixmap = Pixmap::new(width, height)?;
    pixmap.fill(colour(scene.background));
    let mut mask = None;
    for item in &scene.items {
        match item {
            Item::Shape(shape) => paint_shape(&mut pixmap, shape, mask.as_ref()),
            Item::Text(text) => paint_text(&mut pixmap, text),
            Item::Image(image) => paint_image(&mut pixmap, image, mask.as_ref()),
            Item::BeginClip(lines) => {
                mask = Mask::new(width, height);
                if let (Some(mask), Some(path)) = (&mut mask, path(lines)) {
                    mask.fill_path(&path, FillRule::EvenOdd, true, Transform::identity());
                }
            }
            Item::EndClip => mask = None,
            Item::Scene { at, scene } => {
                if let Some(part) = painted(scene) {
                    paint_pixels(&mut pixmap, *at, &part, mask.as_ref());
                }
            }
        }
    }
    Some(pixmap)
}

/// An image alone, with its transparency.
pub(crate) fn png_rgba(image: &Image) -> Vec<u8> {
    encode(image.size, ::png::ColorType::Rgba, &image.rgba)
}

fn encode([width, height]: [u32; 2], kind: ::png::ColorType, pixels: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut file, width, height);
    encoder.set_color(kind);
    encoder.set_depth(::png::BitDepth::Eight);
    encoder.set_compression(::png::Compression::High);
    encoder
        .write_header()
        .and_then(|mut writer| {
            writer.write_image_data(pixels)?;
            writer.finish()
        })
        .expect("memory takes what is written, and the pixels fit the size");
    file
}

fn paint_shape(pixmap: &mut Pixmap, shape: &Shape, mask: Option<&Mask>) {
    let Some(path) = path(&shape.lines) else { return };
    if let Some(shader) = shape.fill.as_ref().and_then(shader) {
        let paint = tiny_skia::Paint { shader, anti_alias: true, ..Default::default() };
        pixmap.fill_path(&path, &paint, FillRule::EvenOdd, Transform::identity(), mask);
    }
    if let Some(stroke) = &shape.stroke {
        let pen = tiny_skia::Stroke {
            width: stroke.width as f32,
            line_cap: LineCap::Round,
            line_join: LineJoin::Round,
            dash: stroke
                .dash
                .and_then(|lengths| StrokeDash::new(lengths.map(|l| l as f32).to_vec(), 0.0)),
            ..Default::default()
        };
        pixmap.stroke_path(&path, &plain(stroke.colour), &pen, Transform::identity(), mask);
    }
}

fn paint_text(pixmap: &mut Pixmap, text: &Text) {
    let mut builder = PathBuilder::new();
    for segment in outlines(text) {
        match segment {
            Segment::Move([x, y]) => builder.move_to(x, y),
            Segment::Line([x, y]) => builder.line_to(x, y),
            Segment::Quad([x1, y1], [x, y]) => builder.quad_to(x1, y1, x, y),
            Segment::Cubic([x1, y1], [x2, y2], [x, y]) => builder.cubic_to(x1, y1, x2, y2, x, y),
            Segment::Close => builder.close(),
        }
    }
    let Some(path) = builder.finish() else { return };
    if let Some(halo) = text.halo {
        let pen = tiny_skia::Stroke {
            width: halo_width(text.size) as f32,
            line_join: LineJoin::Round,
            ..Default::default()
        };
        pixmap.stroke_path(&path, &plain(halo), &pen, Transform::identity(), None);
    }
    let paint = plain(text.colour);
    pixmap.fill_path(&path, &paint, FillRule::Winding, Transform::identity(), None);
}

fn paint_image(pixmap: &mut Pixmap, image: &Image, mask: Option<&Mask>) {
    let [width, height] = image.size;
    let Some(mut source) = Pixmap::new(width, height) else { return };
    for (pixel, rgba) in source.pixels_mut().iter_mut().zip(image.rgba.chunks_exact(4)) {
        *pixel = tiny_skia::ColorU8::from_rgba(rgba[0], rgba[1], rgba[2], rgba[3]).premultiply();
    }
    paint_pixels(pixmap, image.at, &source, mask);
}

fn paint_pixels(pixmap: &mut Pixmap, at: [u32; 2], source: &Pixmap, mask: Option<&Mask>) {
    let [x, y] = at.map(|offset| offset as i32);
    let paint = PixmapPaint::default();
    pixmap.draw_pixmap(x, y, source.as_ref(), &paint, Transform::identity(), mask);
}

fn path(lines: &[Line]) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for line in lines {
        for (index, &[x, y]) in line.points.iter().enumerate() {
            if index == 0 {
                builder.move_to(x as f32, y as f32);
            } else {
                builder.line_to(x as f32, y as f32);
            }
        }
        if line.closed {
            builder.close();
        }
    }
    // None if there is nothing, or anything is not finite.
    builder.finish()
}

fn shader(paint: &Paint) -> Option<Shader<'static>> {
    let gradient_stops = |stops: &[(f64, Colour)]| {
        let stop =
            |&(position, stop): &(f64, Colour)| GradientStop::new(position as f32, colour(stop));
        stops.iter().map(stop).collect()
    };
    let point = |[x, y]: [f64; 2]| Point::from_xy(x as f32, y as f32);
    let (mode, transform) = (SpreadMode::Pad, Transform::identity());
    match paint {
        Paint::Plain(plain) => Some(Shader::SolidColor(colour(*plain))),
        Paint::Linear { from, to, stops } => {
            LinearGradient::new(point(*from), point(*to), gradient_stops(stops), mode, transform)
        }
        Paint::Radial { centre, radius, stops } => {
            let (centre, stops) = (point(*centre), gradient_stops(stops));
            RadialGradient::new(centre, 0.0, centre, *radius as f32, stops, mode, transform)
        }
    }
}

fn plain(paint: Colour) -> tiny_skia::Paint<'static> {
    tiny_skia::Paint {
        shader: Shader::SolidColor(colour(paint)),
        anti_alias: true,
        ..Default::default()
    }
}

fn colour(colour: Colour) -> tiny_skia::Color {
    let [red, green, blue] = colour.rgb;
    let alpha = (colour.alpha * 255.0).round() as u8;
    tiny_skia::Color::from_rgba8(red, green, blue, alpha)
}
