//! TOML files: configurations of trainings. Those of the server are read by the program, whose allocator would exclude ours.

use std::path::Path;

use locdiff_train::TrainingConfig;

use crate::{Target, contents};

const LONGEST: usize = 4 << 10;

pub(super) const TARGET: Target = Target {
    name: "toml",
    reads: "training configurations",
    longest: LONGEST,
    most_bytes: 16 << 20,
    run,
    seeds,
};

fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let path = Path::new("run.toml");
    if let Ok(config) = TrainingConfig::from_toml(text, path) {
        let written = toml::to_string(&config).expect("a configuration is plain values");
        let again = TrainingConfig::from_toml(&written, path).expect("what was written is read");
        assert_eq!(again, config);
        for step in [0, 1, config.run.steps / 2, config.run.steps] {
            let rate = config.rate(step);
            assert!(rate.is_finite() && rate >= 0.0, "the rate of step {step} is {rate}");
        }
        let _ = (config.adam(), config.inference(), config.shared_by(2));
    }
}

fn seeds() -> Vec<Vec<u8>> {
    contents("configs", LONGEST, |path| path.extension().is_some_and(|end| end == "toml"))
}
