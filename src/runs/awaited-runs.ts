// A company has one sync at a time. What a request does about the one that there is:
//
//   request                 it walks lists by their schedules   another
//   lists that are due      they wait                           they wait
//   the night               it waits                            counts as the run of the night
//   requests for many       they wait                           counts as the requested run
//   anything else           is the requested run                is the requested run
//
// A run that waits for the end of quiet hours gets the requested lists that it lacks. A run that waits to retry may do so for an hour: the night replaces it, and so does a request for many if it walks lists by their schedules. A list that is
// due waits for it, too, since a run of that list would end the retries of the others.
import { type CompanyKey, keyText } from '../core/company.js';
import type { LastRun, SyncTrigger } from '../db/tables/runs.js';

/** The part of RunOptions that decides. */
interface Asked {
  readonly trigger: SyncTrigger;
  readonly onlyRequested?: boolean;
}

export function isActive({ status }: Pick<LastRun, 'status'>): boolean {
  return status === 'queued' || status === 'running';
}

/** Whether the request ends the run and makes one in its place. */
export function isReplacedBy({ trigger, onlyRequested = false }: Asked, run: LastRun): boolean {
  return run.isWaiting && (trigger === 'nightly' || (onlyRequested && run.trigger === 'scheduled'));
}

/** Whether the request waits until the run has ended. The company is then still due, or its request pending. */
export function awaits({ trigger, onlyRequested = false }: Asked, run: LastRun): boolean {
  if (!isActive(run)) return false;
  return trigger === 'scheduled' || (run.trigger === 'scheduled' && (trigger === 'nightly' || onlyRequested));
}

/** The runs of these companies. */
export function among<T extends CompanyKey>(runs: readonly T[], companies: readonly CompanyKey[]): T[] {
  const keys = new Set(companies.map(keyText));
  return runs.filter((run) => keys.has(keyText(run)));
}

/** The companies that have none of these runs. */
export function without<T extends CompanyKey>(companies: readonly T[], runs: readonly CompanyKey[]): T[] {
  const keys = new Set(runs.map(keyText));
  return companies.filter((company) => !keys.has(keyText(company)));
}
