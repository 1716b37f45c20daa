import { setTimeout as sleep } from 'node:timers/promises';
import { presentRun, type RunModel, type WalkModel } from '../api/run-model.js';
import type { Runs } from '../runs/runs.js';
import { tableLines } from './table.js';

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
  const ids = await start();
  const progress = new ProgressLine(process.stdout);
  let views: RunModel[];
  do {
    await sleep(POLL_MS, undefined, { signal });
    views = (await Promise.all(ids.map((id) => runs.find(id)))).flatMap((run) => (run ? [presentRun(run)] : []));
    if (!json) progress.show(progressOf(views), (performance.now() - began) / 1_000);
  } while (views.some(isUnderWay));
  const names = new Map(companies.map(({ companyId, name }) => [companyId, name]));
  if (json) {
    for (const line of jsonLines(views, names)) console.log(line);
    return;
  }
  progress.end();
  const failed = views.filter(({ walks }) => walks.some(isUnmirrored));
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  console.log(`Mirrored in ${seconds} s${failureCount(failed)}:\n`);
  for (const line of tableLines(rowsOf(views, names), COLUMNS)) console.log(`  ${line}`);
  if (failed[0]) console.log(`\n  To see why: ./bin/muster runs show ${failed[0].id}`);
}

function jsonLines(views: readonly RunModel[], names: ReadonlyMap<string, string>): string[] {
  return views.flatMap(({ environment, company_id, walks }) =>
    walks.map((walk) => JSON.stringify({ environment, company_id, name: names.get(company_id), ...walk })),
  );
}

/** Once the run is not under way any more, the list of such a walk failed, or waits with its run to be tried again. */
function isUnmirrored({ status }: WalkModel): boolean {
  return status !== 'succeeded';
}

function failureCount(failed: readonly RunModel[]): string {
  const lists = failed.flatMap(({ walks }) => walks).filter(isUnmirrored).length;
  if (lists === 0) return '';
  return lists === 1 ? ', 1 list failed' : `, ${lists} lists failed`;
}

/** A run that waits to retry is not waited for: its row in the table says so. */
function isUnderWay({ status, retry_at }: RunModel): boolean {
  return status === 'running' || (status === 'queued' && retry_at === undefined);
}

interface Progress {
  readonly received: number;
  /** Sum of the totals of the lists that have told theirs. */
  readonly total: number;
  /** Whether every list has told its total. */
  readonly totalKnown: boolean;
  readonly companiesDone: number;
  readonly companies: number;
}

function progressOf(views: readonly RunModel[]): Progress {
  const walks = views.flatMap((view) => view.walks);
  return {
    received: walks.reduce((sum, walk) => sum + walk.received, 0),
    total: walks.reduce((sum, walk) => sum + (walk.total_records ?? walk.received), 0),
    totalKnown: walks.every(
      ({ total_records, status }) => total_records !== null || status === 'succeeded' || status === 'failed',
    ),
    companiesDone: views.filter((view) => !isUnderWay(view)).length,
    companies: views.length,
  };
}

/** Prints progress: one line that is overwritten on a terminal, and a new line now and then elsewhere. */
class ProgressLine {
  readonly #stream: NodeJS.WriteStream;
  #lastPrint = -Infinity;

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
  }

  show(progress: Progress, seconds: number): void {
    if (this.#stream.isTTY) {
      this.#stream.write(`\r\x1b[2K${describe(progress, seconds, true)}`);
    } else if (performance.now() - this.#lastPrint >= PLAIN_LINE_MS) {
      this.#lastPrint = performance.now();
      this.#stream.write(`${describe(progress, seconds, false)}\n`);
    }
  }

  end(): void {
    if (this.#stream.isTTY) this.#stream.write('\r\x1b[2K');
  }
}

function describe(
  { received, total, totalKnown, companiesDone, companies }: Progress,
  seconds: number,
  withBar: boolean,
): string {
  const rate = received / Math.max(seconds, 0.1);
  const texts = [
    `${companiesDone} of ${companies} companies`,
    `${count(received)} of ${totalKnown ? '' : 'at least '}${count(total)} records`,
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

interface Row {
  readonly company: string;
  readonly resource: string;
  readonly walk: WalkModel;
}

function rowsOf(views: readonly RunModel[], names: ReadonlyMap<string, string>): Row[] {
  return views.flatMap((view) =>
    view.walks.map((walk, n) => ({
      company: n === 0 ? (names.get(view.company_id) ?? view.company_id) : '',
      resource: walk.resource,
      walk,
    })),
  );
}

const COLUMNS = {
  COMPANY: ({ company }: Row) => company,
  RESOURCE: ({ resource }: Row) => resource,
  RECORDS: ({ walk }: Row) => walk.received,
  NEW: ({ walk }: Row) => walk.inserted,
  UPDATED: ({ walk }: Row) => walk.updated,
  DELETED: ({ walk }: Row) => walk.deleted,
  COMPLETE: ({ walk }: Row) => outcome(walk),
};

function outcome({ status, verified, proof, unverified_reason, error }: Row['walk']): string {
  if (verified) return `proved (${proof})`;
  if (status === 'succeeded') return `not proved: ${unverified_reason}`;
  return error ? `${status}: ${error.code}` : status;
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}
