//! One description of a drawing, for both outputs.
//!
//! Convention: pixels, x to the right, y down, (0, 0) the top left corner. Shapes are painted in
//! order. `svg` writes the scene, `raster` paints it; neither decides anything about looks.

/// A colour with its opacity, not premultiplied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Colour {
    pub(crate) rgb: [u8; 3],
    pub(crate) alpha: f64,
}

impl Colour {
    /// An opaque colour, `0xRRGGBB`.
    pub(crate) const fn hex(rgb: u32) -> Colour {
        Colour { rgb: [(rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8], alpha: 1.0 }
    }

    pub(crate) const fn with_alpha(self, alpha: f64) -> Colour {
        Colour { alpha, ..self }
    }
}

/// What fills a shape. Gradients are lists of positions from 0 to 1 with their colours.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Paint {
    Plain(Colour),
    /// From left to right.
    Linear {
        from: [f64; 2],
        to: [f64; 2],
        stops: Vec<(f64, Colour)>,
    },
    Radial {
        centre: [f64; 2],
        radius: f64,
        stops: Vec<(f64, Colour)>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stroke {
    pub(crate) colour: Colour,
    pub(crate) width: f64,
    /// Lengths of dash and gap; `None` for an unbroken line.
    pub(crate) dash: Option<[f64; 2]>,
}

/// Several lines painted together; areas inside an even number of them stay empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Shape {
    pub(crate) lines: Vec<crate::clip::Line>,
    pub(crate) fill: Option<Paint>,
    pub(crate) stroke: Option<Stroke>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// One line of text; `at` lies on its baseline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Text {
    pub(crate) at: [f64; 2],
    pub(crate) anchor: Anchor,
    pub(crate) size: f64,
    pub(crate) colour: Colour,
    /// Painted around the letters, so that they read on any ground.
    pub(crate) halo: Option<Colour>,
    pub(crate) text: String,
}

/// Pixels with colours not premultiplied, row by row from the top: RGBA.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Image {
    pub(crate) at: [u32; 2],
    pub(crate) size: [u32; 2],
    pub(crate) rgba: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    Shape(Shape),
    Text(Text),
    Image(Image),
    /// What follows is painted only inside these lines, until [`Item::EndClip`].
    BeginClip(Vec<crate::clip::Line>),
    EndClip,
    /// A whole scene with its top left corner at `at`; nothing of it is seen outside its size.
    Scene {
        at: [u32; 2],
        scene: Scene,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scene {
    pub(crate) size: [u32; 2],
    pub(crate) background: Colour,
    /// What the picture shows, for those who cannot see it.
    pub(crate) description: String,
    pub(crate) items: Vec<Item>,
}
