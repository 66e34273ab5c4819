// How near the map goes to an answer: a precise one close up, a vague one with the Earth around it.

/** Before the Earth is no ball any more. */
const BALL_KM = 3300;
/** People who set a constraint want to see that area. */
const CONSTRAINED_KM = 900;
/** Nearer, the map shows nothing more. */
const NEAREST_KM = 1;

export interface Viewed {
  radius_50_km: number;
  isConstrained: boolean;
  /** Of the stage, 1 being a desktop's: on a small one, the same number of kilometers is less to see. */
  scale: number;
}

/**
 * The radius of the circle, around the first candidate, that the map shows. It is six times the radius that contains 50 %,
 * until the Earth is seen as a ball; for a vague answer it is as much more as that radius needs.
 */
export function viewRadiusKm({ radius_50_km, isConstrained, scale }: Viewed): number {
  const farEnough = (isConstrained ? CONSTRAINED_KM : BALL_KM) * scale;
  return Math.max(NEAREST_KM, 2.2 * radius_50_km, Math.min(farEnough, 6 * radius_50_km));
}
