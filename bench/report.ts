import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { NODE } from './bench-setup.js';
import type { Measures } from './measures.js';

interface Reach {
  readonly atLeast?: number;
  readonly atMost?: number;
}

/** What is to be reached, where something is: at least, or at most, so much. */
const REACH: Readonly<Record<string, Reach>> = {
  'first mirror / COPY': { atLeast: 0.75 },
  'first mirror of one company / COPY': { atLeast: 0.45 },
  'first mirror with the schema log / without': { atMost: 1.05 },
  'nothing changed / fetch only': { atLeast: 1.2 },
  'nothing changed, with ETags / fetch only': { atLeast: 3 },
  '1 % changed / fetch only': { atLeast: 0.8 },
  '1 % changed in one place, with ETags / fetch only': { atLeast: 0.8 },
  'two workers: nothing changed / fetch only': { atLeast: 0.9 },
  'two workers: 1 % changed / fetch only': { atLeast: 0.8 },
  'nothing changed, WAL bytes a record': { atMost: 5 },
  '50 ms: page after page / nothing changed': { atLeast: 8 },
  '50 ms: first mirror / the same without latency': { atMost: 1.2 },
  "worker's peak memory / the same for a tenth": { atMost: 1.3 },
  "worker's peak memory for 1000000 records, MB": { atMost: 260 },
  'POST …/sync to the first request, ms': { atMost: 30 },
  'first mirror with one rule / without': { atLeast: 0.9 },
  "first mirror: worker's CPU with traces / without": { atMost: 1.05 },
  "nothing changed, twice: worker's CPU with traces / without": { atMost: 1.05 },
  "a night of 1,000 companies of 100 records: worker's CPU with traces / without": { atMost: 1.05 },
  'one consumer of the feed, changes/s': { atLeast: 20_000 },
};

/** Of every page of the feed. */
const FEED_PAGE: Reach = { atMost: 50 };

/** The same for measures whose names say their scale, by how they end. */
const REACH_BY_END: Readonly<Record<string, Reach>> = {
  ': statements a company': { atMost: 12 },
  'page with 10,000 companies and 300,000 runs, ms (p95)': { atMost: 100 },
  'list or call of the API with 10,000 companies and 300,000 runs, ms (p95)': { atMost: 100 },
  ' records / without it': { atMost: 1.5 },
  ' records / on jsonb': { atMost: 1.3 },
  ': rows/s / a plain table': { atLeast: 0.5 },
  ': stock / embedded': { atLeast: 0.7 },
  ': stock / stock with jit = off': { atLeast: 0.9 },
  ': pooled / pooled with jit = off': { atLeast: 0.9 },
};

/** bench/results.md: medians, their spread, what was to be reached, on which machine, and notes.md. */
export function markdown(measures: Measures): string {
  const rows = [...measures.values].map(([name, values]) => {
    const sorted = values.toSorted((a, b) => a - b);
    return `| ${name} | ${number(measures.median(name))} | ${number(sorted[0]!)} to ${number(sorted.at(-1)!)} | ${goal(name)} |`;
  });
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };
  const node = spawnSync(NODE, ['--version'], { encoding: 'utf8' }).stdout.trim().slice(1);
  return [
    '# Benchmark',
    '',
    `Muster ${version}, Node ${node}, ${cpus().length} cores of ${cpus()[0]?.model.trim()}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, embedded PostgreSQL ${measures.serverVersion}.`,
    'Provider, PostgreSQL, API and worker share these cores. `npm run bench` makes this page; ratios within one run carry over to other machines, rows/s do not.',
    '',
    '| measure | median | spread | to reach |',
    '|---|---|---|---|',
    ...rows,
    '',
    '![What a record and what a company cost](scale.svg)',
    '',
    readFileSync(new URL('notes.md', import.meta.url), 'utf8'),
  ].join('\n');
}

/** bench/ratios.svg: each ratio that has something to reach, as a bar against it. */
export function ratiosPicture(measures: Measures): string {
  const bars = [...measures.values.keys()].filter(
    (name) => name.includes(' / ') && reachOf(name)?.atLeast !== undefined && reachOf(name)!.atLeast! <= 1,
  );
  const left = 480;
  const row = (name: string, n: number) => {
    const y = 50 + n * 40;
    const width = (share: number) => Math.min(1.2, share) * 290;
    const goalAt = left + width(reachOf(name)!.atLeast!);
    return [
      `<text x="${left - 15}" y="${y + 15}" text-anchor="end">${escape(name)}</text>`,
      `<rect x="${left}" y="${y}" width="${width(measures.median(name)).toFixed(1)}" height="22" rx="4" fill="#3d8b78"/>`,
      `<line x1="${goalAt}" x2="${goalAt}" y1="${y - 4}" y2="${y + 26}" stroke="#1f3a4d" stroke-width="2" stroke-dasharray="4 3"/>`,
      `<text x="${(Math.max(left + width(measures.median(name)), goalAt) + 8).toFixed(1)}" y="${y + 16}" font-weight="600">${measures.median(name).toFixed(2)}</text>`,
    ].join('');
  };
  const title = `<text x="860" y="30" text-anchor="end" font-weight="600">Share of the floor that is reached (dashed: to reach; bars end at 1.2)</text>`;
  return picture(70 + bars.length * 40, title + bars.map(row).join(''));
}

/** bench/scale.svg: what a record and what a company cost, against how many there are, as bars of one scale a group. */
export function scalePicture(measures: Measures): string {
  const groups = [', µs a record', ', ms a company'].map((unit) =>
    [...measures.values.keys()].filter((name) => name.endsWith(unit)),
  );
  const rows: string[] = [];
  let y = 20;
  for (const names of groups) {
    const most = Math.max(...names.map((name) => measures.median(name)));
    for (const name of names) {
      const width = (measures.median(name) / most) * 360;
      rows.push(
        `<text x="415" y="${y + 15}" text-anchor="end">${escape(name)}</text>` +
          `<rect x="430" y="${y}" width="${width.toFixed(1)}" height="22" rx="4" fill="${name.includes('first mirror') ? '#1f3a4d' : '#3d8b78'}"/>` +
          `<text x="${(438 + width).toFixed(1)}" y="${y + 16}" font-weight="600">${number(measures.median(name))}</text>`,
      );
      y += 32;
    }
    y += 16;
  }
  return picture(y, rows.join(''));
}

function picture(height: number, content: string): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 ${height}" font-family="ui-sans-serif, system-ui, Helvetica, Arial, sans-serif" font-size="13" fill="#1f3a4d"><rect width="880" height="${height}" rx="14" fill="#fbfaf7"/>${content}</svg>\n`;
}

function reachOf(name: string): Reach | undefined {
  const byEnd = Object.entries(REACH_BY_END).find(([end]) => name.endsWith(end))?.[1];
  if (byEnd) return byEnd;
  return name.includes('page of 1000 at the ') ? FEED_PAGE : REACH[name.replace(/ \(pages of \d+\)$/, '')];
}

function goal(name: string): string {
  const reach = reachOf(name);
  if (reach?.atLeast !== undefined) return `at least ${reach.atLeast}`;
  return reach?.atMost === undefined ? '' : `at most ${reach.atMost}`;
}

function number(value: number): string {
  if (value >= 1_000) return Math.round(value).toLocaleString('en-US');
  return value.toFixed(value >= 20 ? 0 : 2);
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
