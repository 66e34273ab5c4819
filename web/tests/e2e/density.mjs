// What the page draws against what the program computes.

/** Values of the page at places: tiles of one pixel, so deep that their middle is within metres. */
async function pageValues(page, number, places) {
  return page.evaluate(
    async ([density, list]) => {
      const zoom = 22;
      const values = [];
      for (const [latitude, longitude] of list) {
        const radians = (latitude * Math.PI) / 180;
        const x = Math.floor(((longitude + 180) / 360) * 2 ** zoom);
        const y = Math.floor(((1 - Math.asinh(Math.tan(radians)) / Math.PI) / 2) * 2 ** zoom);
        values.push((await window.locdiff.engine.values(density, zoom, x, y, 1))[0]);
      }
      return values;
    },
    [number, places],
  );
}

function compared(ours, theirs) {
  const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
  const [a, b] = [mean(ours), mean(theirs)];
  let [ab, aa, bb, largest] = [0, 0, 0, 0];
  ours.forEach((value, k) => {
    ab += (value - a) * (theirs[k] - b);
    aa += (value - a) ** 2;
    bb += (theirs[k] - b) ** 2;
    largest = Math.max(largest, Math.abs(value - theirs[k]));
  });
  return { points: ours.length, correlation: ab / Math.sqrt(aa * bb), max_error_nats: largest };
}

/** Against `POST /v1/density?format=grid`; null if the server has no such thing. */
export async function comparedWithServer(page, url) {
  const { number, density } = await page.evaluate(() => {
    const visit = window.locdiff.app.current;
    return { number: visit.whole, density: visit.answer.density };
  });
  const response = await fetch(new URL("/v1/density?format=grid&width=128", url), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(density),
  });
  if (!response.ok) return null;
  const grid = await response.json();
  const [places, theirs] = [[], []];
  for (let row = 0; row < grid.height; row += 2) {
    for (let column = row % 3; column < grid.width; column += 5) {
      const latitude = grid.first_latitude - row * grid.step_degrees;
      const longitude = grid.first_longitude + column * grid.step_degrees;
      if (Math.abs(latitude) > 84 || Math.abs(longitude) >= 180) continue;
      places.push([latitude, longitude]);
      theirs.push(grid.log_density[row * grid.width + column]);
    }
  }
  return { ...compared(await pageValues(page, number, places), theirs), reference: "server" };
}

/** Against another implementation of harmonics, normalised on a plain grid. */
export async function comparedWithSums(page, harmonics) {
  const { number, density } = await page.evaluate(() => {
    const visit = window.locdiff.app.current;
    return { number: visit.whole, density: visit.answer.density };
  });
  const value = (latitude, longitude) => harmonics(latitude, longitude).reduce((sum, y, k) => sum + y * density.coefficients[k], 0);
  let integral = 0;
  const step = 1;
  for (let latitude = -90 + step / 2; latitude < 90; latitude += step) {
    for (let longitude = -180; longitude < 180; longitude += step) {
      integral += Math.exp(value(latitude, longitude)) * Math.cos((latitude * Math.PI) / 180) * ((step * Math.PI) / 180) ** 2;
    }
  }
  const places = Array.from({ length: 300 }, (_, k) => [(Math.asin(((k + 0.5) / 300) * 1.98 - 0.99) * 180) / Math.PI, ((k * 137.508) % 360) - 180]);
  const theirs = places.map(([latitude, longitude]) => value(latitude, longitude) - Math.log(integral));
  return { ...compared(await pageValues(page, number, places), theirs), reference: "sums" };
}
