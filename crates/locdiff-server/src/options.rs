//! Options in the query string. Unknown ones are refused: a misspelt option must not be silently ignored.

use locdiff::locate::{AnswerOptions, InvalidInference};
use locdiff::{Constraint, InferenceOptions};
use locdiff_sphere::shown;

use crate::engine::LocateOptions;
use crate::problem::{BAD_OPTION, Problem};

/// The most places that are drawn from a density.
pub(crate) const MAX_DRAWS: usize = 10_000;
/// The most samples of a diffusion for one image, over all views.
pub(crate) const MAX_SAMPLES: usize = 32;
/// The most steps of a denoising.
pub(crate) const MAX_FRAMES: usize = 201;
/// The most candidates.
pub(crate) const MAX_TOP: usize = 100;
/// How many parameters `within` a request may have.
const MAX_WITHIN: usize = 8;

/// Names and values.
pub(crate) struct Options(Vec<(String, String)>);

impl Options {
    /// The options of a query, of which these names are known.
    pub(crate) fn parse(query: Option<&str>, known: &[&str]) -> Result<Options, Problem> {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned();
        let pairs: Vec<(String, String)> = pairs.collect();
        if let Some((name, _)) = pairs.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            let shown: String = name.chars().take(40).collect();
            return Err(wrong(format!("there is no option `{shown}`: use {}", known.join(", "))));
        }
        Ok(Options(pairs))
    }

    /// A value that may be given once.
    pub(crate) fn one<'a>(&'a self, name: &str) -> Result<Option<&'a str>, Problem> {
        let mut pairs = self.0.iter().filter(|(key, _)| key == name);
        match (pairs.next(), pairs.next()) {
            (_, Some(_)) => Err(wrong(format!("`{name}` was given twice: give it once"))),
            (first, None) => Ok(first.map(|(_, value)| value.as_str())),
        }
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A whole number in a range.
    pub(crate) fn number(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, Problem> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        let number = text.parse().ok().filter(|number| range.contains(number));
        let (from, to) = (range.start(), range.end());
        let expected =
            || wrong(format!("{name}={} is not a whole number from {from} to {to}", shown(text)));
        number.map(Some).ok_or_else(expected)
    }

    fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.one(name)? {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(wrong(format!("{name}={}: use true or false", shown(other)))),
        }
    }

    /// Where something can only be.
    pub(crate) fn within(&self) -> Result<Vec<Constraint>, Problem> {
        if self.all("within").count() > MAX_WITHIN {
            return Err(wrong(format!("`within` was given too often: at most {MAX_WITHIN} times")));
        }
        let parse = |text: &str| {
            // What is cut was no area. Errors repeat the text, and should have room for the reason.
            let text = shown(text);
            Constraint::from_words(&text).map_err(|error| wrong(format!("within={text}: {error}")))
        };
        self.all("within").map(parse).collect()
    }
}

/// What `/v1/locate` may be asked: the model and the answer, then how the model computes it.
pub(crate) const LOCATE: [&str; 16] = [
    "model",
    "top",
    "within",
    "density",
    "draws",
    "frames",
    "sampler",
    "steps",
    "samples",
    "guidance",
    "views",
    "seed",
    "decode",
    "kernel_km",
    "registration",
    "width_km",
];

pub(crate) fn locate_options(query: Option<&str>) -> Result<LocateOptions, Problem> {
    let options = Options::parse(query, &LOCATE)?;
    let number = |name, least: usize, most: usize, default: usize| {
        let number = options.number(name, least as u64..=most as u64)?;
        Ok::<usize, Problem>(number.map_or(default, |number| number as usize))
    };
    let frames = number("frames", 0, MAX_FRAMES, 0)?;
    if frames == 1 {
        return Err(wrong("frames=1 is not possible: use 0, or 2 and more".to_owned()));
    }
    Ok(LocateOptions {
        model: options.one("model")?.map(str::to_owned),
        inference: inference_options(&options)?,
        answer: AnswerOptions {
            top: number("top", 1, MAX_TOP, AnswerOptions::default().top)?,
            density: options.flag("density")?,
            draws: number("draws", 0, MAX_DRAWS, 0)?,
        },
        within: options.within()?,
        frames,
    })
}

