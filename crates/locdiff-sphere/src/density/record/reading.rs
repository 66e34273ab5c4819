//! Records as they are read: all fields of all kinds at once, so that numbers go straight to where they stay. (An enum that is
//! told apart by one of its fields would hold every number in sixteen times as much memory first.)

use serde::Deserialize;

use super::{DensityRecord, MixturePart, ProductFactor};
use crate::{CubeCell, shown};

/// A record of any kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fields {
    kind: String,
    max_degree: Option<usize>,
    coefficients: Option<Vec<f32>>,
    kernel_km: Option<f64>,
    latitudes: Option<Vec<f64>>,
    longitudes: Option<Vec<f64>>,
    masses: Option<Vec<f64>>,
    cells: Option<Vec<CubeCell>>,
    parts: Option<Vec<MixturePart>>,
    factors: Option<Vec<ProductFactor>>,
}

impl TryFrom<Fields> for DensityRecord {
    type Error = String;

    fn try_from(mut fields: Fields) -> Result<DensityRecord, String> {
        let Fields { kind, .. } = &mut fields;
        let kind = std::mem::take(kind);
        let record = match kind.as_str() {
            "exponential" => DensityRecord::Exponential {
                max_degree: given(&mut fields.max_degree, "max_degree")?,
                coefficients: list(&mut fields.coefficients, "coefficients")?,
            },
            "linear" => DensityRecord::Linear {
                max_degree: given(&mut fields.max_degree, "max_degree")?,
                coefficients: list(&mut fields.coefficients, "coefficients")?,
            },
            "points" => DensityRecord::Points {
                kernel_km: given(&mut fields.kernel_km, "kernel_km")?,
                latitudes: list(&mut fields.latitudes, "latitudes")?,
                longitudes: list(&mut fields.longitudes, "longitudes")?,
                masses: list(&mut fields.masses, "masses")?,
            },
            "cells" => DensityRecord::Cells {
                cells: list(&mut fields.cells, "cells")?,
                masses: list(&mut fields.masses, "masses")?,
            },
            "mixture" => DensityRecord::Mixture { parts: list(&mut fields.parts, "parts")? },
            "product" => DensityRecord::Product { factors: list(&mut fields.factors, "factors")? },
            other => {
                return Err(format!(
                    "there is no kind `{}`: use exponential, linear, points, cells, mixture or product",
                    shown(other)
                ));
            }
        };
        let left = [
            ("max_degree", fields.max_degree.is_some()),
            ("coefficients", fields.coefficients.is_some()),
            ("kernel_km", fields.kernel_km.is_some()),
            ("latitudes", fields.latitudes.is_some()),
            ("longitudes", fields.longitudes.is_some()),
            ("masses", fields.masses.is_some()),
            ("cells", fields.cells.is_some()),
            ("parts", fields.parts.is_some()),
            ("factors", fields.factors.is_some()),
        ];
        match left.into_iter().find(|(_, is_left)| *is_left) {
            None => Ok(record),
            Some((name, _)) => Err(format!("unknown field `{name}` in a density of kind {kind}")),
        }
    }
}

fn given<T>(field: &mut Option<T>, name: &str) -> Result<T, String> {
    field.take().ok_or_else(|| format!("missing field `{name}`"))
}

/// Without the room that it was given to grow.
fn list<T>(field: &mut Option<Vec<T>>, name: &str) -> Result<Vec<T>, String> {
    let mut list = given(field, name)?;
    list.shrink_to_fit();
    Ok(list)
}
