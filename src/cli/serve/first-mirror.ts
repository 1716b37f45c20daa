import { setTimeout as sleep } from 'node:timers/promises';
import { presentRun, type RunModel, type WalkModel } from '../../api/runs/run-model.js';
import type { Runs } from '../../runs/runs.js';
import { type Columns, members, tableLines } from '../table.js';

interface MirroredCompany {
  readonly companyId: string;
  readonly name: string;
}

const POLL_MS = 200;
/** Time between two lines on a stream where nothing can be overwritten. */
const PLAIN_LINE_MS = 2_000;
const BAR_WIDTH = 28;

/** Shows the progress of the first mirror, then a table of what was mirrored. With `json` it prints one JSON object a list instead. */
export async function showFirstMirror(
  runs: Pick<Runs, 'find'>,
  companies: readonly MirroredCompany[],
  start: () => Promise<string[]>,
  { signal, json = false }: { readonly signal: AbortSignal; readonly json?: boolean },
): Promise<void> {
  const began = performance.now();
  const secondsPassed = () => (performance.now() - began) / 1_000;
  const ids = await start();
  const progress = progressPrinter(process.stdout);
  let views: RunModel[];
  do {
    await sleep(POLL_MS, undefined, { signal });
    views = (await Promise.all(ids.map((id) => runs.find(id)))).flatMap((run) => (run ? [presentRun(run)] : []));
    if (!json) progress(describe(views, secondsPassed(), process.stdout.isTTY));
  } while (views.some(isUnderWay));
  const names = new Map(companies.map(({ companyId, name }) => [companyId, name]));
  const rows = views.flatMap(({ environment, company_id, walks }) =>
    walks.map((walk) => ({ environment, company_id, name: names.get(company_id), ...walk })),
  );
  if (json) {
    for (const row of rows) console.log(JSON.stringify(row));
    return;
  }
  progress('');
  const lost = rows.filter(isUnmirrored).length;
  const failures = lost === 0 ? '' : `, ${lost} ${lost === 1 ? 'list' : 'lists'} failed`;
  console.log(`Mirrored in ${secondsPassed().toFixed(1)} s${failures}:\n`);
  // The first list of a company names it.
  const namedOnce = rows.map((row, n) => (rows[n - 1]?.company_id === row.company_id ? { ...row, name: '' } : row));
  for (const line of tableLines(namedOnce, COLUMNS)) console.log(`  ${line}`);
  const failed = views.find(({ walks }) => walks.some(isUnmirrored));
  if (failed) console.log(`\n  To see why: ./bin/muster runs show ${failed.id}`);
}

/** Once the run is not under way any more, the list of such a walk failed, or waits with its run to be tried again. */
function isUnmirrored({ status }: WalkModel): boolean {
  return status !== 'succeeded';
}

/** A run that waits to retry is not waited for: its row in the table says so. */
function isUnderWay({ status, retry_at }: RunModel): boolean {
  return status === 'running' || (status === 'queued' && retry_at === undefined);
}

/** Prints progress: one line that is overwritten on a terminal and ends with an empty text, and a new line now and then elsewhere. */
function progressPrinter(stream: NodeJS.WriteStream): (text: string) => void {
  if (stream.isTTY) return (text) => stream.write(`\r\x1b[2K${text}`);
  let lastPrint = -Infinity;
  return (text) => {
    if (text === '' || performance.now() - lastPrint < PLAIN_LINE_MS) return;
    lastPrint = performance.now();
    stream.write(`${text}\n`);
  };
}

function describe(views: readonly RunModel[], seconds: number, withBar: boolean): string {
  const walks = views.flatMap((view) => view.walks);
  const received = walks.reduce((sum, walk) => sum + walk.received, 0);
  // A list that has not told its total counts with what it gave so far; while it is under way, it may give more.
  const total = walks.reduce((sum, walk) => sum + (walk.total_records ?? walk.received), 0);
  const isLeast = walks.some((walk) => walk.total_records === null && walk.status !== 'succeeded' && walk.status !== 'failed');
  const rate = received / Math.max(seconds, 0.1);
  const texts = [
    `${views.filter((view) => !isUnderWay(view)).length} of ${views.length} companies`,
    `${count(received)} of ${isLeast ? 'at least ' : ''}${count(total)} records`,
  ];
  if (received > 0) texts.push(`${count(Math.round(rate))}/s`);
  if (received > 0 && received < total) texts.push(`about ${Math.ceil((total - received) / rate)} s left`);
  const bar = withBar && total > 0 ? `${barOf(received / total)}  ` : '';
  return `Mirroring  ${bar}${texts.join('  ')}`;
}

function barOf(share: number): string {
  const full = Math.min(BAR_WIDTH, Math.round(share * BAR_WIDTH));
  return `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)}`;
}

const COLUMNS: Columns<WalkModel & { readonly name: string | undefined }> = {
  COMPANY: ({ name }) => name,
  ...members('resource'),
  RECORDS: ({ received }) => received,
  NEW: ({ inserted }) => inserted,
  ...members('updated', 'deleted'),
  COMPLETE: outcome,
};

function outcome({ status, verified, proof, unverified_reason, error }: WalkModel): string {
  if (verified) return `proved (${proof})`;
  if (status === 'succeeded') return `not proved: ${unverified_reason}`;
  return error ? `${status}: ${error.code}` : status;
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}