fn inference_options(options: &Options) -> Result<InferenceOptions, Problem> {
    let invalid = |error: InvalidInference| wrong(error.to_string());
    // Errors repeat the text, and should have room for what would be right.
    let word = |name: &str| Ok::<_, Problem>(options.one(name)?.map(shown));
    let count = |name, most: usize| -> Result<Option<usize>, Problem> {
        Ok(options.number(name, 1..=most as u64)?.map(|number| number as usize))
    };
    let real = |name: &str| -> Result<Option<f64>, Problem> {
        let Some(text) = options.one(name)? else { return Ok(None) };
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        number.map(Some).ok_or_else(|| wrong(format!("{name}={} is not a number", shown(text))))
    };
    Ok(InferenceOptions {
        sampler: word("sampler")?.map(|text| text.parse()).transpose().map_err(invalid)?,
        steps: options.number("steps", 2..=10_000)?.map(|number| number as usize),
        samples: count("samples", MAX_SAMPLES)?,
        guidance: real("guidance")?,
        views: count("views", MAX_SAMPLES)?,
        seed: options.number("seed", 0..=u64::MAX)?,
        decode: word("decode")?.map(|text| text.parse()).transpose().map_err(invalid)?,
        kernel_km: real("kernel_km")?,
        registration: options
            .one("registration")?
            .map(|_| options.flag("registration"))
            .transpose()?,
        width_km: real("width_km")?,
    })
}

fn wrong(detail: String) -> Problem {
    Problem::new(BAD_OPTION, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let options = locate_options(Some(
            "model=earth-view&top=3&within=land&within=0,0,500km&draws=7&seed=18446744073709551615&density=true&frames=2\
             &sampler=ddim&steps=10&samples=4&views=2&guidance=1.5&decode=geoscore&kernel_km=50&registration=false&width_km=300",
        ))
        .expect("valid");
        assert_eq!(options.model.as_deref(), Some("earth-view"));
        let AnswerOptions { top, density, draws } = options.answer;
        assert_eq!((top, draws, options.frames), (3, 7, 2));
        assert_eq!((density, options.within.len()), (true, 2));
        let inference = options.inference;
        assert_eq!((inference.seed, inference.steps), (Some(u64::MAX), Some(10)));
        assert_eq!((inference.samples, inference.views), (Some(4), Some(2)));
        assert_eq!((inference.registration, inference.width_km), (Some(false), Some(300.0)));
        assert_eq!(inference.sampler.map(|sampler| sampler.name()), Some("ddim"));
        assert_eq!(locate_options(None).expect("defaults"), LocateOptions::default());
    }

    #[test]
    fn mistakes_are_told() {
        for (query, complaint) in [
            ("tpo=3", "no option `tpo`"),
            ("top=0", "from 1 to 100"),
            ("top=3&top=4", "given twice"),
            ("within=Atlantis", "no country `Atlantis`"),
            ("within=/etc/passwd", "no country"),
            ("density=yes", "true or false"),
            ("frames=1", "use 0, or 2 and more"),
            ("seed=-1", "a whole number"),
            ("sampler=euler", "one-pass, ddim, ddpm"),
            ("guidance=inf", "a number"),
            ("registration=no", "true or false"),
            (format!("sampler={}", "a".repeat(20_000)).as_str(), "one-pass, ddim, ddpm"),
            (format!("within={}", "a".repeat(20_000)).as_str(), "no country"),
            (format!("within={}", "0,".repeat(20_000)).as_str(), "SOUTH,WEST"),
        ] {
            let problem = locate_options(Some(query)).expect_err(query);
            assert!(problem.detail().contains(complaint), "{query}: {}", problem.detail());
            assert_eq!(problem.status(), 400);
        }
    }
}
