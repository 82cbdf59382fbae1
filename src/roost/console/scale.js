// Where a value lies in a drawing. Without any drawing.

/** Round steps from 0 to at least `most`, about `count` of them. */
export function ticks(most, count = 4) {
  if (!(most > 0)) return [0, 1];
  const rough = most / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map(one => one * power).find(one => one >= rough);
  const found = [];
  for (let at = 0; at < most + step * 0.999; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

/** Moments at whole minutes (or seconds) between two times. */
export function timeTicks(from, to, count = 5) {
  const steps = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600].map(seconds => seconds * 1000);
  const step = steps.find(one => (to - from) / one <= count) ?? steps.at(-1);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}

/** A line through the points, broken where there is none. */
export function linePath(points) {
  let path = '';
  let isDown = false;
  for (const [x, y] of points) {
    if (y === null) { isDown = false; continue; }
    path += `${isDown ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
    isDown = true;
  }
  return path;
}

/** A part of a ring between two shares of the whole turn, from the top clockwise. */
export function arcPath(from, to, inner, outer) {
  const at = (share, radius) => {
    const angle = (share - 0.25) * 2 * Math.PI;
    return `${(radius * Math.cos(angle)).toFixed(3)} ${(radius * Math.sin(angle)).toFixed(3)}`;
  };
  const end = to - from >= 1 ? from + 0.99999 : to;
  const large = end - from > 0.5 ? 1 : 0;
  return `M${at(from, outer)}A${outer} ${outer} 0 ${large} 1 ${at(end, outer)}L${at(end, inner)}A${inner} ${inner} 0 ${large} 0 ${at(from, inner)}Z`;
}

/** The point nearest to a moment, by halves. */
export function nearest(points, at) {
  let low = 0;
  let high = points.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] < at) low = middle + 1; else high = middle;
  }
  return low > 0 && at - points[low - 1][0] < points[low]?.[0] - at ? low - 1 : low;
}
