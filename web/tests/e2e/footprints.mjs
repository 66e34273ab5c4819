// Canned footprints in the answers of any server, and what the map shows of them.

/** Measured by hand on examples/madagascar.jpg. */
export const FOOTPRINT = {
  corners: [[-8.534, 52.965], [-24.426, 57.39], [-27.142, 42.086], [-15.805, 38.16]].map(([latitude, longitude]) => ({ latitude, longitude })),
  middle: { latitude: -19.97, longitude: 46.61 },
  heading_degrees: 72,
  width_km: 1545.5,
  likeness: 0.71,
};

/** Answers have these footprints, one after the other, and none after that; whatever the server finds. */
export async function withFootprints(page, footprints) {
  await page.route("**/v1/locate*", async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    const footprint = footprints.shift();
    const answer = body.results?.[0];
    if (answer !== undefined) delete answer.footprint;
    if (footprint !== undefined && answer?.candidates) answer.footprint = footprint;
    await route.fulfill({ response, json: body });
  });
}

/** What the map shows of the picture. */
export const onTheMap = (page) =>
  page.evaluate(() => {
    const { map } = window.locdiff.globe;
    return {
      picture: map.getLayer("picture") !== undefined,
      opacity: map.getLayer("picture") ? map.getPaintProperty("picture", "raster-opacity") : null,
      lines: map.getSource("footprint").serialize().data.features?.length ?? 0,
    };
  });
