import type { Series } from './promtool.js';

/** Long enough for every alert to fire. */
export const MINUTES = 180;
/** Each series is scraped from two API processes, as a fleet has them. */
const INSTANCES = ['one:8080', 'two:8080'];

/** The samples of a scrape by their name with labels. */
function samplesOf(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]));
}

/**
 * The series that Prometheus has where each scrape of hours was like this one. With a later scrape, each counter rises by the difference every minute.
 */
export function seriesOf(text: string, later = text): Series {
  const after = samplesOf(later);
  const series: Record<string, string> = {};
  for (const instance of INSTANCES) {
    const target = `instance="${instance}",job="muster"`;
    series[`up{${target}}`] = `1x${MINUTES}`;
    for (const [sample, value] of samplesOf(text)) {
      if (!sample.startsWith('muster_')) continue;
      const rise = /_total\b/.test(sample) ? (after.get(sample) ?? value) - value : 0;
      series[labelled(sample, target)] = `${value}+${rise}x${MINUTES}`;
    }
  }
  return series;
}

/** The series of processes that no longer answer. */
export function unreachable(): Series {
  return Object.fromEntries(INSTANCES.map((instance) => [`up{instance="${instance}",job="muster"}`, `0x${MINUTES}`]));
}

function labelled(sample: string, labels: string): string {
  return sample.endsWith('}') ? `${sample.slice(0, -1)},${labels}}` : `${sample}{${labels}}`;
}
