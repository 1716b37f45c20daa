import type { RunModel, WalkModel } from '../../api/runs/run-model.js';
import { systemClock } from '../../core/clock.js';
import { CommandFailure } from '../exit-code.js';
import { ProgressLine } from '../progress-line.js';
import { type PrintOptions, time } from '../table.js';
import { plain } from '../terminal.js';
import type { AdminClient } from './admin-client.js';

const POLL_MS = 500;

/** Without a terminal, progress is a line on standard error, at most so often. A short run prints none. */
const LINE_MS = 10_000;

/**
 * Waits for the end of the run, and shows on standard error how far it is. SIGINT ends the waiting alone: then it throws, and the message says
 * that the run goes on.
 */
export async function watchRun(client: AdminClient, requested: RunModel, { json }: PrintOptions): Promise<RunModel> {
  const stopping = new AbortController();
  const stop = () => stopping.abort(stillRunning(requested));
  process.once('SIGINT', stop);
  if (!json) console.error(`Waiting for run ${requested.id}; ^C ends only the waiting.`);
  const line = new ProgressLine(plain(requested.company_name || 'Syncing'), process.stderr);
  let printedAt = performance.now();
  let run = requested;
  try {
    while (run.status === 'queued' || run.status === 'running') {
      const { texts, share } = progressOf(run);
      line.show(texts, share);
      if (!process.stderr.isTTY && performance.now() - printedAt >= LINE_MS) {
        printedAt = performance.now();
        console.error(texts.join(', '));
      }
      await systemClock.sleep(POLL_MS, stopping.signal);
      run = await client.get<RunModel>(`/api/runs/${run.id}`);
    }
  } finally {
    line.clear();
    process.off('SIGINT', stop);
  }
  return run;
}

function stillRunning({ id }: RunModel): CommandFailure {
  return new CommandFailure(
    `Waiting was ended, and the run goes on: \`muster runs show ${id}\` shows it, \`muster runs cancel ${id}\` ends it.`,
  );
}

/** Says what a queued run waits for, and until when; undefined if it may start now. */
export function waitText({ waits_until: quietUntil, retry_at: retryAt }: RunModel): string | undefined {
  if (quietUntil) return `waits for the end of the quiet hours at ${time(quietUntil)}`;
  return retryAt && `waits to retry at ${time(retryAt)}`;
}

/** The list that is read, its records of the total, and the time left; the share of all lists where every total is known. */
export function progressOf(run: RunModel): { readonly texts: string[]; readonly share: number | undefined } {
  if (run.status === 'queued') return { texts: [waitText(run) ?? 'waits for a worker'], share: undefined };
  const list = run.walks.find(({ status }) => status === 'running');
  const ended = run.walks.filter(({ status }) => status !== 'running' && status !== 'queued').length;
  const left = run.estimated_seconds_left;
  const texts = [
    ...(list ? [`${list.resource} ${recordsOf(list)}`] : []),
    ...(left ? [`about ${durationText(left)} left`] : []),
    `${ended} of ${run.walks.length} lists done`,
  ];
  const total = run.walks.reduce((sum, walk) => sum + (totalOf(walk) ?? Number.NaN), 0);
  const received = run.walks.reduce((sum, walk) => sum + walk.received, 0);
  return { texts, share: total > 0 ? Math.min(1, received / total) : undefined };
}

/** How many records the list has; undefined while that is not known. */
function totalOf({ status, total_records: total, received }: WalkModel): number | undefined {
  return total ?? (status === 'running' || status === 'queued' ? undefined : received);
}

function recordsOf({ received, total_records: total }: WalkModel): string {
  return `${count(received)}${total === null ? '' : ` of ${count(total)}`} records`;
}

function durationText(seconds: number): string {
  if (seconds < 90) return `${seconds} s`;
  return seconds < 5_400 ? `${Math.ceil(seconds / 60)} min` : `${(seconds / 3_600).toFixed(1)} h`;
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}
