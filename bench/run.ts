import { writeFileSync } from 'node:fs';
import { measureChanges } from './changes.js';
import { measureExport } from './export.js';
import { measureFeed } from './feed.js';
import {
  Measures,
  measureDispatch,
  measureLatency,
  measureMemory,
  measureScale,
  measureThroughput,
  measureTwoWorkers,
} from './measures.js';
import { measureNight } from './night.js';
import { measurePages } from './pages.js';
import { measurePrivacy } from './privacy.js';
import { markdown, ratiosPicture, scalePicture } from './report.js';
import { measureSchemaLog } from './schema-log.js';
import { measureStock } from './stock.js';
import { measureTokens } from './token-refresh.js';
import { measureTraces } from './traces.js';
import { measureViews } from './views.js';

// npm run bench: BENCH_ROUNDS, BENCH_RECORDS (of each of four companies), BENCH_GIANT, BENCH_COMPANIES, BENCH_TOKENS, BENCH_CHANGES and BENCH_REQUESTS (of each page) make it shorter or longer;
// BENCH_ONLY names the parts to measure, and then nothing is written.
const scale = {
  rounds: Number(process.env['BENCH_ROUNDS'] ?? 5),
  records: Number(process.env['BENCH_RECORDS'] ?? 100_000),
  giant: Number(process.env['BENCH_GIANT'] ?? 1_000_000),
  manyCompanies: Number(process.env['BENCH_COMPANIES'] ?? 10_000),
  dueCompanies: Number(process.env['BENCH_TOKENS'] ?? 2_000),
};
const only = process.env['BENCH_ONLY']?.split(',');
const measures = new Measures();
const parts = {
  throughput: () => measureThroughput(measures, scale, 500),
  'throughput-1000': () => measureThroughput(measures, scale, 1_000),
  'two-workers': () => measureTwoWorkers(measures, scale),
  latency: () => measureLatency(measures, scale),
  dispatch: () => measureDispatch(measures),
  tokens: () => measureTokens(measures, scale),
  memory: () => measureMemory(measures, scale),
  scale: () => measureScale(measures, scale),
  night: () => measureNight(measures, scale),
  privacy: () => measurePrivacy(measures, scale),
  traces: () => measureTraces(measures, scale),
  export: () => measureExport(measures, scale),
  views: () => measureViews(measures, scale),
  'schema-log': () => measureSchemaLog(measures, scale),
  stock: () => measureStock(measures, scale),
  feed: () => measureFeed(measures, Number(process.env['BENCH_CHANGES'] ?? 5_000_000)),
  changes: () => measureChanges(measures, Number(process.env['BENCH_CHANGES'] ?? 600_000)),
  pages: () => measurePages(measures, Number(process.env['BENCH_REQUESTS'] ?? 100)),
};
for (const [name, measure] of Object.entries(parts)) {
  if (only && !only.includes(name)) continue;
  console.error(`measuring ${name} …`);
  await measure();
}
console.log(markdown(measures));
if (!only) {
  writeFileSync(new URL('results.md', import.meta.url), markdown(measures));
  writeFileSync(new URL('ratios.svg', import.meta.url), ratiosPicture(measures));
  writeFileSync(new URL('scale.svg', import.meta.url), scalePicture(measures));
}
