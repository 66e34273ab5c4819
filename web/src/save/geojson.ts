// The answer as GeoJSON: the same features as `locdiff predict --geojson`.

import type { Feature, FeatureCollection, Geometry } from "geojson";
import { cornersOf } from "../constraints";
import type { Ground } from "../ground";
import { groundOf, type Visit } from "../visit";

const degrees = (value: number) => Math.round(value * 1e6) / 1e6;

export function geojsonOf(visit: Pick<Visit, "answer" | "regions" | "places" | "name" | "constraints" | "ground" | "groundAllowed">): FeatureCollection {
  const { model, image } = visit.answer!;
  const about = {
    image: visit.name,
    sha256: image.sha256,
    model: model.name,
    version: model.version,
    calibrated: model.calibrated,
    prediction: true,
    within: visit.constraints.map(({ label }) => label),
  };
  const regions = visit.regions!.features.map(
    (region): Feature => ({ type: "Feature", geometry: region.geometry, properties: { ...region.properties, ...about } }),
  );
  const candidates = visit.places.map((place, index): Feature => {
    const { name, around, country, mass, radius_km } = place;
    const [latitude, longitude] = [degrees(place.latitude), degrees(place.longitude)];
    const properties = { kind: "candidate", rank: index + 1, latitude, longitude, mass, radius_km, name, around, country, ...about };
    return { type: "Feature", geometry: { type: "Point", coordinates: [longitude, latitude] }, properties };
  });
  const ground = groundOf(visit);
  const grounds = ground === null ? [] : [footprintFeature(ground, about)];
  const constraints = visit.constraints.map((constraint): Feature => {
    const { label, area } = constraint;
    // Of named countries the name is enough.
    const drawn = area.kind === "polygons" && cornersOf(constraint) !== "";
    const geometry: Geometry | null = drawn ? { type: "MultiPolygon", coordinates: area.coordinates } : null;
    const numbers = area.kind === "polygons" ? {} : area;
    return { type: "Feature", geometry: geometry!, properties: { ...numbers, ...about, kind: "constraint", label } };
  });
  return { type: "FeatureCollection", features: [...regions, ...candidates, ...grounds, ...constraints] };
}

function footprintFeature({ footprint, outline }: Ground, about: object): Feature {
  const { middle, heading_degrees, width_km, likeness } = footprint;
  return { type: "Feature", geometry: outline, properties: { kind: "footprint", ...middle, heading_degrees, width_km, likeness, ...about } };
}
