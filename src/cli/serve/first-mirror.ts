import { setTimeout as sleep } from 'node:timers/promises';
import { presentRun, type RunModel, type WalkModel } from '../../api/runs/run-model.js';
import type { Runs } from '../../runs/runs.js';
import { OWN_COMMAND } from '../own-command.js';
import { ProgressLine } from '../progress-line.js';
import { type Columns, members, tableLines } from '../table.js';
import { widthOf } from '../terminal.js';

interface MirroredCompany {
  readonly companyId: string;
  readonly name: string;
}

const POLL_MS = 200;
const INDENT = '  ';

/** Shows the progress of the first mirror, then a table of its lists. With `json` it prints one JSON object a list instead. */
export async function showFirstMirror(
  runs: Pick<Runs, 'find'>,
  companies: readonly MirroredCompany[],
  start: () => Promise<string[]>,
  { signal, json = false }: { readonly signal: AbortSignal; readonly json?: boolean },
): Promise<void> {
  const began = performance.now();
  const secondsPassed = () => (performance.now() - began) / 1_000;
  const ids = await start();
  const progress = new ProgressLine('Mirroring');
  let views: RunModel[];
  do {
    await sleep(POLL_MS, undefined, { signal });
    views = (await Promise.all(ids.map((id) => runs.find(id)))).flatMap((run) => (run ? [presentRun(run)] : []));
    if (!json) progress.show(...describe(views, secondsPassed()));
  } while (views.some(isUnderWay));
  const names = new Map(companies.map(({ companyId, name }) => [companyId, name]));
  const rows = views.flatMap(({ environment, company_id, walks }) =>
    walks.map((walk) => ({ environment, company_id, name: names.get(company_id), ...walk })),
  );
  if (json) {
    for (const row of rows) console.log(JSON.stringify(row));
    return;
  }
  progress.clear();
  const lost = rows.filter(isUnmirrored).length;
  const failures = lost === 0 ? '' : `, ${lost} ${lost === 1 ? 'list' : 'lists'} failed`;
  console.log(`Mirrored in ${secondsPassed().toFixed(1)} s${failures}:\n`);
  // The first list of a company names it.
  const namedOnce = rows.map((row, n) => (rows[n - 1]?.company_id === row.company_id ? { ...row, name: '' } : row));
  const width = widthOf();
  for (const line of tableLines(namedOnce, COLUMNS, width && width - INDENT.length)) console.log(`${INDENT}${line}`);
  const failed = views.find(({ walks }) => walks.some(isUnmirrored));
  if (failed) console.log(`\n  To see why: ${OWN_COMMAND} runs show ${failed.id}`);
}

/** Whether the list failed, or waits with its run for another attempt. Only for runs that are not under way. */
function isUnmirrored({ status }: WalkModel): boolean {
  return status !== 'succeeded';
}

/** A run that waits to retry, or for the end of quiet hours, is not waited for: its row in the table says so. */
function isUnderWay({ status, retry_at, waits_until }: RunModel): boolean {
  return status === 'running' || (status === 'queued' && retry_at === undefined && waits_until === undefined);
}

function describe(views: readonly RunModel[], seconds: number): [texts: string[], share: number | undefined] {
  const walks = views.flatMap((view) => view.walks);
  const received = walks.reduce((sum, walk) => sum + walk.received, 0);
  // A list that has not told its total counts with what it gave so far; while it is under way, it may give more.
  const total = walks.reduce((sum, walk) => sum + (walk.total_records ?? walk.received), 0);
  const isLeast = walks.some((walk) => walk.total_records === null && walk.status !== 'succeeded' && walk.status !== 'failed');
  const rate = received / Math.max(seconds, 0.1);
  // A narrow terminal has no room for the last ones.
  const texts = [
    `${count(received)} of ${isLeast ? 'at least ' : ''}${count(total)} records`,
    ...(received > 0 && received < total ? [`about ${Math.ceil((total - received) / rate)} s left`] : []),
    `${views.filter((view) => !isUnderWay(view)).length} of ${views.length} companies`,
    ...(received > 0 ? [`${count(Math.round(rate))}/s`] : []),
  ];
  return [texts, total > 0 ? Math.min(1, received / total) : undefined];
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
