import { writeFileSync } from 'node:fs';
import { Measures, measureDispatch, measureLatency, measureMemory, measureThroughput } from './measures.js';
import { markdown, ratiosPicture } from './report.js';

// npm run bench: BENCH_ROUNDS, BENCH_RECORDS (of each of four companies) and BENCH_GIANT make it shorter or longer;
// BENCH_ONLY names the parts to measure, and then nothing is written.
const scale = {
  rounds: Number(process.env['BENCH_ROUNDS'] ?? 5),
  records: Number(process.env['BENCH_RECORDS'] ?? 50_000),
  giant: Number(process.env['BENCH_GIANT'] ?? 1_000_000),
};
const only = process.env['BENCH_ONLY']?.split(',');
const measures = new Measures();
const parts = {
  throughput: () => measureThroughput(measures, scale, 500),
  'throughput-1000': () => measureThroughput(measures, scale, 1_000),
  latency: () => measureLatency(measures, scale),
  dispatch: () => measureDispatch(measures),
  memory: () => measureMemory(measures, scale),
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
}
