//! What the paper reports for photographs.

/// By the name of a block of `docs/paper.md`: rows, and percent by radius.
const QUOTED: [(&str, &[(&str, &str)]); 5] = [
    (
        "table 1",
        &[
            ("LocDiff, L = 47", "10.9 | 34.0 | 53.3 | 72.5 | 85.2"),
            ("LocDiff-H, L = 23", "15.3 | 36.5 | 56.4 | 75.2 | 87.4"),
        ],
    ),
    (
        "table 9",
        &[
            ("reverse KL, L = 47", "10.9 | 34.0 | 53.3 | 72.5 | 85.2"),
            ("cosine, L not said", "7.5 | 32.2 | 53.0 | 71.5 | 84.9"),
            ("L1, L not said", "0.0 | 0.5 | 20.3 | 30.6 | 43.5"),
            ("L2, L not said", "0.0 | 0.7 | 20.1 | 32.7 | 44.9"),
        ],
    ),
    (
        "figure 5a",
        &[
            ("its table 3 over MP16's places, L = 23", "0.57 | 11.1 | 44.42 | 68.35 | 82.50"),
            ("its table 10, w = 32, L = 31", "5.1 | 27.2 | 50.9 | 71.2 | 84.1"),
            ("its table 1, L = 47", "10.9 | 34.0 | 53.3 | 72.5 | 85.2"),
        ],
    ),
    (
        "table 10",
        &[
            ("w = 32, L = 31", "5.1 | 27.2 | 50.9 | 71.2 | 84.1"),
            ("w = 128, L = 31", "4.7 | 27.0 | 50.2 | 70.8 | 84.3"),
        ],
    ),
    (
        "table 3",
        &[
            ("GeoCLIP; MP16, 100k", "14.11 | 34.47 | 50.65 | 69.67 | 83.82"),
            ("GeoCLIP; grid, 1M", "0.03 | 9.18 | 33.47 | 55.32 | 75.34"),
            ("GeoCLIP; grid, 500k", "0.03 | 7.17 | 29.40 | 52.29 | 73.11"),
            ("GeoCLIP; grid, 100k", "0.00 | 2.67 | 22.39 | 47.35 | 68.77"),
            ("GeoCLIP; grid, 21k", "0.00 | 0.87 | 19.55 | 43.78 | 64.33"),
            ("LocDiff, L = 23; MP16, 100k", "0.57 | 11.1 | 44.42 | 68.35 | 82.50"),
            ("LocDiff, L = 23; grid, 1M", "0.01 | 4.37 | 43.04 | 68.30 | 81.66"),
            ("LocDiff, L = 23; grid, 500k", "0.07 | 4.47 | 43.18 | 68.36 | 81.65"),
            ("LocDiff, L = 23; grid, 100k", "0.07 | 4.04 | 42.91 | 68.34 | 82.18"),
            ("LocDiff, L = 23; grid, 21k", "0.03 | 4.90 | 43.44 | 68.29 | 81.68"),
        ],
    ),
];

/// Lines of a table, with some columns before the percents.
pub fn quoted(block: &str, columns: &str) -> String {
    let rows = QUOTED.iter().filter(|(of, _)| *of == block).flat_map(|(_, rows)| *rows);
    rows.map(|(name, row)| {
        format!("| *the paper, photographs: {name} (quoted)*{columns} | {row} |\n")
    })
    .collect()
}
