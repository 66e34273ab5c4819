"""The table of `experiments/run end-to-end`, and its last line."""

import json
import pathlib
import sys

work, mode, difference = pathlib.Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])


def read(name):
    return json.loads((work / f"{name}.json").read_text())


def percent(scores, key):
    return round(100 * scores[key]["value"], 1)


def row(label, name, run=None):
    report = read(name)
    if run:
        training = json.loads((work / "runs" / run / "model/config.json").read_text())["training"]
        label += f"; {training['steps']:,} steps of {training['batch']}"
    scores, densities = report["scores"], report.get("density_scores", {})
    within = [percent(scores, f"accuracy_{km}_km") for km in (25, 200, 750, 2500)]
    value = lambda key: densities[key]["value"] if key in densities else None
    # A linear density is zero in places: its likelihood there is infinite, which JSON has no number for.
    more = ["∞" if value("nll_nats") is None else f"{value('nll_nats'):.3f}"] + [f"{100 * value(key):.1f}" for key in ("coverage_50", "coverage_90")]
    print(f"| {label} | {report['images']} | " + " | ".join(str(number) for number in within) + " | " + " | ".join(more) + " |")
    return report["images"], within[2]


print("| model, inference | n | ≤ 25 km, % | ≤ 200 km, % | ≤ 750 km, % | ≤ 2,500 km, % | NLL, nats | truth in 50 % region, % | truth in 90 % region, % |\n|---|---|---|---|---|---|---|---|---|")
if mode == "--quick":
    n, within = row("examples/models/earth, one pass", "quick")
    print()
    print(json.dumps({"n": n, "example_within_750": within, "predict_equals_serve": difference}))
    sys.exit()
n, likelihood = row("configs/likelihood-l23.toml, one pass (its default)", "likelihood", "likelihood")
row("the same, place of best expected GeoScore", "likelihood-geoscore")
row("the same, DDIM 20 × 16 samples", "likelihood-ddim")
_, published = row("configs/paper-l23.toml, DDPM 200 × 16 (its default)", "published", "published")
row("the same, one pass", "published-one-pass")
_, example = row("the small example, one pass", "example", "example")
_, vit = row("DINOv2-S, 300 views, a minute: embeddings", "vit")
_, photographs = row("the same from photographs", "vit-photographs")
neighbor = read("neighbor")
print(f"| nearest neighbor among the {neighbor['training_rows']} training rows | {neighbor['n']} | – | {neighbor['within_200']} | {neighbor['within_750']} | {neighbor['within_2500']} | – | – | – |")
print()
figures = json.dumps({
    "n": n, "predict_equals_serve": difference, "likelihood_within_750": likelihood, "published_within_750": published,
    "knn_within_750": neighbor["within_750"], "example_within_750": example, "vit_within_750": vit, "vit_photographs_within_750": photographs,
})
# What the issue asks for.
assert n >= 2000 and difference <= 1e-4 and likelihood > neighbor["within_750"], (n, difference, likelihood, neighbor)
print(figures)
